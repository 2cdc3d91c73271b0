"""Counts the files of `council/` that one plain turn runs through: `python -m benchmarks.turn_files`.

The turn is the second one of a council in a home of its own, with a scripted model. Listeners of events are left out, and so is
whatever was under way before the turn, or what the daemon does meanwhile. Each file is one more that a reader has to open. Ends
with 1 above the bar.
"""

from __future__ import annotations

import contextlib
import dis
import io
import json
import sys
import tempfile
import threading
from collections import defaultdict
from pathlib import Path
from types import FrameType
from typing import Any

from council.cli.main import main as council
from council.deliberation.deliberate import Deliberation
from council.events import Events
from council.settings import builtin_personas_dir, init_home

PACKAGE = Path(__file__).parents[1] / "council"
BAR = 30
COUNTED_TURN = 2  # the first one opens what all share
_RESUME = dis.opmap["RESUME"]
_SCRIPT = 'replies: [{text: "A plain word about nothing in particular.", times: 10}]'
_COMMAND = {"task_description": "Say something.", "output_artifact_path": "artifacts/a.md", "config": {"max_rounds": 1}}


class Trace:
    """The functions that begin during one turn, by their files."""

    def __init__(self) -> None:
        self.functions: dict[str, set[str]] = defaultdict(set)
        self._turns = 0
        self._counts = False
        self._listeners = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if not (self._counts and event == "call" and not self._listeners and code.co_filename.startswith(str(PACKAGE))):
            return
        at = frame.f_lasti
        goes_on = code.co_code[at] == _RESUME and code.co_code[at + 1] != 0  # after an await or a yield
        if not goes_on and code.co_name != "<module>" and not _is_of_the_daemon(frame):
            self.functions[str(Path(code.co_filename).relative_to(PACKAGE))].add(code.co_qualname)

    def watch(self) -> None:
        """Counts from here on, in all threads."""
        take_turn, publish = Deliberation._take_turn, Events.publish

        async def counted(council: Deliberation, *given: Any) -> Any:
            self._turns += 1
            self._counts = self._turns == COUNTED_TURN
            try:
                return await take_turn(council, *given)
            finally:
                self._counts = False

        def unheard(events: Events, event: Any) -> None:
            self._listeners += 1
            try:
                publish(events, event)
            finally:
                self._listeners -= 1

        Deliberation._take_turn = counted  # type: ignore[method-assign,assignment]
        Events.publish = unheard  # type: ignore[method-assign,assignment]
        sys.setprofile(self)
        threading.setprofile(self)


def _is_of_the_daemon(frame: FrameType | None) -> bool:
    """True within a callback of the loop that the daemon began."""
    while frame is not None and not frame.f_code.co_filename.endswith(("asyncio/events.py", "threading.py")):
        if frame.f_code.co_filename.startswith(str(PACKAGE / "daemon")):
            return True
        frame = frame.f_back
    return False


def main() -> int:
    """Prints a line for each file, with the number of its functions; the functions, too, with `-v`."""
    trace = Trace()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        init_home(home, personas_from=builtin_personas_dir())
        (home / "script.yaml").write_text(_SCRIPT)
        (home / "commands" / "plain.json").write_text(json.dumps(_COMMAND))
        verbose = "-v" in sys.argv
        sys.argv = ["council", "--home", folder, "run", "--once", "--model", f"scripted:{home}/script.yaml"]
        trace.watch()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            council()
        sys.setprofile(None)
    for file, functions in sorted(trace.functions.items()):
        print(f"{file:32} {', '.join(sorted(functions)) if verbose else len(functions)}")
    print(f"{len(trace.functions)} files; the bar is {BAR}")
    return len(trace.functions) > BAR or not trace.functions


if __name__ == "__main__":
    raise SystemExit(main())
