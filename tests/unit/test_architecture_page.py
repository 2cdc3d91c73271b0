"""docs/architecture.md names the rooms that there are, in the order that import-linter holds, files that exist, and functions
in the order in which a run calls them. A name stands once."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_rooms_of_the_page_are_the_layers_that_imports_obey_and_all_that_there_are() -> None:
    linted = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0][
        "layers"
    ]
    table = PAGE.partition("## The rooms")[2].partition("\n## ")[0]
    told = [
        name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`([a-z_]+)`", row)
    ]
    order = {name: number for number, layer in enumerate(linted) for name in re.findall(r"[a-z_]+", layer)}
    there = {path.stem for path in (REPOSITORY / "council").iterdir() if not path.name.startswith("_")}
    assert set(told) == there - {"py", "resources"}
    assert [order[name] for name in told] == sorted(order[name] for name in told)


def test_every_file_that_the_page_names_exists() -> None:
    named = set(re.findall(r"\b(?:council|tests|docs)/[\w./]+\.(?:py|md|json)\b", PAGE))
    inside = set(re.findall(r"(?<![\w/])(?:daemon|engine|deliberation|turns|artifacts)/\w+\.py\b", PAGE))
    assert len(named) > 10
    assert len(inside) > 5
    paths = [*named, *(f"council/{path}" for path in inside)]
    assert [path for path in paths if not (REPOSITORY / path).is_file()] == []
    anchors = re.findall(r"\]\(models\.md#([\w-]+)\)", PAGE)
    headings = re.findall(r"^#+ (.+)$", (REPOSITORY / "docs" / "models.md").read_text(), re.MULTILINE)
    assert set(anchors) <= {re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-")) for heading in headings}


def test_the_functions_of_both_drawings_are_called_in_their_order() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.called"], cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=120
    )
    calls = done.stdout.splitlines()
    command, turn = (
        [f"{file} {name}" for name, file in re.findall(r"^ ([\w.]+) +([a-z_]+/\w+\.py)  ", drawing, re.MULTILINE)]
        for drawing in re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    )
    assert (len(command), len(turn)) == (15, 8)
    assert turn.pop() == "turns/evidence.py Evidence"  # which is no function
    for drawn in (command, turn):
        rest = iter(calls)
        assert [call for call in drawn if call not in rest] == []


def test_a_plain_turn_runs_through_no_more_files_than_the_page_says() -> None:
    [bar] = re.findall(r"through at most (\d+) files", PAGE)
    assert measured("turn_files").endswith(f" files; the bar is {bar}\n")


def test_few_functions_are_private_helpers_with_one_caller() -> None:
    assert measured("single_use").endswith("(bar 10%)\n")


def measured(benchmark: str) -> str:
    """The output of a benchmark, which fails above its bar."""
    command = [sys.executable, "-m", f"benchmarks.{benchmark}"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_docstring_begins_with_its_subject_or_its_verb() -> None:
    questions = []
    for path in sorted((REPOSITORY / "council").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                told = ast.get_docstring(node) or ""
                if re.match(r"(?:What|Whether|Who|Where|Which|How|When)\b", told):
                    questions.append(f"{path.name}: {told.splitlines()[0]}")
    assert questions == []


def test_a_file_name_and_a_public_class_name_stand_in_one_room() -> None:
    """Files that every system has alike are apart."""
    rooms: defaultdict[str, set[str]] = defaultdict(set)
    for path in (REPOSITORY / "council").rglob("*.py"):
        room = path.relative_to(REPOSITORY / "council").parts[0]
        for name in (path.name, *re.findall(r"^class ([^\W_]\w*)[(:]", path.read_text(), re.MULTILINE)):
            rooms[name].add(room)
    alike = {"__init__.py", "commands.py", "statements.py", "system.py", "tables.py"}
    assert {name: found for name, found in rooms.items() if len(found) > 1 and name not in alike} == {}
