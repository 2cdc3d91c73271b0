"""Twin worlds over HTTP: the same seed, with and without one submission, differ in exactly what the rule names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.twins import differences
from tests.world_client import SLOW, Caller, serving, world_home

Submit = Callable[[Caller], httpx2.Response]


def round_of(folder: Path, submit: Submit | None) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A world's snapshot after its first round, the receipt, and what the player was answered."""
    home = world_home(folder / "home", members=3, land="9x8", pace=SLOW, seed="26")  # both members are full after it
    with serving(home, clocked=True) as served:
        player = served.register()
        assert player.member_id == 1
        answer = submit(player).json() if submit else {}
        receipt = served.end_round()
        return served.get("/v1/world/snapshot"), receipt, answer


@pytest.fixture(name="without", scope="module")
def _without(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    snapshot, receipt, _ = round_of(tmp_path_factory.mktemp("without"), None)
    assert receipt["accepted_action_ids"] == ["1-1-join"]
    return snapshot


@pytest.mark.parametrize(
    ("line", "differ"),
    [
        (
            "engine.attack(2)",
            {"/members/1/cargo", "/members/2/cargo", "/members/2/vitality", "/relationships"},
        ),
        ("engine.offer(2, 5)", {"/members/1/cargo", "/members/2/cargo", "/relationships"}),
        (
            "engine.offer_land(2)",
            {
                "/members/1/cells", "/members/1/land", "/members/1/cargo",
                "/members/2/cells", "/members/2/land", "/members/2/cargo", "/relationships",
            },
        ),
        ("engine.expand()", {"/members/1/cells", "/members/1/land", "/members/1/cargo"}),
        ("engine.send_message(2, 'Truce?')", set()),
    ],
)  # fmt: skip
def test_one_action_changes_what_its_rule_names_and_nothing_else(
    tmp_path: Path, without: dict[str, Any], line: str, differ: set[str]
) -> None:
    snapshot, receipt, answer = round_of(tmp_path, lambda player: player.act(line))
    assert f"{answer['submission_id']}.1" in receipt["accepted_action_ids"]
    found = dict(differences("", without, snapshot))
    found.pop("/state_hash", None)
    assert set(found) == differ


def test_a_proposal_changes_the_open_votes_alone(tmp_path: Path, without: dict[str, Any]) -> None:
    snapshot, receipt, answer = round_of(tmp_path, lambda player: player.propose("engine.rules['expands'] = 2"))
    assert answer["mechanism_id"] in receipt["accepted_action_ids"]
    assert set(dict(differences("", without, snapshot))) == {"/mechanisms", "/state_hash"}


def test_what_is_rejected_changes_nothing_and_is_named(tmp_path: Path, without: dict[str, Any]) -> None:
    snapshot, receipt, answer = round_of(tmp_path, lambda player: player.act("engine.attack(member_id)"))
    assert snapshot == without
    assert receipt["rejected"] == {f"{answer['submission_id']}.1": "the target is the member itself"}
