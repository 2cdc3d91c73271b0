"""The journal of one run: an append-only file of checksummed JSON lines, one sync per step, which goes on while the next step
is prepared.

A line is `{"c":"<crc32, 8 hex>","r":<record>}`; behind the last one there may be room, empty lines. What was being written
when the process or the power went (a torn last line, pages missing since the last sync) is cut off on load; any other
line that does not verify is JournalDamaged: nothing is guessed. A result larger than MAX_INLINE_BYTES lies beside it in
`blobs/`, named by its hash.

Three kinds of step: `step` (a result, recorded once), `effect` (a change whose own transaction keeps the record, which
on resume is the truth), `ephemeral` (only a small typed outcome is kept: for what must not be written down).
"""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from council.engine.auditing import AUDIT_HEAD
from council.engine.journal_file import UNWRITTEN, JournalFile, torn_at
from council.engine.records import (
    Committed,
    Ended,
    Record,
    Reopened,
    Retried,
    RunHeader,
    StepBegun,
    StepDone,
    Waiting,
)
from council.errors import Drift, JournalDamaged, StorageFailed
from council.ids import sha256_hex
from council.redaction import Redactor
from council.storage.files import fsync_dir, write_atomic

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)
ATTEMPT = "attempt"  # such a `begin` is no step: an execution began
HANDBACK = "handback"  # … or ended because the process did
JOURNAL = "journal.jsonl"  # its name in the run's folder
FINISH = "finish"  # the step that records how the work ended
ENDING = (FINISH, AUDIT_HEAD)  # what a run records of its end, and again when it goes on after all
MAX_INLINE_BYTES = 256 << 10  # a line beyond this makes every later load slow
MAX_EPHEMERAL_BYTES = 1 << 10  # an outcome, not a text
MAX_RETRY_CHARS = 300  # of a provider's words about one failed try
_MOST_LOOKS = 20  # at a journal that is written to meanwhile
_UNSYNCED = (StepBegun, Retried, Ended)
_START = b'{"c":"'
_PREFIX = len('{"c":"00000000","r":')


_in_step: ContextVar[str] = ContextVar("step", default="")  # what the code that runs now is a step of; per task


class Handback(BaseException):
    """The process is about to stop: the run goes back to the queue at a step boundary. Not an Exception: no `except
    Exception` and no retry may swallow it."""


class Exhausted(BaseException):
    """The journal is closed (its end is recorded) and a step was asked for that it does not hold."""


class EffectStore(Protocol):
    """Where an effect's own transaction keeps (run_id, step) under a unique key, with the encoded result."""

    def recorded(self, run_id: str, step: str) -> bytes | None:
        """What the committed transaction stored for this step, None when there is none."""


class Journal(Protocol):
    """The seam: a recorded step is never run again, and on the disk before another one begins."""

    async def step(self, name: str, fn: Callable[[], Awaitable[T]], *, type: type[T], request: str = "") -> T: ...

    async def effect(
        self,
        name: str,
        store: EffectStore,
        fn: Callable[[str, str, Callable[[T], bytes]], Awaitable[T]],
        *,
        type: type[T],
        request: str = "",
    ) -> T: ...

    async def ephemeral(self, name: str, fn: Callable[[], Awaitable[T]], *, type: type[T], request: str = "") -> T: ...


def encode_line(record: Record) -> bytes:
    payload = _encoder.encode(record)
    return b'{"c":"%08x","r":%b}\n' % (zlib.crc32(payload), payload)


def decode_line(line: bytes) -> Record | None:
    """The record in one line without its newline, None if it does not verify."""
    line = line.rstrip(b" ")  # record 0 of older journals was filled up with them
    payload = line[_PREFIX:-1]
    try:
        if line != b'{"c":"%08x","r":%b}' % (zlib.crc32(payload), payload):
            return None
        record: Record = _decoder.decode(payload)
        return record
    except (ValueError, msgspec.MsgspecError):
        return None


@dataclass(frozen=True)
class RecordedStep:
    """A step as it was recorded: what was asked, as a hash, and the answer as JSON."""

    name: str
    request: str
    answer: bytes


