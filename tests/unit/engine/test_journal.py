"""The journal: a recorded step is never run again, and no crash makes the file unreadable."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from council.engine.journal import Exhausted, FileJournal, Handback, encode_line, read_records
from council.engine.records import EPOCH, Committed, FileIdentity, RunHeader, StepDone
from council.errors import Drift, JournalDamaged, StorageFailed
from council.ids import sha256_hex
from tests.late_syncs import sync_late

HEADER = RunHeader(
    run_id="r1", epoch=EPOCH, created="2026-11-20T00:00:00Z", lane="main", type="deliberate", command={"a": 1},
    command_hash="h", file=FileIdentity("command.json", 1, 2, "s"), secret="00" * 32,
)  # fmt: skip


class Out(msgspec.Struct, frozen=True):
    text: str


def counted(text: str, calls: list[str]) -> Callable[[], Awaitable[Out]]:
    async def call() -> Out:
        calls.append(text)
        return Out(text)

    return call


async def three_steps(path: Path) -> list[str]:
    calls: list[str] = []
    journal = FileJournal.load(path) if path.exists() else FileJournal.create(path, HEADER)
    for name in ("one", "two", "three"):
        result = await journal.step(name, counted(name, calls), type=Out, request=f"asks {name}")
        assert result == Out(name)
    journal.close()
    return calls


async def test_a_recorded_step_is_not_run_again_after_a_restart(tmp_path: Path) -> None:
    assert await three_steps(tmp_path / "j") == ["one", "two", "three"]
    assert await three_steps(tmp_path / "j") == []


async def test_cut_off_at_any_byte_the_journal_loads_and_only_unrecorded_steps_run(tmp_path: Path) -> None:
    path = tmp_path / "j"
    await three_steps(path)
    whole = path.read_bytes()
    first_line = whole.index(b"\n") + 1
    for size in range(first_line, len(whole)):
        path.write_bytes(whole[:size])
        done = sum(b'"t":"done"' in line for line in whole[:size].split(b"\n")[:-1])
        assert await three_steps(path) == ["one", "two", "three"][done:], size
        assert read_records(path, path.read_bytes())[1] == path.stat().st_size


async def test_a_flipped_byte_in_the_middle_is_named_and_never_guessed(tmp_path: Path) -> None:
    path = tmp_path / "j"
    await three_steps(path)
    whole = path.read_bytes()
    last_line = whole.rstrip(b"\n").rindex(b"\n") + 1
    for position in range(0, last_line - 1, 7):
        damaged = bytearray(whole)
        damaged[position] ^= 0x01
        path.write_bytes(damaged)
        with pytest.raises(JournalDamaged, match=r"does not verify|no record verifies"):
            FileJournal.load(path)


async def test_killed_in_the_middle_of_a_line_the_journal_goes_on_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "j"
    await three_steps(path)
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rindex(b"\n") + 1
    for position in range(last, len(whole), 7):
        path.write_bytes(whole[:position] + b"\n" * 5000)  # the room that the rest of the line would have filled
        assert await three_steps(path) == ["three"], position
        assert await three_steps(path) == [], position


async def test_pages_that_a_power_cut_kept_from_the_disk_cost_the_last_step_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "j"
    text = "x" * 1500
    journal = FileJournal.create(path, HEADER)
    for number in range(9):
        await journal.step(f"{number}", counted(f"{number}{text}", []), type=Out)
    journal.close()
    whole = path.read_bytes()
    ends = [0, *(at + 1 for at, byte in enumerate(whole) if byte == 10)]
    synced = ends[-3]  # the last two lines are `begin` and the step itself
    lost = range(synced // 512 * 512, len(whole), 512)
    for first, last in ((first, last) for first in lost for last in lost if first <= last):
        cut = bytearray(whole)
        for at in range(max(first, synced), min(last + 512, len(whole))):
            cut[at] = 10
        path.write_bytes(cut + b"\n" * 3000)
        again = FileJournal.load(path)
        assert [step.name for step in again.steps()][:8] == list("01234567"), (first, last)
        assert again.step_count in (8, 9)
        again.close()


@pytest.mark.parametrize("step", [1, 4, 6])
async def test_a_hole_before_steps_that_were_synced_after_it_is_damage(tmp_path: Path, step: int) -> None:
    path = tmp_path / "j"
    journal = FileJournal.create(path, HEADER)
    for number in range(9):
        await journal.step(f"{number}", counted(f"{number}{'x' * 1500}", []), type=Out)
    journal.close()
    damaged = bytearray(path.read_bytes())
    first = (damaged.index(b"%dxxx" % step) // 512 + 1) * 512
    damaged[first : first + 512] = b"\n" * 512
    path.write_bytes(damaged)
    with pytest.raises(JournalDamaged, match="does not verify"):
        FileJournal.load(path)


async def test_a_step_that_asks_something_else_is_drift(tmp_path: Path) -> None:
    await three_steps(tmp_path / "j")
    journal = FileJournal.load(tmp_path / "j")
    with pytest.raises(Drift, match="step two"):
        await journal.step("two", counted("two", []), type=Out, request="something else")


async def test_what_a_step_raises_is_not_recorded(tmp_path: Path) -> None:
    journal = FileJournal.create(tmp_path / "j", HEADER)

    async def fails() -> Out:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await journal.step("one", fails, type=Out)
    assert not FileJournal.load(tmp_path / "j").recorded("one")


async def test_a_stopping_process_begins_no_new_step_but_answers_recorded_ones(tmp_path: Path) -> None:
    await three_steps(tmp_path / "j")
    journal = FileJournal.load(tmp_path / "j")
    journal.stopping = lambda: True
    assert await journal.step("one", counted("one", []), type=Out, request="asks one") == Out("one")
    with pytest.raises(Handback):
        await journal.step("four", counted("four", []), type=Out)


async def test_a_closed_journal_answers_only_what_it_holds(tmp_path: Path) -> None:
    journal = FileJournal.create(tmp_path / "j", HEADER)
    journal.closed = True
    with pytest.raises(Exhausted):
        await journal.step("one", counted("one", []), type=Out)


def test_repeated_texts_are_all_kept(tmp_path: Path) -> None:
    journal = FileJournal.create(tmp_path / "j", HEADER)
    for number in range(5):
        journal.put(f"step/{number}", Out("I agree."), type=Out)
    assert FileJournal.load(tmp_path / "j").step_count == 5


def test_a_line_is_json_with_a_checksum_over_its_record() -> None:
    line = encode_line(StepDone("a", "", msgspec.Raw(b'{"text":"x"}')))
    assert msgspec.json.decode(line)["r"]["out"] == {"text": "x"}
    assert len(msgspec.json.decode(line)["c"]) == 8


class Counter:
    """A real store on SQLite: the effect and the record of the step in one transaction."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path)
        self.db.execute("CREATE TABLE IF NOT EXISTS effects (n INTEGER)")
        self.db.execute(
            "CREATE TABLE IF NOT EXISTS steps (run_id TEXT, step TEXT, out BLOB, PRIMARY KEY (run_id, step))"
        )
        self.db.commit()

    def recorded(self, run_id: str, step: str) -> bytes | None:
        row = self.db.execute("SELECT out FROM steps WHERE run_id = ? AND step = ?", (run_id, step)).fetchone()
        return row[0] if row else None

    async def add(self, run_id: str, step: str, encode: Callable[[Out], bytes]) -> Out:
        with self.db:
            self.db.execute("INSERT INTO effects VALUES (1)")
            result = Out(f"effect {self.count()}")
            self.db.execute("INSERT INTO steps VALUES (?, ?, ?)", (run_id, step, encode(result)))
        return result

    def count(self) -> int:
        return int(self.db.execute("SELECT count(*) FROM effects").fetchone()[0])


