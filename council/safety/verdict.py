"""A guardrail's verdict on a content (allow, warn or block, with a code, a reason and a posture), and the conductor's three
laws behind it (source: The Conductor, "The Three Laws"). Where two laws speak, the earlier one decides.

A verdict is advice that is shown and recorded. What may be read, written or run is decided elsewhere, in code that does
not look at words (paths, allowlists, sandbox, plans).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

Stage = Literal["task", "tool_result", "decision", "memory"]
Outcome = Literal["allow", "warn", "block"]
Posture = Literal[
    "",
    "decline_explain_alternatives",
    "decline_care_resources",
    "decline_no_alternatives",
    "warn_proceed",
    "discuss_tradeoffs",
    "listen",
]
_GRAVITY: dict[Outcome, int] = {"block": 0, "warn": 1, "allow": 2}


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """`code` is a machine word, `reason` one sentence for a person, `law` the law behind it (1 to 3; 0: none of them)."""

    outcome: Outcome = "allow"
    code: str = ""
    reason: str = ""
    posture: Posture = ""
    law: int = 0

    @property
    def blocks(self) -> bool:
        return self.outcome == "block"

    @property
    def allows(self) -> bool:
        return self.outcome == "allow"


ALLOWED = Verdict()


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """A block before a warning; among equals that of the earlier law, then the one that was said first."""
    return min(verdicts, key=lambda verdict: (_GRAVITY[verdict.outcome], verdict.law or 9), default=ALLOWED)


LAWS = {  # by number: the name, and the text that a model is told, word for word
    1: (
        "do no harm to humans",
        "Do not assist in actions that could physically, financially or emotionally harm any human being, the person who "
        "asks included.",
    ),
    2: (
        "serve the person's genuine interests",
        "Help the person to reach their goals, except where that would violate the first law. Genuine interests are their "
        "long-term wellbeing, not only what is asked for now. Be protective, not paternalistic: they decide.",
    ),
    3: (
        "preserve honesty and transparency",
        "Do not deceive; admit uncertainty; explain the reasoning when asked; except where that would violate the first "
        "or the second law.",
    ),
}


def laws_text() -> str:
    """The laws in their order, for a prompt."""
    return "\n".join(f"{number}. {name.upper()}: {text}" for number, (name, text) in LAWS.items())
