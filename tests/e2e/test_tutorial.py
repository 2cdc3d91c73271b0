"""docs/tutorial.md, followed word for word: every file is saved, every command typed, every shown line compared.

The page keeps these rules, and this test reads it by them:

- A fence `console` is a terminal: lines `$ …` are typed, `^C` is pressed, the other lines are what is then seen, all of it
  and in this order. `…` within a line stands for what varies, `…` as a line of its own for any number of lines.
- It is the second terminal where the sentence right above names that one, else the first. A command in the first is
  awaited to its end, which must be a good one; of the second, what the page shows is awaited.
- A sentence "Save this as `path`:" above any other fence: the file is written there, in place, as an editor does.

Both are real pseudo-terminals with an interactive bash, so that `council` prints what a person sees.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path

from council.errors import EXIT_INTERRUPTED
from tests.harness import TIMEOUT_S, environment

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"
HOME = "my-council"  # where the page says that everything goes on
INSTALL = "$ pip install -e ."  # would change this environment
KEY = "$ echo 'GEMINI_API_KEY=…' > .env\n$ council doctor --online\n$ council run"  # needs a key and the network
CTRL_C = "^C"

_FENCE = re.compile(r"^```(\w+)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_SAVED_AS = re.compile(r"Save this as `([^`]+)`:$")
_PROMPT = "\x1e"  # a character that nothing prints, on both sides of the exit code
_AT_PROMPT = re.compile(f"{_PROMPT}([0-9]+){_PROMPT}")
_PATIENCE_S = 20.0  # beyond every wait on the page
_COLUMNS = 250  # so that no line is folded
_START = (
    "import fcntl, os, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "  # so that Ctrl-C goes where it should
    "os.execlp('bash', 'bash', '--norc', '--noprofile', '--noediting', '-i')"
)


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Block:
    """A fence, and the last sentence above it."""

    language: str
    text: str
    above: str

    def saved_as(self) -> str:
        found = _SAVED_AS.search(self.above)
        assert found, f"what is a reader to do with this?\n{self.above}\n{self.text}"
        return found[1]

    def steps(self) -> list[tuple[str, list[str]]]:
        """What is typed, and the lines that are seen from it on, itself included. Typed is nothing where new lines just
        appear."""
        steps: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            typed = line.removeprefix("$ ")
            if typed != line or line == CTRL_C:
                steps.append((typed, [typed]))
            elif steps:
                steps[-1][1].append(line)
            else:
                steps.append(("", [line]))
        return steps


def blocks(page: str) -> list[Block]:
    """Every fence, in order."""
    return [Block(match[1], match[2], _sentence_above(page[: match.start()])) for match in _FENCE.finditer(page)]


def _sentence_above(text: str) -> str:
    paragraph = " ".join(text.rstrip().rpartition("\n\n")[2].split())
    return re.split(r"(?<=[.]) ", paragraph)[-1]


def as_seen(lines: list[str]) -> re.Pattern[str]:
    """What is seen, from its beginning."""
    patterns = [
        r"(?:[^\n]*\n)*?" if line == "…" else re.escape(line).replace("…", r"[^\n]+?") + r" *\n" for line in lines
    ]
    return re.compile("".join(patterns))


# ── the terminals ────────────────────────────────────────────────────────────────────────────────────────────────────


class Terminal:
    """An interactive bash in a pseudo-terminal of its own."""

    def __init__(self, folder: Path) -> None:
        self._ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, _COLUMNS, 0, 0))
        bin_folder = Path(sys.executable).parent
        env = environment(PATH=f"{bin_folder}:{os.environ['PATH']}", PS1=f"{_PROMPT}$?{_PROMPT}")
        env |= {"TERM": "dumb", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}  # no progress bar that paints over itself
        self._bash = subprocess.Popen(
            [sys.executable, "-c", _START], cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        self._data = b""
        self._taken = 0  # how much of the text has been looked at
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends what runs in this terminal, and its bash; nothing else."""
        with contextlib.suppress(OSError):  # nobody is in there any more
            os.killpg(os.tcgetpgrp(self._ours), signal.SIGKILL)
        self._bash.kill()
        self._bash.wait(TIMEOUT_S)
        self._reader.join(TIMEOUT_S)
        os.close(self._ours)

    def type(self, line: str) -> None:
        """Types a line, at the prompt; or presses Ctrl-C, where something runs."""
        if line == CTRL_C:
            self._take(len(self._text()))
            os.write(self._ours, b"\x03")
        else:
            self.ended()
            self._take(self._wait(_AT_PROMPT.match, "the prompt").end())
            os.write(self._ours, f"{line}\n".encode())

    def ended(self) -> tuple[int, str]:
        """Waits for the prompt. The exit code of what ended there, and what was seen before it."""
        match = self._wait(_AT_PROMPT.search, "the prompt")
        seen = self._text()[: match.start()]
        self._take(match.start())
        return int(match[1]), seen

    def shows(self, pattern: re.Pattern[str]) -> None:
        """Waits until the next that is seen is this."""
        self._take(self._wait(pattern.match, pattern.pattern).end())

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._ours, 65536)
            except OSError:  # the last process that had the terminal has ended
                return
            with self._news:
                self._data += data
                self._news.notify_all()

    def _text(self) -> str:
        return self._data.decode(errors="ignore").replace("\r\n", "\n")[self._taken :]

    def _take(self, size: int) -> None:
        self._taken += size

    def _wait(self, look: Callable[[str], re.Match[str] | None], what: str) -> re.Match[str]:
        deadline = time.monotonic() + _PATIENCE_S
        with self._news:
            while not (match := look(self._text())):
                left = deadline - time.monotonic()
                assert left > 0, f"waited in vain for {what}\nseen instead:\n{self._text()}"
                self._news.wait(left)
        return match


# ── following it ─────────────────────────────────────────────────────────────────────────────────────────────────────


def follow(page: list[Block], folder: Path, first: Terminal, second: Terminal) -> None:
    for block in page:
        if block.language != "console":
            save(folder / HOME / block.saved_as(), block.text)
        elif "second terminal" in block.above:
            for typed, lines in block.steps():
                if typed:
                    second.type(typed)
                second.shows(as_seen(lines))
        else:
            for typed, lines in block.steps():
                run(first, typed, lines)


def save(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{text}\n")


def run(terminal: Terminal, typed: str, lines: list[str]) -> None:
    assert typed, f"the first terminal shows nothing by itself: {lines}"
    terminal.type(typed)
    code, seen = terminal.ended()
    assert code == 0, seen
    fits = as_seen(lines).fullmatch(seen)
    assert fits, "\n".join(["shown:", *lines, "", "seen:", seen])


def test_a_newcomer_who_follows_the_tutorial_sees_what_it_shows(tmp_path: Path) -> None:
    page = blocks(TUTORIAL.read_text())
    skipped = [block for block in page if block.text in (INSTALL, KEY)]
    assert [block.text for block in skipped] == [INSTALL, KEY]
    with Terminal(tmp_path) as first, Terminal(tmp_path) as second:
        follow([block for block in page if block not in skipped], tmp_path, first, second)
        code, _ = second.ended()  # the page has stopped its daemon
        assert code == EXIT_INTERRUPTED
