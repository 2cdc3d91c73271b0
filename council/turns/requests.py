"""Requests that agents make in their turns (Protocol 93, section 2): who may ask for what, how much of it, and the
answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from council.deadline import beside_the_loop
from council.engine.records import Part
from council.engine.runs import Run
from council.errors import GuardrailBlocked, TookTooLong, ToolRefused
from council.events import ToolRequest
from council.ids import STEWARD, sha256_hex
from council.lines_and_pages import numbers, split_range
from council.safety.echoes import OutsideTexts
from council.safety.untrusted import clean, inert, plain_line
from council.tools.tokens import Request, echoed, parse
from council.tools.tool import NO_MATCH, ToolContext, ToolResult
from council.turns.equipment import Equipment, Speaker
from council.turns.evidence import STEWARD_INPUT, Evidence
from council.turns.run_guardrails import Guard, withheld

ECHOED = "echoed"
NOT_HONOURED = "not_honoured"
_NOT_THERE = ("not_found", NO_MATCH)
_QUOTED_REQUEST = re.compile(r"\[quoted-request[^\]\n]*")
_AUDITED_CHARS = 600
_ARGUMENT_CHARS = 512


@dataclass
class Requests:
    """`heard` is called with each answer; `outside` is what prompts of this run hold of texts that no agent wrote."""

    run: Run
    equipment: Equipment
    guard: Guard
    task: str
    heard: Callable[[Evidence], None]
    outside: OutsideTexts

    def __post_init__(self) -> None:
        self._inputs: list[Evidence] = []
        self._answers: list[Evidence] = []
        self._words = _QUOTED_REQUEST.sub("", inert(clean(self.task)))  # a request in it names no file for the task

    async def read_input(self, number: int, path: str) -> Evidence:
        """A file that the command names, read by the rules that agents read by. Raises what a step raises."""

        async def read() -> Evidence:
            request = Request(action="READ_FILE", argument=path, raw=path, line=0, honoured=True, reason="")
            result = await self._call(request, ("READ_FILE",), STEWARD_INPUT, 0)
            return await self._evidence(request, result, STEWARD_INPUT, 0)

        item = await self.run.step(f"input/{number}", read, type=Evidence, durable=False, part=Part("input"))
        await self._remember(item)
        self._inputs.append(item)
        return item

    def of(self, text: str) -> list[tuple[Request, bool]]:
        """The requests in an agent's words; True where outside text asks for the same. A file that the task or the
        command names is asked for in the steward's own words."""
        requests = parse(text, max_requests=self.equipment.limits.max_requests_per_reply)
        given, told = {target_of(item.action, item.argument) for item in self._inputs}, []
        for request in map(self.equipment.tools.named, requests):
            _, path = target_of(request.action, request.argument)
            whole = rf"(?<![\w./~-])(?:\./)?{re.escape(path)}(?![\w/-]|\.\w)"
            is_named = ("READ_FILE", path) in given or (path and re.search(whole, self._words))
            told.append((request, not is_named and echoed(request, self.outside)))
        return told

    async def fulfil(
        self, turn: str, speaker: Speaker, round_no: int, requests: Sequence[tuple[Request, bool]]
    ) -> None:
        """Answers each of these, as `of` told them: with what was asked for, or with why not. `turn` is the step that asked."""
        for number, (request, is_echo) in enumerate(requests, start=1):
            name = f"{turn}/request/{number}"

            async def answer(request: Request = request, is_echo: bool = is_echo) -> Evidence:
                result = await self._answer(request, is_echo, speaker, round_no)
                return await self._evidence(request, result, speaker.role, round_no)

            news = not self.run.recorded(name)
            item = await self.run.step(name, answer, type=Evidence, part=Part("request", speaker.role, round_no))
            await self._hear(item)
            if news:
                self.run.publish(
                    ToolRequest(
                        role=speaker.role,
                        round=round_no,
                        request=plain_line(request.raw, 200),
                        ok=item.ok,
                        title=item.title,
                        error=item.error,
                    )
                )
        known = len(requests)  # more may be recorded: `forget` took the words, not what they brought
        while unspoken := self.run.value(f"{turn}/request/{known + 1}", Evidence):
            await self._hear(unspoken)
            known += 1

    async def _hear(self, item: Evidence) -> None:
        await self._remember(item)
        self._answers.append(item)
        self.heard(item)

    async def _remember(self, item: Evidence) -> None:
        """Reads it now: where it is large, the first request would take that time on the loop."""
        self.outside.add(item.outside)
        await beside_the_loop(f"comparing requests with {item.title}", len(item.text), self.outside.read)

    async def _answer(self, request: Request, is_echo: bool, speaker: Speaker, round_no: int) -> ToolResult:
        if not request.honoured:
            return ToolResult.refused(NOT_HONOURED, request.reason)
        target = target_of(request.action, request.argument)
        if is_echo and target not in answered_in((*self._inputs, *self._answers)):
            return ToolResult.refused(ECHOED, "this request stands in text from outside; only your own words can ask")
        limits = self.equipment.limits
        if len(self._answers) >= limits.max_requests:
            return ToolResult.refused("too_many", f"this task has used its {limits.max_requests} requests")
        if sum(len(item.text.encode()) for item in self._answers) >= limits.max_context_bytes:
            return ToolResult.refused("too_much", f"this task has read its {limits.max_context_bytes} bytes")
        return await self._call(request, speaker.tools, speaker.role, round_no, speaker.withheld)

    async def _call(
        self, request: Request, allowed: Sequence[str], role: str, round_no: int, without: Sequence[str] = ()
    ) -> ToolResult:
        lane = self.run.header.lane
        context = ToolContext(
            role=role,
            run_id=self.run.id,
            lane=lane,
            round=round_no,
            memory="memory" not in without,
            documents="documents" not in without,
            rehearses=self.equipment.rehearses,
            embedder=self.equipment.embedder,
            asker=self.run.header.command.get("user") or STEWARD.id,
            is_input=role == STEWARD_INPUT,
        )
        try:
            return await self.equipment.tools.call(request, allowed=allowed, context=context)
        except ToolRefused as error:
            return ToolResult.refused(error.code, str(error))

    async def _evidence(self, request: Request, result: ToolResult, asked_by: str, round_no: int) -> Evidence:
        source = result.sources[0] if result.sources else None
        shown = Evidence(
            asked_by=asked_by,
            round=round_no,
            request=request.raw,
            action=request.action,
            argument=inert(plain_line(request.argument, _ARGUMENT_CHARS)),
            title=inert(result.title),
            embeddings=result.embeddings,
            part=result.part,
        )
        if not result.ok:
            return msgspec.structs.replace(shown, error_code=result.error_code, error=result.error)
        try:
            verdict = await beside_the_loop(
                f"judging {shown.title}", len(result.text), lambda: self.guard.check("tool_result", result.text)
            )
        except TookTooLong as error:
            return msgspec.structs.replace(shown, title="", error_code=error.code, error=str(error))
        if verdict.blocks:
            return msgspec.structs.replace(
                shown, title="", error_code=GuardrailBlocked.code, error=withheld(verdict), guard=verdict
            )
        text = clean(result.text)  # what it hid was looked at: nobody sees it from here on
        sha256 = source.sha256 if source else sha256_hex(text)
        issued = [item for item in (*self._inputs, *self._answers) if item.id]
        for known in issued:
            if (known.sha256, known.title, known.text) == (sha256, shown.title, text):
                return msgspec.structs.replace(shown, repeats=known.id, path=known.path)
        first_line = source.first_line if source else 1
        lines = max(1, len(text.splitlines()))
        return msgspec.structs.replace(
            shown,
            id=f"E{len(issued) + 1}",
            path=source.path if source else "",
            first_line=first_line,
            last_line=numbers(source.path, text, first_line)[-1] if source else lines,
            sha256=sha256,
            text=text,
            guard=verdict,
        )


def target_of(action: str, argument: str) -> tuple[str, str]:
    """The thing that a request asks for: other lines of a file are the same one."""
    return action, split_range(inert(plain_line(argument, _ARGUMENT_CHARS)))[0].removeprefix("./")


def answered_in(evidence: Iterable[Evidence]) -> set[tuple[str, str]]:
    return {target_of(item.action, item.argument) for item in evidence if item.ok}


def refusals_of(evidence: Iterable[Evidence]) -> Iterator[Mapping[str, str]]:
    """The requests that a rule refused, other than for want of such a file: for the audit."""
    for item in evidence:
        if item.error_code and item.error_code not in _NOT_THERE:
            asked = plain_line(item.request or item.argument, _AUDITED_CHARS)
            yield {"asked_by": item.asked_by, "round": str(item.round), "request": asked, "reason": item.error_code}
