"""Positions that a decision passes over: what a member held to the end stands in the record, also where its writer left it
out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from council.deliberation.names import Names
from council.deliberation.record import DecisionRecord, Dissent
from council.deliberation.stance import folded
from council.deliberation.stances_page import of_each, sources
from council.deliberation.transcript import Held, Transcript

Group = Sequence[tuple[str, Held]]


def passed_over(record: DecisionRecord, transcript: Transcript, writer: str, names: Names) -> Iterator[str]:
    """Each position held last beside the decision's own that its dissent does not name with its holder and its source."""
    groups: dict[str, list[tuple[str, Held]]] = {}
    for role, held in transcript.positions().items():
        groups.setdefault(held.stance.key, []).append((role, held))
    unnamed = {
        key: group for key, group in groups.items() if not any(_names(part, group, names) for part in record.dissent)
    }
    own = _said(record, groups, names) or _own(record, unnamed, writer)
    yield from (_in_words(group, transcript) for key, group in unnamed.items() if key != own)


def _said(record: DecisionRecord, groups: Mapping[str, Group], names: Names) -> str:
    """The one position that the decision takes by its writer's word, of several that of most members it names; empty where
    it says nothing of the kind."""
    roles = [role for group in groups.values() for role, _ in group]
    meant = {role for name in record.agrees_with for role in names.roles_in(name, roles)}
    counts = {key: sum(role in meant for role, _ in group) for key, group in groups.items()}
    most = max(counts.values(), default=0)
    keys = [key for key, count in counts.items() if most and count == most]
    return keys[0] if len(keys) == 1 else ""


def _own(record: DecisionRecord, groups: Mapping[str, Group], writer: str) -> str:
    """Which of these positions the decision takes: the one it repeats; else that of most members, of equals that of its
    writer; empty when that cannot be told."""
    if folded(record.answer) in groups:
        return folded(record.answer)
    most = max(map(len, groups.values()), default=0)
    largest = [key for key, group in groups.items() if len(group) == most]
    if len(largest) == 1:
        return largest[0]
    return next((key for key in largest if any(role == writer for role, _ in groups[key])), "")


def _names(part: Dissent, group: Group, names: Names) -> bool:
    """Whether a dissent is that of this group: one of its members, and of its sources one, where it has any."""
    holders = {role for role, _ in group}
    cited = {name for _, held in group for name in held.stance.evidence}
    if not names.roles_in(part.held_by, list(holders)):
        return False
    told = {
        *(ref.partition(":")[0] for ref in part.evidence),
        *(name for name in cited if f"[{name}]" in part.view or f"[{name}:" in part.view),
    }
    return not cited or bool(cited & told)


def _in_words(group: Group, transcript: Transcript) -> str:
    """With each holder's own sources, and the round of a position that was not stated again."""
    held_by = ", ".join(role if held.restated else f"{role} (in round {held.round})" for role, held in group)
    cited = of_each(group, lambda held: sources(held.stance.evidence, transcript))
    position = " ".join(group[0][1].stance.position.split())  # a line of its own could be read as a block quotation
    stop = "" if position.endswith((".", "!", "?")) else "."
    return f"{held_by}, left out by the writer: {position}{stop} Evidence: {cited}."
