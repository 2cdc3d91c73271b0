"""`check(stage, content)`: what the laws, the boundary table and the scope guard say of a text, deterministic and pure.

Advice, never the boundary: agents cannot write, run or send whatever a text says. The same text gets the same verdict
on every resume and replay; a second opinion, where one is configured, is `second_opinion`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from council.safety.authority_claims import addresses_machine, overrides
from council.safety.boundary_table import BOUNDARIES, DECLINED, VENTING, crossed, is_venting
from council.safety.prose import clauses
from council.safety.untrusted import clean, folded, hides_text, plain_line
from council.safety.verdict import ALLOWED, Posture, Stage, Verdict, gravest

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
    r"\b(?:i|we|the council) (?:have |has |'ve )?(?:already |just |successfully )?(?:sent (?:the|an|your|a)"
    r" (?:e-?mail|message|payment)|deployed (?:the|it|your)|deleted the|dropped the|transferred the"
    r"|executed the|installed the|called the|phoned|paid the|booked (?:the|a|your)|signed the|pushed (?:the|it) to)\b"
)

_HIDDEN = "it carries a message in characters that nobody sees"
_ORDERS = "it gives orders to its reader; it was given to the council as material, and its requests were made inert"
_ADDRESSED = "it speaks to an AI that reads it, not to people; it was given to the council as material alone"
_CLAIMED = "it says that something was done which this council cannot do: it reads and decides, nothing else"


def check(stage: Stage, content: str, *, scope: Sequence[str] = ()) -> Verdict:
    """The gravest of what the guardrails of `stage` say of `content`; ALLOWED when they have nothing to say. `scope`,
    the topics of this council, counts for tasks alone. Pure, and linear in the content."""
    found: list[Verdict] = []
    match stage:
        case "task":
            asked = crossed(content, BOUNDARIES)
            found.append(VENTING if asked.allows and is_venting(content) else asked)
            if hides_text(content):
                found.append(Verdict("warn", "hidden_text", f"{_HIDDEN}; they were left out"))
            found.append(check_scope(scope, content))
        case "tool_result":
            if hides_text(content):
                found.append(Verdict("block", "hidden_text", _HIDDEN))
            if overrides(content):
                found.append(Verdict("warn", "instruction_in_data", _ORDERS))
            elif addresses_machine(content):
                found.append(Verdict("warn", "addresses_ai", _ADDRESSED))
        case "decision":
            found.append(crossed(content, DECLINED, with_code=True))
            if any(_DEED.search(clause) for clause in clauses(content)):
                found.append(Verdict("warn", "claims_a_deed", _CLAIMED, law=3))
        case "memory":
            found.append(crossed(content, DECLINED, with_code=True))
            if overrides(content):
                reason = "it would be an order to the council in every later task"
                found.append(Verdict("block", "instruction_in_memory", reason))
    return gravest(found)


_WORD = re.compile(r"[^\W_]+")
_MIN_STEM = 4  # letters from which on a topic's word may be a part of a text's word
_PLURAL = re.compile(r"(?<=...)(?:ies|es|s)$")
_NAMED = 6  # topics in a reason


def check_scope(topics: Sequence[str], text: str) -> Verdict:
    """Lets pass what holds all words of one of the `topics`, also as parts of longer ones: `policies` fits `policy`,
    `archiv` a German `Datenarchiv`. Scripts without spaces have no words at all. No topics: everything is in scope."""
    words = frozenset(_words(text))

    def occurs(wanted: str) -> bool:
        stem = _PLURAL.sub("", wanted)
        is_part = len(stem) >= _MIN_STEM or not wanted.isascii()
        return wanted in words or (is_part and any(stem in word for word in words))

    if not topics or any(all(map(occurs, _words(topic))) for topic in topics):
        return ALLOWED
    named = ", ".join(plain_line(topic, 40) for topic in topics[:_NAMED])
    reason = f"it names none of the topics of this council ({named}{', …' if len(topics) > _NAMED else ''})"
    return Verdict("block", "out_of_scope", reason, "decline_explain_alternatives")


def _words(text: str) -> Iterable[str]:
    return _WORD.findall(folded(clean(text)))
