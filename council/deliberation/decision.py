"""A decision in words: the closing reply, typed or in prose, with its quotations looked up and its sources looked at again.

Pure: a function of what the run recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from council.agents.turn import TurnResult
from council.artifacts.page import Section
from council.deliberation.minority import passed_over
from council.deliberation.names import Names
from council.deliberation.quotations import NO_SUCH_EVIDENCE, UNVERIFIED, Finding, Passage, Quotations, passages_of
from council.deliberation.record import DecisionRecord, Settled, read
from council.deliberation.transcript import Transcript, Turn
from council.llm.structured import without_thoughts

_SHOWN_CHARS = 120
_MAX_SHOWN = 20
_QUOTE_MARKS = re.compile('["“”„«»]')


class SourceNow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that was read, as it is when the rounds are over: `sha256`, or why it cannot be read any more. `own`: it is a
    decision page of the council."""

    path: str
    sha256: str = ""
    error: str = ""
    own: bool = False


class SourcesNow(msgspec.Struct, frozen=True):
    """Recorded once, so that a page rendered again says the same whatever the disk then holds."""

    files: tuple[SourceNow, ...] = ()


@dataclass(frozen=True)
class Decision:
    """`answer` and `sections` as the page shows them; `warnings` stand above the text. `untyped` says why there is no
    typed record, empty when there is one. `stale`: the files that have changed since they were read, by path."""

    answer: str
    sections: tuple[Section, ...] = ()
    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
    untyped: str = ""
    tally: str = ""


def files_read(transcript: Transcript) -> list[str]:
    """Every file of which the council read something, own pages and memory aside, in the order in which it did."""
    passages = [passage for item in transcript.evidence() for passage in passages_of(item)]
    return list(dict.fromkeys(passage.path for passage in passages if passage.path and not passage.own))


def decide(
    reply: TurnResult,
    settled: Settled | None,
    transcript: Transcript,
    sources: SourcesNow | None,
    names: Names,
    writer: str,
) -> Decision:
    """The decision that a closing reply of `writer` brought. `settled` None: the run ended before it was read whole;
    `sources` None: before its files were looked at again."""
    files = sources.files if sources else ()
    own = [file.path for file in files if file.own]
    passages = [passage for item in transcript.evidence() for passage in passages_of(item, own)]
    said = [text for turn in transcript.turns() for text in _spoken(turn)]
    issued = [item.id for item in transcript.evidence() if item.id]
    look = _Look(Quotations(passages, issued, [*said, _QUOTE_MARKS.sub(" ", transcript.task)]))
    record = settled.record if settled else read(reply)
    if record is not None:
        left_out = passed_over(record, transcript, writer, names)
        answer, sections = look.at(record.answer), tuple(_sections(record, look, names, left_out))
        untyped = ""
    else:
        answer, sections = look.at(_prose(reply.text)), ()
        untyped = (
            f"its typed record could not be read: {settled.fault}" if settled and settled.fault else "no typed record"
        )
    sections = (*sections, *_looked_up(look.findings))
    return Decision(
        answer, sections, tuple(look.findings), tuple(_warnings(look, passages, files)), untyped, _tally(look.findings)
    )


def _spoken(turn: Turn) -> Iterator[str]:
    yield turn.result.text
    if turn.stance is not None:
        yield turn.stance.position
        yield turn.stance.would_change


class _Look:
    """Looks texts up one after another and keeps what was found."""

    def __init__(self, quotations: Quotations) -> None:
        self._quotations = quotations
        self.findings: list[Finding] = []
        self.unknown: dict[str, None] = {}

    def at(self, text: str) -> str:
        checked = self._quotations.check(text)
        self.findings += checked.findings
        self.unknown.update(dict.fromkeys(checked.unknown_ids))
        return checked.text


def _prose(text: str) -> str:
    """A reply as text; what was meant as an object and is none stays readable."""
    body = without_thoughts(text) or text
    return f"```json\n{body}\n```" if body.startswith("{") else body


