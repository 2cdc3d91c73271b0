"""Figures in any spelling: what is spelled anew is found, and what is another figure is not."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.citations import NOT_IN_CITED_LINES
from council.deliberation.decision import look_up
from council.deliberation.quotations.figure_reading import figures, readings
from council.deliberation.quotations.lookup import Quotations
from council.deliberation.quotations.passages import Passage
from council.deliberation.transcript import Transcript
from council.turns.evidence import Evidence

AMOUNTS = (
    "{0:,} EUR", "EUR {0:,}", "€{0:,}", "{0} euros", "{1} €", "{1} Euro", "{2} EUR", "{2} euro", "EUR {3}", "{0:,}.00 EUR",
    "{1},00 €",
)  # fmt: skip
DATES = ("%-d %B %Y", "%B %-d, %Y", "%d.%m.%Y", "%-d.%-m.%Y", "%Y-%m-%d", "%-d %b %Y", "%b %-d, %Y", "%-d. %B %Y")


def amount(style: str, value: int) -> str:
    grouped = f"{value:,}"
    return style.format(value, grouped.replace(",", "."), grouped.replace(",", " "), grouped.replace(",", "'"))


def is_marked(said: str, source: str) -> bool:
    look = Quotations([Passage("E1", "a.md", 1, f"{source}\n")], ["E1"])
    return NOT_IN_CITED_LINES in look.check(f"It says {said} [E1: a.md:1].").text


@given(value=st.integers(13, 99_999_999), said=st.sampled_from(AMOUNTS), source=st.sampled_from(AMOUNTS))
def test_an_amount_is_found_in_every_spelling(value: int, said: str, source: str) -> None:
    assert not is_marked(amount(said, value), f"The price is {amount(source, value)}.")


@given(
    value=st.integers(13, 99_999_999),
    other=st.integers(13, 99_999_999),
    said=st.sampled_from(AMOUNTS),
    source=st.sampled_from(AMOUNTS),
)
def test_another_amount_is_marked_in_every_spelling(value: int, other: int, said: str, source: str) -> None:
    assert is_marked(amount(said, other), f"The price is {amount(source, value)}.") == (value != other)


@given(day=st.dates(date(1990, 1, 1), date(2099, 12, 31)), said=st.sampled_from(DATES), source=st.sampled_from(DATES))
def test_a_date_is_found_in_every_spelling(day: date, said: str, source: str) -> None:
    assert not is_marked(day.strftime(said), f"It ends on {day.strftime(source)}.")


@pytest.mark.parametrize(("day", "is_marked"), [("2026-11-22", False), ("2026-11-21", True), ("", True)])
def test_the_day_of_the_task_needs_no_line_that_says_it(day: str, is_marked: bool) -> None:
    read = Evidence("A_ROLE", 0, "", id="E1", title="a.md", path="a.md", text="The offer is valid until 15 December.\n")
    look = look_up(Transcript("Is the offer still valid?", [read], day=day))
    said = look.check("As of 22 November 2026 the offer is valid [E1: a.md:1].").text
    assert (NOT_IN_CITED_LINES in said) == is_marked


@given(
    day=st.dates(date(1990, 1, 1), date(2099, 12, 31)),
    days=st.integers(1, 400),
    said=st.sampled_from(DATES),
    source=st.sampled_from(DATES),
)
def test_another_date_is_marked_in_every_spelling(day: date, days: int, said: str, source: str) -> None:
    assert is_marked((day + timedelta(days)).strftime(said), f"It ends on {day.strftime(source)}.")


@pytest.mark.parametrize(
    "behind", ["incl. VAT", "(exkl. MwSt.)", "lt. Angebot", ", vgl. Anlage", "für Whg. A", "selon M. Durand"]
)
def test_a_figure_before_an_abbreviation_belongs_to_the_citation_behind_it(behind: str) -> None:
    source = "The price is 28,676 EUR."
    assert is_marked(f"99,999 EUR {behind}", source)
    assert not is_marked(f"28,676 EUR {behind}", source)


@pytest.mark.parametrize(
    ("spelled", "values"),
    [
        ("21,900", {21900}),
        ("21.900", {21900, 21.9}),
        ("21 900", {21900}),
        ("21'900", {21900}),
        ("1,234,567.5", {1234567.5}),
        ("1.234.567,5", {1234567.5}),
        ("12,34,567", {1234567}),
        ("0.125", {0.125}),
        ("3,5", {3.5}),
        ("1.2.3", set()),
    ],
)
def test_the_readings_of_a_number(spelled: str, values: set[float]) -> None:
    assert {float(value) for value in readings(spelled)} == values


@pytest.mark.parametrize(
    "text",
    [
        "docs/02-offers.md",
        "Option 2",
        "see line 8",
        "COVID-19",
        "A4 and B12",
        "1. First\n2. Second",
        "## 3. Costs",
        "v1.2.3",
    ],
)
def test_parts_of_names_and_the_numbers_of_a_list_are_no_figures(text: str) -> None:
    assert [figure.text for figure in figures(text, said=True) if figure.kind != "label"] == []
