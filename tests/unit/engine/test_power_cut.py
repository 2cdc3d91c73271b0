"""A power cut keeps every step whose sync came back, whatever of the rest had reached the disk, and invents none."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, product
from pathlib import Path

import msgspec
import pytest

from council.engine.journal import FileJournal, look_at, verified
from council.engine.journal_file import JournalFile
from council.engine.records import (
    EPOCH,
    Committed,
    Ended,
    FileIdentity,
    Record,
    RunHeader,
    StepDone,
    Waiting,
)
from council.errors import StorageFailed
from tests.late_syncs import sync_late

SECTOR = 512
PAGE = 4096


@pytest.fixture(autouse=True)
def small_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("council.engine.journal_file._ROOM_BYTES", 3000)


def header(title: str = "") -> RunHeader:
    return RunHeader(
        run_id="r1", epoch=EPOCH, created="2026-11-20T00:00:00Z", lane="main", type="deliberate", command={"a": 1},
        command_hash="h", file=FileIdentity("command.json", 1, 2, "s"), secret="00" * 32, title=title,
    )  # fmt: skip


class Out(msgspec.Struct, frozen=True):
    text: str


class Killed(BaseException):
    pass


class Disk:
    """What a journal's file was after each of its writes since the last sync that came back was begun, the state at that
    beginning first."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = path
        self.states = [path.read_bytes() if path.exists() else b""]
        self.at_sync: Callable[[], None] = lambda: None
        self._since = -1  # the state when a sync was begun in the background
        sync = os.fdatasync

        def began() -> None:
            self._since = len(self.states) - 1

        def synced(fd: int) -> None:
            since, self._since = self._since, -1
            self.at_sync()
            sync(fd)
            self.states = self.states[since:]

        sync_late(monkeypatch, began)

        monkeypatch.setattr(os, "pwrite", self._noted(os.pwrite))
        monkeypatch.setattr(os, "ftruncate", self._noted(os.ftruncate))
        monkeypatch.setattr(os, "fdatasync", synced)

    def _noted(self, change: Callable[..., object]) -> Callable[..., object]:
        def noted(*arguments: object) -> object:
            done = change(*arguments)
            self.states.append(self._path.read_bytes())
            return done

        return noted

    def left(self, unit: int, most: int = 400) -> Iterator[bytes]:
        """What a power cut may leave: of each sector or page any state, of the size too. All of that where it is not more
        than `most`, else all single units and stretches that are older or newer than the others, and some at random."""
        sizes = sorted({len(state) for state in self.states})
        units = -(-sizes[-1] // unit)
        choices = [list(dict.fromkeys(piece(state, at, unit) for state in self.states)) for at in range(units)]
        changed = [at for at, found in enumerate(choices) if len(found) > 1]
        count = 1
        for at in changed:
            count *= len(choices[at])
        for pieces in product(*choices) if count <= most else self._some(choices, changed, most):
            whole = b"".join(pieces)
            yield from (whole[:size] for size in sizes)

    def _some(self, choices: list[list[bytes]], changed: list[int], most: int) -> Iterator[list[bytes]]:
        for first, last in combinations([*changed, changed[-1] + 1], 2):
            for inside, outside in ((0, -1), (-1, 0)):
                yield [found[inside if first <= at < last else outside] for at, found in enumerate(choices)]
        chance = random.Random(len(changed))  # the same every time
        for _ in range(most):
            yield [chance.choice(found) for found in choices]


def piece(state: bytes, at: int, unit: int) -> bytes:
    """One unit of a file, zeros where it is shorter."""
    return state[at * unit : (at + 1) * unit].ljust(unit, b"\0")


def require(disk: Disk, unit: int, promised: dict[str, str], asked: dict[str, str], most: int = 400) -> None:
    """Every outcome of a power cut now loads, with each step that was promised, and none that was not asked for."""
    for data in disk.left(unit, most):
        found = verified(data)
        assert not found.lost_lines, (unit, data)
        held = {record.name: text_of(record) for record in found.records if isinstance(record, StepDone)}
        assert promised.items() <= held.items() <= asked.items(), (unit, data)


def text_of(record: StepDone) -> str:
    return msgspec.json.decode(record.out, type=Out).text


def cut_at_each_write(disk: Disk, promised: dict[str, str], asked: dict[str, str]) -> None:
    def at_sync() -> None:
        for unit in (SECTOR, PAGE):
            require(disk, unit, promised, asked)

    disk.at_sync = at_sync


async def three_at_once(
    journal: FileJournal, turn: int, size: int, promised: dict[str, str], asked: dict[str, str]
) -> None:
    """Three steps that are begun before one of them is done, one of them at its second try."""
    turns = [asyncio.Event() for _ in range(4)]
    turns[0].set()

    async def one(number: int) -> None:
        name = f"{turn}/{number}"
        asked[name] = f"{name} " + "x" * (size * (number + 1) % 5000)

        async def call() -> Out:
            if number == 1:
                journal.retried("overload", "busy " * 20, 1, 0.5)
            await turns[number].wait()
            return Out(asked[name])

        await journal.step(name, call, type=Out)
        done.append(name)
        promised.update((earlier, asked[earlier]) for earlier in done[:-1])
        turns[number + 1].set()

    done: list[str] = []
    await asyncio.gather(one(0), one(1), one(2))
    if turn % 2:
        journal.secure()
        promised.update((name, asked[name]) for name in done)


@pytest.mark.parametrize("size", [3, 480, 1500, 2600, 4091])
async def test_cut_at_any_sync_the_journal_of_concurrent_steps_loads_with_all_that_was_synced(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j"
    file = JournalFile.create(path)
    file.make_room()
    promised: dict[str, str] = {}
    asked: dict[str, str] = {}
    journal = FileJournal.begin(path, header(), file)
    disk = Disk(path, monkeypatch)
    cut_at_each_write(disk, promised, asked)
    for turn in range(4):
        journal.attempt()
        await three_at_once(journal, turn, size, promised, asked)
        journal.wait(Waiting("provider", "2026-11-20T00:00:00Z", 1.0, "busy"))
        promised.update(asked)
        if turn == 2:
            journal.hand_back()
            journal.close()
            journal = FileJournal.load(path)
    journal.commit(Committed("succeeded", (), msgspec.Raw(b"{}")))
    journal.end(Ended("succeeded"))
    journal.close()
    require(disk, SECTOR, promised, asked)
    assert len(promised) == 12


def test_a_hole_may_end_anywhere_in_a_line_and_begin_anywhere_in_a_sector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where only the newline of a line, or none of its bytes but the first, had reached the disk."""
    path = tmp_path / "j"
    promised: dict[str, str] = {}
    texts = {"a": "a" * 300, "b": "b" * 700}
    for shift in range(SECTOR):
        promised.clear()
        path.unlink(missing_ok=True)
        journal = FileJournal.create(path, header("x" * shift))
        with monkeypatch.context() as hooks:
            disk = Disk(path, hooks)
            disk.at_sync = partial(require, disk, SECTOR, promised, texts, most=20)
            journal._begin("a")
            journal._begin("b")
            for name, text in texts.items():
                journal.put(name, Out(text), type=Out)
                promised[name] = text
        journal.close()


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("seed", range(12))
async def test_cut_after_what_the_disk_refused_and_before_the_next_good_sync_the_journal_loads(
    tmp_path: Path, seed: int, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was refused, at a sync or after a part of it was written, never stands beside what came in its place; and no step
    is asked for again, or begins before the one before it is on the disk."""
    path = tmp_path / "j"
    chance = random.Random(seed)
    write = os.pwrite

    def in_part(fd: int, data: bytes, at: int) -> int:
        return write(fd, data[: chance.randrange(len(data))] if data and chance.random() < 0.2 else data, at)

    file = JournalFile.create(path)
    file.make_room()
    journal = FileJournal.begin(path, header(), file)
    monkeypatch.setattr(os, "pwrite", in_part)
    disk = Disk(path, monkeypatch)
    promised: dict[str, str] = {}
    asked: dict[str, str] = {}

    def look() -> None:
        for unit in (SECTOR, PAGE):
            for data in disk.left(unit, most=60):
                found = verified(data)
                assert not found.lost_lines, (unit, data)
                held = {record.name: text_of(record) for record in found.records if isinstance(record, StepDone)}
                assert promised.items() <= held.items() <= asked.items()

    def at_sync() -> None:
        look()
        if chance.random() < 0.4:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def ask(name: str) -> Out:
        promised.update(asked)
        assert name not in asked
        asked[name] = f"{name} " + "x" * chance.choice([3, 480, 1500, 4091])
        return Out(asked[name])

    disk.at_sync = at_sync
    for number in range(12):
        name = f"{number}"
        for _ in range(100):
            with contextlib.suppress(StorageFailed):
                await journal.step(name, partial(ask, name), type=Out)
                if at_once:
                    journal.secure()
                    promised.update(asked)
                break
            look()
    for _ in range(100):
        with contextlib.suppress(StorageFailed):
            journal.commit(Committed("succeeded", (), msgspec.Raw(b"{}")))
            break
    disk.at_sync = lambda: None
    promised.update(asked)
    look()
    journal.close()
    assert [step.name for step in FileJournal.load(path).steps()] == [f"{number}" for number in range(12)]


async def test_what_a_killed_process_wrote_and_did_not_sync_is_on_the_disk_before_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j"
    journal = FileJournal.create(path, header())
    disk = Disk(path, monkeypatch)

    def kill() -> None:
        raise Killed

    disk.at_sync = kill
    with pytest.raises(Killed):
        journal.put("a", Out("a" * 900), type=Out)
    disk.at_sync = lambda: None
    again = FileJournal.load(path)
    assert again.recorded("a")
    again.secure()
    require(disk, SECTOR, {"a": "a" * 900}, {"a": "a" * 900})


async def test_a_flipped_bit_is_damage_or_costs_the_last_record(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = FileJournal.create(path, header())
    for turn in range(2):
        await three_at_once(journal, turn, 30, {}, {})
    journal.close()
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rindex(b"\n") + 1
    for at in range(len(whole)):
        for bit in range(8):
            flipped = bytearray(whole + b"\n" * 600)
            flipped[at] ^= 1 << bit
            found = verified(bytes(flipped))
            assert found.size == last if at >= last else found.size <= at, (at, bit)
            assert at >= last or found.lost_lines, (at, bit)


def test_a_look_meets_lines_that_are_written_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first part of what is read is older than the last."""
    path = tmp_path / "j"
    journal = FileJournal.create(path, header())
    older = path.read_bytes()
    for number in range(9):
        journal.put(f"{number}", Out("x" * 1000), type=Out)
    read = Path.read_bytes
    looks = iter([older[:2048] + read(path)[2048:]])
    monkeypatch.setattr(Path, "read_bytes", lambda self: next(looks, None) or read(self))
    assert steps_in(look_at(path).records) == 9
    looks = iter([older[:2048] + read(path)[2048:]])
    assert FileJournal.read(path).step_count == 9


def steps_in(records: list[Record]) -> int:
    return sum(isinstance(record, StepDone) for record in records)
