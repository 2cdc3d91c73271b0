"""The pages of the window, in the order of its navigation."""

from __future__ import annotations

from council.desk.desk import Desk
from council.web import plan_pages, run_pages
from council.web.live import Broadcast, Floor
from council.web.now_page import now_page
from council.web.run_pages import run_actions, run_page
from council.web.window_pages import Window


def window_of(desk: Desk, broadcast: Broadcast, floor: Floor) -> Window:
    """All pages and what their forms do."""
    run = run_page(floor)
    pages = (now_page(floor), run_pages.RUNS, run, run_pages.REPLAY, plan_pages.PLANS, plan_pages.PLAN)
    return Window(desk, pages, (*run_actions(run), *plan_pages.ACTIONS), (run_pages.ARTIFACT,), broadcast, floor)
