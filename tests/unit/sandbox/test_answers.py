"""What comes back is read as the data of an enemy."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.ids import UNSEEN
from council.sandbox.answers import MAX_DEPTH, read_answer

_HIDDEN = re.findall(f"[{UNSEEN}]", "".join(map(chr, range(0x10000))))  # and more from U+E0000 on
_PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(max_codepoint=0xDFFFF, exclude_categories=["Cc", "Cs"], exclude_characters=_HIDDEN)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(_PLAIN)
def test_every_plain_value_comes_through_as_it_is(value: Any) -> None:
    assert read_answer(json.dumps({"value": value}, ensure_ascii=False).encode()) == (value, "", "")


@given(st.binary(max_size=200))
def test_no_bytes_raise_and_what_is_no_answer_is_an_error(data: bytes) -> None:
    value, error, _ = read_answer(data)
    assert value is None
    assert error


def test_depth_is_counted_at_its_bound() -> None:
    def nested(levels: int) -> bytes:
        return b'{"value": ' + b"[" * levels + b"]" * levels + b"}"

    assert read_answer(nested(MAX_DEPTH - 1))[1] == ""
    assert "deep" in read_answer(nested(MAX_DEPTH + 1))[1]
    assert "deeply" in read_answer(nested(100_000))[1]


@pytest.mark.parametrize(
    "text",
    ["a\u0000", "a\u202e", "a\u200b", "\x1b[31m", "\u2066", "\U000e0041", "\x85", "\u3164", "\U000e0100", "\u2028"],
)
def test_what_hides_or_steers_is_refused_as_a_value_and_as_a_key_and_taken_out_of_an_error(text: str) -> None:
    for value in (text, {text: 1}, [[text]]):
        assert "invisible" in read_answer(json.dumps({"value": value}).encode())[1]
    _, error, traceback = read_answer(json.dumps({"error": f"E: {text}", "traceback": text}).encode())
    assert error.startswith("E:")
    assert not set(text) & {"\u0000", "\u202e", "\u200b", "\x1b"} & set(error + traceback)


def test_lines_and_emoji_are_no_reason_to_refuse() -> None:
    assert read_answer('{"value": "a\\n\\tb\\r ❤️ 🙂 é"}'.encode())[0] == "a\n\tb\r ❤️ 🙂 é"


def test_an_error_is_bounded() -> None:
    _, error, _ = read_answer(json.dumps({"error": "x" * 60_000}).encode())
    assert len(error) <= 2_000
    assert os.linesep not in error
