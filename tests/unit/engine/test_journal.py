"""The journal: a recorded step is never run again, and no crash makes the file unreadable."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from council.engine.journal import Exhausted, FileJournal, Handback, encode_line, read_records
from council.engine.records import EPOCH, FileIdentity, RunHeader, StepDone
from council.errors import Drift, JournalDamaged

HEADER = RunHeader(
    run_id="r1", epoch=EPOCH, created="2026-11-20T00:00:00Z", lane="main", type="deliberate", command={"a": 1},
    command_hash="h", file=FileIdentity("command.json", 1, 2, "s"), secret="00" * 32,
)  # fmt: skip


class Out(msgspec.Struct, frozen=True):
    text: str


def counted(text: str, calls: list[str]) -> object:
    async def call() -> Out:
        calls.append(text)
        return Out(text)

    return call


async def three_steps(path: Path) -> list[str]:
    calls: list[str] = []
    journal = FileJournal.load(path) if path.exists() else FileJournal.create(path, HEADER)
    for name in ("one", "two", "three"):
        result = await journal.step(name, counted(name, calls), type=Out, request=f"asks {name}")  # type: ignore[arg-type]
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


async def test_a_step_that_asks_something_else_is_drift(tmp_path: Path) -> None:
    await three_steps(tmp_path / "j")
    journal = FileJournal.load(tmp_path / "j")
    with pytest.raises(Drift, match="step two"):
        await journal.step("two", counted("two", []), type=Out, request="something else")  # type: ignore[arg-type]


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
    assert await journal.step("one", counted("one", []), type=Out, request="asks one") == Out("one")  # type: ignore[arg-type]
    with pytest.raises(Handback):
        await journal.step("four", counted("four", []), type=Out)  # type: ignore[arg-type]


async def test_a_closed_journal_answers_only_what_it_holds(tmp_path: Path) -> None:
    journal = FileJournal.create(tmp_path / "j", HEADER)
    journal.closed = True
    with pytest.raises(Exhausted):
        await journal.step("one", counted("one", []), type=Out)  # type: ignore[arg-type]


def test_repeated_texts_are_all_kept(tmp_path: Path) -> None:
    journal = FileJournal.create(tmp_path / "j", HEADER)
    for number in range(5):
        journal.put(f"step/{number}", Out("I agree."), type=Out)
    assert FileJournal.load(tmp_path / "j").step_count == 5


def test_a_line_is_json_with_a_checksum_over_its_record() -> None:
    line = encode_line(StepDone("a", "", msgspec.Raw(b'{"text":"x"}')))
    assert msgspec.json.decode(line)["r"]["out"] == {"text": "x"}
    assert len(msgspec.json.decode(line)["c"]) == 8
