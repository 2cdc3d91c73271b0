"""The schemas of command files for editors; settings and tasks for `council init --vscode`, which replace no file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from council.commands.schema import COMMAND_SCHEMA_NAME, RECURRING_SCHEMA_NAME, SCHEMA_FOLDER, schema_files
from council.storage.files import as_storage_failed, write_atomic
from council.upkeep.house import COMMANDS

_SCHEMA = f"./commands/{SCHEMA_FOLDER}"
# What `council validate` and `council submit` print: file:line:column: error: message
_MATCHER = {
    "owner": "council",
    "fileLocation": ["autoDetect", "${workspaceFolder}"],
    "pattern": {
        "regexp": "^(.+?):(\\d+):(\\d+): (error|warning): (.*)$",
        "file": 1,
        "line": 2,
        "column": 3,
        "severity": 4,
        "message": 5,
    },
}


def vscode_files() -> dict[str, str]:
    """Each file by its path in the home."""
    command, recurring = f"{_SCHEMA}/{COMMAND_SCHEMA_NAME}", f"{_SCHEMA}/{RECURRING_SCHEMA_NAME}"
    yaml_folders = {command: ("commands", "commands/failed"), recurring: ("commands/recurring",)}
    settings = {
        "json.schemas": [
            {"fileMatch": ["/commands/*.json", "/commands/failed/*.json"], "url": command},
            {"fileMatch": ["/commands/recurring/*.json"], "url": recurring},
        ],
        "yaml.schemas": {
            schema: [f"{folder}/*.{ending}" for folder in folders for ending in ("yaml", "yml")]
            for schema, folders in yaml_folders.items()
        },
    }
    tasks = [
        _task("run", "run") | {"isBackground": True, "problemMatcher": []},
        _task("submit current file", "submit", "--wait", "${file}") | {"problemMatcher": _MATCHER},
        _task("validate current file", "validate", "${file}") | {"problemMatcher": _MATCHER},
        _task("show last", "show", "last"),
        _task("report of the last run", "report", "--open"),
        _task("doctor", "doctor"),
    ]
    files = {".vscode/settings.json": settings, ".vscode/tasks.json": {"version": "2.0.0", "tasks": tasks}}
    return {name: json.dumps(value, indent=2, ensure_ascii=False) + "\n" for name, value in files.items()}


def write_vscode(home: Path) -> tuple[list[Path], dict[Path, str]]:
    """Writes the files that are not there yet.

    Returns the written ones. For files that are there and differ, it also returns what to add by hand.
    """
    written: list[Path] = []
    kept: dict[Path, str] = {}
    for name, text in vscode_files().items():
        path = home / name
        path.parent.mkdir(exist_ok=True)
        try:
            with path.open("x", encoding="utf-8") as stream:
                stream.write(text)
            written.append(path)
        except FileExistsError:
            if path.read_text(encoding="utf-8", errors="replace") != text:
                kept[path] = text
    return written, kept


def write_schemas(home: Path) -> list[Path]:
    """Puts the schemas into `commands/.schema/`: generated files, replaced when they differ.

    Returns the written ones. Raises StorageFailed.
    """
    folder = home / "commands" / SCHEMA_FOLDER
    written = []
    with as_storage_failed(f"Cannot write into {folder}"):
        folder.mkdir(exist_ok=True)
        for name, data in schema_files(COMMANDS).items():
            path = folder / name
            if not path.is_file() or path.read_bytes() != data:
                write_atomic(path, data, mode=0o644)
                written.append(path)
    return written


def _task(label: str, *arguments: str) -> dict[str, Any]:
    return {
        "label": f"council: {label}",
        "type": "process",
        "command": "council",
        "args": list(arguments),
        "options": {"cwd": "${workspaceFolder}"},
        "problemMatcher": [],
    }
