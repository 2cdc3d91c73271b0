"""`commands/failed/`: the note beside a command file that could not become a run, written and read."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from council.errors import CommandInvalid
from council.safety.untrusted import plain_line
from council.storage.command_drop import NOTE_ENDING

_MAX_CHARS = 300
_CODE_OR_TAG = re.compile(r"(`[^`]*`)|(<[A-Za-z/!?][^\s<>`]*>?)")
_TAG_AS_CODE = re.compile(r"`(<[^\s<>`]*>?)`")
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
    text = _TAG_AS_CODE.sub(r"\1", note.read_text(encoding="utf-8", errors="replace"))
    lines = [_ESCAPED.sub(r"\1", line) for line in text.splitlines()]
    code = next((line.removeprefix(_CODE).strip("`") for line in lines if line.startswith(_CODE)), "")
    at = next((number for number, line in enumerate(lines) if line.startswith("- **")), len(lines))
    why = "".join(lines[at : at + 1]).removeprefix("- **").removesuffix("**")
    fix = "".join(lines[at + 1 : at + 2]).strip().removeprefix("Fix: ").removesuffix(".")
    return RefusedFile(note.name.removesuffix(NOTE_ENDING), code, why[:_MAX_CHARS], fix[:_MAX_CHARS])


def refused_files(failed: Path) -> tuple[int, RefusedFile | None]:
    """The number of files that were refused, and the newest of them."""
    notes = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(failed) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                if entry.name.endswith(NOTE_ENDING) and entry.is_file(follow_symlinks=False):
                    notes.append((entry.stat().st_mtime_ns, entry.name))
    if not notes:
        return 0, None
    with contextlib.suppress(FileNotFoundError):
        return len(notes), refused_file(failed / max(notes)[1])
    return len(notes), None


def error_page(name: str, error: CommandInvalid, *, mend: str = "") -> str:
    """The note beside a command that could not become a run. `mend`: where to correct it, if not there."""
    from council.commands.file_formats import problems_of  # not at the top: `council status` writes no note

    mend = mend or f"Correct the file beside this note and move it back to `commands/{_name(name)}`. Nothing was run."
    lines = [heading_of(name), "", f"Error code: `{error.code}`", ""]
    for problem in problems_of(error):
        lines += [
            f"- **{_line(str(problem).rstrip('.'))}**",
            f"  Fix: {_line(problem.fix.rstrip('.'))}{'' if problem.fix.endswith('?') else '.'}" if problem.fix else "",
        ]
    return "\n".join([*lines, "", mend, ""])


def heading_of(name: str) -> str:
    return f"# `{_name(name)}` could not become a run"


def _name(name: str) -> str:
    return plain_line(name, 255).replace("`", "'")


def _line(text: str) -> str:
    """A file's own words as one line of a note that people open in a terminal or a browser: a tag in them is code."""
    from council.safety.markdown import for_markdown  # not at the top, as in `error_page`

    words = _CODE_OR_TAG.sub(lambda found: found[1] or f"`{found[2]}`", plain_line(text, 2_000))
    return for_markdown(words)
