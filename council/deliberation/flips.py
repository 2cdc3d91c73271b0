"""Who changed its mind, and whether new evidence was the reason. Pure.

New evidence is the only good reason to change a mind (a majority is none): a change that names no evidence issued since
the agent's last stance is unexplained, and said so.
"""

from __future__ import annotations

from dataclasses import dataclass

from council.deliberation.stance import Stance
from council.deliberation.transcript import Transcript, Turn


@dataclass(frozen=True)
class Flip:
    """A change of position in `round`; `evidence` are the ids it names that were new to the agent, empty: unexplained."""

    role: str
    round: int
    before: str
    after: str
    evidence: tuple[str, ...]


def flips(transcript: Transcript) -> list[Flip]:
    """All changes of position in the order in which they were spoken."""
    known = {item.id for item in transcript.inputs if item.id}
    last: dict[str, tuple[Stance, frozenset[str]]] = {}  # each agent's last stance, and what was issued by then
    found: list[Flip] = []
    for entry in transcript.entries:
        if not isinstance(entry, Turn):
            known |= {entry.id} if entry.id else set()
            continue
        if entry.stance is None:
            continue
        stance = entry.stance
        if entry.role in last and last[entry.role][0].key != stance.key:
            before, seen = last[entry.role]
            new = tuple(name for name in dict.fromkeys(stance.evidence) if name not in seen)
            found.append(Flip(entry.role, entry.round, before.position, stance.position, new))
        last[entry.role] = (stance, frozenset(known))
    return found
