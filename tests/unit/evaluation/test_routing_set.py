"""A set of requests that is none says why in plain words."""

from __future__ import annotations

from pathlib import Path

import pytest

from council.errors import UsageError
from council.evaluation.routing_set import read_set


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("requests: []", "`requests` is empty"),
        ("requests: {}", "`requests` must be a list in brackets, not an object"),
        ("requests: [{ask: x y z}]", "`requests.0.agent` is missing"),
        ("requests: !set []", "a tag (a word after !) is not allowed"),
        ("[]", "must be an object with keys, not a list"),
    ],
)
def test_what_is_no_set_of_requests_says_where_and_why(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "own.yaml").write_text(text)
    with pytest.raises(UsageError) as refused:
        read_set(tmp_path / "own.yaml", ())
    assert refused.value.message == f"own.yaml is no set of requests: {why}."
