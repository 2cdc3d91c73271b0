"""Answers side by side, ranked by all without names, and a chair that writes the decision knowing the count.

Two rounds at most: with `max_rounds` 1, or fewer than two answers, nothing is ranked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from council.deliberation.duties import answer_blind, rank
from council.deliberation.ranking import count_in_words

if TYPE_CHECKING:
    from council.deliberation.deliberate import Deliberation


async def deliberate(council: Deliberation) -> None:
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
