"""Secrets that cannot be printed by accident, and the removal of secrets from any text that is kept, shown or sent.

Two ways to know one: values that are registered here, in the forms in which they travel (plain, URL, Base64 at every
offset, hexadecimal, escaped in JSON or HTML), and texts that look like a key of a known kind. Does not find a value that
nobody registered and that looks like nothing, one cut in two, or one in an encoding of its own.

Line breaks stay where they were, so that line numbers of a redacted text are those of the original.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

import msgspec
from ahocorasick_rs import BytesAhoCorasick

T = TypeVar("T")

MASK = "[secret]"
_MIN_LENGTH = 8  # shorter values would blank out ordinary words


class Secret:
    """A value that shows only as `[secret]`; `reveal()` gives it to the one place that uses it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return MASK

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a Secret cannot be pickled or copied")


class Redactor:
    """Replaces secrets in a text by `[secret]`: every registered one, and what looks like a key."""

    def __init__(self, secrets: list[Secret] | None = None) -> None:
        self._forms: list[str] = []
        self._needles: BytesAhoCorasick | None = None  # finds all at once, however many there are; made when needed
        for secret in secrets or []:
            self.register(secret)

    def register(self, secret: Secret) -> None:
        """From now on `secret` is known, in all its forms. A value below 8 characters is not: it would be found
        everywhere."""
        value = secret.reveal()
        if len(value) >= _MIN_LENGTH:
            self._forms = sorted({*self._forms, *_forms(value)}, key=len, reverse=True)
            self._needles = None

    def redact(self, text: str) -> str:
        if not self._may_hold_one(text.encode("utf-8", "surrogatepass")):
            return text
        for form in self._forms:
            if form in text:
                text = text.replace(form, _mask(form))
        for pattern in _PATTERNS:
            if any(anchor in text for anchor in pattern.anchors):
                text = pattern.expression.sub(_masked, text)
        return text

    def redacted(self, value: T, type: type[T]) -> T:
        """`value` with every text in it redacted; the same object where none holds a secret. `type` is what it is as
        JSON."""
        return self.encoded(value, type)[0]

    def encoded(self, value: T, type: type[T]) -> tuple[T, bytes]:
        """As `redacted`, with the JSON of what is returned."""
        encoded = _encoder.encode(value)
        if not self._may_hold_one(encoded) or self.redact(whole := encoded.decode()) == whole:
            return value, encoded
        encoded = _encoder.encode(self._in_texts(msgspec.json.decode(encoded)))
        return msgspec.json.decode(encoded, type=type), encoded

    def in_texts(self, value: Any) -> Any:
        """The same for plain JSON values."""
        return self.redacted(value, Any)

    def _may_hold_one(self, text: bytes) -> bool:
        if self._needles is None:
            forms = (form.encode("utf-8", "surrogatepass") for form in self._forms)
            self._needles = BytesAhoCorasick([*_ANCHORS, *forms])
        return bool(self._needles.find_matches_as_indexes(text))

    def _in_texts(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, list):
            return [self._in_texts(item) for item in value]
        if isinstance(value, dict):
            return {self.redact(key): self._in_texts(item) for key, item in value.items()}
        return value


_encoder = msgspec.json.Encoder(order=None)


# --- known values -----------------------------------------------------------------------------------------------------


def _forms(value: str) -> Iterator[str]:
    """The value as it stands in texts, addresses, JSON, HTML, hexadecimal and Base64."""
    data = value.encode("utf-8", "surrogatepass")
    yield value
    percent = quote(value, safe="", errors="replace")
    yield from (percent, percent.lower(), quote(value, errors="replace"), quote_plus(value, errors="replace"))
    yield "".join(f"%{byte:02X}" for byte in data)
    yield "".join(f"%{byte:02x}" for byte in data)
    yield from (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], html.escape(value))
    yield from (data.hex(), data.hex().upper())
    yield from _base64_forms(data)


def _base64_forms(data: bytes) -> Iterator[str]:
    """What is the same of the Base64 of any text that holds `data`, for each of the three places where it may begin."""
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + data).decode()
        first = (0, 2, 3)[offset]  # characters that also hold bits of what stands before
        last = len(encoded) - (0, 3, 2)[(len(data) + offset) % 3]  # … or after
        kept = encoded[first:last]
        if len(kept) >= _MIN_LENGTH:
            yield kept
            yield kept.replace("+", "-").replace("/", "_")


