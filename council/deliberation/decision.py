"""A decision in words: the closing reply, typed or in prose, with its quotations looked up and its sources looked at
again. A position held to the end stands in it, also where its writer left it out. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from council.artifacts.page import Section
from council.citations import NO_SUCH_EVIDENCE, NO_SUCH_PLACE, NOT_IN_CITED_LINES, ONLY_OWN_WORDS, UNVERIFIED
from council.deliberation.names import NO_SUCH_MEMBER, Names, listed
from council.deliberation.quotations.lookup import ONLY_OWN, FigureFinding, QuotationFinding, Quotations
from council.deliberation.quotations.passages import passages_of
from council.deliberation.record import ClosingRecord, DecisionRecord, Dissent, answer_in, is_attempt, read
from council.deliberation.stance import folded
from council.deliberation.stances_page import of_each, sources
from council.deliberation.transcript import Standpoint, Transcript
from council.markup import unfenced, without_thoughts
from council.turns.changed_sources import SourceNow, SourcesNow
from council.turns.closing_block import asked_to_correct
from council.turns.result import TurnResult

_SHOWN_CHARS = 120
_MAX_SHOWN = 20
_UNTYPED = "The writer gave plain text, so claims and dissent are not listed."
_LIST_MARK = re.compile(r"\A\s*(?:[-+*•]\s+(?!\d)|#{1,6}\s+)")  # `- 5 %` may be less than nothing
_ITEM_NUMBER = re.compile(
    r"\A\s*\(?(\d{1,3})[.)]\s+"
    r"(?!(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b)"
)
_QUOTE_MARKS = re.compile('["“”„«»]')


@dataclass(frozen=True)
class Decision:
    """`warnings` stand above the text. `untyped` says that there is no typed record, `agrees_with` whose position it
    takes, by its writer's word."""

    answer: str
    sections: tuple[Section, ...] = ()
    findings: tuple[QuotationFinding, ...] = ()
    warnings: tuple[str, ...] = ()
    untyped: str = ""
    tally: str = ""
    agrees_with: str = ""


def look_up(transcript: Transcript, own_paths: Sequence[str] = ()) -> Quotations:
    """All that the council read, ready to look quotations up in. `own_paths`: files that the council wrote."""
    passages = [passage for item in transcript.evidence() for passage in passages_of(item, own_paths)]
    said: list[str] = []
    for turn in transcript.turns():
        said += [turn.result.text, *([turn.stance.position, turn.stance.would_change] if turn.stance else [])]
    issued = [item.id for item in transcript.evidence() if item.id]
    task, day = transcript.task, transcript.day  # both are known without a citation
    return Quotations(passages, issued, [*said, _QUOTE_MARKS.sub(" ", task)], task, day)


