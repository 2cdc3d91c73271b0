"""Answers first, then talk: a blind round, critique among members without names, evidence only where they disagree.

The devil's advocate rotates from a member drawn by lot and opens each critique. So an agreement is tested before
anybody may rest on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from council.deliberation.duties import Duty, answer_blind, criticise, settle_by_evidence, speak_for_the_other_side
from council.deliberation.stopping import disagree

if TYPE_CHECKING:
    from council.deliberation.deliberate import Deliberation
    from council.deliberation.names import Names
    from council.turns.speaker import Speaker


async def deliberate(council: Deliberation) -> None:
    members = council.members
    first = council.choice("advocate").randrange(len(members))
    council.open_round(1, members)
    await council.speak_at_once(members, 1, lambda member: answer_blind(member.role))
    critiques = 0
    critiqued = False  # the round before was a critique
    for round_no in range(2, council.max_rounds + 1):
        council.open_round(round_no, members)
        if critiqued and disagree(council.transcript):
            await _speak_at_once(council, members, round_no, settle_by_evidence)
            critiqued = False
        else:
            advocate = members[(first + critiques) % len(members)]
            duty = speak_for_the_other_side(advocate.role, round_no, council.max_rounds, council.names)
            await council.speak(advocate, round_no, duty)
            if council.may_end(evidence_round_due=True):  # nothing is left to say after the devil's advocate
                return
            others = [member for member in members if member is not advocate]
            await _speak_at_once(council, others, round_no, criticise)
            critiqued, critiques = True, critiques + 1
        if council.may_end(evidence_round_due=critiqued):
            return


async def _speak_at_once(
    council: Deliberation, members: Sequence[Speaker], round_no: int, duty: Callable[[str, int, int, Names], Duty]
) -> None:
    max_rounds, names = council.max_rounds, council.names
    await council.speak_at_once(members, round_no, lambda member: duty(member.role, round_no, max_rounds, names))
