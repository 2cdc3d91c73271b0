"""Where fences and sentences begin and end."""

from __future__ import annotations

from itertools import pairwise

import pytest

from council.markup import (
    FrontMatter,
    around_table,
    fences,
    first_sentence,
    front_matter,
    sentence_ends,
    unfenced,
    without_fences,
    without_front_matter,
)


@pytest.mark.parametrize(
    ("text", "tag", "prefix", "code"),
    [
        ("a\n```json\n{}\n```\nb", "json", "", "{}"),
        ("~~~\n```\n~~~", "", "", "```"),
        ("````\n```\nx\n```\n````", "", "", "```\nx\n```"),
        ("- item\n\n  ```py\n  x\n    y\n  ```", "py", "  ", "x\n  y"),
        ("- ```\n  x\n  ```", "", "- ", "x"),
        ("> ```\n> x\n> ```\nafter", "", "> ", "x"),
        ("> ```\n> x\nafter", "", "> ", "x"),
        ("```\nx", "", "", "x"),
        ("```\nx\n    ```\ny", "", "", "x\n    ```\ny"),
        ("```\r\nx\r\n```\r\n", "", "", "x"),
    ],
)
def test_a_fence_has_its_content_without_the_marks_before_it(text: str, tag: str, prefix: str, code: str) -> None:
    (fence,) = fences(text)
    assert (fence.tag, fence.prefix, fence.text) == (tag, prefix, code)
    assert fence.first == text[: fence.start].count("\n")
    assert fence.last == text[: fence.end].count("\n")


@pytest.mark.parametrize("text", ["``x``", "```a`b", "words ``` words", "- > ```\n- > x", "``\nx\n``"])
def test_what_only_looks_like_a_fence_is_none(text: str) -> None:
    assert list(fences(text)) == []


def test_fences_are_taken_out_and_the_rest_stays() -> None:
    assert without_fences("a\n```\nx\n```\nb\n~~~\ny", "…") == "a\n…\nb\n…"
    assert unfenced("a\n```json\n{}\n```\nb\n~~~\ny") == "a\n{}\nb\ny"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("---\na: 1\nb: 2\n---\nwords\n", FrontMatter("a: 1\nb: 2\n", "words\n")),
        ("--- \na: '---'\n---\t\n\n---\n", FrontMatter("a: '---'\n", "\n---\n")),
        ("---\r\na: 1\r\n---\r\nwords", FrontMatter("a: 1\r\n", "words")),
        ("---\na: 1\n---", FrontMatter("a: 1\n", "")),
        ("---\n---\nwords", FrontMatter("", "words")),
        ("---\na: 1\n--- b\n", None),
        ("\n---\na: 1\n---\n", None),
        ("---- \na: 1\n---\n", None),
    ],
)
def test_front_matter_stands_between_two_lines_of_dashes_at_the_top(text: str, parts: FrontMatter | None) -> None:
    assert front_matter(text) == parts
    assert without_front_matter(text) == (text if parts is None else parts.body)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Hello. Should we move (now or later?) The board asks.", "Hello. Should we move (now or later?)"),
        ("Use SQLite, e.g. for tests. It is small.", "Use SQLite, e.g. for tests."),
        ("The position\n\nWe should wait. Or not.", "The position\n\nWe should wait."),
        ("Wait until May", ""),
        ("Dr. Meyer asks: is this o.k.? Really.", "Dr. Meyer asks: is this o.k.?"),
        ("Is „Nein! Nie. Wirklich?“ an answer? Yes.", "Is „Nein! Nie. Wirklich?“ an answer?"),
        ('What about "Is it? No', ""),
    ],
)
def test_the_first_sentence_is_more_than_a_greeting(text: str, first: str) -> None:
    assert first_sentence(text) == first


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It holds. It does! Does it?", ["It holds. ", "It does! ", "Does it?"]),
        ("See e.g. the plan, cf. Dr. Jones vs. us.", ["See e.g. the plan, cf. Dr. Jones vs. us."]),
        ("It costs 3.5 or so. then more", ["It costs 3.5 or so. then more"]),
        ("He left (early.) She stayed.", ["He left (early.) ", "She stayed."]),
        ("It is done, etc.\n\nso it ends", ["It is done, etc.\n\n", "so it ends"]),
        (
            "Pay 5 EUR incl. VAT to Meyer & Co. KG. Then rest.",
            ["Pay 5 EUR incl. VAT to Meyer & Co. KG. ", "Then rest."],
        ),
        ("Whg. A lt. Angebot v. 3. 5. 2027", ["Whg. A lt. Angebot v. 3. 5. 2027"]),
        ("Im 3. Quartal, max. Betrag 1,5 Mio. Euro", ["Im 3. Quartal, max. Betrag 1,5 Mio. Euro"]),
        ("Selon M. Durand et Messrs. Brown", ["Selon M. Durand et Messrs. Brown"]),
        ("Die Leitung ist am\n19. Februar gebrochen.", None),  # a line of a paragraph, and no list item
        (
            "We rent:\n1. Main office\n2. Junior desks\n3. Mail room",
            ["We rent:\n", "1. ", "Main office\n", "2. ", "Junior desks\n", "3. ", "Mail room"],
        ),
        ("They want option B. Option A is old.", ["They want option B. ", "Option A is old."]),
        ("It is 5 km. Walk on 12. Stop.", ["It is 5 km. ", "Walk on 12. ", "Stop."]),
        ("Der 2. Bieter braucht 2 h. Umsatz ist 3", ["Der 2. Bieter braucht 2 h. ", "Umsatz ist 3"]),
        ("Pay 1.5 Mio. Euro, min. Betrag 2 Mrd. € or 3 Tsd. US-Dollar?", None),
        ("Ist es bis Okt. 2027 fertig, nach 30 min. (oder 5 Std.) und 2 Mio. [E1]?", None),
        ("長い文。次の文。", ["長い文。", "次の文。"]),
        ("no end\n\n- an item", ["no end\n", "\n", "- an item"]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, sentences: list[str] | None) -> None:
    ends = [0, *sentence_ends(text), len(text)]
    assert [text[a:b] for a, b in pairwise(ends) if a < b] == (sentences or [text])


@pytest.mark.parametrize("text", ["." * 50_000, ". " * 50_000, "\n" * 50_000, "```\n" * 20_000, "> " * 50_000 + "```"])
def test_hostile_text_takes_no_long_work(text: str) -> None:
    assert len(list(fences(text))) + len(list(sentence_ends(text))) <= len(text)


def test_a_table_is_parted_from_what_stands_around_it() -> None:
    assert around_table("A |b|\nc") == ("A |b| c", (), "")
    assert around_table("A:\n | a | b |\n|:--|--|\n| 1 | 2 | [E1]\nEnd.") == (
        "A:",
        ("| a | b |", "|:--|--|", "| 1 | 2 |"),
        "[E1] End.",
    )
    assert around_table("|a|b|\n|-|-|\n|1|2 [E1]").rows[-1] == "|1|2 [E1]"  # a last cell without its border
    assert around_table("|a|b|\n|-|-|\n|1|2 \\| 3 [E1]").rows[-1] == "|1|2 \\| 3 [E1]"
    assert around_table("|a|b|\n|-|-|\n|1|2 \\| 3| [E1]") == ("", ("|a|b|", "|-|-|", "|1|2 \\| 3|"), "[E1]")
    assert around_table("| a | b\n|--|--\n| 1 | 2") == ("", ("| a | b", "|--|--", "| 1 | 2"), "")
