"""The pages of the window, in the order of its navigation."""

from __future__ import annotations

from council.desk.desk import Desk
from council.web import plan_pages
from council.web.live import Broadcast, Floor
from council.web.now_page import now_page
from council.web.pages import Window


def window_of(desk: Desk, broadcast: Broadcast, floor: Floor) -> Window:
    """All pages and what their forms do."""
    pages = (now_page(floor), plan_pages.PLANS, plan_pages.PLAN)
    return Window(desk, pages, plan_pages.ACTIONS, broadcast, floor)
