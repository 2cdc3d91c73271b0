"""The table of commands knows their help lines, so that a list of them loads none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import council.cli

LISTED = """\
import contextlib, sys
from council.cli.main import main
sys.argv = ["council", "--help"]
with contextlib.suppress(SystemExit):
    main()
print(*(name for name in sys.modules if name.startswith("council.cli.")), file=sys.stderr)
"""


def test_the_list_of_commands_is_told_without_loading_one() -> None:
    done = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, text=True, check=True)
    assert "Watch commands/ and run what is dropped there" in done.stdout
    loaded = {name.rpartition(".")[2] for name in done.stderr.split()}
    assert loaded == {"main", "context", "groups"}
    assert loaded < {path.stem for path in Path(council.cli.__path__[0]).glob("*.py")}