class FileJournal:
    """One run's records, in memory and on disk."""

    def __init__(self, path: Path, records: list[Record], file: JournalFile | None) -> None:
        """`file` None: only to be read."""
        header = records[0]
        if not isinstance(header, RunHeader):
            raise JournalDamaged(f"{path}: the first record is not a run header.", fix="move the run's folder away")
        self.path = path
        self.header = header
        self._file = file
        self._steps: dict[str, StepDone] = {}
        # Request, answer and its JSON of a step that is not on the disk (yet: it may have refused).
        self._unsaved: dict[str, tuple[str, Any, bytes]] = {}
        self.committed: Committed | None = None
        self.ended: Ended | None = None
        self.waits: list[Waiting] = []  # since the last step
        self.attempts = 0
        self.fruitless_attempts = 0  # the last ones in a row that recorded nothing, the present one included
        self.retries = 0
        self.reopened_by: str | None = None
        self.accepts_drift = False
        self.closed = False  # True: only recorded steps answer
        self.sealed = False  # True: it is damaged, and left as it is
        self.stopping: Callable[[], bool] = lambda: False
        self.now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
        self.redactor = Redactor()  # what is recorded, and what a step returns, holds no secret that it knows
        for record in records[1:]:
            self._remember(record)

    @classmethod
    def begin(cls, path: Path, header: RunHeader, file: JournalFile) -> FileJournal:
        """A new journal in `file`, which has no lines yet and will be at `path`; record 0 is on disk when this returns.
        Raises StorageFailed."""
        file.path = path
        journal = cls(path, [header], file)
        try:
            journal._write(encode_line(header), sync=True)
        except BaseException:
            journal.close()
            raise
        return journal

    @classmethod
    def create(cls, path: Path, header: RunHeader) -> FileJournal:
        """As `begin`, in a file that must not exist yet."""
        try:
            file = JournalFile.create(path)
        except OSError as error:
            raise _failed(path, error) from error
        return cls.begin(path, header, file)

    @classmethod
    def load(cls, path: Path) -> FileJournal:
        """An existing journal to go on with; nothing is written yet, a torn tail not seen. It rests. Raises JournalDamaged
        or StorageFailed."""
        try:
            records, good_bytes, size = read_records(path, path.read_bytes())
        except OSError as error:
            raise _failed(path, error) from error
        return cls(path, records, JournalFile.found(path, size_bytes=size, lines_bytes=good_bytes))

    @classmethod
    def read(cls, path: Path) -> FileJournal:
        """An existing journal to look at, also while it is written to: nothing is written, a torn tail is not seen. Raises
        as `load`."""
        try:
            found = look_at(path)
        except OSError as error:
            raise _failed(path, error) from error
        return cls(path, found.whole(path), None)

    @classmethod
    def sealed_as(cls, path: Path, committed: Committed) -> FileJournal:
        """A damaged journal as far as it verifies, of a run that ended as `committed` says. The file stays as it is, and
        nothing more is written to it. Raises JournalDamaged when not even record 0 verifies, StorageFailed."""
        try:
            good = _good_prefix(path, path.read_bytes())
        except OSError as error:
            raise _failed(path, error) from error
        journal = cls(path, read_records(path, good)[0], None)
        journal.committed, journal.sealed = committed, True
        return journal

    @classmethod
    def salvage(cls, path: Path, last: Record) -> FileJournal:
        """The journal as far as it verifies and then `last`, in the place of a damaged one, which becomes `<name>.damaged`.
        Raises JournalDamaged when not even record 0 verifies, StorageFailed."""
        try:
            data = path.read_bytes()
            good = _good_prefix(path, data)
            with contextlib.suppress(FileExistsError):  # of a salvage that was cut off
                os.link(path, path.with_name(f"{path.name}.damaged"))
        except OSError as error:
            raise _failed(path, error) from error
        write_atomic(path, good + encode_line(last))
        return cls.load(path)

    def steps(self) -> list[RecordedStep]:
        """All recorded steps, in their order."""
        return [RecordedStep(step.name, step.request, self._encoded(step)) for step in self._steps.values()]

    async def step(
        self,
        name: str,
        fn: Callable[[], Awaitable[T]],
        *,
        type: type[T],
        request: str = "",
        fn_secures: bool = False,
    ) -> T:
        """The recorded result of step `name`, else what `fn` returns, without secrets, recorded before this returns.

        The record is on its way to the disk then, and there before another `fn` begins and before a wait, a commit or a
        handback is recorded: the caller may compute meanwhile. What others would build on comes after `secure`; with
        `fn_secures` it is `fn` that calls it, right before it changes or asks anything.

        `name` is unique in its run and stable across restarts; `request` is the hash of what is asked. What `fn`
        raises is not recorded: the step runs again on resume. Raises StorageFailed when a record cannot be written (then
        the answer is kept in memory, and the next try of the same step, or of what follows it, writes it without asking
        again), Drift when the recorded step was asked something else.
        """
        known = self._steps.get(name)
        if known is not None:
            self._require_same(known, request)
            return self._result(known, type)
        if name not in self._unsaved or self._unsaved[name][0] != request:
            self._begin(name)
            if not fn_secures:
                self.secure()
            inside = _in_step.set(name)
            try:
                self._unsaved[name] = (request, *self.redactor.encoded(await fn(), type))
            finally:
                _in_step.reset(inside)
        answer: T
        _, answer, encoded = self._unsaved[name]
        self._record(name, encoded, request, at_once=False)
        del self._unsaved[name]
        return answer

    async def effect(
        self,
        name: str,
        store: EffectStore,
        fn: Callable[[str, str, Callable[[T], bytes]], Awaitable[T]],
        *,
        type: type[T],
        request: str = "",
    ) -> T:
        """A step that changes something in `store`, once, whatever dies when.

        `fn(run_id, name, encode)` makes the change and, in the same transaction, stores `encode(result)` under the
        unique key (run_id, name). A process that died after that transaction and before this journal's record finds
        the row on resume and does not change anything again.
        """
        known = self._steps.get(name)
        if known is not None:
            self._require_same(known, request)
            return self._result(known, type)
        row = store.recorded(self.header.run_id, name)
        if row is not None:
            return self.put(name, msgspec.json.decode(row, type=type), type=type, request=request)
        self._begin(name)
        self.secure()

        def encode(result: T) -> bytes:
            return self.redactor.encoded(result, type)[1]

        return self.put(name, await fn(self.header.run_id, name, encode), type=type, request=request)

    async def ephemeral(self, name: str, fn: Callable[[], Awaitable[T]], *, type: type[T], request: str = "") -> T:
        """A step of which only its outcome is kept: `fn` returns a small typed value without prompt text, and that is
        what replay returns. Raises ValueError for an outcome beyond MAX_EPHEMERAL_BYTES."""

        async def small() -> T:
            outcome = await fn()
            if len(_encoder.encode(outcome)) > MAX_EPHEMERAL_BYTES:
                raise ValueError(f"the outcome of the ephemeral step {name} is larger than {MAX_EPHEMERAL_BYTES} bytes")
            return outcome

        return await self.step(name, small, type=type, request=request)

    def put(self, name: str, value: T, *, type: type[T], request: str = "") -> T:
        """The recorded result of `name`, else `value` without secrets, now recorded and synced: a step whose work is already
        done."""
        known = self._steps.get(name)
        if known is not None:
            return self._result(known, type)
        value, encoded = self.redactor.encoded(value, type)
        self._record(name, encoded, request, at_once=True)
        return value

    def _record(self, name: str, encoded: bytes, request: str, *, at_once: bool) -> None:
        """`encoded` holds no secret. `at_once`: it is on the disk when this returns."""
        if len(encoded) <= MAX_INLINE_BYTES:
            record = StepDone(name, request, msgspec.Raw(encoded), at=self.now_ms())
        else:
            record = StepDone(name, request, msgspec.Raw(b"null"), store_blob(self.path, encoded), self.now_ms())
        self._append(record, sync=True, wait=at_once)

    def ended_ms(self, name: str) -> int | None:
        """When a recorded step ended, in milliseconds since the epoch; None where an older version did not note it."""
        return self._steps[name].at or None

    def _require_same(self, known: StepDone, request: str) -> None:
        if known.request and known.request != request and not self.accepts_drift:
            raise Drift(
                f"step {known.name} was asked something else when it was recorded (persona, prompt or model changed).",
                fix=f"`council resume {self.header.run_id} --accept-drift` goes on all the same; or drop the command again",
                step=known.name,
            )

    def _begin(self, name: str) -> None:
        if self.closed:
            raise Exhausted(name)
        if self.stopping():
            raise Handback
        self._append(StepBegun(name, self.now_ms()), sync=False)

    def _result(self, record: StepDone, type: type[T]) -> T:
        return msgspec.json.decode(self._encoded(record), type=type)

    def _encoded(self, record: StepDone) -> bytes:
        return read_blob(self.path, record.blob) if record.blob else bytes(record.out)

    def attempt(self) -> int:
        """Notes that an execution begins; how many began so far, this one included. Not synced."""
        self._append(StepBegun(ATTEMPT, self.now_ms()), sync=False)
        return self.attempts

    def hand_back(self) -> None:
        """Notes that an execution ended because the process does: as an attempt it counts for nothing. Raises StorageFailed,
        also where an answer is not on the disk."""
        self._append(StepBegun(HANDBACK, self.now_ms()), sync=False)
        self.secure()

    def recorded(self, name: str) -> bool:
        return name in self._steps

    def value(self, name: str, type: type[T]) -> T | None:
        """The recorded result of a step, None when there is none."""
        known = self._steps.get(name)
        return None if known is None else self._result(known, type)

    @property
    def reopened(self) -> bool:
        """Whether the run had ended before, and was told to go on."""
        return self.reopened_by is not None

    @property
    def first_step(self) -> str:
        """The name of the first recorded step, `finish` when there is none."""
        return next(iter(self._steps), FINISH)

    @property
    def step_count(self) -> int:
        return len(self._steps)

    def retried(self, kind: str, error: str, attempt: int, wait_s: float) -> None:
        """Notes that a try of the call in the present step failed and comes again after `wait_s`. Not synced. Raises
        StorageFailed."""
        step = _in_step.get()
        self._append(Retried(step, self.now_ms(), attempt, wait_s, kind, error[:MAX_RETRY_CHARS]), sync=False)

    def wait(self, record: Waiting) -> None:
        self._append(record, sync=True)

    def commit(self, record: Committed) -> None:
        """The point of no return: from here the run only rolls forward. The size of the run's folder is taken next."""
        self._append(record, sync=True)
        if self._file is not None:
            self._file.give_back_room()

    def reopen(self, record: Reopened) -> None:
        """Lets an ended run go on: see `Reopened`."""
        self._append(record, sync=True)

    def end(self, record: Ended) -> None:
        """Once, however often the run is completed."""
        if not self.sealed and self.ended is None:
            self._append(record, sync=False)  # the receipt is the durable sign; this line only saves a look at it

    def secure(self) -> None:
        """All steps that are recorded are on the disk when this returns, for what is done next depends on them: also those of
        a process that was killed, which may not have synced its last one. Raises StorageFailed."""
        if self._file is not None:
            try:
                self._file.secure()
            except OSError as error:
                raise _failed(self.path, error) from error

    def rest(self) -> None:
        """Until the next record the journal holds no descriptor."""
        if self._file is not None:
            self._file.rest()

    def close(self) -> None:
        """Nothing more is written."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _append(self, record: Record, *, sync: bool, wait: bool = True) -> None:
        if not isinstance(record, StepBegun | StepDone):  # results were redacted before; a begun step holds no text
            record = self.redactor.redacted(record, Record)  # type: ignore[arg-type]
        self._write(encode_line(record), sync=sync, wait=wait)
        self._remember(record)

    def _remember(self, record: Record) -> None:
        if not isinstance(record, StepBegun | Retried) or (isinstance(record, StepBegun) and record.name == HANDBACK):
            self.fruitless_attempts = 0
        if isinstance(record, StepDone):
            self._steps[record.name] = record
            self.waits.clear()
        elif isinstance(record, StepBegun):
            self.attempts += record.name == ATTEMPT
            self.fruitless_attempts += record.name == ATTEMPT
        elif isinstance(record, Committed):
            self.committed = record
        elif isinstance(record, Ended):
            self.ended = record
        elif isinstance(record, Reopened):
            self.reopened_by, self.accepts_drift = record.by, self.accepts_drift or record.accept_drift
            self.committed = self.ended = None
            self.waits.clear()
            for step in ENDING:
                self._steps.pop(step, None)
            if record.retry_from:
                self.retries += 1
                self._drop_steps_from(record.retry_from)
        elif isinstance(record, Waiting):
            self.waits.append(record)

    def _drop_steps_from(self, first: str) -> None:
        names = list(self._steps)
        for name in names[names.index(first) :] if first in self._steps else ():
            del self._steps[name]

    def _write(self, line: bytes, *, sync: bool, wait: bool = True) -> None:
        if self._file is None:
            raise StorageFailed(f"{self.path} is closed.", fix="report it: a record came too late")
        try:
            self._file.append(line, sync=sync, wait=wait)
        except OSError as error:
            raise _failed(self.path, error) from error


@dataclass(frozen=True)
class Verified:
    """What the bytes of a journal say, up to the first line that does not verify."""

    records: list[Record]
    size: int  # of the records, in bytes
    lost_lines: int = 0  # all from that one on, unless it is a tail: see `_is_tail`

    def whole(self, path: Path) -> list[Record]:
        """The records. Raises JournalDamaged where some are lost, or there is none."""
        if self.lost_lines:
            raise JournalDamaged(
                f"{path}: record {len(self.records)} (byte {self.size}) does not verify.",
                fix="restore the file from a backup, or move the run's folder away to give the run up",
            )
        if not self.records:
            raise JournalDamaged(
                f"{path}: no record verifies.", fix="move the run's folder away; the command runs anew", records=0
            )
        return self.records


def verified(data: bytes) -> Verified:
    """The records in `data` up to the first that does not verify."""
    records: list[Record] = []
    position = 0
    while (end := data.find(b"\n", position)) >= 0:
        record = decode_line(data[position:end])
        if record is None:
            if _is_tail(data, position, end):
                break
            whole_lines = data[position:].split(b"\n")[:-1]
            return Verified(records, position, sum(1 for line in whole_lines if line.strip(UNWRITTEN)))
        records.append(record)
        position = end + 1
    return Verified(records, position)


def look_at(path: Path) -> Verified:
    """What a journal says that may be written to meanwhile. Raises OSError.

    A file is not read at one instant: lines may stand behind what was room when it was read. So what seems damaged is read
    again, until it stays as it is.
    """
    data = path.read_bytes()
    found = verified(data)
    for _ in range(_MOST_LOOKS):
        if not found.lost_lines or (again := path.read_bytes()) == data:
            break
        data, found = again, verified(again)
    return found


def read_records(path: Path, data: bytes) -> tuple[list[Record], int, int]:
    """The records in `data`, how many bytes of it verify, and its size. Raises JournalDamaged for a bad middle line."""
    found = verified(data)
    return found.whole(path), found.size, len(data)


def _is_tail(data: bytes, position: int, end: int) -> bool:
    """Whether the line from `position` to `end`, which does not verify, is what a kill or a power cut left behind the last
    sync: room follows it, or lines of which one at most was synced, and pages before them are missing."""
    later = [decode_line(line) for line in data[end:].strip(UNWRITTEN).split(b"\n") if line]
    joined = decode_line(data[max(position, data.rfind(_START, position, end)) : end])  # its own newline is damaged
    if not later and joined is None:
        return True
    synced = sum(record is not None and not isinstance(record, _UNSYNCED) for record in (joined, *later))
    return synced <= 1 and torn_at(data, position)


def read_header(path: Path) -> RunHeader:
    """Record 0, also of a journal that is damaged elsewhere. Raises JournalDamaged or StorageFailed."""
    try:
        with path.open("rb") as stream:
            header = decode_line(stream.readline().removesuffix(b"\n"))
    except OSError as error:
        raise _failed(path, error) from error
    if not isinstance(header, RunHeader):
        raise _headless(path)
    return header


def committed_in(path: Path) -> Committed | None:
    """The commit that ended the run, looked for line by line: also in a journal that is damaged elsewhere. None when there
    is none, or the run was reopened after it."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    found = None
    for line in data.split(b"\n"):
        record = decode_line(line)
        if isinstance(record, Committed):
            found = record
        elif isinstance(record, Reopened):
            found = None
    return found


