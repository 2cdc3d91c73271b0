"""The models that speak for the members of a run that goes on under another daemon, and the letters that hide them."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any, cast

import pytest

from council.deliberation.members import Chains, StartView
from council.deliberation.names import Names
from council.errors import ConfigError, Drift
from council.turns.metered_models import Models
from tests.rehearsal import TRIAD, speaker

COUNCILS = speaker("COORDINATOR", models=("a:old",), model="a:old")
OWN = speaker("AUDITOR", models=("b:own", "b:other"), model="b:own")
START = StartView((COUNCILS, OWN), "a:old")


class Daemon:
    """The models of a daemon whose council has `council`; those in `gone` cannot be had."""

    def __init__(self, council: str, *gone: str) -> None:
        self._council = council
        self._gone = gone

    def chain(self, *_: Any) -> tuple[str, ...]:
        return (self._council,)

    def names(self, chain: tuple[str, ...]) -> tuple[str, ...]:
        if set(chain) & set(self._gone):
            raise ConfigError(f"{chain[0]} cannot be had.", fix="set its key")
        return chain


def chains(council: str, *gone: str) -> Chains:
    return Chains(cast(Models, Daemon(council, *gone)), START, None)


def test_members_without_a_model_of_their_own_have_the_councils_as_it_is_now() -> None:
    now = chains("a:new")
    assert (now.of(COUNCILS), now.of(OWN)) == (("a:new",), ("b:own", "b:other"))


def test_another_model_of_the_council_is_drift_unless_it_is_accepted() -> None:
    chains("a:old").require("r", accepts_drift=False)
    chains("a:new").require("r", accepts_drift=True)
    with pytest.raises(Drift, match="began with a:old; a:new would answer now"):
        chains("a:new").require("r", accepts_drift=False)


def test_a_language_model_does_not_go_on_once_a_rehearsal_has_spoken() -> None:
    rehearsed = Chains(cast(Models, Daemon("a:new")), StartView((COUNCILS,), "scripted:s"), None)
    rehearsed.require("r", accepts_drift=True)
    with pytest.raises(Drift, match="scripted:s rehearsed the beginning of this run") as drift:
        rehearsed.require("r", accepts_drift=True, has_spoken=True)
    assert drift.value.fix == "`council retry r --model a:new` does all of it again"


@pytest.mark.parametrize("accepts", [True, False])
def test_a_members_own_model_that_cannot_be_had_is_drift_in_any_case(accepts: bool) -> None:
    with pytest.raises(Drift, match="AUDITOR began with b:own: b:own cannot be had"):
        chains("a:old", "b:own").require("r", accepts_drift=accepts)


def test_letters_are_drawn_by_lot_so_that_none_gives_a_member_away() -> None:
    drawn = {tuple(Names.hidden(TRIAD, random.Random(seed)).letters.values()) for seed in range(200)}
    assert drawn == set(permutations("ABC"))
