from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from council.agents.session_file import Session, encode_session
from council.app import commands_of
from council.audit.chain import ChainHead
from council.audit.head_file import HEAD_FILE, write_head
from council.desk.all_systems import house
from council.engine.journal import admit
from council.engine.receipts import Receipt, Receipts
from council.engine.records import EPOCH, FileIdentity, RunHeader
from council.errors import ModelError
from council.llm.base import Reply
from council.settings import Home, ProviderKeys, Settings, load_provider_keys
from council.storage.files import FileLock
from council.storage.versions import DATABASE_FILE
from council.upkeep import doctor, model_trial
from council.upkeep.copies import copy_daily
from council.upkeep.doctor import Check, examine, ping
from tests.harness import make_home, opened

COMMANDS = commands_of(house())


@dataclass
class HeldClock:
    moment: datetime = datetime(2026, 11, 20, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment

    def monotonic_s(self) -> float:
        return 1.0


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(make_home(tmp_path / "home", settings='model = "offline"\n'))


def examined(home: Home, **environ: str) -> list[Check]:
    keys = load_provider_keys(home, environ)
    return examine(home, keys, COMMANDS, flags={}, environ=environ, clock=HeldClock())


def found(home: Home, **environ: str) -> dict[str, Check]:
    return {check.name: check for check in examined(home, **environ)}


def test_a_fresh_home_is_in_order(home: Home) -> None:
    assert {check.status for check in found(home).values()} == {"ok"}


def test_looking_leaves_nothing_behind(home: Home) -> None:
    before = sorted(home.root.rglob("*"))
    found(home)
    assert sorted(home.root.rglob("*")) == before


def test_a_missing_folder_fails_with_the_command_that_makes_it(home: Home) -> None:
    (home.artifacts / "README.md").unlink()
    home.artifacts.rmdir()
    check = found(home)["artifacts/"]
    assert (check.status, check.fix) == ("fail", f"council init {home.root}")


def test_what_stands_in_a_folders_place_is_named_with_the_command_that_mends_it(home: Home) -> None:
    (home.artifacts / "README.md").unlink()
    home.artifacts.rmdir()
    home.artifacts.write_text("A page.")
    home.session_states.rename(home.root / "elsewhere")
    home.session_states.symlink_to("nowhere")
    checks = found(home)
    assert checks["artifacts/"].message == "is a file, and not a folder"
    assert checks["session_states/"].message == "is a symbolic link that leads to no folder"
    for folder in (home.artifacts, home.session_states):
        assert checks[f"{folder.name}/"].status == "fail"
        assert checks[f"{folder.name}/"].fix == f"mv {folder} {folder}.aside && council init {home.root}"


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (PermissionError(13, "Permission denied"), "chmod u+rwx "),
        (OSError(30, "Read-only file system"), "make that file"),
    ],
)
def test_a_folder_that_cannot_be_written_fails(
    home: Home, monkeypatch: pytest.MonkeyPatch, error: OSError, fix: str
) -> None:
    def refuse(*, dir: Path, prefix: str) -> object:  # root may write anywhere, so that the mode alone proves nothing
        raise error

    monkeypatch.setattr(doctor.tempfile, "NamedTemporaryFile", refuse)
    check = found(home)["commands/"]
    assert (check.status, check.message) == ("fail", f"cannot be written ({error.strerror})")
    assert check.fix.startswith(fix)


def test_run_time_files_that_others_can_read_are_a_warning(home: Home) -> None:
    home.runtime.mkdir(mode=0o755)
    home.runtime.chmod(0o755)
    assert found(home)[".council/"].status == "warn"


