"""Texts cut into passages with exact line numbers, and the part of a passage that is quoted."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.knowledge.cortex.chunks import (
    MAX_CHUNK_CHARS,
    MAX_QUOTATION_CHARS,
    Chunk,
    cut,
    is_artifact,
    is_unfinished_artifact,
    quote,
)
from council.knowledge.cortex.tantivy_index import searchable
from council.knowledge.library import split_lines

GUIDE = """\
---
title: "Herons"
---
Before any heading.

# Nesting

Herons nest in March.

## Trees

Mostly alders.

```sh
# not a heading
```

Setext
------

Under an underlined heading.

# Feeding #

Fish.
"""


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def test_a_title_that_is_the_first_heading_too_is_named_once_above_a_passage() -> None:
    assert [c.heading for c in cut("a.md", "---\ntitle: Herons\n---\n# Herons\n\nThey nest.\n")] == ["Herons", "Herons"]
    text = "# Costs\n\n## Hall\n\n### Costs\n\nLow.\n"
    assert cut("a.md", text)[-1].heading == "Costs > Hall > Costs"


def test_each_section_of_markdown_is_a_passage_with_its_lines_and_the_headings_above_it() -> None:
    assert [(c.first_line, c.last_line, c.heading) for c in cut("guide.md", GUIDE)] == [
        (1, 4, "Herons"),
        (6, 8, "Herons > Nesting"),
        (10, 16, "Herons > Nesting > Trees"),
        (18, 21, "Herons > Nesting > Setext"),
        (23, 25, "Herons > Feeding"),
    ]


def test_a_heading_with_nothing_below_it_but_deeper_headings_is_no_passage_of_its_own() -> None:
    chunks = cut("a.md", "# Top\n\n## Deep\n\ntext\n\n## Empty\n\n# Next\n\nmore\n")
    assert [(c.first_line, c.last_line, c.heading) for c in chunks] == [
        (3, 5, "Top > Deep"),
        (7, 7, "Top > Empty"),
        (9, 11, "Next"),
    ]


def test_a_rule_below_a_list_or_a_long_paragraph_is_not_a_heading() -> None:
    text = "- item\n---\n\nfirst line\nsecond line\n---\n\n| a | b |\n---\n"
    assert [c.heading for c in cut("a.md", text)] == [""]


def test_a_fence_that_is_never_closed_hides_every_heading_after_it() -> None:
    assert [c.heading for c in cut("a.md", "# One\n\n~~~~\n# Two\n~~~\n# Three\n")] == ["One"]


def test_a_long_text_is_cut_at_a_blank_line_and_no_line_is_lost() -> None:
    paragraph = "A line of a paragraph that goes on for a while.\n" * 9 + "\n"
    text = paragraph * 8
    chunks = cut("notes.txt", text)
    lines = split_lines(text)
    assert len(chunks) > 1
    assert all(lines[chunk.last_line].strip() == "" for chunk in chunks[:-1])
    assert sum(chunk.text.count("A line") for chunk in chunks) == 72


def test_a_line_longer_than_a_passage_stands_alone() -> None:
    chunks = cut("data.json", "{\n" + "x" * (MAX_CHUNK_CHARS + 1) + "\n}\n")
    assert [(c.first_line, c.last_line) for c in chunks] == [(1, 1), (2, 2), (3, 3)]


def test_every_passage_of_a_table_carries_its_first_line() -> None:
    chunks = cut("budget.csv", "item,cost\n" + "disk,100\n" * 400)
    assert len(chunks) > 1
    assert {chunk.heading for chunk in chunks} == {"item,cost"}


@pytest.mark.parametrize("text", ["", "\n", "\n\n  \n", "---\n", "---\n---\n", "#\n", "```\n"])
def test_a_text_with_little_in_it_is_cut_without_error(text: str) -> None:
    assert all(chunk.text.strip() for chunk in cut("a.md", text))


@given(st.text(alphabet=st.sampled_from("ab #-=`~>\n\t.é語"), max_size=400), st.sampled_from(["a.md", "a.txt"]))
def test_whatever_the_text_each_passage_is_exactly_its_lines_and_none_overlap(text: str, path: str) -> None:
    lines = split_lines(text)
    chunks = cut(path, text)
    assert all(chunk.text == "".join(lines[chunk.first_line - 1 : chunk.last_line]) for chunk in chunks)
    assert all(one.last_line < two.first_line for one, two in pairwise(chunks))


@given(st.text(alphabet=st.sampled_from("heron fish.\n語!"), max_size=3000), st.integers(1, 50))
def test_whatever_the_passage_its_quotation_stands_word_for_word_in_the_cited_lines(text: str, first: int) -> None:
    lines = split_lines(text) or ["x"]
    chunk = Chunk(first, first + len(lines) - 1, "", "".join(lines))
    quoted = quote(chunk, {"heron": 2.0, "fish": 1.0}, words)
    cited = "".join(lines[quoted.first_line - first : quoted.last_line - first + 1])
    assert quoted.text in cited
    assert len(quoted.text) <= MAX_QUOTATION_CHARS
    assert chunk.first_line <= quoted.first_line <= quoted.last_line <= chunk.last_line


def test_of_a_long_line_the_sentence_that_answers_is_quoted() -> None:
    line = "Nothing here. " * 60 + "The heron stands still. " + "Nothing there. " * 60
    quoted = quote(Chunk(7, 7, "", line), {"heron": 1.0}, words)
    assert "The heron stands still." in quoted.text
    assert len(quoted.text) <= MAX_QUOTATION_CHARS


def test_the_lines_that_hold_more_of_the_rarer_words_are_quoted() -> None:
    lines = ["common\n"] * 60 + ["the rare word\n"] + ["filling the space\n"] * 60
    quoted = quote(Chunk(1, 121, "", "".join(lines)), {"common": 0.1, "rare": 3.0}, words)
    assert "the rare word" in quoted.text


def test_identifiers_and_scripts_without_spaces_are_searchable_by_their_parts() -> None:
    assert searchable("ConfinedRoot").split() == ["ConfinedRoot", "Confined", "Root"]
    assert searchable("HTTPServer2Go").split()[1:] == ["HTTP", "Server", "2", "Go"]
    assert searchable("日本語").split() == ["日本語", "日本", "本語"]
    assert searchable("plain words") == "plain words"


def test_the_keys_of_our_own_pages_answer_no_question_and_those_of_others_do() -> None:
    body = "## AUDITOR\n\nPay 114 EUR.\n"
    own = f'---\nrole: AUDITOR\ntask: "The newsletter"\nrehearsed: no\n---\n\n{body}'
    [chunk] = cut("archive/board/auditor/x.md", own)
    assert (chunk.text, chunk.first_line, chunk.heading) == (body, 7, "The newsletter > AUDITOR")
    assert "tags: heron" in cut("notes.md", f"---\ntags: heron\n---\n\n{body}")[0].text


def test_in_the_memory_of_an_agent_a_heading_without_words_below_it_is_no_passage() -> None:
    words = "## AUDITOR\n\n## Position\n\nRepair it.\n\n## REMEMBERED ANSWER\n\n# Position\n\nRepair it.\n"
    found = cut("archive/main/auditor/x.md", f"---\nrole: AUDITOR\nrehearsed: no\n---\n\n{words}")
    assert [chunk.text.split()[-1] for chunk in found] == ["it.", "it."]


def test_a_decision_page_is_known_by_its_front_matter_wherever_it_lies() -> None:
    page = "---\nid: x\nstatus: {}\naudit_head: null\n---\n# Decision\n"
    assert is_artifact(page.format("succeeded"))
    assert not is_unfinished_artifact(page.format("succeeded"))
    assert is_unfinished_artifact(page.format("in_progress"))
    assert is_unfinished_artifact(page.format("superseded"))
    assert not is_artifact("# Notes\n\naudit_head: null\n")