async def test_an_effect_happens_once_even_when_the_process_dies_before_its_record(tmp_path: Path) -> None:
    store = Counter(tmp_path / "db")
    journal = FileJournal.create(tmp_path / "j", HEADER)
    assert await journal.effect("pay", store, store.add, type=Out) == Out("effect 1")
    journal.close()
    whole = (tmp_path / "j").read_bytes()
    lines = whole.splitlines(keepends=True)
    (tmp_path / "j").write_bytes(b"".join(lines[:-1]))  # the record of the step never reached the disk
    again = FileJournal.load(tmp_path / "j")
    assert not again.recorded("pay")
    assert await again.effect("pay", store, store.add, type=Out) == Out("effect 1")
    assert store.count() == 1
    assert FileJournal.load(tmp_path / "j").recorded("pay")


async def test_an_effect_whose_transaction_fails_is_not_recorded_and_happens_on_the_next_try(tmp_path: Path) -> None:
    store = Counter(tmp_path / "db")
    journal = FileJournal.create(tmp_path / "j", HEADER)

    async def fails(run_id: str, step: str, encode: Callable[[Out], bytes]) -> Out:
        with store.db:
            store.db.execute("INSERT INTO effects VALUES (1)")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        await journal.effect("pay", store, fails, type=Out)
    assert store.count() == 0
    assert await journal.effect("pay", store, store.add, type=Out) == Out("effect 1")


