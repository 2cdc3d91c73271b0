"""A changed memory: what is shown without a change, what the archive keeps."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from council.agents.memory import KEPT_TASKS, Memory, MemoryMessage, RememberedTask, Session, encode_session
from council.deliberation.commands import MAX_ANSWERS


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    (tmp_path / "session_states").mkdir()
    return Memory(tmp_path / "session_states", tmp_path / ".council" / "memory")


def task(run_id: str, answer: str = "Use SQLite.") -> RememberedTask:
    messages = (MemoryMessage("user", "Which store?"), MemoryMessage("model", "I say SQLite."))
    return RememberedTask(run_id, "Which store?", "succeeded", "2026-11-20T00:00:00Z", answer, messages)


def test_looking_at_a_damaged_memory_says_so_and_leaves_the_file_alone(memory: Memory) -> None:
    path = memory.path("AUDITOR")
    path.write_text("{}")
    looked = memory.look("AUDITOR")
    assert (looked.session.tasks, "is damaged" in looked.damage) == ((), True)
    assert path.read_text() == "{}"


def test_looking_shows_what_loading_would(memory: Memory) -> None:
    memory.path("AUDITOR").write_bytes(encode_session(Session("AUDITOR", tasks=(task("r-1"),))))
    assert memory.look("AUDITOR") == memory.load("AUDITOR")


def test_what_was_changed_or_removed_goes_to_the_archive_and_what_stayed_does_not(
    memory: Memory, tmp_path: Path
) -> None:
    before = Session("AUDITOR", tasks=(task("r-1"), task("r-2"), task("r-3")))
    edited = msgspec.structs.replace(task("r-2"), answer="Use files.")
    outputs = memory.replaced(before, Session("AUDITOR", tasks=(edited, task("r-3"))), "change-1", tmp_path)
    archived = {output.path: output.data.decode() for output in outputs if "archive" in output.path}
    folder = "session_states/archive/main/auditor"
    assert set(archived) == {f"{folder}/r-1.change-1.md", f"{folder}/r-2.change-1.md"}
    assert "I say SQLite." in archived[f"{folder}/r-1.change-1.md"]
    assert "Use SQLite." in archived[f"{folder}/r-2.change-1.md"]


def test_two_changes_of_one_task_leave_two_pages(memory: Memory, tmp_path: Path) -> None:
    before = Session("AUDITOR", tasks=(task("r-1"),))
    paths = [
        output.path
        for change in ("change-1", "change-2")
        for output in memory.replaced(before, Session("AUDITOR"), change, tmp_path)
        if "archive" in output.path
    ]
    assert len(set(paths)) == 2


def test_a_command_can_hold_as_many_answers_as_a_session_keeps() -> None:
    assert MAX_ANSWERS == KEPT_TASKS
