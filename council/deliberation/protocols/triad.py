"""The original's round robin (Protocol 95): each speaks in turn, hears all before, and the AUDITOR speaks for the other
side. Without one, the last member is asked to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from council.deliberation.duties import speak_in_turn

if TYPE_CHECKING:
    from council.deliberation.deliberate import Deliberation

_ADVOCATE = "AUDITOR"


async def deliberate(council: Deliberation) -> None:
    advocate = _ADVOCATE if _ADVOCATE in council.roles else council.roles[-1]
    for round_no in range(1, council.max_rounds + 1):
        council.open_round(round_no, council.members)
        for member in council.members:
            duty = speak_in_turn(
                member.role,
                round_no,
                council.max_rounds,
                advocate=member.role == advocate,
                stands_in=member.role == advocate != _ADVOCATE,
            )
            await council.speak(member, round_no, duty)
            if council.may_end():
                return
