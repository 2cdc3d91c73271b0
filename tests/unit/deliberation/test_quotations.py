"""Quotations of a decision, looked up in what was read."""

from __future__ import annotations

import pytest

from council.deliberation.quotations.lookup import MAX_LOOKED_UP, Quotations
from council.deliberation.quotations.passages import Passage, passages_of
from council.turns.evidence import Evidence

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
    assert "own words" in checked.findings[0].reason


def test_a_repeated_fabrication_is_not_excused_by_the_agent_who_made_it_up() -> None:
    assert "[unverified]" in LOOK.check("As said, “the archive grows by 50 GB a month”.").text


@pytest.mark.parametrize(
    "text",
    [
        'The "archive" is a term in quotation marks.',
        "The file says “never fails today”, which is a short one.",
        "The boards' plan of the 1990s and the dogs' food: it's the '90s, and the boards' will.",
        "A file name `docs/needs.md` [E1: docs/needs.md:2] and a name `sqlite3_open()` [E1: docs/needs.md:2].",
        'In code: `say "nobody ever said these words here"`.',
        '```json\n{"answer": "nobody ever said these words here"}\n```',
        "> A short remark.",
        "> [!NOTE]\n> This callout is a remark of the writer.",
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


def test_of_several_places_the_unknown_one_alone_is_marked() -> None:
    checked = LOOK.check("It grows [E9:5; E1:2].")
    assert checked.text == "It grows [E9: 5] [no such evidence] [E1: docs/needs.md:2]."


FABRICATED = "the archive grows by 90 GB a month"


@pytest.mark.parametrize(
    "text",
    [
        f"{opening}{FABRICATED}{closing}|{tail}"
        for opening, closing in [
            ('"', '"'), ("“", "”"), ("„", "“"), ("„", "”"), ("„", '"'), ("”", "”"), ("«", "»"), ("« ", " »"), ("»", "«"),
            ("»", "»"), ("‹", "›"), ("›", "‹"), ("‘", "’"), ("‚", "‘"), ("'", "'"), ("「", "」"), ("『", "』"), ("〝", "〟"),
            ("<q>", "</q>"), ("It says: *“", "”"),
        ]
        for tail in (" [E1: docs/needs.md:2]", " stands there.")
    ],
)  # fmt: skip
def test_a_fabrication_is_marked_in_any_pair_of_quotation_marks(text: str) -> None:
    checked = LOOK.check(text.replace("|", ""))
    assert checked.text == text.replace("|", " [unverified]")


@pytest.mark.parametrize(
    "text",
    [
        "> The archive grows by 90 GB| [E1: docs/needs.md:2]",
        f"> {FABRICATED}|",
        f"> “{FABRICATED}”|\n> — needs.md, line 2 [E1: docs/needs.md:2]",
        "See `grows by 90 GB`| [E1: docs/needs.md:2].",
        "```text\ngrows by 90 GB a month\n```\n| [E1: docs/needs.md:2]".replace("\n| ", "|\n"),
        "As [E1: docs/needs.md:2] says:\n\n```text\ngrows by 90 GB a month\n```|",
        "“shrinks every week”| [E1: docs/needs.md]",
        "“shrinks every week”| [E1: the first paragraph]",
        "It says “shrinks every week”| and “grows by 40 GB a month” [E1: docs/needs.md:2].",
        f"“shrinks every week”|, {'which the document says for all to read, ' * 4}[E1: docs/needs.md:2].",
        f"“{FABRICATED * 100}”| [E1: docs/needs.md:2]",
        "“The archive grows by 90 GB a month.\n\nIt must outlive its vendor.”| [E1: docs/needs.md:2-4]",
        "文件说“我们一定会在明年删除所有数据”|。",
        "As docs/plan.md says: “I would wait until the vendor answers”|.",
        "“I would wait until the vendor answers”|, says plan.md.",
    ],
)
def test_a_fabrication_is_marked_however_it_is_cited(text: str) -> None:
    mark = "\n[unverified]" if "```" in text else " [unverified]"
    assert LOOK.check(text.replace("|", "")).text == text.replace("|", mark)


def test_a_text_of_many_lines_is_one_quotation() -> None:
    text = "“The archive grows by 40 GB a month.\n\nIt must outlive its vendor” [E1: docs/needs.md:2-4]"
    assert [finding.outcome for finding in LOOK.check(text).findings] == ["found"]


def test_what_a_member_said_is_counted_apart_and_left_alone() -> None:
    text = "The AUDITOR said “I would wait until the vendor answers”."
    checked = LOOK.check(text)
    assert checked.text == text
    assert [finding.outcome for finding in checked.findings] == ["said"]


def test_a_quotation_is_looked_up_in_each_citation_beside_it() -> None:
    text = (
        "“grows by 40 GB” [E2: docs/plan.md:13] [E1: docs/needs.md:2] and "
        "“read the plan” [E1: docs/needs.md:2; E2: docs/plan.md:12]"
    )
    checked = LOOK.check(text)
    assert [finding.outcome for finding in checked.findings] == ["found", "found"]
    assert checked.text.endswith("“read the plan” [E1: docs/needs.md:2] [E2: docs/plan.md:12]")


def test_one_of_two_quotations_of_a_citation_gets_its_own_place() -> None:
    checked = LOOK.check("“outlive its vendor” and “grows by 40 GB” [E1: docs/needs.md:2]")
    assert checked.text == "“outlive its vendor” [E1: docs/needs.md:4] and “grows by 40 GB” [E1: docs/needs.md:2]"


# ── words left out ───────────────────────────────────────────────────────────────────────────────────────────────────

POLICY = """We will not, in any case, delete the data of a member. A second sentence stands here.
A third one follows it. All users (including admins) must rotate their keys every month.
"""
RULES = Quotations([Passage("E1", "rules.md", 1, POLICY)], ["E1"])


@pytest.mark.parametrize(
    "words",
    [
        "We will … delete the data",
        "We will not, in any case … A third one follows",
        "A second sentence stands … We will not, in any case",
        "All … must rotate their keys",
        "All users [of both kinds] must rotate their keys",
    ],
)
def test_pieces_that_are_too_short_too_far_apart_or_out_of_order_are_no_quotation(words: str) -> None:
    assert [finding.outcome for finding in RULES.check(f"“{words}” [E1: rules.md:1-2]").findings] == ["unverified"]


@pytest.mark.parametrize(
    ("words", "full"),
    [
        (
            "will not, in any case … data of a member",
            "will not, in any case, delete the data of a member",
        ),
        (
            "delete the data of a member. […] A third one follows it",
            "delete the data of a member. A second sentence stands here. A third one follows it",
        ),
        ("All users [including admins] must rotate their keys", "All users (including admins) must rotate their keys"),
        ("A third [sic] one follows it", "A third one follows it"),
    ],
)
def test_words_left_out_are_shown(words: str, full: str) -> None:
    [finding] = RULES.check(f"“{words}” [E1: rules.md:1-2]").findings
    assert (finding.outcome, finding.full) == (("found", full) if "second" not in full else ("unverified", ""))


OFFER = Passage(
    "E1",
    "docs/offer.pdf",
    2,
    "[page 2]\nThe Kangoo costs 19,900 EUR and is\n[page 3]\ndelivered within two weeks.\n[page 4]\nValid until May.\n",
)
HIT = Passage("E2", "docs/offer.pdf", 9, "The guarantee lasts\nfor three years.\n")
PAGES = Quotations((OFFER, HIT, Passage("E3", "docs/needs.md", 1, NEEDS)), ("E1", "E2", "E3"))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ('"The Kangoo costs 19,900 EUR" [E1: docs/offer.pdf:p2]', None),
        ('"The Kangoo costs 19,900 EUR" [E1: docs/offer.pdf:2]', "[E1: docs/offer.pdf:p2]"),
        ('"The Kangoo costs 19,900 EUR" [E1: docs/offer.pdf, page 2]', "[E1: docs/offer.pdf:p2]"),
        ('"The Kangoo costs 19,900 EUR" [E1: docs/offer.pdf, pp. 2-3]', "[E1: docs/offer.pdf:p2-3]"),
        ('"The Kangoo costs 19,900 EUR" [E1: page 2]', "[E1: docs/offer.pdf:p2]"),
        ('"The Kangoo costs 19,900 EUR" [E1: offer.pdf:p4]', "[E1: docs/offer.pdf:p2]"),
        ('"costs 19,900 EUR and is delivered within two weeks" [E1: docs/offer.pdf:p2-3]', None),
        ('"The guarantee lasts for three years" [E1: docs/offer.pdf:p2]', "[E2: docs/offer.pdf:p9]"),
        ("Two weeks [E1: docs/offer.pdf:p2-40].", "[E1: docs/offer.pdf:p2-4]"),
    ],
)
def test_a_pdf_is_cited_by_its_pages_in_any_spelling(text: str, printed: str | None) -> None:
    checked = PAGES.check(text)
    before, _, rest = text.partition("[")
    after = rest.partition("]")[2]
    assert checked.text == (text if printed is None else f"{before}{printed}{after}")
    assert not checked.no_places
    assert all(finding.outcome != "unverified" for finding in checked.findings)


