"""Text of agents and files as Markdown that does nothing: for artifacts, notes and reports.

Every renderer sees the structure that this scanner saw. All lines of a code fence are indented alike, as far as the list item
above it, so that no list can end it early. Each line closes its own code spans. What is not certainly code is escaped. The loss
is cosmetic: a fence in a quotation leaves its list item, an indented code block shows its escapes. Pure, and linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from council.markup import fences
from council.safety.untrusted import clean

_LIST_MARKER = re.compile(r"(?:[-+*]|\d{1,9}[.)])(?=[ \t]|$)")
_HEADING = re.compile(r"#{1,6}(?=[ \t]|$)")
_UNDERLINE = re.compile(r"(?:-+|=+)[ \t]*$")
_SETEXT = re.compile(r"=+[ \t]*$")
_BREAK = re.compile(r"([ \t>]*)(?:-[ \t]*){3,}$")
_TABLE_RULE = re.compile(r"(?=.*-)(?=.*[|:+])[\s|:>*+\d.)=-]+$")
_MAX_INDENT = 3  # in columns: of a fence that is one wherever it stands
_INFO = re.compile(r"[A-Za-z][A-Za-z0-9_+#.-]{0,31}")
# Languages that some viewer executes or draws instead of showing (GitHub, GitLab, Obsidian, VS Code extensions).
_LIVE_LANGUAGES = re.compile(
    "mermaid|geojson|topojson|stl|math|latex|tex|katex|asciimath|plantuml|puml|uml|dot|graphviz|viz|d2|kroki|svgbob"
    "|vega|vega-?lite|wavedrom|bytefield|ditaa|nomnoml|blockdiag|excalidraw|tikz|chart|echarts|abc|markmap"
    "|dataview|dataviewjs|tasks|query|buttons?|embed|iframe|html-preview|run|run-js|js-engine|meta-bind.*|templater",
    re.IGNORECASE,
)

_SPECIAL = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])|(?P<ticks>`+)|(?P<lt><)|(?P<image>!+\[)|(?P<target>\]\()|(?P<definition>\]:)"
    r"|(?P<note>\[(?=\^)|\^(?=!*\[))|(?P<dollar>\$)|(?P<tildes>~{3,})|(?P<url>://|[wW]{3}\.)"
)
_SPECIAL_STARTS = re.compile(r"[\\`<!\]\[^$~:wW]")  # every character that one of these begins with
_AUTOLINK = re.compile(r"<https?://[^\s<>`\"'\\\[\]|!$^~]+>", re.IGNORECASE)
_TAG_START = re.compile(r"<[A-Za-z/!?]")
_PLAIN = r"[^\s<>`\"'\\\[\]|!$^~()]*+"
_DESTINATION = re.compile(
    rf"\]\((?P<url>{_PLAIN}(?>(?:\({_PLAIN}\){_PLAIN})*))(?: {{1,8}}\"[^<>`\"\\\[\]|!$^~&]*+\")?\)"
)
_SCHEME = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_ENTITY = re.compile(r"&#?[0-9A-Za-z]+;")


def for_markdown(text: str) -> str:
    """Makes agent text that can stand in an artifact, between blank lines inside `<details>`. It holds no HTML,
    images, headings above level 4, front matter, footnotes, link definitions or drawn code fences. Links lead only to
    http, https, mailto and relative targets. Code fences and inline code keep their content. No newline at the end.
    """
    text = clean(text)
    lines = text.split("\n")
    blocks = {fence.first: fence for fence in fences(text)}
    out: list[str] = []
    items: list[int] = []  # the columns at which the text of the open list items begins
    in_table = False
    index = 0
    while index < len(lines):
        if fence := blocks.get(index):
            in_table = False
            quotes = "> " * fence.quotes
            columns = len(fence.prefix.expandtabs(4))
            # Below a paragraph "-" would make a heading.
            marker = fence.prefix.rpartition(">")[2].strip().replace("-", "*")
            if marker:
                out.append(quotes + marker)
                items = [columns] if columns <= _MAX_INDENT else []
            items = [] if fence.quotes else [column for column in items if column <= columns]
            indent = " " * max(items, default=0)
            if len(indent) > _MAX_INDENT and out and out[-1]:
                out.append("")  # where this is no list, it is a block of code, and no more of a paragraph
            margin = quotes + indent
            language = info.group() if (info := _INFO.match(fence.info.strip())) else ""
            names = (language, *re.split("[+#.-]", language))  # to some viewers mermaid-x is mermaid
            if fence.info.strip() and (not language or any(map(_LIVE_LANGUAGES.fullmatch, names))):
                language = "text"
            kept = (margin + line if line else margin.rstrip(" ") for line in fence.lines)
            out += [margin + fence.run + language, *kept, margin + fence.run]
            index = fence.last + 1
            continue
        line, following = lines[index], lines[index + 1] if index + 1 < len(lines) else ""
        index += 1
        in_table = bool(line.strip()) and (in_table or any(map(_TABLE_RULE.match, (following, line))))
        if not line.strip():
            out.append("")
            continue
        if rule := _BREAK.match(line):  # "---" could underline a heading or open front matter
            out.append(rule[1] + "* * *")
            continue
        start = _content_start(line)
        prefix, rest = line[:start], line[start:]
        indent = prefix[: len(prefix) - len(prefix.lstrip())]
        items = [column for column in items if column <= len(indent.expandtabs(4))]
        if prefix.strip() and ">" not in prefix:
            items.append(len(prefix.expandtabs(4)))
        if _UNDERLINE.match(rest):
            bare = rest.rstrip()
            out.append(prefix + ("* * *" if bare.startswith("---") else "\\" + bare))
            continue
        if heading := _HEADING.match(rest):
            prefix, rest = prefix + "#" * min(6, heading.end() + 3), rest[heading.end() :]
        elif not prefix.strip(" >") and following.startswith(prefix) and _SETEXT.match(following, start):
            prefix, index = f"{prefix}#### ", index + 1  # the line below makes a heading of it
        out.append(prefix + _inline(rest, in_table))
    return "\n".join(out).strip("\n")


def _content_start(line: str) -> int:
    position = 0
    while True:
        while position < len(line) and line[position] in " \t":
            position += 1
        if line.startswith(">", position):
            position += 1
            continue
        marker = _LIST_MARKER.match(line, position)
        if marker is None or _UNDERLINE.match(line, position):
            return position
        position = marker.end()


def _inline(text: str, in_table: bool) -> str:
    spans = code_spans(text)
    if in_table:  # `|` ends a cell even inside code: a span that holds one makes every pairing on the line doubtful
        pipes = [match.start() for match in re.finditer(r"(?<!\\)\||(?<=\\\\)\|", text)]
        if any(bisect_left(pipes, start) != bisect_left(pipes, end) for start, end in spans):
            spans = []
    ends = dict(spans)
    out: list[str] = []
    position = 0
    # Renderers with automatic links take the rest of a word after "://" as it stands, backslashes and backticks too:
    # there only an entity is a safe escape, and no code span may open.
    in_url = False
    while match := _next_special(text, position):
        between = text[position : match.start()]
        in_url = in_url and not re.search(r"\s", between)
        out.append(between)
        start, position = match.span()
        if match.lastgroup == "ticks" and start in ends and not in_url:
            position = ends[start]
            out.append(text[start:position])
        elif match.lastgroup == "url":
            in_url = True
            out.append(match.group())
        else:
            harmless, position = _harmless(text, match, in_url)
            out.append(harmless)
    out.append(text[position:])
    return "".join(out)


def _harmless(text: str, special: re.Match[str], in_url: bool) -> tuple[str, int]:
    start, position = special.span()
    found = special.group()

    def escape(chars: str) -> str:
        return "".join(f"&#{ord(char)};" if in_url else f"\\{char}" for char in chars)

    match special.lastgroup:
        case "escape":
            following = position
            while found[1] == "`" and text.startswith("`", following):
                following += 1
            return "&lt;" if found[1] == "<" else escape(text[start + 1 : following]), following
        case "lt":
            autolink = _AUTOLINK.match(text, start)
            if autolink:
                return autolink.group(), autolink.end()
            return "&lt;" if _TAG_START.match(text, start) else found, position
        case "target":
            link = _DESTINATION.match(text, start)
            url = link["url"] if link else ""
            first_segment = re.split(r"[/?#]", url, maxsplit=1)[0]
            allowed = bool(_SCHEME.match(url)) or (":" not in first_segment and not url.startswith("//"))
            if link and allowed and not _ENTITY.search(url):
                return link.group(), link.end()
            return "]" + escape("("), position
        case "image":
            marks = found[:-2]  # all but the "![" itself; the last must not touch the bracket that stays
            return marks[:-1] + escape(marks[-1:]) + "[image: ", position
        case "definition":
            return "]" + escape(":"), position
        case _:
            return escape(found), position


def _next_special(text: str, position: int) -> re.Match[str] | None:
    """Finds what `_SPECIAL.search` finds, in a tenth of its time where prose is plain."""
    starts = (_SPECIAL.match(text, start.start()) for start in _SPECIAL_STARTS.finditer(text, position))
    return next(filter(None, starts), None)


def code_spans(text: str) -> list[tuple[int, int]]:
    """The inline code of one paragraph as (start, end) with its backticks, by the rules of CommonMark. A run of backticks
    opens a span when another run of the same length follows; one after a backslash cannot open."""
    runs = [match.span() for match in re.finditer("`+", text)]
    partner: dict[int, int] = {}
    nearest: dict[int, int] = {}
    for start, end in reversed(runs):
        if end - start in nearest:
            partner[start] = nearest[end - start]
        nearest[end - start] = end
    spans: list[tuple[int, int]] = []
    position = 0
    for start, _ in runs:
        if start < position or start not in partner:
            continue
        backslashes = 0
        while start - backslashes > position and text[start - backslashes - 1] == "\\":
            backslashes += 1
        if backslashes % 2 == 0:
            position = partner[start]
            spans.append((start, position))
    return spans
