"""Conversations: which one a request belongs to, what it remembers, and its end.

A conversation is a lane. Its memory is the conductor's session file there. It keeps no archive, so nothing of it can be
searched, and its end removes all of it.
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from council.agents.memory import COPIES
from council.agents.memory_digest import digest, excerpt, without_rehearsals
from council.agents.session_file import MemoryMessage, RememberedTask, Session, session_name
from council.commands.models import dump
from council.commands.types import Admission
from council.conductor import statements as sql
from council.conductor.commands import AskCommand
from council.engine import statements as engine_sql
from council.engine.auditing import actor_of, audited_effect
from council.engine.commit import Output
from council.engine.ledger import naming
from council.engine.open_questions import run_to_answer
from council.engine.receipts import Receipt
from council.engine.records import RunHeader
from council.engine.runs import Premises, Run
from council.errors import CommandInvalid, PathRefused
from council.ids import STEWARD, SystemClock, new_run_id, readable_json, slugify
from council.lines_and_pages import split_range
from council.llm.base import is_rehearsal
from council.markup import first_sentence
from council.safety.untrusted import plain_line
from council.storage.command_drop import drop
from council.storage.paths import ALWAYS_DENIED, ASKS_FOLDER, UPLOADS_FOLDER, ConfinedRoot, PathRules
from council.storage.store import Tx
from council.systems import Core
from council.typed_json import decode_json
from council.users.people import seen_by

if TYPE_CHECKING:
    from council.audit.log import Transaction  # it loads SQLAlchemy

LANE = "ask-"
CONDUCTOR = "CONDUCTOR"
_TITLE_CHARS = 100
_RECENT = 200  # requests that may be a person's: `a_b` is sought, and `a-b` is found, too
_LOOK_S = 60.0


def admit_ask(command: AskCommand, premises: Premises) -> Admission:
    """The lane and the page of a request; or the run whose open question it answers. Raises CommandInvalid for a
    conversation of somebody else, for an end where nothing can end, and for a file that is not there."""
    last = _last_conversation(premises, command.user)
    conversation = command.conversation or ("" if command.new else last)
    if command.end and not conversation:
        fix = "name it: `--conversation` (in a file or a request: `conversation`)"
        raise CommandInvalid("there is no conversation to end.", fix=fix, field="conversation")
    lane = f"{LANE}{conversation or new_run_id(SystemClock().now())}"
    newest, _ = premises.store.read(partial(_state_of, lane))
    owner = (command.user if newest is None else newest.command.get("user")) or STEWARD.id
    if owner != (command.user or STEWARD.id):
        is_seen = premises.store.read(partial(seen_by, user_id=command.user)) is None
        whose = f"{owner}'s" if is_seen else "not yours"
        message, fix = f"the conversation {conversation!r} is {whose}.", "leave `conversation` out to ask in your own"
        raise CommandInvalid(message, fix=fix, field="conversation", refused=True)
    asked = "End of a conversation" if command.end else first_sentence(command.request) or command.request
    title = premises.redactor.redact(command.title or plain_line(asked, _TITLE_CHARS))  # the path is made of it
    waiting = run_to_answer(premises.store, lane, premises.drop)
    if waiting and (command.end or command.dry_run or command.input_artifacts):
        wrong = "end" if command.end else "dry_run" if command.dry_run else "input_artifacts"
        message = f"the run {waiting} of this conversation waits for your answer, and an answer is only text."
        other = "`--new` (in a file or a request: `new`) begins another conversation"
        raise CommandInvalid(message, fix=f"answer it, or `council cancel {waiting}`; {other}", field=wrong)
    if waiting:
        return Admission(title, run_id=waiting, answers=command.request)
    _require_files(command, premises.root)
    recorded = dump(command) | {"conversation": lane.removeprefix(LANE), "new": False}
    (before,) = premises.store.read(lambda tx: tx.execute(sql.REQUESTS_IN_LANE, (lane,)).fetchone())
    name = slugify(title) + (f"-{before + 1}" if before else "")  # no page takes the place of another request's
    page = "" if command.end else f"{ASKS_FOLDER}/{lane.removeprefix(LANE)}/{name}.md"
    return Admission(title, page, recorded=recorded, lane=lane)


def _require_files(command: AskCommand, root: ConfinedRoot) -> None:
    """An answer about a file that nobody could read would look like one about its contents. A file that can be found, and not
    be read, is told with the answer. Raises CommandInvalid."""
    for number, wanted in enumerate(command.input_artifacts):
        path = split_range(wanted)[0].removeprefix("./")
        try:
            PathRules(deny=ALWAYS_DENIED).check(path)  # before it is looked for: nobody learns what lies there
            lies = {"absent": "does not exist", "directory": "is a folder"}.get(root.kind(path), "")
            if lies:
                raise PathRefused(f"{path} {lies}.", reason=lies, fix="name files of the home, each by its path")
        except PathRefused as refused:
            field = f"input_artifacts.{number}"
            error = CommandInvalid(f"`{field}`: {refused.message}", fix=refused.fix, field=field)
            error.code = PathRefused.code
            raise error from refused


def _last_conversation(premises: Premises, user: str | None) -> str:
    """The person's last conversation that has not ended, empty for none. One that nobody has asked in for long has
    ended."""

    def look(tx: Tx) -> str:
        since = SystemClock().now() - timedelta(seconds=premises.settings.conversation_ttl_s)
        asked = ("ask", naming(user or STEWARD.id), _RECENT)
        for lane, header, ended_ns in tx.execute(engine_sql.NEWEST_MAYBE_OF_USER, asked).fetchall():
            run = decode_json(header, RunHeader)
            if run.command.get("user") == user:
                is_over = run.command.get("end") or (ended_ns and datetime.fromisoformat(run.created) < since)
                return "" if is_over else str(lane).removeprefix(LANE)
        return ""

    return premises.store.read(look)


def remembered(core: Core, lane: str, *, rehearses: bool) -> str:
    """The conversation so far, as a prompt carries it, with the record of its last request: why it was routed or declined as it
    was. A language model is told of no rehearsal. Raises StorageFailed."""
    session = core.memory.load(CONDUCTOR, lane).session
    memory = digest(session if rehearses else without_rehearsals(session))
    row = core.store.read(lambda tx: tx.execute(sql.LAST_RECEIPT, (lane,)).fetchone())
    last = None if row is None else decode_json(row[0], Receipt)
    if last is None or (is_rehearsal(last.model) and not rehearses):
        return memory
    lines = [note for note in last.notes if note not in memory]
    for route in last.details.get("routes", ()):
        known = [f"{one['agent']} {one.get('score', '')}".strip() for one in route.get("candidates", ())]
        lines += [f"Part {route['part']}: these agents were considered: {', '.join(known)}."] if known else []
    record = "\n".join(("The record of the last request:", *(f"- {line}" for line in lines))) if lines else ""
    return "\n\n".join(filter(None, (memory, record)))


def memory_output(core: Core, run: Run, request: str, answer: str, status: str, *, rehearsed: bool) -> list[Output]:
    """The conversation with this request in it."""
    session = core.memory.load(CONDUCTOR, run.header.lane).session
    said = (MemoryMessage("user", request), MemoryMessage("model", answer))
    task = RememberedTask(run.id, request[:200], status, run.header.created, excerpt(answer), said, rehearsed)
    tasks = (*(known for known in session.tasks if known.run_id != run.id), task)
    grown = core.redactor.redacted(msgspec.structs.replace(session, tasks=tasks), Session)
    return core.memory.outputs(grown, run.id)[:1]  # no archive: nothing of it can be searched


async def end_conversation(core: Core, run: Run) -> None:
    """Removes what a conversation remembers, its temporary agents, and the documents that came with it. The audit, which
    names its file, is told that there is none any more."""
    lane = run.header.lane
    session = core.memory.path(CONDUCTOR, lane)

    def forget(transaction: Transaction) -> int:
        transaction.tx.execute(sql.DROP_COPY, (COPIES, session_name(CONDUCTOR, lane)))
        transaction.tx.execute(sql.END_CONVERSATION, (lane,))
        if session.exists():
            gone = {"path": session.relative_to(core.home.root).as_posix(), "sha256": ""}
            told = {"files": [gone]}
            transaction.record("effect", "conversation_ended", actor_of(run.header), told, run_id=run.id, step="end")
        return 1

    await audited_effect(run, core.audit, "end", forget, int)
    for folder in (core.home.session_states / lane, core.home.root / UPLOADS_FOLDER / lane.removeprefix(LANE)):
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


@dataclass(frozen=True)
class ConversationKeeper:
    """Ends conversations in which nobody has asked for `conversation_ttl_s`, with a command as a person would. Documents that no
    run took go after the same time."""

    core: Core
    name: str = "conversations"

    async def run(self) -> None:
        while True:
            for lane, user in await asyncio.to_thread(self._expired):
                keys = {"type": "ask", "conversation": lane.removeprefix(LANE), "end": True}
                body = keys | ({"user": user} if user else {})
                drop(self.core.home.commands, f"end-{lane}.json", readable_json(body).encode())
            await asyncio.sleep(min(_LOOK_S, self.core.settings.conversation_ttl_s / 2))

    def _expired(self) -> list[tuple[str, str | None]]:
        """The conversations to end, each with its user. Those that a run works on are left alone."""
        since = self.core.clock.now() - timedelta(seconds=self.core.settings.conversation_ttl_s)
        lanes = {path.name for path in self.core.home.session_states.glob(f"{LANE}*") if path.is_dir()}
        lanes |= {row[0] for row in self.core.store.read(lambda tx: tx.execute(sql.WITH_PROFILES).fetchall())}
        uploads = {f"{LANE}{folder.name}": folder for folder in (self.core.home.root / UPLOADS_FOLDER).glob("*/")}
        found = []
        for lane in sorted(lanes | uploads.keys()):
            newest, is_open = self.core.store.read(partial(_state_of, lane))
            if newest is None and lane in uploads and uploads[lane].stat().st_mtime < since.timestamp():
                shutil.rmtree(uploads[lane])  # of a request that never became a run
            if newest is not None and not is_open and datetime.fromisoformat(newest.created) < since:
                found.append((lane, newest.command.get("user")))
        return found


def _state_of(lane: str, tx: Tx) -> tuple[RunHeader | None, bool]:
    """The newest run of a lane, and True where one is under way."""
    row = tx.execute(engine_sql.NEWEST_IN_LANE, (lane,)).fetchone()
    is_open = tx.execute(engine_sql.OPEN_IN_LANE, (lane,)).fetchone() is not None
    return None if row is None else decode_json(row[0], RunHeader), is_open
