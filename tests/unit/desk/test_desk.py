"""One home, its settings, keys and records: looked up when asked for, and wired once for every door."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from council.desk.desk import Desk
from council.errors import ConfigError, DaemonRunning
from council.redaction import Secret
from council.storage.files import FileLock
from council.storage.store import Store
from council.users.enrolment import add_user
from council.vault.sealing import place_of
from tests.rows import ended


def with_settings(desk: Desk, toml: str) -> Desk:
    (desk.home.root / "council.toml").write_text(toml)
    return desk


def test_a_look_at_the_runs_waits_for_no_settings(desk: Desk) -> None:
    assert with_settings(desk, "model = [").ledger.newest(1) == []
    with pytest.raises(ConfigError):
        _ = desk.settings


def test_a_look_at_the_runs_makes_no_database(desk: Desk) -> None:
    desk.ledger.count()
    assert not desk.home.runtime.exists()


def test_a_flag_of_the_door_wins_over_the_file(desk: Desk) -> None:
    with_settings(desk, 'model = "offline"\n')
    flagged = Desk(desk.home, {}, {"model": "scripted:x.json", "quiet_s": None})
    assert (desk.settings.model, flagged.settings.model) == ("offline", "scripted:x.json")


def test_what_is_odd_in_dotenv_is_told_once_to_the_door(desk: Desk) -> None:
    (desk.home.root / ".env").write_text("COUNCIL_MODLE=offline\n")
    told: list[str] = []
    warned = Desk(desk.home, {}, warn=told.append)
    assert warned.settings.model == warned.settings.model
    assert warned.asking("offline").settings.model == "offline"
    assert len(told) == 1
    assert "COUNCIL_MODLE" in told[0]


def test_the_offline_desk_has_the_same_home_and_keys_and_leaves_the_first_one_as_it_was(desk: Desk) -> None:
    offline = desk.asking("offline")
    assert offline.settings.model == "offline"
    assert desk.settings.model != "offline"
    assert offline.keys is desk.keys
    assert offline.home is desk.home


def test_a_key_that_only_the_vault_holds_is_found_by_every_door(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(desk.home.root.parent))
    environ = {"XDG_CONFIG_HOME": str(desk.home.root.parent)}
    with Desk(desk.home, environ).safe() as safe:
        safe.vault().set(place_of("steward", "", "GEMINI_API_KEY"), Secret("AIza-from-the-vault-0001"), expires_at="")
    found = Desk(desk.home, environ).keys.get("GEMINI_API_KEY")
    assert found is not None
    assert found.reveal() == "AIza-from-the-vault-0001"


def test_users_and_the_audit_of_their_changes_are_opened_together(desk: Desk) -> None:
    with Desk(desk.home, {"XDG_CONFIG_HOME": str(desk.home.root.parent)}).safe() as safe:
        add_user(safe.trail.log(), "anna", "Anna", ["user"])
        actions = [record.action for record in safe.trail.log().tail(5)]
    assert len(actions) == 1
    assert "user" in actions[0]


def test_a_home_that_is_held_is_held_for_one_alone(desk: Desk) -> None:
    with desk.held():
        assert FileLock.holder(desk.home.lock_file) is not None
        with pytest.raises(DaemonRunning), desk.held():
            pass
    assert FileLock.holder(desk.home.lock_file) is None


def test_work_that_only_a_resting_home_allows_says_which_daemon_to_stop(desk: Desk) -> None:
    desk.home.ensure_runtime()
    daemon = FileLock(desk.home.lock_file)
    daemon.acquire()
    with pytest.raises(DaemonRunning) as refused, desk.held():
        pass
    daemon.release()
    assert refused.value.fix == f"stop process {os.getpid()} on {socket.gethostname()}, then try again"


def test_runs_and_receipts_are_those_of_the_home(desk: Desk, store: Store) -> None:
    ended(store, "r1", 1)
    receipt = desk.receipts.read("r1")
    assert receipt is not None
    assert ([entry.run_id for entry in desk.ledger.newest(5)], receipt.run_id) == (["r1"], "r1")


def test_what_was_recorded_is_read_without_a_key(desk: Desk) -> None:
    async def model_of(app: object) -> str:
        return str(getattr(app, "model").name)  # noqa: B009

    assert desk.ask_offline(model_of).startswith("offline")


def test_an_overview_loads_nothing_that_takes_long() -> None:
    heavy = {"council.app", "asyncio", "pydantic", "sqlalchemy"}
    code = f"import sys, council.desk.overview; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
