"""A decision page as Markdown for editors, GitHub and Obsidian. Pure; all text from agents and files is made harmless.

Flat front matter, the answer first, the transcript folded, evidence as footnotes with links relative to the artifact.
"""

from __future__ import annotations

import html
import json
import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from urllib.parse import quote

from council.artifacts.page import Footnote, Page, PageRequest, PageSpeech, Round, Scalar, Table
from council.citations import MARKS, Citation, CitedPlace, KnownPaths, citations
from council.lines_and_pages import anchor
from council.markup import around_table, fences
from council.safety.markdown import code_spans, for_markdown
from council.safety.untrusted import plain_line

_MARK = re.compile("|".join(map(re.escape, MARKS)))
_TOKEN = re.compile(r"\[ORCHESTRATOR_REQUEST:\s*([^\]\n]{1,600})\]", re.IGNORECASE)
# The emphasis that a line of prose or a list opens with, and a name that would speak in it.
_EMPHASIS = re.compile(r"(?m)^((?:[ \t>]|(?:[-+*]|\d{1,9}[.)])[ \t])*)([*_]{1,6})(?=(.*))")
_SPEAKER = re.compile(r"(?:[A-Z][A-Z_]+|ORCHESTRATOR\s*\([^)\n]*\))\s*:")
# A block quotation that begins as a status at the head of a page does.
_QUOTATION = re.compile(r"(?m)^((?:[ \t>]|(?:[-+*]|\d{1,9}[.)])[ \t])*>[ \t]*)(.*)")
_STATUS = re.compile(r"[\W_]*(?:succeeded|degraded|failed|cancelled|guardrail)(?![^\W_])", re.IGNORECASE)
_BLOCK_MARK = re.compile(r"\A(\d{0,9})([-+*#.)]+)(?=\s)")  # what would begin a list or a heading within an item
_REQUEST_LINES = re.compile(
    r"(?:^[ \t]*\[ORCHESTRATOR_REQUEST:[^\]\n]{1,600}\][ \t]*(?:\n|\Z))+", re.IGNORECASE | re.MULTILINE
)
_WRAPPER = re.compile(r"\[ORCHESTRATOR_REQUEST:\s*(.*)\]", re.IGNORECASE)
_NOT_MERMAID = re.compile(r"""[^A-Za-z0-9 _./():*,='"-]+""")
_MAX_CELL_CHARS = 20_000  # more than what all members of a council say of one position
_MAX_DIAGRAM_MESSAGES = 60  # beyond that a picture says less than the transcript
_SAFE_YAML_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9 _./-]*")
_YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


class _Footnotes(dict[str, Footnote]):
    @cached_property
    def paths(self) -> KnownPaths:
        return KnownPaths(note.path for note in self.values())


