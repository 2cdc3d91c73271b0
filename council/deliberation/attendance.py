"""Answers and failures of the members, in as few lines as say it all. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from council.deliberation.transcript import Transcript
from council.turns.result import Failure

# Others pass by themselves, or end the run and say so there.
_MENDED_BY_HAND = frozenset({"blocked", "length", "network"})


def attendance(transcript: Transcript, roles: Sequence[str]) -> str:
    """One sentence for all members, empty before anybody was asked."""
    counts: dict[str, tuple[int, int]] = {}  # answered, asked
    for turn in transcript.turns():
        answered, asked = counts.get(turn.role, (0, 0))
        counts[turn.role] = answered + (turn.result.failure is None), asked + 1
    if not counts:
        return ""
    of_each = {role: counts.get(role, (0, 0)) for role in roles}
    different = set(of_each.values())
    if len(different) == 1:
        answered, asked = different.pop()
        each = " each" if len(roles) > 1 else ""
        return f"{listed(roles)} answered in {_turns(answered, asked)}{each}."
    return f"Answered: {'; '.join(f'{role} in {_turns(*count)}' for role, count in of_each.items())}."


def _turns(answered: int, asked: int) -> str:
    if answered < asked:
        return f"{answered} of {asked} turn{'s' if asked != 1 else ''}"
    return f"{answered} turn{'s' if answered != 1 else ''}" if answered else "no turn"


def absences(transcript: Transcript) -> Iterator[str]:
    """Failed turns with the real error, those of one reason together."""
    by_failure: dict[tuple[str, str], dict[str, list[str]]] = {}
    for turn in transcript.turns():
        failure = turn.result.failure
        if failure is not None:
            who = by_failure.setdefault((failure.kind, _said(failure)), {})
            who.setdefault(turn.role, []).append(str(turn.round))
    for (kind, message), who in by_failure.items():
        times = [f"round{'s' if len(rounds) > 1 else ''} {listed(rounds)}" for rounds in who.values()]
        if len(who) == 1:
            yield f"{next(iter(who))} did not answer in {times[0]} ({kind}): {message}"
        else:
            absent = "; ".join(f"{role} in {when}" for role, when in zip(who, times, strict=True))
            yield f"No answer from {absent} ({kind}): {message}"


def failed_closings(failed: Iterable[tuple[str, Failure]]) -> Iterator[str]:
    """Failed closing calls with the real error, those of one reason together."""
    by_failure: dict[tuple[str, str], list[str]] = {}
    for role, failure in failed:
        by_failure.setdefault((failure.kind, _said(failure)), []).append(role)
    for (kind, message), roles in by_failure.items():
        yield f"The closing call{'s' if len(roles) > 1 else ''} of {listed(roles)} failed ({kind}): {message}"


def _said(failure: Failure) -> str:
    """The failure in words, and a fix where one is somebody's to make."""
    if failure.kind not in _MENDED_BY_HAND or not failure.fix:
        return failure.message
    return f"{failure.message} To fix it: {failure.fix.rstrip('.')}."


def listed(names: Sequence[str]) -> str:
    """`A, B and C`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
