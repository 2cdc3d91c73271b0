"""Command files in their three spellings: what is accepted, and what an error says."""

from __future__ import annotations

import json
from typing import cast

import pytest
import yaml

from council.app import commands_of
from council.commands.file_formats import MAX_PROBLEMS, NotACommand, Problem, Unparsable
from council.commands.models import canonical_hash
from council.commands.parsing import is_kept, parse_command
from council.deliberation.commands import DeliberateCommand
from council.desk.all_systems import house
from council.engine.control_commands import CancelCommand
from council.errors import CommandInvalid

COMMANDS = commands_of(house())


SEED = {
    "task_description": "A high-level strategic goal.",
    "input_artifacts": ["docs/a.md"],
    "output_artifact_path": "artifacts/a.md",
    "config": {"max_rounds": 3},
}
YAML = """\
task_description: A high-level strategic goal.
input_artifacts: [docs/a.md]
output_artifact_path: artifacts/a.md
config:
  max_rounds: 3
"""
MARKDOWN = """\
---
input_artifacts:
  - docs/a.md
output_artifact_path: artifacts/a.md
config: {max_rounds: 3}
---

A high-level strategic goal.
"""


def parsed(text: str | bytes, name: str = "command.json") -> DeliberateCommand:
    found = parse_command(COMMANDS, name, text.encode() if isinstance(text, str) else text)
    assert isinstance(found, DeliberateCommand)
    return found


def refused(text: str | bytes, name: str = "command.json") -> CommandInvalid:
    with pytest.raises(CommandInvalid) as caught:
        parse_command(COMMANDS, name, text.encode() if isinstance(text, str) else text)
    assert caught.value.fix
    return caught.value


def test_the_three_spellings_of_one_command_are_one_command() -> None:
    spellings = [parsed(json.dumps(SEED)), parsed(YAML, "a.yaml"), parsed(YAML, "a.yml"), parsed(MARKDOWN, "a.md")]
    assert len({canonical_hash(command) for command in spellings}) == 1


def test_inputs_and_config_may_be_missing_and_rounds_default_to_three() -> None:
    command = parsed('{"task_description": "x", "output_artifact_path": "a.md"}')
    assert (command.input_artifacts, command.config.max_rounds, command.session) == ((), 3, "main")


def test_a_byte_order_mark_is_tolerated() -> None:
    assert parsed(b"\xef\xbb\xbf" + json.dumps(SEED).encode()).config.max_rounds == 3


def test_spelling_order_schema_and_id_do_not_change_the_canonical_hash() -> None:
    other = {"$schema": "./x.json", "id": "a-1", **dict(reversed(SEED.items()))}
    assert canonical_hash(parsed(json.dumps(other, indent=3))) == canonical_hash(parsed(json.dumps(SEED)))


def test_an_explicit_default_is_the_same_command_as_its_absence() -> None:
    bare = {"task_description": "x", "output_artifact_path": "a.md"}
    full = {**bare, "type": "deliberate", "input_artifacts": [], "config": {"max_rounds": 3}, "session": "main"}
    assert canonical_hash(parsed(json.dumps(bare))) == canonical_hash(parsed(json.dumps(full)))


@pytest.mark.parametrize(
    ("inside", "fault"),
    [
        ("two\nlines", "not JSON: a line break inside a string"),
        ("a\ttab", "not JSON: a tab inside a string"),
        ("C:\\docs", "not JSON: a single backslash inside a string"),
    ],
)
def test_what_a_json_string_may_not_hold_is_named(inside: str, fault: str) -> None:
    assert fault in str(refused(f'{{"task_description": "{inside}"}}'))


