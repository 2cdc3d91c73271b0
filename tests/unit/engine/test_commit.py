"""A commit rolls forward from any point, and never over a file that is not ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from council.engine.commit import Output, roll_forward, stage, unstage
from council.engine.journal import admit
from council.engine.outputs import OutputFile, keep_page, kept_data, kept_names, point_on, sealed
from council.engine.receipts import ArtifactRef
from council.engine.records import EPOCH, FileIdentity, RunHeader
from council.errors import StorageFailed
from council.ids import sha256_hex
from council.storage.paths import ConfinedRoot
from council.storage.store import Store
from tests.driver import sqlite_error, watched
from tests.rows import ended

DROP = FileIdentity("command.json", 1, 2, "s")


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
async def test_a_commit_cut_off_after_any_rename_is_completed_and_may_be_repeated(
    root: ConfinedRoot, home: Path, done: int
) -> None:
    files = stage(root, three(), "run1")
    await roll_forward(root, files[:done])
    assert await roll_forward(root, files) == ["out/a.md", "out/b.md", "out/c.md"]
    assert await roll_forward(root, files) == ["out/a.md", "out/b.md", "out/c.md"]
    assert sorted(path.name for path in (home / "out").iterdir()) == ["a.md", "b.md", "c.md"]
    assert (home / "out" / "b.md").read_text() == "b"


async def test_a_file_that_is_not_ours_is_left_and_ours_goes_beside_it(root: ConfinedRoot, home: Path) -> None:
    (home / "out").mkdir()
    (home / "out" / "b.md").write_text("a person's")
    files = stage(root, three(replaces=()), "run1")
    assert await roll_forward(root, files) == ["out/a.md", "out/b.beside.md", "out/c.md"]
    assert (home / "out" / "b.md").read_text() == "a person's"
    assert (await roll_forward(root, files))[1] == "out/b.beside.md"


async def test_a_file_with_the_hash_we_wrote_is_replaced(root: ConfinedRoot, home: Path) -> None:
    (home / "out").mkdir()
    (home / "out" / "b.md").write_text("our last words")
    files = stage(root, three(replaces=(sha256_hex("our last words"),)), "run1")
    assert (await roll_forward(root, files))[1] == "out/b.md"
    assert (home / "out" / "b.md").read_text() == "b"


async def test_a_file_that_holds_the_very_words_already_is_ours(root: ConfinedRoot, home: Path) -> None:
    (home / "out").mkdir()
    (home / "out" / "b.md").write_text("b")
    assert await roll_forward(root, stage(root, three(replaces=()), "run1")) == [
        "out/a.md",
        "out/b.md",
        "out/c.md",
    ]


def test_staging_twice_under_one_run_is_no_error_and_unstaging_leaves_nothing(root: ConfinedRoot, home: Path) -> None:
    stage(root, three(), "run1")
    unstage(root, stage(root, three(), "run1"))
    assert list((home / "out").iterdir()) == []


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    (home / ".council").mkdir()
    with closing(Store.open(home / ".council")) as store:
        yield store


def output(root: ConfinedRoot, store: Store, run_id: str) -> OutputFile:
    return OutputFile(root, store, "out/a.md", run_id)


def admitted(store: Store, run_id: str) -> None:
    header = RunHeader(run_id, EPOCH, "2026-11-20T00:00:00Z", "main", "deliberate", {}, "h", DROP, "00" * 32)
    store.write_now(lambda tx: admit(tx, header))


async def grow(store: Store, file: OutputFile, data: bytes) -> None:
    file.grow(data)
    await store.write(lambda tx: None)


async def test_an_earlier_runs_artifact_is_kept_with_its_run_when_replaced(
    root: ConfinedRoot, home: Path, store: Store
) -> None:
    admitted(store, "run1")
    await grow(store, output(root, store, "run1"), b"first")
    second = output(root, store, "run2")
    await grow(store, second, b"second")
    assert (home / "out" / "a.md").read_bytes() == b"second"
    assert kept_data(store, "run1", "artifact.md") == b"first"
    assert not second.displaced


@pytest.mark.parametrize("is_removed", [False, True])
async def test_a_later_process_gives_the_place_back_to_the_decision_that_stood_there(
    root: ConfinedRoot, home: Path, store: Store, is_removed: bool
) -> None:
    """Not to one that a person had removed before."""
    await grow(store, output(root, store, "run1"), b"a decision")
    ended(store, "run1", 1, artifact=ArtifactRef("out/a.md", sha256_hex(b"a decision")))
    keep = partial(keep_page, owner="run1", name="artifact.md", data=b"a decision")
    store.write_now(keep)
    if is_removed:
        (home / "out" / "a.md").unlink()
    for page in (b"growing", b"grown"):
        await grow(store, output(root, store, "run2"), page)
    last = output(root, store, "run2")
    restored = last.keep_earlier_decision(last.settle() or "", "failed")
    assert (restored is None) is is_removed
    assert last.path == ("out/a.md" if is_removed else "out/a.run2.md")
    if restored is not None:
        store.write_now(restored.note)
        assert await roll_forward(root, stage(root, [restored.output], "run2")) == ["out/a.md"]
    assert (home / "out" / "a.md").read_bytes() == (b"grown" if is_removed else b"a decision")


async def test_the_artifact_of_a_pruned_run_is_kept_by_the_run_that_replaces_it(
    root: ConfinedRoot, store: Store
) -> None:
    admitted(store, "run2")
    await grow(store, output(root, store, "run1"), b"first")
    await grow(store, output(root, store, "run2"), b"second")
    assert kept_data(store, "run2", "artifact-of-run1.md") == b"first"
    assert kept_names(store, "run1") == []


async def test_a_page_that_is_kept_twice_takes_one_place_and_another_one_the_next(store: Store) -> None:
    for data in (b"first", b"first", b"second", b"first"):
        store.write_now(lambda tx, data=data: keep_page(tx, "run1", "artifact.md", data))  # type: ignore[misc]
    assert kept_names(store, "run1") == ["artifact-1.md", "artifact.md"]
    assert kept_data(store, "run1", "artifact-1.md") == b"second"


async def test_an_edit_by_a_person_sends_the_next_version_beside_it(
    root: ConfinedRoot, home: Path, store: Store
) -> None:
    mine = output(root, store, "run1")
    await grow(store, mine, b"first")
    (home / "out" / "a.md").write_text("edited by hand")
    await grow(store, mine, b"second")
    assert mine.displaced
    assert (home / "out" / "a.md").read_text() == "edited by hand"
    assert (home / "out" / "a.run1.md").read_bytes() == b"second"


@pytest.mark.parametrize(
    ("run_id", "edit", "is_its_own"), [("run1", b"", True), ("run2", b"", False), ("run1", b"\nedited by hand", False)]
)
@pytest.mark.parametrize("lost", ["DELETE FROM written", "UPDATE written SET sha256s = '[]'"])
async def test_a_growing_page_whose_note_was_lost_with_the_power_is_its_runs_own_as_long_as_nobody_changed_it(
    root: ConfinedRoot, home: Path, store: Store, lost: str, run_id: str, edit: bytes, is_its_own: bool
) -> None:
    await grow(store, output(root, store, "run1"), sealed(b"growing", "run1"))
    store.write_now(lambda tx: tx.execute(lost))
    page = home / "out" / "a.md"
    page.write_bytes(page.read_bytes() + edit)
    later = output(root, store, run_id)
    claim = later.claim(b"done", later.settle())
    assert (claim.output.path == "out/a.md", not later.displaced) == (is_its_own, is_its_own)
    if is_its_own:
        assert await roll_forward(root, stage(root, [claim.output], run_id)) == ["out/a.md"]
        assert page.read_bytes() == b"done"


async def test_a_page_that_was_handed_over_and_may_not_stand_there_yet_is_known_as_ours(
    root: ConfinedRoot, home: Path, store: Store
) -> None:
    mine = output(root, store, "run1")
    mine.grow(b"first")
    mine.grow(b"second")
    claim = mine.claim(b"last", mine.settle())  # nothing stands there yet
    await store.write(claim.note)
    assert (home / "out" / "a.md").read_bytes() == b"second"
    assert await roll_forward(root, stage(root, [claim.output], "run1")) == ["out/a.md"]
    assert (home / "out" / "a.md").read_bytes() == b"last"


@pytest.mark.parametrize("there", [b"first", b"never written"])
async def test_whichever_bytes_a_kill_leaves_at_the_path_are_known_as_ours(
    root: ConfinedRoot, home: Path, store: Store, there: bytes
) -> None:
    await grow(store, output(root, store, "run1"), b"first")
    mine = output(root, store, "run1")
    claim = mine.claim(b"never written", mine.settle())
    store.write_now(claim.note)
    (home / "out" / "a.md").write_bytes(there)
    again = output(root, store, "run1")
    await grow(store, again, b"second")
    assert not again.displaced
    assert (home / "out" / "a.md").read_bytes() == b"second"


async def test_a_version_whose_note_is_refused_is_not_shown_and_that_is_said(
    root: ConfinedRoot, home: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    await grow(store, output(root, store, "run1"), b"first")
    with watched(store) as driver:
        driver.before["COMMIT"] = sqlite_error(sqlite3.SQLITE_FULL)
        output(root, store, "run1").grow(b"second")
        with pytest.raises(StorageFailed):
            await store.write(lambda tx: None)
    assert (home / "out" / "a.md").read_bytes() == b"first"
    assert [record.name for record in caplog.records] == ["council.engine.outputs"]
    assert "run1 cannot be shown" in caplog.text


@pytest.mark.parametrize(
    ("edited", "left"),
    [
        (
            "---\nid: run1\nstatus: in_progress\n---\n\n## Now\n\nWe are at work; this page grows.\n\nInes: it leaks.\n",
            "---\nid: run1\nstatus: superseded\n---\n\n## Superseded\n\n{0}\n\nInes: it leaks.\n\n{0}\n",
        ),
        (
            "---\nid: run1\nstatus: mine\n---\n\n## Now\n\nWe are at work, I see; status: in_progress\n",
            "---\nid: run1\nstatus: mine\n---\n\n## Now\n\nWe are at work, I see; status: in_progress\n\n{}\n",
        ),
    ],
    ids=["ours are the status and the note", "a person changed both"],
)
async def test_a_page_that_a_person_wrote_into_is_changed_only_where_it_is_still_ours(
    root: ConfinedRoot, home: Path, store: Store, edited: str, left: str
) -> None:
    await grow(store, output(root, store, "run1"), b"first")
    (home / "out" / "a.md").write_text(edited)
    for _ in range(2):
        point_on(root, store, "run1", "out/a.md", "out/a.run1.md")
    pointer = "*The run has ended. Its page is [out/a.run1.md](a.run1.md).*"
    assert (home / "out" / "a.md").read_text() == left.format(pointer)