@pytest.mark.parametrize("place", ["docs/offer.pdf:p5", "docs/offer.pdf:p1", "docs/needs.md:p3"])
def test_a_page_that_nobody_read_or_that_a_text_does_not_have_is_marked(place: str) -> None:
    assert "[no such place]" in PAGES.check(f"So it is [E1: {place}].").text


def test_a_page_of_a_text_names_the_evidence_as_a_whole() -> None:
    assert PAGES.check("So it is [E3: page 3].").text == "So it is [E3]."
    assert PAGES.check('"outlive its vendor" [E3: page 3]').text == '"outlive its vendor" [E3: docs/needs.md:4]'


def test_what_is_left_out_before_and_behind_a_quotation_is_no_omission() -> None:
    [finding] = RULES.check("“… a second sentence stands here …” [E1: rules.md:1]").findings
    assert (finding.outcome, finding.full) == ("found", "")


# ── spelling ─────────────────────────────────────────────────────────────────────────────────────────────────────────

MARKED_UP = """The plan is _growing_ ~~slowly~~ **fast**, see [the list](http://a.example/list_of "all").

1. Write the schema.
2) Move the data.
- [ ] Tell all.

| Engine | Cost |
|---|---:|
| SQLite | 0 EUR |

The \ufb01rst of\ufb01ce of R&amp;D keeps it in snake_case, by
99. percentile, and cafe\u0301s\u00a0too.
在第三季度归档
数据每月增长四十GB，必须比供应商更长寿。
"""
SPELLED = Quotations([Passage("E1", "a.md", 1, MARKED_UP)], ["E1"])