def test_a_folder_on_another_file_system_fails(
    home: Home, tmp_path: Path, require_service: Callable[[str, bool, str], None]
) -> None:
    own = tmp_path.stat().st_dev
    apart = [
        folder for folder in map(Path, ("/dev/shm", "/var/tmp")) if folder.is_dir() and folder.stat().st_dev != own
    ]
    require_service("a second file system", bool(apart), "mount /dev/shm apart from /var/tmp")
    home.failed.symlink_to(apart[0])
    check = found(home)["one file system"]
    assert check.status == "fail"
    assert check.message.startswith("commands/failed/ is on another file system")


def test_settings_that_do_not_fit_fail_with_their_own_fix_and_the_rest_is_still_checked(home: Home) -> None:
    (home.root / "council.toml").write_text("max_parallel_runs = 0\n")
    checks = found(home)
    assert checks["settings"].status == "fail"
    assert "from 1 to 64" in checks["settings"].fix
    assert "model" not in checks
    assert checks["disk"].status == "ok"


def test_a_missing_key_fails_naming_the_variable_and_a_present_one_is_never_shown(home: Home) -> None:
    (home.root / "council.toml").write_text("")
    check = found(home)["model"]
    assert (check.status, "GEMINI_API_KEY" in check.fix) == ("fail", True)
    check = found(home, GEMINI_API_KEY="AIza-not-a-real-key")["model"]
    assert (check.status, "AIza" in check.message + check.fix) == ("ok", False)


def test_a_missing_or_unusable_script_of_the_scripted_model_fails(home: Home) -> None:
    (home.root / "council.toml").write_text('model = "scripted:script.json"\n')
    assert found(home)["model"].status == "fail"
    (home.root / "script.json").write_text("{}")
    assert found(home)["model"].status == "fail"
    (home.root / "script.json").write_text('{"default": {"text": "yes"}}')
    assert found(home)["model"].status == "ok"


def test_a_recurring_command_that_does_not_parse_is_named(home: Home) -> None:
    folder = home.commands / "recurring"
    folder.mkdir()
    (folder / "good.yaml").write_text(
        "schedule: 0 7 * * *\ntask_description: x\noutput_artifact_path: artifacts/x.md\n"
    )
    assert found(home)["schedules"].status == "ok"
    (folder / "bad.yaml").write_text("schedule: never\ntask_description: x\noutput_artifact_path: artifacts/x.md\n")
    check = found(home)["schedules"]
    assert (check.status, "bad.yaml" in check.message) == ("warn", True)
    assert "Fix:" not in check.message
    assert check.fix.startswith("give five fields")


def test_pipes_in_the_place_of_a_schedule_and_a_memory_are_named_and_not_waited_for(home: Home) -> None:
    (home.commands / "recurring").mkdir()
    os.mkfifo(home.commands / "recurring" / "pipe.yaml")
    os.mkfifo(home.session_states / "auditor_session.json")
    checks = found(home)
    assert "pipe.yaml: not a regular file" in checks["schedules"].message
    assert "auditor_session.json is damaged (it is not a regular file)" in checks["memory"].message


def test_a_persona_that_does_not_parse_or_lacks_fails(home: Home) -> None:
    (home.personas / "auditor.md").write_text("no front matter")
    assert "auditor.md" in found(home)["personas"].message
    (home.personas / "auditor.md").unlink()
    check = found(home)["personas"]
    assert (check.status, "AUDITOR" in check.message) == ("fail", True)


def test_readable_files_that_look_like_credentials_are_named(home: Home) -> None:
    (home.root / "docs").mkdir()
    (home.root / "docs" / "deploy.md").write_text("export TOKEN=ghp_" + "a1B2" * 9 + "\n")
    (home.root / "docs" / "passwords.md").write_text("x\n")
    (home.root / "docs" / "tokens-and-how-we-count-them.md").write_text("A token is a word.\n")
    (home.root / "docs" / "server.pem").write_text("denied anyway\n")
    check = found(home)["credentials"]
    assert check.status == "warn"
    assert check.message.endswith(": docs/deploy.md, docs/passwords.md")
    (home.root / "council.toml").write_text('model = "offline"\ndeny = ["docs/**"]\n')
    assert found(home)["credentials"].status == "ok"


