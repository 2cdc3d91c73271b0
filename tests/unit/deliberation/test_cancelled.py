"""A run that is cancelled shows all that was recorded until then, at whichever instant of the event loop the cancel came."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from council.app import App, build_app
from council.daemon.service import Service
from council.desk.all_systems import house
from council.engine.engine import Engine
from council.events import Event
from council.reports.past_run import replay
from council.settings import Home, load_provider_keys, load_settings
from tests.harness import command, drop_command, ledger, make_home, receipts

SCRIPT = """\
replies:
  - {purpose: synthesis, times: 0, text: "Do it [E1: a.md:1]."}
default: {text: "To this I say: so be it.\\n\\n[ORCHESTRATOR_REQUEST: READ_FILE(a.md)]", delay_s: 0.001}
"""
KINDS = ("turn_started", "turn_ended", "request", "synthesis")
MOST_EVENTS = 100  # of these kinds in one such run
STEPS = (1, 3, 4)  # of the event loop behind such an event: a round of turns taken at once is over in the third


class CancelsAfter:
    """Cancels an app's run `steps` steps of the event loop after its n-th event of KINDS, if it is still under way then."""

    def __init__(self, app: App, engine: Engine, events: int, steps: int) -> None:
        self.came = False
        self._engine = engine
        self._events = events
        self._steps = steps
        app.events.subscribe(self._on_event)

    def _on_event(self, event: Event) -> None:
        self._events -= event.kind in KINDS
        if event.kind in KINDS and self._events == 0:
            asyncio.get_running_loop().call_soon(self._step, event.run_id)

    def _step(self, run_id: str) -> None:
        self._steps -= 1
        if self._steps > 0:
            asyncio.get_running_loop().call_soon(self._step, run_id)
        else:
            self._cancelling = asyncio.ensure_future(self._cancel(run_id))

    async def _cancel(self, run_id: str) -> None:
        self.came = await self._engine.cancel(run_id, "somebody")


def app_of(home: Home) -> App:
    return build_app(
        home,
        load_settings(home, flags={}, environ={}).settings,
        load_provider_keys(home, {}),
        environ={},
        systems=house(),
    )


def cancelled_after(home: Home, events: int, steps: int, protocol: str) -> tuple[bool, bytes, str]:
    """Whether the cancel came in time, the page, and the run."""
    body = command(input_artifacts=["a.md"], rounds=2)
    body["config"]["protocol"] = protocol
    drop_command(home.root, body)
    app = app_of(home)
    service = Service(app, once=True)
    cancels = CancelsAfter(app, service.engine, events, steps)
    asyncio.run(service.run())
    return cancels.came, (home.root / "artifacts" / "out.md").read_bytes(), receipts(home.root)[-1]["run_id"]


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("protocol", ["triad", "independent", "review"])
def test_the_page_of_a_run_cancelled_just_after_any_event_is_what_replay_shows(
    tmp_path: Path, protocol: str, steps: int
) -> None:
    root = make_home(tmp_path / "home", settings='model = "scripted:script.yaml"\nmodel_attempts = 1\n')
    (root / "script.yaml").write_text(SCRIPT)
    (root / "a.md").write_text("alpha is the first fact\n")
    in_time = 0
    elsewhere = make_home(tmp_path / "elsewhere", settings='model = "offline"\n')
    with contextlib.closing((other := app_of(Home(elsewhere))).store):
        for events in range(1, MOST_EVENTS):
            came, page, run_id = cancelled_after(Home(root), events, steps, protocol)
            again = asyncio.run(replay(ledger(root).journal(run_id), other.handlers))
            assert page.decode() == again.decode(), events
            if not came:
                break
            in_time += 1
    assert in_time >= 12
