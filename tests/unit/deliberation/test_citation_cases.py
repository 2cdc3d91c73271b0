"""Citations and figures as models write them, right and wrong: every wrong one is marked, and no right one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from council.citations import MARKS
from council.deliberation.quotations.lookup import Quotations
from council.deliberation.quotations.passages import Passage

CASES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("citation_cases.yaml").read_text(encoding="utf-8"))
PASSAGES = [
    Passage(each["id"], each["path"], each.get("first_line", 1), each["text"], own=each.get("own", False))
    for each in CASES["sources"]
]
LOOK = Quotations(PASSAGES, [each["id"] for each in CASES["sources"]], task=CASES["task"])
_MARK = re.compile("|".join(map(re.escape, MARKS)))


@pytest.mark.parametrize("text", CASES["right"])
def test_what_the_cited_lines_say_is_not_marked(text: str) -> None:
    assert _MARK.findall(LOOK.check(text).text) == []


@pytest.mark.parametrize(("text", "marked"), CASES["wrong"])
def test_what_the_cited_lines_do_not_say_is_marked_and_nothing_else(text: str, marked: str) -> None:
    checked = LOOK.check(text).text
    assert marked in checked
    assert len(_MARK.findall(checked)) == 1


def test_the_cases_are_many() -> None:
    assert len(CASES["right"]) + len(CASES["wrong"]) >= 60
