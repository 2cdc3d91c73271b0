"""What the zygote tells of a child's end becomes one status; nothing that the child writes can change that."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from council.sandbox.job import Level, Limits
from council.sandbox.zygotes import verdict

FINE = b'{"value": 1}'


def told(**changed: Any) -> dict[str, Any]:
    return {"shut": "2", "exit": 0, "cpu_s": 0.1, "peak_bytes": 5, **changed}


@pytest.mark.parametrize(
    ("notice", "data", "timed_out", "status", "level", "error"),
    [
        (told(), FINE, False, "ok", 2, ""),
        (told(shut="1"), FINE, False, "ok", 1, ""),
        (told(shut="system call filter: no"), FINE, False, "refused", 2, "could not be shut: system call filter: no"),
        (told(shut=""), FINE, False, "refused", 2, "it ended before it was shut"),
        (told(), FINE, True, "timeout", 2, "Timed out after 5s"),
        (told(exit=-signal.SIGKILL, cpu_s=1.9), b"", False, "timeout", 2, "Timed out after 2s of processor time"),
        (told(exit=-signal.SIGKILL), b"", False, "error", 2, "ended by SIGKILL"),
        (told(exit=-signal.SIGSEGV), FINE, False, "error", 2, "ended by SIGSEGV"),
        (told(exit=-signal.SIGSYS), FINE, False, "error", 2, "ended by SIGSYS"),
        (told(exit=93), b"", False, "memory", 2, "more than 256 MiB"),
        (told(), b'{"error": "MemoryError"}', False, "memory", 2, "more than 256 MiB"),
        (told(), b"x" * 65_537, False, "output_cap", 2, "longer than 65,536 bytes"),
        (told(exit=-signal.SIGKILL), b"x" * 65_537, False, "output_cap", 2, "longer than 65,536 bytes"),
        (told(), b"", False, "error", 2, "without an answer"),
    ],
)
def test_an_end_has_one_status(
    notice: dict[str, Any], data: bytes, timed_out: bool, status: str, level: int, error: str
) -> None:
    result = verdict(notice, data, Limits(), timed_out=timed_out, wall_s=1.5)
    assert (result.status, result.level) == (status, Level(level))
    assert error in result.error
    assert (result.value == 1) == (status == "ok")


def test_a_real_time_signal_has_a_name_or_a_number() -> None:
    result = verdict(told(exit=-40), b"", Limits(), timed_out=False, wall_s=1.0)
    assert result.status == "error"
    assert "40" in result.error
