"""A text's own words, for rules that read prose: folded to small plain letters, without what it only shows or quotes."""

from __future__ import annotations

import re

from council.markup import without_fences
from council.safety.untrusted import clean, folded

_CLAUSE_END = re.compile(r"(?<=[.!?;])\s+|\n+")  # more than sentences end: a rule looks at what is asked in one breath
MAX_SENTENCE_CHARS = 600  # patterns look at no longer stretch; a longer one is read in pieces
_QUOTED_LINE = re.compile(r"(?m)^[ \t]*>[^\n]*$")
_INLINE_CODE = re.compile(r"`[^`\n]{1,300}`")
_QUOTATION = re.compile(
    r'"[^"\n]{1,400}"|“[^”\n]{1,400}”|„[^“”\n]{1,400}[“”]|«[^»\n]{1,400}»|(?<!\w)\'[^\'\n]{2,400}\'(?!\w)'
)


def sentences(text: str, *, with_code: bool = False) -> list[str]:
    """Sentences and lines, small letters, look-alikes and white space folded. Code and quotations are left out: who
    asks about a sentence does not say it. `with_code`: code counts as said, where a reader would use it."""
    own = clean(text)
    if not with_code:
        own = _INLINE_CODE.sub(" … ", without_fences(own, " … "))
    own = _QUOTATION.sub(" … ", _QUOTED_LINE.sub(" … ", own))
    own = folded(own).replace("’", "'")
    found = []
    for sentence in _CLAUSE_END.split(own):
        words = " ".join(sentence.split()).lstrip("#*->+ ")
        found += [words[at : at + MAX_SENTENCE_CHARS] for at in range(0, len(words), MAX_SENTENCE_CHARS)]
    return found
