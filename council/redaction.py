"""Secrets that cannot be printed by accident, and the removal of secrets from any text that is kept, shown or sent.

A secret is known in two ways. Values that are registered here are found in the forms in which they travel: plain, Base64 at
every offset, hexadecimal. Any of these may be escaped for a URL, JSON, a program or HTML, once or twice, or broken over lines.
The other way: texts that look like a key of a known kind. Not found are unregistered values that look like nothing, and values
in an encoding of their own. Nor is the lesser half of a value cut in two.

Line breaks stay where they were, so that line numbers of a redacted text are those of the original.
"""

from __future__ import annotations

import base64
import html
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, quote_plus

import msgspec
from ahocorasick_rs import BytesAhoCorasick

from council.issued_keys import ISSUED_KEYS
from council.typed_json import decode_json

T = TypeVar("T")

MASK = "[secret]"
_MIN_LENGTH = 8  # shorter values would blank out ordinary words, as words themselves would
_WORD = re.compile(r"[A-Za-z]?[a-z]+(?:[ _-][a-z]+)*|[A-Z]+(?:[ _-][A-Z]+)*")
_MAX_WORD_LENGTH = 15
_BRIEF_BYTES = 16 << 10  # are searched sooner than a thread gets the interpreter back that it gave away


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

    def __getstate__(self) -> object:
        raise TypeError("a Secret has no state to show")


def is_recognisable(value: str) -> bool:
    """Tells whether redaction can tell a value from ordinary text: not one below 8 characters, nor a plain word."""
    return len(value) >= _MIN_LENGTH and not (len(value) <= _MAX_WORD_LENGTH and _WORD.fullmatch(value))


