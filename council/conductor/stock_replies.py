"""The conductor's own words: per posture, for the source's four moments ("Example Interactions"), and for specialists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from council.safety.verdict import Posture, Verdict
from council.turns.run_guardrails import declined

Moment = Literal["cannot_do", "frustrated", "harmful", "unsure", "specialist", "no_specialist", "specialist_asked"]

MOMENTS: Mapping[Moment, str] = {
    "cannot_do": "I don't know how to help with that one. Want me to try finding an approach, or should we tackle "
    "something else?",
    "frustrated": "That sounds frustrating. Want to vent for a minute, or should we try a different angle?",
    "harmful": "I can't help with that: it could hurt someone. Is there something else going on I can help with instead?",
    "unsure": "I can take a crack at this, but I'm genuinely not sure. I would hand it to {agents}. Shall I?",
    "specialist": "I can have a specialist made for this, for you alone. It is designed, reviewed and tested, and trained "
    "once you have confirmed its plan. Shall I?",
    "no_specialist": "No specialist is made. Ask for the work itself whenever you like.",
    "specialist_asked": "I have asked for the specialist. `council status` shows its run. It may have a question for you, and it "
    "waits for your word on its plan.",
}
_POSTURES: Mapping[Posture, str] = {
    "decline_explain_alternatives": "I can't help with that: {reason}. I can help with its lawful and harmless side, such as "
    "its rules, its history, or how people are kept safe. Which of these would help you?",
    "decline_no_alternatives": "I can't help with that: {reason}.",
    "warn_proceed": "This has risks, and the choice is yours. Here is what I found.",
    "discuss_tradeoffs": "There are good reasons on both sides, and the choice is yours. Here they are.",
    "listen": MOMENTS["frustrated"],
}


def refusal(verdict: Verdict) -> str:
    """The answer to a request that the guardrails block."""
    if verdict.posture == "decline_care_resources":
        return declined(verdict).replace("The council did not take this on, because", "I can't help with that, because")
    words = _POSTURES.get(verdict.posture, "") if verdict.posture else ""
    return words.format(reason=verdict.reason) if words else f"{MOMENTS['harmful']} ({verdict.reason})"


def opening(verdict: Verdict) -> str:
    """The sentence before an answer that goes on with care; empty where none is needed."""
    return "" if verdict.blocks or verdict.allows or not verdict.posture else _POSTURES.get(verdict.posture, "")
