"""What counts as the text that is to be forgotten, and what does not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.artifacts.page import Page
from council.artifacts.render import render
from council.deliberation.deliberate_admission import title_of
from council.safety.markdown import for_markdown
from council.safety.untrusted import clean, inert
from council.upkeep.forgotten_text import NameSpan, Span

MARK = "[forgotten 0123456789ab]"
TEXT = 'Grete *Ölmann\'s* "number" is <555-0172> \\ 😀'


@pytest.mark.parametrize(
    "written",
    [
        TEXT,
        json.dumps(TEXT)[1:-1],
        json.dumps(TEXT, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(TEXT))[3:-3],
        TEXT.replace(" ", "\n  "),
        TEXT.replace(" ", "\n> "),
        json.dumps(TEXT.replace(" ", "\n"))[1:-1],
        for_markdown(TEXT),
        TEXT.replace("*", "&#42;"),
    ],
)
def test_a_text_is_found_however_a_file_writes_it(written: str) -> None:
    span = Span(TEXT, MARK)
    assert span.is_in(f"before {written} after")
    assert span.without(f"before {written} after") == f"before {MARK} after"


@pytest.mark.parametrize("other", ["grete and nobody", "Grete-Maria", "Gre te Olm", "a Grete", ""])
def test_other_texts_stay(other: str) -> None:
    span = Span("Grete Ölmann", MARK)
    assert not span.is_in(other)
    assert span.without(other) == other


@pytest.mark.parametrize("cut", ["We asked Grete Ölm…", "We asked Grete Ölmann's number …", "We asked Grete …"])
def test_a_beginning_that_an_ellipsis_cuts_off_is_replaced(cut: str) -> None:
    left = Span("Grete Ölmann's number is 555", MARK).without(cut)
    assert left == f"We asked {MARK}…"


@pytest.mark.parametrize(
    ("cut", "left"),
    [
        ("# We asked Grete Ölmann's number\nis it", f"# We asked {MARK}\nis it"),
        ('"title": "We asked Grete Ölmann\'s number",', f'"title": "We asked {MARK}",'),
        ("- Task: Grete Ölmann's number (succeeded)\n  Yes", f"- Task: {MARK} (succeeded)\n  Yes"),
        ("We asked Grete Ölmann's", f"We asked {MARK}"),
        ("We asked Grete\nand others", "We asked Grete\nand others"),
        ("We asked Grete Ölmann's number of times", "We asked Grete Ölmann's number of times"),
    ],
)
def test_a_beginning_that_a_title_s_end_cuts_off_is_replaced_if_it_is_long_enough(cut: str, left: str) -> None:
    assert Span("Grete Ölmann's number is 555", MARK).without(cut) == left


def test_a_beginning_that_ends_where_the_text_breaks_its_line_may_be_short() -> None:
    assert Span("Call Bo\non 555-0172", MARK).without("Call Bo") == MARK


def test_a_title_that_is_the_first_sentence_of_the_text_is_replaced() -> None:
    text = "It is Grete's number. Nobody else has 555-0172."
    assert Span(text, MARK).without(title_of(text)) == MARK


def test_a_beginning_that_goes_on_otherwise_stays() -> None:
    text = "Grete Olsen was asked … and Grete Ölmann was not"
    assert Span("Grete Ölmann's number", MARK).without(text) == text


def test_a_title_that_was_cut_within_the_text_shows_nothing_of_it() -> None:
    secret = "the number of Grete Ölmann is 555-0172 and nobody else's"
    title = title_of(f"Decide, after everything that was said of it at the long table on Friday, whether {secret}")
    assert "the number of" in title
    assert "number" not in Span(secret, MARK).without(title)


def test_a_request_token_is_found_where_it_was_made_inert() -> None:
    text = "I need it. [ORCHESTRATOR_REQUEST: READ_FILE(letters/grete.md)] Now."
    page = Page("t", {}, (), "Decision", text, "task")
    for written in (inert(clean(text)), render(page, "artifacts/a.md")):
        assert "letters/grete.md" in written
        assert "letters/grete.md" not in Span(text, MARK).without(written)


def test_invisible_characters_that_a_page_leaves_out_do_not_hide_it() -> None:
    text = "Grete\u200b Öl\u00admann"
    assert Span(text, MARK).without(f"so {clean(text)}.") == f"so {MARK}."


def test_a_text_that_begins_with_invisible_characters_is_found_and_what_has_none_of_it_stays() -> None:
    span = Span("\u200b\u200b\u200b\u200bGrete Ölmann", MARK)
    assert span.without("so Grete Ölmann, and Grete…, and Greta") == f"so {MARK}, and {MARK}…, and Greta"
    assert not span.is_in("nobody")


@given(st.text(min_size=4, max_size=60).filter(lambda text: len(clean(text).strip()) >= 4), st.text(max_size=20))
def test_whatever_the_text_it_is_gone_from_what_json_and_people_write_and_twice_is_once(text: str, around: str) -> None:
    if clean(text).strip() in MARK:
        return
    span = Span(text, MARK)
    for written in (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        once = span.without(f"{around}{written}{around}")
        assert not span.is_in(once)
        assert span.without(once) == once
        assert MARK in once


def test_a_text_of_ten_thousand_characters_is_looked_for_in_a_megabyte() -> None:
    text = ("a sentence of some words, " * 400)[:10_000]
    body = "a sentence of some words and more … " * 30_000
    assert Span(text, MARK).without(body) == body
    assert Span(text, MARK).without(body + text) == body + MARK


@pytest.mark.parametrize(
    ("text", "data", "found"),
    [
        ("Grete's number is 555-0172", b"...Grete's number is 555-0172...", True),
        ("  Grete's number is 555-0172  ", b"Grete&#39;s number\\nis\n> 555\\-0172", True),
        ("Grete's number is 555-0172", b"she asked Gretel for a number", False),
        ("Anna Bergmann has been diagnosed", b'"Anna Bergmann has\\nbeen diag', True),
        ("Anna Bergmann has been diagnosed", b"a title: Anna Berg\xe2\x80\xa6", True),
        (
            "a long sentence about the boat, its hull and its engine",
            b"\x00\x00ut the boat, its hull and its engine",
            True,
        ),
        ("a long sentence about the boat, its hull and its engine", b"a longer sentence about the house", False),
        ("Gr\u00fc\u00dfe an Anna Bergmann", b"Gr\\u00fc\\u00dfe an Anna Be", True),
        ("\u5bc6\u7801", b"nobody can tell", True),
        ("word " * 100, b"nobody looks for so many parts", True),
    ],
)
def test_bytes_are_searched_for_parts_of_the_text(text: str, data: bytes, found: bool) -> None:
    assert Span(text, "[gone]").may_be_in(bytes(99) + data) is found


@pytest.mark.parametrize(
    ("text", "name", "after"),
    [
        ("birch road eleven", "artifacts/does-birch-road-eleven-matter.md", "artifacts/does-X-matter.md"),
        ("birch road", "does-birch-road-matter.md", "does-X-matter.md"),
        ("birch road", ".birch-road.md.20261123-161033-7yy6tw7r.staged", ".X.md.20261123-161033-7yy6tw7r.staged"),
        ("birch road", "artifacts/birch-road.20261123-161033-7yy6tw7r.md", "artifacts/X.20261123-161033-7yy6tw7r.md"),
        ("Hildegunde", "see artifacts/asks/a/who-is-hildegunde-2.md.", "see artifacts/asks/a/who-is-X-2.md."),
        (
            "Anna Schmidt from the accounting department",
            "artifacts/should-we-dismiss-anna-schmidt-from-the-accounting.md",
            "artifacts/should-we-dismiss-X.md",
        ),
    ],
)
def test_the_name_of_a_page_loses_the_words(text: str, name: str, after: str) -> None:
    span = NameSpan(text, "X")
    assert (span.is_in(name), span.may_be_in(name.encode())) == (True, True)
    assert (span.without(name), span.without(after)) == (after, after)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("An Na", "artifacts/human-nature.md"),
        ("Follow Up", "a follow-up, docs/follow-up.md"),
        ("the budget for Anna", "artifacts/about-the-budget.md"),
        ("elm street", "artifacts/elm-streets.md"),
    ],
)
def test_names_of_others_stay(text: str, other: str) -> None:
    assert NameSpan(text, "X").without(other) == other


def test_a_name_takes_no_longer_in_a_hostile_text() -> None:
    span = NameSpan("birch road", "X")
    for hostile in ("artifacts/" * 20_000, f"artifacts/{'a-' * 60_000}", f"artifacts/{'a' * 100_000}"):
        assert span.without(hostile) == hostile
