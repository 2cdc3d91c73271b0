"""The page of the world: its land, the open round, figures over time, players, proposals; and the administrators' orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from markupsafe import Markup

from council.desk.desk import Desk
from council.errors import UsageError
from council.ids import SystemClock
from council.web.forms import Form, fields_of
from council.web.sign_in import Person
from council.web.world_pictures import course_of, world_map
from council.world.book import Book, deadline_utc
from council.world.commands import COMMANDS

_ROUNDS = 200  # in the pictures
_FIGURES = {
    "population": "Members",
    "mean_vitality": "Mean vitality",
    "mean_cargo": "Mean cargo",
    "owned_cells": "Cells with an owner",
    "trade_volume": "Traded in a round",
    "conflict_volume": "Taken by force in a round",
    "gini": "Inequality (Gini, 0 to 1)",
    "births": "Births",
}
_ORDERS = {model.name: model for model in COMMANDS}
_NOT_TYPED = ("$schema", "type", "id", "user")


@dataclass(frozen=True)
class WorldPage:
    """The world, if there is one. `phase` is accepting, executing or paused; `left_s` counts while it is accepting.

    `rounds`: the newest settled rounds, oldest first, each with its figures. `players` have their member's state;
    `proposals` are the newest, with their votes. `pictures` are SVG, and stay out of the JSON. `commands`: an administrator
    may give orders.
    """

    world_id: str
    land: tuple[int, int]
    members: int
    round_id: int
    phase: str
    deadline_utc: str | None
    left_s: float
    pace_s: int
    rounds: Sequence[Mapping[str, Any]]
    players: Sequence[Mapping[str, Any]]
    proposals: Sequence[Mapping[str, Any]]
    commands: bool
    pictures: Mapping[str, Markup]


def world_page(desk: Desk, who: Person, filters: Mapping[str, str]) -> WorldPage:
    book = Book(desk.store, SystemClock())
    now = book.open_round()
    if now is None:
        return WorldPage("", (0, 0), 0, 0, "", None, 0.0, 0, (), (), (), who.is_administrator, {})
    world, _ = book.world()
    names = {player.member_id: player.name for player in book.players()}
    rounds = [
        {"round_id": told["round_id"], "rollback_to": told["rollback_to"], **told["round_metrics"]}
        | {"accepted": len(told["accepted_action_ids"]), "rejected": len(told["rejected"])}
        for told in book.receipts(max(0, now.round_id - _ROUNDS), _ROUNDS)
    ]
    players = [
        {**asdict(player), "alive": player.member_id in world.members, **_state(world.members.get(player.member_id))}
        for player in book.players()
    ]
    pictures = {"land": world_map(world, names)}
    for name, label in _FIGURES.items():
        told = [one for one in rounds if name in one]
        if told:
            numbers = [one["round_id"] for one in told]
            pictures[name] = course_of(name.replace("_", "-"), label, numbers, [float(one[name]) for one in told])
    return WorldPage(
        world_id=world.world_id,
        land=world.shape,
        members=len(world.members),
        round_id=now.round_id,
        phase=now.phase,
        deadline_utc=deadline_utc(now),
        left_s=round(book.left_s(now), 1),
        pace_s=now.pace_s,
        rounds=rounds,
        players=players,
        proposals=book.mechanisms("", 50),
        commands=who.is_administrator,
        pictures=pictures,
    )


def order_form(type_: str, given: Mapping[str, str]) -> Form:
    """The form of one of the administrators' commands on the world. Raises UsageError for another one."""
    if type_ not in _ORDERS:
        raise UsageError(f"{type_[:60]!r} is no order on the world.", fix="go back to the world")
    model = _ORDERS[type_].model
    fields = fields_of(model, given, leave_out=_NOT_TYPED)
    title = (model.__doc__ or "").partition(". ")[0].partition(";")[0].rstrip(".")
    is_danger = type_ in ("world_ban", "world_rollback")
    return Form(title, f"/world/{type_}", type_.replace("_", " ").capitalize(), fields, "/world", is_danger=is_danger)


def _state(member: Any) -> Mapping[str, Any]:
    if member is None:
        return {}
    return {
        "vitality": member.vitality / 1000,
        "cargo": member.cargo / 1000,
        "age": member.age,
        "cells": len(member.cells),
    }
