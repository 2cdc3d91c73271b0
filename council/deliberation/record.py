"""The decision record: the closing call is asked for it as one JSON object, and its reply is read here. Honest prose is
an answer. A damaged object, and a reply that asks for more, is repaired in at most two more turns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from council.citations import places_in, unlinked
from council.deliberation.names import Names
from council.deliberation.quotations.lookup import Quotations
from council.llm.base import Message
from council.llm.structured import MAX_REPAIRS, Check, Repair, ReplyProblem, parse, repair_messages
from council.markup import unfenced, without_thoughts
from council.tools.tokens import parse as requests_in
from council.turns.closing_block import Ask
from council.turns.result import Failure, TurnResult

_MAX_ENTRIES = 40


def _is_empty(entry: Any) -> bool:
    if isinstance(entry, str):
        return not any(char.isalnum() for char in entry)
    if isinstance(entry, dict):
        return all(map(_is_empty, entry.values()))
    return entry is None or (isinstance(entry, list) and all(map(_is_empty, entry)))


def _says_something(text: str) -> str:
    if _is_empty(text):
        raise ValueError("must say something, but has no words")
    return text


def _names_evidence(ref: str) -> str:
    ref = unlinked(ref)
    if not places_in(ref):
        raise ValueError("must name evidence, as in E1 or E1: path:line")
    return ref.strip().strip("[]")


# Of a list; a tuple, for what a validator returns is no JSON any more.
_filled = BeforeValidator(
    lambda value: tuple(entry for entry in value if not _is_empty(entry)) if isinstance(value, list) else value
)
T = TypeVar("T")
Entries = Annotated[tuple[T, ...], Field(max_length=_MAX_ENTRIES), _filled]
EvidenceRef = Annotated[str, Field(min_length=1, max_length=620), AfterValidator(_names_evidence)]
Text = Annotated[str, AfterValidator(_says_something)]
Line = Annotated[Text, Field(min_length=1, max_length=2_000)]
Member = Annotated[str, Field(min_length=1, max_length=100)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Claim(_Part):
    """A reason for the answer, and the evidence that it rests on."""

    text: Line
    evidence: Entries[EvidenceRef] = ()


class Dissent(_Part):
    """A view against the answer: whose it is, and its evidence."""

    view: Line
    held_by: Member
    evidence: Entries[EvidenceRef] = ()


class DecisionRecord(_Part):
    """The council's decision. `agrees_with` are the members whose position the answer takes, by the writer's word.
    `confidence` runs from 0 to 1 and is the writer's own word, too, calibrated by nobody."""

    answer: Annotated[Text, Field(min_length=1, max_length=20_000)]
    agrees_with: Entries[Member] = ()
    claims: Entries[Claim]
    dissent: Entries[Dissent] = ()
    open_questions: Entries[Line] = ()
    next_steps: Entries[Line] = ()
    confidence: Annotated[float, Field(ge=0, le=1)]
    would_change: Entries[Line] = ()


DECISION_SCHEMA: Mapping[str, Any] = DecisionRecord.model_json_schema()

SHAPE = """\
{"answer": "…", "agrees_with": ["…"], "claims": [{"text": "…", "evidence": ["E1"]}], \
"dissent": [{"view": "…", "held_by": "…", "evidence": ["E2"]}], "open_questions": ["…"], "next_steps": ["…"], \
"confidence": 0.5, "would_change": ["…"]}"""


@dataclass(frozen=True)
class ClosingRecord:
    """`record` is None for prose, and for a record that could not be read: `fault` then says why, and `text` is the
    reply to show. `repairs` are the calls that repairing took. `failure`: there is nothing to read at all."""

    record: DecisionRecord | None
    repair: Repair = "none"
    fault: str = ""
    repairs: tuple[TurnResult, ...] = ()
    text: str = ""
    failure: Failure | None = None

    @property
    def failed_repairs(self) -> tuple[Failure, ...]:
        return tuple(reply.failure for reply in self.repairs if reply.failure is not None)


