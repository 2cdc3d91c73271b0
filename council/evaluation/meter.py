"""The meter of an evaluation: what its calls cost, arm by arm, at the seam to the provider; and the limits that all
share.

Every call of an evaluation is seen here, those of the council's real runs too. Its `TurnInfo` says to which question
and arm it belongs. A provider that does not count its tokens gets them estimated, the same way for all arms.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Unpack

import msgspec

from council.budgets.budget import Budget, BudgetSpent
from council.budgets.metering import BudgetedModel, Calibration
from council.errors import ModelError
from council.llm.base import Message, Model, ModelAround, Reply, RequestOptions, TurnInfo, Usage
from council.storage.files import append_line
from council.typed_json import decode_json

BALLOT = "BALLOT"  # the role of a call that answers a question by itself; its `round` is the number of the ballot
READER = "READER"  # the role of a call that asks again for the council's answer
_CHARS_PER_TOKEN = 4  # of prose; only for what no provider counted
# Not worked on, not billed.
_REFUSED = frozenset({"auth", "billing", "not_found", "request", "rate", "overload", "server", "unreachable"})

Arm = Literal["ballot", "council"]


class EvaluationSpent(BudgetSpent):
    """The evaluation's own limit is spent. Its scope is `day`: a council's run is parked, and goes on with a higher one."""

    def __init__(self, spent: BudgetSpent) -> None:
        super().__init__("day", spent.meter, 0, 0)
        self.message = spent.message.replace("the command's budget", "the evaluation's budget")
        self.fix = f"continue with --resume and a higher --max-{spent.meter}"
        self.args = (self.message,)


class MeterLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """The line of a call. `number` is that of the ballot, 0 for the council. `usd` None: the price is not known.
    `estimated`: nobody counted the tokens. `failed`: the kind of its error."""

    question: str
    arm: Arm
    number: int
    tokens: int
    usd: float | None
    seconds: float
    model: str = ""
    estimated: bool = False
    failed: str = ""


@dataclass(frozen=True)
class Expense:
    """A sum of calls. `seconds` are those in which calls were under way, one after the other or not."""

    calls: int = 0
    tokens: int = 0
    usd: float | None = 0.0
    seconds: float = 0.0
    estimated: int = 0

    def __add__(self, other: Expense) -> Expense:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        calls, tokens = self.calls + other.calls, self.tokens + other.tokens
        return Expense(calls, tokens, usd, self.seconds + other.seconds, self.estimated + other.estimated)


class Meter:
    """All measured calls, in memory and in an append-only file (unsynced: a power cut may cost the last ones)."""

    def __init__(self, path: Path, refs: Mapping[str, str]) -> None:
        """`refs`: the questions' refs by their task, which is how a call says what it is about."""
        self._path = path
        self._refs = refs
        self._spent: defaultdict[tuple[str, Arm, int], Expense] = defaultdict(Expense)
        self.models: set[str] = set()
        if path.exists():
            for line in path.read_bytes().split(b"\n"):
                with contextlib.suppress(msgspec.MsgspecError):  # empty, or torn by a power cut
                    self._add(decode_json(line, MeterLine))

    def ballot(self, ref: str, number: int) -> Expense:
        return self._spent.get((ref, "ballot", number), Expense())

    def ballots(self, ref: str, count: int) -> Expense:
        """The cost of the ballots 1 to `count`."""
        return sum((self.ballot(ref, number) for number in range(1, count + 1)), Expense())

    def council(self, ref: str) -> Expense:
        return self._spent.get((ref, "council", 0), Expense())

    def everything(self) -> Expense:
        return sum(self._spent.values(), Expense())

    def placed(self, info: TurnInfo) -> tuple[str, Arm, int]:
        """The question, the arm and the number that a call belongs to."""
        arm: tuple[Arm, int] = ("ballot", info.round) if info.role == BALLOT else ("council", 0)
        return self._refs.get(info.task, ""), *arm

    def note(self, call: MeterLine) -> None:
        """Raises StorageFailed."""
        append_line(self._path, msgspec.json.encode(call))
        self._add(call)

    def _add(self, call: MeterLine) -> None:
        key = (call.question, call.arm, call.number)
        self._spent[key] += Expense(1, call.tokens, call.usd, call.seconds, int(call.estimated))
        if not call.failed:
            self.models.add(call.model)


class MeteredModel(ModelAround):
    """A model whose calls are allowed by the evaluation's budget before they are made, and measured after."""

    def __init__(
        self, inner: Model, budget: Budget, calibration: Calibration, meter: Meter, *, max_output_tokens: int
    ) -> None:
        super().__init__(BudgetedModel(inner, budget, calibration, max_output_tokens=max_output_tokens))
        self._budget = budget
        self._meter = meter

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        """Raises EvaluationSpent before a call that could cross the evaluation's limit."""
        began_s = self._budget.clock.monotonic_s()

        def note(usage: Usage, *, estimated: bool, failed: str = "") -> None:
            tokens, usd = usage.input_tokens + usage.output_tokens, self._budget.usd(self.name, usage)
            seconds = round(self._budget.clock.monotonic_s() - began_s, 6)
            place = self._meter.placed(asked.get("info") or TurnInfo())
            self._meter.note(MeterLine(*place, tokens, usd, seconds, self.name, estimated, failed))

        try:
            reply = await self._inner.generate(messages, **asked)
        except BudgetSpent as spent:
            raise EvaluationSpent(spent) if spent.scope == "command" else spent from None
        except ModelError as error:
            usage = Usage() if error.kind in _REFUSED else _estimated(messages, asked, "")
            note(usage, estimated=bool(usage.input_tokens), failed=error.kind)
            raise
        note(reply.usage or _estimated(messages, asked, reply.text), estimated=reply.usage is None)
        return reply


def _estimated(messages: Sequence[Message], asked: RequestOptions, said: str) -> Usage:
    chars = len(asked["system"]) + sum(len(message.text) for message in messages)
    return Usage(chars // _CHARS_PER_TOKEN + 1, len(said) // _CHARS_PER_TOKEN)
