"""The end of a job's process and what it answered become one status; nothing that the job writes can change that."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from council.sandbox.answers import JobEnd, result_of
from council.sandbox.job import Level, Limits

FINE = b'{"value": 1}'
KILLED = -signal.SIGKILL


def ending(exit_code: int = 0, **changed: Any) -> JobEnd:
    return JobEnd(
        **{"exit_code": exit_code, "cpu_s": 0.1, "wall_s": 1.5, "peak_bytes": 5, "timed_out": False, **changed}
    )


@pytest.mark.parametrize(
    ("end", "data", "status", "error"),
    [
        (ending(), FINE, "ok", ""),
        (ending(KILLED, timed_out=True), FINE, "timeout", "Timed out after 5s"),
        (ending(timed_out=True), FINE, "ok", ""),
        (ending(KILLED, cpu_s=1.9), b"", "timeout", "Timed out after 2s of processor time"),
        (ending(KILLED), b"", "error", "ended by SIGKILL"),
        (ending(-signal.SIGSEGV), FINE, "error", "ended by SIGSEGV"),
        (ending(-signal.SIGSYS), FINE, "error", "ended by SIGSYS"),
        (ending(-40), b"", "error", "40"),
        (ending(-99), b"", "error", "signal 99"),
        (ending(93), b"", "memory", "more than 256 MiB"),
        (ending(KILLED, out_of_memory=True, cpu_s=1.9), b"", "memory", "more than 256 MiB"),
        (ending(out_of_memory=True), FINE, "ok", ""),
        (ending(), b'{"error": "MemoryError"}', "error", "MemoryError"),
        (ending(), b"x" * 65_537, "output_cap", "longer than 65,536 bytes"),
        (ending(KILLED, timed_out=True), b"x" * 65_537, "output_cap", "longer than 65,536 bytes"),
        (ending(), b"", "error", "without an answer"),
    ],
)
def test_an_end_has_one_status(end: JobEnd, data: bytes, status: str, error: str) -> None:
    result = result_of(data, end, Level.L3, Limits())
    assert (result.status, result.level) == (status, Level.L3)
    assert error in result.error
    assert (result.value == 1) == (status == "ok")
    assert (result.cpu_s, result.wall_s, result.peak_memory_bytes) == (end.cpu_s, 1.5, 5)
