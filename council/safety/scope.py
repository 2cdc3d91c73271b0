"""The scope guard (source: KAIROS, "Scope Guard"): what a council or an agent takes on, and a polite no to the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from council.safety.untrusted import clean, folded, plain_line
from council.safety.verdict import ALLOWED, Verdict

_WORD = re.compile(r"[^\W_]+")
_MIN_STEM = 4  # letters from which on a topic's word may be a part of a text's word
_PLURAL = re.compile(r"(?<=...)(?:ies|es|s)$")
_NAMED = 6  # topics in a reason


@dataclass(frozen=True)
class ScopeGuard:
    """Lets pass what holds a word of one of its `topics`, also as a part of a longer one: `policies` fits `policy`, `archiv`
    a German `Datenarchiv`; scripts without spaces have no words at all. No topics: everything is in scope."""

    topics: tuple[str, ...] = ()

    def check(self, text: str) -> Verdict:
        if not self.topics:
            return ALLOWED
        words = frozenset(_words(text))
        # All words of a topic occur.
        if any(all(any(_same(wanted, word) for word in words) for wanted in _words(topic)) for topic in self.topics):
            return ALLOWED
        named = ", ".join(plain_line(topic, 40) for topic in self.topics[:_NAMED])
        return Verdict(
            "block",
            "out_of_scope",
            f"it names none of the topics of this council ({named}{', …' if len(self.topics) > _NAMED else ''})",
            "decline_explain_alternatives",
        )


def _words(text: str) -> Iterable[str]:
    return _WORD.findall(folded(clean(text)))


def _same(wanted: str, word: str) -> bool:
    if wanted == word:
        return True
    stem = _PLURAL.sub("", wanted)
    return (len(stem) >= _MIN_STEM or not wanted.isascii()) and stem in word
