"""Answers first, then talk: a blind round, critique among members without names, evidence only where they disagree.

The devil's advocate rotates from a member drawn by lot and opens each critique, so that an agreement is tested before
anybody may rest on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from council.deliberation.duties import answer_blind, criticise, settle_by_evidence, speak_for_the_other_side
from council.deliberation.stopping import disagree

if TYPE_CHECKING:
    from council.deliberation.deliberate import Deliberation
    from council.deliberation.members import Member


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
            await _evidence_round(council, round_no)
            critiqued = False
        else:
            await _critique_round(council, round_no, members[(first + critiques) % len(members)])
            critiqued, critiques = True, critiques + 1
        if council.may_end(evidence_round_due=critiqued):
            return


async def _critique_round(council: Deliberation, round_no: int, advocate: Member) -> None:
    """The devil's advocate, then all others at once, unless nothing is left to say after him."""
    duty = speak_for_the_other_side(advocate.role, round_no, council.max_rounds, council.names)
    await council.speak(advocate, round_no, duty)
    if council.may_end(evidence_round_due=True):
        return
    others = [member for member in council.members if member is not advocate]
    await council.speak_at_once(
        others, round_no, lambda member: criticise(member.role, round_no, council.max_rounds, council.names)
    )


async def _evidence_round(council: Deliberation, round_no: int) -> None:
    await council.speak_at_once(
        council.members,
        round_no,
        lambda member: settle_by_evidence(member.role, round_no, council.max_rounds, council.names),
    )
