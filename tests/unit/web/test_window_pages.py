"""Small policies of the window: filters in addresses, differences as lines."""

from __future__ import annotations

import pytest

from council.tools.preview import Difference
from council.web.plan_pages import diff_lines
from council.web.window_pages import environment, with_filters


@pytest.mark.parametrize(
    ("asked", "changed", "address"),
    [
        ({}, {}, "/runs"),
        ({"q": "a b", "before": "x"}, {"before": ""}, "/runs?q=a+b"),
        ({"status": "failed"}, {"status": "queued"}, "/runs?status=queued"),
        ({"q": '"><script>'}, {}, "/runs?q=%22%3E%3Cscript%3E"),
    ],
)
def test_filters_live_in_the_address(asked: dict[str, str], changed: dict[str, str], address: str) -> None:
    assert with_filters(asked, "/runs", **changed) == address


def test_a_difference_shows_what_goes_what_comes_and_one_line_around() -> None:
    told = [(line.kind, line.text) for line in diff_lines(Difference("text", "a\nb\nc\nd\ne", "a\nb\nX\nd\ne"))]
    assert told == [("same", "b"), ("gone", "c"), ("new", "X"), ("same", "d")]
    assert [(line.kind, line.text) for line in diff_lines(Difference("text", "", "+ a\n- b"))] == [
        ("new", "+ a"),
        ("new", "- b"),
    ]
    far = [line.kind for line in diff_lines(Difference("text", "a\n1\n2\n3\nb", "x\n1\n2\n3\ny"))]
    assert far == ["gone", "new", "same", "cut", "same", "gone", "new"]
    assert diff_lines(Difference("text", "same", "same")) == []


def test_what_people_wrote_is_escaped_by_every_template() -> None:
    """No template of ours marks a text as safe: only the report's parts and agents' Markdown are, which escape themselves."""
    templates = environment()
    assert templates.autoescape is True
    shown = templates.from_string(
        "{{ text }} {{ text|plain }} {{ text|markdown }} {{ text|worded|inline }} {{ text|sentence|inline }}"
    ).render(text="<img src=x onerror=a()>")
    assert "<img" not in shown
