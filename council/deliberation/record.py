"""The decision record: what the closing call is asked for as one JSON object, and how its reply is read.

A reply without any such object is the answer in prose, and asks for nothing more; one that holds a damaged object is
repaired in at most two more turns (`council.llm.structured`). What comes of it is typed; `decision` puts it into words.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from council.agents.turn import TurnResult
from council.llm.base import Message
from council.llm.structured import Check, Problem, Repair, Said, parse, repair_turns, without_thoughts

_MAX_ENTRIES = 40
_EVIDENCE_ID = re.compile(r"E[0-9]{1,4}")
# With its place, as in a citation, where the writer knows it.
_EVIDENCE = r"^E[0-9]{1,4}(:\s*[^\[\]\n:]{1,512}:[0-9]{1,7}(-[0-9]{1,7})?)?$"
_AN_ATTEMPT = re.compile(r"""["']?\banswer["']?\s*:""")

EvidenceRef = Annotated[str, Field(pattern=_EVIDENCE)]
EvidenceRefs = Annotated[tuple[EvidenceRef, ...], Field(max_length=_MAX_ENTRIES)]
Line = Annotated[str, Field(min_length=1, max_length=2_000)]
Lines = Annotated[tuple[Line, ...], Field(max_length=_MAX_ENTRIES)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Claim(_Part):
    """A reason for the answer, and the evidence that it rests on."""

    text: Line
    evidence: EvidenceRefs = ()


class Dissent(_Part):
    """A view against the answer: whose it is, and its evidence."""

    view: Line
    held_by: Annotated[str, Field(min_length=1, max_length=100)]
    evidence: EvidenceRefs = ()


class DecisionRecord(_Part):
    """The council's decision. `confidence` runs from 0 to 1 and is the writer's own word, calibrated by nobody."""

    answer: Annotated[str, Field(min_length=1, max_length=20_000)]
    claims: Annotated[tuple[Claim, ...], Field(max_length=_MAX_ENTRIES)]
    dissent: Annotated[tuple[Dissent, ...], Field(max_length=_MAX_ENTRIES)] = ()
    open_questions: Lines = ()
    next_steps: Lines = ()
    confidence: Annotated[float, Field(ge=0, le=1)]
    would_change: Lines = ()


SHAPE = """\
{"answer": "…", "claims": [{"text": "…", "evidence": ["E1"]}], \
"dissent": [{"view": "…", "held_by": "…", "evidence": ["E2"]}], "open_questions": ["…"], "next_steps": ["…"], \
"confidence": 0.5, "would_change": ["…"]}"""


@dataclass(frozen=True)
class Settled:
    """What the closing reply came to. `record` is None for prose, and for a record that could not be read: `fault` then
    says why. `repairs` are the calls that repairing took."""

    record: DecisionRecord | None
    repair: Repair = "none"
    fault: str = ""
    repairs: tuple[TurnResult, ...] = ()


Ask = Callable[[int, tuple[Message, ...]], Awaitable[TurnResult]]


async def settle(reply: TurnResult, messages: Sequence[Message], issued: Iterable[str], ask: Ask) -> Settled:
    """The record in a closing reply. `messages`: what the reply answers; `issued`: the ids of evidence in this run;
    `ask(N, messages)` makes repair call N."""
    if not is_attempt(reply.text):
        return Settled(None)
    said = [Said(reply.text, reply.finish == "stop")]
    repairs: list[TurnResult] = []
    check = _only(frozenset(issued))

    async def again(number: int, request: tuple[Message, ...]) -> Said | None:
        result = await ask(number, request)
        repairs.append(result)
        if result.failure is not None:
            return None
        said.append(Said(result.text, result.finish == "stop"))
        return said[-1]

    first = parse(reply.text, DecisionRecord, complete=said[0].complete, check=check)
    settled = await repair_turns(first, said[0], messages, DecisionRecord, again, check=check)
    if settled.value is not None:
        return Settled(settled.value, settled.repair, "", tuple(repairs))
    sound = next((record for each in reversed(said) if (record := _unchecked(each)) is not None), None)
    if sound is not None:  # its only fault is to cite what does not exist, which the page marks
        return Settled(sound, settled.repair, "", tuple(repairs))
    return Settled(None, settled.repair, "; ".join(map(str, settled.problems)), tuple(repairs))


def read(reply: TurnResult) -> DecisionRecord | None:
    """The record in a reply as it stands, None where there is none that can be read."""
    return _unchecked(Said(reply.text, reply.finish == "stop")) if is_attempt(reply.text) else None


def is_attempt(text: str) -> bool:
    """Whether a reply tries to be a record: prose may hold a brace, too."""
    body = without_thoughts(text)
    return "{" in body and _AN_ATTEMPT.search(body) is not None


def ids_in(refs: Iterable[str]) -> list[str]:
    return [found[0] for ref in refs if (found := _EVIDENCE_ID.match(ref))]


def _unchecked(said: Said) -> DecisionRecord | None:
    return parse(said.text, DecisionRecord, complete=said.complete).value


def _only(issued: frozenset[str]) -> Check[DecisionRecord]:
    known = ", ".join(sorted(issued, key=lambda id: int(id[1:]))[:_MAX_ENTRIES]) or "none"

    def check(record: DecisionRecord) -> Iterator[Problem]:
        refs = {f"claims[{number}]": claim.evidence for number, claim in enumerate(record.claims)}
        refs |= {f"dissent[{number}]": dissent.evidence for number, dissent in enumerate(record.dissent)}
        for where, evidence in refs.items():
            for id in ids_in(evidence):
                if id not in issued:
                    yield Problem("schema", f"{id} is no evidence of this task; there is: {known}", f"{where}.evidence")

    return check
