"""Citations as people and models write them, and as Council prints them. Pure, linear in the text.

People write `[E1]`, `[E1, E2]`, `[E1-E3]`, `[E1: docs/a.md:3-5]`, `[E1 docs/a.md, line 3]` and `[E1:8]`. They write
`[E1: a.md:2, 4]`, `[E1: a.md:2; E2: b.pdf:p3]` and `(see E1, line 8)`, too. Models also write `[E1 a.md:3](a.md#L3)`, `[^E1]`,
`【E1†L8】`, `<E1: a.md:3>`, `{E1}`, `[E 1]`, and `[docs/a.md:8]`, `[docs/a.md]` or `[a.md]` without an id. So do
`(Evidence 1, line 3)` and `(lines 3 and 4 of a.md)`. They write `[1]`, `[2, 3]`, `[Source 1]`, `[Doc 1, line 3]` and `[line 3]`.
A link to what was read, such as `[the budget](docs/budget.csv#L3)`, cites it. In prose an id or a path does with its place:
`E1, line 8, says so`, `line 6 of docs/a.md says so`. A path alone does where it says something: `docs/a.md says so`,
`according to docs/a.md`. `(line 3)` and `[1-3]` are read, too. A document that was not read, such as `gone.md` here, cites
where its sentence says something by it: `gone.md says so`, `it is cheap (gone.md)`.
Words in brackets that are not square, such as `(E10 fuel)`, cite nothing. Neither does a number that is one of a list, a clause
or an option, or that the text explains itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from urllib.parse import unquote

from council.lines_and_pages import is_paged, spelled

UNVERIFIED = "[unverified]"
NO_SUCH_EVIDENCE = "[no such evidence]"
NO_SUCH_PLACE = "[no such place]"
NOT_IN_CITED_LINES = "[not in the cited lines]"
ONLY_OWN_WORDS = "[only in the council's own words]"
# What the look-up puts behind a citation, a quotation or a figure that does not hold.
MARKS = (UNVERIFIED, NO_SUCH_EVIDENCE, NO_SUCH_PLACE, NOT_IN_CITED_LINES, ONLY_OWN_WORDS)

EVIDENCE_ID = r"[Ee][0-9]{1,4}(?![0-9A-Za-z])"
_WORD = r"(?i:(?:evidence|sources?|doc(?:ument)?s?|quellen?|dokumente?|belege?)\.? (?:#|n[or]\. )?)"
_NAMED_ID = rf"(?:{EVIDENCE_ID}|{_WORD}[0-9]{{1,3}}(?!\.?[0-9A-Za-z]))"
_SPACED_ID = rf"(?:{_NAMED_ID}|E [0-9]{{1,4}}(?![0-9A-Za-z]))"
CUE = (
    r"(?i:(?:see|also|cf|per|evidence|sources?|ref(?:erence)?s?|from|in|siehe|vgl|quellen?|belege?|voir|laut|e\.g)\b"
    r"[.,:]?\s*){0,3}"
)
_NO_SUFFIX = (
    # `example.com:8080` is a host and its port, `Clause 3.1, line 4` and `v1.2, page 3` are of no file.
    r"(?:[0-9]+(?=[:, ])|(?:com|org|net|io|de|eu|fr|uk|local|internal|test)(?=:))"
)
_ENDING = r"\.(?:md|txt|csv|tsv|pdf|docx|html?|eml)"
_PROSE_PATH = rf"(?:[\w-]+/)*[\w-][\w.-]{{0,200}}{_ENDING}"
# Behind the name of a document that is the source of its sentence.
_SAYS = (
    r"[`*_]{0,3} (?:also )?(?i:says?|states?|gives?|names?|mentions?|shows?|lists?|quotes?|puts|sets|requires?|confirms?"
    r"|reports?|notes?|sagt|nennt|zeigt|besagt|verlangt|bestätigt|schreibt|dit|indique|donne|mentionne|précise|dice|indica|señala)\b"
)
_SAID_BY = re.compile(_SAYS)
_ACCORDING = re.compile(
    r"(?i:\b(?:according to|as per|as (?:stated|given|shown|listed|noted|written) in|laut|gemäß|selon|d'après|según"
    r"|secondo|volgens) [*_]{0,2})\Z"
)
_ASKED = re.compile(  # of what a document says
    r"\b(?:if|whether|unless|until|once|should|must|nothing|ob|wenn|falls|sobald|nichts|my|meine?[rmns]?)\b",
    re.IGNORECASE,
)
_WONDERED = re.compile(  # bound to the name that follows
    r"\b(?:(?:whether|ob)\b.*|(?:if|unless|until|once|wenn|falls|sobald)\b[^,;]*"
    r"|(?:what|was|nothing|nichts|my|meine?[rmns]?)[*_]{0,2}\s+)\Z",
    re.IGNORECASE | re.DOTALL,
)
# In a sentence that merely names a document, which is written, sent, looked for or called so.
_MENTIONED = re.compile(
    r"\b(?:file|document|attachment|append\w*|annex|spreadsheet|sheet|template|folder|draft|writ(?:e|ten)|sav(?:e|ed|ing)|stored?"
    r"|creat\w*|ma[kd]e|renam\w*|cop(?:y|ied)|upload\w*|download\w*|delet\w*|sen[dt]|open|(?:un)?read|need\w*|missing|put|call(?:s|ed)?"
    r"|name[ds]?|attach\w*|add|prepar\w*|fill|updat\w*"
    r"|publish\w*|post(?:s|ed)?|keeps?|kept|record(?:s|ed)|enter(?:s|ed)?|list(?:s|ed)|track(?:s|ed)?|collect\w*|goes"
    r"|web ?(?:page|site)|\w*datei\w*|\w*dokument\w*|anhang|anlage|vorlage|ordner|entwurf|\w*schr(?:ei|ie)b\w*"
    r"|\w*speicher\w*|erstell\w*|anleg\w*|\w*nenn\w*|heißt|kopier\w*|lösch\w*|schick\w*|\w*send\w*|lesen?|gelesen|brauch\w*|fehl\w*)\b"
    r"|\b(?:list|table|letter|mail|minutes|report|notes?|plan|offer|\w*liste|\w*tabelle|brief|protokoll|bericht|\w*plan|angebot)[*_]*\s\Z",
    re.IGNORECASE,
)
# Before the line of something else than a document.
_LINE_OF = re.compile(
    r"\b(?:tram|bus|train|metro|subway|underground|tube|ferry|\w*bahn|\w*fähre)(?:\s[0-9]\w*)?[*_]*\s\Z", re.IGNORECASE
)
_CLOSES = re.compile(  # a clause
    r"[*_]*(?:[.,;:!?)]|\s*(?:\Z|[\n\[(–—]|(?:and|but|or|while|whereas|because|since|so|as|though|which"
    r"|und|aber|oder|weil|da|denn|während|et)\b))"
)
_PROSE_UNIT = "(?i:lines?|pages?|zeilen?|seiten?)"
_PROSE_TO = "(?:(?: ?[-–] ?| (?:and|und|to|bis) )[0-9]{1,7})?"
_OF = "(?:of|in|von|aus|der)"
# Brackets within a path, such as `docs/offer (1).md`: its ending stands right behind them.
_INNER = r"[\[(][^\[\]()\n:]{1,80}[\])](?=[^\s\[\]():]{0,80}\.[A-Za-z0-9]{1,8})"
_CITATION = re.compile(
    rf"[\[【<{{][\^#@]?{CUE}`?(?P<inside>{_SPACED_ID}(?:[^\[\]【】<>{{}}\n]|{_INNER}){{0,600}})[\]】>}}](?:\((?P<target>[^()\s]{{1,600}})\))?"
    rf"|\({CUE}(?P<aside>{_NAMED_ID}(?:[^()\[\]\n]|{_INNER}){{0,600}})\)"
    rf"|[\[(]{CUE}`?(?P<place>(?:[^\[\]()\n:`]|{_INNER}){{1,300}}\.(?!{_NO_SUFFIX})[A-Za-z0-9]{{1,8}}"
    r"(?::|#L|[,:]? (?i:lines?|pages?|ll?\.|pp?\.|zeilen?|z\.|seiten?|s\.) )[Lp]?[0-9]{1,7}(?:\s*[-–—]\s*[Lp]?[0-9]{1,7})?"
    r"(?:\s*(?:[,&]|and|und|et)\s*[0-9]{1,7}(?:\s*[-–—]\s*[0-9]{1,7})?){0,8})`?[\])](?!\()"
    rf"|(?:\[|(?<![\]\w])\(){CUE}`?"
    rf"(?P<file>(?:[^\s\[\]():`]| ?{_INNER}){{1,600}}\.[A-Za-z][A-Za-z0-9]{{0,7}})`?[\])](?![(:\[])"
    rf"|[\[(]{CUE}(?P<lines>(?i:lines?|pages?|zeilen?|seiten?)\s[0-9][0-9\s,&–—-]{{0,40}}(?:(?:and|und|to|bis)\s[0-9]{{1,7}})?)"
    rf"(?:\s{_OF}\s`?(?P<of>[^\s\[\]():`]{{1,600}}\.[A-Za-z][A-Za-z0-9]{{0,7}})`?)?[\])](?![(:\[])"
    r"|(?<![^\W\dA-Z])(?<!\b\w)(?<![\]}])[\[【](?i:(?:sources?|quellen?|ref(?:erence)?s?)[:.]? )?"
    r"(?P<numbers>[0-9]{1,2}(?:(?:[,;] ?|\]\[| ?[-–] ?)[0-9]{1,2}){0,8})[\]】]"
    r"(?![(\[:\w]|\s?[€$£%]|\s[A-Z]{3}\b)"
    rf"|(?<![\w/.:\[(`-])(?P<prose>{_PROSE_PATH}(?:(?::p?|,? {_PROSE_UNIT} )[0-9]{{1,7}}{_PROSE_TO})?)"
    r"(?![\w/]|:\S|[.-]\w| \[)"
    rf"|(?<![\w\[(])(?P<told>{_PROSE_UNIT} [0-9]{{1,7}}{_PROSE_TO}) {_OF} `?(?P<told_of>{_PROSE_PATH})`?"
    r"(?![\w/]|:\S|[.-]\w| \[)"
    r"|(?<![^\W_])(?<!\w_)(?<![./:#\[(\\-])(?P<bare>E[0-9]{1,4}"
    r"(?::? [^\s:()\[\]]{1,300}\.[A-Za-z0-9]{1,8}:p?[0-9]{1,7}(?:[-–][0-9]{1,7})?"
    r"|(?::p?|[:,]? (?P<opened>\()?(?i:(?P<many>lines|pages|pp?\.|zeilen|seiten|lignes)"
    r"|line|page|zeile|seite|z\.|s\.|ligne) ?)"
    r"[0-9]{1,7}(?: ?[-–] ?[0-9]{1,7})?(?(many)(?: (?:and|und|et|to|bis|à) [0-9]{1,7})?)(?(opened)\)))?)"
    r"(?![^\W_]|_\w|[/#-]|[:.]\w)"
)
# Each citation holds one of these. A text without any is not tried at each of its characters.
_MAY_CITE = re.compile(rf"[\[【<{{(]|E[0-9]|{_ENDING}")
_LINK = re.compile(
    rf"(?<![!\\])\[(?!\^|{CUE}`?{_SPACED_ID})(?P<label>[^\[\]\n]{{1,300}})\]\(<?(?P<target>[^()<>\s]{{1,600}})>?(?:\s[\"'][^\"\n]{{0,200}}[\"'])?\)"
)
# `[^1]: docs/a.md`, `[1] docs/a.md` and an item `- [1] Pay the rent`, but not `[1] says so`.
_NOTE = re.compile(
    r"(?m)^ {0,3}(?:\[(?P<name>\^[^\[\]\s]{1,60})\]:|(?:[-+*] )?\[(?P<number>[0-9]{1,2})\]"
    r"(?::|(?= +(?:[^\sa-z]|\S*[./]\S))))(?P<words>.*)"
)
_REFERENCE = re.compile(rf"\[(?P<name>\^(?!{EVIDENCE_ID})[^\[\]\s]{{1,60}}|[0-9]{{1,2}})\](?![:(])")
# A name without folders that cites, whatever was read; others, such as `[Node.js]`, are words of the matter.
_DOCUMENT = re.compile(r".+\.(?:md|txt|csv|tsv|pdf|docx|xlsx|html?|eml)", re.IGNORECASE)
_IN_ROUND_BRACKETS = re.compile(rf"\(\s{{0,8}}{CUE}\0[\s\0,;]{{0,80}}\)")
_TO_NEXT = re.compile(rf"\s*(?:[,;&+/|]|\b(?:and|und|et)\b)\s*(?:and\s+|und\s+|et\s+)?{CUE}(?={_NAMED_ID})")
# `Evidence 1 and 2`, `Sources 1, 3`, `Documents 1-3`
_LISTED = re.compile(rf"\b{_WORD}([0-9]{{1,3}}(?:(?:, ?| ?[-–] ?|,? (?:and|und|et|&) )[0-9]{{1,3}})+)\Z")
# `Option [1]`, `x = [1, 2]`, `"[2] The board meets`: numbers of something else
_OF_OTHERS = re.compile(
    r"(?:[=§#]|\b(?:options?|steps?|stages?|scales?|grades?|groups?|rated?|items?|points?|no|nr|n[uo]m(?:ber|mer|éro)s?|clauses?|art(?:icles?|ikel)?|abs(?:atz)?|satz|sections?"
    r"|paragraphs?|fig(?:ure)?s?|tables?|rows?|columns?|versions?|phases?|questions?|levels?|priority|chapters?|interval|ranges?|between"
    r"|scores?|ratings?|values?|vectors?|arrays?|lists?|ids?|is|are)\.?|(?<!source)(?<!sources)(?<!quelle)(?<!quellen)(?<!evidence):"
    r"|(?:\A|\n) *>|(?<![^\s(>])[\"“„«‘])\s*\Z",
    re.IGNORECASE,
)
_PART = re.compile(
    rf"(?P<id>{_SPACED_ID})`?(?:\s*[-–—]\s*(?P<through>{EVIDENCE_ID}))?\s*(?:[:,;@|†(·/#]|[-–—]\s|(?:in|at|from)\s)?\s*(?P<rest>.*)",
    re.DOTALL,
)
_A_PLACE = r"(?:L|p\.?)?\s?[0-9]{1,7}"
_TO = r"\s*(?:[-–—]|\.\.|\b(?:to|bis|à)\b)\s*"
_A_RANGE = rf"{_A_PLACE}(?:{_TO}{_A_PLACE})?"
_UNIT = r"(?:(?:lines?|ll?\.|pages?|pp?\.?|zeilen?|z\.|seiten?|s\.|lignes?)\s*)?"
_RANGES = re.compile(rf"{_UNIT}(?P<ranges>{_A_RANGE}(?:\s*(?:[,;+&]|and|und|et)\s*{_A_RANGE})*)", re.IGNORECASE)
_LOCATED = re.compile(
    r"(?P<path>[^:#]{1,512}?)(?:\s*[:#]\s*|\s*[,;]\s*(?=[a-z])|\s+\(?(?=(?:line|page|zeile|seite|ligne|ll?\.|pp?\.)))(?P<where>.+)",
    re.IGNORECASE | re.DOTALL,
)
_TO_PATH = re.compile(
    r"(?:\s*[,;]\s*(?:(?:and|und|et)\s+)?|\s+(?:and|und|et)\s+)"
    r"(?=[^\s,;:#]{1,512}\.[A-Za-z0-9]{1,8}(?:[:#]|,?\s(?:lines?|pages?|zeilen?|seiten?|lignes?|ll?\.|pp?\.)\s?[0-9]))",
    re.IGNORECASE,
)
_ONE_RANGE = re.compile(rf"(?P<first>[0-9]{{1,7}})(?:{_TO}(?:L|p\.?)?\s?(?P<last>[0-9]{{1,7}}))?", re.IGNORECASE)
_ASIDE = re.compile(r"\s\([^()0-9]*\)\Z|,\s(?:accessed|retrieved|read|abgerufen|consultée?)\s.*\Z", re.IGNORECASE)
_A_PATH = re.compile(r"[^\s/][^/]*\.[A-Za-z0-9]{1,8}|\S*/\S.*|[\ue000-\uf8ff].*")
_PRIVATE = re.compile(r"([\ue000-\uf8ff])\1*")  # characters that no text has a use for
_MAX_ODD_PATHS = 6_400  # as many as there are of them
_PLAIN_PATH = re.compile(rf"(?!.*\b{EVIDENCE_ID})[\w./-]+")
_MAX_PLACE_CHARS = 600
_STEM = 4  # letters
_MAX_IDS = 40  # of a range of ids, and places of a footnote


@dataclass(frozen=True)
class CitedPlace:
    """One place of a citation: evidence, and a path and lines of it where they are named (`first` None: the whole). Of a PDF
    the lines are pages. `id` is empty where only the path is named. `in_pages`: it was spelled as pages, which only a PDF
    has."""

    id: str
    path: str = ""
    first: int | None = None
    last: int = 0
    in_pages: bool = field(default=False, compare=False)

    @property
    def where(self) -> str:
        """`docs/a.md:3-5`, `docs/a.pdf:p3`, `docs/a.md`, or nothing."""
        if self.first is None:
            return self.path
        return spelled(self.path, self.first, self.last if self.last > self.first else None)

    def is_part_of(self, full: CitedPlace) -> bool:
        """True when the full name says nothing else: it may add the id or the path."""
        same = (self.first, self.last) == (full.first, full.last)
        return same and self.id in ("", full.id) and self.path in ("", full.path)

    def __str__(self) -> str:
        return f"[{': '.join(filter(None, (self.id, self.where.removeprefix(':'))))}]"


@dataclass(frozen=True)
class Citation:
    """A pair of brackets with one or more places in it. `remark`: words in it name no place. `terms`: those that the matter
    may have for itself, such as `Document 1` or `[1]`."""

    start: int
    end: int
    text: str
    places: tuple[CitedPlace, ...]
    remark: bool = False
    terms: tuple[str, ...] = ()

    @property
    def is_bare(self) -> bool:
        """True for an id or a path without brackets and without lines: `E1 says so`, `docs/a.md says so`."""
        return self.text[0] not in "[【(<{" and self.places[0].first is None

    @property
    def may_be_a_term(self) -> bool:
        """True where a word of the matter, such as `E120`, looks like an id: without square brackets, or by another name."""
        return self.text[0] not in "[【" or bool(self.terms)


class KnownPaths:
    """Paths that a text may cite: they and their ends are read as they are, also where a comma, a bracket or an id in one would
    end it.

    Each of these odd paths is hidden by as many letters of its own before a text is read, the longest first. One that
    reads as a citation of another path, such as `E1 a.md` beside `a.md`, is not: no name may draw citations to itself.
    `only` is the path where there is just one, else empty.
    """

    def __init__(self, paths: Iterable[str] = ()) -> None:
        known = {*filter(None, paths)}
        longest = max(known, key=len, default="")
        self.only = longest if all(f"/{longest}".endswith(f"/{path}") for path in known) else ""
        self._ends = {path[at:] for path in known for at in (0, *(slash.end() for slash in re.finditer("/", path)))}
        odd = sorted({*_odd(known), *_odd(self._ends)}, key=lambda path: (len(path), path), reverse=True)
        self._letters = {path: chr(0xE000 + number) for number, path in enumerate(odd[:_MAX_ODD_PATHS])}
        self._stems = {letter: path.removesuffix(_ending(path)) for path, letter in self._letters.items()}
        listed = "|".join(map(re.escape, self._letters))
        self._found = re.compile(rf"(?:(?<![\w/])|(?<=\./))(?:{listed})(?!\w|\.\w)") if listed else None

    def hidden(self, text: str) -> str:
        """The text with letters in place of each odd path, every character where it was."""
        if self._found is None:
            return text

        def letters(found: re.Match[str]) -> str:
            ending = _ending(found[0])
            return self._letters[found[0]] * (len(found[0]) - len(ending)) + ending

        return self._found.sub(letters, _PRIVATE.sub(lambda found: "\ufffd" * len(found[0]), text))

    def is_named_by(self, name: str) -> bool:
        """True for a path, and for the end of one."""
        return name in self._ends

    def shown(self, text: str) -> str:
        return _PRIVATE.sub(lambda found: self._stems.get(found[1], found[0]), text) if self._found else text


def _odd(paths: set[str]) -> list[str]:
    """Those of the paths that are hidden."""
    listed = "|".join(map(re.escape, sorted(paths, key=lambda path: (len(path), path))))
    of_another = re.compile(rf"(?:.*\b(?:{EVIDENCE_ID}|[0-9]{{1,7}})[\s,;:]+)?(?P<path>{listed})(?!\w)")
    odd = [path for path in paths if not _PLAIN_PATH.fullmatch(path)]
    return [path for path in odd if (found := of_another.match(path)) and found["path"] == path]


def _ending(path: str) -> str:
    found = re.search(r"(?<=.)\.[A-Za-z0-9]{1,8}\Z", path)
    return found[0] if found else ""


_NO_PATHS = KnownPaths()


def citations(text: str, *, bare: bool = False, paths: KnownPaths = _NO_PATHS) -> Iterator[Citation]:
    """All citations of a text, in order; what is code in it, the caller knows. `bare`: those without brackets, too. `paths`
    of what was read."""
    for cited in _citations(paths.hidden(text), bare, paths):
        places = tuple(replace(place, path=paths.shown(place.path)) for place in cited.places)
        yield replace(cited, text=text[cited.start : cited.end], places=places)


def linked_as_cited(text: str, paths: KnownPaths, is_code: Callable[[int], bool]) -> str:
    """The text with `the budget [docs/budget.csv:3]` for a link from these words to that line, if it is of a path. Words
    that only name the place themselves are left out."""

    pieces: list[str] = []
    at = 0
    for link in _LINK.finditer(paths.hidden(text)):
        places = list(_places("", _linked(unquote(link["target"]))))
        if len(places) != 1 or is_code(link.start()) or not paths.is_named_by(paths.shown(places[0].path)):
            continue
        [place] = places
        named = list(_places("", link["label"].strip("`*_ ")))
        if len(named) != 1 or not f"/{place.path}".endswith(f"/{named[0].path}"):
            cited = f"{text[slice(*link.span('label'))]} {paths.shown(str(place))}"
        else:
            cited = paths.shown(str(replace(named[0], path=place.path) if place.first is None else place))
        pieces += (text[at : link.start()], cited)
        at = link.end()
    return "".join([*pieces, text[at:]])


def without_code(text: str, spans: Sequence[tuple[int, int]], paths: KnownPaths) -> str:
    """The text without the backticks of those `spans` of code that are nothing but citations: `[E1: a.md:3]`, `a.md:3`."""
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        inside = text[start:end].strip("` ")
        places = list(_places("", paths.hidden(inside))) if len(inside) < _MAX_PLACE_CHARS else []
        named_document = len(places) == 1 and _DOCUMENT.fullmatch(places[0].path)
        known = named_document and paths.is_named_by(paths.shown(places[0].path))
        if named_document and (known if places[0].first else _is_source(text, start, end)):
            pieces += (text[at:start], f"[{inside}]" if known else inside)
            at = end
            continue
        found = list(citations(inside, bare=True, paths=paths))
        between = [inside[one.end : other.start] for one, other in pairwise(found)]
        is_whole = found and found[0].start == 0 and found[-1].end == len(inside)
        # `{E8}`, `[main.py]` and `[1]` are code.
        named = all(each.places[0].id and (each.text[0] == "[" or each.places[0].first) for each in found)
        named = named and not any(each.terms and each.text[1].isdigit() for each in found)
        if is_whole and named and not any(each.remark for each in found) and not "".join(between).strip(" ,;"):
            pieces += (text[at:start], inside)
            at = end
    return "".join([*pieces, text[at:]])


def footnotes(text: str, paths: KnownPaths) -> list[Citation]:
    """The references to footnotes that cite: each `[^1]` as a citation of the places that `[^1]: [E1: a.md:3]` names."""
    notes: dict[str, list[CitedPlace]] = {}
    listed = [*_NOTE.finditer(text)]
    for note in listed:
        places = [place for each in citations(note["words"], bare=True, paths=paths) for place in each.places]
        named = [
            CitedPlace("", path[0]) for path in re.finditer(_PROSE_PATH, note["words"]) if paths.is_named_by(path[0])
        ]
        notes[note["name"] or note["number"]] = places or named
    begins = {note.start() + note[0].index("[") for note in listed}
    found = [each for each in _REFERENCE.finditer(text) if each.start() not in begins and notes.get(each["name"])]
    return [Citation(*each.span(), each[0], tuple(notes[each["name"]][:_MAX_IDS])) for each in found]


def unlinked(ref: str) -> str:
    """A reference as it is; of a link, the place that it leads to."""
    link = _LINK.fullmatch(ref.strip())
    return _linked(unquote(link["target"])) if link else ref


def _linked(target: str) -> str:
    """The place that a link leads to; a heading in it is none."""
    target = re.sub(r"^(?:\.{1,2}/)+|#(?!L[0-9]|page=[0-9]).*", "", target)
    return target.replace("#L", ":").replace("#page=", ":p")


def _before(text: str, at: int) -> str:
    """The sentence up to there."""
    return re.split(r"[.!?:]\s|\n\s*\n", text[max(0, at - 300) : at])[-1]


def _is_source(text: str, start: int, end: int) -> bool:
    """True for the name of a document that its sentence says something by: `a.md says so`, `according to a.md`."""
    told = _SAID_BY.match(text, end) or _ACCORDING.search(text, max(0, start - 20), start)
    return told is not None and not _WONDERED.search(_before(text, start))


def _is_of_file(match: re.Match[str], paths: KnownPaths, *, told: bool = False) -> bool:
    """True for a file in brackets that is cited. `told`: also in round ones that close what is said by an unknown document."""
    name = match["file"]
    brackets = match[0][0] + match[0][-1]
    if paths.is_named_by(paths.shown(name)):
        return brackets in ("[]", "()")
    is_document = _DOCUMENT.fullmatch(name) is not None
    if brackets == "[]":
        return "/" in name or is_document
    before = _before(match.string, match.start())
    if not (told and is_document and brackets == "()" and " " in before.strip()):
        return False
    word = before.rstrip("*_ ").rpartition(" ")[2].lower()
    if len(word) >= _STEM and name.rpartition("/")[2].lower().startswith(word[:_STEM]):  # `the rules (rules.md)`
        return False
    closes = _CLOSES.match(match.string, match.end()) is not None
    return closes and not (_MENTIONED.search(before) or _ASKED.search(before))


def _document_of(match: re.Match[str], paths: KnownPaths) -> str:
    """The document whose lines are cited without it: the last that its sentence names, or the only one that was read."""
    before = _before(match.string, match.start())
    named = [each[0] for each in re.finditer(_PROSE_PATH, before) if paths.is_named_by(each[0])]
    other = match[0][0] == "(" and (
        _LINE_OF.search(before) or (match["lines"][0] in "pPsS" and not is_paged(paths.only))
    )
    return named[-1] if named else "" if other else paths.only


def _citations(text: str, bare: bool, paths: KnownPaths) -> Iterator[Citation]:
    if _MAY_CITE.search(text) is None:
        return
    notes = {note["number"] for note in _NOTE.finditer(text)}
    for match in _CITATION.finditer(text):
        if match["numbers"]:
            spelled_out = re.sub(" ?[-–] ?", "-", match["numbers"])
            ranges = [[*map(int, each.split("-"))] for each in re.split(r"[,;\]\[ ]+", spelled_out)]
            numbers = [str(number) for each in ranges for number in range(each[0], each[-1] + 1)]
            is_range = len(spelled_out.split("-")) > 1
            goes_on = is_range and not (_CLOSES.match(text, match.end()) or _SAID_BY.match(text, match.end()))
            of_others = goes_on or _OF_OTHERS.search(text, max(0, match.start() - 20), match.start())
            if numbers and notes.isdisjoint(numbers) and not of_others:
                ids = tuple(CitedPlace(f"E{number}") for number in numbers)
                words = dict.fromkeys((*numbers, match["numbers"]) if is_range else numbers)
                yield Citation(*match.span(), match[0], ids, terms=tuple(f"[{each}]" for each in words))
            continue
        if match["bare"]:
            if bare:
                yield Citation(*match.span(), match[0], tuple(_part(match["bare"])[0]))
            continue
        if prose := match["prose"] or (match["told_of"] and f"{match['told_of']}, {match['told']}"):
            places = tuple(_places("", prose))
            located = places[0].first is not None
            if bare and (
                paths.is_named_by(paths.shown(places[0].path)) if located else _is_source(text, *match.span())
            ):
                yield Citation(*match.span(), match[0], places)
            continue
        of = match["of"] or (_document_of(match, paths) if match["lines"] and bare else "")
        if place := match["place"] or (of and f"{of}, {match['lines']}"):
            if _LOCATED.fullmatch(place) and (places := tuple(_places("", place))):
                yield Citation(*match.span(), match[0], places)
            continue
        if match["lines"]:
            continue
        if match["file"]:
            if _is_of_file(match, paths, told=bare):
                yield Citation(*match.span(), match[0], (CitedPlace("", _path(match["file"])),))
            continue
        inside = " ".join((match["inside"] or match["aside"]).split())
        inside = _LISTED.sub(lambda listed: re.sub("[0-9]+", r"E\g<0>", listed[1]), inside)
        parts = [_part(part) for part in _TO_NEXT.split(inside)]
        places = tuple(place for part, _ in parts for place in part)
        remark = any(remark for _, remark in parts)
        target = match["target"] or ""
        in_words = match[0][0] not in "[【" or not re.match(EVIDENCE_ID, inside)
        terms = tuple(re.findall(rf"{_WORD}[0-9]+", match[0])) if in_words else ()
        if (remark and in_words and "§" not in inside) or (terms and match["target"]):
            continue
        if target and "://" not in target and len(places) == 1 and not places[0].path:  # a link to a place, no address
            linked = _linked(target)
            places = tuple(_places(places[0].id, linked)) if linked else places
        yield Citation(*match.span(), match[0], places, remark, terms)


def places_in(inside: str, paths: KnownPaths = _NO_PATHS) -> list[CitedPlace]:
    """The places that the inside of brackets names, also one without an id."""
    parts = _TO_NEXT.split(paths.hidden(inside.strip()).strip("[]"))
    named = [place for part in parts for place in _part(part)[0] or _places("", part)]
    return [replace(place, path=paths.shown(place.path)) for place in named]


def without_citations(text: str, paths: KnownPaths = _NO_PATHS) -> str:
    """The text with a space for each citation, and for round brackets that hold nothing else."""

    def space(match: re.Match[str]) -> str:
        return (
            match[0]
            if match["bare"]
            or match["prose"]
            or match["told"]
            or match["numbers"]
            or (match["lines"] and not match["of"])
            or (match["file"] and not _is_of_file(match, paths))
            else "\0"
        )

    marked = _CITATION.sub(space, paths.hidden(text).replace("\0", " "))
    return paths.shown(_IN_ROUND_BRACKETS.sub(" ", marked).replace("\0", " "))


def _part(text: str) -> tuple[list[CitedPlace], bool]:
    """The places of one part, and whether it holds words that are none."""
    match = _PART.fullmatch(text.strip())
    if match is None:
        return [], True
    id = f"E{re.sub('[^0-9]', '', match['id'])}"
    rest = (
        _ASIDE.sub("", match["rest"].strip())
        .rstrip(")")
        .replace("`", "")
        .replace("#page=", ":p")
        .strip(" \"“”'")
        .rstrip(".")
    )
    if match["through"]:
        first, last = sorted((int(id[1:]), int(match["through"][1:])))
        return [CitedPlace(f"E{number}") for number in range(first, min(last, first + _MAX_IDS) + 1)], bool(rest)
    places = list(_places(id, rest))
    return places or [CitedPlace(id)], bool(rest) and not places


def _places(id: str, rest: str) -> Iterator[CitedPlace]:
    """The places that stand behind an id; none where a remark does."""
    if len(several := _TO_PATH.split(rest)) > 1:
        for each in several:
            yield from _places(id, each)
        return
    located = _LOCATED.fullmatch(rest)
    if found := _RANGES.fullmatch(rest):
        path = ""
    elif located and (found := _RANGES.fullmatch(located["where"].strip().rstrip(")"))):
        path = _path(located["path"])
    else:
        path = _path(rest)
        if _A_PATH.fullmatch(path):
            yield CitedPlace(id, path)
        return
    in_pages = re.match(r"p|seite|s\.", found[0], re.IGNORECASE) is not None
    for each in _ONE_RANGE.finditer(found["ranges"]):
        first = int(each["first"])
        last = int(each["last"] or first)
        yield CitedPlace(id, path, min(first, last), max(first, last), in_pages)


def _path(text: str) -> str:
    return text.strip().strip("`\"'").replace("\\", "/").removeprefix("./")
