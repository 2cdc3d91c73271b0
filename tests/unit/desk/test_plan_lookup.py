"""What every door says of a plan in the same words."""

from __future__ import annotations

from typing import Any

import pytest

from council.desk.plan_lookup import edited, told_result
from council.plans.plan import OperationResult


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (OperationResult("Sent.", undo="undone"), "undone"),
        (OperationResult(refused="it is locked"), "refused: it is locked"),
        (OperationResult("Added.", again=True), "done before"),
        (OperationResult("The server answered 204."), "The server answered 204."),
        (OperationResult(), "done"),
    ],
)
def test_the_outcome_of_an_operation_is_told_in_words(result: OperationResult, words: str) -> None:
    assert told_result(result) == words


@pytest.mark.parametrize(
    ("before", "typed", "after"),
    [("12", "13", "13"), (12, "13", 13), (None, '["a"]', ["a"]), (12, "thirteen", "thirteen")],
)
def test_an_edit_is_read_as_json_unless_a_text_takes_the_place_of_a_text(before: Any, typed: str, after: Any) -> None:
    assert edited(before, typed) == after
