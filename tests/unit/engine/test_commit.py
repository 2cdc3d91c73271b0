"""A commit rolls forward from any point, and never over a file that is not ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from council.engine.commit import Output, roll_forward, stage, unstage
from council.engine.outputs import OutputFile, OutputLedger
from council.ids import sha256_hex
from council.storage.paths import ConfinedRoot


@pytest.fixture
def root(tmp_path: Path) -> ConfinedRoot:
    (tmp_path / "home").mkdir()
    return ConfinedRoot(tmp_path / "home")


@pytest.fixture
def home(tmp_path: Path, root: ConfinedRoot) -> Path:
    return tmp_path / "home"


def three(replaces: tuple[str, ...] | None = None) -> list[Output]:
    return [Output(f"out/{name}.md", name.encode(), replaces, f"out/{name}.beside.md") for name in ("a", "b", "c")]


@pytest.mark.parametrize("done", [0, 1, 2, 3])
def test_a_commit_cut_off_after_any_rename_is_completed_and_may_be_repeated(
    root: ConfinedRoot, home: Path, done: int
) -> None:
    files = stage(root, three(), "run1")
    roll_forward(root, files[:done])
    assert roll_forward(root, files) == ["out/a.md", "out/b.md", "out/c.md"]
    assert roll_forward(root, files) == ["out/a.md", "out/b.md", "out/c.md"]
    assert sorted(path.name for path in (home / "out").iterdir()) == ["a.md", "b.md", "c.md"]
    assert (home / "out" / "b.md").read_text() == "b"


def test_a_file_that_is_not_ours_is_left_and_ours_goes_beside_it(root: ConfinedRoot, home: Path) -> None:
    (home / "out").mkdir()
    (home / "out" / "b.md").write_text("a person's")
    files = stage(root, three(replaces=()), "run1")
    assert roll_forward(root, files) == ["out/a.md", "out/b.beside.md", "out/c.md"]
    assert (home / "out" / "b.md").read_text() == "a person's"
    assert roll_forward(root, files)[1] == "out/b.beside.md"


def test_a_file_with_the_hash_we_wrote_is_replaced(root: ConfinedRoot, home: Path) -> None:
    (home / "out").mkdir()
    (home / "out" / "b.md").write_text("our last words")
    files = stage(root, three(replaces=(sha256_hex("our last words"),)), "run1")
    assert roll_forward(root, files)[1] == "out/b.md"
    assert (home / "out" / "b.md").read_text() == "b"


def test_staging_twice_under_one_run_is_no_error_and_unstaging_leaves_nothing(root: ConfinedRoot, home: Path) -> None:
    stage(root, three(), "run1")
    unstage(root, stage(root, three(), "run1"))
    assert list((home / "out").iterdir()) == []


def output(root: ConfinedRoot, home: Path, run_id: str) -> OutputFile:
    return OutputFile(root, OutputLedger(home / ".council" / "outputs"), home / ".council" / "runs", "out/a.md", run_id)


def test_an_earlier_runs_artifact_is_kept_in_its_run_folder_when_replaced(root: ConfinedRoot, home: Path) -> None:
    (home / ".council" / "runs" / "run1").mkdir(parents=True)
    output(root, home, "run1").grow(b"first")
    second = output(root, home, "run2")
    second.grow(b"second")
    assert (home / "out" / "a.md").read_bytes() == b"second"
    assert (home / ".council" / "runs" / "run1" / "artifact.md").read_bytes() == b"first"
    assert not second.displaced


def test_the_artifact_of_a_pruned_run_is_kept_by_the_run_that_replaces_it(root: ConfinedRoot, home: Path) -> None:
    runs = home / ".council" / "runs"
    (runs / "run2").mkdir(parents=True)
    output(root, home, "run1").grow(b"first")
    output(root, home, "run2").grow(b"second")
    assert (runs / "run2" / "artifact-of-run1.md").read_bytes() == b"first"
    assert not (runs / "run1").exists()


def test_an_edit_by_a_person_sends_the_next_version_beside_it(root: ConfinedRoot, home: Path) -> None:
    (home / ".council").mkdir()
    mine = output(root, home, "run1")
    mine.grow(b"first")
    (home / "out" / "a.md").write_text("edited by hand")
    mine.grow(b"second")
    assert mine.displaced
    assert (home / "out" / "a.md").read_text() == "edited by hand"
    assert (home / "out" / "a.run1.md").read_bytes() == b"second"


def test_a_write_cut_off_between_ledger_and_rename_is_still_ours(root: ConfinedRoot, home: Path) -> None:
    (home / ".council").mkdir()
    output(root, home, "run1").grow(b"first")
    OutputLedger(home / ".council" / "outputs").note(
        "out/a.md", "run1", sha256_hex(b"never written"), current=sha256_hex(b"first"), sync=False
    )
    again = output(root, home, "run1")
    again.grow(b"second")
    assert (home / "out" / "a.md").read_bytes() == b"second"
