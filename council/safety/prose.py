"""A text's own words, for rules that read prose: folded to small plain letters, without what it only shows or quotes."""

from __future__ import annotations

import re

from council.markup import CLAUSE_END, without_fences
from council.safety.untrusted import clean, folded

MAX_CLAUSE_CHARS = 600  # patterns look at no longer stretch; a longer one is read in pieces
_QUOTED_LINE = re.compile(r"(?m)^[ \t]*>[^\n]*$")
_INLINE_CODE = re.compile(r"`[^`\n]{1,300}`")
_QUOTATION = re.compile(
    r'"[^"\n]{1,400}"|“[^”\n]{1,400}”|„[^“”\n]{1,400}[“”]|«[^»\n]{1,400}»|(?<!\w)\'[^\'\n]{2,400}\'(?!\w)'
)


def clauses(text: str, *, with_code: bool = False) -> list[str]:
    """Sentences and their parts, small letters, look-alikes and white space folded. Code and quotations are left out: who
    asks about a clause does not say it. `with_code`: code counts as said, where a reader would use it."""
    own = clean(text)
    if not with_code:
        own = _INLINE_CODE.sub(" … ", without_fences(own, " … "))
    own = _QUOTATION.sub(" … ", _QUOTED_LINE.sub(" … ", own))
    own = folded(own).replace("’", "'")
    found = []
    for clause in CLAUSE_END.split(own):
        words = " ".join(clause.split()).lstrip("#*->+ ")
        found += [words[at : at + MAX_CLAUSE_CHARS] for at in range(0, len(words), MAX_CLAUSE_CHARS)]
    return found
