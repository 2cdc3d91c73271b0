"""VS Code's own JSON service reads the schemas that `council schema` prints: completion, ranges, unknown keys."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from council.app import commands_of
from council.commands.schema import command_schema, recurring_schema
from council.desk.all_systems import house

COMMANDS = commands_of(house())


HERE = Path(__file__).parent
Ask = Callable[..., list[dict[str, Any]]]

VALID = {"task_description": "Choose.", "output_artifact_path": "artifacts/a.md"}


def modules() -> Path | None:
    """Where the service is installed, by npm, once per set of versions; None when that cannot be done."""
    package = (HERE / "package.json").read_bytes()
    place = Path(tempfile.gettempdir()) / f"council-vscode-{os.getuid()}-{hashlib.sha256(package).hexdigest()[:16]}"
    if shutil.which("node") is None or shutil.which("npm") is None:
        return None
    place.mkdir(mode=0o700, exist_ok=True)
    with (place / "lock").open("w") as lock:  # pytest's workers come at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "installed").exists():
            (place / "package.json").write_bytes(package)
            install = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
            if subprocess.run(install, cwd=place, capture_output=True, check=False, timeout=300).returncode != 0:
                return None
            (place / "installed").touch()
    return place / "node_modules"


@pytest.fixture
def ask(require_service: Callable[[str, bool, str], None]) -> Ask:
    found = modules()
    require_service(
        "VS Code's JSON service", found is not None, "install nodejs and npm, and let npm reach its registry"
    )

    def asked(text: str, schema: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """What the service says of `text`: completions at `|`, or the problems when there is none."""
        cursor = text.find("|") if "|" in text else None
        question = {"schema": schema or command_schema(COMMANDS), "text": text.replace("|", ""), "cursor": cursor}
        answer = subprocess.run(
            ["node", str(HERE / "ask.cjs")],
            input=json.dumps(question),
            text=True,
            capture_output=True,
            check=True,
            timeout=60,
            env={**os.environ, "NODE_PATH": str(found)},
        )
        result: list[dict[str, Any]] = json.loads(answer.stdout)
        return result

    return asked


def labels(found: list[dict[str, Any]]) -> set[str]:
    return {item["label"].strip('"') for item in found}


def test_the_keys_of_a_deliberation_are_offered_at_the_root_with_their_meaning(ask: Ask) -> None:
    found = ask("{|}")
    keys = {"$schema", "type", "id", "session", "task_description", "input_artifacts", "output_artifact_path", "config"}
    assert keys <= labels(found)
    assert all(item["documentation"] for item in found)


def test_the_keys_of_config_are_offered_in_it(ask: Ask) -> None:
    assert "max_rounds" in labels(ask('{"config": {|}}'))


def test_the_key_type_completes_to_every_type(ask: Ask) -> None:
    assert labels(ask('{"type": "|"}')) == set(COMMANDS.names)


def test_after_a_type_only_its_own_keys_are_offered(ask: Ask) -> None:
    assert labels(ask('{"type": "cancel", |}')) == {"$schema", "id", "run", "user"}
    assert labels(ask('{"type": "memory", "action": "|"}')) == {"reset", "replace"}


def test_a_complete_command_with_a_schema_key_has_no_problem(ask: Ask) -> None:
    assert ask(json.dumps({"$schema": "./.schema/command.schema.json", **VALID, "config": {"max_rounds": 3}})) == []


def test_a_number_out_of_range_is_marked_at_its_place(ask: Ask) -> None:
    [problem] = ask(json.dumps({**VALID, "config": {"max_rounds": 500}}))
    assert problem == {"message": "Value is above the maximum of 100.", "text": "500"}


def test_an_unknown_key_is_reported_and_no_other_problem_beside_it(ask: Ask) -> None:
    assert [item["message"] for item in ask(json.dumps({**VALID, "confg": {}}))] == ["Property confg is not allowed."]


def test_a_missing_key_is_named(ask: Ask) -> None:
    [problem] = ask('{"task_description": "Choose."}')
    assert problem["message"] == 'Missing property "output_artifact_path".'


def test_the_problems_of_a_control_command_are_those_of_its_own_type(ask: Ask) -> None:
    messages = {item["message"] for item in ask('{"type": "cancel", "rn": "x"}')}
    assert messages == {'Missing property "run".', "Property rn is not allowed."}


def test_an_unknown_type_is_answered_with_all_of_them(ask: Ask) -> None:
    known = ", ".join(f'"{type_}"' for type_ in COMMANDS.names)
    messages = [item["message"] for item in ask('{"type": "cancl", "run": "x"}')]
    assert f"Value is not accepted. Valid values: {known}." in messages


def test_a_recurring_command_needs_a_schedule_and_takes_no_id(ask: Ask) -> None:
    schema = recurring_schema(COMMANDS)
    assert ask(json.dumps({**VALID, "schedule": "0 7 * * 1-5"}), schema) == []
    assert ask(json.dumps({**VALID, "schedule": {"cron": "0 7 * * *", "zone": "Europe/Berlin"}}), schema) == []
    messages = {item["message"] for item in ask(json.dumps({**VALID, "id": "x"}), schema)}
    assert messages == {'Missing property "schedule".', "Property id is not allowed."}
