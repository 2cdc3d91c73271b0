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

_MARK = re.compile("|".join(map(re.escape, MARKS)))


def _cases(file: str) -> tuple[Quotations, dict[str, Any]]:
    cases = yaml.safe_load(Path(__file__).with_name(file).read_text(encoding="utf-8"))
    passages = [
        Passage(each["id"], each["path"], each.get("first_line", 1), each["text"], own=each.get("own", False))
        for each in cases["sources"]
    ]
    return Quotations(passages, [each["id"] for each in cases["sources"]], task=cases["task"]), cases


SETS = [_cases(f"citation_cases{which}.yaml") for which in ("", "_natural", "_trip", "_offers", "_workshop")]


def test_what_the_cited_lines_say_is_not_marked() -> None:
    assert [text for look, cases in SETS for text in cases["right"] if _MARK.search(look.check(text).text)] == []


def test_what_the_cited_lines_do_not_say_is_marked_and_nothing_else() -> None:
    for look, cases in SETS:
        for text, marked in cases["wrong"]:
            checked = look.check(text).text
            assert marked in checked
            assert len(_MARK.findall(checked)) == 1, text


def test_an_amount_without_the_pence_of_its_source_holds() -> None:
    line = "The insurance costs £612.40, the boat £99.70 and the key £4.60; the load is 61.5 kg."
    look = Quotations([Passage("E1", "docs/a.md", 1, line)], ["E1"])
    for right in ("The insurance costs £612", "The boat costs £99", "The boat costs £100"):
        assert _MARK.search(look.check(f"{right} [E1: docs/a.md:1].").text) is None, right
    for wrong in (
        "The insurance costs £613",
        "The insurance costs £612.00",
        "The key costs £5",
        "The boat costs £98",
        "The load is 61 kg",
    ):
        assert _MARK.search(look.check(f"{wrong} [E1: docs/a.md:1].").text), wrong


@pytest.mark.parametrize("cases", [cases for _, cases in SETS])
def test_the_cases_are_many(cases: dict[str, Any]) -> None:
    assert len(cases["right"]) + len(cases["wrong"]) >= 60


@pytest.mark.parametrize(
    ("text", "checked"),
    [
        ("The fee is 77 EUR [line 2].", "The fee is 77 EUR [not in the cited lines] [E1: docs/fees.md:2]."),
        ("The fee is 50 EUR [lines 1-2].", "The fee is 50 EUR [E1: docs/fees.md:1-2]."),
        ("Die Gebühr ist 77 EUR [Zeile 2].", "Die Gebühr ist 77 EUR [not in the cited lines] [E1: docs/fees.md:2]."),
        ("The fee is low [line 9].", "The fee is low [line 9] [no such place]."),
        ("The fee is 77 EUR (line 2).", "The fee is 77 EUR [not in the cited lines] [E1: docs/fees.md:2]."),
        ("The fee is 77 EUR (see lines 1-2).", "The fee is 77 EUR [not in the cited lines] [E1: docs/fees.md:1-2]."),
        ("Die Gebühr ist 50 EUR (Zeile 2).", "Die Gebühr ist 50 EUR [E1: docs/fees.md:2]."),
        ("The fee is low (line 9).", "The fee is low (line 9) [no such place]."),
        ("We take the tram (line 9) for 3 EUR.", "We take the tram (line 9) for 3 EUR."),
        ("Bus 4 (line 2) takes 99 minutes.", "Bus 4 (line 2) takes 99 minutes."),
        ("The brochure (page 7) names 3 EUR.", "The brochure (page 7) names 3 EUR."),
    ],
)
def test_lines_alone_are_those_of_the_only_document_that_was_read(text: str, checked: str) -> None:
    look = Quotations([Passage("E1", "docs/fees.md", 1, "# Fees\nThe fee is 50 EUR.")], ["E1"])
    assert look.check(text).text == checked


@pytest.mark.parametrize(
    ("line", "right", "wrong"),
    [
        ("Cover starts on the first of February 2027.", "from 1 February 2027 [E1]", "from 2 February 2027 [E1]"),
        (
            "Cover starts on 1 February 2027.",
            "from the first of February [E1]",
            "from the second of February 2027 [E1]",
        ),
        ("We close on the thirty-first of December.", "closed on 31 December [E1]", "closed on 30 December [E1]"),
        ("Der Vertrag beginnt am ersten Februar 2027.", "from 2027-02-01 [E1]", "from 2027-02-02 [E1]"),
        ("Le bail commence le premier février 2027.", "from 1 February 2027 [E1]", "from 1 March 2027 [E1]"),
        ("Die Miete ist am fünfzehnten jedes Monats fällig.", "on the 15th of each month [E1]", "on the 16th [E1]"),
        ("Due on the 15th of each month.", "the fifteenth of each month [E1]", "the sixteenth of each month [E1]"),
        ("Open on 21 May 2026.", "Open on the twenty first of May [E1].", "Open on the twenty second of May [E1]."),
        ("Wir trafen uns im Mai 2026.", "Das zweite Mai-Treffen war lang [E1].", "Der zweite Mai war lang [E1]."),
        ("We met in May 2026.", "The second May meeting was long [E1].", "The second of May was long [E1]."),
    ],
)
def test_a_day_in_words_is_the_day_in_digits(line: str, right: str, wrong: str) -> None:
    look = Quotations([Passage("E1", "docs/terms.md", 1, line)], ["E1"])
    assert not _MARK.search(look.check(right).text)
    assert _MARK.search(look.check(wrong).text)
