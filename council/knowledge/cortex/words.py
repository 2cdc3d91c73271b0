"""Makes text searchable before the engine sees it: one spelling, split identifiers, pairs for scripts without spaces.
Pure; the same for documents and for questions."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"[A-Za-z0-9]+")  # each character is looked at once: a line of base64 may be a million of them
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MAX_IDENTIFIER_CHARS = 80
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]{2,}")

# Left out of questions, not of documents: they cost time and say nothing.
_STOP_WORDS = (
    "a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my "
    "no not of on or our should so such that the their then there these they this to us was we were what when where "
    "which who whom whose why will with would you your"
)
STOP_WORDS: list[str] = re.findall(r"[a-z]+", _STOP_WORDS)


def searchable(text: str) -> str:
    """`text` in one normal form, followed by the words that stand inside its words: `ConfinedRoot` also as `Confined
    Root`, `日本語` also as `日本 本語`."""
    normal = unicodedata.normalize("NFKC", text)
    extra: list[str] = []
    for word in _WORD.findall(normal):
        if len(word) <= _MAX_IDENTIFIER_CHARS and _HUMP.search(word):
            extra += _CAMEL_PART.findall(word)
    for match in _UNSPACED.finditer(normal):
        extra += [match[0][index : index + 2] for index in range(len(match[0]) - 1)]
    return f"{normal}\n{' '.join(extra)}" if extra else normal
