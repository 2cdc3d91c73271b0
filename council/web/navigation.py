"""The pages of the window, in the order of its navigation."""

from __future__ import annotations

from typing import Any

from council.desk.desk import Desk
from council.web import (
    command_page,
    plan_pages,
    run_pages,
    specialist_pages,
    steward_pages,
    workspace_pages,
    world_page,
)
from council.web.chat_page import chat_pages
from council.web.live_updates import Broadcast, Floor
from council.web.now_page import now_page
from council.web.run_pages import answer_run, run_page, steer_run
from council.web.window_pages import PageAction, Window, WindowPage


def window_of(desk: Desk, broadcast: Broadcast, floor: Floor) -> Window:
    run, (chats, asking) = run_page(floor), chat_pages(floor)
    pages: list[WindowPage[Any]] = [now_page(floor), *chats, run_pages.RUNS, run, run_pages.REPLAY]
    pages += [plan_pages.PLANS, plan_pages.PLAN]
    actions = [PageAction("/runs/{run}", run, steer_run), PageAction("/runs/{run}/answer", run, answer_run)]
    actions += [*asking, *plan_pages.ACTIONS]
    for module in (specialist_pages, command_page, workspace_pages, world_page, steward_pages):
        pages += module.PAGES
        actions += module.ACTIONS
    return Window(desk, pages, actions, broadcast, floor)
