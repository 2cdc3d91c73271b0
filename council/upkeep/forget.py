"""A `forget` command takes a text, or everything of one run, out of all that Council keeps, in its lane's turn.

The text is read from the command file, which goes when the run ends, however it ends; record 0 does not hold it. What is
done may be repeated: a process that dies in between begins again, and finds less. What a person wrote (documents,
commands, edited artifacts) is left as it is, and named.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import msgspec

from council.audit.chain import detail_text
from council.commands.file_formats import read_document
from council.engine.auditing import MAX_FILES, actor_of
from council.engine.commit import Output
from council.engine.records import FORGOTTEN, NO_HASHES
from council.engine.runs import Finish, Outcome, Run, RunPause
from council.errors import DaemonRunning, PathRefused
from council.ids import sha256_hex
from council.safety.untrusted import clean
from council.systems import Core
from council.upkeep.copies import blocks_of, copies_of
from council.upkeep.forget_run import WholeRun
from council.upkeep.forgotten_text import NameSpan, Span
from council.upkeep.system import FORGOTTEN_MARK, ForgetCommand, beyond_forget
from council.upkeep.text_removal import CannotForget, Traces

_MARK_CHARS = 12
_SHOWN = 10
_MAX_PASSES = 4
_INDEX_WAIT_S = 5.0  # another process is writing the index: it is done in seconds
# Guessing must be slow where both salt and hash lie in one home: some 50 ms and 16 MiB a guess.
_SCRYPT = {"n": 1 << 14, "r": 8, "p": 1, "dklen": 32}


class ForgetSurvey(msgspec.Struct, frozen=True):
    """The state before anything was changed: in how many files of each kind something is to go, and what of a run is a
    person's. `set_aside` are databases that a restore left, and that go. `unread` are runs whose journals are damaged.
    `as_recorded` are files that are as the audit tells, `changed` those that are not. `copies` counts the daily copies."""

    counts: dict[str, int]
    left: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    as_recorded: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    copies: int = 0


class ForgetRecord(msgspec.Struct, frozen=True):
    """The record that stays, without the text. `counts`, `set_aside`, `unread` and `copies` are those of the survey.

    `digest` is scrypt of the text (of the run's id when there was none), salted with the secret of the run `run_id`. The
    marks show its beginning. `left` names a person's files that still hold it, and databases that may. `unseen` counts
    files that could not be looked into, `lanes` those with it in their name.
    """

    at: str
    run_id: str
    digest: str
    counts: dict[str, int]
    run: str = ""
    left: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    unseen: int = 0
    lanes: int = 0
    unread: tuple[str, ...] = ()
    copies: int = 0


class Forgetting:
    """One forget command being worked on (an engine Execution)."""

    def __init__(self, run: Run, core: Core) -> None:
        self._run = run
        self._core = core
        self._job: _Job | None = None
        self._done: ForgetRecord | None = None

    async def work(self) -> None:
        """Raises CannotForget: the file is gone, or a run under way holds the text; RunPause while another indexes."""
        found = await self._run.step("found", self._look, type=ForgetSurvey)
        self._done = await self._run.step("forget", lambda: self._forget(found), type=ForgetRecord)

    async def _look(self) -> ForgetSurvey:
        """Looks beside the other runs: a large home takes a while."""
        job = await self._prepared()
        await job.traces.require_in_no_unfinished_run()
        counts = await asyncio.to_thread(job.traces.look)
        left, set_aside = await asyncio.to_thread(lambda: (job.traces.databases(), job.traces.set_aside()))
        page, root = job.whole.own_artifact() if job.whole is not None else None, self._core.root

        def audited() -> tuple[tuple[str, ...], tuple[str, ...]]:
            known: list[str] = []
            changed: list[str] = []
            for file in self._core.audit.log().files().values():
                if file.path != page and job.traces.change(file.path) == file.path:
                    is_known = (root.fingerprint(file.path) or "") == file.sha256
                    (known if is_known else changed).append(file.path)
            return tuple(known), tuple(changed)

        known, changed = await asyncio.to_thread(audited)
        copies = len(copies_of(self._core.home)) if self._core.store.is_sqlite else 0
        if job.whole is None:
            return ForgetSurvey(counts, left, set_aside, as_recorded=known, changed=changed, copies=copies)
        of_run = await asyncio.to_thread(job.whole.look)
        counts = {kind: counts[kind] + of_run.get(kind, 0) for kind in counts}
        left, unread = (*left, *job.whole.left()), tuple(sorted(job.whole.unread))
        return ForgetSurvey(counts, left, set_aside, unread, known, changed, copies)

    def _record_rewritten(self, paths: Sequence[str], changed: Sequence[str]) -> None:
        """Records how these files are now: some hold less than before, and of others the record itself was forgotten. One that
        was `changed` by then stays so."""
        audit, root = self._core.audit.log(), self._core.root
        named = audit.files()
        now = {path: root.fingerprint(path) or "" for path in paths}
        now |= {path: FORGOTTEN for path in changed if path not in named}
        others = named.keys() - {*paths, *changed}  # the page of a whole run, where that of an older one had stood
        now |= {path: "" for path in sorted(others) if root.fingerprint(path) is None}
        now = {path: sha256 for path, sha256 in now.items() if path not in named or named[path].sha256 != sha256}
        other = [{"path": path, "sha256": sha256} for path, sha256 in now.items()]
        for first in range(0, len(other), MAX_FILES):
            detail = {"files": other[first : first + MAX_FILES]}
            with audit.transaction() as transaction:
                step = f"rewritten-{sha256_hex(detail_text(detail))[:16]}"
                actor = actor_of(self._run.header)
                transaction.record("effect", "files_rewritten", actor, detail, run_id=self._run.id, step=step)

    async def _forget(self, found: ForgetSurvey) -> ForgetRecord:
        job = await self._prepared()
        try:
            await self._remove(job)
        finally:  # also of what was rewritten before something stood in the way
            await asyncio.to_thread(self._record_rewritten, found.as_recorded, found.changed)
        command, traces = job.command, job.traces
        look = partial(traces.reports_on, command.run) if command.run else traces.left
        left = await asyncio.to_thread(look)
        return ForgetRecord(
            at=self._run.header.created,
            run_id=self._run.id,
            digest=job.digest,
            counts=found.counts,
            run=command.run or "",
            left=tuple(dict.fromkeys((*map(traces.change, found.left), *left.paths))),
            set_aside=found.set_aside,
            unseen=left.unseen,
            lanes=traces.lanes(),
            unread=found.unread,
            copies=found.copies,
        )

    async def _prepared(self) -> _Job:
        if self._job is None:
            recorded, file = self._run.header.command, self._run.header.file
            if recorded["text"] is not None:  # it is recorded nowhere: the file as it was dropped holds it
                most = self._core.settings.max_command_bytes
                try:
                    found = self._core.root.read(f"commands/{file.name}", max_bytes=most)
                except PathRefused as error:
                    fix = "drop the command again"
                    raise CannotForget(f"the command file is gone: {error.message}", fix=fix) from error
                by_time = file.sha256 in NO_HASHES
                if found.mtime_ns != file.mtime_ns if by_time else sha256_hex(found.data) != file.sha256:
                    raise CannotForget(f"commands/{file.name} has changed.", fix="drop the command again, and leave it")
                recorded = read_document(file.name, found.data).value
            command = ForgetCommand.model_validate(recorded)
            digest, mark = await asyncio.to_thread(_marked, command.text or command.run or "", self._run.secret)
            spans: list[Span | NameSpan] = []
            if command.text is not None:
                spans += [Span(command.text, mark), NameSpan(command.text, mark)]
            whole = None if command.run is None else WholeRun(self._core, self._run.runs, command.run, mark)
            if whole is not None:
                whole.require_ended()
            of_run = [] if whole is None else await asyncio.to_thread(whole.spans)
            self._job = _Job(command, digest, spans, whole, Traces(self._core, self._run, [*spans, *of_run]))
        return self._job

    async def _remove(self, job: _Job) -> None:
        """Removes until nothing is found: while indexes are built, a search of another run may bring the text back."""
        for _ in range(_MAX_PASSES):
            await job.traces.require_in_no_unfinished_run()
            changed = await job.traces.remove()
            changed = (job.whole is not None and await job.whole.remove()) or changed
            try:
                await asyncio.to_thread(job.traces.rebuild_indexes)
            except DaemonRunning as error:
                raise RunPause("index", _INDEX_WAIT_S, error) from error
            if not changed:
                await asyncio.to_thread(job.traces.sweep, job.may_be_in)
                return
        raise CannotForget("the text to forget is still being written.", fix="let the other runs end first")

    def conclude(self, finish: Finish) -> Outcome:
        if self._done is None:
            begun = self._run.recorded("found")
            part = ("It had begun: some places may still have the text. Forget it again.",) if begun else ()
            return Outcome("cancelled" if finish.cancelled else "failed", None, error=finish.error, notes=part)
        done = self._done
        counts = ", ".join(f"{kind} {number}" for kind, number in done.counts.items() if number)
        notes = [f"Forgotten in: {counts}." if counts else "It was found nowhere."]
        if done.set_aside:
            gone = _listed(done.set_aside)
            notes.append(f"Deleted, because it may contain the text: {gone}, which a restore had set aside.")
        if done.copies:
            notes.append(f"One copy of now has replaced {done.copies} daily cop{'ies' if done.copies != 1 else 'y'}.")
        if done.left:
            notes.append(f"Still in these files, which Council does not change: {_listed(done.left)}.")
        if done.lanes:
            lanes = "a lane" if done.lanes == 1 else f"{done.lanes} lanes"
            notes.append(f"It is part of the name of {lanes}, which is kept, also in journals and receipts.")
        if done.unread:
            notes.append(f"Damaged journals may still say what agents remembered of it: {_listed(done.unread)}.")
        if done.unseen:
            files = f"{done.unseen} of the home's files"
            notes.append(f"Not searched, for they are too large, too many or unreadable: {files}.")
        notes.append(beyond_forget(is_server=not self._core.store.is_sqlite))
        data = json.dumps(msgspec.to_builtins(done), indent=2, ensure_ascii=False) + "\n"
        record = Output(f".council/forgotten/{self._run.id}.json", data.encode())
        return Outcome("succeeded", None, (record,), notes=tuple(notes))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


@dataclass(frozen=True)
class _Job:
    """`spans` are those of the text. `traces` has those of what others say of a whole run, too."""

    command: ForgetCommand
    digest: str
    spans: Sequence[Span | NameSpan]
    whole: WholeRun | None
    traces: Traces

    def may_be_in(self, copy: Path) -> bool:
        """True where the bytes of a copy of the database hold some of what has to go, or where that cannot be told."""
        if any(span.may_be_in(block) for block in blocks_of(copy) for span in self.spans):
            return True
        return self.whole is not None and self.whole.may_be_in(copy)


def _marked(what: str, secret: bytes) -> tuple[str, str]:
    """The digest and the mark that shows its beginning; a mark never holds the text that it stands for."""
    for number in count():
        salt = secret + (str(number).encode() if number else b"")
        digest = hashlib.scrypt(what.encode("utf-8", "surrogatepass"), salt=salt, **_SCRYPT).hex()
        mark = FORGOTTEN_MARK.format(digest[:_MARK_CHARS])
        if clean(what).strip() not in mark:
            return digest, mark
    raise AssertionError("unreachable")
