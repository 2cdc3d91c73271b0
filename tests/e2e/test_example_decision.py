"""docs/example-decision.md is the page that the program writes today, and its links lead to the lines they name."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "example-decision.md").read_text(encoding="utf-8")


def test_the_example_is_the_page_of_a_run_today_but_for_ids_and_times() -> None:
    made = runpy.run_path(str(DOCS / "make_example.py"))
    same = made["without_what_varies"]
    assert same(PAGE) == same(made["page"]()), "stale: python docs/make_example.py"


def test_the_date_that_is_wrong_on_purpose_is_marked_and_no_other_figure_is() -> None:
    assert re.findall(r"31 January __\[not in the cited lines\]__", PAGE) == ["31 January __[not in the cited lines]__"]
    assert PAGE.count("__[not in the cited lines]__") == 1


def test_every_link_of_the_example_leads_to_a_line() -> None:
    links = set(re.findall(r"\]\((\.\./[^)#]+)#L([0-9]+)\)", PAGE))
    assert len(links) > 5
    ends = {path: len((DOCS / path).read_text(encoding="utf-8").splitlines()) for path, _ in links}
    assert [(path, line) for path, line in links if int(line) > ends[path]] == []
