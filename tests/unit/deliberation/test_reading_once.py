"""A source is read once, however many figures and citations a decision has."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from council.citations import NOT_IN_CITED_LINES
from council.deliberation.quotations import cited_figures, passages, table_cells
from council.deliberation.quotations.lookup import Quotations
from council.deliberation.quotations.passages import Passage


def looked_up(text: str, source: str, path: str = "a.md") -> tuple[Quotations, int]:
    """The look-up, and how many figures it marked."""
    look = Quotations([Passage("E1", path, 1, f"{source}\n")], ["E1"])
    return look, look.check(text).text.count(NOT_IN_CITED_LINES)


@pytest.mark.parametrize("end", [".", ""])
def test_the_lines_that_many_citations_share_are_read_once_and_not_kept_for_each(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    read: list[int] = []
    figures = table_cells.figures

    def counted(text: str, language: str) -> Any:
        read.append(len(text))
        return figures(text, language)

    monkeypatch.setattr(table_cells, "figures", counted)
    source = "\n".join(f"Row {number}: it costs {number + 1000} EUR{end}" for number in range(1, 1201))
    text = "\n".join(f"It costs {number + 1000} EUR [E1:{number}-1200]." for number in range(1, 31))
    look, marked = looked_up(f"{text}\nIt costs 777.77 GBP [E1:2-1200].", source)
    assert marked == 1
    assert sum(read) < 5 * len(source)
    kept = sum(len(each.lines) for each in look.figures._known.values())
    assert kept <= cited_figures._MAX_KEPT_LINES + 1_200


def test_a_date_that_goes_on_in_the_next_line_is_read_wherever_a_long_text_is_cut() -> None:
    source = "\n".join(
        f"The offer of that year, number {number}, ends on 14\nDecember 2026 at noon" for number in range(200)
    )
    assert looked_up("It ends on 14 December 2026 [E1:3-4].", source)[1] == 0
    wrapped = "\n".join(
        f"the fee\nof it\nin all is EUR {number}\nand it ends\n\n\n\n\n" for number in range(1000, 1100)
    )
    assert looked_up("The fee is EUR 1,093, or 1,094 EUR, not 1,000 USD [E1].", wrapped)[1] == 1


def test_the_limits_of_a_source_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(cited_figures, "hedge_of", lambda text, start, end: asked.append(start) or "")
    source = "\n".join(f"Row: it costs {number + 1000} EUR." for number in range(100))
    text = " and ".join(f"at least {number + 1000} EUR" for number in range(50))
    assert looked_up(f"It costs {text} [E1].", source)[1] == 0
    assert len(asked) == 100


def test_the_names_with_numbers_of_a_source_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    pattern = passages.NAMED_NUMBER
    counted = SimpleNamespace(finditer=lambda text: searched.append(text) or pattern.finditer(text))
    monkeypatch.setattr(passages, "NAMED_NUMBER", counted)
    source = "Station Road 14 Version 31 (Version 15)"
    text = "Road 14, Version 15, Version 31 and Version 92 [E1].\nRoad 14 [E1]."
    assert looked_up(text, source)[1] == 1
    assert searched == [f"{source}\n"]


def test_the_header_of_a_table_is_read_once_for_the_numbers_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    split: list[int] = []
    cells = table_cells.Cells._cells

    def counted(self: table_cells.Cells, number: int) -> list[str]:
        split.append(number)
        return cells(self, number)

    monkeypatch.setattr(table_cells.Cells, "_cells", counted)
    header = ",".join(["id", *(f"column{re.sub('[0-9]', 'x', str(at))}" for at in range(200))])
    row = ",".join(str(number) for number in range(1000, 1201))
    assert looked_up("It costs 99,999 EUR [E1:2].", f"{header}\n{row}", "a.csv")[1] == 1
    assert len(split) < 10
