"""The duties of a turn; each ends with the block that is to close the turn. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from council.deliberation.names import Names
from council.llm.base import Message

_STANCE = """\
End your turn with where you stand, as one block and nothing after it:

```council
{"position": "…", "confidence": 0.5, "evidence": ["E1"], "would_change": "…"}
```

position: what you hold, in one short sentence; to keep your position, or to share a colleague's, repeat it word for word. \
confidence: from 0 to 1. evidence: the ids above that it rests on, [] if there are none. would_change: what would change \
your mind. Change your position only for evidence that is new to you, and name it; that others disagree is no evidence."""


@dataclass(frozen=True)
class Duty:
    """The duty of one turn. With a `ballot` it is to rank those answers, else to take a stance."""

    instruction: Message
    advocate: bool = False
    ballot: tuple[str, ...] = ()


def speak_in_turn(role: str, round_no: int, max_rounds: int, *, advocate: bool, stands_in: bool) -> Duty:
    """The duty of the triad: the original's words, and the stance. `stands_in`: for the AUDITOR, whose persona holds the
    duty to speak for the other side; another one's does not."""
    what = f"This is round {round_no} of {max_rounds}. As the {role}, provide your analysis or next step."
    return _stance(f"{what} {_OTHER_SIDE}" if stands_in else what, advocate=advocate)


_OTHER_SIDE = (
    "You are also the devil's advocate here: before that, give the strongest honest case against the answer that the "
    "council leans to, from the material. The duty is no reason to change where you yourself stand."
)


def answer_blind(role: str) -> Duty:
    return _stance(
        f"This is the first round, and it is blind: your colleagues answer at the same time, and nobody sees another's "
        f"answer. As the {role}, give your own answer to the task, with its reasons and sources. What you request now is "
        f"there for all in the next round."
    )


def criticise(role: str, round_no: int, max_rounds: int, names: Names) -> Duty:
    return _stance(
        f"{_opening(role, round_no, max_rounds, names)} Criticise what was said: which claims does the material not bear "
        f"out, what was overlooked, which reason is the strongest? Then give your answer as it now stands."
    )


def speak_for_the_other_side(role: str, round_no: int, max_rounds: int, names: Names) -> Duty:
    return _stance(
        f"{_opening(role, round_no, max_rounds, names)} In this round you are the devil's advocate: give the strongest "
        f"honest case against the answer that most of you lean to, from the material. Then say where you yourself stand; "
        f"the duty is no reason to change that.",
        advocate=True,
    )


def settle_by_evidence(role: str, round_no: int, max_rounds: int, names: Names) -> Duty:
    return _stance(
        f"{_opening(role, round_no, max_rounds, names)} You disagree. Name what in the material decides between the "
        f"positions, line by line, and request what is missing. Without evidence that is new to you, keep your position."
    )


def rank(role: str, letters: Sequence[str]) -> Duty:
    """The duty of a review: the answers of the first round, by letter, best first."""
    example = ", ".join(f'"{letter}"' for letter in letters)
    text = (
        f"The answers of {len(letters)} members stand above without their names, one of them possibly yours. As the {role}, "
        f"judge each in two or three sentences: is it right, does the material bear it out, does it answer the task?\n\n"
        f"End with your ranking of all answers, best first, as one block and nothing after it:\n\n"
        f'```council\n{{"ranking": [{example}]}}\n```'
    )
    return Duty(Message("user", text), ballot=tuple(letters))


def _opening(role: str, round_no: int, max_rounds: int, names: Names) -> str:
    return (
        f"This is round {round_no} of at most {max_rounds}. What the members said stands above without their names, in "
        f"no particular order; your own words are those of {names.of(role)}. You are still the {role}."
    )


def _stance(what: str, *, advocate: bool = False) -> Duty:
    return Duty(Message("user", f"{what}\n\n{_STANCE}"), advocate)