@pytest.mark.parametrize(
    "words",
    [
        "The plan is growing slowly fast, see the list",
        "Write the schema. Move the data. Tell all.",
        "1. Write the schema. 2) Move the data.",
        "SQLite | 0 EUR",
        "SQLite 0 EUR",
        "The first office of R&D keeps it in snake_case",
        "in snake_case, by 99. percentile, and cafés too",
        "数据每月增长四十GB",
        "季度归档数据每月",
        "供应商",
    ],
)
def test_the_spelling_of_a_renderer_or_an_editor_does_not_count(words: str) -> None:
    [finding] = SPELLED.check(f"“{words}” [E1]").findings
    assert finding.outcome == "found"


@pytest.mark.parametrize(
    "words", ["The plan is grow", "Write the scheme.", "SQLite 1 EUR", "and cafes too", "THE PLAN IS growing"]
)
def test_letters_and_digits_do(words: str) -> None:
    [finding] = SPELLED.check(f"“{words}” [E1]").findings
    assert finding.outcome == "unverified"


LOOSE = Quotations([Passage("E1", "d.txt", 1, """We grant 2 % Skonto within 20 cm, z. B. at 10 000 EUR.
A well-known insur-
ance says no - maybe not, in 10-12 days, at -5 % growth.
The chair said: "we need a new roof" and closed.
It is now here with 12 345 678 parts; 2026 123 people and 5 30 cats came.
The rooms 1, 200 and 300 are open; signed at 1. 5 copies; they must re-sign the contract and the co-
operation of 3. 5. 2027. Answers come by E-Mail, or by email.
| Rent | 12 | **450** | 3 000 |
""")], ["E1"])  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        "2% Skonto", "20cm", "z.B.", "10000 EUR", "We grant 2% Skonto … z.B. at 10000 EUR", "a well known insurance",
        "insurance says no—maybe not", "10 – 12 days", "-5% growth", "12345678 parts",
        "The chair said: ‘we need a new roof’ and closed", "rooms 1, 200 and 300", "must re-sign the contract",
        "must re sign", "the cooperation", "the co-operation", "operation of 3.5.2027",
        "Rent 12 450", "| 12 | 450 | 3000 |", "Rent | 12 | 450", "come by Email", "come by E‑Mail, or by e-mail",
    ],
)  # fmt: skip
def test_white_space_hyphens_and_the_shape_of_inner_marks_do_not_count(words: str) -> None:
    [finding] = LOOSE.check(f"“{words}” [E1]").findings
    assert finding.outcome == "found"


