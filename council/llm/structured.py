"""A model's reply → a validated object of a pydantic type, or what is wrong with it, in words a model can act on.

The order is fixed: thoughts and fences off (`extraction`) → strict validation → repair of the spelling (`_respelled`) →
at most two more turns. A reply that was cut off is never completed. No value is converted: "3" is not 3.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar, Unpack

import msgspec
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from council.llm.base import Finish, Message, Model, RequestOptions
from council.llm.extraction import Extract, extract, extract_block
from council.markup import BLANK, without_thoughts
from council.typed_json import parts_of

MAX_REPLY_CHARS = 1024 * 1024  # of the text of one object
MAX_DEPTH = 64  # of lists and objects in one another
MAX_RESPELLED_CHARS = (
    4096  # json-repair takes half a second over a hostile text of this size, and four times that over two
)
MAX_REPAIRS = 2  # what a second turn does not mend, a third one does not either
_MAX_INT = 2**63 - 1  # what a database and a journal can hold
_MAX_PROBLEMS = 12  # told at once; the schema says the rest
_QUOTED_CHARS = 60  # of a value in a problem
_REPLY_CHARS = 24_000  # of a reply that is shown to its model again

Repair = Literal["none", "fences", "prose", "think", "json_repair", "turn_1", "turn_2"]
T = TypeVar("T", bound=BaseModel)


class ReplyProblem(msgspec.Struct, frozen=True):
    """`path` leads to the value (`claims[0].evidence`), empty for the whole object. `fix` is for the model alone."""

    message: str
    path: str = ""
    fix: str = ""

    @property
    def told(self) -> str:
        return f"`{self.path}`: {self.message}" if self.path else self.message

    def __str__(self) -> str:
        return f"{self.told}; {self.fix}" if self.fix else self.told


Check = Callable[[T], Iterable[ReplyProblem]]  # what a type cannot say by itself, such as ids that exist


@dataclass(frozen=True)
class Reading(Generic[T]):
    """The outcome of one reply. `repair` is the strongest thing done to read it. `before` and `after` are the prose
    around the object. `found` False: nothing could be the object, which for a block that may be left out is an answer."""

    value: T | None
    repair: Repair
    problems: tuple[ReplyProblem, ...] = ()
    before: str = ""
    after: str = ""
    found: bool = True


class SpeechSoFar(Protocol):
    """Only a reply that the model ended by itself (`stop`) is complete."""

    @property
    def text(self) -> str: ...

    @property
    def finish(self) -> Finish: ...


@dataclass(frozen=True)
class Settlement(Generic[T]):
    readings: tuple[Reading[T], ...]

    @property
    def value(self) -> T | None:
        """The value that was read. None when the last allowed turn did not mend it; `problems` are then that turn's."""
        return self.readings[-1].value

    @property
    def problems(self) -> tuple[ReplyProblem, ...]:
        return self.readings[-1].problems

    @property
    def repair(self) -> Repair:
        """`turn_1` or `turn_2`, the last repair turn taken; without one, what was done to read the first reply."""
        repairs: tuple[Repair, ...] = (self.readings[0].repair, "turn_1", "turn_2")
        return repairs[len(self.readings) - 1]


def parse(text: str, type: type[T], *, complete: bool, check: Check[T] | None = None) -> Reading[T]:
    """The one object that a reply is or holds. Not `complete`: only an object that ends the reply whole is taken."""
    return _read(extract(text, required_keys(type)), type, complete, check)


def parse_block(text: str, type: type[T], *, complete: bool, check: Check[T] | None = None) -> Reading[T]:
    """The last fenced block of the right shape in a reply of prose; `found` says if there is one."""
    return _read(extract_block(text, required_keys(type)), type, complete, check)


def _read(found: Extract, type: type[T], complete: bool, check: Check[T] | None) -> Reading[T]:
    def parsed(value: T | None, problems: Sequence[ReplyProblem]) -> Reading[T]:
        return Reading(value, found.wrapping, tuple(problems), found.before, found.after, found=bool(found.text))

    if not complete and (found.after or not found.text):
        return parsed(None, [_CUT])
    if not found.text:
        return parsed(None, [_NO_OBJECT])
    if found.several:
        return parsed(None, [_SEVERAL])
    value, problem, is_json = _load(found.text)
    repair: Repair = found.wrapping
    if not is_json:
        if not complete:
            return parsed(None, [_CUT])
        value = _respelled(found.text)
        if value is not None:
            problem, repair = _unsound(value), "json_repair"
    result, problems = validate(value, type, check) if problem is None else (None, (problem,))
    return Reading(result, repair, problems, found.before, found.after)