def test_a_cancel_command_is_told_by_its_type() -> None:
    assert parse_command(COMMANDS, "c.json", b'{"type": "cancel", "run": "20261120-1"}') == CancelCommand(
        type="cancel", run="20261120-1"
    )


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"config": {"max_rounds": "3"}}, "config.max_rounds", "whole number without quotes"),
        ({"config": {"max_rounds": True}}, "config.max_rounds", "whole number"),
        ({"config": {"max_rounds": 0}}, "config.max_rounds", "at least 1"),
        ({"config": {"max_rounds": 101}}, "config.max_rounds", "at most 100"),
        ({"config": {"max_round": 3}}, "config.max_round", "did you mean `max_rounds`"),
        ({"config": []}, "config", "an object with keys"),
        ({"input_artifacts": "docs/a.md"}, "input_artifacts", "a list"),
        ({"input_artifacts": [1]}, "input_artifacts.0", "text in quotes"),
        ({"task_description": ""}, "task_description", "is empty"),
        ({"task_description": "  "}, "task_description", "blank"),
        ({"task_description": 5}, "task_description", "text in quotes, not the number 5"),
        ({"output_artifact_pth": "x"}, "output_artifact_pth", "did you mean `output_artifact_path`"),
        ({"task": "x"}, "task", "did you mean `task_description`"),
        ({"inputs": ["a.md"]}, "inputs", "did you mean `input_artifacts`"),
        ({"output": "x.md"}, "output", "did you mean `output_artifact_path`"),
        ({"config": {"rounds": 3}}, "config.rounds", "did you mean `max_rounds`"),
        ({"max_rounds": 3}, "max_rounds", "put it into `config`"),
        ({"config": {"max_usd": 3}}, "config.max_usd", "put it into `budget`"),
        ({"type": "deliberat"}, "type", "known types: deliberate, cancel"),
        ({"type": 7}, "type", "is the number 7; known types"),
        ({"type": None}, "type", "is null; known types"),
        ({"task_description": "a \ud800 b"}, "task_description", "holds half of a character"),
        ({"session": "Not A Lane"}, "session", "small letters, digits"),
        ({"session": "Not A Lane"}, "session", 'write "not-a-lane"'),
        ({"session": "?!"}, "session", "use only those characters"),
        ({"session": "archive"}, "session", "reserved"),
        ({"session": "plans"}, "session", "reserved"),
        ({"session": "ask-1"}, "session", "reserved"),
        ({"user": "ann b"}, "user", "must be 1 to 64 letters, digits"),
        ({"title": "two\nlines"}, "title", "must be one line of text"),
        ({"id": "ü"}, "id", "must be letters, digits, blanks"),
        ({"user": "-"}, "user", "begin with a letter or digit"),
        ({"id": ""}, "id", "is empty"),
        ({"schedule": "0 7 * * *"}, "schedule", "put a file with it into commands/recurring/"),
        ({"config": {"protocol": "Triads"}}, "config.protocol", "known: triad, independent, review"),
        ({"config": {"protocol": "Triads"}}, "config.protocol", 'did you mean "triad"'),
        ({"config": {"agents": []}}, "config.agents", "is empty"),
        ({"config": {"agents": "AUDITOR"}}, "config.agents", 'put it in brackets: ["AUDITOR"]'),
        ({"config": {"max_rounds": "2"}}, "config.max_rounds", "write 2"),
        ({"config": {"early_stop": "true"}}, "config.early_stop", "write true"),
        ({"config": {"model": "gemni"}}, "config.model", "is 'gemni': it needs a provider"),
        ({"config": {"budget": {"max_usd": 0}}}, "config.budget.max_usd", "is 0, but must be more than 0"),
        ({"config": {"budget": {"max_usd": "much"}}}, "config.budget.max_usd", "must be a number, not the text"),
    ],
)
def test_a_wrong_key_is_named_with_its_place_and_a_fix(change: dict[str, object], field: str, said: str) -> None:
    text = json.dumps({**SEED, **change}, indent=1)
    written = f"---\n{yaml.safe_dump({**SEED, **change}, sort_keys=False)}---\n"
    for spelling, told in {"json": text, "yaml": text, "md": written}.items():
        error = refused(told, f"command.{spelling}")
        assert error.field == field, spelling
        assert said in str(error)
        assert error.line is not None
        assert error.line > 1


@pytest.mark.parametrize(
    ("value", "message", "fix"),
    [
        (
            {"type": "memory", "role": "AUDITOR", "action": "replace"},
            "`replace` needs `answers`",
            "add `answers`, or use the action `reset`",
        ),
        ({"type": "ask"}, "`request` is missing", "say in `request` what you want"),
        (
            {"type": "ask", "request": " "},
            "`request` must say what you want, but is blank",
            "say in `request` what you want",
        ),
        ({"type": "forget"}, "must name a `text` or a `run`", "add one of them"),
        ({"config": {"agents": ["AUDITOR", "auditor"]}}, "names AUDITOR twice", "name each agent once"),
        (
            {"config": {"agents": ["AUDITOR"], "protocol": "review"}},
            "`agents` needs at least two members for the protocol review",
            "name one more, or leave `agents` out",
        ),
    ],
)
def test_keys_that_do_not_fit_together_are_told_with_a_fix(value: dict[str, object], message: str, fix: str) -> None:
    text = json.dumps(value if "type" in value else {**SEED, **value})
    [problem] = cast("list[Problem]", refused(text).data["problems"])
    assert (problem.message, problem.fix) == (message, fix)


def test_whatever_is_wrong_with_a_key_of_any_type_is_told_in_the_words_of_its_file() -> None:
    for type_ in COMMANDS:
        for key in (field.alias or name for name, field in type_.model.model_fields.items()):
            error = refused(json.dumps({"type": type_.name, key: {"§": 1}}))
            problems = cast("list[Problem]", error.data["problems"])
            named = {part for problem in problems for part in problem.field.split(".")}
            assert not any("[" in part or "-" in part for part in named), (type_.name, key, problems)


