"""docs/models.md does what it says: its provider is installed as the page has it and takes a real run, and its tables load."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from council.llm.providers import BUILT_IN, GROUP
from council.settings import Home, load_settings
from tests.harness import command, drop_command, environment, make_home, receipts, run_cli
from tests.warm import REPOSITORY

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
BLOCKS = [(match[1], match[2]) for match in re.finditer(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)]


def block(language: str, first_line: str) -> str:
    [found] = [text for kind, text in BLOCKS if kind == language and text.startswith(first_line)]
    return found


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The page's package as pip leaves it: its module, and the entry points of its pyproject.toml."""
    project = tomllib.loads(block("toml", "# pyproject.toml"))["project"]
    site = tmp_path / "site"
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (site / "council_program.py").write_text(block("python", "# council_program.py"))
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    entries = project["entry-points"][GROUP].items()
    (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *(f"{name} = {value}" for name, value in entries)]))
    return site


def test_the_provider_of_the_page_takes_a_real_run(site: Path, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", settings=block("toml", "# council.toml"))
    drop_command(home, command())
    done = run_cli("run", "--once", cwd=home, env=environment(PYTHONPATH=f"{site}{os.pathsep}{REPOSITORY}"))
    assert done.returncode == 0, done.stderr
    [receipt] = receipts(home)
    assert (receipt["status"], receipt["model"]) == ("succeeded", "program:shell")
    content = (home / "artifacts" / "out.md").read_text()
    assert re.search(r"I was told this many words: +\d{3,}", content)
    front = yaml.safe_load(content.split("---\n")[1])
    assert (receipt["tokens"]["unknown_calls"], front["cost"]) == (receipt["calls"], "unknown")


def test_the_provider_of_the_page_fails_as_the_page_says(site: Path, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", settings='model = "program:x"\n')
    env = environment(PYTHONPATH=f"{site}{os.pathsep}{REPOSITORY}")
    refused = run_cli("models", "test", cwd=home, env=env)
    assert (refused.returncode, "program:x needs a command" in refused.stderr) == (3, True)
    with (home / "council.toml").open("a") as settings:
        settings.write(f'[providers.program]\ncommand = ["{sys.executable}", "-c", "raise SystemExit(3)"]\n')
    failed = run_cli("models", "test", "--quick", cwd=home, env=env)
    assert failed.returncode == 1
    assert "error (model_server): program:x ended with 3" in failed.stderr
    listed = run_cli("models", "list", cwd=home, env=env)
    assert "a program that reads a prompt and writes an answer" in listed.stdout


@pytest.mark.parametrize(
    "text", [text for kind, text in BLOCKS if kind == "toml" and "pyproject" not in text], ids=lambda text: text[:30]
)
def test_the_tables_of_the_page_are_settings(tmp_path: Path, text: str) -> None:
    (tmp_path / "council.toml").write_text(text)
    loaded = load_settings(Home(tmp_path), flags={}, environ={})
    assert "council.toml" in loaded.sources.values()


def test_the_page_names_every_provider_and_its_key() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|", PAGE, re.MULTILINE))
    assert set(rows) == set(BUILT_IN)
