"""Text from outside is never authority: how it is cleaned, disarmed, compared and fenced for a prompt.

See docs/security.md (Protocol 93 gives agents request tokens; outside text must not be able to
issue them). Does not decide what is honoured: that is `council.tools.tokens`; nor what repeats a document (`echoes`), nor how
a page shows it (`markdown`). Every function here is pure and takes time linear in its input.
"""

from __future__ import annotations

import hmac
import json
import re
import unicodedata

from council.ids import UNSEEN

NONCE_CHARS = 16

# Characters that show nothing and can carry or split instructions: tags, variation selectors (both blocks), zero-width
# characters, invisible operators, Hangul and Mongolian fillers, directional controls, C0 and C1 controls.
_INVISIBLE = re.compile(f"[{UNSEEN}\x00-\x08\x0e-\x1f]")
# Not "\n": line numbers have to stay those that an editor shows.
_ODD_BREAKS = re.compile("[\x0b\x0c\x85\u2028\u2029]")
_ASCII_CONTROLS = bytes({*range(32), 127} - {*b"\t\n"})
_SURROGATES = re.compile("[\ud800-\udfff]")

# What looks like a letter or a bracket and is folded neither by NFKD (which covers full-width and styled letters) nor by its
# name (small capitals, squared and circled letters). Compared after case folding.
_LOOKALIKES = {
    look: plain
    for plain, looks in {
        "a": "аαᎪⲁ", "b": "вβᏼ", "c": "сςϲᏟⲥ", "d": "ԁᎠ", "e": "еεᎬⲉ", "f": "ғ", "h": "нһհᎻⲏ", "i": "іι", "j": "ј", "k": "кκᏦⲕ",
        "l": "Ꮮӏ", "m": "мᎷⲙ", "n": "ηпոⲛ", "o": "оοօσⲟ", "p": "рρᏢⲣ", "q": "ԛԚ", "r": "гᎡᏒ", "s": "ѕᏚꜱ", "t": "тτᎢⲧ", "u": "υսᴜ",
        "v": "νѵᏙ", "w": "ԝѡᏔ", "x": "хχⲭ", "y": "уγү", "z": "Ꮓζꮓ", "[": "【〔〖〘〚⟦⁅❲⦋⦗", "<": "〈⟨❮‹",
    }.items()
    for look in looks
}  # fmt: skip
_LETTER_NAME = re.compile(
    r"(?:LATIN|SQUARED|CIRCLED|REGIONAL INDICATOR)\b.*\b(?:LETTER|CAPITAL|SMALL|DOTLESS) ([A-Z])(?: WITH .*)?"
)

_TOKEN_OPEN = re.compile(r"\[\s*orchestrator[\s_-]*request")
_FENCE_MARK = re.compile(r"<\s?<(?=\s*(?:end|data)\b)")


def clean(text: str) -> str:
    """The text without invisible, directional and control characters; newlines are `\\n`, other line breaks a space."""
    if text.isascii() and len(text.encode().translate(None, _ASCII_CONTROLS)) == len(text):
        return text
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _ODD_BREAKS.sub(" ", text)
    return _SURROGATES.sub("\ufffd", _INVISIBLE.sub("", text))


def inert(text: str) -> str:
    """Opening request tokens become `[quoted-request`, in whatever case, spacing or look-alikes. Expects clean text."""
    return _replace_folded(_TOKEN_OPEN, "[quoted-request", text, first="[")


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
    body = unmarked(inert(clean(text)))
    lines = body.removesuffix("\n").split("\n") if body else []
    if numbered:
        lines = [f"{number:>4}| {line}".rstrip() for number, line in enumerate(lines, first_line)]
    opening = f"<<DATA {_label(source_id)} nonce={nonce} path={_label(path)} sha256={_label(sha256)}>>"
    return "\n".join([opening, *lines, f"<<END {nonce}>>"])


def unmarked(text: str) -> str:
    """The text without anything that could be read as the mark of a fence. Expects clean text."""
    return _replace_folded(_FENCE_MARK, "< <", text, first="<")


