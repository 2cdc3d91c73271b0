"""The state of a home as any door tells it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from council.desk.desk import Desk
from council.desk.overview import overview
from council.engine.receipts import ArtifactRef
from council.engine.records import Waiting
from council.storage.store import Store
from tests.rows import AT, begun, ended


def published(desk: Desk, state: dict[str, Any] | None) -> None:
    """What a daemon publishes, from here on."""
    desk.home.ensure_runtime()
    desk.home.state_file.write_text(json.dumps(state) if state is not None else "{")


def test_a_new_home_is_stopped_and_empty(desk: Desk) -> None:
    view = overview(desk)
    assert (view.state, view.daemon, view.runs, view.recent, view.waiting_files) == ("STOPPED", None, [], [], [])
    assert view.as_json() == {
        "home": str(desk.home.root), "state": "STOPPED", "daemon": None, "companions": [],
        "degraded": {}, "edited_settings": [], "runs": [], "unadmitted": [],
        "unfinished": 0,
        "not_commands": [], "waiting_files": [], "refused": {"count": 0, "newest": None}, "plans": [], "recent": [],
    }  # fmt: skip


def test_files_in_the_inbox_wait_and_notes_are_told_apart(desk: Desk) -> None:
    for name, text in (
        ("a.json", "{}"), ("note.md", "# A note\n"), ("b.md", "---\ntask_description: x\n---\n"), ("c.txt", ""),
        ("README.md", ""), (".hidden.json", ""), ("d.json.tmp", ""),
    ):  # fmt: skip
        (desk.home.commands / name).write_text(text)
    desk.home.recurring.mkdir(exist_ok=True)
    for name in ("brief.json", "minute.markdown", "README.md"):
        (desk.home.recurring / name).touch()
    view = overview(desk)
    assert view.waiting_files == ["a.json", "b.md"]
    assert view.not_commands == ["c.txt", "note.md", "recurring/minute.markdown"]


def test_the_runs_under_way_are_those_that_the_daemon_publishes(desk: Desk) -> None:
    run = {"run_id": "r1", "status": "running", "file": "a.json", "title": "A"}
    (desk.home.commands / "a.json").write_text("{}")
    with desk.held():
        published(desk, {"state": "EXECUTING_TASK", "runs": [run], "model": "offline"})
        view = overview(desk)
    assert (view.state, view.model, view.runs, view.unfinished) == ("EXECUTING_TASK", "offline", [run], None)
    assert view.waiting_files == []
    assert list(view.as_json())[:9] == [
        "home",
        "state",
        "daemon",
        "companions",
        "degraded",
        "edited_settings",
        "runs",
        "unadmitted",
        "model",
    ]


def test_a_daemon_that_has_published_nothing_yet_is_starting(desk: Desk) -> None:
    with desk.held():
        published(desk, None)
        view = overview(desk)
    assert (view.state, view.runs, view.model) == ("STARTING", [], None)


def test_without_a_daemon_unfinished_runs_are_read_from_their_journals(desk: Desk, store: Store) -> None:
    begun(store, "r1", title="First")
    waits = begun(store, "r2", title="Second")
    asyncio.run(waits.wait(Waiting("provider", "2026-11-20T00:00:00Z", 90.0, "busy")))
    view = overview(desk)
    assert [(run["run_id"], run["status"]) for run in view.runs] == [("r1", "queued"), ("r2", "waiting")]
    waiting = view.runs[1]
    assert (waiting["waiting_for"], waiting["until"][:19], waiting["error"]) == (
        "provider", "2026-11-20T00:01:30", "busy",
    )  # fmt: skip
    assert view.unfinished == 2


def test_of_very_many_unfinished_runs_the_first_are_shown_and_all_are_counted(
    desk: Desk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("council.desk.overview._UNFINISHED", 2)
    for number in range(3):
        begun(store, f"r{number}")
    view = overview(desk)
    assert ([run["run_id"] for run in view.runs], view.unfinished) == (["r0", "r1"], 3)


def test_the_last_runs_that_ended_are_told_newest_first(desk: Desk, store: Store) -> None:
    ended(store, "r1", 2, artifact=ArtifactRef("artifacts/a.md", "0"))
    ended(store, "r2", 1, status="failed", title="B")
    recent = overview(desk).as_json()["recent"]
    assert [run["run_id"] for run in recent] == ["r1", "r2"]
    assert recent[0] == {
        "run_id": "r1", "status": "succeeded", "title": "r1", "artifact": "artifacts/a.md", "finished": AT,
    }  # fmt: skip
