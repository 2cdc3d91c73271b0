"""`python -m tests.called` runs one command with a scripted model and prints the functions of `council/` that it calls, in their
order: `turns/asker.py Asker.ask`. A function that is called again at once is printed once."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from council.cli.main import main as council
from tests.harness import command, make_home

PACKAGE = str(Path(__file__).parents[1] / "council") + "/"
_SCRIPT = 'replies: [{text: "[ORCHESTRATOR_REQUEST: LIST_FILES(.)]", times: 10}]'


def called() -> list[str]:
    """The functions of one run."""
    calls = [""]

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            call = f"{code.co_filename.removeprefix(PACKAGE)} {code.co_qualname}"
            if call != calls[-1]:
                calls.append(call)

    with tempfile.TemporaryDirectory() as folder:
        home = make_home(Path(folder))
        (home / "script.yaml").write_text(_SCRIPT)
        (home / "commands" / "one.json").write_text(json.dumps(command()))
        sys.argv = ["council", "--home", folder, "run", "--once", "--model", f"scripted:{home}/script.yaml"]
        threading.setprofile(note)
        sys.setprofile(note)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            council()
        sys.setprofile(None)
    return calls[1:]


if __name__ == "__main__":
    print("\n".join(called()))
