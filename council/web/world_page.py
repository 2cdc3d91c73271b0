"""The page of the world: its land, the open round, figures over time, players, proposals; and the administrators' orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import BaseModel
from starlette.datastructures import FormData

from council.desk.desk import Desk
from council.desk.window import hand_in
from council.errors import UsageError
from council.events import WorldChange, WorldRound
from council.ids import SystemClock
from council.web.forms import Form, fields_of, texts_of, values_of
from council.web.pagination import Slice, slice_from, slice_of
from council.web.sign_in import Person
from council.web.window_pages import Filters, PageAction, WindowPage
from council.web.window_pictures import MapMember
from council.world.commands import COMMANDS
from council.world.world_rules import UNIT
from council.world.world_store import Book, deadline_utc

_ROUNDS = 200  # in the pictures
_NOT_TYPED = ("$schema", "type", "id", "user")
_TYPES = {type_.name: type_ for type_ in COMMANDS}


@dataclass(frozen=True)
class WorldPage:
    """The world; `world_id` is empty while there is none. `phase` is accepting, executing or paused; `left_s` counts while it is
    accepting. `rounds`: the newest settled rounds, oldest first, each with its figures; `table` is a part of them, the newest
    first. `messages` of members are for administrators, who may ban a player."""

    world_id: str
    land: tuple[int, int]
    round_id: int
    phase: str
    deadline_utc: str | None
    left_s: float
    pace_s: int
    members: Sequence[MapMember]
    rounds: Sequence[Mapping[str, Any]]
    table: Slice[Mapping[str, Any]]
    players: Slice[Mapping[str, Any]]
    proposals: Slice[Mapping[str, Any]]
    messages: Slice[Mapping[str, Any]]


def world_page(desk: Desk, who: Person, filters: Filters) -> WorldPage:
    book = Book(desk.store, SystemClock())
    now = book.open_round()
    if now is None:
        return WorldPage("", (0, 0), 0, "", None, 0.0, 0, (), (), *(slice_of([], {}, "") for _ in range(4)))
    world, players = book.world()[0], book.players()
    names = {player.member_id: player.name for player in players}
    settled = now.round_id - 1

    def rounds(first: int, count: int) -> list[Mapping[str, Any]]:
        """Of the newest ones but the first so many, the newest first."""
        newest = settled - first
        return [
            {"round_id": told["round_id"], "rollback_to": told["rollback_to"], **told["round_metrics"]}
            | {"accepted": len(told["accepted_action_ids"]), "rejected": len(told["rejected_action_ids"])}
            for told in reversed(book.receipts(max(0, newest - count), first + count))
            if "round_metrics" in told and told["round_id"] <= newest
        ]

    return WorldPage(
        world_id=world.world_id,
        land=world.shape,
        round_id=now.round_id,
        phase=now.phase,
        deadline_utc=deadline_utc(now),
        left_s=round(book.left_s(now), 1),
        pace_s=now.pace_s,
        members=[
            MapMember(one.id, one.vitality / UNIT, one.cargo / UNIT, one.age, one.cells, names.get(one.id, ""))
            for one in world.members.values()
        ],
        rounds=rounds(0, _ROUNDS)[::-1],
        table=slice_from(settled, rounds, filters, "rounds"),
        players=slice_of(
            [{**asdict(player), "alive": player.member_id in world.members} for player in players], filters, "players"
        ),
        proposals=slice_from(
            book.mechanism_count(), lambda skip, count: book.mechanisms("", count, skip), filters, "proposals", 20
        ),
        messages=slice_from(
            book.letter_count() if who.is_administrator else 0, book.newest_letters, filters, "messages", 20
        ),
    )


def order_form(desk: Desk, who: Person, filters: Filters) -> Form:
    """The form of one of the administrators' commands on the world. Raises UsageError for another one."""
    order, model = filters["order"], _order_model(filters)
    title = (model.__doc__ or "").strip()
    is_danger = order in ("world_ban", "world_rollback")
    fields = fields_of(model, filters, leave_out=_NOT_TYPED)
    button = order.removeprefix("world_").replace("_", " ").capitalize()
    return Form(title, f"/world/{order}", button, fields, "/world", is_danger=is_danger)


def give_order(desk: Desk, who: Person, filters: Filters, sent: FormData) -> str:
    """Drops the command in the person's name, and waits for its receipt."""
    values = values_of(_order_model(filters), texts_of(sent))
    hand_in(desk, {"type": filters["order"], **values}, who.user)
    return "/world"


def _order_model(filters: Filters) -> type[BaseModel]:
    order = filters["order"]
    if order not in _TYPES:
        raise UsageError(f"{order[:60]!r} is no order on the world.", fix="go back to the world")
    return _TYPES[order].model


_NEWS = (WorldRound, WorldChange)
_WORLD = WindowPage("/world", "World", "world.html", world_page, hears=lambda event, filters: isinstance(event, _NEWS))
_ORDER = WindowPage("/world/{order}", "", "form.html", order_form, is_for="administrators")
PAGES: tuple[WindowPage[Any], ...] = (_WORLD, _ORDER)
ACTIONS = (PageAction("/world/{order}", _ORDER, give_order),)
