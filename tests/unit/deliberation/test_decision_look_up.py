"""The look-up of a decision takes seconds of work at worst, and other runs go on meanwhile."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from council.app import build_app
from council.daemon.service import Service
from council.deliberation import page_state
from council.deliberation.decision import Decision
from council.desk.all_systems import house
from council.settings import Home, load_provider_keys, load_settings
from tests.harness import command, drop_command, make_home

SCRIPT = """\
replies:
  - {purpose: synthesis, text: "The roof costs 12,400 EUR [E1: a.md:1], and not 13,100 EUR [E1: a.md:1]."}
default: {text: "So be it."}
"""


@pytest.mark.parametrize("inputs", [["a.md"], []])
def test_a_decision_is_looked_up_once_and_beside_the_event_loop_where_something_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inputs: list[str]
) -> None:
    home = make_home(tmp_path / "home", settings='model = "scripted:script.yaml"\n')
    (home / "script.yaml").write_text(SCRIPT)
    (home / "a.md").write_text("The roof costs 12,400 EUR.\n")
    drop_command(home, command(input_artifacts=inputs, rounds=1))
    threads = []
    decide = page_state.decide

    def watched(*arguments: Any) -> Decision:
        threads.append(threading.current_thread())
        return decide(*arguments)

    monkeypatch.setattr(page_state, "decide", watched)
    settings = load_settings(Home(home), flags={}, environ={}).settings
    app = build_app(Home(home), settings, load_provider_keys(Home(home), {}), environ={}, systems=house())
    asyncio.run(Service(app, once=True).run())

    mark = "13,100 EUR [not in the cited lines]" if inputs else "[E1: a.md:1] [no such evidence]"
    assert mark in (home / "artifacts" / "out.md").read_text().replace("__", "")
    assert [thread is threading.main_thread() for thread in threads] == [not inputs]
