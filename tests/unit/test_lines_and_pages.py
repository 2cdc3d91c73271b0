"""Places: lines of texts and pages of PDF, in every spelling."""

from __future__ import annotations

import pytest

from council.lines_and_pages import anchor, numbers, spelled, split_range, without_marks

PAGES = "[page 3]\nThree.\nMore.\n[page 4]\n[page 5]\nFive.\n"


@pytest.mark.parametrize(
    ("path", "first", "last", "expected"),
    [
        ("docs/a.md", 3, None, "docs/a.md:3"),
        ("docs/a.md", 3, 3, "docs/a.md:3"),
        ("docs/a.md", 3, 5, "docs/a.md:3-5"),
        ("docs/a.pdf", 3, None, "docs/a.pdf:p3"),
        ("docs/A.PDF", 3, 3, "docs/A.PDF:p3"),
        ("docs/a.pdf", 3, 5, "docs/a.pdf:p3-5"),
        ("docs/a.docx", 3, 5, "docs/a.docx:3-5"),
    ],
)
def test_a_place_is_spelled_by_pages_in_a_pdf_and_by_lines_elsewhere(
    path: str, first: int, last: int | None, expected: str
) -> None:
    assert spelled(path, first, last) == expected


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("docs/a.md", ("docs/a.md", 1, None)),
        ("docs/a.md:10-40", ("docs/a.md", 10, 40)),
        ("docs/a.md:0", ("docs/a.md", 1, 0)),
        ("docs/a.pdf:p3", ("docs/a.pdf", 3, 3)),
        ("docs/a.pdf:p3-5", ("docs/a.pdf", 3, 5)),
        ("docs/a.pdf:p3-p5", ("docs/a.pdf", 3, 5)),
        ("docs/a.pdf:3-5", ("docs/a.pdf", 3, 5)),
        ("docs/a.md:p3", ("docs/a.md:p3", 1, None)),
    ],
)
def test_a_range_is_read_in_lines_and_of_a_pdf_in_pages(argument: str, expected: tuple[str, int, int | None]) -> None:
    assert split_range(argument) == expected


def test_the_lines_of_a_pdf_are_numbered_by_their_page() -> None:
    assert numbers("a.pdf", PAGES, 3) == [3, 3, 3, 4, 5, 5]
    assert numbers("a.pdf", "from the middle of a page\nof it\n", 7) == [7, 7]
    assert numbers("a.md", PAGES, 3) == [3, 4, 5, 6, 7, 8]


def test_marks_are_blanked_in_a_pdf_and_kept_in_a_text_that_happens_to_hold_them() -> None:
    assert without_marks("a.pdf", PAGES) == "\nThree.\nMore.\n\n\nFive.\n"
    assert without_marks("a.md", PAGES) == PAGES


def test_a_link_opens_a_pdf_at_its_page_and_a_text_at_its_line() -> None:
    assert (anchor("a.pdf", 3), anchor("a.md", 3), anchor("a.docx", 3)) == ("#page=3", "#L3", "")