def test_a_damaged_memory_is_a_warning_that_names_the_file_and_changes_nothing(home: Home) -> None:
    (home.session_states / "coordinator_session.json").write_bytes(encode_session(Session("COORDINATOR")))
    damaged = home.session_states / "work" / "auditor_session.json"
    damaged.parent.mkdir()
    damaged.write_bytes(encode_session(Session("AUDITOR", "work")).replace(b"AUDITOR", b"INTRUDER"))
    check = found(home)["memory"]
    assert check.status == "warn"
    assert "session_states/work/auditor_session.json is damaged" in check.message
    assert "`council memory reset AUDITOR --lane work`" in check.fix
    assert damaged.exists()


@pytest.mark.parametrize("link", ["session_states/work/auditor_session.json", "session_states/work"])
def test_a_link_in_the_place_of_a_memory_fails_once_with_its_fix(home: Home, tmp_path: Path, link: str) -> None:
    work = home.session_states / "work"
    work.mkdir()
    for role in ("AUDITOR", "COORDINATOR"):
        (work / f"{role.lower()}_session.json").write_bytes(encode_session(Session(role, "work")))
    (home.root / link).rename(tmp_path / "elsewhere")
    (home.root / link).symlink_to(tmp_path / "elsewhere")
    [check] = [check for check in examined(home) if check.name == "memory"]
    assert (check.status, f"`{link}` is a symbolic link" in check.message) == ("fail", True)
    assert check.fix == "replace the link with the folder or file itself"


def test_whole_memories_are_counted(home: Home) -> None:
    (home.session_states / "auditor_session.json").write_bytes(encode_session(Session("AUDITOR")))
    assert found(home)["memory"].message == "1 session file, all whole"


def test_a_database_that_is_whole_is_counted_with_its_copies(home: Home) -> None:
    with opened(home.root) as store:
        Receipts(store).answer(ended("r-1", "2026-11-20T12:00:00Z"), 1)
        check = found(home)["database"]
        assert (check.status, check.message) == ("ok", f"1 run, SQLite {sqlite3.sqlite_version}; no daily copy yet")
        copy_daily(home, store, HeldClock().now())
    assert found(home)["database"].message.endswith("; daily copies: council-20261120.db")


def test_daily_copies_that_are_missing_or_old_are_a_warning(home: Home) -> None:
    with opened(home.root) as store:
        Receipts(store).answer(ended("r-1", "2026-11-19T12:00:00Z"), 1)
        assert "daily copies" not in found(home)
        Receipts(store).answer(ended("r-0", "2026-11-17T12:00:00Z"), 0)
        check = found(home)["daily copies"]
        assert (check.status, "there is none" in check.message) == ("warn", True)
        copy_daily(home, store, datetime(2026, 11, 17, tzinfo=UTC))
        check = found(home)["daily copies"]
        assert (check.status, "council-20261117.db" in check.message) == ("warn", True)
        copy_daily(home, store, datetime(2026, 11, 18, tzinfo=UTC))
    assert "daily copies" not in found(home)


@pytest.mark.parametrize(("version", "names"), [((3, 40, 1), ["sqlite"]), ((3, 51, 2), ["sqlite"]), ((3, 51, 3), [])])
def test_a_sqlite_with_the_known_defect_is_named(version: tuple[int, ...], names: list[str]) -> None:
    assert [check.name for check in doctor.check_sqlite(version)] == names


def test_records_that_the_database_lost_with_its_log_are_a_warning(home: Home) -> None:
    with opened(home.root) as store:
        store.write_now(lambda tx: tx.execute("INSERT INTO audit_chain (id, chain, seq, mac) VALUES (1, 'c', 7, 'm')"))
    write_head(home.runtime / HEAD_FILE, ChainHead("c", 7, "m"))
    assert "lost records" not in found(home)
    write_head(home.runtime / HEAD_FILE, ChainHead("c", 9, "n"))
    check = found(home)["lost records"]
    assert (check.status, "names record 9 of the audit, but the database ends with 7" in check.message) == (
        "warn",
        True,
    )
    write_head(home.runtime / HEAD_FILE, ChainHead("another", 3, "n"))
    assert found(home)["lost records"].status == "warn"