def render(page: Page, path: str) -> str:
    """The page as it stands at `path` (relative to the home): links are relative to that place."""
    known = _Footnotes({note.id: note for note in page.footnotes})
    lines = ["---"]
    for key, value in page.front_matter.items():
        if isinstance(value, tuple):
            lines += [f"{key}:", *(f"  - {_yaml(item)}" for item in value)]
        else:
            lines.append(f"{key}: {_yaml(value)}")
    given = [
        f"- {_text_line(item.detail)}[^{item.id}]"
        if item.outcome == "fulfilled"
        else f"- `{_code(item.spelling)}` **could not be read:** {_text_line(item.detail)}"
        for item in page.inputs
    ]
    sections = []
    for section in page.sections:
        # Agents' headings lie a level deeper (`for_markdown`): none can pass for one of these.
        items = []
        for number, item in enumerate(section.items, start=1):
            mark = {"none": "", "bullets": "- ", "numbers": f"{number}. "}[section.listed]
            before, rows, after = around_table(item)
            # Each on one line: no item can end the list and begin something else.
            before, after = (_BLOCK_MARK.sub(r"\1\\\2", part) if mark else part for part in (before, after))
            blocks = [
                *([before] if before or not rows else []),
                *(["\n".join(rows)] if rows else []),
                *filter(None, [after]),
            ]
            whole = "\n\n".join(blocks).replace("\n", "\n" + " " * len(mark))
            items.append(_voiced(for_markdown(mark + whole), known, path))
        sections += [f"### {section.heading}", "\n".join(items)]
    notes = []
    for note in page.footnotes:
        title = _text_line(note.title)
        if note.path:
            link = f"[{_label(note.path)}]({_href(note.path, path, note.first_line)})"
            title = f"{link}, {_text_line(note.title.removeprefix(f'`{note.path}` '))}"
        notes.append(f"[^{note.id}]: {note.id}: {title}, sha256 `{note.sha256}`. {_text_line(note.how)}")
    parts = [
        "\n".join([*lines, "---"]),
        f"# {_text_line(page.title)}",
        *("> " + for_markdown(note).replace("\n", "\n> ") for note in page.notes),
        f"## {page.heading}",
        _voiced(for_markdown(requests_listed(page.answer)), known, path),
        *sections,
        f"*{page.byline}*" if page.byline else "",
        *(part for table in page.tables for part in _table(table, known, path)),
        "## Task",
        for_markdown(page.task),
        "**Given with the command:**" if given else "",
        "\n".join(given),
        "## Deliberation" if page.rounds else "",
        *(part for round_ in page.rounds for part in _round(round_, known, path)),
        *_diagram(page),
        *notes,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _yaml(value: Scalar) -> str:
    if isinstance(value, str):
        if _SAFE_YAML_TEXT.fullmatch(value) and value.lower() not in _YAML_WORDS:
            return value
        return json.dumps(plain_line(value, 500), ensure_ascii=False)
    return json.dumps(value)


def _table(table: Table, known: _Footnotes, path: str) -> Iterator[str]:
    def cell(text: str) -> str:
        return _voiced(_text_line(text, _MAX_CELL_CHARS), known, path)

    yield f"## {table.heading}"
    if table.rows:
        rows = [table.columns, tuple("---" for _ in table.columns)]
        rows += [tuple(cell(text).replace("|", "\\|") for text in row) for row in table.rows]
        yield "\n".join(f"| {' | '.join(row)} |" for row in rows)
    if table.lines:
        yield "\n".join(f"- {cell(line)}" for line in table.lines)


def _round(round_: Round, known: _Footnotes, path: str) -> Iterator[str]:
    speakers = list(dict.fromkeys(entry.role for entry in round_.entries if isinstance(entry, PageSpeech)))
    requests = sum(isinstance(entry, PageRequest) for entry in round_.entries)
    asked = f", {requests} request{'s' if requests != 1 else ''}" if requests else ""
    yield f"### ROUND {round_.number}"
    yield f"<details><summary>{', '.join(speakers)}{asked}</summary>"
    for entry in round_.entries:
        if isinstance(entry, PageSpeech):
            yield f"**{entry.role}:**"
            failure = f"*did not answer ({_text_line(entry.failure)})*"
            said = failure if entry.failure else _voiced(for_markdown(requests_listed(entry.text)), known, path)
            # A block quotation: whatever a turn holds, it cannot pass for the turn of another.
            yield said if entry.failure else "\n".join(f"> {line}".rstrip() for line in said.split("\n"))
        elif entry.outcome == "fulfilled":
            note = f"[^{entry.id}]" if entry.id else ""
            yield f"**ORCHESTRATOR (Fulfilled Request):** {_text_line(entry.detail)},{note} asked by {entry.asked_by}."
            if entry.body:
                yield for_markdown("```text\n" + entry.body.replace("```", "'''") + "\n```")
        else:
            asked_for = f"`{_code(entry.spelling)}`, asked by {entry.asked_by}"
            told = "Refused Request" if entry.outcome == "refused" else "Nothing Found"
            yield f"**ORCHESTRATOR ({told}):** {asked_for}: {_text_line(entry.detail)}"
    yield "</details>"


def _voiced(markdown: str, known: _Footnotes, path: str) -> str:
    """An agent's text, in its own voice, with its citations as links and the look-up's marks in bold.

    It cannot begin a line as another speaker, or as the orchestrator, does, nor a quotation as a status. Its requests are
    shown, not repeated. A citation of nothing that was read stays as it is. The footnote marks stand where evidence came
    in, once each and in the order of the ids. Viewers count footnotes by their first mark, and so give E1 the number 1.
    """

    def unvoiced(match: re.Match[str]) -> str:
        shown = re.sub(r"[*\\]", "", html.unescape(match[3]))
        marks = match[2] if _SPEAKER.match(shown.lstrip(" _")) is None else re.sub(r"([*_])", r"\\\1", match[2])
        return f"{match[1]}{marks}"

    def unquoted(match: re.Match[str]) -> str:
        is_status = _STATUS.match(html.unescape(match[2]))
        if not is_status or any(start <= match.start() < end for start, end in blocks):
            return match[0]
        return match[1].replace(">", "\\>") + match[2]

    blocks = [(block.start, block.end) for block in fences(markdown)]
    markdown = _QUOTATION.sub(unquoted, markdown)
    markdown = _TOKEN.sub(r"[request: \1]", markdown)  # a page that is read again must not look like asking
    markdown = _EMPHASIS.sub(unvoiced, markdown)
    pieces: list[str] = []
    at = 0
    code = _code_in(markdown)
    for cited in citations(markdown, paths=known.paths):
        if (number := bisect_right(code, (cited.start,)) - 1) >= 0 and cited.start < code[number][1]:
            continue  # a link in code would be shown as it is spelled
        pieces += (markdown[at : cited.start], _linked(cited, known, path))
        at = cited.end
    return _MARK.sub(r"__\g<0>__", "".join([*pieces, markdown[at:]]))


def _code_in(markdown: str) -> list[tuple[int, int]]:
    """The places of blocks and spans of code, in order. Each line closes its own spans (`for_markdown`)."""
    blocks = [(block.start, block.end) for block in fences(markdown)]
    spans: list[tuple[int, int]] = []
    at = 0
    for line in markdown.split("\n") if "`" in markdown else ():
        number = bisect_right(blocks, (at, len(markdown))) - 1
        if number < 0 or blocks[number][1] <= at:
            spans += [(at + start, at + end) for start, end in code_spans(line)]
        at += len(line) + 1
    return sorted([*blocks, *spans])


def _linked(cited: Citation, known: _Footnotes, path: str) -> str:
    """`[[E1 docs/a.md:12](../docs/a.md#L12)]`: the brackets stay when a viewer renders the link."""
    targets = [_target_of(place, known.get(place.id), path) for place in cited.places]
    if not any(targets):
        return cited.text
    if cited.remark:
        id, target = cited.places[0].id, targets[0]
        return cited.text.replace(id, f"[{id}]({target})", 1) if target else cited.text
    labels = [_label(f"{place.id}{' ' if place.path else ''}{place.where}") for place in cited.places]
    return " ".join(
        f"[[{label}]({target})]" if target else f"[{label}]" for label, target in zip(labels, targets, strict=True)
    )


def _target_of(place: CitedPlace, note: Footnote | None, path: str) -> str:
    if note is None:
        return ""
    if place.path != note.path and place.path and (note.path or f"{place.path}:" not in note.title):
        return ""
    if note.path and place.first is not None and not note.first_line <= place.first <= place.last <= note.last_line:
        return ""
    target = place.path or note.path
    return _href(target, path, note.first_line if place.first is None else place.first) if target else ""


def _href(target: str, path: str, place: int) -> str:
    relative = posixpath.relpath(target, posixpath.dirname(path) or ".")
    return f"{quote(relative, safe='/.-_~')}{anchor(target, place)}"


def _diagram(page: Page) -> Iterator[str]:
    """Draws who spoke and asked. Empty where all answered, nobody asked, and nobody changed their mind."""
    entries = [entry for round_ in page.rounds for entry in round_.entries]
    if not any(isinstance(entry, PageRequest) or entry.failure for entry in entries) and not page.has_changes:
        return
    messages: list[str] = []
    for round_ in page.rounds:
        messages.append(f"    Note over O: round {round_.number}")
        for entry in round_.entries:
            if isinstance(entry, PageSpeech):
                reply = "--xO: no answer" if entry.failure else "-->>O: analysis"
                messages += [f"    O->>{entry.role}: turn", f"    {entry.role}{reply}"]
            else:
                asked = _mermaid(without_brackets(entry.spelling))
                got = f"{entry.id}, to all" if entry.id else entry.outcome
                messages += [f"    {entry.asked_by}->>O: {asked}", f"    O-->>{entry.asked_by}: {got}"]
    roles = dict.fromkeys(
        entry.role for round_ in page.rounds for entry in round_.entries if isinstance(entry, PageSpeech)
    )
    lines = ["sequenceDiagram", "    participant S as Steward", "    participant O as Orchestrator"]
    lines += [f"    participant {role}" for role in roles]
    lines += ["    S->>O: command"]
    lines += messages[:_MAX_DIAGRAM_MESSAGES]
    if len(messages) > _MAX_DIAGRAM_MESSAGES:
        lines.append(f"    Note over O: … {len(messages) - _MAX_DIAGRAM_MESSAGES} more messages")
    lines.append(f"    O->>S: {_mermaid(page.heading).lower()}")
    yield "## How it went"
    yield "```mermaid\n" + "\n".join(lines) + "\n```"


def requests_listed(text: str) -> str:
    """The text with its lines of requests as a list: Markdown would run them together."""
    blocks = [(block.start, block.end) for block in fences(text)]

    def listed(lines: re.Match[str]) -> str:
        if any(start <= lines.start() < end for start, end in blocks):
            return lines[0]
        return "\n" + "".join(f"- {line.strip()}\n" for line in lines[0].splitlines()) + "\n"

    return _REQUEST_LINES.sub(listed, text)


def without_brackets(asked: str) -> str:
    """A request as an agent spelled it, without what makes it one."""
    inner = _WRAPPER.fullmatch(asked)
    return inner[1] if inner else asked


def _mermaid(text: str) -> str:
    """Text that cannot end a Mermaid statement."""
    return _NOT_MERMAID.sub(" ", plain_line(text, 60)).strip()


def _text_line(text: str, max_chars: int = 1_000) -> str:
    return " ".join(for_markdown(plain_line(text, max_chars)).split())


def _code(text: str) -> str:
    return _TOKEN.sub(r"[request: \1]", plain_line(text, 300)).replace("`", "'")


def _label(path: str) -> str:
    return _text_line(path).replace("[", "(").replace("]", ")")
