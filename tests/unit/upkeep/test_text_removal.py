"""Memory changes in one go, beside runs that begin meanwhile; and what was rewritten is recorded, whatever came after."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from council.agents.memory import COPIES
from council.app import App, build_app
from council.desk.all_systems import house
from council.engine import statements as sql
from council.engine.outputs import OutputEntry, kept_data, note_written
from council.engine.runs import ActiveRun
from council.events import Events
from council.reports.past_run import PastRun
from council.settings import Home, ProviderKeys, Settings
from council.upkeep.forget import ForgetSurvey, Forgetting, _Job
from council.upkeep.forgotten_text import Span
from council.upkeep.system import ForgetCommand
from council.upkeep.text_removal import CannotForget, Traces
from tests.harness import make_home
from tests.rows import begun, ended

TEXT = "Grete's number is 555-0172"
FORGETTING, OTHER = "20260101-000000-aaaaaaaa", "20260102-000000-bbbbbbbb"
COPY = "auditor_session.json"
PAGE = "artifacts/page.md"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    app = build_app(Home(make_home(tmp_path / "home")), Settings(model="offline"), ProviderKeys(), systems=house())
    ended(app.store, FORGETTING, 1_000)
    app.store.write_now(lambda tx: tx.execute(sql.KEEP, (COPIES, COPY, TEXT.encode())))
    memory(app, "first").write_text(TEXT)
    yield app
    await app.aclose()


def memory(app: App, name: str) -> Path:
    path = app.home.session_states / "archive" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def forgetting(app: App) -> PastRun:
    return PastRun(app.ledger.journal(FORGETTING))


class Interrupted(Span):
    """A text; something is done once when it is looked for in a memory or a page, beside the loop."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__(TEXT, "[gone]")
        self._act: Callable[[], object] | None = act

    def is_in(self, text: str) -> bool:
        if text == TEXT and self._act is not None and threading.current_thread() is not threading.main_thread():
            act, self._act = self._act, None
            act()
        return super().is_in(text)


def has_text(app: App) -> tuple[bool, bool]:
    """Whether a memory and its copy have it."""
    copy = kept_data(app.store, COPIES, COPY) or b""
    return TEXT in memory(app, "first").read_text(), TEXT.encode() in copy


async def test_all_memories_change_between_two_turns_of_the_loop(app: App) -> None:
    seen = [has_text(app)]

    async def watch() -> None:
        while True:
            await asyncio.sleep(0)
            seen.append(has_text(app))

    watching = asyncio.create_task(watch())
    await Traces(app, forgetting(app), [Span(TEXT, "[gone]")]).remove()
    watching.cancel()
    assert set(seen) == {(True, True), (False, False)}


async def test_a_memory_that_was_written_while_the_others_were_looked_through_changes_along_with_them(app: App) -> None:
    later = memory(app, "a later one")
    run = forgetting(app)
    first_look_at_runs: list[str] = []
    traces = Traces(app, run, [Interrupted(lambda: later.write_text(f"{TEXT}, too"))])
    runs = traces._runs

    def looked() -> object:
        first_look_at_runs.append(later.read_text())
        return runs()

    traces._runs = looked  # type: ignore[method-assign,assignment]
    await traces.remove()
    assert first_look_at_runs == ["[gone], too"]


@pytest.mark.parametrize("told_by", ["its command", "its first step", "a later step"])
async def test_a_run_that_is_told_the_text_while_memory_is_looked_through_is_named_before_anything_is_changed(
    app: App, told_by: str
) -> None:
    run = forgetting(app)
    journal = begun(app.store, OTHER, command={"task": TEXT} if told_by == "its command" else {})
    if told_by == "a later step":
        run.runs.active[OTHER] = ActiveRun(journal, Events(), None, run.runs)

    def tell() -> None:
        run.runs.active[OTHER] = ActiveRun(journal, Events(), None, run.runs)
        if told_by != "its command":
            row = (journal.run, 1, "done", "one", "", 0, json.dumps(TEXT))
            app.store.write_now(lambda tx: tx.execute(sql.APPEND, row))

    traces = Traces(app, run, [Interrupted(tell)])
    await traces.require_in_no_unfinished_run()
    with pytest.raises(CannotForget, match=f"the unfinished run {OTHER} has the text"):
        await traces.remove()
    assert has_text(app) == (True, True)


async def test_half_copies_of_a_killed_process_are_not_named_for_they_go(app: App) -> None:
    copies = app.home.runtime / "copies"
    copies.mkdir()
    halves = [copies / ".council-20261126.db.partial", app.home.runtime / ".council.db.restored"]
    for file in (*halves, app.home.runtime / "mine.db"):
        file.write_bytes(b"SQLite format 3\0" * 10)
    traces = Traces(app, forgetting(app), [Span(TEXT, "[gone]")])
    assert traces.databases() == (".council/mine.db",)
    traces.sweep(lambda copy: False)
    assert [path for path in halves if path.exists()] == []


async def test_what_was_rewritten_is_recorded_also_when_something_stands_in_the_way_later(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = app.home.root / PAGE
    page.parent.mkdir(exist_ok=True)
    page.write_text(TEXT)
    before = app.root.fingerprint(PAGE)
    assert before is not None
    app.store.write_now(lambda tx: note_written(tx, OutputEntry(PAGE, OTHER, (before,))))
    with app.audit.log().transaction() as transaction:
        transaction.record("effect", "files_rewritten", "steward", {"files": [{"path": PAGE, "sha256": before}]})

    def stand_in_the_way(traces: Traces) -> None:
        raise CannotForget("it is in the way.")

    monkeypatch.setattr(Traces, "rebuild_indexes", stand_in_the_way)
    run, spans = forgetting(app), [Span(TEXT, "[gone]")]
    command = ForgetCommand.model_construct(type="forget", text=TEXT)
    execution = Forgetting(run, app)
    execution._job = _Job(command, "", spans, None, Traces(app, run, spans))
    with pytest.raises(CannotForget, match="in the way"):
        await execution._forget(ForgetSurvey({}, as_recorded=(PAGE,)))
    assert page.read_text() == "[gone]"
    assert app.audit.log().files()[PAGE].sha256 == app.root.fingerprint(PAGE)
