"""`check(stage, content)`: what the laws, the boundary table and the scope guard say of a text, deterministic and pure.

Advice, never the boundary: agents cannot write, run or send whatever a text says. The same text gets the same verdict
on every resume and replay; a second opinion, where one is configured, is `second_opinion`'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from council.safety.authority import overrides
from council.safety.boundaries import BOUNDARIES, DECLINED, VENTING, crossed, is_venting
from council.safety.hidden import hides_text
from council.safety.prose import sentences
from council.safety.scope import ScopeGuard
from council.safety.verdict import Posture, Stage, Verdict, gravest

__all__ = ["POSTURES", "Verdict", "check", "lawful_check"]

POSTURES: dict[Posture, str] = {
    "decline_explain_alternatives": "Decline, say why, and offer a lawful and harmless alternative where there is one.",
    "decline_care_resources": "Decline with care, name where help is to be had, and never lecture.",
    "decline_no_alternatives": "Decline, and offer no alternative.",
    "warn_proceed": "Go on, state the risks plainly, and leave the choice to the person.",
    "discuss_tradeoffs": "Set out the trade-offs on both sides, do not moralise, and leave the choice to the person.",
    "listen": "Listen and acknowledge. Do not try to fix anything that nobody asked to have fixed.",
}

# A deed that this council cannot have done: it reads and writes down a decision, nothing else.
_DEED = re.compile(
    r"\b(?:i|we|the council) (?:have |has |'ve )?(?:already |just |successfully )?(?:sent (?:the|an|your"
    r"|a) (?:e-?mail|message|payment)|deployed (?:the|it|your)"
    r"|deleted the|dropped the|transferred the|executed the|installed the|called the|phoned|paid the"
    r"|booked (?:the|a|your)|signed the|pushed (?:the|it) to)\b"
)


def check(stage: Stage, content: str, *, scope: ScopeGuard | None = None) -> Verdict:
    """The gravest of what the guardrails of `stage` say of `content`; ALLOWED when they have nothing to say. `scope`
    counts for tasks alone. Pure, and linear in the content."""
    found = list(_CHECKS[stage](content))
    if stage == "task" and scope is not None:
        found.append(scope.check(content))
    return gravest(found)


def lawful_check(text: str) -> Verdict:
    """The boundary table alone: for texts that are no stage of a deliberation, such as an agent's rules."""
    return crossed(text, DECLINED)


def _task(text: str) -> Iterator[Verdict]:
    found = crossed(text, BOUNDARIES)
    yield VENTING if found.allows and is_venting(text) else found
    if hides_text(text):
        yield _hidden("warn")


def _tool_result(text: str) -> Iterator[Verdict]:
    if hides_text(text):
        yield _hidden("block")
    if overrides(text):
        yield Verdict(
            "warn",
            "instruction_in_data",
            "it speaks to whoever reads it as if it could give orders; it was given to the council as material, and its "
            "requests were made inert",
        )


def _decision(text: str) -> Iterator[Verdict]:
    yield crossed(text, DECLINED, with_code=True)
    if any(_DEED.search(sentence) for sentence in sentences(text)):
        yield Verdict(
            "warn",
            "claims_a_deed",
            "it says that something was done which this council cannot do: it reads and decides, nothing else",
            law=3,
        )


def _memory(text: str) -> Iterator[Verdict]:
    yield crossed(text, DECLINED, with_code=True)
    if overrides(text):
        yield Verdict("block", "instruction_in_memory", "it would be an order to the council in every later task")


def _hidden(outcome: str) -> Verdict:
    reason = "it carries a message in characters that nobody sees"
    if outcome == "warn":
        return Verdict("warn", "hidden_text", f"{reason}; they were left out")
    return Verdict("block", "hidden_text", reason)


_CHECKS: Mapping[Stage, Callable[[str], Iterator[Verdict]]] = {
    "task": _task,
    "tool_result": _tool_result,
    "decision": _decision,
    "memory": _memory,
}