_NO_OBJECT = ReplyProblem("there is no JSON object in the reply")
_SEVERAL = ReplyProblem("there is more than one JSON object in the reply, and only one may be")
_CUT = ReplyProblem("the reply broke off before its end", fix="write it again from the start, and shorter")


class _Refusal(Exception):
    def __init__(self, message: str, fix: str = "") -> None:
        self.problem = ReplyProblem(message, fix=fix)


def _load(text: str) -> tuple[Any, ReplyProblem | None, bool]:
    """The value of strict JSON, or what is wrong with it; and whether it is JSON at all."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                raise _Refusal(f"the key {_quoted(key)} stands twice", "keep one of them")
            result[key] = value
        return result

    def no_constant(name: str) -> Any:
        raise _Refusal(f"{name} is no value of JSON", "write a number, or null where the schema allows it")

    def whole_number(digits: str) -> int:
        if len(digits) > 20:  # before the conversion, whose cost grows faster than the number
            raise _Refusal(_too_big(digits))
        return int(digits)

    if len(text) > MAX_REPLY_CHARS:
        told = f"the object is longer than {MAX_REPLY_CHARS} characters"
        return None, ReplyProblem(told, fix="write it shorter"), True
    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=no_constant, parse_int=whole_number)
    except _Refusal as refused:
        return None, refused.problem, True
    except json.JSONDecodeError as error:
        rest = text[error.pos :].strip()
        if error.msg.startswith("Unterminated string") or not any(char in rest for char in ' \r\n":{}[]`'):
            return None, _CUT, False
        near = _quoted(text[max(0, error.pos - 20) : error.pos + 20])
        what = f"{error.msg[:1].lower()}{error.msg[1:]}"
        told = f"not JSON at line {error.lineno}, column {error.colno}: {what}, near {near}"
        return None, ReplyProblem(told), False
    except RecursionError:
        return None, _TOO_DEEP, True
    return value, _unsound(value), True


def _too_big(number: object) -> str:
    return f"the number {str(number)[:_QUOTED_CHARS]} is out of range"


_TOO_DEEP = ReplyProblem(f"the object is nested deeper than {MAX_DEPTH} levels")


def _unsound(value: Any) -> ReplyProblem | None:
    """Finds what JSON can spell and nothing can hold: numbers out of range, half characters, bottomless nesting."""
    try:
        parts = parts_of(value, MAX_DEPTH)
    except RecursionError:
        return _TOO_DEEP
    for part in parts:
        if isinstance(part, int) and abs(part) > _MAX_INT:
            return ReplyProblem(_too_big(part))
        if isinstance(part, float) and not math.isfinite(part):
            return ReplyProblem("a number is out of range")
        if isinstance(part, str) and part.encode("utf-8", "replace").decode() != part:
            return ReplyProblem(f"the text {_quoted(part)} holds half of a \\u pair of escapes")
    return None


def _respelled(text: str) -> Any | None:
    """json-repair guesses: it completes what was cut off, drops an empty text, splits one at a quotation mark. Its
    guess counts only if it says, written as JSON, what stands in the reply (`_said`)."""
    from json_repair import loads  # 50 ms, and most replies need none

    if len(text) > MAX_RESPELLED_CHARS:
        return None
    try:
        guess = loads(text, skip_json_loads=True, strict=True)
    except ValueError:
        return None
    said = (_said(text), _said(text.replace("'", '"')))
    same = any(_said(json.dumps(guess, ensure_ascii=escaped)) in said for escaped in (False, True))
    return guess if same else None


def _said(text: str) -> str:
    bare = re.sub(r"\s+|\\[nrt]", "", text)
    bare = re.sub(r",(?=[}\]])", "", bare)
    bare = re.sub(r"(?<=[{,])(\w+)(?=:)", r'"\1"', bare)
    return re.sub("True|False|None", lambda found: {"None": "null"}.get(found[0], found[0].lower()), bare)


def validate(value: Any, type: type[T], check: Check[T] | None = None) -> tuple[T | None, tuple[ReplyProblem, ...]]:
    """A value of JSON as an object of the type, or the problems. `check` is asked only about a valid object."""
    extra: Literal["forbid"] | None = None if type.model_config.get("extra") else "forbid"
    try:
        result = type.model_validate_json(json.dumps(value), strict=True, extra=extra)
    except ValidationError as error:
        details = error.errors(include_url=False)
        told = [_schema_problem(detail, type) for detail in details[:_MAX_PROBLEMS]]
        left = len(details) - len(told)
        return None, (*told, *([ReplyProblem(f"and {left} more of the kind")] if left else []))
    problems = tuple(check(result))[:_MAX_PROBLEMS] if check is not None else ()
    return (None, problems) if problems else (result, ())


@functools.cache  # as many as there are types
def required_keys(type: type[BaseModel]) -> tuple[str, ...]:
    """The keys that an object of the type must have, or all keys if it need have none: what a block is known by."""
    keys = {field.alias or name: field.is_required() for name, field in type.model_fields.items()}
    return tuple(key for key, required in keys.items() if required) or tuple(keys)


def _schema_problem(detail: ErrorDetails, type: type[BaseModel]) -> ReplyProblem:
    kind, value, message = detail["type"], detail["input"], detail["msg"]
    path = ""  # `claims[0].evidence`
    for part in detail["loc"]:
        name = " ".join(str(part).split())[:_QUOTED_CHARS]
        path += f"[{part}]" if isinstance(part, int) else f".{name}" if path else name
    if kind == "missing":
        return ReplyProblem("is missing", path, "add it")
    if kind == "extra_forbidden":
        keys = ", ".join(field.alias or name for name, field in type.model_fields.items())
        known = f"; the keys are {keys}" if len(detail["loc"]) == 1 else ""
        return ReplyProblem("is not a key of this object", path, f"remove it{known}")
    if kind == "value_error":
        return ReplyProblem(message.removeprefix("Value error, "), path)
    shown = _quoted(value) if isinstance(value, str) else _line(json.dumps(value, ensure_ascii=False))
    return ReplyProblem(f"{message[:1].lower()}{message[1:]}; it is {shown}", path)


def _quoted(text: str) -> str:
    return json.dumps(_line(text.encode("utf-8", "replace").decode()), ensure_ascii=False)


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _QUOTED_CHARS else f"{line[:_QUOTED_CHARS]}…"


def repair_prompt(problems: Sequence[ReplyProblem], type: type[BaseModel]) -> str:
    listed = "\n".join(f"- {problem}" for problem in problems)
    return (
        f"Your last reply cannot be used as it stands:\n{listed}\n\n"
        "Write the JSON object, whole and corrected, and nothing else: no prose, no code fence, no comments. "
        "Keep what you meant; change only what the list names. If you cannot know a value, do not make one up.\n\n"
        f"It must fit this JSON Schema:\n{json.dumps(type.model_json_schema(), ensure_ascii=False)}"
    )


def repair_messages(
    messages: Sequence[Message], reply: str, problems: Sequence[ReplyProblem], type: type[BaseModel]
) -> tuple[Message, ...]:
    """The request of a repair turn: what was asked before, the reply to it (the middle left out of a long one), the
    prompt."""
    shown = without_thoughts(reply)
    if len(shown) > _REPLY_CHARS:
        half = _REPLY_CHARS // 2
        left_out = len(shown) - 2 * half
        shown = f"{shown[:half]}\n[… {left_out} characters left out …]\n{shown[-half:]}"
    said = (Message("model", shown),) if shown.strip(BLANK) else ()  # providers refuse an empty message
    return (*messages, *said, Message("user", repair_prompt(problems, type)))


Ask = Callable[[int, tuple[Message, ...]], Awaitable[SpeechSoFar | None]]


async def repair_turns(
    first: Reading[T],
    reply: SpeechSoFar,
    messages: Sequence[Message],
    type: type[T],
    ask: Ask,
    *,
    check: Check[T] | None = None,
) -> Settlement[T]:
    """At most MAX_REPAIRS turns. `ask(turn, messages)`, `turn` from 1, makes the call, as a step of a journal or not;
    None ends the turns with what there is. A request never grows by more than one reply."""
    readings = [first]
    for turn in range(1, MAX_REPAIRS + 1):
        if readings[-1].value is not None:
            break
        answer = await ask(turn, repair_messages(messages, reply.text, readings[-1].problems, type))
        if answer is None:
            break
        reply = answer
        readings.append(parse(reply.text, type, complete=reply.finish == "stop", check=check))
    return Settlement(tuple(readings))


async def ask_structured(
    model: Model,
    messages: Sequence[Message],
    type: type[T],
    *,
    check: Check[T] | None = None,
    **asked: Unpack[RequestOptions],
) -> Settlement[T]:
    asked.setdefault("schema", type.model_json_schema())

    async def ask(turn: int, request: Sequence[Message]) -> SpeechSoFar:
        return await model.generate(request, **asked)

    reply = await ask(0, messages)
    first = parse(reply.text, type, complete=reply.finish == "stop", check=check)
    return await repair_turns(first, reply, messages, type, ask, check=check)
