"""Files that a person names. One to be written is checked before the work begins, so that none is done in vain."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from council.errors import UsageError
from council.storage.command_drop import is_command_name


def beginning_of(file: Path, max_bytes: int, fix: str) -> bytes:
    """Reads at most one byte more than the file may have: enough to know. Raises UsageError where it cannot be read."""
    if file.is_dir():
        raise UsageError(f"{file} is a folder.", fix=f"{fix}; did you mean a file in it?")
    try:
        with file.open("rb") as stream:
            return stream.read(max_bytes + 1)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}.", fix=fix) from None


def require_no_question(words: Sequence[str]) -> None:
    """Raises UsageError for a question that stands where a command file is wanted."""
    question = " ".join(words)
    is_question = " " in question or question.endswith("?")
    if is_question and not any(os.path.exists(word) or is_command_name(word) for word in words):
        raise UsageError(
            f"there is no file {question!r}.",
            fix=f"did you mean `council submit --wait --task {shlex.quote(question)}`?",
        )


def checked(target: Path) -> Path:
    """The file that the bytes go to, a symbolic link followed. Raises UsageError for a place that cannot be a file."""
    target = target.resolve() if target.is_symlink() else target
    if target.is_dir():
        raise UsageError(f"{target} is a folder.", fix="name a file in it")
    if target.exists() and not target.is_file():
        raise UsageError(f"{target} is not a regular file.", fix="name another one, or redirect the output there")
    if not target.parent.is_dir():
        raise UsageError(f"there is no folder {target.parent}.", fix="make it, or name another file")
    return target


def from_home(file: Path, home: Path) -> str:
    """The file as settings and commands of that home name it."""
    return os.path.relpath(file.resolve(), home)


def require_new(target: Path) -> None:
    """Raises UsageError for a file that is there, or one in a folder that is not there."""
    if target.exists():
        raise UsageError(f"{target} already exists.", fix="name another file, or remove it")
    if not target.parent.is_dir():
        raise UsageError(f"there is no folder {target.parent}.", fix="make it, or name another one")
