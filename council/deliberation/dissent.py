"""A position held to the end stands in the record, also where its writer left it out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from council.deliberation.names import Names
from council.deliberation.record import DecisionRecord, Dissent
from council.deliberation.stance import folded
from council.deliberation.stances_page import of_each, sources
from council.deliberation.transcript import Standpoint, Transcript

Group = Sequence[tuple[str, Standpoint]]


def passed_over(record: DecisionRecord, transcript: Transcript, writer: str, names: Names) -> Iterator[str]:
    """Each position held last beside the decision's own that its dissent does not name with its holder and its source."""
    groups: dict[str, list[tuple[str, Standpoint]]] = {}
    for role, held in transcript.positions().items():
        groups.setdefault(held.stance.key, []).append((role, held))
    unnamed = {
        key: group for key, group in groups.items() if not any(_names(part, group, names) for part in record.dissent)
    }
    own = _own(record, groups, unnamed, writer, names)
    for key, group in unnamed.items():
        if key != own:
            held_by = ", ".join(role if held.restated else f"{role} (in round {held.round})" for role, held in group)
            cited = of_each(group, lambda held: sources(held.stance.evidence, transcript))
            position = " ".join(group[0][1].stance.position.split())  # its own line could be read as a block quotation
            stop = "" if position.endswith((".", "!", "?")) else "."
            yield f"{held_by}, left out by the writer: {position}{stop} Evidence: {cited}."


def _own(
    record: DecisionRecord, groups: Mapping[str, Group], unnamed: Mapping[str, Group], writer: str, names: Names
) -> str:
    """The position that the decision takes, empty when that cannot be told. By its writer's word it is the one that
    most of the members hold whom it names. Else it is the one it repeats, then that of most members, and of equals that
    of its writer."""
    roles = [role for group in groups.values() for role, _ in group]
    meant = {role for name in record.agrees_with for role in names.roles_in(name, roles)}
    counts = {key: sum(role in meant for role, _ in group) for key, group in groups.items()}
    most = max(counts.values(), default=0)
    said = [key for key, count in counts.items() if most and count == most]
    if len(said) == 1:
        return said[0]
    if folded(record.answer) in unnamed:
        return folded(record.answer)
    most = max(map(len, unnamed.values()), default=0)
    largest = [key for key, group in unnamed.items() if len(group) == most]
    if len(largest) == 1:
        return largest[0]
    return next((key for key in largest if any(role == writer for role, _ in unnamed[key])), "")


def _names(part: Dissent, group: Group, names: Names) -> bool:
    """True when a dissent is that of this group: it names one of its members and, where it has sources, one of them."""
    holders = {role for role, _ in group}
    cited = {name for _, held in group for name in held.stance.ids}
    if not names.roles_in(part.held_by, list(holders)):
        return False
    told = {
        *(ref.partition(":")[0] for ref in part.evidence),
        *(name for name in cited if f"[{name}]" in part.view or f"[{name}:" in part.view),
    }
    return not cited or bool(cited & told)
