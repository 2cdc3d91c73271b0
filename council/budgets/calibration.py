"""Tokens of a text: learnt from what providers count."""

from __future__ import annotations

import logging

import msgspec

from council.errors import StorageFailed
from council.storage.marks import mark, set_mark
from council.storage.store import Store

log = logging.getLogger(__name__)

_MARK = "calibration"

_FIRST_CHARS_PER_TOKEN = 3.0  # the safe side before anything is measured: prose has four to five, code three
_CALIBRATION_WEIGHT = 0.2  # of each new measurement: a few calls settle it, one odd one does not upset it
_LEAST_CHARS_PER_TOKEN, _MOST_CHARS_PER_TOKEN = 1.0, 8.0  # beyond them a count is none of the text
_MARGIN = 1.15  # estimates are a little high: a reservation that is too small would break the promise


class Calibration:
    """Characters per token, per model, learnt from what providers count, and remembered."""

    def __init__(self, store: Store) -> None:
        """Raises StorageFailed."""
        self._store = store
        learnt = msgspec.json.decode(mark(store, _MARK) or "{}", type=dict[str, float])
        self._chars_per_token = {model: _plausible(value) for model, value in learnt.items()}

    def tokens(self, model: str, chars: int) -> int:
        """The most tokens that `chars` characters are, as far as is known."""
        per_token = self._chars_per_token.get(model, _FIRST_CHARS_PER_TOKEN)
        return int(chars / per_token * _MARGIN) + 1

    def chars(self, model: str, tokens: int) -> int:
        """The most characters that fit into `tokens` tokens, by the same estimate."""
        per_token = self._chars_per_token.get(model, _FIRST_CHARS_PER_TOKEN)
        return int(max(0, tokens - 1) * per_token / _MARGIN)

    def learn(self, model: str, chars: int, tokens: int) -> None:
        if tokens <= 0 or chars <= 0:
            return
        measured = chars / tokens
        known = self._chars_per_token.get(model)
        value = measured if known is None else known + _CALIBRATION_WEIGHT * (measured - known)
        self._chars_per_token[model] = _plausible(value)

    def save(self) -> None:
        """A failure is only logged: the next start estimates on the safe side again."""
        try:
            set_mark(self._store, _MARK, msgspec.json.encode(self._chars_per_token).decode())
        except StorageFailed as error:
            log.warning("what was learnt of tokens is not kept: %s", error)


def _plausible(chars_per_token: float) -> float:
    return min(_MOST_CHARS_PER_TOKEN, max(_LEAST_CHARS_PER_TOKEN, chars_per_token))
