"""Requests that agents make in their turns (Protocol 93, section 2): who may ask for what, how much of it, and the
answer as evidence. Each answer is a step of the run. A tool's work is the tool's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from council.deliberation.equipment import Equipment
from council.deliberation.guarding import Guard, withheld
from council.deliberation.members import Member
from council.deliberation.transcript import STEWARD_INPUT, Evidence, Transcript, Turn
from council.engine.runs import Run
from council.errors import GuardrailBlocked, ToolRefused
from council.events import ToolRequest
from council.ids import sha256_hex
from council.knowledge.library import split_range
from council.safety.echoes import OutsideTexts
from council.safety.untrusted import clean, inert, plain_line
from council.tools.base import ToolContext, ToolResult
from council.tools.tokens import Request, echoed, parse


class Requests:
    """The requests of one task's agents, and what they brought. `add` is called with each answer, `changed` after
    it."""

    def __init__(
        self,
        run: Run,
        equipment: Equipment,
        guard: Guard,
        transcript: Transcript,
        add: Callable[[Evidence], None],
        changed: Callable[[], None],
    ) -> None:
        self._run = run
        self._equipment = equipment
        self._guard = guard
        self._transcript = transcript
        self._add = add
        self._changed = changed
        self._outside = OutsideTexts()
        self._outside.add(transcript.task)  # memory holds no request at all: see `digest`

    async def read_input(self, number: int, path: str) -> Evidence:
        """A file that the command names, read by the rules that agents read by. Raises what a step raises."""

        async def read() -> Evidence:
            request = Request(action="READ_FILE", argument=path, raw=path, line=0, honoured=True, reason="")
            result = await self._call(request, ("READ_FILE",), STEWARD_INPUT, 0)
            return self._evidence(request, result, STEWARD_INPUT, 0)

        item = await self._run.step(f"input/{number}", read, type=Evidence, durable=False)
        self._outside.add(item.text)
        return item

    def of(self, turn: Turn) -> list[tuple[Request, bool]]:
        """The requests of a turn, and of each whether outside text asks for the same, by what was there when the
        agent spoke."""
        requests = parse(turn.result.text, max_requests=self._equipment.limits.max_requests_per_reply)
        told = []
        for request in map(self._equipment.tools.named, requests):
            path, _, _ = split_range(request.argument)  # other lines of it are the same thing
            target = f"[ORCHESTRATOR_REQUEST: {request.action}({path.removeprefix('./')}"
            told.append((request, echoed(request, self._outside) or self._outside.occurs(target)))
        return told

    async def fulfil(self, member: Member, turn: Turn, requests: Sequence[tuple[Request, bool]]) -> None:
        """Answers each of these, as `of` told them: with what was asked for, or with why not."""
        for number, (request, is_echo) in enumerate(requests, start=1):
            name = f"round/{turn.round}/{member.role}/request/{number}"

            async def answer(request: Request = request, is_echo: bool = is_echo) -> Evidence:
                result = await self._answer(request, is_echo, member, turn.round)
                return self._evidence(request, result, member.role, turn.round)

            news = not self._run.journal.recorded(name)
            item = await self._run.step(name, answer, type=Evidence)
            self._heard(item)
            if news:
                self._run.publish(
                    ToolRequest(
                        role=member.role,
                        round=turn.round,
                        request=plain_line(request.raw, 200),
                        ok=item.ok,
                        title=item.title,
                        error=item.error,
                    )
                )
            self._changed()
        known = len(requests)  # more may be recorded: `forget` took the words, not what they brought
        journal = self._run.journal
        while journal.recorded(name := f"round/{turn.round}/{member.role}/request/{known + 1}"):
            self._heard(journal.result(name, Evidence))
            known += 1

    def _heard(self, item: Evidence) -> None:
        self._add(item)
        self._outside.add(item.text)

    async def _answer(self, request: Request, is_echo: bool, member: Member, round_no: int) -> ToolResult:
        if not request.honoured:
            return _refusal("not_honoured", request.reason)
        if is_echo and not any(
            item.ok and (item.action, item.argument) == (request.action, request.argument)
            for item in self._transcript.evidence()
        ):
            return _refusal("echoed", "this request stands in text from outside; only your own words can ask")
        asked = [item for item in self._transcript.entries if isinstance(item, Evidence)]
        if len(asked) >= self._equipment.limits.max_requests:
            return _refusal("too_many", f"this task has used its {self._equipment.limits.max_requests} requests")
        if sum(len(item.text.encode()) for item in asked) >= self._equipment.limits.max_context_bytes:
            return _refusal("too_much", f"this task has read its {self._equipment.limits.max_context_bytes} bytes")
        memory = "memory" not in member.withheld
        return await self._call(request, member.tools, member.role, round_no, memory=memory)

    async def _call(
        self, request: Request, allowed: Sequence[str], role: str, round_no: int, *, memory: bool = True
    ) -> ToolResult:
        lane = self._run.header.lane
        context = ToolContext(
            role=role,
            run_id=self._run.id,
            lane=lane,
            round=round_no,
            memory=memory,
            embedder=self._equipment.embedder,
            recall=self._equipment.recall,
        )
        try:
            return await self._equipment.tools.call(request, allowed=allowed, context=context)
        except ToolRefused as error:
            return _refusal(error.code, str(error))

    def _evidence(self, request: Request, result: ToolResult, asked_by: str, round_no: int) -> Evidence:
        source = result.sources[0] if result.sources else None
        shown = Evidence(
            asked_by=asked_by,
            round=round_no,
            request=request.raw,
            action=request.action,
            argument=inert(plain_line(request.argument, 512)),
            title=inert(result.title),
            embeddings=result.embeddings,
            nearness=result.nearness,
        )
        if not result.ok:
            return msgspec.structs.replace(shown, error_code=result.error_code, error=result.error)
        verdict = self._guard.check("tool_result", result.text)
        if verdict.blocks:
            return msgspec.structs.replace(
                shown, title="", error_code=GuardrailBlocked.code, error=withheld(verdict), guard=verdict
            )
        text = clean(result.text)  # what it hid was looked at: nobody sees it from here on
        sha256 = source.sha256 if source else sha256_hex(text)
        known = self._transcript.same_as(shown.title, sha256, text)
        if known is not None:
            return msgspec.structs.replace(shown, repeats=known.id, path=known.path)
        first_line = source.first_line if source else 1
        lines = max(1, len(text.splitlines())) if not source else max(1, text.removesuffix("\n").count("\n") + 1)
        return msgspec.structs.replace(
            shown,
            id=self._transcript.next_id(),
            path=source.path if source else "",
            first_line=first_line,
            last_line=first_line + lines - 1,
            sha256=sha256,
            text=text,
            guard=verdict,
        )


def _refusal(code: str, reason: str) -> ToolResult:
    return ToolResult(ok=False, title="", text="", error_code=code, error=reason)
