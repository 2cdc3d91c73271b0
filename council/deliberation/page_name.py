"""The title of a deliberation, and the path of its page."""

from __future__ import annotations

import posixpath
import re
from functools import cache

from council.errors import CommandInvalid, PathRefused
from council.ids import distinct_slug
from council.markup import first_sentence
from council.safety.untrusted import plain_line
from council.storage.paths import OUTPUT_DENIED, ConfinedRoot, PathRules

_TITLE_CHARS = 120
_GREETING = re.compile(
    r"(?:dear|hello|hi|good (?:morning|day|afternoon|evening)|liebe[rs]?|hallo|guten|sehr geehrte[rs]?|bonjour|ch[eè]re?s?"
    r"|madame|monsieur|mesdames)\b.{0,80}[,!]\s*",
    re.IGNORECASE,
)
_LEAD = re.compile(r".{12,}?:(?=\s)")


def output_path(wanted: str, title: str, root: ConfinedRoot) -> str:
    """Relative to the home; in a folder it gets its name from the title. Raises CommandInvalid."""
    field = "output_artifact_path"
    path = wanted if wanted.startswith("/") or ".." in wanted.split("/") else posixpath.normpath(wanted)
    try:
        path = path.removeprefix("./")
        _output_rules().check(path)
        if wanted.endswith("/") or root.kind(path) == "directory":
            path = f"{path}/{distinct_slug(title)}.md"
        elif root.kind(path) == "other":
            raise PathRefused(f"`{path}` is not a regular file.", reason="special", fix="name another path")
    except PathRefused as error:
        rule = f" (rule `{error.data['rule']}`)" if error.data.get("rule") else ""
        reason = f"no decision may be written there{rule}" if error.reason == "denied" else error.message
        raise CommandInvalid(
            f"`{field}` is `{wanted}`: {reason}", fix="name a .md file below artifacts/", field=field
        ) from error
    if not path.endswith(".md"):
        raise CommandInvalid(
            f"`{field}` is `{path}`: a decision must be a Markdown file.",
            fix=f"end it in .md, or in / to have {distinct_slug(title)}.md in that folder",
            field=field,
        )
    return path


@cache
def _output_rules() -> PathRules:
    return PathRules(deny=OUTPUT_DENIED)


def title_of(task: str) -> str:
    """The first question, sentence or line of a task behind its greeting, short enough for a heading."""
    lines = [line for line in task.splitlines() if line.strip()][:2]
    lines = lines[-1:] if lines and _GREETING.fullmatch(lines[0].strip()) else lines
    first = plain_line(lines[0] if lines else "", 1_000).strip("# ").strip()
    said, lead = first_sentence(first), _LEAD.match(first)
    first = lead[0] if lead and said in ("", first) and not said.endswith("?") else said or first
    first = first.rstrip(".:!")
    if len(first) <= _TITLE_CHARS:
        return first or "Decision"
    return first[:_TITLE_CHARS].rsplit(" ", 1)[0] + " …"
