"""Changes of mind: who left a position, and which new evidence explains it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from council.deliberation.stance import Stance
from council.deliberation.transcript import Transcript, Turn


@dataclass(frozen=True)
class Flip:
    """`evidence` are the ids it names that were new to the agent; empty: unexplained."""

    role: str
    round: int
    before: Stance
    after: Stance
    evidence: tuple[str, ...]


def flips(transcript: Transcript) -> list[Flip]:
    return [flip for flip in _moves(transcript) if flip.before.key != flip.after.key]


def unexplained(transcript: Transcript) -> set[str]:
    """The roles that hold a position by a change that new evidence explains neither then nor since."""
    roles: set[str] = set()
    for move in _moves(transcript):
        if move.evidence:
            roles.discard(move.role)
        elif move.before.key != move.after.key:
            roles.add(move.role)
    return roles


def _moves(transcript: Transcript) -> Iterator[Flip]:
    known = {item.id for item in transcript.inputs if item.id}
    last: dict[str, tuple[Stance, frozenset[str]]] = {}  # each agent's last stance, and what was issued by then
    for entry in transcript.entries:
        if not isinstance(entry, Turn):
            known |= {entry.id} if entry.id else set()
        elif entry.stance is not None:
            if entry.role in last:
                before, seen = last[entry.role]
                new = tuple(name for name in entry.stance.ids if name not in seen)
                yield Flip(entry.role, entry.round, before, entry.stance, new)
            last[entry.role] = (entry.stance, frozenset(known))
