"""Texts inside a text: what stands there in percent, entity, escape, hexadecimal, Base64 or tag characters.

For recognising a request that an agent decodes and repeats. Finds the usual spellings, one inside another once; what a
cipher or a translation hides it does not find. Time is linear in the text.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Iterator
from urllib.parse import unquote_plus

_DEPTH = 2  # one encoding inside another
_MIN_TOKEN = 16  # bytes below which nothing that is encoded can hold a request
_TAGS = {code: code - 0xE0000 for code in range(0xE0020, 0xE007F)}
_ESCAPE = re.compile(r"\\(?:u\{?([0-9A-Fa-f]{4,5})\}?|x([0-9A-Fa-f]{2}))")
_HEX = re.compile(r"(?:(?:\\x|0x)?[0-9A-Fa-f]{2}[\s:,-]{0,2}){16,}+")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{22,}+(?:[ \t>]*\r?\n[ \t>]*[A-Za-z0-9+/_-]{8,}+)*+")
_NOT_HEX = re.compile(r"\\x|0x|[^0-9A-Fa-f]")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]")
_URL_ALPHABET = str.maketrans("-_", "+/")


def decodings(text: str) -> list[str]:
    """Other readings of `text` or of stretches of it, in no particular order; empty for plain prose."""
    found: dict[str, None] = {}
    latest = [text]
    for _ in range(_DEPTH):
        latest = [read for known in latest for read in _once(known) if read != known and read not in found]
        found.update(dict.fromkeys(latest))
    return list(found)


def _once(text: str) -> Iterator[str]:
    if not text.isascii():
        yield text.translate(_TAGS)
    if "%" in text:
        yield unquote_plus(text, errors="replace")
    if "&" in text:
        yield html.unescape(text)
    if "\\" in text:
        yield _ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text)
    stretches = [_of_hex(match.group()) for match in _HEX.finditer(text)]
    stretches += [_of_base64(match.group()) for match in _BASE64.finditer(text)]
    joined = "\n".join(filter(None, stretches))
    if joined:
        yield joined


def _of_hex(stretch: str) -> str:
    digits = _NOT_HEX.sub("", stretch)
    return bytes.fromhex(digits[: len(digits) // 2 * 2]).decode("utf-8", "ignore")


def _of_base64(stretch: str) -> str:
    """What the stretch decodes to, wherever in it the encoding begins (a word may stand right before it)."""
    letters = _NOT_BASE64.sub("", stretch.translate(_URL_ALPHABET))
    read = []
    for start in range(4):
        rest = letters[start:]
        try:
            data = base64.b64decode(rest + "=" * (-len(rest) % 4) if len(rest) % 4 != 1 else rest[:-1])
        except binascii.Error:
            continue
        if len(data) >= _MIN_TOKEN:
            read.append(data.decode("utf-8", "ignore"))
    return "\n".join(read)