@pytest.mark.parametrize("damage", ["no database", "a page", "the end"])
def test_a_damaged_database_fails_with_the_copies_that_there_are_and_stays_as_it_is(home: Home, damage: str) -> None:
    with opened(home.root) as store:
        for number in range(50):
            Receipts(store).answer(ended(f"r-{number:02}", "2026-11-20T12:00:00Z"), number)
    path = home.runtime / DATABASE_FILE
    whole = path.read_bytes()
    spoilt = {
        "no database": b"this is no database" * 1_000,
        "a page": whole[: 8192 * 5] + b"\x7f" * 8192 * 20 + whole[8192 * 25 :],
        "the end": whole[: len(whole) // 2],
    }[damage]
    path.write_bytes(spoilt)
    check = found(home)["database"]
    assert (check.status, "no daily copy yet" in check.message) == ("fail", True)
    assert "backup" in check.fix
    (home.runtime / "copies").mkdir()
    (home.runtime / "copies" / "council-20261119.db").write_bytes(whole)
    check = found(home)["database"]
    assert (check.status, "council-20261119.db" in check.message, "council restore" in check.fix) == (
        "fail",
        True,
        True,
    )
    assert path.read_bytes() == spoilt


def test_a_home_on_a_network_drive_fails(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(home.root):
        pass
    monkeypatch.setattr(doctor, "network_file_system", lambda folder: "nfs4")
    shown = [check for check in doctor.check_database(home, Settings()) if check.status == "fail"]
    assert [check.message for check in shown] == ["the home is on a network drive (nfs4)"]


def test_a_postgresql_that_does_not_answer_fails(home: Home) -> None:
    settings = Settings(database_url="postgresql://somebody@127.0.0.1:1/none")
    [check] = doctor.check_database(home, settings)
    assert (check.status, "127.0.0.1/none" in check.message) == ("fail", True)


def test_leftovers_of_a_process_that_was_killed_are_warnings(home: Home) -> None:
    home.ensure_runtime()
    (home.artifacts / ".out.md.20261120-000000-aaaaaaaa.staged").write_text("")
    (home.commands / ".r-1.taken").write_text("{}")
    checks = found(home)
    assert checks["taken files"].fix == "council run --once"
    assert checks["temporary files"].fix == "council repair"
    header = RunHeader(
        "20261120-000000-aaaaaaaa", EPOCH, "2026-11-20T00:00:00Z", "main", "deliberate", {}, "h",
        FileIdentity("c", 1, 2, "s"), "00" * 32,
    )  # fmt: skip
    with opened(home.root) as store:
        store.write_now(lambda tx: admit(tx, header))
    checks = found(home)
    assert checks["unfinished runs"].status == "warn"
    assert "temporary files" not in checks  # the unfinished run may need it


def test_nothing_is_left_over_while_a_daemon_holds_the_home(home: Home) -> None:
    home.ensure_runtime()
    (home.commands / ".r-1.taken").write_text("{}")
    lock = FileLock(home.lock_file)
    lock.acquire()
    checks = found(home)
    lock.release()
    assert f"pid {os.getpid()}" in checks["daemon"].message
    assert "taken files" not in checks


def ended(run_id: str, finished: str) -> Receipt:
    file = FileIdentity("a.json", 1, 1, "0")
    return Receipt(run_id, "succeeded", "deliberate", file, "0", "0", created=finished, finished=finished)


def test_a_clock_before_the_newest_receipt_fails(home: Home) -> None:
    with opened(home.root) as store:
        Receipts(store).answer(ended("r-1", "2026-11-20T12:01:00Z"), 1)
        assert found(home)["clock"].status == "ok"
        Receipts(store).answer(ended("r-2", "2026-11-21T12:00:00Z"), 2)
    check = found(home)["clock"]
    assert (check.status, "before the newest receipt" in check.message) == ("fail", True)


@pytest.mark.parametrize(("free", "status"), [(1 << 20, "fail"), (500 << 20, "warn"), (5 << 30, "ok")])
def test_the_disk_is_judged_by_what_is_free(
    home: Home, monkeypatch: pytest.MonkeyPatch, free: int, status: str
) -> None:
    class Usage:
        pass

    usage = Usage()
    usage.free = free  # type: ignore[attr-defined]
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage)
    assert doctor.check_disk(home).status == status


def proc(folder: Path, *, watches: int, instances: int) -> Path:
    limits = folder / "sys" / "fs" / "inotify"
    limits.mkdir(parents=True)
    (limits / "max_user_watches").write_text(f"{watches}\n")
    (limits / "max_user_instances").write_text(f"{instances}\n")
    return folder


@pytest.mark.parametrize(
    ("watches", "instances", "fix"),
    [(8192, 128, ""), (8192, 2, "max_user_instances"), (10, 128, "max_user_watches")],
)
def test_the_limits_of_inotify_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watches: int, instances: int, fix: str
) -> None:
    monkeypatch.setattr(doctor.sys, "platform", "linux")
    check = doctor.check_watching(Settings(), proc(tmp_path, watches=watches, instances=instances))
    assert check.status == ("warn" if fix else "ok")
    assert fix in check.fix


