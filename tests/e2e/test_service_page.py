"""docs/service.md: what its unit, its property list and its crontab start is a daemon that works and stops as the page says."""

from __future__ import annotations

import configparser
import json
import plistlib
import shlex
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from council.errors import EXIT_NO_DAEMON, EXIT_OK
from tests.harness import TIMEOUT_S, command, drop_command, inbox, install_for, make_home, receipts

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "service.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    return PAGE.partition(f"```{language}\n")[2].partition("```")[0]


def systemd_command(user: Path) -> list[str]:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(block("ini"))
    return shlex.split(unit["Service"]["ExecStart"].replace("%h", str(user)))


def launchd_command(user: Path) -> list[str]:
    arguments = plistlib.loads(block("xml").encode())["ProgramArguments"]
    return [argument.replace("/Users/anna", str(user)) for argument in arguments]


def cron_command(user: Path) -> list[str]:
    return shlex.split(block("crontab").split(maxsplit=5)[5].replace("/home/anna", str(user)))


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A user's folder as the page has it: the program in `council`, a home in `decisions`."""
    install_for(tmp_path)
    make_home(tmp_path / "decisions", settings='model = "offline"\n')
    return tmp_path


@pytest.mark.parametrize("started_by", [systemd_command, launchd_command])
def test_the_documented_service_runs_a_command_keeps_a_second_daemon_out_and_ends_well(
    started_by: Callable[[Path], list[str]], user: Path
) -> None:
    home = user / "decisions"
    drop_command(home, command())
    with subprocess.Popen(
        started_by(user), cwd="/", env={"HOME": str(user)}, stdout=subprocess.PIPE, text=True
    ) as daemon:
        assert daemon.stdout is not None
        ended = next(line for line in daemon.stdout if json.loads(line)["event"] == "run_ended")
        second = subprocess.run(cron_command(user), cwd="/", env={"HOME": str(user)}, timeout=TIMEOUT_S, check=False)
        daemon.send_signal(signal.SIGTERM)
        daemon.communicate(timeout=TIMEOUT_S)
    assert json.loads(ended)["status"] == "succeeded"
    assert (second.returncode, daemon.returncode) == (EXIT_NO_DAEMON, EXIT_OK)


def test_the_documented_line_of_cron_drains_the_folder_and_leaves(user: Path) -> None:
    home = user / "decisions"
    drop_command(home, command())
    done = subprocess.run(cron_command(user), cwd="/", env={"HOME": str(user)}, timeout=TIMEOUT_S, check=False)
    assert done.returncode == EXIT_OK
    assert inbox(home) == []
    assert [receipt["status"] for receipt in receipts(home)] == ["succeeded"]


def test_what_the_image_copies_is_enough_to_install_the_program(tmp_path: Path) -> None:
    copied = [line.split()[1:] for line in block("dockerfile").splitlines() if line.startswith("COPY ")]
    for *names, target in copied:
        folder = tmp_path / target.removeprefix("/")
        for name in names:
            if (REPOSITORY / name).is_dir():
                shutil.copytree(REPOSITORY / name, folder)
            else:
                folder.mkdir(exist_ok=True)
                shutil.copy(REPOSITORY / name, folder)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=tmp_path / "src", check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    assert "council/resources/personas/auditor.md" in zipfile.ZipFile(wheel).namelist()