@pytest.mark.parametrize(
    "words",
    [
        "It is nowhere", "now he re", "ell known", "Skon-tos", "1012 days", "10 12 days", "at 5% growth", "2026123 people",
        "530 cats", "123 45678 par", "2345678 parts", "rooms 1,200 and 300", "signed at 1.5 copies", "must resign the contract",
        "wellknown", "Rent 12450", "4503000", "come by EMail", "or by e mail",
    ],
)  # fmt: skip
def test_a_space_between_letters_and_a_hyphen_before_a_digit_do(words: str) -> None:
    [finding] = LOOSE.check(f"“{words}” [E1]").findings
    assert finding.outcome == "unverified"


@pytest.mark.parametrize(
    ("end", "marked"),
    [
        (" ([E1: docs/needs.md:2])", "| ([E1: docs/needs.md:2])"),
        (" (see [E1: docs/needs.md:2])", "| (see [E1: docs/needs.md:2])"),
        ("\n> Source: [E1: docs/needs.md:2]", "|\n> Source: [E1: docs/needs.md:2]"),
        (" Source: [E1: docs/needs.md:2]", "| Source: [E1: docs/needs.md:2]"),
        ("\n> (from [E1: docs/needs.md:2])", "|\n> (from [E1: docs/needs.md:2])"),
    ],
)
def test_what_leads_a_citation_in_is_no_part_of_a_block(end: str, marked: str) -> None:
    true, wrong = "> The archive grows by 40 GB a month.", "> The archive grows by 70 GB a month."
    assert [finding.outcome for finding in LOOK.check(f"{true}{end}").findings] == ["found"]
    assert LOOK.check(f"{wrong}{end}").text == wrong + marked.replace("|", " [unverified]")


# ── places ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "corrected"),
    [
        ("“grows by 40 GB” [E1: docs/needs.md:1-9999]", "“grows by 40 GB” [E1: docs/needs.md:2]"),
        ("“grows by 40 GB” [E2: docs/needs.md:2]", "“grows by 40 GB” [E1: docs/needs.md:2]"),
        ("“grows by 40 GB” [E1: needs.md:2]", "“grows by 40 GB” [E1: docs/needs.md:2]"),
    ],
)
def test_too_many_lines_another_id_and_half_a_path_are_corrected_beside_a_quotation(text: str, corrected: str) -> None:
    assert LOOK.check(text).text == corrected


@pytest.mark.parametrize(
    ("text", "corrected"),
    [
        ("It grows [E2: docs/needs.md:2].", "It grows [E1: docs/needs.md:2]."),
        ("It grows [E9: docs/needs.md:2].", "It grows [E1: docs/needs.md:2]."),
        ("It grows [E1: needs.md:2].", "It grows [E1: docs/needs.md:2]."),
        ("It grows [E1: ./docs/needs.md, lines 2–4].", "It grows [E1: docs/needs.md:2-4]."),
        ("It grows [E1: docs/needs.md:4-9999].", "It grows [E1: docs/needs.md:4-5]."),
        *(
            (f"It grows {cited}.", "It grows [E1: docs/needs.md:2].")
            for cited in (
                "[E1 · docs/needs.md:2]",
                "[E1/docs/needs.md:2]",
                "[E1; docs/needs.md; lines 2-2]",
                "[E1 in docs/needs.md:2]",
                '[E1: "docs/needs.md:2"]',
                "[E1: docs/needs.md:2.]",
                "[E1: docs/needs.md:2..2]",
                "[#E1: docs/needs.md:2]",
                "[E1#L2]",
                "`docs/needs.md:2`",
                "`needs.md:2`",
                "[E1: /docs/needs.md:2]",
                "[E1: docs\\needs.md:2]",
                "[E1: docs/needs.md:2, accessed on 3 May 2026]",
                "(Evidence 1, line 2)",
                "[EVIDENCE 1: docs/needs.md:2]",
                "(line 2 of needs.md)",
                "[Zeile 2 in docs/needs.md]",
            )
        ),
        ("According to docs/needs.md:2, it grows.", "According to [E1: docs/needs.md:2], it grows."),
        ("It grows, needs.md:2-3.", "It grows, [E1: docs/needs.md:2-3]."),
        ("See other.md:2 and x/docs/needs.md:2.", "See other.md:2 and x/docs/needs.md:2."),
        ("It grows (source: docs/needs.md).", "It grows [E1: docs/needs.md]."),
        ("It grows (lines 2 and 4 of needs.md).", "It grows [E1: docs/needs.md:2] [E1: docs/needs.md:4]."),
        ("It grows [evidence 1 shows].", "It grows [evidence 1 shows]."),
        ("It grows [Evidence 1, line 2; Evidence 2].", "It grows [E1: docs/needs.md:2] [E2]."),
        ("It grows (Evidence 1 and 2).", "It grows [E1] [E2]."),
        ("It grows (evidence 1, 2 und 3).", "It grows [E1] [E2] [E3]."),
        ("It grows (Evidence 1, lines 2 and 4).", "It grows [E1: docs/needs.md:2] [E1: docs/needs.md:4]."),
        ("It grows (Zeile 2 der needs.md).", "It grows [E1: docs/needs.md:2]."),
        ("It grows [E1, § 2].", "It grows [E1, § 2]."),
        ("It grows by 77 GB (E1, § 2).", "It grows by 77 GB [not in the cited lines] (E1, § 2)."),
        ("It grows by 40 GB (E1, § 2).", "It grows by 40 GB (E1, § 2)."),
        (
            "It grows (as it said (twice) in needs.md, line 2).",
            "It grows (as it said (twice) in [E1: docs/needs.md:2]).",
        ),
        ("It grows (needs.md), as load(needs.md) says.", "It grows [E1: docs/needs.md], as load(needs.md) says."),
        ("We write it down (other.md), says `other.md:2`.", "We write it down (other.md), says `other.md:2`."),
        ("It grows [E1: 2-4].", "It grows [E1: docs/needs.md:2-4]."),
        ("It grows [E1: docs/needs.md:2, 4].", "It grows [E1: docs/needs.md:2] [E1: docs/needs.md:4]."),
    ],
)
def test_a_citation_whose_place_is_not_in_doubt_is_spelled_as_the_page_spells_it(text: str, corrected: str) -> None:
    checked = LOOK.check(text)
    assert checked.text == corrected
    assert checked.no_places == checked.unknown_ids == ()