async def settle(
    reply: TurnResult, messages: Sequence[Message], check: Check[DecisionRecord], ask: Ask
) -> ClosingRecord:
    """`messages`: what the reply answers; `check`: what a type cannot say (`problems`); `ask(N, messages)` makes repair
    call N. A request and a damaged record are asked about, and so is prose that follows a damaged record."""
    body = without_thoughts(reply.text)
    how: Repair = "think" if body != reply.text.strip() else "none"
    if not body:
        return ClosingRecord(None, how, failure=Failure("empty", "the reply holds thoughts, and no answer."))
    said, repairs, is_typed = [reply], list[TurnResult](), False
    while True:
        last = said[-1]
        asks = asks_for_more(last)
        is_typed = is_typed or (is_attempt(last.text) and not asks)  # from then on, prose is no answer
        reading = parse(last.text, DecisionRecord, complete=last.finish == "stop", check=check)
        faults = reading.problems if is_typed or (asks and repairs) else ()
        if asks and not faults:  # NOTE: journals hold a later one told of its form, and a replay compares requests
            faults = (_ASKS_FOR_MORE,)
        if is_typed and last is reply:
            how = reading.repair
        if not faults or len(repairs) == MAX_REPAIRS:
            break
        repairs.append(await ask(len(repairs) + 1, repair_messages(messages, last.text, faults, DecisionRecord)))
        if repairs[-1].failure is not None:
            break
        said.append(repairs[-1])
        how = "turn_1" if len(repairs) == 1 else "turn_2"
    decided = [each for each in reversed(said) if not asks_for_more(each)]
    # A record whose only fault is to cite or name what does not exist is sound: the page marks that.
    sound = next((record for each in decided if (record := read(each)) is not None), None)
    if sound is not None:
        return ClosingRecord(sound, how, repairs=tuple(repairs))
    answers = [each for each in decided if has_an_answer(each.text)]
    # Words beside a damaged record speak of it, as an apology does: the record comes before them.
    damaged = [each for each in answers if is_attempt(each.text)]
    shown = damaged or answers or [each for each in reversed(said) if has_an_answer(each.text)]
    text = without_thoughts(shown[0].text) if shown else ""
    told = (_ASKS_FOR_MORE,) if asks else () if answers and not damaged else faults
    fault = "; ".join(problem.told.rstrip(".") for problem in told)
    failure = None if text else Failure("protocol", f"the reply holds no answer that could be read: {fault}.")
    return ClosingRecord(None, how, fault, tuple(repairs), text, failure)


_ASKS_FOR_MORE = ReplyProblem(
    "the reply asks for more, but no request is fulfilled any more", fix="decide with what was read"
)


def asks_for_more(reply: TurnResult) -> bool:
    """True for a closing reply with a request of its own, in prose or as a record's answer: it waits for an answer, and is
    no decision yet."""
    record, text = read(reply), without_thoughts(reply.text)
    words = record.answer if record else answer_in(text) if is_attempt(reply.text) else text
    return any(request.honoured for request in requests_in(words))


def read(reply: TurnResult) -> DecisionRecord | None:
    if not is_attempt(reply.text):
        return None
    return parse(reply.text, DecisionRecord, complete=reply.finish == "stop").value


_KEYS = "|".join(DecisionRecord.model_fields)
_A_KEY = re.compile(rf"""["']?\b(?:{_KEYS})["']?\s*:""")
_ANSWER_KEY = re.compile(r'"answer"\s*:\s*(?=")')
_BEGINS_AS_JSON = re.compile(r"\s*[{\[]\s*(?:[\"'{}\[\]]|\Z)")
_ANY_KEY = re.compile(r"""[{,\s]["']?[A-Za-z_]{1,40}["']?\s*:""")
_NO_WORDS = re.compile(r"\b(?:null|true|false|none|undefined|E[0-9]{1,4}|[0-9.]+)\b", re.IGNORECASE)
_FEW_WORDS = 12  # beside an object: an introduction to it, no answer that shows one


