"""The spelling in which texts are compared: what an editor, a renderer or a keyboard changes does not count. Pure,
linear in the text.

A comparison leaves out white space, the shape of quotation marks, hyphens and ligatures, and the entities of HTML. It
leaves out the marks of Markdown, too: emphasis, list items, table cells, the targets of links. Letters, digits and
their case are not left out.
"""

from __future__ import annotations

import html
import re
import unicodedata

from council.safety.untrusted import clean, inert

# Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Chinese, Japanese.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3041-\u30ff\u3100-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_ONE_UNSPACED = re.compile(f"[{_UNSPACED}]")
_SPACED_WORD = re.compile(f"[^\\s{_UNSPACED}]*[^\\W_{_UNSPACED}][^\\s{_UNSPACED}]*")
_HANGUL = range(0xAC00, 0xD7A4)  # particles follow a word without a space

_LINE_MARKS = re.compile(r"(?:\s|>)*(?:#{1,6}\s+|[-+*•]\s+(?:\[[ xX]\]\s+)?)?")
_NUMBER = re.compile(r"[0-9]{1,9}[.)]\s+")
_TABLE_RULE = re.compile(r"[\s|:+-]*-{3}[\s|:+-]*")
_TAG = re.compile(
    r"</?(?:b|i|u|s|em|strong|mark|small|sub|sup|code|kbd|q|blockquote|span|p|br|li|td|th|tr)\b[^<>]{0,200}>"
)
_LINK = re.compile(r"!?\[(?P<text>[^\[\]]{0,500})\]\([^()\s]{0,2000}(?:\s+\"[^\"]{0,200}\")?\)")
_FOOTNOTE = re.compile(r"\[\^[^\[\]\s]{1,100}\]")
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_EMPHASIS = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])|~~")
_HYPHENS = re.compile(r"--+")
_BETWEEN_UNSPACED = re.compile(f"(?<=[{_UNSPACED}]) +(?=[{_UNSPACED}])")

_REPLACED = {
    **dict.fromkeys("“”„‟«»「」『』﹁﹂﹃﹄｢｣〝〞〟＂", '"'),
    **dict.fromkeys("‘’‚‛‹›", "'"),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    **dict.fromkeys("*`", ""),
    "|": " ",
}


class _Spelling(dict[int, str]):
    """The spelling of each character; filled on first sight. They go one by one: to normalise a whole text takes time
    quadratic in the accents that follow one letter."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        spelled = _REPLACED.get(char)
        if spelled is None:
            spelled = char if code in _HANGUL else unicodedata.normalize("NFKD", char)
        self[code] = spelled
        return spelled


_SPELLING = _Spelling()


def plain_line(line: str, *, numbers: bool = False) -> str:
    """One line of clean text as it is compared. `numbers`: with one that it begins with, which may be that of an item, or
    the end of a sentence."""
    if "-" in line and _TABLE_RULE.fullmatch(line):
        return ""
    if "&" in line:
        line = html.unescape(line)
    if "<" in line:
        line = _TAG.sub(" ", line)
    marks = _LINE_MARKS.match(line)
    line = line[marks.end() :] if marks else line
    if not numbers and (number := _NUMBER.match(line)):
        line = line[number.end() :]
    if "[" in line:
        line = _FOOTNOTE.sub("", _LINK.sub(lambda found: found["text"], line))
    if "\\" in line:
        line = _ESCAPE.sub("", line)
    line = line.translate(_SPELLING)
    if "_" in line or "~" in line:
        line = _EMPHASIS.sub("", line)
    if "--" in line:
        line = _HYPHENS.sub("-", line)
    line = " ".join(line.split())
    return line if line.isascii() else _BETWEEN_UNSPACED.sub("", line)


def plain_lines(text: str, *, numbers: bool = False) -> tuple[str, list[int]]:
    """A text as it is compared, in one line, and where each line of it begins there; `numbers` as for `plain_line`."""
    pieces: list[str] = []
    starts: list[int] = []
    at = 0
    last = ""
    for line in inert(clean(text)).split("\n"):
        piece = plain_line(line, numbers=numbers)
        if piece and last and not (_ONE_UNSPACED.match(piece) and _ONE_UNSPACED.match(last)):
            pieces.append(" ")
            at += 1
        starts.append(at)
        if piece:
            pieces.append(piece)
            at += len(piece)
            last = piece[-1]
    return "".join(pieces), starts


def plain_text(text: str, *, numbers: bool = False) -> str:
    return plain_lines(text, numbers=numbers)[0]


def trimmed(piece: str) -> str:
    """The words without the punctuation that belongs to the sentence around a quotation."""
    return piece.strip(" .,;:!?'\"。、")


def at_least(plain: str, words: int, chars: int) -> bool:
    """True for a text of so many words, or so many characters of a script without spaces, or of both in proportion."""
    unspaced = len(_ONE_UNSPACED.findall(plain))
    spaced = len(_SPACED_WORD.findall(plain))
    return spaced / words + unspaced / chars >= 1


def is_word(char: str) -> bool:
    """True when a character is part of a word that spaces end."""
    return char.isalnum() and ord(char) not in _HANGUL and not _ONE_UNSPACED.match(char)


def find_words(text: str, piece: str, at: int, end: int | None = None) -> int:
    """The start of a piece in a plain text, whole words only; -1 if it stands nowhere. Its first letter may be of
    either case: a quotation within a sentence begins as the sentence wants it."""
    rest = piece[1:]
    first = {piece[0], piece[0].swapcase()}
    stop = len(text) if end is None else min(end, len(text))
    while True:
        if rest:
            at = text.find(rest, at + 1, stop) - 1
        else:
            at = min((place for char in first if (place := text.find(char, at, stop)) >= 0), default=-1)
        if at < 0:
            return -1
        if text[at] in first:
            last = at + len(piece) - 1
            rest_of_word = text[last + 1 : last + 2]
            cuts = at > 0 and is_word(text[at - 1]) and is_word(text[at])
            if rest_of_word:
                runs_on = is_word(rest_of_word) and is_word(text[last])
                cuts = cuts or bool(unicodedata.combining(rest_of_word)) or runs_on
            if not cuts:
                return at
        at += 1