class _Needles:
    """Texts that are looked for in one pass, however many there are."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._automaton: BytesAhoCorasick | None = None  # made when it is needed first

    def __bool__(self) -> bool:
        return bool(self.texts)

    def any_in(self, text: str | bytes) -> bool:
        return bool(self.texts) and bool(self._found(text, overlapping=False))

    def in_(self, text: str) -> set[int]:
        """The places in `texts` of those that stand in the text."""
        return {place for place, _, _ in self._found(text, overlapping=True)}

    def _found(self, text: str | bytes, *, overlapping: bool) -> list[tuple[int, int, int]]:
        if self._automaton is None:
            self._automaton = BytesAhoCorasick([_utf8(needle) for needle in self.texts])
        data = _utf8(text) if isinstance(text, str) else text
        # Of `bytes` alone the search gives the interpreter away.
        searched = bytearray(data) if len(data) < _BRIEF_BYTES else data
        return self._automaton.find_matches_as_indexes(searched, overlapping=overlapping)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Redactor:
    """Replaces secrets in a text by `[secret]`: every registered one, and what looks like a key."""

    def __init__(self, secrets: list[Secret] | None = None) -> None:
        self._registering = threading.Lock()
        self._values: list[str] = []
        self._forms = _Needles(())
        self._disguised: list[tuple[_Reading, _Needles]] = []
        for secret in secrets or []:
            self.register(secret)

    def register(self, secret: Secret) -> None:
        """Knows `secret` from now on, in all its forms, if it is recognisable: else it would be found everywhere."""
        value = secret.reveal()
        with self._registering:  # each one builds on those before it
            if not is_recognisable(value) or value in self._values:
                return
            forms = sorted({*self._forms.texts, *_forms(value)}, key=len, reverse=True)
            self._forms = _Needles(forms)
            self._disguised = [
                (reading, self._forms if reading.glue is None else _Needles(reading.sought(forms)))
                for reading in _READINGS
            ]
            self._values.append(value)

    def redact(self, text: str) -> str:
        if self._forms:
            if self._forms.any_in(text):
                for form in self._forms.texts:
                    text = text.replace(form, _mask(form))
            for reading, forms in self._disguised:
                if any(mark in text for mark in reading.marks):
                    text = _without(forms, text, reading)
            text = self._without_cut(text)
        anchored = _ANCHORS.in_(text)
        for number in sorted({number for anchor in anchored for number in _ANCHORED[anchor]}):
            text = _PATTERNS[number].expression.sub(_masked, text)
        return text

    def redacted(self, value: T, type: type[T]) -> T:
        """`value` with every text in it redacted; the same object where none holds a secret. `type` is what it is as
        JSON."""
        return self.encoded(value, type)[0]

    def encoded(self, value: T, type: type[T]) -> tuple[T, bytes]:
        """The same as `redacted`, with the JSON of what is returned."""
        encoded = _encoder.encode(value)
        if not self._forms and not _ANCHORS.any_in(encoded):
            return value, encoded
        plain = decode_json(encoded)
        redacted = self.in_texts(plain)
        if redacted is plain:
            return value, encoded
        encoded = _encoder.encode(redacted)
        return decode_json(encoded, type), encoded

    def in_texts(self, value: Any) -> Any:
        """The same for plain JSON values, half of a pair of surrogates included."""
        texts: list[str] = []
        _gather(value, texts)
        whole = "\0".join(texts)  # in one go: most hold nothing
        if self.redact(whole) == whole:
            begins = any(_beginning(value) in whole for value in self._values)
            if not begins or all(self._without_cut(text) == text for text in texts):
                return value
        return self._in_each(value)

    def _in_each(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, list | tuple):
            return [self._in_each(item) for item in value]
        if isinstance(value, Mapping):
            return {self.redact(key): self._in_each(item) for key, item in value.items()}
        return value

    def _without_cut(self, text: str) -> str:
        """Masks also the greater half of a value, where the text ends in it."""
        end = len(text.rstrip(" .…"))
        for value in self._values:
            at = text.find(_beginning(value), max(0, end - len(value)))
            if at >= 0 and value.startswith(text[at:end]):
                return text[:at] + _mask(text[at:end]) + text[end:]
        return text


def _beginning(value: str) -> str:
    return value[: max(_MIN_LENGTH, len(value) // 2)]


def _gather(value: Any, texts: list[str]) -> None:
    """Adds the texts in a plain JSON value."""
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, list | tuple):
        for item in value:
            _gather(item, texts)
    elif isinstance(value, Mapping):
        texts += value
        for item in value.values():
            _gather(item, texts)


_encoder = msgspec.json.Encoder(order=None)


# --- known values -----------------------------------------------------------------------------------------------------


def _forms(value: str) -> Iterator[str]:
    """The value as it stands in texts, addresses, JSON, HTML, hexadecimal and Base64. Where escapes are a choice of the
    writer (`%2f`, `\\u002f`, `&#47;`) the text is read, see below."""
    data = value.encode("utf-8", "surrogatepass")
    yield value
    percent = quote(value, safe="", errors="replace")
    yield from (percent, quote(value, errors="replace"), quote_plus(value, errors="replace"))
    yield from (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], html.escape(value))
    for separator in ("", ":", " "):
        digits = data.hex(separator) if separator else data.hex()
        yield from (digits, digits.upper())
    # The same of the Base64 of any text that holds the value, for each of the three places where it may begin.
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + data).decode()
        first = (0, 2, 3)[offset]  # characters that also hold bits of what stands before
        last = len(encoded) - (0, 3, 2)[(len(data) + offset) % 3]  # … or after
        kept = encoded[first:last]
        if len(kept) >= _MIN_LENGTH:
            yield kept
            yield kept.replace("+", "-").replace("/", "_")


# --- a text read as something else ------------------------------------------------------------------------------------


class _Reading(NamedTuple):
    """A way to read a text: each match of `expression` stands for its `meaning`, and that is read `times` times. One
    of `marks` stands in every text that reads otherwise than it is written. `glue`: what stands for a line break, also
    in what is sought."""

    marks: str
    expression: re.Pattern[str]
    meaning: Callable[[re.Match[str]], str]
    times: int = 1
    glue: str | None = None

    def sought(self, forms: Sequence[str]) -> list[str]:
        """The `forms` as they stand in such a reading, where it has a `glue`."""
        joined = [self.expression.sub(self.glue or "", form) for form in forms if " " in form or not self.glue]
        return [form for form in joined if len(form) >= _MIN_LENGTH]

    def of(self, text: str) -> str:
        return self.expression.sub(self.meaning if self.glue is None else self.glue, text)

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """The place in `text` of each character of the reading."""
        start = 0
        for found in self.expression.finditer(text):
            yield from ((at, at + 1) for at in range(start, found.start()))
            yield from (found.span() for _ in self.meaning(found))
            start = found.end()
        yield from ((at, at + 1) for at in range(start, len(text)))


def _without(forms: _Needles, text: str, reading: _Reading) -> str:
    """`text` without what is one of `forms` where it is read so."""
    texts = [text]
    for _ in range(reading.times):
        texts.append(reading.of(texts[-1]))
        if texts[-1] == texts[-2]:
            return text
    read = texts.pop()
    if not forms.any_in(read):
        return text
    spans = [(at, at + 1) for at in range(len(text))]
    for written in texts:
        spans = [(spans[start][0], spans[end - 1][1]) for start, end in reading.spans(written)]
    found = [(at, at + len(form)) for form in forms.texts for at in _occurrences(form, read)]
    merged: list[tuple[int, int]] = []  # in order, those that touch as one
    for start, end in sorted((spans[first][0], spans[last - 1][1]) for first, last in found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    for start, end in reversed(merged):
        text = text[:start] + _mask(text[start:end]) + text[end:]
    return text


def _occurrences(form: str, text: str) -> Iterator[int]:
    at = text.find(form)  # no pattern: `re` would keep it, and it is a secret
    while at >= 0:
        yield at
        at = text.find(form, at + len(form))


# Each alternative begins with a letter of its own: so `re` passes over all others quickly.
_LINE_BREAK = re.compile(r"(?:\n|\r\n|\\n|\\r\\n)[ \t]*+")
_ESCAPE = re.compile(
    r"%(?:[0-7][0-9A-Fa-f]|[89A-Fa-f][0-9A-Fa-f](?:%[89A-Fa-f][0-9A-Fa-f]){0,3})"
    r"|\\(?:x[0-7][0-9A-Fa-f]|x[89A-Fa-f][0-9A-Fa-f](?:\\x[89A-Fa-f][0-9A-Fa-f]){0,3}"
    r"|u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[\\\"'/nrt])"
    r"|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}


def _unescaped(found: re.Match[str]) -> str:
    """Returns at least one character, so that its place is known."""
    escape = found.group()
    if escape[0] == "&":
        return html.unescape(escape)
    if escape[0] == "%" or escape[1] == "x":
        return bytes.fromhex(escape.replace("%", "").replace("\\x", "")).decode("utf-8", "replace")
    if escape[1] == "u":
        units = bytes.fromhex(escape.replace("\\u", ""))
        return units.decode("utf-16-be", "replace")
    return _CONTROLS.get(escape[1], escape[1])


_READINGS = (
    _Reading("\n\\", _LINE_BREAK, lambda found: "", glue=""),
    _Reading("\n\\", _LINE_BREAK, lambda found: " ", glue=" "),
    _Reading("%\\&", _ESCAPE, _unescaped),
    _Reading("%\\&", _ESCAPE, _unescaped, times=2),
)


# --- what looks like a key --------------------------------------------------------------------------------------------


class _Pattern:
    """`anchors`: one of these stands in every text that fits. Where `expression` has a group `key` or `bare`, that alone goes."""

    def __init__(self, expression: str, *anchors: str) -> None:
        self.expression = re.compile(expression)
        self.anchors = anchors


_ODD_CASES = {"i": "İı", "k": "\u212a", "s": "ſ"}  # what a letter stands for as well where case is ignored


def _one_of(letters: str) -> str:
    """Any of these in either case: `re` tests a class several times as fast as it ignores case."""
    return f"[{letters}{letters.upper()}{''.join(_ODD_CASES.get(letter, '') for letter in letters)}]"


_B = r"(?<![A-Za-z0-9])"  # a key is no part of a longer word; in a path it may follow - or _
_WITH_DIGIT = r"(?=[A-Za-z_./+~=-]{0,200}[0-9])"  # a placeholder or a name has none
_E = r"(?![A-Za-z0-9_-])"
# Names of what nobody should read, in assignments and settings.
_NAME = (
    r"passw(?:or[dt])?|kennwort|contrase[ñn]a|mot de passe|passphrase|(?:\b|_)(?:pwd|pass|psk)(?![A-Za-z])"
    r"|client[ _-]?secret|(?:api|secret|account|private|signing|encryption)[ _-]?key|(?:access|auth|api|refresh|bot)[_-]?token"
)
_NAME_BEGINS = f"(?={_one_of('_abcekmprs')}{_one_of('aceilnoprsuw')}{_one_of('acdfgiknstw')})"  # passed over quickly
_LONG_NAME = r"token|[_-]key|[a-z]Key|_auth|\"auth|[_-]pat"  # of keys, and of much else: only a long value is one
_LONG_NAME_BEGINS = f"(?=.{_one_of('akop')}{_one_of('aeku')}{_one_of('ety')})"
_ASSIGNS = r"(?:\\?[\"'`])?(?: is)?[ \t]{0,3}(?::=|=>|[:=])[ \t]{0,3}"
_NO_PLACEHOLDER = (
    r"(?!\[secret\]|[$<{%…*]|(?i:your|example|change|placeholder|xxx|env|none|null|true|false|test|https?:))"
)
_BARE = rf"(?P<bare>{_NO_PLACEHOLDER}(?=[^\s\"'`<>,;()\[\]]{{0,200}}[0-9!@#$%^&*+~?])[^\s\"'`<>,;()\[\]{{}}]{{6,200}})"
_PATTERNS = (
    _Pattern(
        r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----(?>(?:[^-]|-(?!----)){0,40000})-----END [A-Z0-9 ]{1,60}-----",
        "PRIVATE KEY",
    ),
    _Pattern(
        r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
        r"(?>(?:\s|\\[nr])*)(?>(?:[A-Za-z0-9+/=]{16,}+(?>(?:\s|\\[nr])*))+)",
        "PRIVATE KEY",
    ),
    *(
        _Pattern(
            rf"{re.escape(prefix)}(?<![A-Za-z0-9]{re.escape(prefix)})"  # the prefix first: so `re` passes quickly to it
            rf"(?=[^0-9\s]{{0,60}}[0-9])[{alphabet}]{{{least},{most}}}(?![{alphabet.replace('.', '')}])",
            prefix,
        )
        for prefix, alphabet, least, most in ISSUED_KEYS
    ),
    _Pattern(rf"{_B}(?:hf_|api_org_)[A-Za-z]{{34}}{_E}", "hf_", "api_org_"),  # letters alone
    _Pattern(rf"pat(?<![A-Za-z0-9]pat)[A-Za-z0-9]{{14}}\.[0-9a-f]{{64}}{_E}", "pat"),
    _Pattern(rf"{_B}[12]/[0-9]{{16}}/[0-9]{{16}}:[0-9a-f]{{32}}{_E}", "1/", "2/"),
    _Pattern(rf"{_B}pk_[0-9]{{6,10}}_[A-Z0-9]{{32}}{_E}", "pk_"),
    _Pattern(rf"{_B}[0-9a-f]{{36}}NRAL{_E}", "NRAL"),
    _Pattern(r"Private-Lines: [0-9]{1,4}(?P<key>(?:\r?\n[A-Za-z0-9+/=]{1,80}){1,200})", "Private-Lines: "),
    _Pattern(rf"{_B}sk-{_WITH_DIGIT}[A-Za-z0-9_-]{{20,200}}", "sk-"),
    _Pattern(
        r"(?i:aws_secret_access_key|secretaccesskey)[\"' \t\\]{0,4}[:=][\"' \t\\]{0,4}"
        r"(?P<key>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
        "aws_secret_access_key",
        "AWS_SECRET_ACCESS_KEY",
        "SecretAccessKey",
        "secretAccessKey",
    ),
    _Pattern(rf"{_B}SG\.[A-Za-z0-9_-]{{16,64}}\.[A-Za-z0-9_-]{{16,100}}", "SG."),
    _Pattern(rf"{_B}[0-9a-f]{{32}}-us[0-9]{{1,2}}{_E}", "-us"),
    _Pattern(rf"{_B}[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}:fx{_E}", ":fx"),
    _Pattern(rf"{_B}re_[A-Za-z0-9]{{8}}_[A-Za-z0-9]{{24}}{_E}", "re_"),
    _Pattern(rf"{_B}[0-9]{{8,10}}:AA[A-Za-z0-9_-]{{33}}{_E}", ":AA"),
    _Pattern(
        rf"{_B}[MNO][A-Za-z0-9_-]{{23,25}}\.[CDGXYZ][A-Za-z0-9_-]{{5}}\.[A-Za-z0-9_-]{{27,38}}{_E}",
        ".C", ".D", ".G", ".X", ".Y", ".Z",
    ),
    _Pattern(rf"{_B}[A-Za-z0-9]{{14}}\.atlasv1\.[A-Za-z0-9_=-]{{60,70}}", ".atlasv1."),
    _Pattern(r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])", "Q~"),
    _Pattern(r"(?i:accountkey|sharedaccesskey)=(?P<key>[A-Za-z0-9+/]{40,88}={1,2})", "Key=", "key="),
    _Pattern(r"[?&]sig=(?P<key>[A-Za-z0-9%+/]{40,60}=?)", "sig="),
    _Pattern(r"discord(?:app)?\.com/api/webhooks/(?P<key>[0-9]{17,20}/[A-Za-z0-9_-]{60,70})", "/api/webhooks/"),
    _Pattern(rf"{_B}eyJ[A-Za-z0-9_-]{{8,4000}}\.eyJ[A-Za-z0-9_-]{{8,8000}}\.[A-Za-z0-9_-]{{8,4000}}", "eyJ"),
    _Pattern(
        rf"(?i:\b(?:bearer|basic|authorization: token))[ \t]+(?P<key>{_WITH_DIGIT}[A-Za-z0-9._~+/-]{{20,4000}}={{0,2}})",
        "Bearer", "bearer", "BEARER", "Basic", "basic", "uthorization: ",
    ),
    _Pattern(
        rf"{_NAME_BEGINS}(?i:{_NAME})[A-Za-z0-9_-]{{0,20}}{_ASSIGNS}"
        rf"(?:(?P<quote>\\?[\"'])(?P<key>{_NO_PLACEHOLDER}[^\s\"'\\]{{6,200}})(?P=quote)|{_BARE})",
        "assw", "ASSW", "wort", "WORT", "wd", "WD", "ontrase", "ONTRASE", "psk", "PSK", "phrase", "PHRASE", "ecret", "ECRET",
        "key", "Key", "KEY", "oken", "OKEN",
        *(f"{word}{sign}" for word in ("pass", "Pass", "PASS") for sign in "0123456789_-\\\"'` \t:=eEpPwW"),  # no passage
    ),
    _Pattern(rf"{_one_of('s')}(?i:ecret(?:_key_base)?)(?![A-Za-z0-9_-]){_ASSIGNS}(?:\\?[\"'])?{_BARE}", "ecret", "ECRET"),
    _Pattern(rf"--(?i:{_NAME})[ \t]+{_BARE}", "--"),
    _Pattern(
        rf"(?i:passphrase){_ASSIGNS}(?P<quote>[\"'])(?P<key>{_NO_PLACEHOLDER}[^\"'\n]{{8,200}})(?P=quote)", "phrase", "PHRASE"
    ),
    _Pattern(
        rf"{_LONG_NAME_BEGINS}(?i:{_LONG_NAME}){_ASSIGNS}(?:\\?[\"'])?(?P<key>[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}"
        r"|(?=(?:[A-Za-z+/=]{0,80}[0-9]){4})(?=[0-9+/=]{0,40}[A-Za-z])[A-Za-z0-9+/=]{20,400})",
        "oken", "OKEN", "key", "KEY", "Key", "_auth", "_AUTH", "\"auth", "_pat", "-pat", "_PAT", "-PAT",
    ),
    _Pattern(r"(?<![\w-])(?:-u|--user)[ =][^\s:\"']{1,64}:(?P<key>[^\s\"'@]{6,128})", "-u ", "--user"),
    _Pattern(r"\blogin [^\s]{1,64}\s{1,4}password (?P<key>[^\s]{4,128})", "login "),
    _Pattern(r"://[^\s/:@\"'<>]{0,64}:(?P<key>[^\s/@\"'<>]{3,128})@", "://"),
)  # fmt: skip

_ANCHORS = _Needles(sorted({anchor for pattern in _PATTERNS for anchor in pattern.anchors}))
_ANCHORED = [  # the numbers of the patterns that each anchor belongs to
    [number for number, pattern in enumerate(_PATTERNS) if anchor in pattern.anchors] for anchor in _ANCHORS.texts
]


def _masked(match: re.Match[str]) -> str:
    found = match.group()
    name = next((name for name in ("key", "bare") if name in match.re.groupindex and match[name]), None)
    if name is None:
        return _mask(found)
    start, end = (at - match.start() for at in match.span(name))
    return found[:start] + _mask(found[start:end]) + found[end:]


def _mask(found: str) -> str:
    """The mask, with as many line breaks as what it stands for."""
    return MASK + "\n" * found.count("\n")
