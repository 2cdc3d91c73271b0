"""JSON and plain values read as typed records, by any thread.

msgspec works a type out when something is first read as it, and hands a half-done answer to a second thread that reads the
same type meanwhile. That thread then ends the process (`StructInfo_Convert` of msgspec 0.20 to 0.22). So types are worked
out here alone, one after the other, and ruff refuses msgspec's own functions everywhere else.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_one_at_a_time = threading.Lock()


@overload
def json_decoder(type: type[T]) -> msgspec.json.Decoder[T]: ...
@overload
def json_decoder(type: Any) -> msgspec.json.Decoder[Any]: ...
def json_decoder(type: Any) -> msgspec.json.Decoder[Any]:
    """The decoder of a type. It is built once, and kept as long as the process: types are written in the code."""
    decoder = _decoders.get(type)
    if decoder is None:
        with _one_at_a_time:
            decoder = _decoders.get(type)  # another thread may have built it meanwhile
            if decoder is None:
                decoder = _decoders[type] = msgspec.json.Decoder(type)
    return decoder


@overload
def decode_json(encoded: bytes | str, type: type[T]) -> T: ...
@overload
def decode_json(encoded: bytes | str, type: Any = ...) -> Any: ...
def decode_json(encoded: bytes | str, type: Any = Any) -> Any:
    """JSON as a value of the type. Raises msgspec.DecodeError, of which msgspec.ValidationError is a kind."""
    return json_decoder(type).decode(encoded)


def parts_of(value: Any, levels: int) -> list[Any]:
    """A JSON value and all that it holds, keys too, the outer before the inner. Raises RecursionError where dicts and lists
    lie in one another deeper than so many levels."""
    found: list[Any] = []
    level = [value]
    for _ in range(levels):
        found += level
        inner = [
            [*one, *one.values()] if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)
        ]
        level = [part for parts in inner for part in parts]
        if not level:
            return found
    raise RecursionError


@overload
def convert(value: Any, type: type[T], *, from_attributes: bool = ...) -> T: ...
@overload
def convert(value: Any, type: Any, *, from_attributes: bool = ...) -> Any: ...
def convert(value: Any, type: Any, *, from_attributes: bool = False) -> Any:
    """A value made of dicts, lists and plain values as one of the type; also an object with the same attributes, where
    that is said. Raises msgspec.ValidationError."""
    json_decoder(type)  # works the type out, so that msgspec need not
    return msgspec.convert(value, type, from_attributes=from_attributes)
