"""docs/backup.md and docs/keys.md: a home lives on from the three parts of its backup, and from no two of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from council.errors import EXIT_OK
from tests.harness import TIMEOUT_S, command, drop_command, environment, install_for, make_home, run_cli

REPOSITORY = Path(__file__).parents[2]
BACKUP = (REPOSITORY / "docs" / "backup.md").read_text(encoding="utf-8")
NEW_KEY = "A" * 43 + "="


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A user's folder as the page has it, with a home in `decisions` that has run once and has a credential."""
    install_for(tmp_path)
    home = make_home(tmp_path / "decisions", settings='model = "offline"\n')
    drop_command(home, command())
    env = environment(HOME=str(tmp_path), XDG_CONFIG_HOME="")
    assert run_cli("run", "--once", cwd=home, env=env).returncode == EXIT_OK
    assert (
        run_cli("vault", "set", "some_key", cwd=home, env=env, stdin=b"a value of a credential").returncode == EXIT_OK
    )
    return tmp_path


def test_cron_makes_the_copy_that_a_run_once_does_not_and_a_new_disk_is_filled_from_the_three_parts(user: Path) -> None:
    env = environment(HOME=str(user), XDG_CONFIG_HOME="")
    home, disk = user / "decisions", user / "disk"
    disk.mkdir()
    assert not (home / ".council" / "copies").exists()

    line = BACKUP.partition("```crontab\n")[2].partition("```")[0].split(maxsplit=5)[5].replace("\\%", "%")
    line = line.replace("/home/anna", str(user)).replace("/mnt/backup", str(disk))
    done = subprocess.run(
        ["/bin/sh", "-c", line], cwd="/", env={"HOME": str(user), "PATH": "/usr/bin:/bin"}, timeout=TIMEOUT_S
    )
    assert done.returncode == EXIT_OK
    (copy,) = disk.glob("council-????-??-??.db")

    keys = user / ".config" / "council" / "keys"
    shutil.copytree(home, disk / "home", ignore=shutil.ignore_patterns("council.db*"))
    shutil.copytree(keys, disk / "keys")
    shutil.rmtree(home)
    shutil.rmtree(keys)
    shutil.copytree(disk / "home", home)
    refused = run_cli("restore", str(copy), "--yes", cwd=home, env=env)
    assert "the keys of this home are gone" in refused.stderr
    shutil.copytree(disk / "keys", keys)
    assert run_cli("restore", str(copy), "--yes", cwd=home, env=env).returncode == EXIT_OK
    assert json.loads(run_cli("vault", "verify", "--json", cwd=home, env=env).stdout)["ok"] is True
    assert json.loads(run_cli("audit", "verify", "--json", cwd=home, env=env).stdout)["ok"] is True


def test_keys_move_from_the_file_into_the_variable_and_are_rotated_there_with_the_old_ones_behind(user: Path) -> None:
    env, home = environment(HOME=str(user), XDG_CONFIG_HOME=""), user / "decisions"
    assert run_cli("vault", "rotate", cwd=home, env=env).returncode == EXIT_OK
    (file,) = (user / ".config" / "council" / "keys").glob("*.json")
    kept = [key["key"] for key in json.loads(file.read_text())["keys"]]
    file.unlink()

    def verified(listed: list[str]) -> list[int]:
        its = {**env, "CREDENTIAL_ENCRYPTION_KEY": ",".join(listed)}
        return [run_cli(room, "verify", cwd=home, env=its).returncode for room in ("vault", "audit")]

    assert len(kept) == 2
    assert verified(kept) == [EXIT_OK, EXIT_OK]
    rotated = [NEW_KEY, *kept]
    its = {**env, "CREDENTIAL_ENCRYPTION_KEY": ",".join(rotated)}
    assert run_cli("vault", "rotate", cwd=home, env=its).returncode == EXIT_OK
    assert verified(rotated) == [EXIT_OK, EXIT_OK]
    assert verified([NEW_KEY]) == [EXIT_OK, 1]  # the credentials open, but old audit records are not checked
    assert verified(kept)[0] != EXIT_OK  # a copy from before the rotation