def decide(
    reply: TurnResult,
    settled: ClosingRecord | None,
    transcript: Transcript,
    sources: SourcesNow | None,
    roles: Sequence[str],
    names: Names,
    writer: str,
) -> Decision:
    """`settled` None: the run ended before the reply was read whole; `sources` None: before its files were looked at again."""
    files = sources.files if sources else ()
    look = _LookUp(look_up(transcript, [file.path for file in files if file.own]))
    record = settled.record if settled else read(reply)
    spoke = list(dict.fromkeys(turn.role for turn in transcript.turns()))
    agreed = [name for name in record.agrees_with if names.roles_in(name, roles)] if record else []
    meant = [role for role in spoke if any(role in names.roles_in(name, roles) for name in agreed)]
    sections: list[Section] = []
    how_shown = "The decision is shown as it was written."
    if record is not None:
        answer = look.at(record.answer)
        claims = [look.at(claim.text, claim.evidence) for claim in record.claims]
        views = [f"{names.shown(part.held_by, roles)}: {part.view}" for part in record.dissent]
        dissent = [look.at(view, part.evidence) for view, part in zip(views, record.dissent, strict=True)]
        dissent += [look.at(view) for view in passed_over(record, meant, transcript, writer, names)]
        confidence = f"{record.confidence:.2f} of 1. This is the writer's own estimate, and it is not calibrated."
        sections += [
            *_section("Why", claims),
            *_section("Dissent", dissent or ["None was recorded."]),
            *_section("Open questions", [look.at(item) for item in record.open_questions]),
            *_section("Next steps", [look.at(item) for item in record.next_steps], numbered=True),
            Section("Confidence", (confidence,)),
            *_section("What would change our mind", [look.at(item) for item in record.would_change]),
        ]
    else:
        body = without_thoughts((settled and settled.text) or reply.text)
        alone = answer_in(body) if is_attempt(body) else ""
        if alone:
            how_shown = "Only the decision's answer is shown."
        elif (raw := unfenced(body)).startswith(("{", "[")) and is_attempt(body):
            how_shown = "The decision is shown as it was written, and nothing in it was looked up."
            body = f"```json\n{raw}\n```"
        answer = look.at(alone or body)
    return Decision(
        answer,
        (*sections, *look.sections()),
        tuple(look.findings),
        (*_warnings(settled, record, roles, names, how_shown), *look.warnings(files)),
        "" if record or (settled and settled.fault) else _UNTYPED,
        look.tally(),
        f"The writer says that it takes the position of {listed(meant)}." if meant else "",
    )


def _warnings(
    settled: ClosingRecord | None, record: DecisionRecord | None, roles: Sequence[str], names: Names, how_shown: str
) -> Iterator[str]:
    if settled is not None and settled.fault:
        asked = sum(repair.was_asked for repair in settled.repairs)
        after = f", though the writer was {asked_to_correct(asked, 'them')}" if asked else ""
        yield f"{how_shown} Its claims and dissent could not be read{after}: {settled.fault}."
    for failure in settled.failed_repairs if settled else ():
        yield f"Asking the writer to correct the form of the decision failed ({failure.kind}): {failure.message}"
    strange = [part for part in record.dissent if not names.roles_in(part.held_by, roles)] if record else []
    if strange:
        what = "dissent is" if len(strange) == 1 else "dissents are"
        yield f"{len(strange)} {what} ascribed to somebody who is not a member of this council; marked `{NO_SUCH_MEMBER}`."
    if record and not all(names.roles_in(name, roles) for name in record.agrees_with):
        yield "The decision claims the position of somebody who is not a member of this council."