@pytest.mark.parametrize(
    ("cited", "printed"),
    [
        ("[E1:2]", "[E1: docs/needs.md:2]"),
        ("[E1, lines 2-4]", "[E1: docs/needs.md:2-4]"),
        ("(E1:2)", "[E1: docs/needs.md:2]"),
        ("[docs/needs.md:2]", "[E1: docs/needs.md:2]"),
        ("(docs/needs.md, line 2)", "[E1: docs/needs.md:2]"),
        ("[E1: docs/needs.md:2, 4]", "[E1: docs/needs.md:2] [E1: docs/needs.md:4]"),
    ],
)
def test_a_form_that_says_the_same_place_is_completed_in_silence(cited: str, printed: str) -> None:
    checked = LOOK.check(f"It grows {cited}.")
    assert (checked.text, checked.corrected) == (f"It grows {printed}.", ())


@pytest.mark.parametrize(
    "cited", ["[needs.md:2]", "[E1: needs.md:2]", "[E2: docs/needs.md:2]", "[E1:4-99]", "[E3: page 3]"]
)
def test_a_path_an_id_or_a_place_that_differs_is_told_as_corrected(cited: str) -> None:
    assert [old for old, _ in LOOK.check(f"It grows {cited}.").corrected] == [cited]


def test_a_quotation_that_is_cited_by_its_path_alone_is_found_as_cited() -> None:
    for text, at in (('"It must outlive" [docs/needs.md:4]', LOOK), ('"costs 19,900 EUR" [docs/offer.pdf:p2]', PAGES)):
        [finding] = at.check(text).findings
        assert (finding.outcome, bool(finding.cited)) == ("found", True)


@pytest.mark.parametrize(
    "place",
    [
        "E1: /etc/passwd:1",
        "E1: /needs.md:99",
        "E1: docs/needs.md:999",
        "E2: docs/plan.md:1-10",
        "E4: docs/a.md:3",
        "E1: docs/gone.md",
        "docs/gone (1).md:4",
        "docs/gone [1].md",
        "E1: docs/gone [1].md:2",
        "E1: docs/needs (2).md",
        "docs/needs(2).md:4",
    ],
)
def test_a_place_that_nobody_read_is_marked(place: str) -> None:
    checked = LOOK.check(f"It grows [{place}].")
    assert checked.text == f"It grows [{place}] [no such place]."
    assert checked.no_places == (place,)


