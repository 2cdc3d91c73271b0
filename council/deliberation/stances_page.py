"""Where the members stood, round by round, for the decision page: positions with their sources, changes of mind, the count
of a ranking, and why the rounds ended. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from council.artifacts.page import Table
from council.deliberation.flips import Flip, flips
from council.deliberation.names import Names
from council.deliberation.ranking import borda
from council.deliberation.stance import Stance
from council.deliberation.stopping import Ending
from council.deliberation.transcript import Transcript, Turn

NOT_STATED = "position not stated"


def tables(transcript: Transcript, roles: Sequence[str], names: Names, ending: Ending | None = None) -> Iterator[Table]:
    """None at all for a task in which nobody stated a position, ranked anything, or stopped early."""
    stances = [turn for turn in transcript.turns() if not turn.ballot and (turn.stance is not None or turn.fault)]
    if stances:
        yield _positions(transcript, roles)
        yield _rounds(transcript, names)
    changed = flips(transcript)
    if changed:
        yield Table("Changes of mind", (), (), tuple(_change(flip) for flip in changed))
    ballots = [turn for turn in transcript.turns() if turn.ballot]
    if ballots:
        yield _ranking(transcript, names, ballots)
    if ending is not None:
        yield Table("How the rounds ended", (), (), (_end(ending),))


def _positions(transcript: Transcript, roles: Sequence[str]) -> Table:
    """Each position held last, with all who hold it: the one of most members first, none left out."""
    last = transcript.last_stances()
    groups: dict[str, list[tuple[str, Stance]]] = {}
    for role in roles:
        stance = last.get(role)
        if stance is not None:
            groups.setdefault(stance.key, []).append((role, stance))
    rows = [_position(held, transcript) for held in sorted(groups.values(), key=len, reverse=True)]
    silent = [role for role in roles if last.get(role) is None]
    rows += [(NOT_STATED, ", ".join(silent), "", "")] if silent else []
    return Table("Positions", ("Position", "Held by", "Confidence", "Evidence"), tuple(rows))


def _position(held: Sequence[tuple[str, Stance]], transcript: Transcript) -> tuple[str, str, str, str]:
    cited = dict.fromkeys(name for _, stance in held for name in stance.evidence)
    return (
        held[0][1].position,
        ", ".join(role for role, _ in held),
        ", ".join(f"{stance.confidence:.2f}" for _, stance in held),
        _sources(list(cited), transcript),
    )


def _rounds(transcript: Transcript, names: Names) -> Table:
    turns = [turn for turn in transcript.turns() if turn.result.failure is None and not turn.ballot]
    rows = tuple(_stance(turn, transcript, names) for turn in turns)
    columns = ("Round", "Agent", "Position", "Confidence", "Evidence", "What would change it")
    lines = [_mending(turn) for turn in turns if turn.fault or turn.repairs]
    return Table("Stances, round by round", columns, rows, tuple(lines))


def _stance(turn: Turn, transcript: Transcript, names: Names) -> tuple[str, ...]:
    who = _who(turn.role, names) + (", devil's advocate" if turn.advocate else "")
    if turn.stance is None:
        return str(turn.round), who, NOT_STATED, "", "", ""
    stance = turn.stance
    sources = _sources(stance.evidence, transcript)
    return str(turn.round), who, stance.position, f"{stance.confidence:.2f}", sources, stance.would_change


def _mending(turn: Turn) -> str:
    what = "ranking" if turn.ballot else "stance"
    tries = f"{len(turn.repairs)} repair turn{'s' if len(turn.repairs) != 1 else ''}"
    if turn.fault:
        return f"{turn.role}, round {turn.round}: the {what} could not be read after {tries}: {turn.fault}"
    return f"{turn.role}, round {turn.round}: the {what} was mended in {tries}."


def _change(flip: Flip) -> str:
    move = f"{flip.role}, round {flip.round}: from “{flip.before}” to “{flip.after}”"
    if flip.evidence:
        return f"{move}, on new evidence: {', '.join(flip.evidence)}."
    return f"{move}. **Unexplained:** it names no evidence that was new to it."


def _ranking(transcript: Transcript, names: Names, ballots: Sequence[Turn]) -> Table:
    letters = ballots[0].ballot
    role_of = {letter: role for role, letter in names.letters.items()}
    rows = tuple(
        (_who(role_of[count.letter], names), str(count.points), str(count.firsts))
        for count in borda(transcript, letters)
    )
    lines = [
        f"{turn.role} ranked: {', '.join(role_of[letter] for letter in turn.ranking)}."
        for turn in ballots
        if turn.ranking
    ]
    lines += [f"{turn.role} did not rank." for turn in ballots if not turn.ranking]
    lines += [_mending(turn) for turn in ballots if turn.fault or turn.repairs]
    return Table(
        "Ranking of the answers (Borda count)", ("Answer of", "Points", "First on ballots"), rows, tuple(lines)
    )


def _who(role: str, names: Names) -> str:
    return f"{role} ({names.of(role)})" if names else role


def _end(ending: Ending) -> str:
    saved = f" Calls saved: {ending.calls_saved}." if ending.why != "budget" else ""
    return f"{ending.why.replace('_', ' ')}: {ending.sentence.rstrip('.')}.{saved}"


def _sources(ids: Sequence[str], transcript: Transcript) -> str:
    """Evidence as citations that a reader can follow."""
    known = {item.id: item for item in transcript.evidence() if item.id}
    cited = [known[name] for name in ids if name in known]
    if not cited:
        return "none named"
    return ", ".join(
        f"[{item.id}: {item.path}:{item.first_line}-{item.last_line}]" if item.path else item.id for item in cited
    )
