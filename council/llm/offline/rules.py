"""Pattern rules over statements: open items, absolutes, obligations, options, empty headings. Matches, no judgements.

There is no rule for contradiction by negation: tried on real documents, every hit was false.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from council.llm.offline.text import Heading, Statement

_OPEN = re.compile(
    r"\b(TODO|TBD|TBC|TBA|FIXME|XXX)\b|\?\?\?"
    r"|(?i:\bto be (?:decided|determined|confirmed|defined|agreed|discussed|clarified)\b"
    r"|\bopen (?:questions?|items?|issues?|points?)\b|\bnot (?:yet|been (?:tested|decided|agreed|checked))\b"
    r"|\b(?:is|are|still|remains?) (?:unknown|unclear|undecided|unresolved|pending|open)\b|\bundecided\b"
    r"|\bas far as we know\b)"
)
_OPEN_SECTION = re.compile(r"(?i)^(?:\W|\d)*(?:open|still open|unresolved|to.?do|still to do|next steps?)\b")
_STRONG = re.compile(
    r"(?i)\b(always|never|guarantee[ds]?|impossible|cannot fail|no risk|zero|100\s?%|risk.free|foolproof|under no"
    r" circumstances|without exception|completely (?:safe|secure))\b"
)
_BROAD = re.compile(
    r"(?i)\b(all|everyone|nobody|no one|none|any time"
    r"|every(?! (?:day|night|morning|week|month|quarter|year|hour|\w+day)))\b"
)
_SUPPORT = re.compile(
    r"https?://|\]\(|\[\d+\]|\[\^|(?i:\b(?:according to|see|source|measured|tested|appendix|figure|table)\b)|\d"
)
_OBLIGED = re.compile(
    r"(?i)\b(must|shall|(?:is|are) (?:required|obliged) to|required|mandatory|needs? to|ha(?:s|ve) to)\b"
)
_PASSIVE = re.compile(
    r"(?i)\b(?:must|shall|needs? to|ha(?:s|ve) to|should)\s+be\s+(?:\w+ly\s+)?(?:\w+ed|\w+en|kept|made|done"
    r"|set|put|found|sent|paid|held|told|built|met|read|run)\b|\b(?:is|are) (?:required|mandatory)\b"
)
_OWNER = re.compile(
    r"\b(?:[Ww]e|I|[Oo]wner|[Rr]esponsible|[Aa]ssigned|[Bb]oard|[Tt]eam|[Gg]roup|[Cc]ommittee|[Ss]teward|[Ss]ecretary"
    r"|[Tt]reasurer|[Vv]olunteers?|[Mm]anager)\b|@\w|\bby (?:the |an? )?[A-Za-z]+(?:er|or|ist|s)?\b(?= |\.|,|$)"
)
_CAPITAL = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]+")
_CALENDAR = re.compile(
    r"^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|^(?:Janu|Febru)ary|^(?:March|April|May|June|July|August|English"
    r"|German|French|September|October|November|December)"
)
_OPTION = re.compile(
    r"(?i)\b(option [a-z0-9]\b|alternative(?:ly)?|recommend\w*|decided|decision|propos\w+|prefers?|preferred|chosen"
    r"|agreed|instead of|trade.?off|advantages?|drawbacks?|cheape(?:r|st))\b"
)
_POSITION = re.compile(
    r"(?i)\b(recommends?|recommended|prefers?|preferred|propos(?:es?|ed)|favou?rs?"
    r"|(?<!be )(?<!yet )(?:decided|resolved|agreed))\b"
)
_OPTION_SECTION = re.compile(r"(?i)\b(agreed|decisions?|options?|alternatives?|recommendations?|proposal)\b")


def open_items(statements: Iterable[Statement]) -> list[Statement]:
    """Marked as not settled: TODO and its kin, unchecked boxes, "to be decided", items under such a heading."""
    found = []
    for s in statements:
        listed = s.kind == "item" and s.checked is not True and _OPEN_SECTION.search(s.section) is not None
        if s.checked is False or listed or (s.checked is None and _OPEN.search(s.text)):
            found.append(s)
    return found


def absolutes(statements: Iterable[Statement], terms: Collection[str]) -> list[Statement]:
    """Claims with an absolute word and neither a number nor a reference; rules and questions are none.

    Strong words (never, guarantee) come before broad ones (all, every), which count only with a task word; then by
    task words.
    """
    wanted = set(terms)
    scored = []
    for s in statements:
        strong = _STRONG.search(s.text) is not None
        near = len(wanted & set(s.stems))
        if (
            s.kind in ("row", "data")
            or s.text.endswith(("?", ":"))
            or _SUPPORT.search(s.text)
            or (re.search(r"(?i)\b(must|shall|should|may|do not|don't|please)\b", s.text) is not None)
        ):
            continue
        if strong or (_BROAD.search(s.text) and near):
            scored.append((not strong, -near, s))
    return [s for *_, s in sorted(scored, key=lambda entry: entry[:2])]


def obligations(statements: Iterable[Statement]) -> list[Statement]:
    return [s for s in statements if s.kind in ("prose", "item") and _OBLIGED.search(s.text) and s.checked is None]


def ownerless(statements: Iterable[Statement]) -> list[Statement]:
    """Obligations in the passive that name nobody: no person, no role, no "by …". Prohibitions need no owner."""
    found = []
    for s in statements:
        names = [name for name in _CAPITAL.findall(s.text) if not _CALENDAR.match(name)]
        by = re.search(r"\bby (?!\d)(?:the |an? )?[A-Za-z]+", s.text)
        dated = by is not None and _CALENDAR.match(by.group().removeprefix("by ").removeprefix("the ")) is not None
        owned = bool(names) or (_OWNER.search(s.text) is not None and not dated)
        if s.kind in ("prose", "item") and _PASSIVE.search(s.text) and not owned:
            found.append(s)
    return found


def options(statements: Sequence[Statement]) -> list[Statement]:
    """Positions first, then other statements that speak of options or decisions, then those under such a heading."""
    spoken = [s for s in statements if s.kind in ("prose", "item") and _OPTION.search(s.text)]
    listed = [s for s in statements if s.kind in ("prose", "item") and _OPTION_SECTION.search(s.section)]
    return list(dict.fromkeys([*positions(spoken), *spoken, *listed]))


def positions(statements: Iterable[Statement]) -> list[Statement]:
    """Statements in which somebody prefers, recommends, proposes or decides; headings do not count."""
    return [s for s in statements if s.kind in ("prose", "item") and _POSITION.search(s.text) and s.checked is None]


def empty_headings(headings: Sequence[Heading]) -> list[Heading]:
    return [heading for heading in headings if heading.empty]