def test_inotify_instances_of_this_user_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.sys, "platform", "linux")
    folder = proc(tmp_path, watches=8192, instances=5)
    (folder / "1" / "fd").mkdir(parents=True)
    (folder / "2" / "fd").mkdir(parents=True)
    seen = Path.iterdir

    def ends_meanwhile(path: Path) -> Iterator[Path]:
        if path.parent.name == "2":
            raise FileNotFoundError(path)
        return seen(path)

    monkeypatch.setattr(Path, "iterdir", ends_meanwhile)
    for number in range(3):
        (folder / "1" / "fd" / str(number)).symlink_to("anon_inode:inotify" if number else "/dev/null")
    check = doctor.check_watching(Settings(), folder)
    assert "2 of 5 instances in use" in check.message
    assert check.status == "warn"


def test_polling_needs_no_limits(tmp_path: Path) -> None:
    check = doctor.check_watching(Settings(watch="poll"), tmp_path)
    assert (check.status, check.message) == ("ok", "polling: commands/ is scanned every 5 s")


class OneAnswer:
    name, context_tokens = "test", 1_000

    def __init__(self, answer: Reply | ModelError) -> None:
        self.answer, self.closed = answer, False

    async def generate(self, *_: object, **__: object) -> Reply:
        if isinstance(self.answer, ModelError):
            raise self.answer
        return self.answer

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Reply("ready", "stop", "test"), "ok"),
        (ModelError("empty", "no text."), "ok"),
        (ModelError("auth", "the key is refused.", fix="set another key"), "fail"),
    ],
)
async def test_a_ping_tells_whether_the_model_can_be_reached(
    home: Home, monkeypatch: pytest.MonkeyPatch, answer: Reply | ModelError, status: str
) -> None:
    model = OneAnswer(answer)
    monkeypatch.setattr(model_trial, "build_model", lambda *_: model)
    check = await ping(home, Settings(model="offline"), ProviderKeys())
    assert check.status == status
    assert model.closed


async def test_a_ping_without_a_key_fails_with_the_way_to_give_one(home: Home) -> None:
    check = await ping(home, Settings(), ProviderKeys())
    assert (check.status, "GEMINI_API_KEY" in check.fix) == ("fail", True)
