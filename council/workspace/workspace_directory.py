"""The workspace's agents as one run may use them: a handoff goes in, a Return comes out.

    run → the scope → the context pack → the agent's reply (further reads, repairs) → an answer, a question, or a draft plan

Each part is a durable step under the handoff's id. Nothing here waits for a person: a run ends with the draft.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import partial

import msgspec

from council.agents.directory import AgentListing
from council.agents.handoff import Forward, Handoff, Return, ReturnMeta, answer_to
from council.agents.manifest import AgentManifest, load_personas
from council.engine.auditing import audited_effect
from council.engine.ledger import Ledger
from council.engine.open_questions import answers_in
from council.engine.records import Part
from council.errors import ConfigError, CouncilError
from council.ids import readable_json
from council.plans.plan import Plan
from council.storage.store import Tx
from council.systems import Core
from council.turns.bench import Bench
from council.turns.evidence import Evidence
from council.typed_json import decode_json
from council.workspace.agent_prompts import MAX_READ_ROUNDS, abilities, request_message, system_text
from council.workspace.agent_replies import AgentReply, ConciergeReply, DraftReply, WantedReading
from council.workspace.context_pack import NOTE_READING, ContextPack, PackReading, Row, read
from council.workspace.drafting import UNLOCK, DraftEnding, draft, open_drafts, shown_draft
from council.workspace.reply_checks import Ground, plain
from council.workspace.reply_page import answered, confirmed, drafted
from council.workspace.staff import CONCIERGE, FORWARDS, STAFF, Post
from council.workspace.transaction import WorkspaceRefused
from council.workspace.views import project_named

_READING_PART = "reading"
_CUT = ", cut to fit: ask for the other "  # in the title of a document of which not all was read


class AgentFailed(CouncilError):
    """An agent that could not do its part. The run goes on, and says so."""

    code = "agent_failed"


class Scope(msgspec.Struct, frozen=True):
    """The part of the workspace that one handoff is about. `ids` are the server's. `project` is the one in scope, in words.
    `must_ask`: no project is known, and the agent needs one; `readings` then list those that there are."""

    ids: dict[str, str] = {}
    project: str = ""
    must_ask: bool = False
    readings: tuple[PackReading, ...] = ()


class WorkspaceDirectory(AgentListing):
    """The five agents, in the name of the one person for whom the run works."""

    forwards = FORWARDS
    reader = CONCIERGE

    def __init__(self, core: Core, bench: Bench) -> None:
        super().__init__([one for one in load_personas(core.home.personas).values() if one.id in STAFF])
        self._core = core
        self._bench = bench
        self._run = bench.run
        self._asker = bench.principal.id

    async def run(self, handoff: Handoff) -> Return:
        manifest = self.get(handoff.to)
        assert manifest is not None
        try:
            return await self._work(handoff, manifest, STAFF[manifest.id])
        except AgentFailed as failed:
            way_out = f" To go on, {failed.fix}." if failed.fix else ""
            return answer_to(handoff, status="failed", error=f"{failed.message}{way_out}")

    async def _work(self, handoff: Handoff, manifest: AgentManifest, post: Post) -> Return:
        step = handoff.id
        scope = await self._run.step(
            f"{step}/scope", partial(self._scope, handoff, post), type=Scope, durable=False, part=Part("scope")
        )
        drafts = await self._run.step(
            f"{step}/drafts", partial(self._drafts, post), type=dict[str, str], durable=False, part=Part("drafts")
        )
        pack = ContextPack(scope.readings, tuple(drafts.values()))
        if not scope.must_ask:
            tools = post.in_project if "projectId" in scope.ids else post.reads
            pack = pack.with_more(
                await self._read(f"{step}/read", handoff, post, scope, [WantedReading(tool=one) for one in tools])
            )
        reply, pack = await self._replied(handoff, manifest, post, scope, pack, frozenset(drafts))
        cut = [f"{one.left_out} of {one.tool} did not fit" for one in pack.readings if one.left_out]
        documents = str(handoff.context.content.get("documents", "")).splitlines()
        limits = ReturnMeta(limitations=(*cut, *(line for line in documents if _CUT in line)))
        answer = partial(answer_to, handoff, meta=limits, ephemeral=any(map(_shows_a_note, pack.readings)))
        if reply.outcome == "clarify":
            return answer(status="needs_clarification", question=reply.question)
        if isinstance(reply, ConciergeReply) and reply.outcome == "handoff":
            wishes = tuple(Forward(one.kind, one.userIntent, one.projectId) for one in reply.handoff)
            return answer(output={"answer": reply.answer}, handoff=wishes)
        if isinstance(reply, DraftReply) and reply.outcome == "confirm":
            plan_id = reply.revises or max(drafts)
            return answer(output={"answer": confirmed(plan_id, self._asker, self._bench.say)}, plan=plan_id)
        can = abilities(manifest, self._core.tools)
        if isinstance(reply, DraftReply) and reply.outcome == "draft":
            ids = {key: value for key, value in scope.ids.items() if key in post.scope}
            write = partial(
                draft, self._core.plans, reply=reply, kind=post.kind, scope=ids, asker=self._asker, run_id=self._run.id
            )
            ending = await audited_effect(self._run, self._core.plans.audit, f"{step}/draft", write, DraftEnding)
            if ending.error:
                raise AgentFailed(ending.error, fix="ask again")
            plan_id = ending.plan.plan_id if ending.plan is not None else ending.open_plan
            status = "partial" if ending.refused else "completed"
            output = drafted(reply, ending, pack, self._asker, can, self._bench.say)
            return answer(status=status, output=output, plan=plan_id)
        shown = can.values() if reply.outcome == "decline" else ()
        return answer(output=answered(reply, pack, tuple(shown), self._bench.say))

    async def _scope(self, handoff: Handoff, post: Post) -> Scope:
        """The project that is named by the command, the handoff or the request's own words; and the organization, where there
        is only one. Raises AgentFailed for a project that the person may not see."""
        named = str(handoff.context.content.get("project") or self._bench.project)
        if not named and not post.needs_project:
            session = await self._own_reading("getSessionContext")
            organizations = [row["orgId"] for one in session.rows for row in one.get("organizations", ())]
            only = {"orgId": organizations[0]} if len(organizations) == 1 and "orgId" in post.scope else {}
            return Scope(only)
        listed = await self._own_reading("listProjects")
        try:
            found = [project_named(listed.rows, named)] if named else []
        except WorkspaceRefused as refused:
            raise AgentFailed(refused.message, fix=refused.fix) from refused
        for words in (*reversed(answers_in(self._run)), handoff.task):
            found = found or named_projects(words, listed.rows)
        if len(found) != 1:
            return Scope(must_ask=True, readings=(listed,))
        row = found[0]
        ids = {"projectId": row["projectId"], "orgId": row["orgId"]}
        return Scope(ids, f"The project “{row['name']}” ({row['projectId']}) of {row['organization']}.")

    async def _own_reading(self, tool: str) -> PackReading:
        """A reading for the server's own use, in the asker's name. Raises AgentFailed."""
        reading = await read(self._core.tools, (tool,), tool, {}, self._asker)
        if reading.error:
            raise AgentFailed(f"{tool}: {reading.error}", fix="")
        return reading

    async def _read(
        self, step: str, handoff: Handoff, post: Post, scope: Scope, reads: Sequence[WantedReading]
    ) -> list[PackReading]:
        """The readings of the agent's own tools, each a step. In the scope of a project nothing else is read."""
        bench, found = self._bench, []
        for number, wanted in enumerate(reads, start=1):
            tool = self._core.tools.get(wanted.tool)
            fields = tool.arguments.model_fields if tool is not None else {}
            held_to = {key: value for key, value in scope.ids.items() if key in fields}
            arguments = {**wanted.arguments, **held_to}
            if not wanted.arguments and any(
                field.is_required() and key not in held_to for key, field in fields.items()
            ):
                continue  # a first reading that needs an id which is not known yet
            leaves = "projectId" in scope.ids and "projectId" not in fields and wanted.tool not in post.in_project
            if leaves or any(wanted.arguments.get(key, value) != value for key, value in held_to.items()):
                told = "it would leave the scope of this request"
                reading = PackReading(wanted.tool, wanted.arguments, error=told, error_code="outside_scope")
            else:
                look = partial(read, self._core.tools, handoff.tools, wanted.tool, arguments, self._asker)
                part = Part(_READING_PART, handoff.to.upper())
                reading = await self._run.step(f"{step}/{number}", look, type=PackReading, durable=False, part=part)
            found.append(reading)
            if reading.error:
                spelled = f"{reading.tool}({readable_json(reading.arguments)})"
                refused = Evidence(handoff.to.upper(), len(bench.roles), spelled, title=spelled, error=reading.error)
                bench.evidence.append(msgspec.structs.replace(refused, error_code=reading.error_code))
        return found

    async def _drafts(self, post: Post) -> dict[str, str]:
        """The open drafts of this conversation that this agent could change, by their ids."""
        plans, store, lane = self._core.plans, self._core.store, self._run.header.lane
        if not post.kind:
            return {}

        def look(tx: Tx) -> dict[str, str]:
            return {plan.plan_id: shown_draft(plans, tx, plan) for plan in found}

        found = await asyncio.to_thread(open_drafts, store, plans, kind=post.kind, asker=self._asker, lane=lane)
        told = await asyncio.to_thread(store.read, look)
        for plan in found:
            if await self._rests_on_a_locked_note(plan):
                told[plan.plan_id] = f"open draft {plan.plan_id}\n{UNLOCK}"
        return told

    async def _rests_on_a_locked_note(self, plan: Plan) -> bool:
        """True when the run that drafted the plan read a note that its person may not read now."""
        ledger = Ledger(self._core.store)
        if not await asyncio.to_thread(ledger.has_journal, plan.run_id):
            return True  # it was pruned, so nobody can tell any more
        journal = await asyncio.to_thread(ledger.journal, plan.run_id)
        readings = [
            decode_json(step.answer, PackReading) for step in journal.steps() if step.part.kind == _READING_PART
        ]
        for one in readings:
            if _shows_a_note(one):
                now = await read(self._core.tools, (one.tool,), one.tool, one.arguments, self._asker)
                if now.error:
                    return True
        return False

    async def _replied(
        self,
        handoff: Handoff,
        manifest: AgentManifest,
        post: Post,
        scope: Scope,
        pack: ContextPack,
        drafts: frozenset[str],
    ) -> tuple[AgentReply, ContextPack]:
        """The agent's reply, and the pack that it rests on: at most two rounds of further reads. Raises AgentFailed."""
        bench, day = self._bench, self._run.header.day
        system = system_text(manifest, self._core.tools, post.reply, self._asker)
        try:
            speaker = await bench.enlist(f"{handoff.id}/agent", manifest, system)
        except ConfigError as error:
            raise AgentFailed(error.message, fix=error.fix) from error
        held_to = {key: value for key, value in scope.ids.items() if key in post.scope}
        bench.roles.append(manifest.role)
        said = "\n".join([bench.task, *answers_in(self._run)])  # by the person, and not by another agent
        for turn in range(MAX_READ_ROUNDS + 1):
            may_read = turn < MAX_READ_ROUNDS and not scope.must_ask
            ground = Ground(said, pack, held_to, day, drafts, scope.must_ask, may_read)
            message = request_message(handoff, pack, bench, day=day, project=scope.project)
            step = f"{handoff.id}/reply/{turn + 1}"
            reply, fault = await bench.ask_object(step, speaker, (message,), post.reply, ground.check)
            if reply is None:
                raise AgentFailed(f"{manifest.id} gave no reply that could be used: {fault}.", fix="ask again")
            if reply.outcome != "read":
                return reply, pack
            pack = pack.with_more(await self._read(f"{step}/read", handoff, post, scope, reply.reads))
        raise AssertionError("the last turn may not read")


def _shows_a_note(reading: PackReading) -> bool:
    """True when the text of a note is in it, which may be locked later."""
    return reading.tool == NOTE_READING and not reading.error


def named_projects(request: str, rows: Sequence[Row]) -> list[Row]:
    """The projects whose names stand in a request. A name that is part of another one there does not count."""
    words = plain(request)
    found = [row for row in rows if re.search(rf"(?<!\w){re.escape(plain(row['name']))}(?!\w)", words)]
    names = [plain(row["name"]) for row in found]
    return [
        row for row, name in zip(found, names, strict=True) if not any(name != one and name in one for one in names)
    ]