def store_blob(journal: Path, encoded: bytes) -> str:
    """Puts a large result beside its journal, before the record that names it; its name. Raises StorageFailed."""
    digest = sha256_hex(encoded)
    folder = journal.parent / "blobs"
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise _failed(journal, error) from error
    write_atomic(folder / digest, encoded)
    fsync_dir(journal.parent)  # the folder's own name is on the disk, too
    return digest


def read_blob(journal: Path, name: str) -> bytes:
    """A large result. Raises JournalDamaged."""
    path = journal.parent / "blobs" / name
    try:
        encoded = path.read_bytes()
    except OSError as error:
        raise JournalDamaged(f"{path}: cannot be read ({error.strerror}).", fix="restore it from a backup") from None
    if sha256_hex(encoded) != name:
        raise JournalDamaged(f"{path}: does not match its name.", fix="restore it from a backup")
    return encoded


def _good_prefix(path: Path, data: bytes) -> bytes:
    position = 0
    while (end := data.find(b"\n", position)) >= 0 and decode_line(data[position:end]) is not None:
        position = end + 1
    if not position:
        raise _headless(path)
    return data[:position]


def _headless(path: Path) -> JournalDamaged:
    return JournalDamaged(f"{path}: record 0 does not verify.", fix="`council repair --set-aside` moves the run away")


def _failed(path: Path, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"cannot write {path.name} of run {path.parent.name}: {error.strerror}.",
        fix="make room on the disk and check the folder's permissions; the run goes on by itself",
        errno=error.errno,
    )
