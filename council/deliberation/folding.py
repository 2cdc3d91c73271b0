"""Earlier rounds in short, for a prompt that would outgrow the model's context: who stood where, and what was read. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from council.deliberation.names import Names
from council.deliberation.transcript import Turn
from council.markup import first_sentence
from council.safety.untrusted import plain_line
from council.turns.evidence import Evidence

CONTEXT_SHARE = 0.6  # of the model's context; the rest is for the reply, for repairs, and for what an estimate misses
_POSITION_CHARS = 240
_TITLE_CHARS = 160
_MARKS = " \t\r\n#>*-"  # before the first words

INTRODUCTION = (
    "To save room, what was said in these rounds stands here in one line each, and what was read is only named: request "
    "it again to read it again."
)


def turn_line(turn: Turn, names: Names) -> str:
    """A turn in one line: the position it stated, else its first sentence."""
    name = names.of(turn.role)
    if turn.result.failure is not None:
        return f"Round {turn.round}, {name} did not answer."
    line = plain_line(first_sentence(turn.result.text.lstrip(_MARKS)) or turn.result.text, _POSITION_CHARS)
    if turn.stance is not None:
        evidence = f" ({', '.join(turn.stance.ids)})" if turn.stance.ids else ""
        line = f"{plain_line(turn.stance.position, _POSITION_CHARS)}{evidence}"
    return f"Round {turn.round}, {name}: {names.text(line)}"


def evidence_line(item: Evidence, names: Names, *, too_large: bool) -> str:
    """`too_large`: it never stood in a prompt, alone being more than one holds."""
    line = f"{item.id}: {plain_line(item.title, _TITLE_CHARS)}, asked for by {names.of(item.asked_by)} in round {item.round}"
    return f"{line}; too large to be shown here: request fewer lines of it" if too_large else line


def folded_text(turns: Sequence[str], evidence: Sequence[tuple[str, str]], max_chars: int) -> str:
    """The lines of `turns` and of `evidence` (id, line). Beyond `max_chars` the oldest turns go, then what is said of the
    evidence; its ids always stay."""
    lines = [line for _, line in evidence]
    if sum(len(line) + 1 for line in lines) > max_chars:
        lines = [", ".join(id for id, _ in evidence)]
    left = max_chars - sum(len(line) + 1 for line in lines)
    kept: list[str] = []
    for line in reversed(turns):
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    dropped = len(turns) - len(kept)
    said = [f"({dropped} earlier turns are left out.)"] if dropped else []
    return "\n".join([*lines, *said, *reversed(kept)])