class _LookUp:
    def __init__(self, quotations: Quotations) -> None:
        self._quotations = quotations
        self.findings: list[QuotationFinding] = []
        self._unknown: dict[str, None] = {}
        self._no_places: dict[str, None] = {}
        self._corrected: dict[tuple[str, str], None] = {}
        self._figures: dict[FigureFinding, None] = {}  # as they are listed: one that is repeated counts once

    def at(self, text: str, evidence: Iterable[str] = ()) -> str:
        """`evidence`: what its writer lists for the whole of the text."""
        checked = self._quotations.check(text, evidence)
        self.findings += checked.findings
        self._unknown.update(dict.fromkeys(checked.unknown_ids))
        self._no_places.update(dict.fromkeys(checked.no_places))
        self._corrected.update(dict.fromkeys(checked.corrected))
        self._figures.update(dict.fromkeys(replace(it, figure=" ".join(it.figure.split())) for it in checked.figures))
        return checked.text

    def tally(self) -> str:
        kinds: Counter[str] = Counter()
        for finding in self.findings:
            if finding.outcome == "found" and finding.full:
                kinds["found with omissions"] += 1
            elif finding.outcome == "found":
                kinds["found as cited" if finding.cited else "found, without a citation"] += 1
            else:
                kinds[_KINDS[finding.outcome]] += 1
        parts = [f"{kinds[kind]} {kind}" for kind in (*_FOUND, *_KINDS.values()) if kinds[kind]]
        told = [f"Quotations looked up in what was read: {len(self.findings)}; {', '.join(parts)}."] if parts else []
        if self._figures:
            missing = sum(finding.standing != "cited" for finding in self._figures)
            what = f"{missing} not there" if missing else "all there"
            told.append(f"Figures looked up in the lines cited for them: {len(self._figures)}; {what}.")
        if told:
            told.append("Positions and turns were not checked.")
        return " ".join(told)

    def sections(self) -> Iterator[Section]:
        lines: dict[QuotationFinding, str] = {}
        for finding in self.findings:
            if finding.outcome in ("found", "said") and not finding.full:
                continue
            words = finding.quotation.replace("`", "'")
            shown = words if len(words) <= _SHOWN_CHARS else f"{words[:_SHOWN_CHARS].rsplit(' ', 1)[0]} …"
            cited = f", cited as `{_bare(finding.cited)}`" if finding.cited else ""
            whole = finding.full.replace("`", "'")
            full = f" Words are left out; the full text is: `{whole}`." if whole else ""
            if finding.outcome == "unverified":
                lines[finding] = f"`{shown}`{cited}: unverified, {finding.reason}."
            elif finding.outcome == "found":
                lines[finding] = f"`{shown}`{cited}, found with omissions at {finding.place}.{full}"
            else:
                lines[finding] = f"`{shown}`{cited}, found at {finding.place}; the citation is corrected.{full}"
        yield from _section("Quotations", _first(list(lines.values())))
        missing = [each for each in self._figures if each.standing != "cited"]
        told = [f"`{each.figure}`: {_STANDINGS[each.standing]} {each.cited}." for each in missing]
        yield from _section("Figures", _first(told))
        corrected = [f"Cited as `{_bare(old)}`, corrected to {new}." for old, new in self._corrected]
        yield from _section("Citations", _first(corrected))

    def warnings(self, files: Sequence[SourceNow]) -> Iterator[str]:
        unverified = [finding for finding in self.findings if finding.outcome == "unverified"]
        own = sum(finding.reason == ONLY_OWN for finding in unverified)
        standing = Counter(finding.standing for finding in self._figures)
        for count, what, why, mark in (
            (len(unverified) - own, "quotation", "not in what the council read", UNVERIFIED),
            (own, "quotation", _OWN, UNVERIFIED),
            (standing["missing"], "figure", "not in the cited lines", NOT_IN_CITED_LINES),
            (standing["own"], "figure", _OWN, ONLY_OWN_WORDS),
        ):
            if count:
                subject, it = (f"1 {what} is", "it is") if count == 1 else (f"{count} {what}s are", "they are")
                yield f"{subject} {why}; {it} marked `{mark}`."
        if self._quotations.figures.gave_up:
            yield "The decision has very many figures; whether the last ones follow from cited ones was not calculated."
        if self._unknown:
            yield f"Cited, but never given to the council: {', '.join(self._unknown)}; marked `{NO_SUCH_EVIDENCE}`."
        if self._no_places:
            places = list(self._no_places)
            more = f" and {len(places) - _MAX_SHOWN} more" if len(places) > _MAX_SHOWN else ""
            shown = ", ".join(f"`{_bare(place)}`" for place in places[:_MAX_SHOWN])
            yield f"Cited, but no such place was read: {shown}{more}; marked `{NO_SUCH_PLACE}`."
        for file in files:
            passages = [p for p in self._quotations.passages if p.path == file.path and p.sha256 and not p.own]
            read_as = {} if file.own else {p.sha256: p.id for p in passages}
            old = ", ".join(id for sha256, id in read_as.items() if sha256 != file.sha256)
            if old and file.error:
                yield f"Stale: `{file.path}` ({old}) cannot be read any more: {file.error}"
            elif old:
                yield f"Stale: `{file.path}` ({old}) changed after it was read; the decision refers to the old text."


