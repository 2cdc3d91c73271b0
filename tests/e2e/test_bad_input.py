"""Bad input of every kind through the real daemon: what becomes of it, what the steward reads of it, and that it lives.

Where each item of the issue's list is proven (I: test_inbox, O: test_outputs, D: test_deliberation, here: this file):

    malformed, wrong types ("3"), list, unknown key, missing key, 300 KB, binary, BOM, UTF-16     I  BAD_FILES and after
    half-written                        I  in two pieces; not before its time       here  for six seconds
    missing persona, broken persona                                                 here
    unreadable input                    D  absent, outside, a folder                here  every other kind, none hangs
    directory as input                  D  a_missing_input_is_named…                here
    output onto a directory             O  a_folder_as_output_path…
    output outside                      D  an_output_path_outside…
    output read-only                                                                here
    damaged memory                      D  truncated                                here  damaged in every other way
    disk full                                                                       here  home, artifacts/, in a wait
    command edited or replaced in mid-run       I  a_command_changed_in_mid_run…, broken_in_mid_run, touched_in_mid_run
    command removed in mid-run, restored        I  a_command_removed_in_mid_run…
    saved twice within 50 ms                                                        here
    second command during the first     I  dropped_during_a_run…; O  its_successor_was_queued…
    10,000 at once                      I  sixty                                    here
    YAML, Markdown, lanes                                                           here
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from council.agents.session_file import Session, encode_session
from tests import documents
from tests.e2e.gate import Gate
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, text
from tests.harness import (
    SCRIPTED,
    Daemon,
    command,
    drop_command,
    execute,
    front_matter,
    inbox,
    kept_pages,
    make_home,
    receipts,
    refusal,
    run_cli,
    scripted_home,
    wait_until,
)

MODEL = 'model = "scripted:script.yaml"\n'
NEVER = "3600"  # seconds: beyond the end of any test
STORAGE_TIMEOUT_S = 150.0  # a run that waits for storage is tried every 30 s


def titles_in_order(daemon: Daemon) -> list[str]:
    return [event["title"] for event in daemon.events if event["event"] == "run_started"]


def run_one(daemon: Daemon, name: str, **keys: Any) -> dict[str, Any]:
    """Drops one command of that name and awaits the end of its run."""
    path = drop_command(daemon.home, command(output_artifact_path=f"artifacts/{Path(name).stem}.md", **keys), name)
    return daemon.wait("run_ended", file=path.name)


def serves_the_next(daemon: Daemon, name: str = "next.json", **keys: Any) -> None:
    """The daemon lives: a good command dropped now succeeds."""
    assert run_one(daemon, name, **keys)["status"] == "succeeded"
    assert daemon.process.poll() is None


# ── half-written ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_commands_half_written_for_six_seconds_run_once_with_the_settings_as_they_come(tmp_path: Path) -> None:
    """Every chunk of the YAML and the Markdown leaves a valid command behind: only the close says that it is whole."""
    home = scripted_home(tmp_path / "home", MODEL)
    yaml = ["task_description: Choose.\noutput_artifact_path: artifacts/yaml.md\n", "config:\n", "  max_rounds: 2\n"]
    lines = {
        "json": json.dumps(command(rounds=2), indent=1).splitlines(keepends=True),
        "yaml": yaml,
        "md": ["---\noutput_artifact_path: artifacts/md.md\nconfig: {max_rounds: 2}\n---\nChoose.\n", "Or ", "not.\n"],
    }
    with Daemon(home) as daemon, contextlib.ExitStack() as closing:
        daemon.ready()
        began_s = time.monotonic()
        written = []
        for ending, parts in lines.items():
            stream = closing.enter_context((home / "commands" / f"slow.{ending}").open("wb", buffering=0))
            stream.write(parts[0].encode())
            written.append((stream, "".join(parts[1:]).encode()))
        for step in range(15):  # 6 s: less than settle_s of silence, less than quiet_s between two chunks
            time.sleep(0.4)
            for stream, rest in written:
                stream.write(rest[len(rest) * step // 15 : len(rest) * (step + 1) // 15])
                os.utime(stream.fileno())  # a chunk of no bytes is a sign of life too
        assert time.monotonic() - began_s >= 6
        assert daemon.all("run_queued") == []
        closing.close()
        daemon.wait("run_ended", count=3, status="succeeded")
        serves_the_next(daemon)
        assert daemon.all("command_refused") == []
    assert sorted(receipt["rounds"] for receipt in receipts(home)) == [1, 2, 2, 2]
    assert not (home / "commands" / "failed").exists()
    assert inbox(home) == []


# ── personas ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_missing_persona_fails_the_run_with_its_name_and_a_fix_that_mends_it(quick: Path) -> None:
    persona = quick / "personas" / "auditor.md"
    with Daemon(quick) as daemon:
        daemon.ready()
        persona.unlink()
        ended = run_one(daemon, "first.json")
        assert (ended["status"], ended["error"]["code"]) == ("failed", "persona_invalid")
        page = (quick / "artifacts" / "first.md").read_text()
        assert front_matter((quick / "artifacts" / "first.md").read_text())["status"] == "failed"
        assert "no persona for AUDITOR in personas/ (found: CODE_WRITER, CONDUCTOR, COORDINATOR, " in page
        assert "add personas/auditor.md, or run `council init .`" in page
        [kept] = (quick / "commands" / "failed").iterdir()
        assert kept.name == f"first.{ended['run_id']}.json"
        assert run_cli("init", ".", cwd=quick).returncode == 0  # the fix, as it stands there
        assert persona.exists()
        kept.rename(quick / "commands" / "first.json")
        assert daemon.wait("run_ended", file="first.json", count=2)["status"] == "succeeded"
    assert front_matter((quick / "artifacts" / "first.md").read_text())["status"] == "succeeded"


HEAD = "id: auditor\nrole: AUDITOR\n"
BAD_PERSONAS: dict[str, tuple[bytes, list[str]]] = {
    "no front matter": (b"You are the auditor.\n", ["personas/auditor.md: no front matter", "begin the file with ---"]),
    "empty": (b"", ["personas/auditor.md: no front matter"]),
    "never closed": (f"---\n{HEAD}purpose: a\n".encode(), ["personas/auditor.md: no front matter"]),
    "not YAML": (f"---\n{HEAD}purpose: 'a\n---\nx\n".encode(), ["personas/auditor.md, line", "not YAML"]),
    "a list": (b"---\n- a\n---\nx\n", ["personas/auditor.md: the front matter is empty", "add id, role, purpose"]),
    "key missing": (f"---\n{HEAD}---\nx\n".encode(), ["personas/auditor.md: the key `purpose` is missing"]),
    "key unknown": (
        f"---\n{HEAD}purpose: a\nmodle: b\n---\nx\n".encode(),
        ["personas/auditor.md: the key `modle` is not known"],
    ),
    "role in lower case": (b"---\nid: a\nrole: auditor\npurpose: a\n---\nx\n", ["personas/auditor.md: `role`"]),
    "no words": (f"---\n{HEAD}purpose: a\n---\n".encode(), ["personas/auditor.md: no text follows the front matter"]),
    "UTF-16": (f"---\n{HEAD}---\n".encode("utf-16"), ["auditor.md is not UTF-8", "save it as UTF-8"]),
    "too large": (b"x" * 300_000, ["auditor.md is larger than 262144 bytes", "shorten it"]),
    "the role of another": (
        b"---\nid: a\nrole: STRATEGIST\npurpose: a\n---\nx\n",
        ["the role STRATEGIST is already taken by `a`"],
    ),
    "an alias": (f"---\n{HEAD}purpose: &a x\ndescription: *a\n---\nx\n".encode(), ["personas/auditor.md", "(*name)"]),
    "keys without end": (
        f"---\n{HEAD}".encode() + b"".join(b"k%d: 1\n" % n for n in range(5_000)) + b"---\nx\n",
        ["personas/auditor.md", "more than 2,000 keys and values"],
    ),
    "a number that is none": (f"---\n{HEAD}purpose: 0b_\n---\nx\n".encode(), ["personas/auditor.md"]),
    "a control character": (f"---\n{HEAD}purpose: \x07\n---\nx\n".encode(), ["personas/auditor.md"]),
    "nested deeply": (f"---\n{HEAD}purpose: {'[' * 3_000}\n---\nx\n".encode(), ["personas/auditor.md"]),
}


@pytest.mark.parametrize("case", BAD_PERSONAS)
def test_a_broken_persona_fails_the_run_naming_the_file_and_the_next_one_after_the_mend_succeeds(
    served: Daemon, case: str
) -> None:
    data, said = BAD_PERSONAS[case]
    name = re.sub(r"\W+", "-", f"persona {case}")
    persona = served.home / "personas" / "auditor.md"
    good = persona.read_bytes()
    persona.write_bytes(data)
    try:
        ended = run_one(served, f"{name}.json")
    finally:
        persona.write_bytes(good)
    page = (served.home / "artifacts" / f"{name}.md").read_text()
    assert (ended["status"], ended["error"]["code"]) == ("failed", "persona_invalid")
    assert ended["error"]["fix"]
    assert ended["error"]["fix"] in page
    for words in said:
        assert words in page
    serves_the_next(served, f"{name}-mended.json")


@pytest.mark.parametrize("instead", ["a folder", "a pipe"])
def test_what_is_no_file_in_the_place_of_a_persona_fails_the_run_and_hangs_nothing(quick: Path, instead: str) -> None:
    persona = quick / "personas" / "auditor.md"
    good = persona.read_bytes()
    persona.unlink()
    if instead == "a pipe":
        os.mkfifo(persona)
    else:
        persona.mkdir()
    with Daemon(quick) as daemon:
        daemon.ready()
        ended = run_one(daemon, "first.json")
        assert (ended["status"], ended["error"]["code"]) == ("failed", "persona_invalid")
        assert "auditor.md" in (quick / "artifacts" / "first.md").read_text()
        persona.rename(quick / "away")
        persona.write_bytes(good)
        serves_the_next(daemon)


# ── inputs ───────────────────────────────────────────────────────────────────────────────────────────────────────────

BAD_INPUTS = {
    "docs/binary.md": "binary",
    "docs/noise.md": "an encoding that was not recognised",
    "docs/scan.pdf": "run text recognition (OCR) over it first",
    "docs/locked.pdf": "protected by a password",
    "docs/half.pdf": "is damaged",
    "docs/bomb.pdf": "needs more time, memory or space",
    "docs/long.pdf": "has more than 2,000 pages",
    "docs/endless.pdf": "is damaged",
    "docs/bomb.docx": "needs more time, memory or space",
    "docs/letter.rtf": "is RTF, which is not read",
    "docs/ascii.txt": "is a PDF under another name",
    "docs/large.md": "larger than the 1,048,576 bytes",
    "docs/pipe.md": "a pipe",
    "docs/link.md": "a symbolic link",
    "docs/twin.md": "second name",
    "docs/folder.md": "it is a folder",
    "docs/absent.md": "There is no file `docs/absent.md`.",
    "docs/good.md/below.md": "is a file, not a folder",
    "/etc/hostname": "absolute",
    "docs/../../secret.md": "..",
    ".env": "a rule denies it",
}


def make_bad_inputs(home: Path) -> None:
    docs = home / "docs"
    docs.mkdir()
    (docs / "good.md").write_text("the one good line\n")
    (docs / "binary.md").write_bytes(b"\x7fELF\x00\x01CANARY")
    (docs / "noise.md").write_bytes(b"CANARY" + bytes(range(1, 256)) * 20)
    (docs / "scan.pdf").write_bytes(documents.pdf([], []))
    (docs / "locked.pdf").write_bytes(documents.encrypted_pdf(["CANARY"], password="p"))
    (docs / "half.pdf").write_bytes(b"%PDF-1.7\nCANARY")
    (docs / "bomb.pdf").write_bytes(documents.pdf_bomb())
    (docs / "long.pdf").write_bytes(documents.pdf(*[["CANARY"]] * 5000))
    (docs / "endless.pdf").write_bytes(documents.endless_pages())
    (docs / "bomb.docx").write_bytes(documents.docx_bomb())
    (docs / "letter.rtf").write_bytes(b"{\\rtf1 CANARY}")
    (docs / "ascii.txt").write_bytes(documents.pdf(["CANARY"]))
    (docs / "large.md").write_bytes(b"CANARY\n" * 200_000)
    os.mkfifo(docs / "pipe.md")
    (home.parent / "secret.md").write_text("CANARY\n")
    (docs / "link.md").symlink_to(home.parent / "secret.md")
    os.link(home.parent / "secret.md", docs / "twin.md")
    (docs / "folder.md").mkdir()
    (home / ".env").write_text("OTHER=CANARY\n")


def test_every_kind_of_unreadable_input_is_named_with_its_reason_and_degrades_the_run_or_fails_it_before_any_call(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    make_bad_inputs(home)
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        alone = command(input_artifacts=list(BAD_INPUTS), output_artifact_path="artifacts/alone.md")
        drop_command(home, alone, "alone.json")
        ended = daemon.wait("run_ended")
        assert (ended["status"], ended["error"]["code"]) == ("failed", "input_unreadable")
        assert fake.requests == []
        drop_command(home, command(input_artifacts=[*BAD_INPUTS, "docs/good.md"]))
        assert daemon.wait("run_ended", count=2)["status"] == "degraded"
        serves_the_next(daemon)
    page = (home / "artifacts" / "alone.md").read_text()
    assert f"none of the {len(BAD_INPUTS)} inputs could be read" in page
    assert "`council validate` suggests names) and drop the command again" in page
    assert all(reason in page for reason in BAD_INPUTS.values())
    assert "CANARY" not in page
    page = (home / "artifacts" / "out.md").read_text()
    assert all(reason in page for reason in BAD_INPUTS.values())
    told = [line for line in page.splitlines() if "An input could not be read: " in line]
    assert [path in line for path, line in zip(BAD_INPUTS, told, strict=False)] == [True] * 5
    assert f"{len(BAD_INPUTS) - 5} more inputs could not be read; the list below the task gives the reasons." in page
    assert all("CANARY" not in json.dumps(request.body) for request in fake.requests)
    assert "1| the one good line" in fake.requests[0].texts[0]
    assert "CANARY" not in page


# ── disks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def empty_log(home: Path) -> None:
    """What the database's log has room for is written on a full disk, too."""
    with contextlib.closing(sqlite3.connect(home / ".council" / "council.db")) as database:
        assert database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