def test_one_of_two_ids_and_a_path_with_brackets_are_marked_in_round_ones() -> None:
    assert LOOK.check("It grows (Evidence 1 and 9).").unknown_ids == ("E9",)
    assert LOOK.check("It grows (docs/gone (1).md:4).").no_places == ("docs/gone (1).md:4",)


@pytest.mark.parametrize(
    "text", ["[E1]", "[E1: docs/needs.md]", "[E1: docs/needs.md:2-5]", "[E4: the list]", "[E1, E2]"]
)
def test_a_true_citation_stays_as_it_is(text: str) -> None:
    assert LOOK.check(f"It grows {text}.").text == f"It grows {text}."


ODD = [
    "docs/Protokoll 12.1.2027, Vorstand.md", "Offer; revised.md", "#1 offer.md", "E1 notes.md", "docs/Ausgaben p.3.md",
    "docs/Angebot [final].md", "docs/offer (1).md", "docs/costs, E2 and E3.md",
]  # fmt: skip


@pytest.mark.parametrize("path", ODD)
@pytest.mark.parametrize(
    "spelling",
    [
        "[E1 {path}:4]",
        "[E1: {path}, line 4]",
        "[{path}:4]",
        "({path}, line 4)",
        "[E1:4]",
        "[E1: {path}:4; E2: docs/plan.md:12]",
    ],
)
def test_a_path_with_any_punctuation_is_known_because_it_was_read(path: str, spelling: str) -> None:
    look = Quotations([Passage("E1", path, 1, NEEDS), PASSAGES[1]], ("E1", "E2"))
    checked = look.check(f"It must outlive it {spelling.format(path=path)}.")
    assert checked.text.startswith(f"It must outlive it [E1: {path}:4]")
    assert checked.no_places == checked.corrected == ()
    assert look.check(checked.text).text == checked.text
    [finding] = look.check(f"> It must outlive its vendor {spelling.format(path=path)}").findings
    assert finding.outcome == "found"


@pytest.mark.parametrize(
    "spelling", ["[E1: {end}:4]", "[E1 {end}, line 4]", "[{end}:4]", "[E1: {end}:4; E2: docs/plan.md:12]"]
)
@pytest.mark.parametrize("end", ["Büro 2026/Angebot (neu), Dach [2].md", "Angebot (neu), Dach [2].md"])
def test_the_end_of_such_a_path_is_known_too(end: str, spelling: str) -> None:
    path = "docs/Büro 2026/Angebot (neu), Dach [2].md"
    look = Quotations([Passage("E1", path, 1, NEEDS), PASSAGES[1]], ("E1", "E2"))
    checked = look.check(f"It must outlive it {spelling.format(end=end)}.")
    assert checked.text.startswith(f"It must outlive it [E1: {path}:4]")
    assert checked.no_places == ()
    assert look.check(f"It grows {spelling.format(end=end).replace('4', '400')}.").no_places != ()


@pytest.mark.parametrize("name", ["E1 docs/needs.md", "docs/needs.md:2", "docs/needs.md, line 2", "2, docs/needs.md"])
def test_a_file_whose_name_reads_as_a_citation_of_another_draws_none_to_itself(name: str) -> None:
    look = Quotations([*PASSAGES, Passage("E5", name, 1, "We pay him.\nWe pay him.\n")], ("E1", "E2", "E5"))
    text = "It grows [E1 docs/needs.md:2], [E1: docs/needs.md, line 2] and [E2: docs/plan.md:11; E1: docs/needs.md:2]."
    assert look.check(text).text == LOOK.check(text).text


def test_more_quotations_than_are_looked_up_are_unverified() -> None:
    text = " ".join(f"“grows by {number} GB a month” [E1]" for number in range(MAX_LOOKED_UP + 40))
    findings = Quotations(PASSAGES, ["E1"]).check(text).findings
    assert findings[40].outcome == "found"
    assert "not looked up" in findings[-1].reason


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


@pytest.mark.parametrize("words", ["Press \uf8ff K", "\\[the plan](docs/plan.md)", "[^1](docs/plan.md)"])
def test_what_is_no_link_to_a_document_stays_as_it_was_written(words: str) -> None:
    """Also letters without a meaning, while a document's name has a blank in it."""
    look = Quotations((*PASSAGES, Passage("E5", "docs/the plan.md", 1, PLAN)), ("E1", "E2", "E3", "E4", "E5"), SAID)
    text = f"{words}, as [old plans](docs/plan.md) say."
    assert look.check(text).text == f"{words}, as old plans [E2: docs/plan.md] say."
