"""Forgetting reaches every text of a command but its names, whatever its keys are called."""

from __future__ import annotations

from typing import Any

import pytest

from council.engine.journal_rewriting import changed, changed_command, changed_words


def change(text: str) -> str:
    return text.replace("Grete", "[gone]")


@pytest.mark.parametrize("key", ["outcome", "action", "role", "model", "asked", "verdicts", "sha256", "output", "text"])
def test_a_string_of_a_command_is_changed_whatever_its_key_is_called(key: str) -> None:
    command: dict[str, Any] = {"type": "note", key: "Grete", "remarks": [{key: "Grete"}]}
    after = changed_command(command, frozenset({"type"}), change)
    assert after == {"type": "note", key: "[gone]", "remarks": [{key: "[gone]"}]}


def test_under_the_names_of_its_type_identifiers_stay_and_paths_move() -> None:
    command = {"role": "Grete", "config": {"model": "Grete"}, "output_artifact_path": "artifacts/Grete/a.md"}
    after = changed_command(command, frozenset(command), change)
    assert after == {**command, "output_artifact_path": "artifacts/[gone]/a.md"}


def test_what_a_step_recorded_keeps_its_identifiers_and_no_prose() -> None:
    recorded = {"role": "Grete", "outcome": "Grete called", "text": "Grete"}
    assert changed(recorded, change) == {"role": "Grete", "outcome": "[gone] called", "text": "[gone]"}


def test_a_column_of_words_keeps_nothing() -> None:
    assert changed_words({"outcome": ["Grete", 3, None]}, change) == {"outcome": ["[gone]", 3, None]}