@pytest.mark.parametrize("missing", ["task_description", "output_artifact_path"])
def test_a_missing_key_is_named(missing: str) -> None:
    error = refused(json.dumps({key: value for key, value in SEED.items() if key != missing}))
    assert (error.field, error.line, error.column) == (missing, 1, 1)


def test_a_field_is_found_at_its_line_and_column_in_json() -> None:
    error = refused(
        '{\n  "task_description": "x",\n  "output_artifact_path": "a.md",\n  "config": {"max_rounds": 500}\n}'
    )
    assert (error.line, error.column) == (4, 28)


def test_a_field_is_found_at_its_line_in_the_front_matter_of_markdown() -> None:
    error = refused("---\noutput_artifact_path: a.md\nconfig:\n  max_rounds: 500\n---\nGo.\n", "a.md")
    assert (error.line, error.column) == (4, 15)


@pytest.mark.parametrize(("spelling", "count"), [("json", 4_000), ("yaml", 900), ("md", 900)])
def test_of_very_many_problems_the_first_are_told_in_their_places_and_that_there_are_more(
    spelling: str, count: int
) -> None:
    text = json.dumps({**SEED, **{f"k{number}": number for number in range(count)}}, indent=1)
    if spelling == "md":
        text = f"---\n{yaml.safe_dump(json.loads(text), sort_keys=False)}---\n"
    error = refused(text, f"command.{spelling}")
    *told, rest = cast("list[Problem]", error.data["problems"])
    assert [problem.field for problem in told] == [f"k{number}" for number in range(MAX_PROBLEMS)]
    lines = text.splitlines()
    for problem in told:
        assert problem.line is not None
        assert f'{problem.field}"' in lines[problem.line - 1] or f"{problem.field}:" in lines[problem.line - 1]
    assert str(rest) == "and more"
    assert len(str(error)) < 4_000


@pytest.mark.parametrize("values", ["k#: 1\n", "- a\n", "? a#\n", "k#: {a: [b]}\n"])
def test_yaml_of_more_values_than_a_command_has_is_refused_at_once_and_says_where(values: str) -> None:
    text = "".join(values.replace("#", str(number)) for number in range(20_000))
    error = refused(text, "command.yaml")
    assert not isinstance(error, Unparsable)
    assert "holds more than 2,000 keys and values" in str(error)
    assert error.line is not None
    assert 400 <= error.line <= 2_001
    assert "name them as input_artifacts" in error.fix


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}'])
def test_what_is_refused_at_once_is_found_before_whatever_follows(text: str) -> None:
    assert refused(text + '"' + '\\"' * 100_000).line == 1


@pytest.mark.parametrize("number", ["9:" * 5_000 + "9", "0x" + "f" * 5_000, "!!float " + "9:" * 5_000 + "9.5"])
def test_a_yaml_number_without_end_is_refused_in_its_place(number: str) -> None:
    error = refused(f"{YAML}session: {number}\n", "a.yaml")
    assert "a number of more than 100 characters" in str(error)
    assert (error.line, error.column) == (6, 10)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b'{"task_description": "x"', "ends too early"),
        (b"{'a': 1}", "double quotes"),
        (b'{"a": 1,}', "remove the comma"),
        (b'{"a": 1 "b": 2}', "put a comma"),
        (b"\xff\xfe{\x00}\x00", "UTF-16"),
        (b"{\x00}", "binary"),
        (b'{"a": "\xe4"}', "not UTF-8"),
        (b"x: [1", "not JSON"),
    ],
)
def test_bytes_that_may_yet_become_json_are_unparsable_with_a_place(data: bytes, said: str) -> None:
    error = refused(data)
    assert isinstance(error, Unparsable)
    assert said in str(error)
    assert error.line == 1


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ('{"a": 1,}', "remove the comma before the closing bracket"),
        ('{"a": [1, 2,\n]}', "remove the comma before the closing bracket"),
        ('{"a": 1,, "b": 2}', "remove this comma"),
        ("[1,,2]", "remove this comma"),
        ('{"a": }', "write the value that is missing after the colon"),
        ('{"a"}', "write a colon and a value after this key"),
        ('{"a" 1}', "put a colon between the key and its value"),
        ('{"a": [1, 2}', "close what was opened last before this }"),
        ('{"a": 1}}', "remove this }: nothing is left to close"),
        ('{"a": 1} {"b": 2}', "one JSON object is one command: remove what follows it"),
        ('{"a": 1 "b": 2}', "put a comma between two entries (it may be missing at the end of the line before)"),
        ("{a: 1}", 'keys need double quotes: "like_this"'),
        ('{"a": 1, b: 2}', 'keys need double quotes: "like_this"'),
        ('{"a": “x”}', 'JSON strings need double quotes: "like this"'),
        ("{\"a\": 'x'}", 'JSON strings need double quotes: "like this"'),
        ('{"a": some words}', 'text needs double quotes: "like this"'),
        ('{"a": True}', "JSON writes true, false and null"),
        ('{"a": 1, // why\n"b": 2}', "JSON has no comments: remove it, or write a YAML file"),
        ('{"a": "one\ntwo"}', "a string must stay on one line: write \\n for a line break and \\t for a tab"),
        ('{"a": "C:\\docs"}', "a backslash in a string must be written twice: \\\\"),
        ("What is open?", 'begin with a brace: {"task_description": "…", …}'),
    ],
)
def test_what_is_not_json_comes_with_the_change_that_is_needed_there(text: str, fix: str) -> None:
    assert refused(text).fix == fix


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "a": 2}', "stands twice"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ("[" * 100_000 + "]" * 100_000, "line 1, column 65: the command is nested too deeply"),
        ('{"a": ' + "[" * 64 + "]" * 64 + "}", "line 1, column 70: the command is nested"),
        ("[1]", "not a list"),
        ('"x"', 'not the text "x"'),
        ("null", "not null"),
    ],
)
def test_json_that_can_never_be_a_command_is_refused_at_once(text: str, said: str) -> None:
    error = refused(text)
    assert not isinstance(error, Unparsable)
    assert said in str(error)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1\n", "not YAML"),
        ("a:\n\t- 1\n", "not YAML"),
        ("a: &x 1\nb: *x\n", "alias"),
        ("a: !!python/object:os.system 1\n", "not YAML: a tag (a word after !) is not allowed"),
        ("a: !secret b\n", "not YAML: a tag (a word after !) is not allowed"),
    ],
)
def test_yaml_that_does_not_parse_says_where(text: str, said: str) -> None:
    error = refused(text, "a.yaml")
    assert isinstance(error, Unparsable)
    assert said in str(error)
    assert error.line is not None


