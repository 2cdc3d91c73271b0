"""The memory of an agent across tasks (Protocol 94): its session file, the digest a prompt carries, the archive.

`session_states/<role>_session.json` holds the newest tasks with this agent's messages, in our own neutral form. Every
task lies as Markdown under `session_states/archive/<lane>/<role>/`, too, where QUERY_CORTEX finds its words. Loading makes
no model call. A damaged file is set aside and the last good copy takes its place; that is said, never fatal. A task knows
whether it was rehearsed: a language model is never told of one. This does not decide what is worth remembering.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from council.engine.commit import Output, StoreEntry
from council.engine.outputs import kept_data
from council.engine.receipts import Receipts
from council.errors import PathRefused
from council.ids import sha256_hex
from council.llm.base import is_rehearsal
from council.safety.untrusted import clean, inert, plain_line, whole_marks
from council.storage.files import as_storage_failed, read_fd, write_atomic
from council.storage.reader import Looking

SCHEMA = "council.session/1"
SESSION_ENDING = "_session.json"
COPIES = "memory"  # whose kept data the last good copies are
# What was asked once is no example to follow.
_REQUEST = re.compile(r"\[quoted-request[^\]\n]{0,600}\]?", re.IGNORECASE)
KEPT_TASKS = 20  # of each kind, so that rehearsals displace nothing; with all messages, in the session file
EXCERPT_CHARS = 600
DIGEST_TOKENS = 1_000
SUMMARISE_TASKS = 4  # at once, no fewer: a summary is a call
_UNSUMMARISED_TASKS = 2  # the newest ones stand for themselves
SUMMARY_TOKENS = 300
_TITLE_TOKENS, _ANSWER_TOKENS, _BEGINNING_TOKENS = 41, 200, 25  # so that all tasks of no summary fit beside it
MAX_SESSION_BYTES = 64 << 20
_NO_FILE = "it is not a regular file"


class MemoryMessage(msgspec.Struct, frozen=True):
    role: Literal["user", "model"]
    text: str


class RememberedTask(msgspec.Struct, frozen=True):
    """One task as this agent lived it. `answer` is the beginning of the council's answer. `rehearsed`: no language model
    stood behind some of its words; unset in files of older versions, which did not note it."""

    run_id: str
    title: str
    status: str
    finished: str
    answer: str
    messages: tuple[MemoryMessage, ...] = ()
    rehearsed: bool | msgspec.UnsetType = msgspec.UNSET


class Summary(msgspec.Struct, frozen=True):
    """Older tasks in short. `through` is the newest of them, `tried` the newest task when the last summary was tried,
    made or not. Both are run ids, empty before the first."""

    text: str = ""
    through: str = ""
    tried: str = ""


class Session(msgspec.Struct, frozen=True):
    """An agent's memory in one lane, oldest task first."""

    role: str
    lane: str = "main"
    tasks: tuple[RememberedTask, ...] = ()
    summary: Summary = Summary()


@dataclass(frozen=True)
class LoadedSession:
    """`damage` says what was wrong with the file, empty when nothing was."""

    session: Session
    damage: str = ""


