"""What foreign code sends back, read as data of an enemy: it may lie, but it cannot be malformed.

An answer is one JSON document, shallow, with finite numbers and without characters that hide or steer. What it means is the
caller's to check.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import msgspec

from council.safety.untrusted import clean, plain_line
from council.sandbox.job import Level, Limits, Result

MAX_DEPTH = 32
_MAX_INTEGER = 2**63
_MAX_ERROR_CHARS = 2_000
_UNCLEAN = {"Cc", "Cf", "Cs"}
_MALFORMED = "The answer was refused"


def read_answer(data: bytes) -> tuple[Any, str, str]:
    """The value, or the error and its traceback. Whatever is not the answer of a harness becomes an error."""
    try:
        document = msgspec.json.decode(data)
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


def answered(data: bytes, level: Level, limits: Limits, measured: dict[str, Any]) -> Result:
    """The result of a job that came to its end by itself. `measured`: time and memory, as nothing inside can say them."""
    if not data:
        return Result("error", level, error="The job ended without an answer", **measured)
    value, error, traceback = read_answer(data)
    if error.partition(":")[0] == "MemoryError":
        return out_of_memory(level, limits, measured)
    return Result("error" if error else "ok", level, value, error, traceback, **measured)


def out_of_memory(level: Level, limits: Limits, measured: dict[str, Any]) -> Result:
    """The result of a job that needed more than it may have."""
    return Result("memory", level, error=f"MemoryError: more than {limits.memory_bytes >> 20} MiB", **measured)


def _flaw_in(value: Any) -> str:
    level = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner += [*one, *one.values()]
            elif isinstance(one, list):
                inner += one
            elif isinstance(one, int) and not -_MAX_INTEGER <= one < _MAX_INTEGER:
                return "it holds an integer of more than 64 bits"
            elif isinstance(one, str) and not one.isprintable() and (_UNCLEAN & {*map(_category, one)}):
                return "it holds invisible or control characters"
        if not inner:
            return ""
        level = inner
    return f"it is nested more than {MAX_DEPTH} deep"


def _category(char: str) -> str:
    return "" if char in "\n\r\t" else unicodedata.category(char)
