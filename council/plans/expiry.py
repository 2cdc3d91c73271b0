"""The times of a plan: how long a confirmation and an undo may wait, and its state at a moment. Pure."""

from __future__ import annotations

from typing import Literal

State = Literal["draft", "confirmed", "applied", "undone", "rejected", "expired", "superseded", "failed"]
CONFIRMED_MS = 600_000  # ten minutes between a confirmation and its apply: the person still knows what it was about
UNDO_MS = 600_000  # later, others have built on what was applied


def state_at(at_ms: int, stored: State, expires_ms: int, confirmed_ms: int | None, handed_ms: int | None) -> State:
    """The state of a plan at a moment. A confirmation that was not used in time is a draft again, an old draft has expired. A
    confirmed plan that was handed to its run stays confirmed."""
    if stored == "confirmed" and (handed_ms is not None or at_ms <= (confirmed_ms or 0) + CONFIRMED_MS):
        return "confirmed"
    if stored in ("draft", "confirmed"):
        return "draft" if at_ms <= expires_ms else "expired"
    return stored
