"""Secrets that cannot be printed by accident, and the removal of known secret values from any text that leaves.

Does not guess: only values registered here are removed, as they are and as URLs, JSON, Base64 and hex spell them.
"""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

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
    """Replaces every registered secret in a text by `[secret]`."""

    def __init__(self, secrets: list[Secret] | None = None) -> None:
        self._forms: list[str] = []
        for secret in secrets or []:
            self.register(secret)

    def register(self, secret: Secret) -> None:
        value = secret.reveal()
        if len(value) < _MIN_LENGTH:
            return
        encoded = value.encode("utf-8", "surrogatepass")
        forms = {value, quote(value, safe=""), quote_plus(value, safe="")}
        forms |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
        forms |= {encoded.hex(), encoded.hex().upper()}
        forms |= {encode(encoded).decode().rstrip("=") for encode in (base64.b64encode, base64.urlsafe_b64encode)}
        self._forms = sorted({*self._forms, *forms}, key=len, reverse=True)

    def redact(self, text: str) -> str:
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        return text
