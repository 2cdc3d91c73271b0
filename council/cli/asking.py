"""`council submit --task`: a command file for who has a question and some documents, and no wish to write JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from council.errors import UsageError

NAME = "task.json"
_DEFAULT_OUTPUT = "artifacts/"  # ends in a slash: a page named after the task


def command_of(task: str, documents: Sequence[str], output: str | None, rounds: int | None, home: Path) -> bytes:
    """The command file for a question. Documents are named as the shell knows them, from the working folder, or from the
    home. Raises UsageError for one outside the home."""
    command: dict[str, Any] = {
        "task_description": task,
        "input_artifacts": [_in_home(document, home) for document in documents],
        "output_artifact_path": _in_home(output, home) if output is not None else _DEFAULT_OUTPUT,
    }
    if rounds is not None:
        command["config"] = {"max_rounds": rounds}
    return (json.dumps(command, indent=2, ensure_ascii=False) + "\n").encode()


def _in_home(given: str, home: Path) -> str:
    """The path as commands spell it: from the home, with slashes."""
    place = Path(os.path.abspath(given))  # not resolved: what leads through a link is refused by name, where it is read
    slash = "/" if given.endswith("/") else ""
    if place.is_relative_to(home):
        return f"{place.relative_to(home).as_posix()}{slash}"
    if not os.path.isabs(given) and ".." not in Path(given).parts:
        return given
    raise UsageError(
        f"{given} is outside the home {home}, and a council reads and writes nothing outside it.",
        fix="copy it into the home, and name it there",
    )
