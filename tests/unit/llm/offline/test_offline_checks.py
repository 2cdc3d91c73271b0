"""The rules: numbers that disagree and near misses, open items, absolutes, owners, headings, named files."""

from __future__ import annotations

import pytest

from council.llm.base import Source
from council.llm.offline.mismatches import mismatches
from council.llm.offline.rules import absolutes, empty_headings, obligations, open_items, options, ownerless, positions
from council.llm.offline.task_files import unread_files
from council.llm.offline.text import Corpus, read_corpus


def read(*texts: str) -> Corpus:
    return read_corpus([Source(f"E{i}", f"docs/{i}.md", text) for i, text in enumerate(texts, 1)])


def disagreeing(*texts: str) -> list[tuple[str, str, str]]:
    return [(" ".join(m.words), m.first.shown, m.second.shown) for m in mismatches(read(*texts).statements)]


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        ("The pilot costs 42,000 EUR.", "Pilot budget: €48,000", ("pilot", "42,000 EUR", "€48,000")),
        ("Hosting budget: 900 EUR per year.", "| Item | Sum |\n|-|-|\n| Hosting budget | 1,200 EUR/year |",
         ("hosting budget", "900 EUR", "1,200 EUR")),
        ("The spring season opens on 6 March 2027.", "Spring season opens: 2027-03-13",
         ("spring season opens", "6 March 2027", "2027-03-13")),
        ("A full restore takes 2 hours.", "| Step | Time |\n|-|-|\n| Full restore, start to end | 6 h 40 min |",
         ("full restore", "2 hours", "6 h 40 min")),
        ("Data migration takes three days.", "We planned data migration at 5 days.", ("data migration", "three days", "5 days")),
        ("Uptime: 99.5 %", "The uptime is 99.9 percent.", ("uptime", "99.5 %", "99.9 percent")),
        ("| Item | Cost (EUR) |\n|-|-|\n| Desk lamp | 40 |", "The desk lamp costs 55 EUR.", ("desk lamp", "40 EUR", "55 EUR")),
    ],
)  # fmt: skip
def test_one_label_with_two_figures_is_found(left: str, right: str, found: tuple[str, str, str]) -> None:
    ((words, first, second),) = disagreeing(left, right)
    assert (words, first.strip(), second) == found


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("The pilot costs 42,000 EUR.", "Pilot budget: 42.000 EUR"),  # one value in two spellings
        ("The pilot costs about 42,000 EUR.", "The pilot costs 43,500 EUR."),  # rounded
        ("Notice period: 24 hours", "The notice period is 1 day."),  # one value in two units
        ("Basic plan: 20 EUR per month", "Premium plan: 40 EUR per month"),  # two things
        ("Data migration takes 3 days.", "The data migration rehearsal takes 1 day."),  # another head
        ("Hosting budget: 900 EUR per year", "Hosting budget: 75 EUR per month"),  # other rates
        ("Hosting budget 2026: 800 EUR", "Hosting budget 2027: 900 EUR"),  # other years
        ("Delivery time is 3 to 5 days.", "Delivery time is 4 days."),  # a range
        ("The reply delay is up to 5 days.", "The reply delay is 3 days."),  # a bound
        ("The contract ends on 30 June 2027.", "The contract starts on 1 July 2026."),
        ("Restore test on 5 December 2026", "The report on the restore test came on 9 December 2026"),
        ("The pilot budget rose from 42,000 EUR to 48,000 EUR.", "Pilot budget: 48,000 EUR"),
        ("Date: 3 March 2027", "Date: 9 March 2027"),
        ("The site opens in March 2027.", "The site opens on 6 March 2027."),  # one is less exact
        ("Issue #1474 is open.", "Issue #2114 is open."),
    ],
)
def test_near_misses_are_not_reported(left: str, right: str) -> None:
    assert disagreeing(left, right) == []


def test_rows_of_one_table_and_sections_built_alike_do_not_disagree() -> None:
    table = "| | Old server | New server |\n|-|-|-|\n| Yearly cost | 10 EUR | 20 EUR |\n| Yearly cost of it | 30 EUR | 4 EUR |"
    offer = "## Offer {}\n\n- Yearly hosting support: {} EUR\n- Setup work fee: {} EUR\n\n"
    offers = offer.format("A", 1, 2) + offer.format("B", 3, 4)
    assert disagreeing(table) == []
    assert disagreeing(offers) == []


