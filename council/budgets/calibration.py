"""How many tokens a text has: learnt from what providers count."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

log = logging.getLogger(__name__)

_FIRST_CHARS_PER_TOKEN = 3.0  # the safe side before anything is measured: prose has four to five, code three
_CALIBRATION_WEIGHT = 0.2  # of each new measurement: a few calls settle it, one odd one does not upset it
_LEAST_CHARS_PER_TOKEN, _MOST_CHARS_PER_TOKEN = 1.0, 8.0  # beyond them a count is none of the text
_MARGIN = 1.15  # estimates are a little high: a reservation that is too small would break the promise


class Calibration:
    """Characters per token, per model, learnt from what providers count; kept in one small file."""

    def __init__(self, path: Path) -> None:
        """A file that cannot be read is said so in the log, and learnt anew."""
        self._path = path
        self._chars_per_token: dict[str, float] = {}
        try:
            learnt = msgspec.json.decode(path.read_bytes(), type=dict[str, float])
            self._chars_per_token = {model: _plausible(value) for model, value in learnt.items()}
        except FileNotFoundError:
            pass
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("estimates begin anew, on the safe side: %s cannot be read (%s)", path.name, error)

    def tokens(self, model: str, chars: int) -> int:
        """How many tokens `chars` characters are at most, as far as is known."""
        per_token = self._chars_per_token.get(model, _FIRST_CHARS_PER_TOKEN)
        return int(chars / per_token * _MARGIN) + 1

    def chars(self, model: str, tokens: int) -> int:
        """How many characters are at most `tokens` tokens, by the same estimate."""
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
        from council.storage.files import write_atomic

        write_atomic(self._path, msgspec.json.encode(self._chars_per_token), sync=False)


def _plausible(chars_per_token: float) -> float:
    return min(_MOST_CHARS_PER_TOKEN, max(_LEAST_CHARS_PER_TOKEN, chars_per_token))
