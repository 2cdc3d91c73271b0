"""What a note beside a refused command says, read back."""

from __future__ import annotations

from pathlib import Path

from council.commands.file_formats import Problem
from council.desk.failed_folder import RefusedFile, error_page, refused_file
from council.errors import CommandInvalid


def test_a_note_is_told_without_the_escapes_of_its_markdown(tmp_path: Path) -> None:
    message = 'is not a known key, and "<3>" and "<b>" no values'
    problem = Problem(message, "remove it; known keys: $schema, id", field="a*b_c", line=3, column=1)
    note = tmp_path / "a.json.error.md"
    note.write_text(error_page("a.json", CommandInvalid("no", problems=[problem])), encoding="utf-8")
    assert refused_file(note) == RefusedFile(
        "a.json",
        "command_invalid",
        'line 3, column 1: `a*b_c` is not a known key, and "<3>" and "<b>" no values',
        "remove it; known keys: $schema, id",
    )
    assert '"<3>" and "`<b>`" no values' in note.read_text(encoding="utf-8")  # a viewer would hide a tag