def test_a_repeated_yaml_key_is_refused() -> None:
    assert "stands twice" in str(refused("a: 1\na: 2\n", "a.yaml"))


def test_a_yaml_date_stays_text() -> None:
    assert parsed(f"id: 2026-11-20\n{YAML}", "a.yaml").id == "2026-11-20"


@pytest.mark.parametrize(
    "text",
    [
        "# Notes\n\nJust notes.\n",
        "---\ntitle: Notes\ntype: note\n---\nText.\n",
        "---\nid: x\n---\noutput_artifact_path: y\n",
        "no front matter\n---\noutput_artifact_path: x\n---\n",
        "",
    ],
)
def test_markdown_without_a_commands_front_matter_is_no_command(text: str) -> None:
    with pytest.raises(NotACommand):
        parse_command(COMMANDS, "notes.md", text.encode())


def test_a_task_in_front_matter_and_body_is_refused() -> None:
    assert "there is also a body" in str(refused(MARKDOWN.replace("---\n\n", "task_description: y\n---\n\n"), "a.md"))


def test_front_matter_that_is_not_closed_may_still_be_completed() -> None:
    assert isinstance(refused("---\noutput_artifact_path: a.md\n", "a.md"), Unparsable)


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"memory","role":"AUDITOR","action":"replace","answers":[{"run_id":"x","answer":"y","foo":1}]}',
        '{"type":"memory","role":"AUDITOR","action":"replace","answers":{"foo":1}}',
        '{"type":"memory","role":"AUDITOR","action":"reset","foo":{"bar":1}}',
        '{"type":"cancel","run":"x","foo":1}',
        '{"type":"resume","run":"x","accept_drift":"yes","foo":[1]}',
        '{"task_description":"x","output_artifact_path":"a.md","config":{"budget":{"max_call":1,"max_usd":"x"}}}',
        '{"task_description":"x","output_artifact_path":"a.md","config":{"budget":[1]}}',
    ],
)
def test_an_unknown_key_at_any_depth_of_any_type_is_an_error_and_no_defect(text: str) -> None:
    error = refused(text)
    assert error.line == 1


# ── files that failed ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (b'{"type": "forget", "text": "a name"}', False),
        (b'{"type": " Forgett ", "text": "a name"}', False),
        (b'{"type": "forget", "text": "a name', False),
        ('{"type": "forget", "text": "a name'.encode("utf-16-le"), False),
        (b'{"type": "forget", "task_description": "How do we forget', True),
        (b'{"type": "deliberate", "task_description": "x"}', True),
        (b'{"task_description": "What does type: forget', True),
        (b'["forget"]', True),
    ],
)
def test_what_would_lie_there_with_the_words_that_are_to_be_forgotten_is_not_kept(data: bytes, kept: bool) -> None:
    assert is_kept(COMMANDS, "a.json", data) is kept
