"""The protocols by which a council speaks, one function each, all over the same turn (`Deliberation.speak`). See
docs/protocols.md."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from council.deliberation.early_stopping import disagree
from council.deliberation.prompts import CRITICISE, OTHER_SIDE, SETTLE, answer_blind, criticise, rank, speak_in_turn
from council.deliberation.ranking import count_in_words
from council.settings.table import ProtocolName
from council.turns.equipment import Speaker

if TYPE_CHECKING:
    from council.deliberation.deliberate import Deliberation

_ADVOCATE = "AUDITOR"


async def triad(council: Deliberation) -> None:
    """The original's round robin (Protocol 95): the AUDITOR, or else the last member, speaks for the other side."""
    advocate = _ADVOCATE if _ADVOCATE in council.roles else council.roles[-1]
    for round_no in range(1, council.max_rounds + 1):
        council.open_round(round_no, council.members)
        for member in council.members:
            advocates = member.role == advocate
            stands_in = advocates and advocate != _ADVOCATE
            duty = speak_in_turn(member.role, round_no, council.max_rounds, advocate=advocates, stands_in=stands_in)
            await council.speak(member, round_no, duty)
            if council.may_end():
                return


async def independent(council: Deliberation) -> None:
    """A blind round, critique among members without names, evidence only where they disagree. The devil's advocate
    rotates from a member drawn by lot and opens each critique, so that an agreement is tested before anybody rests on
    it."""
    members, max_rounds, names = council.members, council.max_rounds, council.names

    async def all_speak(speakers: Sequence[Speaker], what: str) -> None:
        await council.speak_at_once(
            speakers, round_no, lambda member: criticise(member.role, round_no, max_rounds, names, what)
        )

    first = council.choice("advocate").randrange(len(members))
    council.open_round(1, members)
    await council.speak_at_once(members, 1, lambda member: answer_blind(member.role))
    critiques = 0
    critiqued = False  # the round before was a critique
    for round_no in range(2, max_rounds + 1):
        council.open_round(round_no, members)
        if critiqued and disagree(council.transcript):
            await all_speak(members, SETTLE)
            critiqued = False
        else:
            advocate = members[(first + critiques) % len(members)]
            duty = criticise(advocate.role, round_no, max_rounds, names, OTHER_SIDE, advocate=True)
            await council.speak(advocate, round_no, duty)
            if council.may_end(evidence_round_due=True):  # nothing is left to say after the devil's advocate
                return
            await all_speak([member for member in members if member is not advocate], CRITICISE)
            critiqued, critiques = True, critiques + 1
        if council.may_end(evidence_round_due=critiqued):
            return


async def review(council: Deliberation) -> None:
    """Answers side by side, ranked by all without names, and a chair that writes the decision knowing the count. With
    `max_rounds` 1, or fewer than two answers, nothing is ranked."""
    council.open_round(1, council.members)
    await council.speak_at_once(council.members, 1, lambda member: answer_blind(member.role))
    answered = [turn.role for turn in council.transcript.turns() if turn.result.failure is None]
    if council.max_rounds < 2 or len(answered) < 2:
        return
    letters = tuple(sorted(council.names.letters[role] for role in answered))
    council.open_round(2, council.members)
    try:
        await council.speak_at_once(council.members, 2, lambda member: rank(member.role, letters))
    finally:  # a budget that is spent amid the ranking leaves the ballots that there are
        council.closing_note = count_in_words(council.transcript, letters)


PROTOCOLS: Mapping[ProtocolName, Callable[[Deliberation], Awaitable[None]]] = {
    "triad": triad,
    "independent": independent,
    "review": review,
}
