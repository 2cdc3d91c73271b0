"""The vault through its own door, and what a kill in the middle of a rotation leaves."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from cryptography.fernet import Fernet

from council.desk.credentials import own_vault
from council.desk.desk import Desk
from council.settings import Home
from tests.e2e.gate import is_closing
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, text
from tests.harness import (
    FAULTY,
    Daemon,
    command,
    drop_command,
    environment,
    faulty_environment,
    make_home,
    receipts,
    run_cli,
)

CANARY = "canary-7f3a91c2d4e5b608"
VALUES = {f"key_{number}": f"{CANARY}-{number}" for number in range(3)}


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    return fill(make_home(tmp_path / "home"))


@pytest.fixture
def filled_either(database_url: str | None, tmp_path: Path) -> Path:
    """With its database in SQLite, or in PostgreSQL."""
    return fill(
        make_home(tmp_path / "home", settings=f"database_url = {json.dumps(database_url)}\n" if database_url else "")
    )


def fill(home: Path) -> Path:
    assert run_cli("users", "add", "anna", cwd=home).returncode == 0
    for key, value in VALUES.items():
        done = run_cli("vault", "set", key, "--user", "anna", "--role", "CALLER", cwd=home, stdin=value.encode())
        assert done.returncode == 0, done.stderr
        assert value not in done.stdout + done.stderr
    return home


def told(home: Path, *arguments: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    done = run_cli(*arguments, "--json", cwd=home, env=env)
    assert done.returncode == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def everything(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_no_value_stands_in_the_home_and_all_of_them_open(filled: Path) -> None:
    assert told(filled, "vault", "verify") == {"ok": True, "credentials": 3, "failed": []}
    held = everything(filled)
    for value in VALUES.values():
        assert value.encode() not in held
        assert value.encode().hex().encode() not in held


def test_a_rotation_killed_at_any_step_leaves_everything_readable_and_is_completed_by_the_next(
    filled_either: Path, tmp_path: Path
) -> None:
    filled, log = filled_either, tmp_path / "trace"
    steps = kills = 0
    while True:
        steps += 1
        env = faulty_environment(COUNCIL_TEST_FAULT=f"kill-before:{steps}", COUNCIL_TEST_FAULT_LOG=str(log))
        done = run_cli("vault", "rotate", cwd=filled, env=env, module=FAULTY)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        kills += 1
        with own_vault(
            Desk(Home(filled), environment())
        ) as vault:  # in this process: a command takes a third of a second
            assert vault.verify() == []
        assert steps < 60
    assert kills >= 8  # two keyrings and a head file, each written, synced, renamed and synced again
    assert len({entry["encryption_key_id"] for entry in told(filled, "vault", "list")["credentials"]}) == 1
    assert told(filled, "vault", "verify")["ok"] is True
    assert told(filled, "audit", "verify")["ok"] is True


def test_a_model_finds_its_key_in_the_vault_and_every_reading_is_recorded(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", settings="settle_s = 0.5\n")
    run_cli("vault", "set", "GEMINI_API_KEY", cwd=home, stdin=f"{CANARY}\n".encode())
    spelled = [CANARY, CANARY.encode().hex(), base64.b64encode(f"key={CANARY}".encode()).decode(), quote(CANARY)]
    with FakeGemini() as fake:
        fake.reply = lambda request: text(f"It is {' or '.join(spelled)}, {json.dumps(json.dumps(CANARY))}.")
        drop_command(home, command("Which engine?"))
        done = run_cli("run", "--once", cwd=home, env=environment(GOOGLE_GEMINI_BASE_URL=fake.url))
    assert done.returncode == 0, done.stderr
    assert [receipt["status"] for receipt in receipts(home)] == ["succeeded"]
    records = told(home, "audit", "tail")["records"]
    read = [record["detail"] for record in records if record["kind"] == "secret_read"]
    assert {"credential": "steward/GEMINI_API_KEY", "purpose": "a model's key"} in read
    assert "It is [secret] or [secret] or" in (home / "artifacts" / "out.md").read_text()
    kept = everything(home) + (done.stdout + done.stderr).encode()
    assert [form for form in (*spelled, spelled[2][8:20]) if form.encode() in kept] == []


def test_a_decision_whose_path_becomes_a_secret_meanwhile_is_where_it_was_wanted(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    path, word = "artifacts/pump-report-2026.md", "pump-report-2026"

    def reply(request: RecordedRequest) -> FakeReply:
        if len(fake.requests) == 1:
            assert run_cli("vault", "set", "MAIL", cwd=home, stdin=word.encode()).returncode == 0
        return text(f"Keep it, says {word}.")

    fake.reply = reply
    drop_command(home, command("Keep the pump?", output_artifact_path=path))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    [receipt] = receipts(home)
    assert (receipt["status"], receipt["artifact"]["path"]) == ("succeeded", path)
    page = (home / path).read_text()
    assert "Keep it, says [secret]." in page
    assert run_cli("show", "last", cwd=home).stdout.count("Keep it, says [secret].") >= 1
    drop_command(home, command("Keep the pump?", output_artifact_path=path), "again.json")
    drop_command(home, command("Keep the pump?"), f"{word}.json")
    refused = run_cli("run", "--once", cwd=home, env=env)
    assert "`output_artifact_path` has a secret in it" in refused.stdout
    assert "the file's name has a secret in it" in refused.stdout
    assert word not in refused.stdout
    assert word not in " ".join(path.name for path in (home / "commands" / "failed").iterdir())
    status = run_cli("status", cwd=home, env=env).stdout
    assert "the newest, [secret].json: the file's name has a secret in it" in status


def test_a_value_that_another_process_sets_while_the_daemon_runs_is_nowhere(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    """Set before a drop, in the middle of a call whose reply holds it, and anew; also in a note on a refused command."""
    values = [f"{CANARY}-{when}" for when in ("idle", "speaking", "renewed")]
    assert run_cli("users", "add", "anna", cwd=home).returncode == 0

    def put(at: int) -> None:
        key = "portal" if at != 1 else "bank"
        done = run_cli("vault", "set", key, "--user", "anna", "--role", "CALLER", cwd=home, stdin=values[at].encode())
        assert done.returncode == 0, done.stderr

    def reply(request: RecordedRequest) -> FakeReply:
        if len(fake.requests) == 2:
            put(1)
        if len(fake.requests) == 3:
            put(2)
        asks = "" if is_closing(request) else "[ORCHESTRATOR_REQUEST: READ_FILE(docs/n.md)]"
        return text(f"The word is {values[min(len(fake.requests), 3) - 1]}.\n{asks}")

    fake.reply = reply
    (home / "docs").mkdir()
    (home / "docs" / "n.md").write_text(f"It stands here: {values[0]}\n")
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        put(0)
        drop_command(home, {**command(), values[0]: 1}, "bad.json")
        daemon.wait("command_refused")
        drop_command(home, command(f"Find out what {values[0]} is."))
        assert daemon.wait("run_ended")["status"] == "succeeded"
        assert daemon.stop() == 0
        said = json.dumps(daemon.events) + daemon.stderr
    kept = everything(home).replace((home / "docs" / "n.md").read_bytes(), b"")
    kept = kept.replace((home / "commands" / "failed" / "bad.json").read_bytes(), b"")
    assert [value for value in values if value.encode() in kept or value in said] == []
    assert [value for value in values for request in fake.requests if value in "".join(request.texts)] == []
    assert "The word is [secret]." in (home / "artifacts" / "out.md").read_text()
    reads = [record["detail"] for record in told(home, "audit", "tail", "-n", "100")["records"]
             if record["kind"] == "secret_read"]  # fmt: skip
    names = ["anna/CALLER/portal", "anna/CALLER/bank", "anna/CALLER/portal"]
    assert reads == [{"credential": name, "purpose": "redaction"} for name in names]


def test_a_credential_is_stored_for_nobody_who_is_not_a_user(home: Path) -> None:
    assert run_cli("users", "add", "anna", cwd=home).returncode == 0
    for words in (("vault", "set", "pin", "--user", "Anna"), ("users", "roles", "Anna")):
        done = run_cli(*words, cwd=home, stdin=CANARY.encode())
        assert done.returncode == 2
        assert "there is no user Anna." in done.stderr
        assert "did you mean anna? `council users add Anna` makes one" in done.stderr
    assert told(home, "vault", "list")["credentials"] == []


def test_a_value_that_redaction_cannot_know_is_said(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    assert "redaction cannot tell" in run_cli("vault", "set", "pin", cwd=home, stdin=b"4711").stderr
    assert run_cli("vault", "set", "key", cwd=home, stdin=CANARY.encode()).stderr == ""


def test_without_a_writable_audit_no_key_is_read(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    run_cli("vault", "set", "GEMINI_API_KEY", cwd=home, stdin=CANARY.encode())
    (home / ".council" / "audit.head").unlink()
    (home / ".council" / "audit.head").mkdir()
    done = run_cli("doctor", cwd=home)
    assert done.returncode != 0
    assert "audit.head" in done.stdout + done.stderr
    assert "its key is set" not in done.stdout


def test_the_keys_of_a_home_that_are_gone_are_not_made_anew(filled: Path) -> None:
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "council" / "keys"
    name = (filled / ".council" / "key-id").read_text()
    (folder / f"{name}.json").rename(folder / f"{name}.away")
    done = run_cli("vault", "verify", cwd=filled)
    assert done.returncode == 3
    assert "keys of this home are gone" in done.stderr
    (folder / f"{name}.away").rename(folder / f"{name}.json")
    assert told(filled, "vault", "verify")["ok"] is True


def test_rows_of_the_original_are_taken_over_and_bound_to_their_place(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    key = Fernet.generate_key()
    rows = [
        {
            "user_id": "anna",
            "specialist_role": "CALLER",
            "credential_key": name,
            "encrypted_value": Fernet(key).encrypt(value.encode()).decode(),
            "expires_at": None,
        }
        for name, value in VALUES.items()
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    env = environment(CREDENTIAL_ENCRYPTION_KEY=key.decode())
    done = run_cli("vault", "import", str(tmp_path / "rows.json"), "--json", cwd=home, env=env)
    assert [entry["key"] for entry in json.loads(done.stdout)["credentials"]] == list(VALUES)
    assert done.stderr.count("there is no user anna: their rows are kept") == 1
    assert told(home, "vault", "verify", env=env)["ok"] is True
    assert key not in everything(home)


def test_a_row_that_another_key_sealed_stops_the_import_before_anything_is_stored(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    keys = [Fernet.generate_key(), Fernet.generate_key()]
    named = "user_id,specialist_role,credential_key,encrypted_value"
    lines = [named, *(f"anna,CALLER,k{i},{Fernet(key).encrypt(b'value').decode()}" for i, key in enumerate(keys))]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    env = environment(CREDENTIAL_ENCRYPTION_KEY=keys[0].decode())
    done = run_cli("vault", "import", str(tmp_path / "rows.csv"), cwd=home, env=env)
    assert done.returncode == 2
    assert "row 2 does not open" in done.stderr
    assert told(home, "vault", "list", env=env)["credentials"] == []


def test_rows_are_taken_over_into_a_home_with_keys_of_its_own(filled: Path, tmp_path: Path) -> None:
    key = Fernet.generate_key()
    row = {"user_id": "anna", "specialist_role": "CALLER", "credential_key": "old"}
    sealed = Fernet(key).encrypt(CANARY.encode()).decode()
    (tmp_path / "rows.json").write_text(json.dumps([{**row, "encrypted_value": sealed}]))
    names = ("vault", "import", str(tmp_path / "rows.json"))
    done = run_cli(*names, cwd=filled, env=environment(CREDENTIAL_ENCRYPTION_KEY=key.decode()))
    assert (done.returncode, "which this home does not have" in done.stderr) == (
        3,
        True,
    )  # else it would sign the audit
    taken = told(filled, *names, "--key-variable", "OLD_KEY", env=environment(OLD_KEY=key.decode()))
    assert [entry["key"] for entry in taken["credentials"]] == ["old"]
    assert told(filled, "vault", "verify") == {"ok": True, "credentials": 4, "failed": []}
    assert told(filled, "audit", "verify")["ok"] is True


def test_rows_with_a_place_that_is_none_are_refused_all(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    key = Fernet.generate_key()
    named = "user_id,specialist_role,credential_key,encrypted_value"
    lines = [f"{user},CALLER,key,{Fernet(key).encrypt(b'value-0123').decode()}" for user in ("anna", "an/na")]
    (tmp_path / "rows.csv").write_text("\n".join([named, *lines]))
    env = environment(OLD_KEY=key.decode())
    done = run_cli("vault", "import", str(tmp_path / "rows.csv"), "--key-variable", "OLD_KEY", cwd=home, env=env)
    assert (done.returncode, "row 2: 'an/na' is not a valid user" in done.stderr) == (2, True)
    assert told(home, "vault", "list")["credentials"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("set", "a b"), "not a valid name"),
        (("set", "ok", "--expires", "2001-01-01"), "is in the past"),
        (("set", "ok", "--expires", "soon"), "not a time"),
        (("rm", "nothing"), "is not in the vault"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    home = make_home(tmp_path / "home")
    done = run_cli("vault", *arguments, cwd=home, stdin=b"value-0123")
    assert done.returncode != 0
    assert said in done.stderr


def test_a_value_that_is_no_text_is_told_and_one_that_is_too_large_as_well(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    council = f"{sys.executable} -m council vault set key"
    script = f"printf '\\377\\376secret' | {council}; head -c 66000 /dev/zero | tr '\\0' x | {council}"
    done = subprocess.run(
        ["/bin/sh", "-c", script], cwd=home, env=environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert "is not UTF-8" in done.stderr
    assert "larger than 65536 bytes" in done.stderr
    assert told(home, "vault", "list")["credentials"] == []


def test_an_error_of_the_command_line_shows_no_key_of_the_home(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    (home / ".env").write_text(f"OPENAI_API_KEY={CANARY}\n")
    done = run_cli("users", "roles", CANARY, "--grant", "user", cwd=home)
    assert done.returncode == 2
    assert "there is no user [secret]" in done.stderr


def test_the_key_files_of_homes_that_are_not_found_are_listed_and_set_aside(tmp_path: Path) -> None:
    env = environment(XDG_CONFIG_HOME=str(tmp_path / "config"))
    kept, gone, second = (make_home(tmp_path / name) for name in ("kept", "gone", "second"))
    for home in (kept, gone, second):
        assert run_cli("vault", "set", "A_KEY", cwd=home, env=env, stdin=b"a value of some length").returncode == 0
    gone = gone.rename(tmp_path / "moved")
    assert run_cli("vault", "set", "B_KEY", cwd=gone, env=env, stdin=b"a value of some length").returncode == 0
    listed = {
        each["home"]: each for each in json.loads(run_cli("vault", "keys", "--json", cwd=kept, env=env).stdout)["keys"]
    }
    assert {home: each["in_use"] for home, each in listed.items()} == {str(home): True for home in (kept, gone, second)}
    for home in (gone, second):
        shutil.rmtree(home)
    told = run_cli("vault", "keys", cwd=kept, env=env).stdout
    assert f"{listed[str(gone)]['id']}  not found at {gone}: it is gone, or was moved" in told
    removal = [word for home in (gone, second) for word in ("--remove", listed[str(home)]["id"])]
    refused = run_cli("vault", "keys", *removal, "--remove", listed[str(kept)]["id"], "--yes", cwd=kept, env=env)
    assert (refused.returncode, "uses these keys" in refused.stderr) == (2, True)
    assert all(Path(each["file"]).exists() for each in listed.values())
    assert run_cli("vault", "keys", *removal, "--yes", cwd=kept, env=env).returncode == 0
    assert [home for home, each in listed.items() if Path(each["file"]).exists()] == [str(kept)]
    assert run_cli("vault", "verify", cwd=kept, env=env).returncode == 0


def test_the_keys_of_a_home_that_was_moved_and_only_read_since_come_back(tmp_path: Path) -> None:
    env = environment(XDG_CONFIG_HOME=str(tmp_path / "config"))
    home = make_home(tmp_path / "home")
    assert run_cli("vault", "set", "A_KEY", cwd=home, env=env, stdin=b"a value of some length").returncode == 0
    home = home.rename(tmp_path / "moved")
    assert run_cli("vault", "list", cwd=home, env=env).returncode == 0
    [keys] = json.loads(run_cli("vault", "keys", "--json", cwd=home, env=env).stdout)["keys"]
    assert not keys["in_use"]  # a look needs no key, so nothing tells where the home is now
    removed = run_cli("vault", "keys", "--remove", keys["id"], "--yes", cwd=home, env=env)
    assert f"Set aside: {keys['file']}.removed." in removed.stdout
    refused = run_cli("vault", "verify", cwd=home, env=env)
    back = f"mv {keys['file']}.removed {keys['file']}"
    assert ("were set aside" in refused.stderr, back in refused.stderr) == (True, True)
    assert subprocess.run(back.split(), check=False).returncode == 0
    assert run_cli("vault", "verify", cwd=home, env=env).returncode == 0
