"""Tables of a decision page on where the members stood, who changed its mind, and why the rounds ended. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from council.artifacts.page import Table
from council.citations import CitedPlace, KnownPaths, places_in
from council.deliberation.names import Names, listed
from council.deliberation.ranking import borda, ties
from council.deliberation.stance import Stance
from council.deliberation.transcript import Standpoint, Transcript, Turn, flips
from council.turns.closing_block import asked_to_correct
from council.turns.result import Failure

NOT_STATED = "position not stated"
_WITH_PLACES = 3  # sources of one position that are told with their places: a cell is no list of files
RANKS_NOTHING = "the offline engine ranks nothing"
_DID_NOT_ANSWER = "did not answer"


def tables(transcript: Transcript, roles: Sequence[str], names: Names) -> Iterator[Table]:
    """None at all for a task in which nobody stated a position, ranked anything, or stopped early."""
    asked = [turn for turn in transcript.turns() if not turn.ballot]
    if any(turn.stance is not None or turn.fault for turn in asked):
        one_round = len({turn.round for turn in asked}) == 1
        lines = tuple(_faults(asked))
        yield _positions(transcript, roles, lines, alone=one_round)
        if not one_round:
            before: dict[str, Stance] = {}
            rows = []
            for turn in asked:
                if turn.result.failure is not None:
                    continue
                who, stance = _who(turn.role, names) + (", devil's advocate" if turn.advocate else ""), turn.stance
                if stance is None:
                    rows.append((str(turn.round), who, NOT_STATED, "", "", ""))
                    continue
                position, would_change = stance.position, stance.would_change
                cited, last = sources(stance.evidence, transcript), before.get(turn.role)
                if last is not None and last.key == stance.key:  # what is as before is not written out again
                    position = "as before"
                    cited = "" if last.evidence == stance.evidence else cited
                    would_change = "" if last.would_change == would_change else would_change
                rows.append((str(turn.round), who, position, f"{stance.confidence:.2f}", cited, would_change))
                before[turn.role] = stance
            columns = ("Round", "Agent", "Position", "Confidence", "Evidence", "What would change it")
            yield Table("Stances, round by round", columns, tuple(rows), lines)
    changes = []
    for flip in flips(transcript):
        move = f"{flip.role}, round {flip.round}: from “{flip.before.position}” to “{flip.after.position}”"
        new = f"{move}, on new evidence: {', '.join(flip.evidence)}."
        changes.append(
            new if flip.evidence else f"{move}. **Unexplained:** it names no evidence that was new to the agent."
        )
    if changes:
        yield Table("Changes of mind", (), (), tuple(changes))
    ballots = [turn for turn in transcript.turns() if turn.ballot]
    if any(turn.result.failure is None for turn in ballots):
        yield _ranking(transcript, names, ballots)
    ending = transcript.ending
    if ending is not None:
        why = f"{ending.why.replace('_', ' ')}: {ending.sentence.rstrip('.')}. Calls saved: {ending.calls_saved}."
        if ending.why == "budget":  # which one stands above the text
            why = f"budget: it was spent. Turns not taken: {ending.calls_saved}."
        if ending.why == "cap":
            why = f"{ending.sentence[:1].upper()}{ending.sentence[1:].rstrip('.')}."
        yield Table("How the rounds ended", (), (), (why,))


def _positions(transcript: Transcript, roles: Sequence[str], lines: tuple[str, ...], *, alone: bool) -> Table:
    """The one of most members first, none left out. `alone`: no table of stances follows, for there was one round only."""
    columns = ("Position", "Held by", "Confidence", "Evidence", *(["What would change it"] if alone else []))
    held = transcript.positions()
    groups: dict[str, list[tuple[str, Standpoint]]] = {}
    for role in roles:
        if role in held:
            groups.setdefault(held[role].stance.key, []).append((role, held[role]))
    rows: list[tuple[str, ...]] = []
    for group in sorted(groups.values(), key=len, reverse=True):
        cells = (
            group[0][1].stance.position,
            ", ".join(role if each.restated else f"{role} (in round {each.round})" for role, each in group),
            ", ".join(f"{each.stance.confidence:.2f}" for _, each in group),
            of_each(group, lambda each: sources(each.stance.evidence, transcript)),
        )
        rows.append((*cells, of_each(group, lambda each: each.stance.would_change)) if alone else cells)
    asked = [turn for turn in transcript.turns() if not turn.ballot]
    answered = {turn.role for turn in asked if turn.result.failure is None}
    failed = {turn.role for turn in asked} - answered
    for words, who in ((NOT_STATED, answered - set(held)), (_DID_NOT_ANSWER, failed)):
        if who:
            rows.append((words, ", ".join(role for role in roles if role in who), *[""] * (len(columns) - 2)))
    return Table("Positions", columns, tuple(rows), lines if alone else ())


def of_each(group: Sequence[tuple[str, Standpoint]], of: Callable[[Standpoint], str]) -> str:
    """The text that is the same for all, or that each one has of its own."""
    by_text: dict[str, list[str]] = {}
    for role, held in group:
        by_text.setdefault(of(held), []).append(role)
    if len(by_text) == 1:
        return next(iter(by_text))
    return "; ".join(f"{', '.join(roles)}: {text}" for text, roles in by_text.items() if text)


def _faults(turns: Sequence[Turn]) -> Iterator[str]:
    """One line on each block that could not be read, unless `unread` says so above the text."""
    for turn in turns:
        if turn.fault and turn.fault != RANKS_NOTHING and not _failed_repair(turn):
            after = f", though the agent was {asked_to_correct(len(turn.repairs))}" if turn.repairs else ""
            yield f"{turn.role}, round {turn.round}: the {_what(turn)} could not be read{after}: {turn.fault}"


def unread(turns: Sequence[Turn]) -> Iterator[str]:
    """Blocks that could not be asked for again, with the real error: something that was to be there is missing."""
    for turn in turns:
        failure = _failed_repair(turn)
        if failure is not None:
            yield (
                f"The {_what(turn)} of {turn.role} in round {turn.round} could not be read, and asking again failed "
                f"({failure.kind}): {failure.message}"
            )


def _failed_repair(turn: Turn) -> Failure | None:
    return next((result.failure for result in turn.repairs if result.failure), None) if turn.fault else None


def _what(turn: Turn) -> str:
    return "ranking" if turn.ballot else "stance"


def _ranking(transcript: Transcript, names: Names, ballots: Sequence[Turn]) -> Table:
    """Shows no count and no order where there is not a single ballot."""
    letters = ballots[0].ballot
    role_of = {letter: role for role, letter in names.letters.items()}
    counts = borda(transcript, letters) if any(turn.ranking for turn in ballots) else []
    rows = tuple((_who(role_of[count.letter], names), str(count.points), str(count.firsts)) for count in counts)
    lines = [
        f"Equal, with {group[0].points} point{'s' if group[0].points != 1 else ''} each: "
        f"{', '.join(role_of[count.letter] for count in group)}."
        for group in ties(counts)
    ]
    for turn in ballots:
        if turn.ranking:
            lines.append(f"{turn.role} ranked: {', '.join(role_of[letter] for letter in turn.ranking)}.")
        elif not turn.fault:
            lines.append(f"{turn.role} {_DID_NOT_ANSWER}.")
    if silent := [turn.role for turn in ballots if turn.fault == RANKS_NOTHING]:
        lines.append(f"No ballot from {listed(silent)}: {RANKS_NOTHING}.")
    lines += _faults(ballots)
    columns = ("Answer of", "Points", "First on ballots")
    return Table("Ranking of the answers (Borda count)", columns, rows, tuple(lines))


def _who(role: str, names: Names) -> str:
    return f"{role} ({names.of(role)})" if names else role


def sources(named: Sequence[str], transcript: Transcript) -> str:
    """Evidence as citations that a reader can follow; of many, the ids alone."""
    known = {item.id: item for item in transcript.evidence() if item.id}
    paths = KnownPaths(item.path for item in known.values())
    cited = [place for name in named for place in places_in(name, paths) if place.id in known]
    ids = dict.fromkeys(place.id for place in cited)
    if not ids:
        return "none named"
    if len(ids) > _WITH_PLACES:
        return ", ".join(f"[{id}]" if known[id].path else id for id in ids)
    lines = list(
        dict.fromkeys(
            place
            for place in cited
            if place.first is not None and (item := known[place.id]).path and place.path in ("", item.path)
            if item.first_line <= place.first <= place.last <= item.last_line
        )
    )
    if len(lines) > _WITH_PLACES:
        lines = []
    shown: list[str] = []
    for id in ids:
        item, own = known[id], [place for place in lines if place.id == id]
        whole = CitedPlace(id, item.path, item.first_line, item.last_line)
        shown += [str(replace(place, path=item.path)) for place in own] or [str(whole) if item.path else id]
    return ", ".join(shown)
