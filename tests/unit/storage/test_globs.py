"""Globs: what each sign stands for, and that no pattern takes long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.storage.globs import Letters, Token, Wild, tokens_of

_SAYS_THE_SAME = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_GLOBS = st.lists(st.sampled_from([*_SAYS_THE_SAME, "/", "a", "b", "é"]), max_size=7).map("".join)
_PATHS = st.lists(st.sampled_from(["a", "b", "é", "/", "?", "*"]), min_size=1, max_size=9).map("".join)


def fits(tokens: list[Token], path: str) -> bool:
    letters = Letters(path)
    return bool(letters.reached(tokens) & letters.end)


@given(_GLOBS, _PATHS)
def test_a_glob_fits_what_the_regular_expression_that_says_the_same_fits(glob: str, path: str) -> None:
    parts = re.findall(r"\*\*/|\*\*|.", glob)
    regex = "".join(_SAYS_THE_SAME.get(part) or re.escape(part) for part in parts)
    assert fits(tokens_of(glob), path) is bool(re.fullmatch(regex, path))


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*" * 40 + "x", "a" * 255),
        ("*a" * 200 + "x", "a" * 1024),
        ("**/a/" * 100 + "x", "a/" * 512),
        ("**a/" * 128 + "x", "a/" * 512),
    ],
)
def test_a_pattern_of_many_stars_is_judged_at_once(glob: str, path: str) -> None:
    assert not fits(tokens_of(glob), path)
    assert fits(tokens_of(glob), f"{path}x")


def test_a_set_of_characters_fits_one_of_them_within_a_name() -> None:
    tokens: list[Token] = ["a", re.compile("[^b-d]"), Wild.NAME]
    assert [fits(tokens, path) for path in ("ae", "axy", "ac", "a/", "a")] == [True, True, False, False, False]