class Memory:
    """The session files of a home."""

    def __init__(self, session_states: Path, store: Looking) -> None:
        """`store` keeps the last good copy of each session file, out of the way of editors."""
        self._folder = session_states
        self._store = store

    def load(self, role: str, lane: str = "main") -> LoadedSession:
        """The agent's memory; empty when there is no file. A damaged file becomes `….damaged`. Raises StorageFailed,
        PathRefused."""
        path = self.path(role, lane)
        try:
            session, reason = self._read(path, role, lane)
        except OSError as error:
            damage = f"{path.name} cannot be read ({error.strerror}); the agent starts without memory"
            return LoadedSession(Session(role, lane), damage)
        loaded = LoadedSession(session) if session else self._from_copy(path, role, lane, reason)
        return replace(loaded, session=self._marked(loaded.session))

    def look(self, role: str, lane: str = "main") -> LoadedSession:
        """Loads without changing anything, for those who only show. A damaged file is said to be so."""
        path = self.path(role, lane)
        try:
            session, reason = self._read(path, role, lane)
            damage = f"is damaged ({reason})" if reason != _NO_FILE else _NO_FILE.removeprefix("it ")
        except OSError as error:
            session, damage = None, f"cannot be read ({error.strerror})"
        if session is None:
            return LoadedSession(Session(role, lane), f"{path.name} {damage}")
        return LoadedSession(self._marked(session))

    def _marked(self, session: Session) -> Session:
        """Tasks that an older version left unmarked, marked by what is kept of their runs. A summary goes that it made of
        rehearsals, too. Raises StorageFailed."""
        unmarked = {task.run_id for task in session.tasks if task.rehearsed is msgspec.UNSET}
        rehearsed = {run_id for run_id in unmarked if was_rehearsed(self._store, run_id)}
        tasks = tuple(
            msgspec.structs.replace(task, rehearsed=task.run_id in rehearsed) if task.run_id in unmarked else task
            for task in session.tasks
        )
        fresh = {task.run_id for task in _after(session.tasks, session.summary.through)}
        summary = Summary() if rehearsed - fresh else session.summary
        return msgspec.structs.replace(session, tasks=tasks, summary=summary)

    def _read(self, path: Path, role: str, lane: str) -> tuple[Session | None, str]:
        """The session, empty when there is no file, or None and why a file is none. Raises OSError, and PathRefused for
        what leads through a link: the commit would refuse it, too."""
        for place in (self._folder, path.parent, path):
            try:
                status = os.lstat(place)
            except FileNotFoundError:
                return Session(role, lane), ""
            if stat.S_ISLNK(status.st_mode):
                shown = _relative(place, self._folder.parent)
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
        """The last good copy of a session file. Raises StorageFailed."""
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

    def outputs(self, session: Session, home: Path, lived: str = "") -> list[Output]:
        """The files that make `session` the agent's memory, to be committed with the run `lived`. Its page in the archive is
        written anew; the others are written where there is none yet, as after an older version."""
        session = sanitised(session)
        kept: list[RememberedTask] = []
        counts: Counter[object] = Counter()
        for task in reversed(session.tasks):
            counts[task.rehearsed] += 1
            if counts[task.rehearsed] <= KEPT_TASKS:
                kept.append(task)
        newest = msgspec.structs.replace(session, tasks=tuple(reversed(kept)))
        output = Output(_relative(self.path(session.role, session.lane), home), encode_session(newest))
        folder = f"{self._archive(session)}{os.sep}"  # no Path for each task: every run looks at them all
        pages = [
            replace(self._archived(session, task, task.run_id, home), is_copy=task in kept)
            for task in session.tasks
            if task.run_id == lived or not _is_there(f"{folder}{task.run_id}.md")
        ]
        return [output, *pages]

    def copies(self, outputs: Iterable[Output]) -> tuple[StoreEntry, ...]:
        """The last good copies of the session files among the files of a commit."""
        top = f"{self._folder.name}/"
        return tuple(
            StoreEntry(COPIES, output.path.removeprefix(top), output.data)
            for output in outputs
            if output.path.startswith(top) and output.path.endswith("_session.json")
        )

    def replaced(self, before: Session, after: Session, run_id: str, home: Path) -> list[Output]:
        """The files that put `after` in the place of `before`. What a person wrote goes to the archive, too, under a name of its
        own (`run_id` is the change's). So no page there is ever overwritten, and what was said stays."""
        session_file, *_ = self.outputs(after, home)
        pages = [replace(page, is_copy=False) for page in self.outputs(before, home)[1:]]
        known = {task.run_id: task for task in before.tasks}
        for task in after.tasks:
            if known.get(task.run_id) != task:
                words = msgspec.structs.replace(task, messages=())  # which stand on the page of its run
                pages.append(self._archived(after, words, f"{task.run_id}.{run_id}", home))
        if before.summary.text and before.summary != after.summary:
            through, text = before.summary.through, before.summary.text
            page = RememberedTask(through, "Summary of older tasks", "noted", "", text, rehearsed=False)
            pages.append(self._archived(before, page, f"summary.{run_id}", home))
        return [session_file, *pages]

    def _archived(self, session: Session, task: RememberedTask, stem: str, home: Path) -> Output:
        head = json.dumps(task.title, ensure_ascii=False)
        lines = ["---", f"role: {session.role}", f"lane: {session.lane}", f"run: {task.run_id}", f"task: {head}"]
        lines += [f"status: {task.status}", f"finished: {task.finished}"]
        lines += [f"rehearsed: {'yes' if task.rehearsed else 'no'}", "---", ""]
        for message in task.messages:
            speaker = session.role if message.role == "model" else "ORCHESTRATOR"
            lines += [f"## {speaker}", "", inert(clean(message.text)), ""]
        if not any(message.text.startswith(task.answer) for message in task.messages):
            lines += ["## REMEMBERED ANSWER", "", inert(clean(task.answer)), ""]
        return Output(_relative(self._archive(session) / f"{stem}.md", home), "\n".join(lines).encode())

    def _archive(self, session: Session) -> Path:
        return self._folder.joinpath("archive", session.lane, session.role.lower())


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


