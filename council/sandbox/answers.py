"""Reads what foreign code sends back as an enemy's data: it may lie, but it cannot be malformed.

An answer is one JSON document, shallow, with finite numbers and without characters that hide or steer. The caller checks what
it means.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import Any

import msgspec

from council.ids import UNSEEN
from council.safety.untrusted import clean, plain_line
from council.sandbox.inside import OUT_OF_MEMORY
from council.sandbox.job import Level, Limits, Result, Status
from council.typed_json import decode_json, parts_of

MAX_DEPTH = 32
_MAX_INTEGER = 2**63
_MAX_ERROR_CHARS = 2_000
_UNCLEAN = re.compile(f"[{UNSEEN}\x00-\x08\x0b\x0c\x0e-\x1f]")
_EMOJI = "\ufe0f"  # shows nothing itself, but the symbol before it as a picture
_MALFORMED = "The answer was refused"


def read_answer(data: bytes) -> tuple[Any, str, str]:
    """The value, or the error and its traceback. Whatever is not the answer of a harness becomes an error."""
    try:
        document = decode_json(data)
    except RecursionError:
        return None, f"{_MALFORMED}: it is nested too deeply", ""
    except (msgspec.DecodeError, UnicodeError) as error:
        return None, f"{_MALFORMED}: it is not one JSON document ({plain_line(str(error), 200)})", ""
    if isinstance(document, dict):
        said, traceback = document.get("error"), document.get("traceback", "")
        if isinstance(said, str) and said and isinstance(traceback, str):
            return None, plain_line(said, _MAX_ERROR_CHARS) or _MALFORMED, clean(traceback)
        if document.keys() == {"value"}:
            flaw = _flaw_in(document["value"])
            return (None, f"{_MALFORMED}: {flaw}", "") if flaw else (document["value"], "", "")
    return None, f"{_MALFORMED}: it is not what the harness writes", ""


@dataclass(frozen=True)
class JobEnd:
    """The end of a job's process, told by whoever watched it from outside. A negative exit code is a signal's number."""

    exit_code: int
    cpu_s: float
    wall_s: float
    peak_bytes: int
    timed_out: bool
    out_of_memory: bool = False


def result_of(data: bytes, ending: JobEnd, level: Level, limits: Limits) -> Result:
    """The result of a job that was started. `data`: all that it answered, or somewhat more than it may."""
    killed = ending.exit_code == -signal.SIGKILL
    status: Status = "error"
    value, error, traceback = None, "", ""
    if len(data) > limits.output_bytes:
        status, error = "output_cap", f"The answer is longer than {limits.output_bytes:,} bytes"
    elif ending.timed_out and killed:  # one that ended just in time has its own answer
        status, error = "timeout", f"Timed out after {limits.wall_s:g}s"
    elif (killed and ending.out_of_memory) or ending.exit_code == OUT_OF_MEMORY:
        status, error = "memory", f"MemoryError: more than {limits.memory_bytes >> 20} MiB"
    elif killed and ending.cpu_s >= limits.cpu_s / 2:  # the kernel counts in ticks
        status, error = "timeout", f"Timed out after {limits.cpu_s}s of processor time"
    elif ending.exit_code < 0:
        number = -ending.exit_code
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        error = f"The job's process was ended by {name}"
    elif not data:
        error = "The job ended without an answer"
    else:
        value, error, traceback = read_answer(data)
        status = "error" if error else "ok"
    return Result(status, level, value, error, traceback, ending.cpu_s, ending.wall_s, ending.peak_bytes)


def lost(level: Level, wall_s: float) -> Result:
    """The result of a job whose process can no longer be watched."""
    error = "The sandbox was lost while the job ran; it is not repeated"
    return Result("sandbox_lost", level, error=error, wall_s=wall_s)


def _flaw_in(value: Any) -> str:
    try:
        parts = parts_of(value, MAX_DEPTH)
    except RecursionError:
        return f"it is nested more than {MAX_DEPTH} deep"
    for one in parts:
        if isinstance(one, int) and not -_MAX_INTEGER <= one < _MAX_INTEGER:
            return "it holds an integer of more than 64 bits"
        if isinstance(one, str) and _UNCLEAN.search(one.replace(_EMOJI, "")):
            return "it holds invisible or control characters"
    return ""
