"""What is shipped: the wheel, the sdist, and the repository as a checkout; through real builds and processes."""

from __future__ import annotations

import email
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from council import __version__
from council.settings import Home
from tests.harness import environment, make_home, run_cli

REPOSITORY = Path(__file__).parents[2]
DATA_FOLDERS = ("artifacts", "commands", "personas", "session_states")
HEAVY = ("google.genai", "docker", "fastapi", "sqlalchemy", "tantivy", "numpy", "genai_prices")
PERSONAS = {
    "auditor.md", "coordinator.md", "strategist.md", "conductor.md", "ethical-hacker.md", "performance-auditor.md",
    "tax-specialist.md", "privacy-researcher.md", "code_writer.md", "video_planner.md", "writer.md", "editor.md",
    "workspace_concierge.md", "task_planner.md", "notes_vault.md", "events_publisher.md", "org_admin.md",
}  # fmt: skip


def files_below(folder: Path) -> set[str]:
    """Relative paths of the files that would be shipped from a folder."""
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix() for path in found}


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """To its end, which must be a good one."""
    arguments = [str(part) for part in command]
    done = subprocess.run(arguments, cwd=cwd, env=env or environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of this repository, and the wheel that was built from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, REPOSITORY, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def sdist(built: Path) -> Path:
    (path,) = built.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as pip puts it, in a folder of its own; the dependencies are those of this interpreter."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    run(*pip, "--target", folder, wheel, cwd=folder)
    return folder


def run_installed(installed: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The wheel's own `council` program; the checkout that runs the tests stays out of sight."""
    return run(installed / "bin" / "council", *arguments, cwd=cwd, env=environment(PYTHONPATH=str(installed)))


def test_the_wheel_holds_the_package_its_resources_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    info = f"council-{__version__}.dist-info"
    package = {f"council/{name}" for name in files_below(REPOSITORY / "council")}
    personas = {f"council/resources/personas/{name}" for name in {*PERSONAS, "README.md"}}
    assert {"council/py.typed", "council/resources/demo/command.json"} <= package
    assert {name for name in names if not name.startswith(f"{info}/")} == package | personas
    assert f"{info}/licenses/LICENSE" in names


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = email.message_from_bytes(archive.read(f"council-{__version__}.dist-info/METADATA"))
        programs = archive.read(f"council-{__version__}.dist-info/entry_points.txt").decode()
    assert (metadata["Name"], metadata["Version"], metadata["License-Expression"]) == ("council", __version__, "MIT")
    assert metadata["Requires-Python"] == ">=3.11"
    assert "council = council.cli.main:main" in programs


def test_the_sdist_holds_what_building_and_testing_need(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {PurePosixPath(member.name) for member in archive if member.isfile()}
    top = PurePosixPath(f"council-{__version__}")
    wanted = {"pyproject.toml", "LICENSE", "README.md", "council/py.typed", "tests/harness.py"}
    wanted |= {f"personas/{name}" for name in PERSONAS}
    wanted |= {
        f"{folder}/{name}" for folder in ("council", "docs", "tests") for name in files_below(REPOSITORY / folder)
    }
    assert {top / name for name in wanted} <= names
    assert not [name for name in names if ".council" in name.parts or name.name == ".env"]


def test_the_sdist_passes_the_tests_that_read_files_beside_the_package(sdist: Path, tmp_path: Path) -> None:
    """But those of the generated pages, of which it has each: they would build all of them anew."""
    subprocess.run(["tar", "-xzf", str(sdist), "-C", str(tmp_path)], check=True, timeout=60)
    top = tmp_path / f"council-{__version__}"
    reading = (
        "settings/test_home.py",
        "llm/test_providers.py",
        "test_architecture_page.py::test_every_file_that_the_page_names_exists",
    )
    tests = [f"tests/unit/{name}" for name in reading]
    env = environment(PYTHONPATH=str(top))
    assert " passed in " in run(sys.executable, "-m", "pytest", "-q", "-n", "0", *tests, cwd=top, env=env).stdout


def test_the_installed_wheel_runs_outside_the_repository(installed: Path, tmp_path: Path) -> None:
    where = "import council, council.settings as s; print(council.__file__); print(s.builtin_personas_dir())"
    env = environment(PYTHONPATH=str(installed))
    printed = run(sys.executable, "-c", where, cwd=tmp_path, env=env).stdout.splitlines()
    assert printed == [
        str(installed / "council" / "__init__.py"),
        str(installed / "council" / "resources" / "personas"),
    ]
    assert run_installed(installed, "version", cwd=tmp_path).stdout == f"council {__version__}\n"


def test_init_of_the_installed_wheel_copies_the_personas(installed: Path, tmp_path: Path) -> None:
    run_installed(installed, "init", "home", cwd=tmp_path)
    for name in PERSONAS:
        assert (tmp_path / "home" / "personas" / name).read_bytes() == (REPOSITORY / "personas" / name).read_bytes()


def test_demo_of_the_installed_wheel_leaves_a_decision(installed: Path, tmp_path: Path) -> None:
    run_installed(installed, "demo", cwd=tmp_path)
    (artifact,) = (path for path in (tmp_path / "council-demo" / "artifacts").iterdir() if path.name != "README.md")
    assert "status: succeeded" in artifact.read_text()


def test_the_editable_install_finds_the_repositorys_personas(tmp_path: Path) -> None:
    where = "import council.settings as s; print(s.builtin_personas_dir())"
    assert run(sys.executable, "-c", where, cwd=tmp_path).stdout.strip() == str(REPOSITORY / "personas")
    assert run_cli("init", "home", cwd=tmp_path).returncode == 0
    assert {path.name for path in (tmp_path / "home" / "personas").iterdir()} == {*PERSONAS, "README.md"}


_ASKED_FOR = """
import json, sys
heavy, asked = json.loads(sys.argv[1]), []
class Witness:  # sees every import that is tried, of packages that are absent too
    def find_spec(self, name, path=None, target=None):
        asked.extend(one for one in heavy if name == one or name.startswith(one + "."))
sys.meta_path.insert(0, Witness())
from council.cli.main import app
try:
    app(sys.argv[2:])
finally:
    print(json.dumps(sorted(set(asked))), file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["status"], ["status", "--json"], ["version"], ["--help"]], ids=" ".join)
def test_light_commands_load_no_heavy_package(arguments: list[str], tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    done = run(sys.executable, "-c", _ASKED_FOR, json.dumps(HEAVY), *arguments, cwd=home.resolve())
    assert done.stdout.strip()
    assert json.loads(done.stderr) == []


@pytest.fixture
def git(require_service: Callable[[str, bool, str], None]) -> Callable[..., str]:
    """`git …` in the repository; what it printed. An exit of 1 is check-ignore's "none of them"."""
    require_service("git metadata", (REPOSITORY / ".git").exists(), "run this from a git checkout, not an archive")

    def call(*arguments: str) -> str:
        # The owner of a checkout in a container is often somebody else; reading it is harmless.
        command = ["git", "-c", f"safe.directory={REPOSITORY}", *arguments]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    return call


def test_each_data_folder_is_tracked_with_its_readme(git: Callable[..., str]) -> None:
    tracked = set(git("ls-files", *DATA_FOLDERS).splitlines())
    assert {path for path in tracked if path.endswith("/README.md")} == {f"{name}/README.md" for name in DATA_FOLDERS}
    assert tracked - {f"{name}/README.md" for name in DATA_FOLDERS} == {f"personas/{name}" for name in PERSONAS}


def test_what_a_run_writes_in_the_repository_is_ignored(git: Callable[..., str]) -> None:
    home = Home(REPOSITORY)
    written = [
        home.commands / "command.json",
        home.commands / ".command.json.0123.tmp",
        home.commands / ".20261120-233127-xtpgmkte.taken",
        home.failed / "command.json",
        home.failed / "command.json.error.md",
        home.artifacts / "decision.md",
        home.artifacts / "deep" / "decision.md",
        home.artifacts / ".decision.md.20261120-233127-xtpgmkte.staged",
        home.session_states / "auditor_session.json",
        home.session_states / "lane" / "auditor_session.json",
        home.session_states / "archive" / "main" / "AUDITOR" / "1.md",
        home.lock_file,
        home.state_file,
        home.runtime / "council.db",
        REPOSITORY / ".env",
        REPOSITORY / "council-demo" / "commands" / "command.json",
    ]
    names = [os.fspath(path.relative_to(REPOSITORY)) for path in written]
    assert git("check-ignore", *names).splitlines() == names


def test_readmes_new_personas_and_schedules_are_not_ignored(git: Callable[..., str]) -> None:
    kept = [f"{name}/README.md" for name in DATA_FOLDERS] + ["personas/new-role.md", "commands/recurring/weekly.json"]
    ignored = ["commands/weekly.json"]
    assert git("check-ignore", "--no-index", *kept, *ignored).splitlines() == ignored
