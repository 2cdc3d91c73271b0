"""A session file that is cut off or flipped anywhere: never fatal, never half believed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from council.agents.memory import COPIES, Memory
from council.agents.session_file import MemoryMessage, RememberedTask, Session, decode_session, encode_session
from council.engine.statements import KEEP
from council.storage.store import Store

SESSION = Session(
    "AUDITOR",
    "main",
    tuple(
        RememberedTask(
            run_id=f"20261120-22541{number}-k3f9x2ab",
            title=f"How many herons nest here? ({number})",
            status="succeeded",
            finished="2026-11-20T22:54:13Z",
            answer="Zwölf, “by the last count”.",
            messages=(MemoryMessage("user", "How many?"), MemoryMessage("model", "Twelve.")),
            rehearsed=False,
        )
        for number in range(2)
    ),
)
DATA = encode_session(SESSION)


def said_or_same(data: bytes) -> bool:
    """Refused with a reason, or the very same memory."""
    session, reason = decode_session(data, "AUDITOR", "main")
    return session == SESSION if session is not None else bool(reason)


def test_cut_off_at_any_byte_it_is_refused_with_a_reason() -> None:
    for size in range(len(DATA) - 1):  # without the last newline it is still whole
        session, reason = decode_session(DATA[:size], "AUDITOR", "main")
        assert session is None, size
        assert reason, size


@pytest.mark.parametrize("bit", range(8))
def test_with_any_bit_flipped_it_is_refused_with_a_reason_or_means_the_same(bit: int) -> None:
    refused = 0
    for at in range(len(DATA)):
        damaged = DATA[:at] + bytes([DATA[at] ^ 1 << bit]) + DATA[at + 1 :]
        assert said_or_same(damaged), at
        refused += decode_session(damaged, "AUDITOR", "main")[0] is None
    assert refused > len(DATA) * 0.8  # what is left is white space between the values


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    (tmp_path / ".council").mkdir()
    with closing(Store.open(tmp_path / ".council")) as store:
        yield store


@pytest.mark.parametrize("start", range(7))
def test_loading_a_damaged_file_sets_it_aside_and_takes_the_copy(tmp_path: Path, store: Store, start: int) -> None:
    states = tmp_path / "session_states"
    states.mkdir()
    memory = Memory(states, store)
    path = states / "auditor_session.json"
    store.write_now(lambda tx: tx.execute(KEEP, (COPIES, path.name, DATA)))
    for at in range(start, len(DATA) - 1, 7 * 11):
        path.write_bytes(DATA[:at])
        loaded = memory.load("AUDITOR")
        assert loaded.session == SESSION
        assert "the last good copy was restored" in loaded.damage
        assert path.read_bytes() == DATA
        [aside] = states.glob("*.damaged")
        assert aside.read_bytes() == DATA[:at]
        aside.unlink()


def test_a_file_that_is_far_too_large_is_set_aside_without_reading_all_of_it(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "auditor_session.json"
    path.write_bytes(DATA)
    os.truncate(path, 1 << 36)  # a hole: it takes no room on the disk, and would take all of the memory
    loaded = Memory(tmp_path, store).load("AUDITOR")
    assert "larger than" in loaded.damage
    assert (tmp_path / "auditor_session.json.damaged").exists()