class SmallDisk:
    """A small file system of its own, mounted at `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / ".filler"

    def remount(self, mode: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{mode}", str(self.folder)], check=True)

    def fill(self) -> None:
        """Until not one more page can be had: what others give back meanwhile is taken, too."""
        probe = self.folder / ".probe"
        with self._filler.open("wb", buffering=0) as stream:
            has_room = True
            while has_room:
                for size in (65_536, 4_096, 1):
                    with contextlib.suppress(OSError):
                        while stream.write(b"\0" * size):
                            pass
                try:
                    probe.write_bytes(b"x")
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    has_room = False
                probe.unlink()

    def free(self) -> None:
        self._filler.unlink()


@pytest.fixture
def mount_disk(require_service: Callable[[str, bool, str], None]) -> Iterator[Callable[[Path], SmallDisk]]:
    """Mounts small disks; all of them are gone at the end."""
    mounted: list[Path] = []

    def mount(folder: Path) -> SmallDisk:
        folder.mkdir(exist_ok=True)
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "council-test", str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
        require_service("mount", done.returncode == 0, f"run as root with CAP_SYS_ADMIN ({done.stderr.strip()})")
        mounted.append(folder)
        return SmallDisk(folder)

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_makes_a_run_wait_and_nothing_is_lost(
    tmp_path: Path, fake: FakeGemini, env: dict[str, str], gate: Gate, mount_disk: Callable[[Path], SmallDisk]
) -> None:
    disk = mount_disk(tmp_path / "home")
    home = make_home(disk.folder, settings="storage_retry_s = 1\nsettle_s = 0.5\nscan_interval_s = 0.5\n")
    later = home / "later.json"
    later.write_text(json.dumps(command("The later task.", output_artifact_path="artifacts/later.md", session="b")))
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command("The early task."), "early.json")
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        fake.wait_for_requests(2)
        empty_log(home)
        disk.fill()
        gate.open()
        waiting = daemon.wait("run_waiting", run_id=run_id)
        assert waiting["reason"] == "storage"
        assert ".council/council.db failed: database or disk is full" in waiting["error"]
        later.rename(home / "commands" / "later.json")
        wait_until(lambda: "later.json stays in the inbox: the database" in daemon.stderr, "there is no room for it")
        wait_until(lambda: "state.json cannot be replaced" in daemon.stderr, "what no run is to blame for is logged")

        def told() -> dict[str, Any]:
            view: dict[str, Any] = json.loads(run_cli("status", "--json", cwd=home, env=env).stdout)
            return view

        wait_until(lambda: [one["file"] for one in told()["unadmitted"]] == ["later.json"], "status says what waits")
        assert [(run["status"], run["waiting_for"]) for run in told()["runs"]] == [("waiting", "storage")]
        assert inbox(home) == ["early.json", "later.json"]
        assert daemon.process.poll() is None
        assert receipts(home) == []
        disk.free()
        assert daemon.wait("run_ended", file="later.json")["status"] == "succeeded"
        assert daemon.wait("run_ended", file="early.json", timeout_s=STORAGE_TIMEOUT_S)["status"] == "succeeded"
        assert daemon.stop() == 0
    said = [json.loads(line) for line in daemon.stderr.splitlines() if "state.json cannot be replaced" in line]
    assert [record for record in said if "run_id" in record] == []
    assert len(receipts(home)) == 2
    assert inbox(home) == []
    assert not (home / "commands" / "failed").exists()
    assert "The words of the first speaker." in (home / "artifacts" / "out.md").read_text()
    assert front_matter((home / "artifacts" / "out.md").read_text())["status"] == "succeeded"
    assert len(fake.requests) == 8  # what the disk did not take was kept in memory, and is not asked again
    assert sorted(path.name for path in home.rglob("*.staged")) == []
    assert sorted(path.name for path in home.rglob("*.tmp")) == []


def test_a_daemon_that_starts_on_a_full_disk_waits_for_room_and_says_so(
    tmp_path: Path, fake: FakeGemini, env: dict[str, str], mount_disk: Callable[[Path], SmallDisk]
) -> None:
    disk = mount_disk(tmp_path / "home")
    home = make_home(disk.folder, settings="storage_retry_s = 0.2\n")
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    drop_command(home, command())
    disk.fill()
    once = run_cli("run", "--once", cwd=home, env=env)
    assert (once.returncode, "disk I/O error" in once.stderr, "again" in once.stderr) == (1, True, False)
    with Daemon(home, env=env) as ended:
        wait_until(lambda: "the daemon starts when it can" in ended.stderr, "it waits")
        assert ended.stop() == 0
    with Daemon(home, env=env) as daemon:

        def told() -> dict[str, Any]:
            view: dict[str, Any] = json.loads(run_cli("status", "--json", cwd=home, env=env).stdout or "{}")
            return view.get("degraded", {})

        wait_until(lambda: "disk I/O error" in told().get("database", ""), "status says what it waits for")
        disk.free()
        assert daemon.wait("run_ended")["status"] == "succeeded"
        assert daemon.stop() == 0


def test_a_full_disk_under_the_artifacts_costs_no_model_call_and_the_run_ends_once_there_is_room(
    home: Path, fake: FakeGemini, env: dict[str, str], mount_disk: Callable[[Path], SmallDisk]
) -> None:
    with (home / "council.toml").open("a") as settings:
        settings.write("storage_retry_s = 1\n")
    disk = mount_disk(home / "artifacts")
    disk.fill()
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command(), "early.json")
        waiting = daemon.wait("run_waiting")
        assert waiting["reason"] == "storage"
        assert os.strerror(errno.ENOSPC) in waiting["error"]
        assert len(fake.requests) == 4
        said = wait_until(
            lambda: next((line for line in run_cli("status", cwd=home).stdout.splitlines() if "waiting" in line), ""),
            "status tells of the run that waits",
        )
        assert "storage" in said
        drop_command(home, command(output_artifact_path="elsewhere/out.md", session="b"), "other.json")
        assert daemon.wait("run_ended", file="other.json")["status"] == "succeeded"
        disk.free()
        assert daemon.wait("run_ended", file="early.json", timeout_s=STORAGE_TIMEOUT_S)["status"] == "succeeded"
    assert len(fake.requests) == 8
    assert front_matter((home / "artifacts" / "out.md").read_text())["status"] == "succeeded"
    assert sorted(path.name for path in (home / "artifacts").iterdir()) == ["out.md"]
    assert inbox(home) == []


def test_a_run_that_is_to_wait_for_its_provider_on_a_full_disk_is_not_forgotten(
    tmp_path: Path, fake: FakeGemini, env: dict[str, str], gate: Gate, mount_disk: Callable[[Path], SmallDisk]
) -> None:
    disk = mount_disk(tmp_path / "home")
    home = make_home(
        disk.folder, settings="storage_retry_s = 1\nsettle_s = 0.5\nscan_interval_s = 0.5\nmax_inline_wait_s = 0\n"
    )
    gate.then = lambda request: error(429, "RESOURCE_EXHAUSTED", retry_after=5)
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command())
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        fake.wait_for_requests(2)
        empty_log(home)
        disk.fill()
        gate.open()
        assert daemon.wait("run_waiting", run_id=run_id)["reason"] == "storage"
        gate.then = lambda request: text("Now I can.")
        disk.free()
        assert daemon.wait("run_ended", timeout_s=STORAGE_TIMEOUT_S)["status"] == "succeeded"
    assert len(receipts(home)) == 1
    assert inbox(home) == []


def test_a_read_only_output_folder_makes_the_run_wait_and_writable_again_it_gets_its_artifact(
    home: Path, fake: FakeGemini, env: dict[str, str], mount_disk: Callable[[Path], SmallDisk]
) -> None:
    disk = mount_disk(home / "decisions")
    (home / "decisions" / "mine.md").write_text("mine\n")
    disk.remount("ro")
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command(output_artifact_path="decisions/out.md"), "early.json")
        waiting = daemon.wait("run_waiting")
        assert waiting["reason"] == "storage"
        assert os.strerror(errno.EROFS) in waiting["error"]
        serves_the_next(daemon, session="b")
        assert daemon.stop() == 0
    calls = len(fake.requests)
    assert inbox(home) == ["early.json"]
    disk.remount("rw")
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert len(fake.requests) == calls == 8
    assert front_matter((home / "decisions" / "out.md").read_text())["status"] == "succeeded"
    assert (home / "decisions" / "mine.md").read_text() == "mine\n"
    assert inbox(home) == []


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def flipped(at: float) -> Callable[[bytes], bytes]:
    def flip(data: bytes) -> bytes:
        index = int(at * (len(data) - 3))  # not the last newline, which is no part of it
        return data[:index] + bytes([data[index] ^ 0x01]) + data[index + 1 :]

    return flip


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "one byte": lambda data: data[:1],
    "a quarter": lambda data: data[: len(data) // 4],
    "all but the end": lambda data: data[:-3],
    "flipped at 0": flipped(0.0),
    "flipped at 1-7": flipped(1 / 7),
    "flipped at 1-3": flipped(1 / 3),
    "flipped at 2-3": flipped(2 / 3),
    "flipped at the end": flipped(1.0),
    "zeros": lambda data: b"\0" * len(data),
    "binary": lambda data: b"\xff\xfe\x80" + data,
    "a list": lambda data: b"[]",
    "null": lambda data: b"null",
    "another schema": lambda data: data.replace(b"council.session/1", b"council.session/9"),
    "of another agent": lambda data: encode_session(Session("AUDITOR", "of-another-agent")),
    "of another lane": lambda data: encode_session(Session("STRATEGIST", "main")),
    "no number": lambda data: data.replace(b'"succeeded"', b"NaN"),
    "half a character": lambda data: data.replace(b"succeeded", b"\\ud800"),
    "nested deeply": lambda data: data.replace(b'"succeeded"', b"[" * 5_000 + b"]" * 5_000),
}


def remembered(home: Path, lane: str, role: str = "strategist") -> list[str]:
    session = json.loads((home / "session_states" / lane / f"{role}_session.json").read_bytes())
    return [task["title"] for task in session["tasks"]]


@pytest.mark.parametrize("case", DAMAGES)
def test_a_memory_damaged_in_any_way_is_set_aside_and_said_and_the_copy_takes_its_place(
    served: Daemon, case: str
) -> None:
    lane = case.replace(" ", "-")
    run_one(served, f"{lane}-1.json", task="How many herons nest here?", session=lane)
    session = served.home / "session_states" / lane / "strategist_session.json"
    damaged = DAMAGES[case](session.read_bytes())
    assert damaged != session.read_bytes()
    session.write_bytes(damaged)
    ended = run_one(served, f"{lane}-2.json", task="And how many storks?", session=lane)
    assert ended["status"] == "succeeded"
    assert session.with_name("strategist_session.json.damaged").read_bytes() == damaged
    page = (served.home / "artifacts" / f"{lane}-2.md").read_text()
    assert "strategist_session.json was damaged (" in page
    assert "the last good copy was restored" in page
    assert remembered(served.home, lane) == ["How many herons nest here?", "And how many storks?"]
    assert remembered(served.home, lane, "auditor") == remembered(served.home, lane)


def test_a_memory_whose_copy_is_damaged_too_begins_anew_and_says_so(served: Daemon) -> None:
    lane = "both-damaged"
    run_one(served, "both-1.json", task="How many herons nest here?", session=lane)
    name = f"{lane}/auditor_session.json"
    (served.home / "session_states" / name).write_bytes(b"{")
    execute(served.home, "UPDATE kept SET data = ? WHERE name = ?", b"{", name)
    assert run_one(served, "both-2.json", task="And how many storks?", session=lane)["status"] == "succeeded"
    page = (served.home / "artifacts" / "both-2.md").read_text()
    assert "auditor_session.json was damaged (not JSON)" in page
    assert "AUDITOR starts without memory" in page
    assert remembered(served.home, lane, "auditor") == ["And how many storks?"]
    assert len(remembered(served.home, lane, "coordinator")) == 2


@pytest.mark.parametrize("instead", ["a folder", "a pipe"])
def test_what_is_no_file_in_the_place_of_a_memory_neither_hangs_nor_blocks_its_lane(quick: Path, instead: str) -> None:
    session = quick / "session_states" / "auditor_session.json"
    with Daemon(quick) as daemon:
        daemon.ready()
        run_one(daemon, "first.json", task="How many herons nest here?")
        session.unlink()
        if instead == "a pipe":
            os.mkfifo(session)
        else:
            session.mkdir()
        assert run_one(daemon, "second.json", task="And how many storks?")["status"] in ("succeeded", "degraded")
        assert "auditor_session.json" in (quick / "artifacts" / "second.md").read_text()
        serves_the_next(daemon)


# ── saved twice, crowds ──────────────────────────────────────────────────────────────────────────────────────────────


def saved(path: Path, data: bytes) -> None:
    """As an editor does: written beside, renamed over."""
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(data)
    os.replace(new, path)


def task_of(number: int, **keys: Any) -> bytes:
    return json.dumps(command(f"Question {number}.", output_artifact_path=f"artifacts/{number}.md", **keys)).encode()


def test_saved_twice_with_two_contents_runs_both_in_order_when_the_first_was_seen(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    path = home / "commands" / "command.json"
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        saved(path, task_of(1))
        daemon.wait("run_queued", title="Question 1")
        saved(path, task_of(2))
        gate.open()
        daemon.wait("run_ended", count=2, status="succeeded")
        assert titles_in_order(daemon) == ["Question 1", "Question 2"]
    assert inbox(home) == []
    assert daemon.all("command_refused") == []


@pytest.mark.parametrize("save", [saved, Path.write_bytes])
def test_saved_twice_before_the_daemon_looks_runs_what_stands_there_once(
    quick: Path, save: Callable[[Path, bytes], object]
) -> None:
    path = quick / "commands" / "command.json"
    with Daemon(quick) as daemon:
        daemon.ready()
        daemon.signal(signal.SIGSTOP)
        save(path, task_of(1))
        save(path, task_of(2))
        daemon.signal(signal.SIGCONT)
        daemon.wait("run_ended", status="succeeded")
        serves_the_next(daemon)
        assert titles_in_order(daemon)[0] == "Question 2"
    assert len(receipts(quick)) == 2
    assert inbox(quick) == []


@pytest.mark.parametrize("save", [saved, Path.write_bytes])
@pytest.mark.parametrize("gap_s", [0.0, 0.005, 0.05])
def test_saved_again_and_again_runs_each_state_at_most_once_in_order_and_the_last_for_certain(
    quick: Path, save: Callable[[Path, bytes], object], gap_s: float
) -> None:
    path = quick / "commands" / "command.json"
    with Daemon(quick) as daemon:
        daemon.ready()
        for number in range(10):
            save(path, task_of(number))
            time.sleep(gap_s)
        daemon.wait("run_ended", title="Question 9")
        wait_until(lambda: inbox(quick) == [], "every state is taken")
        serves_the_next(daemon)
        started = [int(title.split()[1]) for title in titles_in_order(daemon)[:-1]]
        assert started == sorted(set(started))
        assert started[-1] == 9
        assert daemon.all("command_refused") == []
    assert len(receipts(quick)) == len(started) + 1


@pytest.mark.parametrize(
    ("keys", "ran", "answered"), [({}, 2, 0), ({"id": "order-7"}, 1, 1)], ids=["bare", "with an id"]
)
def test_the_same_content_saved_twice_runs_twice_or_once_if_it_has_an_id(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate, keys: dict[str, str], ran: int, answered: int
) -> None:
    path = home / "commands" / "command.json"
    data = task_of(1, **keys)
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        saved(path, data)
        first = daemon.wait("run_queued")["run_id"]
        saved(path, data)
        gate.open()
        daemon.wait("run_ended", count=ran, status="succeeded")
        wait_until(lambda: inbox(home) == [], "both are taken")
        assert daemon.stop() == 0
    assert [event["run_id"] for event in daemon.all("command_answered")] == [first] * answered
    assert len(receipts(home)) == ran
    assert len(fake.requests) == 4 * ran


# ── YAML and Markdown ────────────────────────────────────────────────────────────────────────────────────────────────

HALF_YAML = "task_description: Choose a storage engine.\noutput_artifact_path: artifacts/out.md\n"
HALF_MD = "---\noutput_artifact_path: artifacts/out.md\nconfig:\n  max_rounds: 2\n---\nChoose a storage engine.\n"
HALVES = {"yaml": (HALF_YAML, "config:\n  max_rounds: 2\n"), "md": (HALF_MD, "Mind the size of the archive.\n")}


@pytest.mark.parametrize("ending", HALVES)
@pytest.mark.parametrize("before", ["nothing", "an empty file", "a file that is no command yet"])
def test_a_document_written_in_place_is_not_started_before_it_is_closed(
    tmp_path: Path, ending: str, before: str
) -> None:
    """`before`: what was closed there earlier says nothing of what is being written now."""
    # What a scan knows of a close has to be as new as what it sees: each is woken by an event, and events come in order.
    never = f"settle_s = {NEVER}\nquiet_s = {NEVER}\nscan_interval_s = {NEVER}\n"
    home = scripted_home(tmp_path / "home", f"{never}{MODEL}")
    path = home / "commands" / f"slow.{ending}"
    half, rest = HALVES[ending]
    with Daemon(home) as daemon:
        daemon.ready()
        if before != "nothing":
            path.write_text("" if before == "an empty file" else "task_description: [\n")
            serves_the_next(daemon, "before.json")  # a scan has seen it
        with path.open("w") as stream:
            stream.write(half)
            stream.flush()
            for number in range(3):  # scans that see half of it, which is a command
                serves_the_next(daemon, f"meanwhile-{number}.json")
            assert inbox(home) == [f"slow.{ending}"]
            stream.write(rest)
        assert daemon.wait("run_ended", file=f"slow.{ending}")["status"] == "succeeded"
        serves_the_next(daemon)
        assert daemon.all("command_refused") == []
        assert len([event for event in daemon.all("run_queued") if event["file"] == f"slow.{ending}"]) == 1
    assert sorted(receipt["rounds"] for receipt in receipts(home))[-2:] == [1, 2]
    page = (home / "artifacts" / "out.md").read_text()
    assert ("Mind the size of the archive." in page) == (ending == "md")


@pytest.mark.parametrize("ending", HALVES)
def test_a_document_whose_writer_stops_without_closing_it_starts_once_it_was_quiet(tmp_path: Path, ending: str) -> None:
    home = scripted_home(tmp_path / "home", f"settle_s = {NEVER}\nquiet_s = 1.5\nscan_interval_s = 0.2\n{MODEL}")
    with Daemon(home).ready() as daemon, (home / "commands" / f"open.{ending}").open("w") as stream:
        stream.write("".join(HALVES[ending]))
        began_s = time.monotonic()
        stream.flush()
        daemon.wait("run_queued")
        assert time.monotonic() - began_s >= 1.4  # the file's time is the kernel's, a few milliseconds coarse
        assert daemon.wait("run_ended")["status"] == "succeeded"
        assert not stream.closed
    assert [receipt["rounds"] for receipt in receipts(home)] == [2]
    assert inbox(home) == []


def test_a_document_starts_once_it_was_quiet_where_no_file_events_come(tmp_path: Path) -> None:
    home = scripted_home(tmp_path / "home", SCRIPTED + 'watch = "poll"\n')
    with Daemon(home) as daemon:
        daemon.ready()
        (home / "commands" / "polled.yaml").write_text(HALF_YAML)
        assert daemon.wait("run_ended", file="polled.yaml")["status"] == "succeeded"


@pytest.mark.parametrize("name", ["moved.yaml", "moved.yml", "moved.YAML", "moved.md"])
def test_a_document_moved_in_from_another_folder_starts_at_once(tmp_path: Path, name: str) -> None:
    home = scripted_home(tmp_path / "home", f"quiet_s = {NEVER}\n{MODEL}")
    (home / name).write_text(HALF_MD if name.endswith(".md") else HALF_YAML)
    with Daemon(home) as daemon:
        daemon.ready()
        (home / name).rename(home / "commands" / name)
        assert daemon.wait("run_ended", file=name)["status"] == "succeeded"
    assert inbox(home) == []


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_body_of_a_markdown_command_is_its_task_word_for_word(
    home: Path, fake: FakeGemini, env: dict[str, str], newline: str
) -> None:
    (home / "needs.md").write_text("The archive grows.\n")
    lines = [
        "---", "output_artifact_path: artifacts/out.md", "input_artifacts: [needs.md]", "session: reading", "---", "",
        "# Choose an engine", "", "Mind --- that this is no fence:", "", "---", "", "- \u00e4nd *this* list: yes",
    ]  # fmt: skip
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        data = newline.join([*lines, ""]).encode()
        drop_command(home, b"\xef\xbb\xbf" + data if newline == "\r\n" else data, "engine.md")
        assert daemon.wait("run_ended", file="engine.md")["status"] == "succeeded"
    [receipt] = receipts(home)
    assert (receipt["title"], receipt["rounds"]) == ("Choose an engine", 3)
    task = "\n".join(lines[6:])
    assert task in fake.requests[0].texts[0]
    assert "1| The archive grows." in fake.requests[0].texts[0]
    assert (home / "session_states" / "reading" / "auditor_session.json").exists()
    assert inbox(home) == []


NO_COMMANDS = {
    "README.md": b"---\ntask_description: a\noutput_artifact_path: artifacts/x.md\n---\n",
    "readme.first.md": b"---\ntask_description: a\noutput_artifact_path: artifacts/x.md\n---\n",
    "notes.md": b"# Notes\n\ntask_description: in the text only\n",
    "obsidian.md": b"---\ntags: [a, b]\ntype: note\n---\nWords.\n",
    "ruler.md": b"---\n\nA rule, not front matter.\n",
    "empty.md": b"",
    "binary.md": b"\x00\x01\x02",
    "utf16.md": "---\ntask_description: a\n---\n".encode("utf-16"),
    "broken.md": b"---\ntags: [a\n---\nWords.\n",
}


def test_markdown_that_is_no_command_is_left_alone_for_ever(tmp_path: Path) -> None:
    home = scripted_home(tmp_path / "home", SCRIPTED + "quiet_s = 0.1\n")
    commands = home / "commands"
    for name, data in NO_COMMANDS.items():
        (commands / name).write_bytes(data)
        os.utime(commands / name, (1_700_000_000, 1_700_000_000))
    with Daemon(home) as daemon:
        daemon.ready()
        serves_the_next(daemon, "first.json")
        os.utime(commands / "notes.md")
        drop_command(home, b"{", "younger.json")
        daemon.wait("command_refused", file="younger.json")  # which is given settle_s, as any file
        serves_the_next(daemon, "second.json")
        assert daemon.stop() == 0
        assert [event["file"] for event in daemon.all("command_refused")] == ["younger.json"]
    assert {path.name: path.read_bytes() for path in commands.iterdir() if path.is_file()} == NO_COMMANDS
    assert run_cli("run", "--once", cwd=home).returncode == 0  # nor do they hold up a door that drains
    assert len(receipts(home)) == 2


def test_notes_that_become_a_command_run(quick: Path) -> None:
    notes = quick / "commands" / "notes.md"
    notes.write_text("# Notes\n")
    with Daemon(quick) as daemon:
        daemon.ready()
        serves_the_next(daemon)
        notes.write_text(HALF_MD)
        assert daemon.wait("run_ended", file="notes.md")["status"] == "succeeded"
    assert inbox(quick) == []


BAD_DOCUMENTS: dict[str, tuple[str, list[str]]] = {
    "text-for-number.yaml": (
        HALF_YAML + 'config:\n  max_rounds: "3"\n',
        ["line 4, column 15", "`config.max_rounds`", "whole number", '"3"'],
    ),
    "number-for-text.yaml": ("task_description: 7\noutput_artifact_path: a/\n", ["line 1, column 19", "text in quotes"]),
    "unknown-key.yaml": (
        HALF_YAML + "config:\n  max_round: 3\n",
        ["line 4, column 14", "`config.max_round`", "`max_rounds`"],
    ),
    "unknown-top-key.yml": (HALF_YAML + "sesion: a\n", ["line 3, column 9", "`sesion`", "`session`"]),
    "missing-key.yaml": ("\n# a comment\ntask_description: a\n", ["line 3, column 1", "`output_artifact_path` is missing"]),
    "twice.yaml": (HALF_YAML + "task_description: b\n", ["line 3, column 1", "`task_description`", "twice"]),
    "list.yaml": ("- task_description: a\n", ["line 1, column 1", "object", "a list"]),
    "words.yaml": ("Choose a storage engine.\n", ["line 1, column 1", "object"]),
    "colon.yaml": ("task_description: Choose: now\n", ["line 1, column 25", "not YAML", "quotes"]),
    "tab.yaml": (HALF_YAML + "config:\n\tmax_rounds: 3\n", ["line 4, column 1", "not YAML", "spaces"]),
    "open-quote.yaml": ("task_description: 'Choose\n", ["line 2, column 1", "not YAML"]),
    "alias.yaml": ("task_description: &a x\noutput_artifact_path: *a\n", ["line 2, column 23", "alias", "write the value out"]),
    "two-documents.yaml": (f"{HALF_YAML}---\n{HALF_YAML}", ["line 3, column 1", "another document", "one command into each"]),
    "code.yaml": (f"{HALF_YAML}id: !!python/object/apply:os.system [x]\n", ["line 3, column 5", "not YAML"]),
    "bad-lane.yaml": (HALF_YAML + "session: My Lane\n", ["line 3, column 10", "`session`"]),
    "empty.yaml": ("", ["line 1, column 1", "empty"]),
    "text-for-number.md": (
        '---\noutput_artifact_path: a/\nconfig:\n  max_rounds: "3"\n---\nChoose.\n',
        ["line 4, column 15", "`config.max_rounds`", '"3"'],
    ),
    "unknown-key.md": (
        "---\noutput_artifact_path: a/\nconfig: {max_round: 3}\n---\nChoose.\n",
        ["line 3, column 21", "Fix: did you mean `max_rounds`?"],
    ),
    "strange-key.md": (
        "---\noutput_artifact_path: a/\nflavour: 1\n---\nChoose.\n",
        ["`flavour` is not a known key", "Fix: remove it; known keys: ", "`$schema`, "],  # as `cat` shows it
    ),
    "twice.md": (
        "---\noutput_artifact_path: a/\noutput_artifact_path: b/\n---\nChoose.\n",
        ["line 3, column 1", "`output_artifact_path`", "twice"],
    ),
    "both.md": (
        "---\noutput_artifact_path: a/\ntask_description: One.\n---\nTwo.\n",
        ["line 3, column 19", "`task_description`", "the body is the task"],
    ),
    "no-task.md": ("---\noutput_artifact_path: a/\n---\n", ["line 2, column 1", "`task_description` is missing"]),
    "no-output.md": ("---\ninput_artifacts: [a]\n---\nX.\n", ["line 2, column 1", "`output_artifact_path` is missing"]),
    "not-yaml.md": ("---\noutput_artifact_path: a: b\n---\nX.\n", ["line 2, column 24", "not YAML"]),
    "open.md": ("---\noutput_artifact_path: a/\nChoose.\n", ["line 1, column 1", "not closed", "a line of ---"]),
    "long-body.md": (
        f"---\noutput_artifact_path: a/\n---\n{'x' * 100_001}\n",
        ["line 4, column 1", "`task_description`", "at most 100000 characters"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_DOCUMENTS)
def test_a_bad_document_is_set_aside_with_the_line_and_column_of_the_file(served: Daemon, name: str) -> None:
    data, said = BAD_DOCUMENTS[name]
    drop_command(served.home, data.encode(), name)
    event = served.wait("command_refused", file=name)
    note = refusal(served.home, name)
    for words in said:
        assert words in note
    assert "Fix: " in note
    assert event["moved_to"] == f"commands/failed/{name}"
    assert (served.home / "commands" / "failed" / name).read_text() == data
    serves_the_next(served, f"after-{name.replace('.', '-')}.json")


ODD_DOCUMENTS = {
    "a control character": ("id: a\x07b\n", "line 3"),
    "a character that is none": ("id: \ufffe\n", "line 3"),
    "a number without digits": ("config: {max_rounds: 0b_}\n", ""),
    "a number of 5,000 digits": (f"config: {{max_rounds: {'9' * 5_000}}}\n", ""),
    "a tag that does not fit a number": ("id: !!int x\n", ""),
    "a tag that does not fit a switch": ("id: !!bool x\n", ""),
    "a tag that does not fit a time": ("id: !!timestamp x\n", ""),
    "a tag with nothing": ("id: !!int\n", ""),
    "nested deeply": (f"id: {'[' * 3_000}\n", "the command is nested too deeply"),
}


@pytest.mark.parametrize("case", ODD_DOCUMENTS)
@pytest.mark.parametrize("ending", ["yaml", "md"])
def test_no_document_is_odd_enough_to_end_the_daemon(quick: Path, case: str, ending: str) -> None:
    odd, said = ODD_DOCUMENTS[case]
    data = f"---\n{HALF_YAML}{odd}---\n" if ending == "md" else HALF_YAML + odd
    with Daemon(quick) as daemon:
        daemon.ready()
        drop_command(quick, data.encode(), f"odd.{ending}")
        daemon.wait("command_refused", file=f"odd.{ending}")
        serves_the_next(daemon)
    note = refusal(quick, f"odd.{ending}")
    assert said.replace("line 3", "line 4" if ending == "md" else "line 3") in note
    assert "Fix: " in note


@pytest.mark.parametrize(("ending", "count"), [("json", 4_000), ("yaml", 900), ("md", 900), ("yaml", 20_000)])
def test_a_command_of_thousands_of_unknown_keys_gets_a_short_note_and_the_next_runs(
    served: Daemon, ending: str, count: int
) -> None:
    keys = {f"k{number}": number for number in range(count)}
    lines = "".join(f"{key}: {number}\n" for key, number in keys.items())
    data = {
        "json": json.dumps(command(**keys)),
        "yaml": HALF_YAML + lines,
        "md": f"---\n{HALF_YAML}{lines}---\n",
    }[ending]
    name = f"many-{count}.{ending}"
    drop_command(served.home, data.encode(), name)
    served.wait("command_refused", file=name)
    note = refusal(served.home, name)
    too_many = count > 4_000
    assert ("holds more than 2,000 keys and values" in note) == too_many
    assert ("`k19` is not a known key" in note) != too_many
    assert ("**and more**" in note) != too_many
    assert len(note) < 5_000
    serves_the_next(served, f"after-{name}.json")


# ── what agents ask for ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_listing_of_forty_stars_is_answered_and_the_daemon_goes_on(tmp_path: Path) -> None:
    home = scripted_home(tmp_path / "home")
    glob = f"{'*' * 40}x"
    replies = [{"role": "STRATEGIST", "round": 1, "text": f"[ORCHESTRATOR_REQUEST: LIST_FILES({glob})]"}]
    (home / "script.yaml").write_text(json.dumps({"replies": replies, "default": {"text": "Nothing to add."}}))
    (home / f"{'a' * 200}.md").write_text("Far too long a name.\n")
    with Daemon(home) as daemon:
        daemon.ready()
        run_one(daemon, "first.json")
        serves_the_next(daemon)
        assert daemon.stop() == 0
    assert f"no readable file matches `{glob}`" in (home / "artifacts" / "first.md").read_text().replace("\\*", "*")


# ── lanes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_lanes_run_side_by_side_one_lane_in_turn_and_each_remembers_its_own_tasks(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    meeting = threading.Barrier(2, timeout=50)

    def reply(request: RecordedRequest) -> FakeReply:
        [task] = re.findall(r"Question ([ab][12])\b", request.texts[0].split("# The task")[-1])
        if "You are STRATEGIST" in request.system and task.endswith("1"):
            meeting.wait()  # goes on only when both lanes are here at the same time
        return text(f"The answer to {task}.")

    fake.reply = reply
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        for task in ("a1", "a2", "b1", "b2"):
            body = command(f"Question {task}.", output_artifact_path=f"artifacts/{task}.md", session=task[0])
            drop_command(home, body, f"{task}.json")
        daemon.wait("run_ended", count=4, status="succeeded")
        assert daemon.stop() == 0
        order = [(e["event"], e["file"]) for e in daemon.events if e["event"] in ("run_started", "run_ended")]
    assert not meeting.broken
    for lane, other in ("ab", "ba"):
        files = (f"{lane}1.json", f"{lane}2.json")
        of_lane = [(kind, file) for kind, file in order if file in files]
        assert of_lane == [(kind, file) for file in files for kind in ("run_started", "run_ended")]
        for role in ("coordinator", "strategist", "auditor"):
            assert remembered(home, lane, role) == [f"Question {lane}1", f"Question {lane}2"]
        seconds = [r.texts[0] for r in fake.requests if f"Question {lane}2." in r.texts[0].split("# The task")[-1]]
        assert len(seconds) == 4
        for prompt in seconds:
            assert f"The answer to {lane}1." in prompt
            assert f"Question {other}" not in prompt
    assert sorted(path.name for path in (home / "session_states").iterdir()) == ["README.md", "a", "archive", "b"]


def test_without_a_lane_named_commands_take_turns_in_lane_main_beside_any_other(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command("First of main."), "m1.json")
        drop_command(home, command("Second of main.", output_artifact_path="artifacts/m2.md"), "m2.json")
        drop_command(home, command("Of b.", output_artifact_path="artifacts/b.md", session="b"), "b.json")
        first = daemon.wait("run_started", file="m1.json")["run_id"]
        other = daemon.wait("run_started", file="b.json")["run_id"]
        for run_id in (first, other):  # both stand at the gate
            daemon.wait("turn_started", role="STRATEGIST", run_id=run_id)
        assert [event["file"] for event in daemon.all("run_started")].count("m2.json") == 0
        gate.open()
        daemon.wait("run_ended", count=3, status="succeeded")
    assert remembered(home, "") == ["First of main", "Second of main"]
    assert remembered(home, "b") == ["Of b"]


def test_two_lanes_with_one_output_path_take_turns_and_both_are_kept(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command("Of a.", session="a"), "a.json")
        first = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        drop_command(home, command("Of b.", session="b"), "b.json")
        daemon.wait("run_queued", file="b.json")
        gate.open()
        daemon.wait("run_ended", count=2, status="succeeded")
        order = [(e["event"], e["file"]) for e in daemon.events if e["event"] in ("run_started", "run_ended")]
    assert order == [(kind, file) for file in ("a.json", "b.json") for kind in ("run_started", "run_ended")]
    assert b"Of a." in kept_pages(home, first)["artifact.md"]
    assert "Of b." in (home / "artifacts" / "out.md").read_text()
