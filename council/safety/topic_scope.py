"""The scope guard (source: KAIROS, "Scope Guard"): what a council or an agent takes on, and a polite no to the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from council.safety.untrusted import clean, folded, plain_line
from council.safety.verdict import ALLOWED, Verdict

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
    return Verdict(
        "block",
        "out_of_scope",
        f"it names none of the topics of this council ({named}{', …' if len(topics) > _NAMED else ''})",
        "decline_explain_alternatives",
    )


def _words(text: str) -> Iterable[str]:
    return _WORD.findall(folded(clean(text)))
