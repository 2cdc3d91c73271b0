"""A changed memory: what is shown without a change, what the archive keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from council.agents.memory import KEPT_TASKS, Memory
from council.agents.memory_digest import digest, without_rehearsals
from council.agents.session_file import MemoryMessage, RememberedTask, Session, Summary, decode_session, encode_session
from council.deliberation.commands import MAX_ANSWERS
from council.engine.commit import Output
from council.storage.store import Store


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    (tmp_path / "session_states").mkdir()
    (tmp_path / ".council").mkdir()
    with closing(Store.open(tmp_path / ".council")) as store:
        yield Memory(tmp_path / "session_states", store)


def task(run_id: str, answer: str = "Use SQLite.", *, rehearsed: bool = False) -> RememberedTask:
    messages = (MemoryMessage("user", "Which store?"), MemoryMessage("model", "I say SQLite."))
    return RememberedTask(run_id, "Which store?", "succeeded", "2026-11-20T00:00:00Z", answer, messages, rehearsed)


def test_looking_at_a_damaged_memory_says_so_and_leaves_the_file_alone(memory: Memory) -> None:
    path = memory.path("AUDITOR")
    path.write_text("{}")
    looked = memory.look("AUDITOR")
    assert (looked.session.tasks, "is damaged" in looked.damage) == ((), True)
    assert path.read_text() == "{}"


def test_looking_shows_what_loading_would(memory: Memory) -> None:
    memory.path("AUDITOR").write_bytes(encode_session(Session("AUDITOR", tasks=(task("r-1"),))))
    assert memory.look("AUDITOR") == memory.load("AUDITOR")


FOLDER = "session_states/archive/main/auditor"


def archived(outputs: Iterable[Output]) -> dict[str, str]:
    """The pages among the files of a commit."""
    return {output.path: output.data.decode() for output in outputs if output.path.startswith(FOLDER)}


def test_what_was_said_and_what_a_person_wrote_instead_both_stand_in_the_archive(
    memory: Memory, tmp_path: Path
) -> None:
    before = Session("AUDITOR", tasks=(task("r-1"), task("r-2"), task("r-3")))
    edited = msgspec.structs.replace(task("r-2"), answer="Use files.")
    pages = archived(memory.replaced(before, Session("AUDITOR", tasks=(edited, task("r-3"))), "change-1"))
    assert set(pages) == {f"{FOLDER}/{name}.md" for name in ("r-1", "r-2", "r-3", "r-2.change-1")}
    assert "I say SQLite." in pages[f"{FOLDER}/r-1.md"]
    assert "Use SQLite." in pages[f"{FOLDER}/r-2.md"]
    assert "Use files." in pages[f"{FOLDER}/r-2.change-1.md"]
    assert "I say SQLite." not in pages[f"{FOLDER}/r-2.change-1.md"]


def test_a_page_that_is_there_is_left_alone_but_for_that_of_the_run_that_ends(memory: Memory, tmp_path: Path) -> None:
    session = Session("AUDITOR", tasks=(task("r-1"), task("r-2"), task("r-3")))
    (tmp_path / FOLDER).mkdir(parents=True)
    for name, words in (("r-1", "As it was.\n"), ("r-2", ""), ("r-3", "As it was.\n")):  # a power cut left one empty
        (tmp_path / FOLDER / f"{name}.md").write_text(words)
    assert set(archived(memory.outputs(session, "r-3"))) == {f"{FOLDER}/r-2.md", f"{FOLDER}/r-3.md"}


def test_two_changes_of_one_task_leave_two_pages(memory: Memory, tmp_path: Path) -> None:
    before = Session("AUDITOR", tasks=(task("r-1"),))
    after = Session("AUDITOR", tasks=(task("r-1", "Use files."),))
    paths = [set(archived(memory.replaced(before, after, change))) for change in ("change-1", "change-2")]
    assert paths == [{f"{FOLDER}/r-1.md", f"{FOLDER}/r-1.{change}.md"} for change in ("change-1", "change-2")]


def test_rehearsals_displace_nothing_that_a_language_model_said(memory: Memory, tmp_path: Path) -> None:
    real = [task(f"r-{number:02}") for number in range(5)]
    rehearsals = [task(f"o-{number:02}", rehearsed=True) for number in range(KEPT_TASKS + 5)]
    [file] = memory.outputs(Session("AUDITOR", tasks=(*real, *rehearsals)))[:1]
    kept, _ = decode_session(file.data, "AUDITOR", "main")
    assert kept is not None
    assert [each.run_id for each in kept.tasks] == [each.run_id for each in (*real, *rehearsals[5:])]


def test_a_language_model_is_told_of_no_rehearsal_and_a_rehearsal_of_both() -> None:
    tasks = (task("r-1", "Use files."), task("o-1", "One says 10 EUR.", rehearsed=True), task("r-2", "Use tape."))
    session = Session("AUDITOR", tasks=tasks, summary=Summary("It began so.", through="r-1"))
    assert "10 EUR" not in digest(without_rehearsals(session))
    told = digest(session)
    assert [words in told for words in ("It began so.", "Use files.", "10 EUR", "Use tape.")] == [
        True,
        False,
        True,
        True,
    ]


def test_a_summary_of_later_tasks_leaves_an_older_rehearsal_in_the_digest_of_a_rehearsal() -> None:
    tasks = (task("o-1", "One says 10 EUR.", rehearsed=True), task("r-1", "Use files."))
    assert "10 EUR" in digest(Session("AUDITOR", tasks=tasks, summary=Summary("It began so.", through="r-1")))


def test_a_command_can_hold_as_many_answers_as_a_session_keeps() -> None:
    assert MAX_ANSWERS == 2 * KEPT_TASKS  # rehearsed, and not
