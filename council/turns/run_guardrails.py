"""Guardrails of a run, their verdicts, and how these read on its page. Verdicts are recorded where they change
something, so that a resumed run sees the same ones whatever version reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec

from council.deadline import beside_the_loop
from council.engine.records import Part
from council.engine.runs import Run
from council.errors import GuardrailBlocked, TookTooLong
from council.ids import sha256_hex
from council.llm.base import GUARDIAN, Model, TurnInfo, request_hash
from council.safety.guardrails import POSTURES, check
from council.safety.second_opinion import SCHEMA, SYSTEM, Opinion, question, read_opinion
from council.safety.untrusted import plain_line
from council.safety.verdict import ALLOWED, LAWS, Posture, Stage, Verdict, gravest
from council.turns.asker import attempt
from council.turns.evidence import Evidence
from council.turns.result import Failure, ModelCall, TurnResult

Mode = Literal["on", "warn", "off"]
TASK_STEP, DECISION_STEP, MEMORY_STEP = "guard/task", "guard/decision", "guard/memory"
WITHHELD = "(withheld by a guardrail)"


class Guard(msgspec.Struct, frozen=True, omit_defaults=True):
    """`task` is what the rules say of the run's task. `model` is the spelling of the one that gives second opinions."""

    mode: Mode = "off"
    scope: tuple[str, ...] = ()
    model: str = ""
    task: Verdict = ALLOWED

    def check(self, stage: Stage, text: str) -> Verdict:
        if self.mode == "off":
            return ALLOWED
        return self.applied(check(stage, text, scope=self.scope))

    def applied(self, verdict: Verdict) -> Verdict:
        """The verdict, as a warning where it blocks and this home's guardrails only warn."""
        softens = verdict.blocks and self.mode == "warn"
        return msgspec.structs.replace(verdict, outcome="warn") if softens else verdict


class WithheldMemory(msgspec.Struct, frozen=True):
    """Verdicts on texts that are not remembered, by the hash of the text."""

    verdicts: dict[str, Verdict] = {}


@dataclass(frozen=True)
class Judgement:
    stage: Stage
    subject: str
    verdict: Verdict

    @property
    def note(self) -> str:
        verdict = self.verdict
        law = f", law {verdict.law}: {LAWS[verdict.law][0]}" if verdict.law in LAWS else ""
        posture = f", posture `{verdict.posture}`" if verdict.posture else ""
        done = {"block": "blocked", "warn": "warns"}[verdict.outcome] if not verdict.allows else "allows"
        return f"**Guardrail {done}** ({self.stage}, `{verdict.code}`{posture}{law}). {self.subject}: {verdict.reason}."


