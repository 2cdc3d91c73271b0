"""What the house reads as typed records."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from council.typed_json import convert, decode_json, parts_of

# In a process of its own: where types are worked out by several threads at once, it ends with SIGSEGV.
_THREADS = """\
import sys
import threading

import msgspec

from council.typed_json import convert, decode_json

sys.setswitchinterval(1e-6)
for number in range(100):
    inner = msgspec.defstruct("Inner", [("words", tuple[str, ...], ()), ("count", int, 0)])
    outer = msgspec.defstruct("Outer", [("text", str), ("inner", inner | None, None), ("last", int, 0)])
    together = threading.Barrier(3)

    def read(last: int) -> None:
        together.wait()
        assert decode_json(b'{"text":"x","inner":{"count":1},"last":2}', outer).last == 2
        assert convert({"text": "x", "last": last}, outer).last == last

    threads = [threading.Thread(target=read, args=(last,)) for last in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


_ONCE = """\
import threading
import time

from council import typed_json

found = []
typed_json._one_at_a_time.acquire()
threads = [threading.Thread(target=lambda: found.append(typed_json.json_decoder(dict[str, int]))) for _ in range(2)]
for thread in threads:
    thread.start()
time.sleep(0.2)  # both have seen that there is none
typed_json._one_at_a_time.release()
for thread in threads:
    thread.join()
assert found[0] is found[1]
"""


def test_threads_that_read_a_type_for_the_first_time_do_so_one_after_the_other() -> None:
    done = subprocess.run([sys.executable, "-c", _THREADS], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_two_threads_that_read_a_type_for_the_first_time_get_one_decoder() -> None:
    done = subprocess.run([sys.executable, "-c", _ONCE], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


class Place(msgspec.Struct):
    path: str
    line: int = 1


class Section(msgspec.Struct):
    path: str
    title: str = ""


def test_json_is_read_as_the_type_and_plain_values_alike() -> None:
    assert decode_json('{"path": "a.md", "line": 3}', Place) == Place("a.md", 3)
    assert decode_json(b'[{"path": "a.md"}]', tuple[Place, ...]) == (Place("a.md"),)
    assert decode_json("[1, null]") == [1, None]
    assert convert({"path": "a.md"}, Place) == Place("a.md")
    assert convert(Place("a.md", 2), Section, from_attributes=True) == Section("a.md")


@pytest.mark.parametrize("wrong", ['{"path": 1}', "{}", "{"])
def test_what_is_not_of_the_type_is_refused(wrong: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_json(wrong, Place)


def test_a_value_is_taken_apart_with_its_keys_as_deep_as_it_may_be() -> None:
    value = {"a": [1, {"b": None}]}
    assert parts_of(value, 4) == [value, "a", [1, {"b": None}], 1, {"b": None}, "b", None]
    with pytest.raises(RecursionError):
        parts_of(value, 3)
