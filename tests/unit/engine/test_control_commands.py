"""What is said of an ended run when it is to go on."""

from __future__ import annotations

from typing import Any

import pytest

from council.engine.control_commands import ResumeCommand, accepts_drift, remember


@pytest.mark.parametrize(
    ("keys", "accepts"), [({}, False), ({"accept_drift": True}, True), ({"model": "offline"}, True)]
)
def test_who_names_another_model_accepts_that_it_differs(keys: dict[str, Any], accepts: bool) -> None:
    assert accepts_drift(ResumeCommand(type="resume", run="r1", **keys)) is accepts


def test_only_the_newest_thousand_drops_are_remembered() -> None:
    known: dict[str, str] = {}
    for number in range(1_001):
        remember(known, f"drop-{number}", "r1")
    assert (len(known), "drop-0" in known, "drop-1000" in known) == (1_000, False, True)