class RunGuard:
    def __init__(self, run: Run, guard: Guard, model: Callable[[], Model] | None, model_name: str, task: str) -> None:
        self._run = run
        self._guard = guard
        self._model = model
        self._model_name = model_name
        self._task = task
        self.opinions: dict[str, Opinion] = {}  # by step
        self.task = ALLOWED
        self.decision = ALLOWED
        self.memory = WithheldMemory()

    async def judge_task(self) -> None:
        """Raises GuardrailBlocked. What the rules block needs no second opinion."""
        self.task = self._guard.task
        if not self.task.blocks or self._run.recorded(TASK_STEP):
            self.task = gravest((self._guard.task, await self._second(TASK_STEP, "task", self._task)))
        if self.task.blocks:
            raise GuardrailBlocked(
                f"the task was declined by a guardrail (`{self.task.code}`): {self.task.reason}.",
                fix=_FIXES.get(self.task.code, _FIX),
                stage="task",
            )

    async def judge_decision(self, text: str, step: str = DECISION_STEP) -> None:
        """Judges what a person is to read. Raises GuardrailBlocked; then no decision stands on the page."""
        found = self._run.value(step, Verdict) or self._guard.check("decision", text)
        if not self._run.recorded(step) and (found.allows or self._run.is_closed):
            found = ALLOWED
        else:
            judged, part = found, Part("verdict on the decision")
            found = await self._run.look(step, lambda: judged, type=Verdict, part=part)
        self.decision = gravest((found, await self._second(f"{step}/opinion", "decision", text)))
        if self.decision.blocks:
            raise GuardrailBlocked(
                f"the decision was withheld by a guardrail (`{self.decision.code}`): {self.decision.reason}.",
                fix="reword the task and drop it again; what was said stays in the run's journal",
                stage="decision",
            )

    async def judge_memory(self, texts: Iterable[str]) -> None:
        """Notes which of `texts` are not to be remembered; all of them where judging them takes too long."""
        if (recorded := self._run.value(MEMORY_STEP, WithheldMemory)) is not None:
            self.memory = recorded
            return

        def judge() -> WithheldMemory:
            found = {sha256_hex(text): self._guard.check("memory", text) for text in said}
            return WithheldMemory({digest: verdict for digest, verdict in found.items() if not verdict.allows})

        said = list(dict.fromkeys(texts))
        try:
            bad = await beside_the_loop("judging what is remembered", sum(map(len, said)), judge)
        except TookTooLong as error:
            unjudged = self._guard.applied(Verdict("block", error.code, error.message.rstrip(".")))
            bad = WithheldMemory(dict.fromkeys(map(sha256_hex, said), unjudged))
        if bad.verdicts and not self._run.is_closed:
            part = Part("withheld memory")
            self.memory = await self._run.look(MEMORY_STEP, lambda: bad, type=WithheldMemory, part=part)

    def remembered(self, text: str) -> str:
        verdict = self.memory.verdicts.get(sha256_hex(text), ALLOWED)
        return f"{WITHHELD[:-1]}: {verdict.reason})" if verdict.blocks else text

    def judgements(self, evidence: Iterable[Evidence]) -> Iterator[Judgement]:
        if not self.task.allows:
            yield Judgement("task", "The task", self.task)
        for item in evidence:
            if not item.guard.allows:
                path = plain_line(item.path or item.argument, 120).replace("`", "'")
                yield Judgement("tool_result", f"{item.id} `{path}`".strip(), item.guard)
        if not self.decision.allows:
            yield Judgement("decision", "The decision", self.decision)
        for verdict in dict.fromkeys(self.memory.verdicts.values()):
            subject = "Something that was said, and is not remembered" if verdict.blocks else "Something said"
            yield Judgement("memory", subject, verdict)

    def calls(self) -> list[ModelCall]:
        calls = []
        for step, opinion in self.opinions.items():
            failure = Failure(opinion.failure, "no second opinion", "") if opinion.failure else None
            result = TurnResult("", opinion.model, usage=opinion.usage, failure=failure)
            calls.append(ModelCall(step, "", 0, result, "second opinion"))
        return calls

    async def _second(self, step: str, stage: Stage, text: str) -> Verdict:
        run = self._run
        if not run.recorded(step) and (self._model is None or self._guard.mode == "off" or run.is_closed):
            return ALLOWED

        async def ask() -> Opinion:
            # Whatever goes wrong is an outcome: the rules have judged, and no run is lost for want of an opinion. A missing
            # network is waited for, as the turns would.
            assert self._model is not None
            name, messages = self._model_name, question(stage, text, run.secret)
            asked = request_hash(name, SYSTEM, messages)
            info = TurnInfo(GUARDIAN, "other", task=self._task)
            reply = await attempt(self._model(), system=SYSTEM, messages=messages, info=info, schema=SCHEMA, waits=run)
            if reply.failure is not None:
                return Opinion(name, asked, failure=reply.failure.kind, usage=reply.usage)
            complete = reply.finish == "stop"
            return read_opinion(reply.text, complete=complete, model=reply.model, asked=asked, usage=reply.usage)

        opinion = await run.ephemeral(step, ask, type=Opinion, part=Part(f"second opinion on the {stage}"))
        self.opinions[step] = opinion
        return self._guard.applied(opinion.verdict())


_FIX = (
    "reword the task, and put what it only quotes into quotation marks; `guardrails` in council.toml says what a guardrail's "
    "block does"
)
_FIXES = {"out_of_scope": "name a topic of this council, or add one to `scope_topics` in council.toml"}


def withheld(verdict: Verdict) -> str:
    return f"withheld by a guardrail (`{verdict.code}`): {verdict.reason}"


def manner_of(verdict: Verdict) -> str:
    """The posture that agents are told for a task that goes on with care; empty where there is none."""
    return POSTURES[verdict.posture] if verdict.posture and not verdict.allows else ""


def declined(verdict: Verdict) -> str:
    return _ANSWERS.get(verdict.posture, _PLAIN).format(reason=verdict.reason)


_PLAIN = "The council did not take this on: {reason}."
_ANSWERS: dict[Posture, str] = {
    "decline_explain_alternatives": (
        "The council did not take this on: {reason}. It can take on the lawful and harmless side of the matter, such as its "
        "rules, its history, or how people are kept safe. Say which, and drop the task again."
    ),
    "decline_care_resources": (
        "The council did not take this on, because {reason}. If that is you, or somebody near you: it matters that you are "
        "here, and you do not have to carry this alone. Please talk to somebody now, if you can: a person you trust, a "
        "doctor, or a crisis line. findahelpline.com lists free and confidential ones for most countries. In the United States "
        "and Canada, call or text 988. In danger, the local emergency number (112 or 911 in many countries) reaches help at "
        "once."
    ),
    "decline_no_alternatives": _PLAIN,
}
