"""Quotations of a decision, looked up in what was read."""

from __future__ import annotations

import pytest

from council.deliberation.quotations import Passage, Quotations, passages_of
from council.deliberation.transcript import Evidence

NEEDS = """\
# Needs
The archive grows by 40 GB a month.

It must outlive its **vendor**, and "open" formats
are preferred by all three boards.
"""
PLAN = "The plan is old.\nNobody has read the plan since May.\nThe archive grows by 10 GB a month.\n"
OWN = "We decided that the archive grows by 99 GB a month.\n"
PASSAGES = (
    Passage("E1", "docs/needs.md", 1, NEEDS),
    Passage("E2", "docs/plan.md", 11, PLAN),
    Passage("E3", "artifacts/old.md", 1, OWN, own=True),
    Passage("E4", "", 1, "docs/needs.md\ndocs/plan.md"),
)
SAID = ('I would wait until the vendor answers. It reads "the archive grows by 50 GB a month" there.',)
LOOK = Quotations(PASSAGES, ("E1", "E2", "E3", "E4"), SAID)


@pytest.mark.parametrize(
    "text",
    [
        'It says "The archive grows by 40 GB a month." [E1: docs/needs.md:2]',
        "It says “The archive  grows by\n40 GB a month” [E1: docs/needs.md:2].",
        'It says "the archive grows by 40 GB a month," (see [E1: docs/needs.md:2]).',
        '[E1: docs/needs.md:2] says "grows by 40 GB".',
        "It says «It must outlive its vendor, and “open” formats are preferred» [E1: docs/needs.md:4-5].",
        'It says "It must outlive … preferred by all three" [E1: docs/needs.md:4].',
        'It says "outlive its vendor" [E1].',
        "> The archive grows by 40 GB a month.\n\n[E1: docs/needs.md:2]",
        "> The archive grows by 40 GB a month. [E1: docs/needs.md:2]",
        'It says "Nobody has read the plan since May" [E2: docs/plan.md:12].',
        'There is "docs/plan.md" [E4].',
        'Both: "grows by 40 GB" [E2: docs/plan.md:13] and [E1: docs/needs.md:2].',
        "Without a citation it is true as well: “Nobody has read the plan since May.”",
    ],
)
def test_what_stands_where_it_is_cited_stays_as_it_is(text: str) -> None:
    checked = LOOK.check(text)
    assert checked.text == text
    assert [finding.outcome for finding in checked.findings] == ["found"]


@pytest.mark.parametrize(
    ("text", "corrected"),
    [
        ('"grows by 40 GB a month" [E1: docs/needs.md:5]', '"grows by 40 GB a month" [E1: docs/needs.md:2]'),
        ('"grows by 10 GB" [E1: docs/needs.md:2]', '"grows by 10 GB" [E2: docs/plan.md:13]'),
        ('"outlive its vendor" [E2]', '"outlive its vendor" [E1: docs/needs.md:4]'),
        ('"outlive its vendor" [E9: docs/gone.md:1]', '"outlive its vendor" [E1: docs/needs.md:4]'),
        (
            "> Nobody has read the plan\n> since May. [E2: docs/plan.md:1]",
            "> Nobody has read the plan\n> since May. [E2: docs/plan.md:12]",
        ),
        ('"formats are preferred" [E1: docs/needs.md:1]', '"formats are preferred" [E1: docs/needs.md:4-5]'),
    ],
)
def test_a_citation_of_the_wrong_place_is_corrected(text: str, corrected: str) -> None:
    checked = LOOK.check(text)
    assert checked.text == corrected
    [finding] = checked.findings
    assert finding.outcome == "moved"
    assert finding.cited in text
    assert finding.place in corrected


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ('"grows by 70 GB a month" [E1: docs/needs.md:2].', '"grows by 70 GB a month" [unverified] [E1: docs/needs.md:2].'),
        ('"he archive grows" [E1: docs/needs.md:2]', '"he archive grows" [unverified] [E1: docs/needs.md:2]'),
        ("“nobody ever said these words here”", "“nobody ever said these words here” [unverified]"),
        ("> The vendor is fine. [E1: docs/needs.md:2]", "> The vendor is fine. [unverified] [E1: docs/needs.md:2]"),
        ("> The vendor is fine.\n\n— [E1: docs/needs.md:2]", "> The vendor is fine. [unverified]\n\n— [E1: docs/needs.md:2]"),
        ('"grows … by three boards" [E1: docs/needs.md:2]', '"grows … by three boards" [unverified] [E1: docs/needs.md:2]'),
    ],
)  # fmt: skip
def test_what_stands_nowhere_is_marked(text: str, marked: str) -> None:
    checked = LOOK.check(text)
    assert checked.text == marked
    assert [finding.outcome for finding in checked.findings] == ["unverified"]


def test_the_councils_own_page_verifies_nothing() -> None:
    checked = LOOK.check('"the archive grows by 99 GB a month" [E3: artifacts/old.md:1]')
    assert "[unverified]" in checked.text
    assert "council wrote itself" in checked.findings[0].reason


def test_a_repeated_fabrication_is_not_excused_by_the_agent_who_made_it_up() -> None:
    assert "[unverified]" in LOOK.check("As said, “the archive grows by 50 GB a month”.").text


@pytest.mark.parametrize(
    "text",
    [
        'The "archive" is a term in quotation marks.',
        "The AUDITOR said “I would wait until the vendor answers”.",
        'In code: `say "nobody ever said these words here"`.',
        '```json\n{"answer": "nobody ever said these words here"}\n```',
        "> A remark without any citation.",
        'A 5" disk and a 3" disk are not a quotation of anything.',
    ],
)
def test_what_is_no_quotation_is_left_alone(text: str) -> None:
    checked = LOOK.check(text)
    assert checked.text == text
    assert checked.findings == ()


def test_a_citation_of_an_id_never_issued_is_marked() -> None:
    checked = LOOK.check("It grows [E9: docs/a.md:3], see [E1, E12] and [E2].")
    assert checked.text == ("It grows [E9: docs/a.md:3] [no such evidence], see [E1, E12] [no such evidence] and [E2].")
    assert checked.unknown_ids == ("E9", "E12")


def test_passages_of_a_cortex_answer_keep_their_own_places() -> None:
    text = (
        f"docs/needs.md:2-3 sha256 {'a' * 64} (under: Needs)\n    The archive grows\n    by 40 GB.\n\n"
        f"artifacts/old.md:7-7 sha256 {'b' * 64} [the council's own artifact, not a source]\n    It grows by 99 GB.\n"
    )
    item = Evidence("AUDITOR", 1, "", "QUERY_CORTEX", "q", "E5", "2 passages for “q”", text=text)
    first, second = passages_of(item)
    assert (first.path, first.first_line, first.own) == ("docs/needs.md", 2, False)
    assert (second.path, second.first_line, second.own) == ("artifacts/old.md", 7, True)
    checked = Quotations([first, second], ["E5"]).check('"by 40 GB" [E5: docs/needs.md:9] "grows by 99 GB" [E5]')
    assert checked.text == '"by 40 GB" [E5: docs/needs.md:3] "grows by 99 GB" [unverified] [E5]'
