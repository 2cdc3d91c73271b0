"""Everything of one run: its folder, its page, its receipt's words, its log lines, what the agents remember of it.

What stays says only that there was a run: its receipt without words, its id, its row in the ledger. What other runs read
of it or said about it is theirs, and goes by its text; only the digests of memory that they were given lose it here.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from council.agents.memory import RememberedTask, Session, Summary, decode_session, digest, encode_session, excerpt
from council.agents.turn import TurnResult
from council.app import App
from council.app.safekeeping import has_database
from council.deliberation.record import read
from council.deliberation.remembering import STEP as SUMMARY_STEP
from council.deliberation.remembering import Summarised
from council.engine.journal import JOURNAL, FileJournal, RecordedStep
from council.engine.outputs import OutputLedger
from council.engine.receipts import ErrorRef, Receipt
from council.engine.records import FORGOTTEN, FileIdentity
from council.errors import JournalDamaged, PathRefused, StorageFailed
from council.storage.files import rewrite
from council.upkeep.retention import PRUNED
from council.upkeep.span import Span
from council.upkeep.texts import files_below, owner_of
from council.upkeep.traces import CannotForget

_SYNTHESIS = "synthesis"
_ID_SECOND = len("20261120-120000")  # with which run ids begin


class WholeRun:
    """One ended run in one home. May be repeated."""

    def __init__(self, app: App, run_id: str, mark: str) -> None:
        self._app = app
        self._home = app.home
        self._run_id = run_id
        self._mark = mark
        self._ours = OutputLedger(app.home.runtime / "outputs")
        self.unread: set[str] = set()  # runs whose journals `spans` could not read

    def require_ended(self) -> None:
        """Raises CannotForget."""
        if self._run_id in self._app.engine.active or (self._home.runtime / "active" / self._run_id).exists():
            raise CannotForget(
                f"run {self._run_id} has not ended.",
                fix=f"wait for its end or `council cancel {self._run_id}`, then forget it again",
            )

    def spans(self) -> list[Span]:
        """What the digests and summaries of memory in other runs' journals say of it."""
        tasks = {task for path in self._sessions() for task in _session(path).tasks if task.run_id == self._run_id}
        tasks |= set(self._as_remembered())
        entries = {digest(Session("", tasks=(task,))).strip() for task in tasks}
        summaries = {text.strip() for text in self._summaries()}
        return [
            *(Span(entry, f"- Task: {self._mark}") for entry in sorted(entries) if entry),
            *(Span(text, self._mark) for text in sorted(summaries) if text),
        ]

    def _as_remembered(self) -> Iterator[RememberedTask]:
        """As the agents were given it while their sessions held it; the archive may have it by now."""
        receipt = self._app.receipts.read(self._run_id)
        journal, steps = self._recorded(self._folder / JOURNAL)
        for step in steps:
            if step.name.startswith(_SYNTHESIS) and journal is not None and receipt is not None:
                reply = msgspec.json.decode(step.answer, type=TurnResult)
                record = read(reply)
                answer = excerpt(record.answer if record else reply.text)
                yield RememberedTask(self._run_id, journal.header.title, receipt.status, receipt.finished, answer)

    def _summaries(self) -> Iterator[str]:
        """The texts of all summaries of older tasks that may hold this one, of whatever lane: in the memory now, and in
        the journals of later runs."""
        for path in self._sessions():
            summary = _session(path).summary
            if self._may_be_in(summary):
                yield summary.text
        for folder in sorted(self._home.runs.glob("[!.]*")):
            if not _is_earlier(folder.name, self._run_id):
                yield from self._summaries_made_by(folder / JOURNAL)

    def _summaries_made_by(self, path: Path) -> Iterator[str]:
        for step in self._recorded(path)[1]:
            if step.name == SUMMARY_STEP:
                tried = msgspec.json.decode(step.answer, type=Summarised)
                yield from (
                    text for text in (tried.text, tried.result.text) if not _is_earlier(tried.through, self._run_id)
                )

    def _recorded(self, path: Path) -> tuple[FileJournal | None, list[RecordedStep]]:
        """A journal and its steps; none of them where there is no journal, or none that can be read."""
        if not path.exists():
            return None, []
        try:
            journal = FileJournal.read(path)
            return journal, journal.steps()
        except (JournalDamaged, StorageFailed):
            self.unread.add(path.parent.name)
            return None, []

    def _may_be_in(self, summary: Summary) -> bool:
        return bool(summary.text) and not _is_earlier(summary.through, self._run_id)

    def look(self) -> dict[str, int]:
        """In how many files of each kind it is."""
        sessions = [path for path in self._sessions() if self._is_remembered(path)]
        logs = [path for path in files_below(self._home.log_file.parent) if self._run_id.encode() in path.read_bytes()]
        return {
            "runs": int(self._folder.is_dir()),
            "artifacts": int(self._own_artifact() is not None),
            "receipts": int(self._app.receipts.read(self._run_id) is not None),
            "memory": len(sessions) + len(list(self._archived())),
            "logs": len(logs),
        }

    def left(self) -> tuple[str, ...]:
        """What is of the run and a person's: its command file, if it failed, and its page, if it was edited."""
        failed = files_below(self._home.failed)
        paths = [path.relative_to(self._home.root).as_posix() for path in failed if self._run_id in path.name]
        receipt = self._app.receipts.read(self._run_id)
        if receipt is not None and receipt.artifact is not None and self._own_artifact() is None:
            entry = self._ours.read(receipt.artifact.path)
            edited = entry is not None and entry.run_id == self._run_id
            paths += [receipt.artifact.path] if edited and (self._home.root / receipt.artifact.path).exists() else []
        return tuple(paths)

    def remove(self) -> bool:
        """Whether anything was changed. Its `spans` are removed before; the folder goes last, so that what was cut off is
        found again. Raises StorageFailed."""
        done = [self._forget_task(path) for path in self._sessions()]
        done += [self._drop_lines(path) for path in files_below(self._home.log_file.parent)]
        for path in list(self._archived()):
            path.unlink()
            done.append(True)
        artifact = self._own_artifact()
        if artifact is not None:
            self._app.root.unlink(artifact)
            self._ours.drop(artifact)
        done.append(self._forget_records())
        done += [artifact is not None, self._strip_receipt(), self._remove_folder()]
        return any(done)

    def _forget_records(self) -> bool:
        """What the audit says of it: which paths it wrote, what it asked for."""
        app = self._app
        if not has_database(self._home, app.settings):
            return False
        return app.audit.log().forget(lambda text: self._run_id in text, self._run_id, {self._run_id}) > 0

    # ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _sessions(self) -> list[Path]:
        """Session files, their last good copies, and damaged ones that were set aside."""
        folders = (self._home.session_states, self._home.runtime / "memory")
        return [path for folder in folders for path in files_below(folder) if "_session.json" in path.name]

    def _is_remembered(self, path: Path) -> bool:
        return self._run_id.encode() in path.read_bytes()

    def _forget_task(self, path: Path) -> bool:
        session = _session(path)
        kept = tuple(task for task in session.tasks if task.run_id != self._run_id)
        summary = Summary(tried=session.summary.tried) if self._may_be_in(session.summary) else session.summary
        if len(kept) < len(session.tasks) or summary != session.summary:
            rewrite(path, encode_session(msgspec.structs.replace(session, tasks=kept, summary=summary)))
            return True
        if not self._is_remembered(path):
            return False
        before = path.read_bytes()
        after = _without_task(before, self._run_id)
        if after is None:  # damaged beyond reading: only the whole of it can go
            path.unlink()
        else:
            rewrite(path, after)
        return True

    def _archived(self) -> Iterator[Path]:
        for path in files_below(self._home.session_states / "archive"):
            if path.name == f"{self._run_id}.md" or path.name.startswith(f"{self._run_id}."):
                yield path

    # ── logs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _drop_lines(self, path: Path) -> bool:
        before = path.read_bytes()
        after = b"".join(line for line in before.splitlines(keepends=True) if not self._is_its_line(line))
        if after != before:
            rewrite(path, after)
        return after != before

    def _is_its_line(self, line: bytes) -> bool:
        if self._run_id.encode() not in line:
            return False
        try:
            value = json.loads(line)
        except ValueError:
            return True
        return isinstance(value, dict) and value.get("run_id") == self._run_id

    # ── what it left ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _own_artifact(self) -> str | None:
        """Where its page stands as it left it; None when it is gone, a person's by now, or another run's."""
        receipt = self._app.receipts.read(self._run_id)
        if receipt is None or receipt.artifact is None:
            return None
        try:
            here = self._app.root.sha256(receipt.artifact.path)
        except PathRefused:
            return None
        return receipt.artifact.path if here == receipt.artifact.sha256 else None

    def _strip_receipt(self) -> bool:
        receipt = self._app.receipts.read(self._run_id)
        if receipt is None:
            return False
        stripped = self._stripped(receipt)
        if stripped == receipt:
            return False
        if receipt.id is not None:
            self._app.receipts.forget_command(receipt.id, self._run_id, receipt.id)
        self._app.receipts.rewrite(stripped)
        return True

    def _stripped(self, receipt: Receipt) -> Receipt:
        """Without its words and hashes; the id stays, so that its command is not run again."""
        error = None if receipt.error is None else ErrorRef(receipt.error.code, self._mark)
        return msgspec.structs.replace(
            receipt,
            title=self._mark,
            notes=(),
            error=error,
            artifact=None,
            command_file=FileIdentity(self._mark, 0, 0, FORGOTTEN),
            command_sha256=FORGOTTEN,
            command_hash=FORGOTTEN,
        )

    @property
    def _folder(self) -> Path:
        return self._home.runs / self._run_id

    def _remove_folder(self) -> bool:
        """Renamed first: what is left of a removal that was cut off is no run."""
        hidden = self._home.runs / f"{PRUNED}{self._run_id}"
        if hidden.is_dir():
            shutil.rmtree(hidden)
        if self._folder.is_dir():
            self._folder.rename(hidden)
        found = [folder for folder in (hidden, self._home.runtime / "damaged" / self._run_id) if folder.is_dir()]
        for folder in found:
            shutil.rmtree(folder)
        self._app.ledger.mark_pruned(self._run_id)
        return bool(found)


def _is_earlier(run_id: str, other: str) -> bool:
    """By the second of their ids; two runs of one second are not told apart."""
    return run_id[:_ID_SECOND] < other[:_ID_SECOND]


def _session(path: Path) -> Session:
    """Empty when it cannot be read."""
    role, lane = owner_of(path)
    return decode_session(path.read_bytes(), role, lane)[0] or Session(role, lane)


def _without_task(data: bytes, run_id: str) -> bytes | None:
    """A session file whose checksum does not fit, without the task; None when it is not even JSON with tasks."""
    try:
        value: Any = json.loads(data)
        value["tasks"] = [task for task in value["tasks"] if task["run_id"] != run_id]
    except (ValueError, TypeError, KeyError):
        return None
    return json.dumps(value, indent=1, ensure_ascii=False).encode()
