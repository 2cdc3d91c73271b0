"""Text from outside is never authority: how it is cleaned, disarmed, fenced for a prompt, remembered and shown.

Holds the promise of DESIGN.md by that name (Protocol 93 gives agents request tokens; outside text must not be able to
issue them). Does not decide what is honoured: that is `council.tools.tokens`. Sees through the usual encodings
(`encodings`), not through a cipher or a translation: what an agent then asks for in its own words is bounded by its
allowlist and `read_roots`.
Every function here is pure and takes time linear in its input.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import unicodedata
from bisect import bisect_left
from dataclasses import dataclass

from council.safety.encodings import decodings

NONCE_CHARS = 16
MAX_OUTSIDE_BYTES = 8 * 1024 * 1024  # kept around markers per task; a real task keeps a few hundred bytes

# Characters that show nothing and can carry or split instructions: tags, variation selectors (both blocks), zero-width
# characters, invisible operators, Hangul and Mongolian fillers, directional controls, C0 and C1 controls.
_INVISIBLE = re.compile(
    "[\U000e0000-\U000e007f\U000e0100-\U000e01ef\ufe00-\ufe0f\u200b-\u200f\u2060-\u2064\ufeff\u202a-\u202e\u2066-\u206f"
    "\u061c\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufff9-\ufffb"
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"
)
# Not "\n": line numbers have to stay those that an editor shows.
_ODD_BREAKS = re.compile("[\x0b\x0c\x85\u2028\u2029]")
_ASCII_CONTROLS = bytes({*range(32), 127} - {*b"\t\n"})
_SURROGATES = re.compile("[\ud800-\udfff]")

# What looks like a letter of the marker or like its bracket and is not folded by NFKD (which covers full-width and
# styled letters). Compared after case folding.
_LOOKALIKES = dict(
    zip("осеѕантрԛοεταηυ【〔〖〘〚⟦⁅❲⦋⦗〈⟨❮‹", "ocesahtpqoetahu[[[[[[[[[[<<<<", strict=True),
)
# Beside spaces, left out of a comparison: an echo does not get through by other quotation marks or hyphens.
_UNCOMPARED = frozenset("\"'`\\“”„‘’‚«»‹›_-")

_TOKEN_OPEN = re.compile(r"\[\s*orchestrator[\s_-]*request")
_FENCE_MARK = re.compile(r"<\s?<(?=\s*(?:end|data)\b)")


def clean(text: str) -> str:
    """Without invisible, directional and control characters; newlines are `\\n`, other line breaks a space."""
    if text.isascii() and len(text.encode().translate(None, _ASCII_CONTROLS)) == len(text):
        return text
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _ODD_BREAKS.sub(" ", text)
    return _SURROGATES.sub("\ufffd", _INVISIBLE.sub("", text))


def inert(text: str) -> str:
    """Opening request tokens become `[quoted-request`, in whatever case, spacing or look-alikes. Expects clean text."""
    return _replace_folded(_TOKEN_OPEN, "[quoted-request", text)


def fence(
    text: str,
    *,
    secret: bytes,
    source_id: str,
    path: str,
    sha256: str,
    ordinal: int,
    first_line: int = 1,
    numbered: bool = True,
) -> str:
    """Outside text as a prompt carries it: between two marks that it cannot forge, cleaned, inert, lines numbered.

    The nonce depends on the run secret, so nobody who writes a document can know it; it is the same on every replay.
    `ordinal` tells apart two fences around the same content.
    """
    nonce = hmac.digest(secret, f"{sha256}{ordinal}".encode(), "sha256").hex()[:NONCE_CHARS]
    body = _replace_folded(_FENCE_MARK, "< <", inert(clean(text)))
    lines = body.removesuffix("\n").split("\n") if body else []
    if numbered:
        lines = [f"{number:>4}| {line}".rstrip() for number, line in enumerate(lines, first_line)]
    opening = f"<<DATA {_label(source_id)} nonce={nonce} path={_label(path)} sha256={_label(sha256)}>>"
    return "\n".join([opening, *lines, f"<<END {nonce}>>"])


def plain_line(text: str, max_chars: int) -> str:
    """One line for a title, a YAML value or a terminal: no controls, no ANSI sequences, at most `max_chars` (>= 1)."""
    line = " ".join(clean(_ANSI.sub("", text)).split())
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"


_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # control sequences: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # strings: titles, hyperlinks
    r"|\x1b[ -/]*[0-~]?"
)


class OutsideTexts:
    """The outside texts of one task, to recognise a request that only repeats one of them.

    Remembers no more than what follows each marker. Above `max_bytes` of that it fails closed: `occurs` is then true
    for every token, because a text that large full of requests is an attack, and a refused request costs one sentence.
    """

    _WINDOW = 2048  # folded characters kept from each marker on; a token is shorter (512 for its argument)

    def __init__(self, *, max_bytes: int = MAX_OUTSIDE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: list[bytes] = []
        self._seen: set[bytes] = set()

    @property
    def full(self) -> bool:
        return self._bytes > self._max_bytes

    def add(self, text: str) -> None:
        """Remember the requests that `text` holds, in its original spelling, already inert, or encoded."""
        self._add(text)
        for read in decodings(text):
            self._add(read)

    def _add(self, text: str) -> None:
        folded = _fold(text)
        start = folded.find(_MARKER)
        while start >= 0 and not self.full:
            end = start + self._WINDOW
            following = folded.find(_MARKER, start + 1)
            while 0 <= following <= end:  # overlapping windows are kept once
                end = following + self._WINDOW
                following = folded.find(_MARKER, following + 1)
            self._keep(folded[start:end].encode("utf-8", "replace"))
            start = following

    def occurs(self, token: str) -> bool:
        """Whether `token` stands in a text added before: NFKD, case, accents, spaces, quotes and brackets aside."""
        if self.full:
            return True
        needle = _fold(token).strip("[]")[: self._WINDOW].encode("utf-8", "replace")
        return any(needle in kept for kept in self._kept)

    def _keep(self, window: bytes) -> None:
        digest = hashlib.sha256(window).digest()
        if digest not in self._seen:
            self._seen.add(digest)
            self._bytes += len(window)
            if not self.full:
                self._kept.append(window)


_MARKER = "orchestratorrequest"


def _fold(text: str) -> str:
    """One spelling for comparison. Character by character: NFKC of a whole text is quadratic in its combining marks."""
    folded = clean(text).translate(_FoldTable())
    return folded.replace("[quotedrequest", "[" + _MARKER)


class _FoldTable(dict[int, "str | None"]):
    """What each character becomes for comparison; filled on first sight."""

    def __missing__(self, code: int) -> str | None:
        folded = "".join(c for c in _fold_char(chr(code)) if not (c.isspace() or c in _UNCOMPARED)) or None
        self[code] = folded
        return folded


class _ShadowTable(dict[int, str]):
    """The same, one for one: positions in the folded text are those of the original."""

    def __missing__(self, code: int) -> str:
        folded = _fold_char(chr(code))
        self[code] = folded if len(folded) == 1 else chr(code)
        return self[code]


def _fold_char(char: str) -> str:
    if char in _LOOKALIKES:
        return _LOOKALIKES[char]
    parts = unicodedata.normalize("NFKD", char).casefold()
    return "".join(_LOOKALIKES.get(part, part) for part in parts if not unicodedata.combining(part))


def folded(text: str) -> str:
    """Small letters, accents and look-alikes folded one for one: positions are those of the original."""
    return text.lower() if text.isascii() else text.translate(_ShadowTable())


def _replace_folded(pattern: re.Pattern[str], replacement: str, text: str) -> str:
    """`pattern` (lower case) is looked for in the folded text, `replacement` is put into the original."""
    shadow = folded(text)
    pieces: list[str] = []
    position = 0
    for match in pattern.finditer(shadow):
        pieces += (text[position : match.start()], replacement)
        position = match.end()
    return "".join([*pieces, text[position:]]) if pieces else text


_PLAIN_LABEL = re.compile(r"[\w./:@+-]{1,300}", re.ASCII)


def _label(value: str) -> str:
    """A value of the opening mark: as it is when it cannot be mistaken for anything, else quoted."""
    if _PLAIN_LABEL.fullmatch(value):
        return value
    line = inert(plain_line(value, 300)).replace("<", "%3C").replace(">", "%3E")
    return line if re.fullmatch(r"[\w./:@+-]+", line) else json.dumps(line, ensure_ascii=False)


# --- Markdown -------------------------------------------------------------------------------------------------------
#
# The result is built so that every renderer sees the structure that this scanner saw: a code fence is moved to the
# margin (where no list can end it early), each line closes its own code spans, and whatever is not certainly code is
# escaped. What is lost is cosmetic: a fence leaves its list item, an indented code block shows its escapes.

_FENCE = re.compile(r"(?P<run>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)$")
_LIST_MARKER = re.compile(r"(?:[-+*]|\d{1,9}[.)])(?=[ \t]|$)")
_QUOTE_PREFIX = re.compile(r"[ \t]*(?:>[ \t]*)*")
_HEADING = re.compile(r"#{1,6}(?=[ \t]|$)")
_UNDERLINE = re.compile(r"(?:-+|=+)[ \t]*$")
_BREAK = re.compile(r"([ \t>]*)(?:-[ \t]*){3,}$")
_TABLE_RULE = re.compile(r"(?=.*-)(?=.*[|:+])[\s|:>*+\d.)=-]+$")
_INFO = re.compile(r"[A-Za-z0-9_+#.-]{1,32}")
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
_DESTINATION = re.compile(rf"\]\((?P<url>{_PLAIN}(?:\({_PLAIN}\){_PLAIN})*+)(?: {{1,8}}\"[^<>`\"\\\[\]|!$^~&]*+\")?\)")
_SCHEME = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_ENTITY = re.compile(r"&#?[0-9A-Za-z]+;")


def for_markdown(text: str) -> str:
    """Agent text that can stand in an artifact, between blank lines inside `<details>`: no HTML, no images, no
    headings above level 4, no front matter, no footnotes, no link definitions, no drawn code fences, links only to
    http, https, mailto and relative targets. Code fences and inline code keep their content. No newline at the end.
    """
    return "\n".join(_Writer(clean(text).split("\n")).write()).strip("\n")


@dataclass
class _OpenFence:
    char: str
    length: int
    indent: int
    quotes: int

    @property
    def prefix(self) -> str:
        return "> " * self.quotes

    def closed_by(self, content: str) -> bool:
        bare = content.rstrip(" \t")
        run = bare.lstrip(" ")
        return len(bare) - len(run) <= 3 and len(run) >= self.length and not run.strip(self.char)


class _Writer:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._out: list[str] = []
        self._fence: _OpenFence | None = None
        self._in_table = False

    def write(self) -> list[str]:
        for index, line in enumerate(self._lines):
            if self._fence is None or not self._continue_fence(self._fence, line):
                following = self._lines[index + 1] if index + 1 < len(self._lines) else ""
                self._text_line(line, following)
        self._close_fence()
        return self._out

    def _continue_fence(self, fence: _OpenFence, line: str) -> bool:
        """Write `line` as code; False, with the fence closed, when the quotation that holds the fence has ended."""
        content = line
        for _ in range(fence.quotes):
            bare = content.lstrip(" ")
            if not bare.startswith(">"):
                self._close_fence()
                return False
            content = bare[1:].removeprefix(" ")
        content = _dedent(content, fence.indent)
        if fence.closed_by(content):
            self._close_fence()
        else:
            self._out.append((fence.prefix + content).rstrip(" ") if not content else fence.prefix + content)
        return True

    def _close_fence(self) -> None:
        if self._fence is not None:
            self._out.append(self._fence.prefix + self._fence.char * self._fence.length)
            self._fence = None

    def _text_line(self, line: str, following: str) -> None:
        if not line.strip():
            self._in_table = False
            self._out.append("")
            return
        self._in_table = self._in_table or bool(_TABLE_RULE.match(following)) or bool(_TABLE_RULE.match(line))
        rule = _BREAK.match(line)
        if rule:  # "---" could underline a heading or open front matter
            self._out.append(rule[1] + "* * *")
            return
        start = _content_start(line)
        prefix, rest = line[:start], line[start:]
        opening = _FENCE.match(rest)
        if opening and self._open_fence(prefix, opening):
            return
        if _UNDERLINE.match(rest):
            bare = rest.rstrip()
            self._out.append(prefix + ("* * *" if bare.startswith("---") else "\\" + bare))
            return
        heading = _HEADING.match(rest)
        if heading:
            level = min(6, heading.end() + 3)
            prefix, rest = prefix + "#" * level, rest[heading.end() :]
        self._out.append(prefix + _inline(rest, self._in_table))

    def _open_fence(self, prefix: str, opening: re.Match[str]) -> bool:
        """Start a fence at the margin, or behind plain `> ` marks; False where a quotation stands in a list item."""
        quote = _QUOTE_PREFIX.match(prefix)
        assert quote is not None  # the pattern matches the empty string
        inner = prefix[quote.end() :]
        if ">" in inner:
            return False
        run = opening["run"]
        indent_text = quote.group().rpartition(">")[2]
        quotes = quote.group().count(">")
        indent = _columns(indent_text + inner) - (1 if quotes and indent_text.startswith(" ") else 0)
        self._in_table = False
        self._fence = _OpenFence(run[0], len(run), max(0, indent), quotes)
        marker = inner.strip().replace("-", "*")  # a lone "-" below a paragraph would make a heading of it
        if marker:
            self._out.append(self._fence.prefix + marker)
        info = _INFO.match(opening["info"].strip())
        language = info.group() if info else ""
        if opening["info"].strip() and (not language or _LIVE_LANGUAGES.fullmatch(language)):
            language = "text"
        self._out.append(self._fence.prefix + run + language)
        return True


def _content_start(line: str) -> int:
    """Where the text of a line begins, behind indentation, `>` marks and list markers."""
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


def _columns(prefix: str) -> int:
    return len(prefix.expandtabs(4))


def _dedent(line: str, columns: int) -> str:
    """Without up to `columns` columns of indentation."""
    if columns == 0 or not line[:1].isspace():
        return line
    bare = line.lstrip(" \t")
    width = _columns(line[: len(line) - len(bare)])
    return line[columns:] if line.startswith(" " * columns) else " " * max(0, width - columns) + bare


def _inline(text: str, in_table: bool) -> str:
    """One line of prose, each code span closed on it, everything active escaped."""
    spans = code_spans(text)
    if in_table:
        spans = _spans_in_cells(text, spans)
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
        kind, found = match.lastgroup, match.group()
        escape = _entities if in_url else _backslashes
        if kind == "ticks":
            if start in ends and not in_url:
                position = ends[start]
                out.append(text[start:position])
            else:
                out.append(escape(found))
        elif kind == "url":
            in_url = True
            out.append(found)
        elif kind == "escape":
            following = _run_end(text, start + 1) if found[1] == "`" else position
            out.append("&lt;" if found[1] == "<" else escape(text[start + 1 : following]))
            position = following
        elif kind == "lt":
            autolink = _AUTOLINK.match(text, start)
            if autolink:
                position = autolink.end()
                out.append(autolink.group())
            else:
                out.append("&lt;" if _TAG_START.match(text, start) else found)
        elif kind == "target":
            link = _link(text, start)
            position = start + len(link) if link else position
            out.append(link or "]" + escape("("))
        elif kind == "image":
            marks = found[:-2]  # all but the "![" itself; the last must not touch the bracket that stays
            out.append(marks[:-1] + escape(marks[-1:]) + "[image: ")
        elif kind == "definition":
            out.append("]" + escape(":"))
        else:
            out.append(escape(found))
    out.append(text[position:])
    return "".join(out)


def _next_special(text: str, position: int) -> re.Match[str] | None:
    """What `_SPECIAL.search` finds, in a tenth of its time where prose is plain."""
    starts = (_SPECIAL.match(text, start.start()) for start in _SPECIAL_STARTS.finditer(text, position))
    return next(filter(None, starts), None)


def code_spans(text: str) -> list[tuple[int, int]]:
    """The inline code of one paragraph as (start, end) with its backticks, by the rules of CommonMark.

    A run of backticks opens a span when another run of the same length follows; one after a backslash cannot open.
    """
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
        if start >= position and start in partner and not _escaped(text, start, position):
            position = partner[start]
            spans.append((start, position))
    return spans


def _escaped(text: str, at: int, since: int) -> bool:
    backslashes = 0
    while at - backslashes > since and text[at - backslashes - 1] == "\\":
        backslashes += 1
    return backslashes % 2 == 1


def _spans_in_cells(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """A `|` ends a table cell even inside code: a span that holds one makes every pairing on the line doubtful."""
    pipes = [match.start() for match in re.finditer(r"(?<!\\)\||(?<=\\\\)\|", text)]
    for start, end in spans:
        if bisect_left(pipes, start) != bisect_left(pipes, end):
            return []
    return spans


def _link(text: str, at: int) -> str:
    """The `](target)` at this place when it is plain and its target allowed, else empty."""
    match = _DESTINATION.match(text, at)
    if match is None:
        return ""
    url = match["url"]
    first_segment = re.split(r"[/?#]", url, maxsplit=1)[0]
    allowed = bool(_SCHEME.match(url)) or (":" not in first_segment and not url.startswith("//"))
    return match.group() if allowed and not _ENTITY.search(url) else ""


def _run_end(text: str, at: int) -> int:
    while at < len(text) and text[at] == "`":
        at += 1
    return at


def _backslashes(chars: str) -> str:
    return "".join("\\" + char for char in chars)


def _entities(chars: str) -> str:
    return "".join(f"&#{ord(char)};" for char in chars)
