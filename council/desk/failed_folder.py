"""`commands/failed/`: what the note beside a command file that could not become a run says. `error_notes` writes it."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from council.storage.command_drop import NOTE_ENDING

_MAX_CHARS = 300
_CODE = "Error code: "
_ESCAPED = re.compile(r"(?<!\\)\\([$*_<>\[\]#|~^&])")  # as `error_page` writes its Markdown


@dataclass(frozen=True)
class RefusedFile:
    """`file`: its name in `commands/failed/`. `code`, `why` and `fix`: of the first problem in its note, else empty."""

    file: str
    code: str
    why: str
    fix: str


def refused_file(note: Path) -> RefusedFile:
    """Raises OSError."""
    lines = [_ESCAPED.sub(r"\1", line) for line in note.read_text(encoding="utf-8", errors="replace").splitlines()]
    code = next((line.removeprefix(_CODE).strip("`") for line in lines if line.startswith(_CODE)), "")
    at = next((number for number, line in enumerate(lines) if line.startswith("- **")), len(lines))
    why = "".join(lines[at : at + 1]).removeprefix("- **").removesuffix("**")
    fix = "".join(lines[at + 1 : at + 2]).strip().removeprefix("Fix: ").removesuffix(".")
    return RefusedFile(note.name.removesuffix(NOTE_ENDING), code, why[:_MAX_CHARS], fix[:_MAX_CHARS])


def refused_files(failed: Path) -> tuple[int, RefusedFile | None]:
    """The number of files that were refused, and the newest of them."""
    notes = []
    with contextlib.suppress(FileNotFoundError), os.scandir(failed) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                if entry.name.endswith(NOTE_ENDING) and entry.is_file(follow_symlinks=False):
                    notes.append((entry.stat().st_mtime_ns, entry.name))
    if not notes:
        return 0, None
    with contextlib.suppress(FileNotFoundError):
        return len(notes), refused_file(failed / max(notes)[1])
    return len(notes), None
