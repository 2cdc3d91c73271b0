"""The judgement of a command file: the form without a home, all of it with one, less of it before a drop."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from council.commands.file_formats import problems_of
from council.commands.parsing import parse_command
from council.desk.desk import Desk
from council.desk.validation import FileVerdict, judge, max_command_bytes
from council.desk.workspace_desk import change
from council.engine.outputs import OutputEntry, note_written
from council.errors import CommandInvalid, UsageError
from council.ids import sha256_hex
from council.storage.store import Store
from tests.documents import damaged_pdf
from tests.harness import command
from tests.rows import begun

NAME = Path("a.json")


def data(**keys: object) -> bytes:
    return json.dumps(command(**keys)).encode()


def test_an_input_that_is_missing_now_is_a_warning_with_its_place(desk: Desk) -> None:
    judgement = judge(desk.commands, desk, NAME, data(input_artifacts=["gone.md"]))
    assert judgement.problems == ()
    [warning] = judgement.warnings
    assert (warning.field, warning.line, judgement.code) == ("input_artifacts.0", 1, "input_unreadable")
    assert warning.message.endswith(". Without any input, the run would fail")


def test_a_model_in_whose_place_the_homes_speaks_is_a_warning(desk: Desk) -> None:
    asking = data(config={"model": "gemini:flash"})
    [warning] = judge(desk.commands, desk.asking("offline"), NAME, asking).warnings
    assert warning.message == "The command asks for gemini:flash, but offline speaks for every agent in this home"
    assert (warning.field, warning.line) == ("config.model", 1)
    for model, asked in (("gemini:pro", "gemini:flash"), ("offline", "offline")):
        said = judge(desk.commands, desk.asking(model), NAME, data(config={"model": asked})).warnings
        assert not any("speaks for every agent" in one.message for one in said)


def test_pages_that_are_not_read_are_a_warning(desk: Desk) -> None:
    (desk.home.root / "a.pdf").write_bytes(damaged_pdf(["one"], ["lost"], []))
    [warning] = judge(desk.commands, desk, NAME, data(input_artifacts=["a.pdf"])).warnings
    assert warning.message == "`a.pdf`: page 2 could not be read in full; no text on page 3"
    assert (warning.field, "(OCR)" in warning.fix) == ("input_artifacts.0", True)


def test_the_part_that_is_named_for_an_input_that_is_cut_off_fits(desk: Desk) -> None:
    (desk.home.root / "long.md").write_text("a line of text\n" * 10_000)
    [warning] = judge(desk.commands, desk, NAME, data(input_artifacts=["long.md"])).warnings
    assert warning.message == "lines 1 to 4369 of `long.md` fit; the rest, up to 10000, is cut off"
    assert warning.fix.startswith("name a part that fits, such as `long.md:4370-8738`, as one more input; or ")
    parts = ["long.md:1-4369", "long.md:4370-8738"]
    assert judge(desk.commands, desk, NAME, data(input_artifacts=parts)).warnings == ()


def test_no_part_is_named_where_the_next_line_is_too_long(desk: Desk) -> None:
    (desk.home.root / "long.md").write_text("a line of text\n" + "word " * 30_000)
    [warning] = judge(desk.commands, desk, NAME, data(input_artifacts=["long.md"])).warnings
    assert warning.fix == "raise max_context_bytes_per_request"


@pytest.mark.parametrize(
    ("persona", "why", "code"),
    [
        ("context_requirements: [task]\n", "personas/auditor.md: `context_requirements` is empty.", "persona_invalid"),
        ("context_outputs: {produces: [report]}\n", "AUDITOR has an output schema", "persona_invalid"),
        ("context: {required: [task, budget]}\n", "AUDITOR requires the context field `budget`", "missing_context"),
        ("context: {required: [], optional: []}\n", "AUDITOR may not have the context field `task`", "missing_context"),
    ],
)
def test_a_persona_with_which_the_run_fails_is_a_warning_with_its_code(
    desk: Desk, persona: str, why: str, code: str
) -> None:
    give_context(desk, "auditor", persona)
    judgement = judge(desk.commands, desk, NAME, data())
    assert judgement.problems == ()
    [warning] = judgement.warnings
    assert warning.message.startswith(f"as things are, the run would fail: {why}")
    assert judgement.code == code


def give_context(desk: Desk, role: str, context: str) -> None:
    """Another `context` for a built-in persona."""
    file = desk.home.personas / f"{role}.md"
    file.write_text(re.sub(r"(?m)^context:\n(?: .*\n)+", context, file.read_text()))


@pytest.mark.parametrize(
    ("role", "protocol", "code"),
    [
        ("coordinator", "triad", "missing_context"),
        ("auditor", "triad", ""),
        ("auditor", "review", "missing_context"),
    ],
)
def test_who_judges_what_the_others_said_must_be_given_it(desk: Desk, role: str, protocol: str, code: str) -> None:
    give_context(desk, role, "context: {required: [task], forbidden: [transcript]}\n")
    judgement = judge(desk.commands, desk, NAME, data(config={"protocol": protocol, "max_rounds": 2}))
    assert (judgement.problems, judgement.code) == ((), code)
    assert ["judges what the others said" in warning.message for warning in judgement.warnings] == [True] * bool(code)


@pytest.mark.parametrize(("name", "fix"), [("auditr", "did you mean AUDITOR?"), ("ODDD", "see `council agents list`")])
def test_an_agent_that_is_not_there_brings_the_name_that_was_probably_meant(desk: Desk, name: str, fix: str) -> None:
    [problem] = judge(desk.commands, desk, NAME, data(config={"agents": ["COORDINATOR", name]})).problems
    assert (problem.field, problem.fix) == ("config.agents", fix)


def test_a_page_at_the_output_is_a_warning_only_when_it_was_edited_since_a_run_left_it(
    desk: Desk, store: Store
) -> None:
    page = desk.home.artifacts / "out.md"
    page.write_text("a decision")
    left = OutputEntry("artifacts/out.md", "r1", (sha256_hex("a decision"),))
    store.write_now(lambda tx: note_written(tx, left))
    assert judge(desk.commands, desk, NAME, data()).warnings == ()
    page.write_text("a decision, and mine")
    assert [warning.field for warning in judge(desk.commands, desk, NAME, data()).warnings] == ["output_artifact_path"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id", "for a-key-of-some-length"),
        ("session", "a-key-of-some-length"),
        ("output_artifact_path", "artifacts/a-key-of-some-length.md"),
        ("input_artifacts", ["docs/needs.md", "docs/a-key-of-some-length.md"]),
        ("config", {"model": "openai:a-key-of-some-length"}),
    ],
)
def test_a_secret_in_a_name_is_a_problem_as_it_is_for_the_daemon(desk: Desk, key: str, value: Any) -> None:
    keyed = Desk(desk.home, {"GEMINI_API_KEY": "a-key-of-some-length"})
    [problem] = judge(keyed.commands, keyed, NAME, data(**{key: value})).problems
    assert (problem.field, problem.message) == (key, "has a secret in it.")
    assert judge(desk.commands, desk, NAME, data(**{key: value})).problems == ()


def test_a_key_that_is_not_set_here_fails_the_run_only_where_no_daemon_may_have_it(desk: Desk) -> None:
    body = data(config={"model": "openai:gpt-5"})
    alone = judge(desk.commands, desk, NAME, body)
    with desk.held():
        served = judge(desk.commands, desk, NAME, body)
    assert [warning.message for warning in alone.warnings] == [
        "as things are, the run would fail: the model openai:gpt-5 needs a key, and OPENAI_API_KEY is not set."
    ]
    assert [warning.message for warning in served.warnings] == [
        "OPENAI_API_KEY is not set here, but the daemon may have it"
    ]
    assert (alone.code, served.code) == ("config_invalid", "")


def test_a_control_command_is_judged_by_its_run_unless_its_form_alone_is_asked_for(desk: Desk, store: Store) -> None:
    begun(store, "r1")
    cancel = json.dumps({"type": "cancel", "run": "r1"}).encode()
    retry = json.dumps({"type": "retry", "run": "r1"}).encode()
    assert judge(desk.commands, desk, NAME, cancel) == FileVerdict((), (), "cancel")
    [problem] = judge(desk.commands, desk, NAME, retry).problems
    assert "has not ended" in problem.message
    assert judge(desk.commands, desk, NAME, retry, form_of_controls=True).problems == ()


def test_the_home_says_how_large_a_command_may_be(desk: Desk) -> None:
    (desk.home.root / "council.toml").write_text("max_command_bytes = 100\n")
    assert (max_command_bytes(desk), max_command_bytes(None)) == (100, 262_144)
    [problem] = judge(desk.commands, desk, NAME, data(task="x" * 200)).problems
    assert problem.message == "the file is larger than 100 bytes"


def test_an_error_without_problems_of_its_own_is_one_problem() -> None:
    [problem] = problems_of(CommandInvalid("is wrong", fix="mend it", line=3, column=4))
    assert (problem.message, problem.fix, problem.line, problem.column) == ("is wrong", "mend it", 3, 4)


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("createTask", {"projectId": "p", "title": "a\nb"}, "`title` must be one line of text, without tabs"),
        ("createTask", {"projectId": "p"}, "`title` is missing."),
        ("createTask", {"projectId": "Ü", "title": "a"}, "`projectId` must be an id: 1 to 64 small letters"),
        ("updateTask", {"taskId": "t", "colour": "red"}, "`colour` is not a known key."),
        ("updateTask", {"taskId": "t", "dueDate": "soon"}, "`dueDate`: Write a date as 2026-12-31"),
        (
            "updateTaskStatus",
            {"taskId": "t", "status": "doing"},
            '`status` is the text "doing"; known: todo, in_progress',
        ),
        (
            "updateEvent",
            {"eventId": "e", "reminders": ["soon"]},
            '`reminders.0` must be a whole number, not the text "soon"',
        ),
        ("updateNote", {"noteId": "n", "content": "a\0b"}, "`content` must be text without NUL characters"),
    ],
)
def test_a_wrong_argument_of_the_workspace_is_told_in_words(
    desk: Desk, name: str, values: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as wrong:
        change(desk, name, "steward", values)
    assert wrong.value.message.startswith(said)
    assert wrong.value.fix


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ({"type": "ask", "request": "x", "conversation": "Ünïcode"}, "`conversation` must be 1 to 60 small letters"),
        (
            {"type": "create_specialist", "request": "x", "changes": "Bad Name"},
            "`changes` must be 2 to 64 small letters",
        ),
        ({"type": "create_specialist", "request": " "}, "`request` is blank"),
        ({"type": "answer", "run": "a\0b", "answer": "x"}, "`run` must be one line of text"),
        ({"type": "forget", "run": "a\0b"}, "`run` must be one line of text"),
        ({"type": "confirm", "plan": "a\0b"}, "`plan` must be one line of text"),
    ],
)
def test_a_name_that_does_not_fit_is_told_in_words(desk: Desk, command: dict[str, Any], said: str) -> None:
    with pytest.raises(CommandInvalid, match=said):
        parse_command(desk.commands, "command.json", json.dumps(command).encode())
