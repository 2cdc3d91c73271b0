from __future__ import annotations

import json
from typing import Any

import pytest

from council.agents.memory import KEPT_TASKS
from council.app import commands_of
from council.commands.parsing import parse_command
from council.deliberation.commands import MemoryCommand
from council.desk.all_systems import house
from council.errors import CommandInvalid

COMMANDS = commands_of(house())


RESET = {"type": "memory", "role": "AUDITOR", "action": "reset"}
ANSWER = {"run_id": "r-1", "answer": "Use SQLite."}
REPLACE = {**RESET, "action": "replace", "answers": [ANSWER]}


def parsed(value: dict[str, Any]) -> object:
    return parse_command(COMMANDS, "memory.json", json.dumps(value).encode())


@pytest.mark.parametrize("value", [RESET, REPLACE, {**REPLACE, "answers": []}, {**RESET, "session": "work", "id": "x"}])
def test_reset_and_replace_are_commands(value: dict[str, Any]) -> None:
    assert isinstance(parsed(value), MemoryCommand)


@pytest.mark.parametrize(
    "value",
    [
        {**RESET, "answers": []},
        {**RESET, "action": "replace"},
        {**RESET, "action": "forget"},
        {**RESET, "role": "auditor"},
        {**RESET, "role": "../AUDITOR"},
        {**RESET, "session": "archive"},
        {**RESET, "session": "ask-1"},
        {**REPLACE, "answers": [ANSWER, ANSWER]},
        {**REPLACE, "answers": [{**ANSWER, "run_id": "../x"}]},
        {**REPLACE, "answers": [{**ANSWER, "answer": 5}]},
        {**REPLACE, "answers": [{**ANSWER, "run_id": f"r-{number}"} for number in range(2 * KEPT_TASKS + 1)]},
        {**REPLACE, "base_sha256": "short"},
    ],
)
def test_what_does_not_fit_together_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(CommandInvalid):
        parsed(value)
