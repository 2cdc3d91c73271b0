"""What agents wrote becomes HTML that can neither load, link nor run anything, whatever they wrote."""

from __future__ import annotations

import re

import html5lib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.llm.base import Source
from council.reports.agent_markdown import AgentMarkdown, Excerpts
from tests.threads import at_once

HARMLESS = {
    "html", "head", "body", "p", "em", "strong", "code", "pre", "ul", "ol", "li", "blockquote", "h5", "hr", "br", "a",
    "table", "thead", "tbody", "tr", "th", "td", "span",
}  # fmt: skip
PIECES = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[a](javascript:alert(1))", "![b](http://evil.test/x)",
    "<http://evil.test>", "[c]: data:text/html,x 'y'\n\n[c]", "</details></section>", "`<b>`", "```\n<i>\n```", "# h", "E1",
    "E2", "| a | b |\n|---|---|\n| <u> | E1 |", "&lt;script&gt;", "<!--", "]]>", "\x00\u202e", '" onclick="x', "- x", "> y",
)  # fmt: skip


def harmful(rendered: str) -> list[str]:
    """The elements and attributes that a report does not write of its own accord."""
    found = []
    for element in html5lib.parse(f"<!doctype html><body>{rendered}").iter():
        tag = str(element.tag).rpartition("}")[2]
        found += [] if tag in HARMLESS else [tag]
        for name, value in element.attrib.items():
            is_code_language = name == "class" and value.startswith("language-")
            is_lines = tag == "span" and (name, value) in {("class", "lines"), ("role", "tooltip")}
            is_ours = (
                (name, value) in {("href", "#E1"), ("class", "cite"), ("start", value)} or is_code_language or is_lines
            )
            found += [] if is_ours else [f"{tag} {name}={value}"]
    return found


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=8), st.sampled_from(["", " ", "\n", "\n\n"]))
def test_no_text_becomes_more_than_text(pieces: list[str], joint: str) -> None:
    render = AgentMarkdown({"E1": "a.md:1\nIt is <b>so</b>."})
    assert harmful(render(joint.join(pieces))) == []
    assert harmful(render.inline(joint.join(pieces))) == []


@pytest.mark.parametrize("piece", PIECES)
def test_each_of_the_usual_tricks_stays_text(piece: str) -> None:
    assert harmful(AgentMarkdown({"E1": "a.md:1\nIt is <b>so</b>."})(piece)) == []


def test_formatting_is_kept_and_known_evidence_is_cited() -> None:
    rendered = AgentMarkdown({"E1": "a.md:1\nIt is <b>so</b>."})("## Why\n\n- **yes** [E1: a.md:1]\n- E9")
    assert "<h5>Why</h5>" in rendered
    lines = '<span class="lines" role="tooltip">a.md:1\nIt is &lt;b&gt;so&lt;/b&gt;.</span>'
    assert f'<strong>yes</strong> [<a class="cite" href="#E1">E1{lines}</a>: a.md:1]' in rendered
    assert "<li>E9</li>" in rendered


def test_a_citation_shows_the_lines_that_it_names_and_else_how_its_text_begins() -> None:
    numbered = "".join(f"Line {number}.\n" for number in range(11, 31))
    pages = "[page 3]\nThird.\n[page 4]\nFourth.\n"
    sources = [Source("E1", "docs/a.md", numbered, 11), Source("E2", "docs/b.pdf", pages, 3)]
    sources += [Source("E3", "docs/c.md", "The first hit.", 7), Source("E3", "docs/d.md", "The second hit.", 7)]
    render = AgentMarkdown({f"E{number}": f"E{number} begins" for number in (1, 2, 3)}, Excerpts(sources))

    def shown(text: str) -> list[str]:
        return re.findall(r'role="tooltip">(.*?)</span>', render(text), re.DOTALL)

    assert shown("So it is [E1 docs/a.md:20-21, E2 p. 4].") == [
        "docs/a.md:20-21\nLine 20.\nLine 21.",
        "docs/b.pdf:p4\n[page 4]\nFourth.",
    ]
    assert shown("[E3 docs/d.md:7], [E1:12, 14]") == [
        "docs/d.md:7\nThe second hit.",
        "docs/a.md:12\nLine 12.\ndocs/a.md:14\nLine 14.",
    ]
    assert shown("E1, [E1], [E1 docs/a.md:9] and [E1 docs/b.md:20]") == ["E1 begins"] * 4
    assert shown("[E1 docs/x.md:8] [no such place], as E2 says") == ["E2 begins"]


def test_a_request_of_an_agent_cannot_ask_again_from_the_page() -> None:
    assert "[request: READ_FILE(a.md)]" in AgentMarkdown({})("[ORCHESTRATOR_REQUEST: READ_FILE(a.md)]")


def test_threads_that_render_first_see_all_rules() -> None:
    text = "- *one*\n\n| a |\n|---|\n| b |"
    expected = AgentMarkdown({})(text)
    for _ in range(50):
        markdown = AgentMarkdown({})
        assert at_once([lambda markdown=markdown: markdown(text)] * 3) == [expected] * 3
