"""The pages of the window, in the order of its navigation."""

from __future__ import annotations

from typing import Any

from council.desk.desk import Desk
from council.web import command_page, house_pages, plan_pages, workspace_pages, world_page
from council.web.live import Broadcast, Floor
from council.web.now_page import now_page
from council.web.window_pages import Window, WindowPage


def window_of(desk: Desk, broadcast: Broadcast, floor: Floor) -> Window:
    """All pages and what their forms do."""
    pages: tuple[WindowPage[Any], ...] = (
        now_page(floor),
        *plan_pages.PAGES,
        *command_page.PAGES,
        *workspace_pages.PAGES,
        *world_page.PAGES,
        *house_pages.PAGES,
    )
    actions = (
        *plan_pages.ACTIONS,
        *command_page.ACTIONS,
        *workspace_pages.ACTIONS,
        *world_page.ACTIONS,
        *house_pages.ACTIONS,
    )
    return Window(desk, pages, actions, broadcast, floor)
