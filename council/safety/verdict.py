"""A guardrail's verdict on a content: allow, warn or block, with a code, a reason, a posture and the law behind it.

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
