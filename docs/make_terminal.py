"""Writes docs/terminal.md from a real `council demo`: `python docs/make_terminal.py`. A test fails when it is stale."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

TARGET = Path(__file__).parent / "terminal.md"

# What no two runs share.
_RUN_ID = re.compile(r"\b[0-9]{8}-[0-9]{6}-[0-9a-z]{8}\b")
_PID = re.compile(r"\bpid [0-9]+")
_VERSION = re.compile(r"^Council [^\s,]+,", re.MULTILINE)

_PAGE = """# The terminal of a run

Recorded from `council demo` by `python docs/make_terminal.py`; do not edit. Down to `[SUCCESS]`, this is what `council run`
prints. The answer below is what `council show` prints.

| mark | meaning |
|---|---|
| `->` | a turn begins |
| `<-` | a turn has ended |
| `[ORCHESTRATOR]` | the request of an agent, and its result |

```console
$ council demo
{said}
```
"""


def page(said: str) -> str:
    """The whole page."""
    return _PAGE.format(said=said.rstrip())


def said_by_demo() -> str:
    """What a `council demo` in a fresh folder prints."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "council", "demo"]
        return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout


def without_what_varies(text: str) -> str:
    """With the same run id, process id and version as every other run."""
    return _VERSION.sub("Council VERSION,", _PID.sub("pid PID", _RUN_ID.sub("RUN", text)))


if __name__ == "__main__":
    TARGET.write_text(page(said_by_demo()), encoding="utf-8")
