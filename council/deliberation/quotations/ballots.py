"""Ballots, each read as one statement: `4 votes to 1`, `6 Ja, 2 Nein, 1 Enthaltung`. Their members are never calculated. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from council.deliberation.quotations.figure import Ballot, Figure, Side

_NAMED_SIDES: tuple[Side, ...] = ("for", "against", "abstained")
_APART = 60  # characters between two members of one ballot
_CUE_CHARS, _CUE_BEHIND = 60, 25
_VOTES = r"(?:votes?|(?:ja-?|nein-?|gegen)?stimmen?|voix|votos?|vot[oi]|stem(?:men)?|głos(?:y|ów)?)"
_CAST = r"\bvot(?!iv)|(?<!be)(?<!über)(?<!zu)stimm(?!t mit|ung)|voix|\bstem|głos"
_ONE_SIDE = re.compile(rf"{_CAST}|favou?r|dafür|dagegen", re.IGNORECASE)  # beside the only number of a ballot
_CARRIED = r"carried|passed|approved|adopted|angenommen|adopté|aprob[aó]d?|approvat|aangenomen"
_LOST = r"lost\b|failed|rejected|defeated|abgelehnt|rejeté|rechaz[aó]d?|respint|verworpen"
_VOTING = re.compile(
    rf"{_CAST}|{_CARRIED}|{_LOST}|resolved|elected|motion|agreed|decided|beschl[ou]|gewählt|entschied|ergebnis",
    re.IGNORECASE,
)
# The outcome of a pair of votes; open where it is denied, or where more than the larger number decides it.
_OUTCOME = re.compile(
    rf"(?P<carried>{_CARRIED})|(?P<lost>{_LOST})|(?P<open>\b(?:not|never|nicht|ne|non?|niet)\b|n['’]t\b|third|drittel|\btiers|terci"
    r"|\bterzi|derde|majorit|mehrheit|mayoría|maggioranza|meerderheid|need|requir|quorum"
    r"|favou?r|reject\b|abzulehnen|rejeter|rechazar|respingere|verwerpen)",  # `the motion to reject it was carried`
    re.IGNORECASE,
)
_VERSUS = re.compile(
    rf"\s*(?:\*\*)?(?:(?P<votes>{_VOTES})\s+)?(?:(?P<sure>against|gegen|contre|contra|contro|tegen)|to|zu|an?|à|:|(?P<dash>[-–—]))\s*(?:\*\*)?",
    re.IGNORECASE,
)
# What stands before `7-2`, unlike `bus 14-16`.
_IN_FRONT = re.compile(
    rf"(?:[,:(*|]|\b(?:by|with|of|at|was|is|were|mit|war|ist|par|de|por|con|met)|(?:{_VOTING.pattern})\w*)\s*\Z",
    re.IGNORECASE,
)
_DOUBTFUL = re.compile(rf"\A(?!.*(?:{_CAST})).*\b(?:for|pour|voor|no)\W*\Z", re.IGNORECASE | re.DOTALL)
_VOTES_BEHIND = re.compile(rf"[\s*]{{0,3}}{_VOTES}\b", re.IGNORECASE)
_RANGE = re.compile(r"\b(?:from|between|von|zwischen|entre|tra|fra|tussen|at|um)\s\Z", re.IGNORECASE)
_PLAIN_NOUN = 4  # letters, from which on a word behind a pair names other things than votes
_GOES_ON = re.compile(r"with|w[ue]rde|avec|after|nach|zugunsten|when|because|while|though", re.IGNORECASE)
_BEI = re.compile(rf"\s*{_VOTES},?\s+(?:bei|with|avec|con|met|mit|and|und|et|y|e|en)\s+", re.IGNORECASE)
_OF = re.compile(r"\s(?:out )?(?:of|von|sur|de|di|van)\s(?:the |den |der |les |l[ao]s |de )?", re.IGNORECASE)
_SIDES = (
    r"(?P<for>(?:for|pour|voor)\b(?!\s+(?:and|or|und|oder|et|ou|en|of)\s+(?:against|contre|tegen))|in favou?r"
    r"|yes\b(?!-(?!vot))|ayes?\b|yeas?\b|dafür\b(?!\s+(?:und|oder)\s+dagegen)|ja\b|zustimm|oui\b|a favore?\b|favorevol|sí\b|sì\b)"
    r"|(?P<against>against\b|no(?:es)?\b(?!-(?!vot)|\s+(?:longer|more|one))|nays?\b|dagegen\b|nein\b|gegenstimm"
    r"|contre\b|(?:en )?contra\b|contrari|tegen\b|nee\b|przeciw)"
    r"|(?P<abstained>abst(?!imm)[aei]|enth(?:alt|ielt)|asten|onth(?:oud|ield)|wstrzym)"
)
_BEHIND = re.compile(
    rf"(?P<words>[ \n*_(-]*(?:[^\W\d_]+[ \n-]+){{0,5}}?)(?:{_SIDES})"
    r"(?!\w*[^.;:,0-9]{0,20}\b(?:or|oder|ou|o)\s+(?:against|for\b|abst|dagegen|enth|contre|no\b|nein))",  # of both
    re.IGNORECASE,
)
_BEFORE = re.compile(
    rf"\b(?:{_SIDES}|(?P<für>(?:für|pour)\b[^.;:,\n]{{1,40}}\b(?:stimm|vot|gab es|sind|waren)))\w*"
    rf"(?:[- ](?:{_VOTES}|voted|stimmten|sind|waren|were))?"
    r"[ *]{0,4}(?P<colon>[:=|])?[ *]{0,4}\Z",
    re.IGNORECASE,
)
_DENIED = re.compile(  # `14 did not vote against`; `motion 4 was voted for`
    r"\b(?:not|nicht|never|nie|ne|kein\w*|no|geen|niet|was|is|wurde|wird|has|hat|bei|with|without"
    r"|or|oder|ou|besides|ohne|außer|avec|sans|con|sin|met)\b|n['’]t\b",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"\b(?:motion|antrag|top|resolution|amendment|item|rule|article|proposal|option|nr\.|no\.)\s\Z", re.IGNORECASE
)
_YEAR = re.compile(r"(?:1[89]|20|21)[0-9]{2}")
_CLAUSE = re.compile(r"[.;!?]\s|\s(?:and|und|et|y|e|en)\s")
_SENTENCE = re.compile(r"[.!?]\s|\n\s*\n")


def with_ballots(text: str, found: Sequence[Figure]) -> list[Figure]:
    """The figures of a text, those of ballots with their sides and with all that the ballot says. `Lost by 2 votes to 7` names
    its sides, and so does a bare `2 to 7`: the votes in favour are said first."""
    sides, doubtful = sides_of(text, found)
    read = list(found)
    run: list[int] = []
    for at in (*(at for at, side in enumerate(sides) if side), len(found)):
        between = text[found[run[-1]].end : found[at].start] if run and at < len(found) else ""
        goes_on = between and len(between) <= _APART and not _SENTENCE.search(between)
        if run and not (goes_on and sides[at] not in [sides[each] for each in run]):
            around = text[max(0, found[run[0]].start - _CUE_CHARS) : found[run[-1]].end + _APART]
            if all(each in doubtful or sides[each] in ("one", "other") for each in run):
                run = [each for each in run if each not in doubtful]
            if len(run) > 1 or (run and (sides[run[0]] == "abstained" or _ONE_SIDE.search(around))):
                held = {sides[each] for each in run}
                if {"one", "other"} <= held <= {"one", "other", "abstained"}:
                    one, other = (each for each in run if sides[each] != "abstained")
                    said = {each.lastgroup for each in _OUTCOME.finditer(_clause(text, found[one], found[other]))}
                    ahead = found[one].value - found[other].value
                    # The larger number decides.
                    if ahead and (said in ({"carried"}, {"lost"}) or (not said and ahead < 0)):
                        is_for = (ahead > 0) == (said == {"carried"})
                        sides[one], sides[other] = ("for", "against") if is_for else ("against", "for")
                ballot = tuple((sides[each], found[each].value) for each in run)
                for each in run:
                    read[each] = replace(found[each], side=sides[each], ballot=ballot)
            run = []
        run.append(at)
    return read


def sides_of(text: str, found: Sequence[Figure]) -> tuple[list[Side], set[int]]:
    """The side that each figure counts, by the words around it; empty for one that counts no votes. With those beside a plain
    `for` or `no`, of which a ballot must name another side, too."""
    sides: list[Side] = []
    doubtful: set[int] = set()
    countable = [
        each.kind == "number"
        and bool(each.values)
        and not each.unit
        and all(value.denominator == 1 for value in each.values)
        and not _NAMED.search(text, max(0, each.start - 16), each.start)
        and not _YEAR.fullmatch(each.text)
        for each in found
    ]
    for at, figure in enumerate(found):
        end = found[at + 1].start if at + 1 < len(found) else len(text)
        behind = _BEHIND.match(text, figure.end, min(end, figure.end + _APART))
        before = _BEFORE.search(text, max(0, figure.start - _APART), figure.start)
        named = before if before and (before["colon"] or not behind) else behind
        denied = named is behind and behind is not None and _DENIED.search(behind["words"])
        is_member = countable[at] and not denied
        sides.append(next((each for each in _NAMED_SIDES if named[each]), "for") if named and is_member else "")
        if named and _DOUBTFUL.search(named[0]):
            doubtful.add(at)
    for at, (one, other) in enumerate(pairwise(found)):
        between = text[one.end : other.start]
        versus = _VERSUS.fullmatch(between)
        if _OF.fullmatch(between):  # `six of nine voted for it`, `84 % of the 37 voted yes`
            sides[at : at + 2] = sides[at + 1] if countable[at] else "", ""
            doubtful |= {at} if at + 1 in doubtful else set()
        elif not (countable[at] and countable[at + 1]):
            continue
        elif versus and sides[at + 1] != "abstained" and not _RANGE.search(text, max(0, one.start - 10), one.start):
            clause = _clause(text, one, other)
            ends = _VOTES_BEHIND.match(text, other.end)
            is_object = not versus["dash"] or _IN_FRONT.search(text[max(0, one.start - _CUE_BEHIND) : one.start])
            cue = versus["votes"] or versus["sure"] or ends or (is_object and _VOTING.search(clause))
            alone = ends or len(other.noun) < _PLAIN_NOUN or _VOTING.match(other.noun) or _GOES_ON.match(other.noun)
            if cue and alone:
                sides[at : at + 2] = "one", "other"
                doubtful -= {at, at + 1}
        elif not sides[at] and sides[at + 1] in ("against", "abstained") and _BEI.fullmatch(between):
            sides[at] = "for"
    return sides, doubtful


def _clause(text: str, one: Figure, other: Figure) -> str:
    """The words around a pair of numbers, up to the next clause."""
    before = _CLAUSE.split(text[max(0, one.start - _CUE_CHARS) : one.start])[-1]
    return before + _CLAUSE.split(text[other.end : other.end + _CUE_BEHIND])[0]


def is_of(said: Figure, known: Iterable[Ballot]) -> bool | None:
    """True when the most similar one of the ballots has this member too, False when it has another, None when it has none.
    Where one of the two neither names its sides nor has an outcome, the order of the numbers is open."""
    best: tuple[int, int, bool | None] = (-1, 0, None)
    for ballot in known:
        there = dict(ballot)
        unnamed = "one" in there or "one" in dict(said.ballot)
        left = [value for side, value in ballot if side != "abstained"]
        agrees: dict[Side, bool | None] = {}
        for side, value in said.ballot:
            if not unnamed or side == "abstained":
                agrees[side] = there[side] == value if side in there else None
            elif value in left:
                left.remove(value)
                agrees[side] = True
            else:
                agrees[side] = False if len(ballot) > 1 else None
        in_place = sum(one == other for (_, one), (_, other) in zip(ballot, said.ballot, strict=False))
        if agrees[said.side] is None:
            continue
        best = max(best, (sum(map(bool, agrees.values())), in_place, agrees[said.side]), key=lambda each: each[:2])
    return best[2]
