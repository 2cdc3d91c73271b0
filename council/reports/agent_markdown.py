"""Texts of agents as HTML: paragraphs, lists, tables, code and emphasis, and nothing that loads, links or runs.

Raw HTML stays visible as text, and so do links and images, as they were spelled. Citations of known evidence lead to
its row in the report, and show its lines to who points at them or reaches them by keyboard. What the look-up marked
stands out.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from council.artifacts.render import requests_listed
from council.citations import EVIDENCE_ID, MARKS, NO_SUCH_PLACE, CitedPlace, citations
from council.lines_and_pages import numbers
from council.llm.base import Source
from council.markup import around_table
from council.safety.untrusted import clean

# A page that is read again must not look like asking.
_REQUEST = re.compile(r"\[ORCHESTRATOR_REQUEST:\s*", re.IGNORECASE)
_EVIDENCE = re.compile(rf"\b{EVIDENCE_ID}")
_MARK = re.compile("|".join(escape(re.escape(mark)) for mark in MARKS))
_OFF = ("html_block", "html_inline", "image", "link", "autolink", "reference")
_MAX_CHARS = 200_000  # of one text; a reply is far shorter
_MAX_PLACE_CHARS = 300  # enough to see whether it says what is cited
_HEADING = "h5"  # whatever an agent chose: its headings lie below ours


class AgentMarkdown:
    """Renders texts of one run; `evidence` has the beginning of each id that has a row, `lines` those of a place, if it names
    any."""

    def __init__(self, evidence: Mapping[str, str], lines: Callable[[CitedPlace], str] = lambda place: "") -> None:
        self._parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable(list(_OFF))

        def linked(found: re.Match[str], places: Sequence[CitedPlace] | None) -> str:
            """`places`: those of its citation, none where they do not exist; None outside a citation."""
            id = found[0].upper()
            if id not in evidence or places == ():
                return found[0]
            named = filter(None, (lines(place) for place in places or () if place.id == id))
            shown = escape(clean("\n".join(named) or evidence[id]))
            return f'<a class="cite" href="#{id}">{found[0]}<span class="lines" role="tooltip">{shown}</span></a>'

        def text(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
            content = tokens[index].content
            cited = {
                found.start(): () if content[one.end :].lstrip().startswith(NO_SUCH_PLACE) else one.places
                for one in citations(content)
                for found in _EVIDENCE.finditer(content, one.start, one.end)
            }
            html, end = [], 0
            for found in _EVIDENCE.finditer(content):
                html += [escape(content[end : found.start()]), linked(found, cited.get(found.start()))]
                end = found.end()
            return _MARK.sub(r"<mark>\g<0></mark>", "".join([*html, escape(content[end:])]))

        def heading(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
            return f"<{_HEADING}>" if tokens[index].nesting == 1 else f"</{_HEADING}>\n"

        def cell(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
            return f"<{tokens[index].tag}>"  # without its alignment, which would be a style of its own

        self._parser.add_render_rule("text", text)
        for rule in ("heading_open", "heading_close"):
            self._parser.add_render_rule(rule, heading)
        for rule in ("th_open", "td_open"):
            self._parser.add_render_rule(rule, cell)
        inline = self._parser.inline
        for ruler in (self._parser.core.ruler, self._parser.block.ruler, inline.ruler, inline.ruler2):
            ruler.getRules("")  # else two threads that render first may see a part of the rules

    def __call__(self, text: str) -> Markup:
        return Markup(self._parser.render(_harmless(requests_listed(text))))  # noqa: S704  the parser escapes, html is off

    def item(self, text: str) -> Markup:
        """An item of a list: one line, or what stands around a table, and the table."""
        before, rows, after = around_table(text)
        return Markup("").join([self.inline(before), self("\n".join(rows)) if rows else "", self.inline(after)])

    def inline(self, text: str) -> Markup:
        """One line, for a cell or an item."""
        return Markup(self._parser.renderInline(" ".join(_harmless(text).split())))  # noqa: S704


def _harmless(text: str) -> str:
    return _REQUEST.sub("[request: ", clean(text)[:_MAX_CHARS])


class Excerpts:
    """The lines that a citation names, as they were read. Of `sources` those of a search have one for each hit under one id."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources: defaultdict[str, list[tuple[str, list[int], list[str]]]] = defaultdict(list)
        for one in sources:
            lines = one.text.removesuffix("\n").split("\n")
            self._sources[one.id].append((one.path, numbers(one.path, one.text, one.first_line), lines))

    def __call__(self, place: CitedPlace) -> str:
        """`docs/a.md:3`, and line 3 below it; empty for a place that names no line, or none that was read."""
        for path, places, lines in self._sources.get(place.id, ()):
            if place.first is None or not path.endswith(place.path):
                continue
            first, after = bisect_left(places, place.first), bisect_right(places, place.last)
            if first < after:
                text = "\n".join(lines[first:after])
                return f"{replace(place, path=path).where}\n{text[:_MAX_PLACE_CHARS]}"
        return ""
