"""Identifiers, canonical JSON, hashes, the clock. No I/O besides reading the clock and the system's randomness."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Literal, Protocol

# Characters that show nothing, or turn or steer what is shown: the inside of a class for `re`. No C0 controls.
UNSEEN = (
    "\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSEEN = re.compile(f"[{UNSEEN}]")
SLUG_CHARS = 60
TO_THE_MINUTE, TO_THE_SECOND = "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"
_TIMESTAMP = re.compile(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?Z")
_ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base 32: no i, l, o, u to misread


class Clock(Protocol):
    """Wall and monotonic time, so that a test can hold them."""

    def now(self) -> datetime: ...

    def monotonic_s(self) -> float: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        return time.monotonic()


@dataclass(frozen=True)
class Principal:
    """The one who asks. A command file owned by the home's owner or the daemon's own uid acts as the steward."""

    id: str
    kind: Literal["steward", "administrator", "user", "player", "service"]

    @property
    def is_administrator(self) -> bool:
        """True for the steward, too."""
        return self.kind in ("steward", "administrator")

    @property
    def sees(self) -> str | None:
        """The one whose runs and plans this one sees; None for everybody's."""
        return None if self.is_administrator else self.id


STEWARD = Principal("steward", "steward")


def new_run_id(now: datetime) -> str:
    """`20261120-225413-k3f9x2ab`: sorts by time, to 31 µs, and reads aloud; 25 random bits tell a crowd apart."""
    bits = (now.microsecond << 15) // 1_000_000 << 25 | secrets.randbits(25)
    tail = "".join(_ID_ALPHABET[bits >> shift & 31] for shift in range(35, -1, -5))
    date, _, time_of_day = timestamp(now).removesuffix("Z").partition("T")
    return f"{date.replace('-', '')}-{time_of_day.replace(':', '')}-{tail}"


def timestamp(moment: datetime) -> str:
    """UTC, to the second, as RFC 3339 writes it: `2026-11-20T22:54:13Z`."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def timestamp_of(ms: int) -> str:
    """Milliseconds since the epoch as `timestamp` writes them."""
    return timestamp(datetime.fromtimestamp(ms / 1000, UTC))


def local_times(text: str, zone: tzinfo | None, form: str = TO_THE_MINUTE) -> str:
    """The text with its timestamps as a person reads them, in that zone: `2026-11-20 23:54`. None is the machine's."""

    def local(found: re.Match[str]) -> str:
        try:
            return f"{datetime.fromisoformat(found.group()).astimezone(zone):{form}}"
        except (ValueError, OverflowError):  # digits that are no time
            return found.group()

    return _TIMESTAMP.sub(local, text)


def whole_duration(seconds: float) -> str:
    """Spells a duration to the second, above an hour to the minute: `12 s`, `2 min 38 s`, `3 h 05 min`."""
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min"


def epoch_ms(clock: Clock) -> int:
    """Milliseconds since the epoch."""
    return int(clock.now().timestamp() * 1000)


def canonical_json(value: object) -> bytes:
    """One spelling per value: sorted keys, no spaces, UTF-8 unescaped, no NaN. Raises ValueError or TypeError."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def readable_json(value: object, *, indent: int | None = None) -> str:
    """JSON for people and programs alike: other scripts as they are, what shows nothing or steers a terminal escaped. Raises
    ValueError or TypeError."""
    return escape_unseen(json.dumps(value, indent=indent, ensure_ascii=False))


def escape_unseen(encoded: str) -> str:
    """JSON with its invisible, directional and control characters as escapes; a program reads the same value."""
    return encoded if encoded.isascii() else _UNSEEN.sub(lambda match: json.dumps(match.group())[1:-1], encoded)


def sha256_hex(data: bytes | str) -> str:
    return hashlib.sha256(data.encode("utf-8") if isinstance(data, str) else data).hexdigest()


def slugify(text: str, *, max_chars: int = SLUG_CHARS) -> str:
    """ASCII words joined by hyphens, never empty: what a file of that title is called."""
    words: list[str] = []
    current = ""
    for char in _folded(text):
        if char.isascii() and char.isalnum():
            current += char
        elif current:
            words.append(current)
            current = ""
    if current:
        words.append(current)
    slug = ""
    for word in words:
        grown = f"{slug}-{word}" if slug else word[:max_chars]
        if len(grown) > max_chars:
            break
        slug = grown
    return slug or "decision"


def distinct_slug(text: str) -> str:
    """A slug; where it leaves out some of the text, with four digits that tell it from the slug of another text."""
    slug, folded = slugify(text), _folded(text)
    is_latin = all(char.isascii() for char in folded if char.isalnum())
    if is_latin and slug == slugify(text, max_chars=len(folded) + 1):
        return slug
    return f"{slug}-{int(sha256_hex(text)[:8], 16) % 10_000:04}"


def _folded(text: str) -> str:
    """In lower case, its letters without their marks."""
    return "".join(char for char in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(char))
