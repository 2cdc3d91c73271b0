"""Everything of one run: its journal, its page, its receipt's words, its log lines, what the agents remember of it.

What stays says only that there was a run: its receipt without words, its id, its row in the ledger. What other runs read of it
or said about it is theirs, and goes by its text. Only the digests of memory that they were given lose it here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from council.agents.memory import COPIES
from council.agents.memory_digest import digest, excerpt
from council.agents.session_file import RememberedTask, Session, Summary, decode_session, encode_session
from council.deliberation.memory_summary import STEP as SUMMARY_STEP
from council.deliberation.memory_summary import SummaryTry
from council.deliberation.record import read
from council.engine import statements as sql
from council.engine.outputs import kept_data, kept_names, written_at
from council.engine.receipts import ErrorRef
from council.engine.records import FORGOTTEN, FileIdentity
from council.engine.run_records import RecordedStep, RunRecords, rows_of
from council.engine.runs import Runs
from council.errors import JournalDamaged, RunNotFound
from council.storage.files import rewrite
from council.storage.store import Tx, look_into
from council.systems import Core
from council.turns.result import CLOSING_CALLS, TurnResult
from council.typed_json import decode_json
from council.upkeep.copies import blocks_of
from council.upkeep.forgotten_text import Span, pieces_of
from council.upkeep.table_words import change_words, count_words, drop_rows, words_of_run
from council.upkeep.text_files import files_below, owner_of, rewritten
from council.upkeep.text_removal import unended

_ID_SECOND = len("20261120-120000")  # with which run ids begin


class WholeRun:
    """One ended run in one home. May be repeated."""

    def __init__(self, core: Core, runs: Runs, run_id: str, mark: str) -> None:
        self._core = core
        self._runs = runs
        self._home = core.home
        self._run_id = run_id
        self._mark = mark
        self._store = core.store
        self._ledger = core.ledger
        self.unread: set[str] = set()  # runs whose journals `spans` could not read
        # Of all rows of the run, and of its words in those of others; empty: not known.
        self._pieces: set[bytes] = set()

    def require_ended(self) -> None:
        """Raises CannotForget."""
        if self._run_id in self._runs.active:
            raise unended(self._run_id)

    def spans(self) -> list[Span]:
        """The words on it in digests and summaries of memory, which stand in other runs' journals."""
        sessions = [_session(path) for path in self._sessions()]
        sessions += [self._copied(name) for name in kept_names(self._store, COPIES)]
        tasks = {task for session in sessions for task in session.tasks if task.run_id == self._run_id}
        receipt = self._core.receipts.read(self._run_id)
        journal, steps = self._recorded(self._run_id)
        for step in steps:  # as the agents were given it while their sessions held it; the archive may have it by now
            if step.part.kind in CLOSING_CALLS and journal is not None and receipt is not None:
                reply = decode_json(step.answer, TurnResult)
                record = read(reply)
                answer = excerpt(record.answer if record else reply.text)
                title = journal.header.title
                tasks.add(RememberedTask(self._run_id, title, receipt.status, receipt.finished, answer))
        # All summaries of older tasks that may hold it, of whatever lane: in the memory now, and in later runs' journals.
        summaries = {session.summary.text.strip() for session in sessions if self._may_be_in(session.summary)}
        later = [entry.run_id for entry in self._ledger.ended() if not _is_earlier(entry.run_id, self._run_id)]
        for step in (step for run_id in later for step in self._recorded(run_id)[1] if step.name == SUMMARY_STEP):
            tried = decode_json(step.answer, SummaryTry)
            if not _is_earlier(tried.through, self._run_id):
                summaries |= {tried.text.strip(), tried.result.text.strip()}
        entries = {digest(Session("", tasks=(task,))).strip() for task in tasks}
        with self._store.reading() as tx:
            self._pieces = self._pieces_of_rows(tx, journal.header.title) if journal is not None else set()
        for text in entries | summaries if self._pieces else ():
            self._pieces |= pieces_of(json.dumps(text, ensure_ascii=False).encode())
        return [
            *(Span(entry, f"- Task: {self._mark}") for entry in sorted(entries) if entry),
            *(Span(text, self._mark) for text in sorted(summaries) if text),
        ]

    def _pieces_of_rows(self, tx: Tx, title: str) -> set[bytes]:
        """Empty where they do not tell all: of the title they are too short, or a kill came when some rows had the mark, or none
        was left."""
        found = tx.execute(sql.HEADER, (self._run_id,)).fetchone()
        if found is None or not pieces_of(json.dumps(title, ensure_ascii=False).encode()):
            return set()
        said = [
            *tx.execute(sql.WORDS_OF_RUN, (self._run_id,)).fetchone(),
            *(row.out for _, row in rows_of(tx, found[0])),
            *(bytes(row[0]) for row in tx.execute(sql.KEPT_BYTES, (self._run_id,)).fetchall()),
            *words_of_run(tx, self._core.tables, self._run_id),
        ]
        texts = [text.encode() if isinstance(text, str) else text for text in said if text]
        has_begun = any(self._mark.encode() in text for text in texts)
        return set() if has_begun else set().union(*map(pieces_of, texts))

    def may_be_in(self, copy: Path) -> bool:
        """True where a copy of the database holds words of the run that are in none of its rows, or where that cannot be told:
        they stand between the rows, in pages that SQLite split or merged."""
        if not self._pieces:
            return True
        left = set().union(*(self._pieces & pieces_of(block) for block in blocks_of(copy)))
        if not left:
            return False

        def look(tx: Tx) -> bool:
            for (table,) in tx.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                for row in tx.execute(f'SELECT * FROM "{table}"'):  # noqa: S608  a table's name
                    for value in row:
                        if isinstance(value, str | bytes):
                            left.difference_update(pieces_of(value.encode() if isinstance(value, str) else value))
                    if not left:
                        return False
            return True

        return look_into(copy, look)

    def _recorded(self, run_id: str) -> tuple[RunRecords | None, list[RecordedStep]]:
        try:
            journal = self._ledger.journal(run_id)
            return journal, journal.steps()
        except RunNotFound:
            return None, []
        except JournalDamaged:
            self.unread.add(run_id)
            return None, []

    def _may_be_in(self, summary: Summary) -> bool:
        return bool(summary.text) and not _is_earlier(summary.through, self._run_id)

    def look(self) -> dict[str, int]:
        """Counts the files and rows of each kind that hold the run."""
        held = self._run_id.encode()
        sessions = [path for path in self._sessions() if held in path.read_bytes()]
        logs = [path for path in files_below(self._home.log_file.parent) if held in path.read_bytes()]
        with self._store.reading() as tx:
            words = count_words(tx, self._core.tables, self._blanked, run_id=self._run_id)
        return {
            "runs": int(self._ledger.has_journal(self._run_id)),
            "artifacts": int(self.own_artifact() is not None),
            "receipts": int(self._core.receipts.read(self._run_id) is not None),
            "memory": len(sessions) + len(list(self._archived())) + len(self._remembering_copies()),
            "logs": len(logs),
            "other": words,
        }

    def left(self) -> tuple[str, ...]:
        """The files of the run that are a person's: its command file, if it failed, and its page, if it was edited."""
        failed = files_below(self._home.failed)
        paths = [path.relative_to(self._home.root).as_posix() for path in failed if self._run_id in path.name]
        receipt = self._core.receipts.read(self._run_id)
        if receipt is not None and receipt.artifact is not None and self.own_artifact() is None:
            entry = written_at(self._store, receipt.artifact.path)
            edited = entry is not None and entry.run_id == self._run_id
            paths += [receipt.artifact.path] if edited and (self._home.root / receipt.artifact.path).exists() else []
        return tuple(paths)

    async def remove(self) -> bool:
        """True when anything was changed. The journal goes last: what was cut off is found again. Raises StorageFailed."""
        logs = await asyncio.to_thread(lambda: list(map(self._without_lines, files_below(self._home.log_file.parent))))
        done = [rewritten(*change) for change in logs]
        done.append(await asyncio.to_thread(self._remove_beside))
        async with self._runs.stillness():
            done.append(self._remove_still())
        return any(done)

    def _remove_beside(self) -> bool:
        """Removes what no other run writes: archived turns, what the audit and other rows say of it."""
        done = []
        for path in list(self._archived()):
            path.unlink()
            done.append(True)
        # What the audit says of it: which paths it wrote, what it asked for.
        audit = self._core.audit.log()
        done.append(audit.forget(lambda text: self._run_id in text, self._run_id, {self._run_id}) > 0)
        done.append(change_words(self._store, self._core.tables, self._blanked, run_id=self._run_id) > 0)
        return any(done)

    def _remove_still(self) -> bool:
        done = [self._forget_task(path) for path in self._sessions()]
        copies = {name: self._without(self._copied(name)) for name in self._remembering_copies()}
        kept = [(COPIES, name, encode_session(session)) for name, session in copies.items()]
        if kept:
            self._store.write_now(lambda tx: [tx.execute(sql.KEEP, one) for one in kept])
        done.append(bool(kept))
        artifact = self.own_artifact()
        if artifact is not None:
            self._core.root.unlink(artifact)
            self._store.write_now(lambda tx: tx.execute(sql.DROP_WRITTEN, (artifact,)))
        done += [artifact is not None, self._strip_receipt()]
        drop = partial(drop_rows, rooms=self._core.tables, run_id=self._run_id)
        done.append(self._ledger.has_journal(self._run_id) and self._core.receipts.prune(self._run_id, None, drop))
        return any(done)

    def _blanked(self, words: str) -> str:
        return self._mark if words else words

    def _sessions(self) -> list[Path]:
        return [path for path in files_below(self._home.session_states) if "_session.json" in path.name]

    def _copied(self, name: str) -> Session:
        role, lane = owner_of(Path(name))
        return decode_session(kept_data(self._store, COPIES, name) or b"", role, lane)[0] or Session(role)

    def _remembering_copies(self) -> list[str]:
        names = kept_names(self._store, COPIES)
        return [name for name in names if self._run_id.encode() in (kept_data(self._store, COPIES, name) or b"")]

    def _without(self, session: Session) -> Session:
        kept = tuple(task for task in session.tasks if task.run_id != self._run_id)
        summary = Summary(tried=session.summary.tried) if self._may_be_in(session.summary) else session.summary
        return msgspec.structs.replace(session, tasks=kept, summary=summary)

    def _forget_task(self, path: Path) -> bool:
        session = _session(path)
        without = self._without(session)
        if without != session:
            rewrite(path, encode_session(without))
            return True
        before = path.read_bytes()
        if self._run_id.encode() not in before:
            return False
        try:  # its checksum does not fit
            value: Any = json.loads(before)
            value["tasks"] = [task for task in value["tasks"] if task["run_id"] != self._run_id]
            rewrite(path, json.dumps(value, indent=1, ensure_ascii=False).encode())
        except (ValueError, TypeError, KeyError):  # damaged beyond reading: only the whole of it can go
            path.unlink()
        return True

    def _archived(self) -> Iterator[Path]:
        for path in files_below(self._home.session_states / "archive"):
            if path.name == f"{self._run_id}.md" or path.name.startswith(f"{self._run_id}."):
                yield path

    def _without_lines(self, path: Path) -> tuple[Path, bytes, bytes]:
        def is_its(line: bytes) -> bool:
            if self._run_id.encode() not in line:
                return False
            try:
                value = json.loads(line)
            except ValueError:
                return True
            return isinstance(value, dict) and value.get("run_id") == self._run_id

        before = path.read_bytes()
        return path, before, b"".join(line for line in before.splitlines(keepends=True) if not is_its(line))

    def own_artifact(self) -> str | None:
        """The place of its page as it left it; None when it is gone, a person's by now, or another run's."""
        receipt = self._core.receipts.read(self._run_id)
        if receipt is None or receipt.artifact is None:
            return None
        here = self._core.root.fingerprint(receipt.artifact.path)
        return receipt.artifact.path if here == receipt.artifact.sha256 else None

    def _strip_receipt(self) -> bool:
        """Its words and hashes go; the id stays, so that its command is not run again."""
        receipt = self._core.receipts.read(self._run_id)
        if receipt is None:
            return False
        stripped = msgspec.structs.replace(
            receipt,
            title=self._mark,
            notes=(),
            error=None if receipt.error is None else ErrorRef(receipt.error.code, self._mark),
            artifact=None,
            command_file=FileIdentity(self._mark, 0, 0, FORGOTTEN),
            command_sha256=FORGOTTEN,
            command_hash=FORGOTTEN,
        )
        if stripped == receipt:
            return False
        if receipt.id is not None:
            self._core.receipts.forget_command(self._run_id, receipt.id)
        self._core.receipts.rewrite(stripped)
        return True


def _is_earlier(run_id: str, other: str) -> bool:
    """Compares runs by the second of their ids; two runs of one second are not told apart."""
    return run_id[:_ID_SECOND] < other[:_ID_SECOND]


def _session(path: Path) -> Session:
    """Empty when it cannot be read."""
    role, lane = owner_of(path)
    return decode_session(path.read_bytes(), role, lane)[0] or Session(role, lane)
