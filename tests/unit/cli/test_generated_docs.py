"""What is generated in docs/ says what the code says."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from council.app import commands_of
from council.cli.groups import SECTIONS
from council.cli.main import program
from council.commands.models import dump
from council.commands.parsing import parse_command
from council.commands.schema import COMMAND_SCHEMA_NAME, schema_files
from council.commands.types import CommandType
from council.desk.all_systems import house
from council.errors import EXIT_CODES
from council.settings import Settings
from council.settings.table import ProviderSetting

COMMANDS = commands_of(house())


DOCS = Path(__file__).parents[3] / "docs"

# Commands that only tell: what a person reads there, a program can read too. (`schema` prints JSON anyway,
# `completion` a script.)
READING = {
    "agents list",
    "agents show",
    "config show",
    "doctor",
    "logs",
    "memory show",
    "models list",
    "models test",
    "schedule list",
    "schedule next",
    "show",
    "status",
    "submit",
    "validate",
    "version",
}


def commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


@pytest.fixture(scope="module")
def group() -> Any:
    """Every sub-command of it is built."""
    built: Any = program()
    built.all_commands()
    return built


def generated(script: str, function: str) -> str:
    text: str = runpy.run_path(str(DOCS / script))[function]()
    return text


def test_the_cli_reference_is_current() -> None:
    stale = "stale: python docs/make_cli_reference.py"
    assert (DOCS / "cli.md").read_text() == generated("make_cli_reference.py", "reference"), stale


def test_the_settings_table_is_current() -> None:
    stale = "stale: python docs/make_settings_table.py"
    assert (DOCS / "settings.md").read_text() == generated("make_settings_table.py", "table"), stale


def test_the_page_of_the_workspace_is_current() -> None:
    assert (DOCS / "workspace.md").read_text() == generated("make_workspace.py", "page"), (
        "stale: docs/make_workspace.py"
    )


def test_the_copy_of_the_command_schema_is_current() -> None:
    stale = "stale: council schema > docs/command.schema.json"
    assert (DOCS / COMMAND_SCHEMA_NAME).read_bytes() == schema_files(COMMANDS)[COMMAND_SCHEMA_NAME], stale


def test_the_reference_of_command_files_is_current() -> None:
    stale = "stale: python docs/make_command_reference.py"
    assert (DOCS / "command-file.md").read_text() == generated("make_command_reference.py", "reference"), stale


@pytest.mark.parametrize("type_", [*COMMANDS], ids=lambda type_: type_.name)
def test_the_reference_of_command_files_has_every_key(type_: CommandType) -> None:
    page = generated("make_command_reference.py", "reference")
    of_all, _, of_types = page.partition("\n## `deliberate`")
    own = f"\n## `deliberate`{of_types}".partition(f"\n## `{type_.name}`\n")[2].partition("\n## ")[0]
    keys = [str(field.alias or name) for name, field in type_.model.model_fields.items()]
    assert [key for key in keys if f"\n| `{key}` | " not in of_all + own] == []


def test_the_reference_of_command_files_says_how_short_a_text_may_be() -> None:
    page = generated("make_command_reference.py", "reference")
    assert "\n| `text` | text, 4 to 10,000 characters | " in page
    assert "\n| `salt` | text, 16 to 200 characters | " in page


@pytest.mark.parametrize("language", ["json", "yaml", "markdown"])
def test_the_examples_of_command_files_are_the_same_command(language: str) -> None:
    page = generated("make_command_reference.py", "reference")
    example = page.partition(f"```{language}\n")[2].partition("```")[0]
    name = {"json": "a.json", "yaml": "a.yaml", "markdown": "a.md"}[language]
    command = dump(parse_command(COMMANDS, name, example.encode()))
    assert command["task_description"] == "Which storage engine should the archive use?"
    assert command["input_artifacts"] == ["docs/needs.md"]
    assert command["output_artifact_path"] == "artifacts/storage.md"


def test_the_reference_names_every_command_and_every_exit_code(group: Any) -> None:
    page = generated("make_cli_reference.py", "reference")
    names = [name for name, _ in commands(group)]
    assert [name for name in names if f"`council {name}`" not in page] == []
    assert [code for code in EXIT_CODES if f"\n| {code} | " not in page] == []


def test_the_settings_table_has_a_row_for_every_setting() -> None:
    rows = [
        line.split("`")[1] for line in generated("make_settings_table.py", "table").splitlines() if line[:3] == "| `"
    ]
    assert rows == [*Settings.model_fields, *ProviderSetting.model_fields]


def test_every_command_that_only_tells_has_a_json_form(group: Any) -> None:
    found = dict(commands(group))
    assert set(found) >= READING
    without = [name for name in READING if not any("--json" in param.opts for param in found[name].params)]
    assert without == []


def test_every_command_stands_in_a_section_of_the_help(group: Any) -> None:
    outside = [name for name, command in group.commands.items() if command.rich_help_panel not in SECTIONS]
    assert outside == []


def test_every_command_and_every_option_is_explained(group: Any) -> None:
    assert [name for name, command in commands(group) if not command.help] == []
    silent = [
        (name, param.name)
        for name, command in commands(group)
        for param in command.params
        if not param.help and param.name != "help" and not getattr(param, "hidden", False)
    ]
    assert silent == []


def test_the_list_of_all_commands_imports_none_of_them() -> None:
    code = (
        "import sys\nfrom council.cli.main import app\napp(['--help'], standalone_mode=False)\n"
        "print(*sorted(name for name in sys.modules if name.startswith('council.')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in done.stderr.split()}
    loaded = {name.rpartition(".")[2] for name in done.stderr.split() if name.startswith("council.cli.")}
    assert "vault " in done.stdout
    assert rooms == {"cli", "desk", "errors", "ids"}
    assert loaded == {"context", "groups", "main"}
    assert [name for name in done.stderr.split() if name.startswith("council.desk.")] == ["council.desk.all_systems"]


def test_a_command_says_in_the_list_what_its_own_help_begins_with(group: Any) -> None:
    for name, _, text in group.listed(None):
        assert group.commands[name].help == text
        assert text.endswith(".")


def test_the_openapi_is_current() -> None:
    made = runpy.run_path(str(DOCS / "make_openapi.py"))
    assert made["document"]() == (DOCS / "openapi.json").read_text(encoding="utf-8")


def test_the_help_names_types_in_plain_words(group: Any) -> None:
    for name, command in commands(group):
        shown = command.get_help(command.context_class(command, info_name=name))
        assert not any(strange in shown for strange in ("<list[", " range>", "<int>", "<float>")), name


def test_the_help_of_the_workspace_is_in_the_imperative(group: Any) -> None:
    told = [command.help.split()[0] for name, command in commands(group) if name.startswith("workspace ")]
    assert [word for word in told if word.endswith("s")] == []