def without_rehearsals(session: Session) -> Session:
    """The memory as a language model may be told of it."""
    return msgspec.structs.replace(session, tasks=tuple(task for task in session.tasks if not task.rehearsed))


def session_name(role: str, lane: str) -> str:
    """Relative to `session_states/`: Protocol 94's explicit name for lane `main`."""
    name = f"{role.lower()}{SESSION_ENDING}"
    return name if lane == "main" else f"{lane}/{name}"


class _SessionFile(Session, frozen=True, forbid_unknown_fields=True, kw_only=True):
    schema: str
    sha256: str


class _Schema(msgspec.Struct):
    schema: str = ""


def encode_session(session: Session) -> bytes:
    file = _SessionFile(
        role=session.role,
        lane=session.lane,
        tasks=session.tasks,
        summary=session.summary,
        schema=SCHEMA,
        sha256=_checksum(session),
    )
    return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"


def _checksum(session: Session) -> str:
    """SHA-256 of the schema and the session in canonical JSON (sorted keys, no white space, UTF-8)."""
    body: dict[str, object] = {"schema": SCHEMA, "role": session.role, "lane": session.lane, "tasks": session.tasks}
    if session.summary != Summary():  # files from before there were summaries have none to check
        body["summary"] = session.summary
    return sha256_hex(msgspec.json.encode(body, order="sorted"))


