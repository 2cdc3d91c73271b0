"""Words that claim an authority which text does not have: over instructions, rules, approval or the record.

In outside text they are noted (it is data, whatever it says); in what would be remembered they are withheld; in the rules
of an agent they are a reason not to have it.
"""

from __future__ import annotations

import re

from council.safety.prose import sentences

_RULES = r"(?:instructions?|rules?|prompts?|guidelines?|directives?|system prompt|persona|laws|constraints|guardrails?)"
# To a model that reads: as a sentence of its own, not in the middle of one that tells about it.
_OVERRIDES = re.compile(
    rf"^(?:(?:please|now|important|attention|note|system|assistant|ai|agents?|admin|override"
    rf"|all agents)\b[:,!. ]*){{0,3}}"
    rf"(?:you (?:must|should|will) )?(?:now )?(?:ignore|disregard|forget|override"
    rf"|discard)(?: \w+){{0,3}}? (?:previous|prior|earlier|above|preceding|other|your|all|these|any) "
    rf"(?:\w+ ){{0,3}}?{_RULES}\b"
    r"|^(?:you are|you're) (?:now|no longer) (?:in |a |an |the |bound |dan\b|unrestricted|free )"
    r"|^(?:\[|<|#{1,6} ?)? ?(?:system|developer|administrator|admin|steward)(?: (?:prompt|message|override|note"
    r"|instruction))?(?:\]|>)? ?: (?=\w)"
    r"(?:.{0,80}\b(?:must|ignore|read|reveal|output|approve|execute|send|request|from now on)\b)"
    r"|^(?:reveal|print|output|repeat|show|send|leak) (?:\w+ ){0,3}?(?:system prompt|hidden prompt|api keys?"
    r"|secrets?|credentials?|\.env)\b"
)
_CLAIMS = re.compile(
    rf"\b(?:ignore|disregard|override|bypass|circumvent|supersede)s?(?:ing)?(?: \w+){{0,4}}? (?:{_RULES}"
    rf"|guardian|ministers?|conductor|safety (?:checks?|review|layer)"
    r"|sandbox|audit(?: log)?|approval|allowlists?|permissions?|orchestrator|steward|king)\b"
    r"|\b(?:disable|turn off|switch off|skip|evade)(?: \w+){0,2}? (?:guardrails?|safety (?:checks?|review)"
    r"|sandbox|audit(?:ing)?(?: log)?|logging|approval|confirmation)\b"
    r"|\bwithout (?:asking for |waiting for |needing |requiring |any )*(?:approval|confirmation|permission"
    r"|review|the steward's)\b"
    r"|\b(?:has|have|with|grant\w*|given|assume|claim)(?: \w+){0,2}? (?:root|administrator|admin|superuser|sudo"
    r"|full system|unrestricted|unlimited) (?:access|rights|privileges|authority|permissions?)\b"
    r"|\b(?:act|speak|approve|sign|decide)(?:s|ing)? (?:as|on behalf of|in the name of) (?:the )?(?:steward"
    r"|administrator|admin|king|orchestrator|system|guardian|root)\b"
    r"|\b(?:always|automatically|silently) (?:approve|confirm|apply|promote|trust)\b"
    r"|\bgrants? (?:yourself|itself|themselves)\b|\bpromotes? (?:yourself|itself)\b"
    r"|\b(?:hide|conceal|keep)(?: \w+){0,3}? (?:from|secret from) (?:the )?(?:steward|user|administrator|audit"
    r"|auditor|log)\b"
    r"|\b(?:your|my|these) (?:word|rules?|instructions?) (?:is|are|take|takes|have|has) (?:the )?(?:law|final"
    r"|absolute|precedence over|priority over)\b"
)
_DENIAL = re.compile(
    r"\b(?:never|not|don't|cannot|can't|no agent|nobody|refuse\w*|forbidden|prohibited|must not|may not|avoid"
    r"|detect\w*|report\w*"
    r"|warn\w*|flag\w*|attempts? to|tries to|asks? (?:you|it|them) to|who|that|which|if|when|whether)\b"
)


def overrides(text: str) -> bool:
    """Whether a sentence of `text` orders its reader to drop its instructions, or speaks as the system."""
    return any(_OVERRIDES.search(sentence) for sentence in sentences(text))


def claim_of_authority(text: str) -> str:
    """The words with which a rule claims authority over others, empty when none does. A rule that forbids it claims
    nothing."""
    for sentence in sentences(text):
        found = _CLAIMS.search(sentence)
        if found and not _DENIAL.search(sentence[: found.start()]):
            return found.group()[:80]
        order = _OVERRIDES.search(sentence)
        if order:
            return order.group()[:80]
    return ""