def plain_line(text: str, max_chars: int) -> str:
    """One line for a title, a YAML value or a terminal: no controls, no ANSI sequences, at most `max_chars` (>= 1)."""
    line = " ".join(clean(_ANSI.sub("", text)).split())
    return line if len(line) <= max_chars else whole_marks(line[: max_chars - 1]).rstrip() + "…"


def spelled_out(text: str) -> str:
    """One line that shows all that `text` holds: what shows nothing, turns the reading or breaks the line is its escape, such as
    `\\u202e`. Blanks and tabs stay. So does what belongs to a sign before it: an emoji, a letter of a joining script."""
    return _TO_SPELL.sub(lambda found: found[1] or found[0].encode("unicode_escape").decode(), text)


_EMOJI = (
    "[\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297"
    "\u3299\U0001f000-\U0001faff]"
)
_TO_SPELL = re.compile(
    f"({_EMOJI}(?:[\ufe0e\ufe0f](?:\u200d(?={_EMOJI}))?|\u200d(?={_EMOJI}))"
    # Arabic, Syriac, N'Ko, Mandaic, those of India and south-east Asia that stack letters, Mongolian
    f"|(?![{UNSEEN}])[\u0600-\u077f\u07c0-\u07ff\u0840-\u0dff\u1000-\u109f\u1780-\u18af\u1a20-\u1aaf\u1b00-\u1bff\ua840-\ua87f"
    "\ua8e0-\ua8ff\ua980-\ua9df\uabc0-\uabff\U00010a00-\U00010a5f\U00011000-\U00011fff\U0001e900-\U0001e95f][\u200c\u200d])"
    f"|[{UNSEEN}\u2800\x00-\x08\n-\x1f\ud800-\udfff]"  # the blank of Braille is a letter to `clean`
)


def whole_marks(cut: str) -> str:
    """The beginning of a text without the citation or footnote mark that its end would cut in half."""
    return _HALF_MARK.sub("", cut)


_HALF_MARK = re.compile(r"\s*\[\^?(?:E(?:[0-9][^\[\]\n]{0,300})?)?\Z")


_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # control sequences: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # strings: titles, hyperlinks
    r"|\x1b[ -/]*[0-~]?"
)


class _ShadowTable(dict[int, str]):
    """The same, one for one: positions in the folded text are those of the original."""

    def __missing__(self, code: int) -> str:
        folded = fold_char(chr(code))
        self[code] = folded if len(folded) == 1 else chr(code)
        return self[code]


def fold_char(char: str) -> str:
    """A character as small plain letters: NFKD, case, accents and look-alikes folded."""
    parts = unicodedata.normalize("NFKD", char).casefold()
    plain = ""
    for part in parts:
        if part.isascii() or part in _LOOKALIKES:
            plain += _LOOKALIKES.get(part, part)
        elif not unicodedata.combining(part):
            named = _LETTER_NAME.search(unicodedata.name(part, ""))
            plain += named[1].lower() if named else part
    return plain


def folded(text: str) -> str:
    """Small letters, accents and look-alikes folded one for one: positions are those of the original."""
    return text.lower() if text.isascii() else text.translate(_ShadowTable())


def _replace_folded(pattern: re.Pattern[str], replacement: str, text: str, *, first: str) -> str:
    """`pattern` (lower case, beginning with the sign `first`) is looked for in the folded text, `replacement` is put into the
    original."""
    if first not in text and text.isascii():
        return text
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
    if not value:
        return '""'
    line = inert(plain_line(value, 300)).replace("<", "%3C").replace(">", "%3E")
    return line if re.fullmatch(r"[\w./:@+-]+", line) else json.dumps(line, ensure_ascii=False)


# Messages that a person does not see. They are stripped wherever text comes in or is shown (`clean`); that one was there
# at all is worth knowing.
_CARRIERS = re.compile(
    "[\U000e0020-\U000e007e]{6,}"  # a short word, one tag to a letter; the flag of England has five
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{6,}"  # a byte to a selector; an emoji or a letter has one
    "|[\u200b-\u200d\u2060-\u2064\ufeff]{16,}"  # a bit to a character; scripts that need them have one or two
)


def hides_text(text: str) -> bool:
    """Tells whether `text` carries a message in characters that show nothing. Flags of countries and emoji do not count."""
    return not text.isascii() and _CARRIERS.search(text) is not None
