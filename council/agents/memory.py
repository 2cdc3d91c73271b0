"""The memory of an agent across tasks (Protocol 94): kept, changed and archived.

`session_states/<role>_session.json` holds the newest tasks with this agent's messages. Every task lies as Markdown
under `session_states/archive/<lane>/<role>/`, too, where QUERY_CORTEX finds its words. A damaged file is set aside and
the last good copy takes its place; that is said, never fatal. A language model is never told of a rehearsal.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from council.agents.memory_digest import tasks_after
from council.agents.session_file import (
    RememberedTask,
    Session,
    Summary,
    decode_session,
    encode_session,
    sanitised,
    session_bytes,
    session_name,
)
from council.engine.commit import Output, StoreEntry
from council.engine.outputs import kept_data
from council.engine.receipts import Receipts
from council.errors import PathRefused
from council.llm.base import is_rehearsal
from council.safety.untrusted import clean, inert
from council.storage.files import as_storage_failed, write_atomic
from council.storage.reader import Looking

COPIES = "memory"  # whose kept data the last good copies are
KEPT_TASKS = 20  # of each kind, so that rehearsals displace nothing; with all messages, in the session file
_NO_FILE = "it is not a regular file"


@dataclass(frozen=True)
class LoadedSession:
    session: Session
    damage: str = ""


class Memory:
    """The session files of a home; `store` keeps their last good copies, out of the way of editors."""

    def __init__(self, session_states: Path, store: Looking) -> None:
        self._folder = session_states
        self._top = f"{session_states.name}/"  # before the paths of what is committed
        self._store = store

    def load(self, role: str, lane: str = "main") -> LoadedSession:
        """Empty when there is no file. A damaged file becomes `….damaged`. Raises StorageFailed, PathRefused."""
        path = self.path(role, lane)
        try:
            session, reason = self.read(path, role, lane)
        except OSError as error:
            damage = f"{path.name} cannot be read ({error.strerror}); the agent starts without memory"
            return LoadedSession(Session(role, lane), damage)
        loaded = LoadedSession(session) if session else self._from_copy(path, role, lane, reason)
        return replace(loaded, session=self._marked(loaded.session))

    def look(self, role: str, lane: str = "main") -> LoadedSession:
        """Loads without changing anything, for those who only show. A damaged file is said to be so."""
        path = self.path(role, lane)
        try:
            session, reason = self.read(path, role, lane)
            damage = f"is damaged ({reason})" if reason != _NO_FILE else _NO_FILE.removeprefix("it ")
        except OSError as error:
            session, damage = None, f"cannot be read ({error.strerror})"
        if session is not None:
            return LoadedSession(self._marked(session))
        data = self.copy(role, lane)
        copied = None if data is None else decode_session(data, role, lane)[0]
        if copied is None:
            return LoadedSession(Session(role, lane), f"{path.name} {damage}")
        return LoadedSession(self._marked(copied), f"{path.name} {damage}; this is the last good copy")

    def _marked(self, session: Session) -> Session:
        """Tasks that an older version left unmarked, marked by what is kept of their runs; a summary of rehearsals goes."""
        unmarked = {task.run_id for task in session.tasks if task.rehearsed is msgspec.UNSET}
        rehearsed = {run_id for run_id in unmarked if was_rehearsed(self._store, run_id)}
        tasks = tuple(
            msgspec.structs.replace(task, rehearsed=task.run_id in rehearsed) if task.run_id in unmarked else task
            for task in session.tasks
        )
        fresh = {task.run_id for task in tasks_after(session.tasks, session.summary.through)}
        summary = Summary() if rehearsed - fresh else session.summary
        return msgspec.structs.replace(session, tasks=tasks, summary=summary)

    def read(self, path: Path, role: str, lane: str) -> tuple[Session | None, str]:
        """The session in a file, or None and why it is none. Raises OSError, and PathRefused for a link: the commit would
        refuse it."""
        for place in (self._folder, path.parent, path):
            try:
                status = os.lstat(place)
            except FileNotFoundError:
                return Session(role, lane), ""
            if stat.S_ISLNK(status.st_mode):
                shown = place.relative_to(self._folder.parent).as_posix()
                raise PathRefused(
                    f"`{shown}` is a symbolic link, but memory must be in the home itself.",
                    reason="symlink",
                    fix="replace the link with the folder or file itself",
                    path=shown,
                )
        if not stat.S_ISREG(status.st_mode):  # a folder or a pipe: the commit could not replace it
            return None, _NO_FILE
        try:
            return decode_session(session_bytes(path), role, lane)
        except FileNotFoundError:
            return Session(role, lane), ""

    def path(self, role: str, lane: str = "main") -> Path:
        return self._folder / session_name(role, lane)

    def copy(self, role: str, lane: str = "main") -> bytes | None:
        return kept_data(self._store, COPIES, session_name(role, lane))

    def _from_copy(self, path: Path, role: str, lane: str, reason: str) -> LoadedSession:
        # What was set aside before stays.
        names = (
            path.with_name(f"{path.name}.damaged{f'-{number}' if number > 1 else ''}") for number in range(1, 1_000)
        )
        aside = next((name for name in names if not name.exists()), path.with_name(f"{path.name}.damaged"))
        with as_storage_failed(f"Cannot set {path} aside"):
            os.rename(path, aside)
        said = f"{path.name} was damaged ({reason}) and is now {aside.name}"
        data = self.copy(role, lane)
        if data is None:
            return LoadedSession(Session(role, lane), f"{said}; there is no copy, so {role} starts without memory")
        session, copy_reason = decode_session(data, role, lane)
        if session is None:
            return LoadedSession(
                Session(role, lane), f"{said}; so was its copy ({copy_reason}), and {role} starts without memory"
            )
        write_atomic(path, data, mode=0o644)
        return LoadedSession(session, f"{said}; the last good copy was restored")

    def outputs(self, session: Session, lived: str = "") -> list[Output]:
        """The files that make `session` the agent's memory. In the archive the page of the run `lived` is written anew,
        others where there is none."""
        session = sanitised(session)
        kept: list[RememberedTask] = []
        counts: Counter[object] = Counter()
        for task in reversed(session.tasks):
            counts[task.rehearsed] += 1
            if counts[task.rehearsed] <= KEPT_TASKS:
                kept.append(task)
        newest = msgspec.structs.replace(session, tasks=tuple(reversed(kept)))
        output = Output(f"{self._top}{session_name(session.role, session.lane)}", encode_session(newest))
        archive = f"{self._folder}/{_archive(session)}"  # no Path for each task: every run looks at them all
        pages = [
            replace(self._archived(session, task, task.run_id), is_copy=task in kept)
            for task in session.tasks
            if task.run_id == lived or not _is_there(f"{archive}/{task.run_id}.md")
        ]
        return [output, *pages]

    def copies(self, outputs: Iterable[Output]) -> tuple[StoreEntry, ...]:
        return tuple(
            StoreEntry(COPIES, output.path.removeprefix(self._top), output.data)
            for output in outputs
            if output.path.startswith(self._top) and output.path.endswith("_session.json")
        )

    def replaced(self, before: Session, after: Session, run_id: str) -> list[Output]:
        """The files that put `after` in the place of `before`. No page of the archive is overwritten: what a person
        wrote goes there under a name of its own (`run_id` is the change's)."""
        session_file, *_ = self.outputs(after)
        pages = [replace(page, is_copy=False) for page in self.outputs(before)[1:]]
        known = {task.run_id: task for task in before.tasks}
        for task in after.tasks:
            if known.get(task.run_id) != task:
                words = msgspec.structs.replace(task, messages=())  # which stand on the page of its run
                pages.append(self._archived(after, words, f"{task.run_id}.{run_id}"))
        if before.summary.text and before.summary != after.summary:
            through, text = before.summary.through, before.summary.text
            page = RememberedTask(through, "Summary of older tasks", "noted", "", text, rehearsed=False)
            pages.append(self._archived(before, page, f"summary.{run_id}"))
        return [session_file, *pages]

    def _archived(self, session: Session, task: RememberedTask, stem: str) -> Output:
        head = json.dumps(task.title, ensure_ascii=False)
        lines = ["---", f"role: {session.role}", f"lane: {session.lane}", f"run: {task.run_id}", f"task: {head}"]
        lines += [f"status: {task.status}", f"finished: {task.finished}"]
        lines += [f"rehearsed: {'yes' if task.rehearsed else 'no'}", "---", ""]
        for message in task.messages:
            speaker = session.role if message.role == "model" else "ORCHESTRATOR"
            lines += [f"## {speaker}", "", inert(clean(message.text)), ""]
        if not any(message.text.startswith(task.answer) for message in task.messages):
            lines += ["## REMEMBERED ANSWER", "", inert(clean(task.answer)), ""]
        return Output(f"{self._top}{_archive(session)}/{stem}.md", "\n".join(lines).encode())


def _archive(session: Session) -> str:
    return f"archive/{session.lane}/{session.role.lower()}"


def _is_there(page: str) -> bool:
    """False for an empty page, too: what a power cut leaves of one that was not synced."""
    try:
        return os.stat(page).st_size > 0
    except FileNotFoundError:
        return False


def was_rehearsed(store: Looking, run_id: str) -> bool:
    """Tells whether a run's record names the model of a rehearsal. False where there is no record. Raises StorageFailed."""
    receipt = Receipts(store).read(run_id)
    return receipt is not None and is_rehearsal(receipt.model)
