"""What a killed process left goes at the next start, and nothing else does."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from council.app import commands_of
from council.audit.chain import ChainHead
from council.audit.head_file import HEAD_FILE, read_head, write_head
from council.desk.all_systems import house
from council.engine.outputs import OutputEntry, note_written
from council.engine.records import Commit
from council.engine.runs import ActiveRun
from council.events import Events
from council.settings import Home, builtin_personas_dir, init_home
from council.storage.store import Store
from council.upkeep.repair import strays, sweep
from tests.rows import begun

COMMANDS = commands_of(house())


TEMPORARY = ".out.md.0123456789ab.tmp"
STAGED = ".out.md.20261120-225413-k3f9x2ab.staged"
RUN = "20261120-225413-k3f9x2ab"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    init_home(tmp_path / "home", personas_from=builtin_personas_dir())
    home = Home(tmp_path / "home")
    home.ensure_runtime()
    return home


@pytest.fixture
def store(home: Home) -> Iterator[Store]:
    with closing(Store.open(home.runtime)) as store:
        yield store


@pytest.fixture
def run(store: Store) -> ActiveRun:
    """A run that is under way."""
    return ActiveRun(begun(store, RUN, lane="side", output_path="decisions/out.md"), Events(), None)


def put(folder: Path, *names: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("x")
    return [folder / name for name in names]


@pytest.mark.parametrize(
    "folder",
    [
        ".council", "artifacts", "decisions", "session_states", "session_states/side",
        "session_states/archive/side/auditor", "commands/failed",
    ],
)  # fmt: skip
def test_temporaries_and_stages_of_an_uncommitted_run_go_from_every_folder_of_ours(
    home: Home, run: ActiveRun, folder: str
) -> None:
    left = put(home.root / folder, TEMPORARY, STAGED)
    kept = put(home.root / folder, "out.md", ".out.md", ".hidden.tmp", ".other.20261120-225413-another0.staged")
    sweep(home, COMMANDS, [run])
    assert [path for path in left if path.exists()] == []
    assert [path for path in kept if not path.exists()] == []


def test_half_copies_of_a_killed_backup_and_restore_go_and_daily_copies_stay(home: Home, run: ActiveRun) -> None:
    left = put(home.runtime / "copies", ".council-20261126.db.partial", ".council-20261126.db.partial-journal")
    left += put(home.runtime, ".council.db.restored")
    [kept] = put(home.runtime / "copies", "council-20261126.db")
    sweep(home, COMMANDS, [run])
    assert [path for path in (*left, kept) if path.exists()] == [kept]


async def test_what_a_commit_record_names_stays_for_its_rename(home: Home, run: ActiveRun) -> None:
    await run.journal.commit(lambda tx: Commit("succeeded", (), msgspec.Raw(b"{}")))
    [staged] = put(home.root / "decisions", STAGED)
    sweep(home, COMMANDS, [run])
    assert staged.exists()


def test_a_neighbour_in_the_inbox_may_be_a_drop_of_another_process_and_stays(home: Home, run: ActiveRun) -> None:
    [neighbour] = put(home.commands, TEMPORARY)
    sweep(home, COMMANDS, [run])
    assert neighbour.exists()


def test_the_head_of_the_audit_that_another_process_is_just_writing_stays(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, sweeps = os.replace, []

    def sweep_before(*arguments: Any, **keywords: Any) -> None:
        monkeypatch.undo()
        sweeps.append(threading.Thread(target=sweep, args=(home, COMMANDS, [])))
        sweeps[0].start()
        sweeps[0].join(0.5)  # it waits for the writer, or is done
        replace(*arguments, **keywords)

    monkeypatch.setattr(os, "replace", sweep_before)
    write_head(home.runtime / HEAD_FILE, ChainHead("chain", 7, "mac"))
    sweeps[0].join(60)
    assert read_head(home.runtime / HEAD_FILE) == ChainHead("chain", 7, "mac")


def test_behind_a_link_nothing_is_touched(home: Home, run: ActiveRun, tmp_path: Path) -> None:
    [outside] = put(tmp_path / "outside", TEMPORARY)
    home.artifacts.joinpath("README.md").unlink(missing_ok=True)
    home.artifacts.rmdir()
    home.artifacts.symlink_to(tmp_path / "outside")
    sweep(home, COMMANDS, [run])
    assert outside.exists()


def test_wherever_a_run_ever_wrote_its_leftovers_are_found_but_for_those_of_runs_that_go_on(
    home: Home, store: Store
) -> None:
    elsewhere = OutputEntry("notes/deep/page.md", "r1", ("0",))
    store.write_now(lambda tx: note_written(tx, elsewhere))
    found = put(home.root / "notes" / "deep", TEMPORARY, ".out.md.20261120-225413-another0.staged")
    put(home.root / "notes" / "deep", STAGED, "page.md")
    put(home.root / "unknown", TEMPORARY)
    assert list(strays(home, store, {RUN})) == sorted(found)


def test_a_drop_that_takes_longer_than_any_is_a_leftover(home: Home, store: Store) -> None:
    fresh, old = put(home.commands, TEMPORARY, ".old.md.0123456789ab.tmp")
    os.utime(old, (1_000_000_000, 1_000_000_000))
    assert list(strays(home, store, ())) == [old]
    assert fresh.exists()