def session_bytes(path: Path) -> bytes:
    """The bytes of a session file, cut off where `decode_session` refuses it as too large. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return read_fd(fd, MAX_SESSION_BYTES + 1)
    finally:
        os.close(fd)


def decode_session(data: bytes, role: str, lane: str) -> tuple[Session | None, str]:
    """The session in `data`, or None and the reason why not."""
    if len(data) > MAX_SESSION_BYTES:
        return None, f"larger than {MAX_SESSION_BYTES} bytes"
    try:
        file = msgspec.json.decode(data, type=_SessionFile)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        try:
            schema = msgspec.json.decode(data, type=_Schema).schema
        except msgspec.ValidationError:
            schema = ""
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None, "not JSON"
        return None, str(error) if schema == SCHEMA else f"not in the format {SCHEMA}"
    if file.schema != SCHEMA:
        return None, f"not in the format {SCHEMA}"
    session = Session(file.role, file.lane, file.tasks, file.summary)
    if file.sha256 != _checksum(session):
        return None, "its checksum does not match"
    if (session.role, session.lane) != (role, lane):
        return None, f"it belongs to {session.role} in lane {session.lane}"
    return session, ""


def sanitised(session: Session) -> Session:
    """Cleans a text before it is written, for what is remembered today is tomorrow's prompt. Nothing invisible stays, and
    no request that counts."""

    def plain(text: str) -> str:
        return inert(clean(text))

    texts = [session.summary.text]
    for task in session.tasks:
        texts += [task.title, task.answer, *[message.text for message in task.messages]]
    whole = "\n".join(texts)
    if plain(whole) == whole:  # what was remembered before is: all is looked at in one go
        return session
    tasks = tuple(
        msgspec.structs.replace(
            task,
            title=plain(task.title),
            answer=plain(task.answer),
            messages=tuple(MemoryMessage(message.role, plain(message.text)) for message in task.messages),
        )
        for task in session.tasks
    )
    summary = msgspec.structs.replace(session.summary, text=plain(session.summary.text))
    return msgspec.structs.replace(session, tasks=tasks, summary=summary)


def _without_requests(text: str) -> str:
    return _REQUEST.sub("(a request)", inert(clean(text)))


def excerpt(answer: str) -> str:
    """The beginning of an answer, cut between words, the cut marked."""
    if len(answer) <= EXCERPT_CHARS:
        return answer
    return f"{whole_marks(answer[: EXCERPT_CHARS - 2].rsplit(' ', 1)[0])} …"


def estimated_tokens(text: str) -> int:
    """Counts at least as many tokens as a model does, of whatever script. Three ASCII characters make a token (prose has
    four to five). Any other character makes one, and one beyond the basic plane (emoji, rare signs) three."""
    if text.isascii():
        return -(-len(text) // 3)
    plain = len(text.encode("ascii", "ignore"))
    rare = len(text.encode("utf-16-le", "surrogatepass")) // 2 - len(text)  # such a character is a pair there
    return math.ceil(plain / 3) + (len(text) - plain) + 2 * rare


def digest(session: Session) -> str:
    """The memory as a prompt carries it, within DIGEST_TOKENS; empty when there is nothing. The summary of older tasks
    comes first, then every task that is not in it, oldest first. The newest tasks stand with the beginning of their
    answers, those before with less of it, at the least with their titles. It holds no request."""
    tasks = tuple((task.title, task.status, task.answer) for task in _fresh(session))
    return _digest(session.summary.text, tasks)


@lru_cache(maxsize=1)  # the members of a council remember the same
def _digest(summary: str, tasks: tuple[tuple[str, str, str], ...]) -> str:
    summary = short_summary(summary)
    head = f"- Older tasks, in short: {summary}\n" if summary else ""
    newest_first = [_entries(*task) for task in reversed(tasks)]
    left = DIGEST_TOKENS - estimated_tokens(head)
    chosen: list[str] = []
    for size in range(_SIZES):  # all with their titles before any with more
        for at, entries in enumerate(newest_first):
            before = chosen[at] if at < len(chosen) else ""
            cost = estimated_tokens(entries[size]) - estimated_tokens(before)
            if cost > left or at > len(chosen):
                break
            left -= cost
            chosen[at : at + 1] = [entries[size]]
    return head + "".join(reversed(chosen))


_SIZES = 3


def _entries(title: str, status: str, answer: str) -> tuple[str, ...]:
    """A task in a digest: its title; with the first words of its answer; with as much of it as is remembered. Each of them
    is the beginning of the next, so that `forget` finds all three."""
    answer = _cut(_without_requests(answer)[:EXCERPT_CHARS].strip(), _ANSWER_TOKENS)
    title = _cut(plain_line(_without_requests(title), 200), _TITLE_TOKENS)
    head = f"- Task: {title} ({status})\n"
    said = [cut.replace("\n", "\n  ") for cut in (_cut(answer, _BEGINNING_TOKENS), answer)]
    return head, *(f"{head}  The council answered: {each}\n" for each in said)


def _cut(text: str, max_tokens: int) -> str:
    """The text, or its beginning with the cut marked, between words where there is a space to cut at."""
    if estimated_tokens(text) <= max_tokens:
        return text
    kept = max_tokens * 3  # characters, if all are ASCII
    while estimated_tokens(text[:kept]) >= max_tokens:  # one is for the mark
        kept -= max(1, (estimated_tokens(text[:kept]) - max_tokens) // 3)
    words = text[:kept].rsplit(None, 1)[0]
    return f"{whole_marks(words if len(words) > kept // 2 else text[:kept])} …"


def short_summary(text: str) -> str:
    """A summary as it is kept and shown: one paragraph without requests, cut after a sentence where it is too long."""
    line = " ".join(_without_requests(text).split())
    cut = _cut(line, SUMMARY_TOKENS)
    if cut == line:
        return line
    end = max(cut.rfind(mark) for mark in (". ", "! ", "? ", "。", "！", "？"))
    return cut[: end + 1] if end > len(cut) // 2 else cut


def tasks_to_summarise(session: Session) -> tuple[RememberedTask, ...]:
    """The tasks that a summary is to be made of now, oldest first. None unless there are enough, and enough tasks have
    passed since the last try."""
    fresh = _fresh(session)
    since = _after(session.tasks, session.summary.tried)
    if len(fresh) < SUMMARISE_TASKS + _UNSUMMARISED_TASKS or len(since) < SUMMARISE_TASKS:
        return ()
    return fresh[:-_UNSUMMARISED_TASKS]


def _fresh(session: Session) -> tuple[RememberedTask, ...]:
    """The tasks that no summary holds: summaries hold no rehearsal."""
    begin = len(session.tasks) - len(_after(session.tasks, session.summary.through))
    return tuple(task for at, task in enumerate(session.tasks) if at >= begin or task.rehearsed)


def _after(tasks: tuple[RememberedTask, ...], run_id: str) -> tuple[RememberedTask, ...]:
    """The tasks behind that of `run_id`; all when it is none of them (any more)."""
    ids = [task.run_id for task in tasks]
    return tasks[ids.index(run_id) + 1 :] if run_id in ids else tasks


def _relative(path: Path, home: Path) -> str:
    return path.relative_to(home).as_posix()
