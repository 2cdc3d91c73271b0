"""The note beside a command file that could not become a run."""

from __future__ import annotations

import re

from council.commands.file_formats import problems_of
from council.errors import CommandInvalid
from council.safety.markdown import for_markdown
from council.safety.untrusted import plain_line

_CODE_OR_TAG = re.compile(r"(`[^`]*`)|(<[^\s<>`]*>?)")


def error_page(name: str, error: CommandInvalid, *, mend: str = "") -> str:
    """The note beside a command that could not become a run. `mend`: where to correct it, if not there."""
    mend = mend or f"Correct the file beside this note and move it back to `commands/{_name(name)}`. Nothing was run."
    lines = [heading_of(name), "", f"Error code: `{error.code}`", ""]
    for problem in problems_of(error):
        lines += [
            f"- **{_line(str(problem).rstrip('.'))}**",
            f"  Fix: {_line(problem.fix.rstrip('.'))}." if problem.fix else "",
        ]
    return "\n".join([*lines, "", mend, ""])


def heading_of(name: str) -> str:
    return f"# `{_name(name)}` could not become a run"


def _name(name: str) -> str:
    return plain_line(name, 255).replace("`", "'")


def _line(text: str) -> str:
    """A file's own words as one line of a note that people open in a terminal or a browser: a tag in them is code."""
    words = _CODE_OR_TAG.sub(lambda found: found[1] or f"`{found[2]}`", plain_line(text, 2_000))
    return for_markdown(words)