async def test_two_effects_of_the_same_step_meet_the_unique_key(tmp_path: Path) -> None:
    store = Counter(tmp_path / "db")
    await store.add("r1", "pay", msgspec.json.encode)
    with pytest.raises(sqlite3.IntegrityError):
        await store.add("r1", "pay", msgspec.json.encode)
    assert store.count() == 1


async def test_an_ephemeral_step_keeps_a_small_outcome_and_refuses_a_large_one(tmp_path: Path) -> None:
    journal = FileJournal.create(tmp_path / "j", HEADER)
    assert await journal.ephemeral("ask", counted("yes", []), type=Out) == Out("yes")
    with pytest.raises(ValueError, match="larger than 1024 bytes"):
        await journal.ephemeral("tell", counted("x" * 2000, []), type=Out)
    again = FileJournal.load(tmp_path / "j")
    assert await again.ephemeral("ask", counted("no", []), type=Out) == Out("yes")
    assert not again.recorded("tell")


async def test_a_large_result_lies_in_a_blob_named_by_its_hash_and_a_changed_blob_is_refused(tmp_path: Path) -> None:
    journal = FileJournal.create(tmp_path / "j", HEADER)
    large = "y" * 300_000
    await journal.step("big", counted(large, []), type=Out)
    journal.close()
    assert (tmp_path / "j").stat().st_size < 2_000
    [blob] = (tmp_path / "blobs").iterdir()
    assert sha256_hex(blob.read_bytes()) == blob.name
    again = FileJournal.load(tmp_path / "j")
    assert await again.step("big", counted("", []), type=Out) == Out(large)
    blob.write_bytes(blob.read_bytes()[:-3])
    with pytest.raises(JournalDamaged, match="does not match its name"):
        await again.step("big", counted("", []), type=Out)


def refuse(*_: object) -> None:
    raise OSError(5, "Input/output error")


async def test_the_folder_of_large_results_is_on_the_disk_before_the_record_that_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = FileJournal.create(tmp_path / "j", HEADER)
    order: list[int] = []
    sync, data_sync = os.fsync, os.fdatasync

    def noted(call: Callable[[int], None]) -> Callable[[int], None]:
        def synced(fd: int) -> None:
            order.append(os.fstat(fd).st_ino)
            call(fd)

        return synced

    monkeypatch.setattr(os, "fsync", noted(sync))
    monkeypatch.setattr(os, "fdatasync", noted(data_sync))
    journal.put("big", Out("y" * 300_000), type=Out)
    assert order[-3:] == [path.stat().st_ino for path in (tmp_path / "blobs", tmp_path, tmp_path / "j")]