# --- what looks like a key --------------------------------------------------------------------------------------------


class _Pattern(msgspec.Struct, frozen=True):
    """`anchors`: one of these stands in every text that fits. Where `expression` has a group `key`, that alone goes."""

    anchors: tuple[str, ...]
    expression: re.Pattern[str]


def _pattern(expression: str, *anchors: str, flags: int = 0) -> _Pattern:
    return _Pattern(anchors, re.compile(expression, flags))


_B = r"(?<![A-Za-z0-9_-])"  # a key is no part of a longer word
_WITH_DIGIT = r"(?=[A-Za-z_./+~=-]*[0-9])"  # a placeholder or a name has none
_PATTERNS = (
    _pattern(
        r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,40000}+-----END [A-Z0-9 ]{1,60}-----",
        "PRIVATE KEY",
    ),
    _pattern(
        r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----(?:\s|\\[nr])*+(?:[A-Za-z0-9+/=]{16,}+(?:\s|\\[nr])*+)++",
        "PRIVATE KEY",
    ),
    _pattern(rf"{_B}AIza[0-9A-Za-z_-]{{35}}", "AIza"),
    _pattern(rf"{_B}sk-{_WITH_DIGIT}[A-Za-z0-9_-]{{20,200}}", "sk-"),
    _pattern(rf"{_B}[sr]k_(?:live|test)_[0-9A-Za-z]{{16,200}}", "k_live_", "k_test_"),
    _pattern(rf"{_B}gh[pousr]_[A-Za-z0-9]{{30,255}}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _pattern(rf"{_B}github_pat_[A-Za-z0-9_]{{40,255}}", "github_pat_"),
    _pattern(rf"{_B}glpat-[A-Za-z0-9_-]{{20,100}}", "glpat-"),
    _pattern(rf"{_B}xox[abeoprs]-{_WITH_DIGIT}[A-Za-z0-9-]{{10,250}}", "xox"),
    _pattern(rf"{_B}(?:AKIA|ASIA)[A-Z0-9]{{16}}(?![A-Za-z0-9])", "AKIA", "ASIA"),
    _pattern(
        r"(?i:aws_secret_access_key|secretaccesskey)[\"' \t\\]{0,4}[:=][\"' \t\\]{0,4}"
        r"(?P<key>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
        "aws_secret_access_key",
        "AWS_SECRET_ACCESS_KEY",
        "SecretAccessKey",
        "secretAccessKey",
    ),
    _pattern(rf"{_B}(?:hf|gsk|r8|npm|lev)_{_WITH_DIGIT}[A-Za-z0-9_-]{{30,200}}", "hf_", "gsk_", "r8_", "npm_", "lev_"),
    _pattern(rf"{_B}xai-{_WITH_DIGIT}[A-Za-z0-9]{{40,200}}", "xai-"),
    _pattern(rf"{_B}pypi-[A-Za-z0-9_-]{{50,500}}", "pypi-"),
    _pattern(rf"{_B}SG\.[A-Za-z0-9_-]{{16,64}}\.[A-Za-z0-9_-]{{16,100}}", "SG."),
    _pattern(rf"{_B}AGE-SECRET-KEY-1[0-9A-Z]{{58}}", "AGE-SECRET-KEY-1"),
    _pattern(rf"{_B}eyJ[A-Za-z0-9_-]{{8,4000}}\.eyJ[A-Za-z0-9_-]{{8,8000}}\.[A-Za-z0-9_-]{{8,4000}}", "eyJ"),
    _pattern(
        rf"(?i:\b(?:bearer|basic))[ \t]+(?P<key>{_WITH_DIGIT}[A-Za-z0-9._~+/-]{{20,4000}}={{0,2}})",
        "Bearer", "bearer", "BEARER", "Basic", "basic",
    ),
    _pattern(r"://[^\s/:@\"'<>]{1,64}:(?P<key>[^\s/@\"'<>]{3,128})@", "://"),
)  # fmt: skip

_ANCHORS = tuple({anchor.encode() for pattern in _PATTERNS for anchor in pattern.anchors})


def _masked(match: re.Match[str]) -> str:
    found = match.group()
    if "key" not in match.re.groupindex:
        return _mask(found)
    start, end = (at - match.start() for at in match.span("key"))
    return found[:start] + _mask(found[start:end]) + found[end:]


def _mask(found: str) -> str:
    """With as many line breaks as what it stands for."""
    return MASK + "\n" * found.count("\n")
