"""What a killed process left goes at the next start, and nothing else does."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from council.audit.chain import Head
from council.audit.head_file import HEAD_FILE, read_head, write_head
from council.engine.engine import EnginePaths
from council.engine.journal import FileJournal
from council.engine.outputs import OutputFile, OutputLedger
from council.engine.records import EPOCH, Committed, FileIdentity, RunHeader
from council.engine.runs import Run
from council.events import Events
from council.settings import Home, builtin_personas_dir, init_home
from council.storage.paths import ConfinedRoot
from council.upkeep.leftovers import sweep

TEMPORARY = ".out.md.0123456789ab.tmp"
STAGED = ".out.md.20261120-225413-k3f9x2ab.staged"
RUN = "20261120-225413-k3f9x2ab"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    init_home(tmp_path / "home", personas_from=builtin_personas_dir())
    home = Home(tmp_path / "home")
    home.ensure_runtime()
    return home


def begun(home: Home, run_id: str) -> FileJournal:
    (home.runs / run_id).mkdir()
    header = RunHeader(
        run_id=run_id, epoch=EPOCH, created="2026-11-20T00:00:00Z", lane="side", type="deliberate", command={},
        command_hash="h", file=FileIdentity("command.json", 1, 2, "s"), secret="00" * 32, output_path="decisions/out.md",
    )  # fmt: skip
    return FileJournal.create(home.runs / run_id / "journal.jsonl", header)


@pytest.fixture
def run(home: Home) -> Run:
    paths = EnginePaths.under(home.runtime)
    journal = begun(home, RUN)
    journal.attempt()
    output = OutputFile(ConfinedRoot(home.root), OutputLedger(paths.outputs), paths.runs, "decisions/out.md", RUN)
    return Run(journal, Events(), output)


def put(folder: Path, *names: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("x")
    return [folder / name for name in names]


@pytest.mark.parametrize(
    "folder",
    [
        ".council", ".council/receipts", ".council/ids", ".council/outputs", ".council/memory/side", "artifacts", "decisions",
        "session_states", "session_states/side", "session_states/archive/side/auditor", f".council/runs/{RUN}",
        f".council/runs/{RUN}/blobs", "commands/failed",
    ],
)  # fmt: skip
def test_temporaries_and_stages_of_an_uncommitted_run_go_from_every_folder_of_ours(
    home: Home, run: Run, folder: str
) -> None:
    left = put(home.root / folder, TEMPORARY, STAGED)
    kept = put(home.root / folder, "out.md", ".out.md", ".hidden.tmp", ".other.20261120-225413-another0.staged")
    sweep(home, [run.journal])
    assert [path for path in left if path.exists()] == []
    assert [path for path in kept if not path.exists()] == []


def test_what_a_commit_record_names_stays_for_its_rename(home: Home, run: Run) -> None:
    run.journal.commit(Committed("succeeded", (), b"{}"))  # type: ignore[arg-type]
    [staged] = put(home.root / "decisions", STAGED)
    sweep(home, [run.journal])
    assert staged.exists()


def test_a_neighbour_in_the_inbox_may_be_a_drop_of_another_process_and_stays(home: Home, run: Run) -> None:
    [neighbour] = put(home.commands, TEMPORARY)
    sweep(home, [run.journal])
    assert neighbour.exists()


def test_the_head_of_the_audit_that_another_process_is_just_writing_stays(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, sweeps = os.replace, []

    def sweep_before(*arguments: Any, **keywords: Any) -> None:
        monkeypatch.undo()
        sweeps.append(threading.Thread(target=sweep, args=(home, [])))
        sweeps[0].start()
        sweeps[0].join(0.5)  # it waits for the writer, or is done
        replace(*arguments, **keywords)

    monkeypatch.setattr(os, "replace", sweep_before)
    write_head(home.runtime / HEAD_FILE, Head("chain", 7, "mac"))
    sweeps[0].join(60)
    assert read_head(home.runtime / HEAD_FILE) == Head("chain", 7, "mac")


def test_behind_a_link_nothing_is_touched(home: Home, run: Run, tmp_path: Path) -> None:
    [outside] = put(tmp_path / "outside", TEMPORARY)
    home.artifacts.joinpath("README.md").unlink(missing_ok=True)
    home.artifacts.rmdir()
    home.artifacts.symlink_to(tmp_path / "outside")
    sweep(home, [run.journal])
    assert outside.exists()


def test_a_run_that_never_began_goes_and_any_other_stays(home: Home, run: Run) -> None:
    begun(home, "20261120-225414-never000").close()
    worked = begun(home, "20261120-225415-worked00")
    worked.attempt()
    worked.close()
    marked = begun(home, "20261120-225416-marked00")
    marked.close()
    put(home.runtime / "active", "20261120-225416-marked00")
    ended = begun(home, "20261120-225417-ended000")
    ended.close()
    put(home.receipts, "20261120-225417-ended000.json")
    (home.runs / "20261120-225419-halfgone").mkdir()
    (home.runs / "20261120-225418-damaged0").mkdir()
    (home.runs / "20261120-225418-damaged0" / "journal.jsonl").write_text("?\n?\n")
    sweep(home, [run.journal])
    left = {path.name.split("-")[2] for path in home.runs.iterdir()}
    assert left == {"k3f9x2ab", "worked00", "marked00", "ended000", "damaged0"}
