"""One value says all that other rooms have to know of a type of command."""

from __future__ import annotations

from typing import Any

import pytest

from council.app import commands_of
from council.commands.models import CommandBase
from council.commands.parsing import is_kept, parse_command
from council.commands.types import Admission, CommandTypes
from council.desk.all_systems import house
from council.redaction import Redactor
from tests.sample_system import SAMPLE, NoteCommand, RingCommand

COMMANDS = commands_of(house())


KEY = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
TYPES = CommandTypes([*COMMANDS, *SAMPLE.commands])


def test_a_type_is_named_by_its_model_and_knows_its_kind() -> None:
    assert [(type_.name, type_.is_control) for type_ in SAMPLE.commands] == [("note", False), ("ring", True)]
    assert {b"cancel", b"resume", b"retry", b"ring"} <= set(TYPES.control_words)


def test_of_a_type_that_this_house_does_not_know_the_keys_of_all_are_names_and_its_end_is_a_runs() -> None:
    assert COMMANDS.get("note") is None
    assert COMMANDS.keys_of_names("note") == {"type", "id", "session", "user"}
    assert COMMANDS.audited_as("note") == "run_ended"


@pytest.mark.parametrize(
    ("data", "model"),
    [
        (b'{"type": "note", "about": "a", "words": "b"}', NoteCommand),
        (b'{"type": "ring", "times": 2, "user": "ada"}', RingCommand),
    ],
)
def test_a_type_of_another_system_is_parsed_as_the_house_s_own_are(data: bytes, model: type[CommandBase]) -> None:
    assert type(parse_command(TYPES, "c.json", data)) is model


def test_every_string_but_names_is_redacted_before_it_is_recorded() -> None:
    body: dict[str, Any] = {"about": "a", "words": f"is {KEY}", "remarks": [{"said": KEY, "by": [KEY]}], "id": KEY[4:]}
    command = NoteCommand.model_validate({"type": "note", "$schema": KEY, **body})
    recorded = TYPES["note"].recorded(command, Admission("a note"), Redactor())
    assert KEY not in str(recorded)
    assert (recorded["about"], recorded["id"], recorded["session"]) == ("a", KEY[4:], "main")
    assert NoteCommand.model_validate(recorded).remarks[0].by == ("[secret]",)


def test_record_0_keeps_what_admission_leaves_of_a_command() -> None:
    command = NoteCommand(type="note", about="a", words="b")
    left = Admission("a note", recorded={"type": "note", "words": KEY})
    assert TYPES["note"].recorded(command, left, Redactor()) == {"type": "note", "words": "[secret]"}


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (b'{"type": "forget", "text": 3}', False),
        (b'{"type": "Forgett", "text": "much"}', False),
        (b'{"type": "forget", "text": "mu', False),
        (b'{"type": "memory"}', True),
        (b'{"type": "forget", "task_description": "mu', True),
        (b"[]", True),
    ],
)
def test_a_file_of_a_type_that_is_not_kept_is_known_even_when_it_is_damaged(data: bytes, kept: bool) -> None:
    assert is_kept(TYPES, "c.json", data) is kept
    assert is_kept(CommandTypes(SAMPLE.commands), "c.json", data)
