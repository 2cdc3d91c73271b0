"""The answer of a run: from its page, else from its journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from council.desk.desk import Desk
from council.desk.replays import replayed
from council.desk.run_lookup import answer_of
from council.engine.receipts import ArtifactRef, Receipts
from council.errors import RunNotFound
from council.storage.store import Store
from tests.rows import ended, receipt

PAGE = '---\nid: "r1"\nstatus: "succeeded"\n---\n# A title\n\nUse SQLite.[^E12]\n\n## Task\n\nWhich store?\n'
RECEIPT = receipt("r1", artifact=ArtifactRef("artifacts/a.md", "0"))


def page(desk: Desk, text: str) -> Path:
    path = desk.home.artifacts / "a.md"
    path.write_text(text)
    return path


def test_the_answer_is_the_page_above_the_task_without_front_matter_and_footnote_marks(desk: Desk) -> None:
    answer = answer_of(desk, RECEIPT, page(desk, PAGE))
    assert answer == ("# A title\n\nUse SQLite.", "")


def test_a_page_that_a_person_edited_is_told_as_it_stands(desk: Desk) -> None:
    assert answer_of(desk, RECEIPT, page(desk, PAGE.replace("SQLite", "Postgres")))[0].endswith("Use Postgres.")


def test_the_answer_is_never_that_of_another_run_whose_page_took_the_place(desk: Desk, store: Store) -> None:
    Receipts(store).answer(receipt("r1", lane="", type="cancel"), 1)
    path = page(desk, PAGE.replace('"r1"', '"r2"'))
    with pytest.raises(RunNotFound, match="now holds the page of run r2, and the run r1 is not a run"):
        answer_of(desk, RECEIPT, path)


def test_where_neither_page_nor_journal_is_left_both_are_said(desk: Desk, store: Store) -> None:
    Receipts(store).answer(receipt("r1", lane="", type="cancel"), 1)
    with pytest.raises(RunNotFound, match=r"gone\.md cannot be read \(No such file or directory\), and the run r1"):
        answer_of(desk, RECEIPT, desk.home.artifacts / "gone.md")


def test_a_run_without_a_page_cannot_be_rendered_again(desk: Desk, store: Store) -> None:
    ended(store, "r1", 1)
    with pytest.raises(RunNotFound, match="run r1 has not ended"):
        replayed(desk, "r1")