def _sections(record: DecisionRecord, look: _Look, names: Names, left_out: Iterable[str]) -> Iterator[Section]:
    claims = [look.at(_with_evidence(claim.text, claim.evidence)) for claim in record.claims]
    dissent = [
        look.at(f"{_held_by(part.held_by, names)}: {_with_evidence(part.view, part.evidence)}")
        for part in record.dissent
    ]
    dissent += [look.at(view) for view in left_out]
    yield from _section("Why", claims)
    yield from _section("Dissent", dissent or ["None was put on record."])
    yield from _section("Open questions", [look.at(item) for item in record.open_questions])
    yield from _section("Next steps", [look.at(item) for item in record.next_steps], numbered=True)
    yield Section("Confidence", (f"{record.confidence:.2f} of 1, by the writer's own word; nobody calibrated it.",))
    yield from _section("What would change our mind", [look.at(item) for item in record.would_change])


def _section(heading: str, items: Sequence[str], *, numbered: bool = False) -> Iterator[Section]:
    if items:
        yield Section(heading, tuple(items), listed="numbers" if numbered else "bullets")


def _held_by(name: str, names: Names) -> str:
    """In one line; a letter with whom it stands for."""
    line = " ".join(name.split())
    return (
        re.sub(
            rf"\bMember ({'|'.join(names.letters.values())})\b",
            lambda found: f"{names.role_of(found[1])} ({found[0]})",
            line,
        )
        if names
        else line
    )


def _with_evidence(text: str, refs: Iterable[str]) -> str:
    """The text and, behind it, the evidence that it does not cite itself."""
    missing = [ref for ref in dict.fromkeys(refs) if f"[{ref}]" not in text and (":" in ref or f"[{ref}:" not in text)]
    return " ".join([text, *(f"[{ref}]" for ref in missing)])


# ── what the look-up says ────────────────────────────────────────────────────────────────────────────────────────────


def _tally(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    count = {
        outcome: sum(finding.outcome == outcome for finding in findings) for outcome in ("found", "moved", "unverified")
    }
    parts = [f"{count['found']} found as cited"] if count["found"] else []
    parts += [f"{count['moved']} found elsewhere"] if count["moved"] else []
    parts += [f"{count['unverified']} unverified"] if count["unverified"] else []
    return f"Quotations looked up in what was read: {len(findings)}; {', '.join(parts)}."


def _looked_up(findings: Sequence[Finding]) -> Iterator[Section]:
    """What was corrected, and what could not be verified."""
    odd = [finding for finding in findings if finding.outcome != "found"]
    lines = [_said_of(finding) for finding in odd[:_MAX_SHOWN]]
    if len(odd) > _MAX_SHOWN:
        lines.append(f"… and {len(odd) - _MAX_SHOWN} more.")
    yield from _section("Quotations", lines)


def _said_of(finding: Finding) -> str:
    words = finding.quotation.replace("`", "'")
    shown = words if len(words) <= _SHOWN_CHARS else f"{words[:_SHOWN_CHARS].rsplit(' ', 1)[0]} …"
    places = re.sub(r"[\[\]`]", "", finding.cited)  # in brackets it would be a citation again
    cited = f", cited as `{places}`" if places else ""
    if finding.outcome == "moved":
        return f"`{shown}`{cited}, stands at {finding.place}; the citation is corrected."
    return f"`{shown}`{cited}: unverified, {finding.reason}."


def _warnings(look: _Look, passages: Sequence[Passage], files: Sequence[SourceNow]) -> Iterator[str]:
    unverified = sum(finding.outcome == "unverified" for finding in look.findings)
    if unverified:
        what = "quotation stands" if unverified == 1 else "quotations stand"
        yield f"{unverified} {what} in nothing that was read, and {'is' if unverified == 1 else 'are'} marked `{UNVERIFIED}`."
    if look.unknown:
        yield f"Cited, and never given to the council: {', '.join(look.unknown)}; marked `{NO_SUCH_EVIDENCE}`."
    for file in files:
        read_as = {p.sha256: p.id for p in passages if p.path == file.path and p.sha256 and not p.own and not file.own}
        old = [id for sha256, id in read_as.items() if sha256 != file.sha256]
        if old and file.error:
            yield f"Stale: `{file.path}` ({', '.join(old)}) cannot be read any more: {file.error}"
        elif old:
            yield f"Stale: `{file.path}` ({', '.join(old)}) changed after it was read; what is said of it is about the old text."
