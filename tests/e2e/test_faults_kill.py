"""`kill -9` at random instants, spread over the states of a run: the outcome is the uninterrupted one.

Four lanes work side by side in one home while the real process is killed ten times, once in each state, by another
process (tests/faults.py); then it is left alone. Every decision, memory and receipt is then what a home without a kill
has, no more calls were made twice than were in flight when a kill came, and no write is missing that the database said was
committed. 80 kills in two tests; then some at instants that are drawn from all, on both databases.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.kills import (
    BUSY,
    MAX_TRIES,
    SCRIPT,
    drop_more,
    kill_at_random,
    live,
    made_home,
    made_reference,
    outlive,
)

SEED = 20_261_120
HOMES_PER_TEST = 4


@dataclass(frozen=True)
class State:
    """Where a kill is to come: up to `within_us` after the n-th line of the trace that holds `text`, n up to `most`."""

    text: str
    most: int
    within_us: int
    busy: bool = False  # with a provider that has no time for STRATEGIST, in a daemon that waits for it


STATES = {
    "queued": State("event run_queued", 2, 4_000),
    "turn in flight": State("event turn_started", 8, 30_000),
    "between steps": State("event turn_ended", 8, 4_000),
    "tools": State("begin round/1/COORDINATOR/request/", 6, 8_000),
    "producing the artifact": State("PRODUCING_ARTIFACT", 2, 12_000),
    "commit": State("sql UPDATE runs SET receipt", 2, 10_000),
    "taking": State(".taken", 2, 2_000),
    "waiting": State("event run_waiting", 1, 500_000, busy=True),
    "recovery": State("event daemon_started", 1, 30_000),
    "anywhere": State("", 1, 500_000),
}


# ── the tests ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_reference(tmp_path_factory.mktemp("uninterrupted") / "home")


def kill_once_in(state: State, home: Path, dropped: dict[str, int], rng: random.Random) -> str:
    """Lives until a kill hits; the instant at which it did."""
    (home / "script.yaml").write_text(BUSY if state.busy else SCRIPT)
    for tries in range(MAX_TRIES):
        drop_more(home, dropped)
        count = rng.randint(1, max(1, state.most >> tries))
        instant = f"kill-in:{count}:{rng.randrange(state.within_us) >> tries}:{state.text}"
        if live(home, instant, once=not state.busy) == -9:
            (home / "script.yaml").write_text(SCRIPT)
            return instant
    raise AssertionError(f"no life came so far: {state}")


@pytest.mark.parametrize("half", [1, 2])
def test_killed_at_40_random_instants_in_every_state_the_outcome_is_the_uninterrupted_one(
    tmp_path: Path, reference: Path, half: int
) -> None:
    rng = random.Random(SEED + half)
    for number in range(HOMES_PER_TEST):
        home = made_home(tmp_path / str(number))
        states = [STATES[name] for name in rng.sample(sorted(STATES), len(STATES))]
        assert outlive(home, reference, [partial(kill_once_in, state, home, rng=rng) for state in states]) > 50


@pytest.mark.parametrize("seed", range(5))
def test_killed_five_times_anywhere_no_acknowledged_write_is_missing(
    tmp_path: Path, reference: Path, seed: int
) -> None:
    home, rng = made_home(tmp_path / "home"), random.Random(seed)
    assert outlive(home, reference, [partial(kill_at_random, home, rng=rng)] * 5) > 50


@pytest.mark.parametrize("seed", range(2))
def test_killed_five_times_over_postgresql_the_outcome_is_that_of_sqlite_and_no_acknowledged_write_is_missing(
    tmp_path: Path, reference: Path, postgres_url: str, seed: int
) -> None:
    home, rng = made_home(tmp_path / "home", f"database_url = {json.dumps(postgres_url)}\n"), random.Random(seed)
    assert outlive(home, reference, [partial(kill_at_random, home, rng=rng)] * 5) > 50
    assert not (home / ".council" / "council.db").exists()