def is_attempt(text: str) -> bool:
    """True when a reply tries to be a record, or is nothing to read. Prose may hold braces, too."""
    body = without_thoughts(text)
    bare = unfenced(body)
    if _BEGINS_AS_JSON.match(bare) or not has_an_answer(text):
        return True
    at = bare.find("{")
    if at < 0:
        return False
    keys = len(set(_A_KEY.findall(bare, at)))
    return keys >= 2 or (keys == 1 and len(bare[:at].split()) < _FEW_WORDS)


def has_an_answer(text: str) -> bool:
    """True when a reply holds words that a person could read as an answer: no keys, ids, numbers or literals."""
    bare = unfenced(without_thoughts(text)).strip()
    if _BEGINS_AS_JSON.match(bare):
        bare = _NO_WORDS.sub(" ", _ANY_KEY.sub(" ", bare))
    return any(char.isalnum() for char in bare) and bare.lower() not in ("null", "undefined")


class _AnswerAlone(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    answer: Annotated[Text, Field(validation_alias=AliasChoices("answer", "decision"))]


def answer_in(text: str) -> str:
    """The answer of a record that cannot be read; empty where it cannot be told, either."""
    whole = parse(text, _AnswerAlone, complete=True).value
    if whole is not None:
        return whole.answer
    keys = list(_ANSWER_KEY.finditer(text))
    if len(keys) != 1:
        return ""
    try:
        answer, _ = json.JSONDecoder(strict=False).raw_decode(text, keys[0].end())
    except ValueError:
        return ""
    is_sound = isinstance(answer, str) and answer.encode("utf-8", "replace").decode() == answer
    return answer if is_sound and not _is_empty(answer) else ""


def problems(look: Quotations, roles: Sequence[str], names: Names, record: DecisionRecord) -> Iterator[ReplyProblem]:
    """Evidence and places that nobody was ever shown, and dissent of one who is no member."""
    claims, dissent = list(enumerate(record.claims)), list(enumerate(record.dissent))
    texts = [("answer", record.answer), *((f"claims[{n}].text", claim.text) for n, claim in claims)]
    texts += [(f"dissent[{n}].view", part.view) for n, part in dissent]
    for key in ("open_questions", "next_steps", "would_change"):
        texts += [(f"{key}[{n}]", text) for n, text in enumerate(getattr(record, key))]
    for where, text in texts:
        checked = look.check(text, with_figures=False)
        yield from (_unknown(id, look, where) for id in checked.unknown_ids)
        yield from (_nowhere(place, look, where) for place in checked.no_places)
    cited = [(f"claims[{n}].evidence", claim.evidence) for n, claim in claims]
    for where, refs in (*cited, *((f"dissent[{n}].evidence", part.evidence) for n, part in dissent)):
        for named in (named for ref in refs for named in places_in(ref, look.places.paths)):
            _, fault = look.places.judged(named)
            if fault == "evidence":
                yield _unknown(named.id, look, where)
            elif fault:
                yield _nowhere(str(named)[1:-1], look, where)
    agreed = [(f"agrees_with[{n}]", name) for n, name in enumerate(record.agrees_with)]
    for where, name in (*agreed, *((f"dissent[{n}].held_by", part.held_by) for n, part in dissent)):
        if not names.roles_in(name, roles):
            members = ", ".join(map(names.of, roles))
            yield ReplyProblem(f"names one who is no member of this council; the members are {members}", where)


def _unknown(id: str, look: Quotations, where: str) -> ReplyProblem:
    issued = sorted(look.places.issued, key=lambda id: int(id[1:]))
    known = ", ".join(issued[:_MAX_ENTRIES]) or "none"
    return ReplyProblem(f"{id} is no evidence of this task; there is: {known}", where)


def _nowhere(place: str, look: Quotations, where: str) -> ReplyProblem:
    ids = [named.id for named in places_in(place, look.places.paths) if named.id][:1]  # none where only a path is cited
    held = "".join(f"; {id} is {look.places.described(id)}" for id in ids)
    return ReplyProblem(f"{place} is no place in what was read{held}", where)