_OWN = "only in a past decision or the memory of the council, which are not sources"
_STANDINGS = {"missing": "not in", "own": "only in the council's own words,"}
_FOUND = ("found as cited", "found, without a citation", "found with omissions")
_KINDS = {
    "narrowed": "found in fewer lines than cited",
    "moved": "found elsewhere",
    "said": "said in the council, but not read",
    "unverified": "unverified",
}


def _section(heading: str, items: Sequence[str], *, numbered: bool = False) -> Iterator[Section]:
    """Without the marks of a list and of headings; numbers only where they count the items, for `15. Mai` is a day."""
    bare = [_LIST_MARK.sub("", item) for item in items]
    numbers = [_ITEM_NUMBER.match(item) for item in bare]
    if all(found and int(found[1]) == at for at, found in enumerate(numbers, start=1)):
        bare = [_ITEM_NUMBER.sub("", item) for item in bare]
    if bare:
        yield Section(heading, tuple(bare), listed="numbers" if numbered else "bullets")


def _first(lines: list[str]) -> list[str]:
    left = len(lines) - _MAX_SHOWN
    return [*lines[:_MAX_SHOWN], f"… and {left} more."] if left > 0 else lines


def _bare(citations: str) -> str:
    return re.sub(r"[\[\]`]", "", citations)


Group = Sequence[tuple[str, Standpoint]]


def passed_over(
    record: DecisionRecord, meant: Collection[str], transcript: Transcript, writer: str, names: Names
) -> Iterator[str]:
    """Each position held last beside the decision's own that its dissent does not name with its holder and its source.
    `meant`: the members with whom its writer agrees."""
    groups: dict[str, list[tuple[str, Standpoint]]] = {}
    for role, held in transcript.positions().items():
        groups.setdefault(held.stance.key, []).append((role, held))
    named = {key for key, group in groups.items() if any(_names(part, group, names) for part in record.dissent)}
    unnamed = {key: group for key, group in groups.items() if key not in named}
    own = _own(record, meant, groups, unnamed, writer)
    for key, group in unnamed.items():
        if key != own:
            held_by = ", ".join(role if held.restated else f"{role} (in round {held.round})" for role, held in group)
            cited = of_each(group, lambda held: sources(held.stance.evidence, transcript))
            position = " ".join(group[0][1].stance.position.split())  # its own line could be read as a block quotation
            stop = "" if position.endswith((".", "!", "?")) else "."
            yield f"{held_by}, left out by the writer: {position}{stop} Evidence: {cited}."


def _own(
    record: DecisionRecord,
    meant: Collection[str],
    groups: Mapping[str, Group],
    unnamed: Mapping[str, Group],
    writer: str,
) -> str:
    """The position that the decision takes, empty when that cannot be told. By its writer's word it is the one that
    most of the members hold whom it names. Else it is the one it repeats, then that of most members, and of equals that
    of its writer."""
    counts = {key: sum(role in meant for role, _ in group) for key, group in groups.items()}
    most = max(counts.values(), default=0)
    said = [key for key, count in counts.items() if most and count == most]
    if len(said) == 1:
        return said[0]
    if folded(record.answer) in unnamed:
        return folded(record.answer)
    most = max(map(len, unnamed.values()), default=0)
    largest = [key for key, group in unnamed.items() if len(group) == most]
    if len(largest) == 1:
        return largest[0]
    return next((key for key in largest if any(role == writer for role, _ in unnamed[key])), "")


def _names(part: Dissent, group: Group, names: Names) -> bool:
    """True when a dissent is that of this group: it names one of its members and, where it has sources, one of them."""
    holders = {role for role, _ in group}
    cited = {name for _, held in group for name in held.stance.ids}
    if not names.roles_in(part.held_by, list(holders)):
        return False
    told = {
        *(ref.partition(":")[0] for ref in part.evidence),
        *(name for name in cited if f"[{name}]" in part.view or f"[{name}:" in part.view),
    }
    return not cited or bool(cited & told)