def test_a_change_log_is_a_series_and_no_contradiction() -> None:
    log = "".join(f"- 2026-0{month}-01: full history published here\n" for month in range(1, 8))
    assert disagreeing(log) == []


def test_open_items_are_found_by_mark_by_wording_and_by_section() -> None:
    corpus = read(
        "- [ ] Call the host.\n- [x] Pay the bill.\n- TODO: ask Ann.\n\nThe date is to be decided. It was not yet tested.\n"
        "All is settled here. Payment is TBD.\nA pending draft needs to be done.\n"
        "\n## Open questions\n\n- Who holds the key?\n\n## Notes\n\n- The key is red.\n"
    )
    assert [s.text for s in open_items(corpus.statements)] == [
        "Call the host.",
        "TODO: ask Ann.",
        "The date is to be decided.",
        "It was not yet tested.",
        "Payment is TBD.",
        "Who holds the key?",
    ]


def test_absolutes_need_no_source_and_no_number_and_strong_ones_lead() -> None:
    corpus = read(
        "All bookings are safe. We never lose a booking. It never failed in 214 days. It never fails "
        "([log](log.md)). The key must never leave the room. Will it never end? Every Friday the bookings are copied."
    )
    assert [s.text for s in absolutes(corpus.statements, {"book"})] == [
        "We never lose a booking.",
        "All bookings are safe.",
    ]


def test_obligations_in_the_passive_without_a_name_have_no_owner() -> None:
    corpus = read(
        "Backups must be checked by June. Backups must be checked by Tomas. Ann must check the backups. "
        "The board must be told. Doors must not be locked. Keys must be kept safe."
    )
    assert [s.text for s in ownerless(corpus.statements)] == [
        "Backups must be checked by June.",
        "Keys must be kept safe.",
    ]
    assert len(obligations(corpus.statements)) == 6


def test_positions_are_statements_in_which_somebody_prefers_or_decides() -> None:
    corpus = read("The group prefers option B. Option A is old. The day is to be decided. The board decided on tea.")
    assert [s.text for s in positions(corpus.statements)] == [
        "The group prefers option B.",
        "The board decided on tea.",
    ]
    assert [s.text for s in options(corpus.statements)][:2] == [s.text for s in positions(corpus.statements)]


def test_a_heading_is_empty_only_without_text_and_without_a_deeper_heading() -> None:
    corpus = read("# Title\n\n## Full\n\ntext\n\n## Parent\n\n### Child\n\ntext\n\n## Empty\n\n## Last\n")
    assert [h.text for h in empty_headings(corpus.headings)] == ["Empty", "Last"]


def test_the_last_heading_of_an_excerpt_is_not_called_empty() -> None:
    corpus = read_corpus([Source("E1", "docs/a.md", "text\n\n## Last\n", 10)])
    assert empty_headings(corpus.headings) == []


def named(text: str, *others: str, task: str = "") -> list[str]:
    sources = [Source("E1", "docs/a.md", text), *(Source("E9", path, "x") for path in others)]
    return [file.path for file in unread_files(read_corpus(sources), task)]


def test_named_files_are_spelt_from_the_home_and_read_ones_left_out() -> None:
    text = (
        "See `docs/costs.md`, [the plan](./plan.md), [notes](../notes/n.txt), b.csv and README.md.\n"
        "Read before: docs/a.md, a.md, `docs/old.md`, [old](old.md).\n"
    )
    assert named(text, "docs/old.md") == ["docs/plan.md", "notes/n.txt", "docs/costs.md", "docs/b.csv", "README.md"]


def test_addresses_hidden_files_absolute_paths_and_paths_outside_the_home_are_no_named_files() -> None:
    text = (
        "https://x.org/a/b.md `.env` `.git/config.toml` `/etc/pass.txt` [x](../../up.md) node.js v1.2 mail@x.py `a*.md`"
    )
    assert named(text) == []


def test_files_that_the_task_names_count_too() -> None:
    assert named("Nothing here.", task="Compare docs/a.md with docs/b.md.") == ["docs/b.md"]