async def test_an_answer_that_the_disk_refused_is_written_by_the_next_try_and_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    journal = FileJournal.create(tmp_path / "j", HEADER)
    with monkeypatch.context() as broken:
        broken.setattr("os.pwrite", refuse)
        with pytest.raises(StorageFailed):
            await journal.step("one", counted("one", calls), type=Out, request="asks one")
    assert calls == []  # not even the beginning could be noted

    def ask() -> Awaitable[Out]:
        broken.setattr("os.pwrite", refuse)
        return counted("one", calls)()

    with monkeypatch.context() as broken, pytest.raises(StorageFailed):
        await journal.step("one", ask, type=Out, request="asks one")
    assert calls == ["one"]
    assert not FileJournal.read(tmp_path / "j").recorded("one")
    assert await journal.step("one", counted("one", calls), type=Out, request="asks one") == Out("one")
    assert calls == ["one"]
    assert FileJournal.read(tmp_path / "j").recorded("one")


async def test_an_answer_that_never_got_to_the_disk_is_written_again_before_another_step_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    journal = FileJournal.create(tmp_path / "j", HEADER)
    with monkeypatch.context() as broken:
        sync_late(broken)
        broken.setattr("os.fdatasync", refuse)
        await journal.step("one", counted("one", calls), type=Out)
        for _ in range(2):
            with pytest.raises(StorageFailed):
                await journal.step("two", counted("two", calls), type=Out)
            with pytest.raises(StorageFailed):
                journal.hand_back()
            assert not FileJournal.read(tmp_path / "j").recorded("one")
        with pytest.raises(StorageFailed):
            journal.commit(Committed("succeeded", (), msgspec.Raw(b"{}")))
    assert calls == ["one"]
    seen: list[bool] = []

    def ask() -> Awaitable[Out]:
        seen.append(FileJournal.read(tmp_path / "j").recorded("one"))
        return counted("two", calls)()

    assert await journal.step("two", ask, type=Out) == Out("two")
    assert seen == [True]
    assert calls == ["one", "two"]
    journal.close()
    assert FileJournal.load(tmp_path / "j").committed is None
    assert [step.name for step in FileJournal.load(tmp_path / "j").steps()] == ["one", "two"]


@pytest.mark.parametrize("in_background", [True, False])
async def test_the_systems_own_sync_of_a_step_is_asked_before_another_one_begins(
    tmp_path: Path, in_background: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that takes what is written and cannot be synced comes in the file's place, and goes again."""
    if not in_background:
        monkeypatch.setattr("council.storage.background_sync._aio", lambda: None)
    calls: list[str] = []
    journal = FileJournal.create(tmp_path / "j", HEADER)
    (fd,) = (int(name) for name in os.listdir("/dev/fd") if same_file(int(name), tmp_path / "j"))
    file, device = os.dup(fd), os.open(os.devnull, os.O_WRONLY)
    os.dup2(device, fd)
    assert await journal.step("one", counted("one", calls), type=Out) == Out("one")
    for _ in range(2):
        with pytest.raises(StorageFailed, match="Invalid argument"):
            await journal.step("two", counted("two", calls), type=Out)
    assert calls == ["one"]
    os.dup2(file, fd)
    assert await journal.step("two", counted("two", calls), type=Out) == Out("two")
    assert await journal.step("one", counted("one", calls), type=Out) == Out("one")
    assert calls == ["one", "two"]
    journal.close()
    os.close(file)
    os.close(device)
    assert [step.name for step in FileJournal.load(tmp_path / "j").steps()] == ["one", "two"]


def same_file(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except OSError:  # the one that listed them
        return False


async def test_an_answer_that_the_disk_refused_does_not_answer_another_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    journal = FileJournal.create(tmp_path / "j", HEADER)

    def ask() -> Awaitable[Out]:
        broken.setattr("os.pwrite", refuse)
        return counted("one", calls)()

    with monkeypatch.context() as broken, pytest.raises(StorageFailed):
        await journal.step("one", ask, type=Out, request="asks one")
    assert await journal.step("one", counted("other", calls), type=Out, request="asks other") == Out("other")
    assert calls == ["one", "other"]
