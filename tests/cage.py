"""What the host sees of a hostile program: its files, the connections it makes, the signals it sends, what it leaves running.

`Host` is the victim, the same for a program in the cage and for its control outside: a plain interpreter in a throwaway
folder, as a throwaway user, under limits that the machine survives.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness import wait_until

NOBODY = 65_534
AS_ROOT = os.geteuid() == 0
# A user that owns nothing; it may look where the interpreter lies, which may be below a folder of root's.
AS_NOBODY = (
    [
        "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=+dac_read_search",
        "--ambient-caps=+dac_read_search",
    ]
    if AS_ROOT
    else []
)  # fmt: skip
CONTROL_MEMORY_BYTES = 600 << 20
CONTROL_CPU_S = 2
_TIMEOUT_S = 30
_PR_SET_CHILD_SUBREAPER = 36
_MARK = signal.SIGRTMIN + 1  # comes after every other signal that is on its way
# The control's own answer goes where a job's answer goes, to descriptor 3.
_CONTROL = """
import json, os, resource, sys
words = json.loads(sys.stdin.readline())
for name, most in words["limits"].items():
    resource.setrlimit(getattr(resource, name), (most, most))
space = {"__name__": "job"}
exec(compile(words["code"], "<job>", "exec"), space)
value = space["attack"](words["argument"])
os.write(3, json.dumps(value, default=str).encode())
"""
_LISTENER = """
import os, signal, sys
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGRTMIN, signal.SIGRTMIN + 1):
    signal.signal(number, lambda number, frame: None)
reading, writing = os.pipe()
os.set_blocking(writing, False)
signal.set_wakeup_fd(writing)
os.write(1, b"r")
while True:
    os.write(1, os.read(reading, 1))
"""


@dataclass
class Sighting:
    """What was seen of one program. `answer` is what it sent back, in whatever form."""

    effects: set[str] = field(default_factory=set)
    answer: str = ""
    peak_bytes: int = 0
    sent_bytes: int = 0


class Host:
    """A folder with a file and a secret, a listener on loopback, and a process that notes its signals."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "victim"
        self.canary = f"canary-{uuid.uuid4().hex}"
        self._server = socket.create_server(("127.0.0.1", 0))
        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._datagrams.bind(("127.0.0.1", 0))
        self._local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._name = uuid.uuid4().hex
        self._key = int(self._name[:7], 16)
        self._local.bind(f"\0{self._name}")
        self._local.listen()
        self._listener = subprocess.Popen(
            [*AS_NOBODY, sys.executable, "-I", "-c", _LISTENER], stdout=subprocess.PIPE, process_group=0
        )
        assert self._listener.stdout is not None
        assert os.read(self._listener.stdout.fileno(), 1) == b"r"
        self._limits = self._listener_state()
        self._secret = os.open(self._renewed() / "secret.txt", os.O_RDONLY)
        os.set_inheritable(self._secret, True)  # what a careless daemon would hand down

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.kill()
        self._listener.wait()
        assert self._listener.stdout is not None
        self._listener.stdout.close()
        for each in (self._server, self._datagrams, self._local):
            each.close()
        os.close(self._secret)

    @property
    def argument(self) -> dict[str, Any]:
        """What every program is told, so that ignorance is not what stops it."""
        return {
            "folder": str(self.folder), "port": self._server.getsockname()[1], "pid": self._listener.pid,
            "datagrams": self._datagrams.getsockname()[1], "local": self._name, "key": self._key,
        }  # fmt: skip

    @property
    def environment(self) -> dict[str, str]:
        return {"CANARY": self.canary, "PATH": "/usr/bin:/bin", "TMPDIR": str(self.folder)}

    def _renewed(self) -> Path:
        if self.folder.exists():
            subprocess.run(["rm", "-rf", str(self.folder)], check=True)
        self.folder.mkdir(parents=True)
        (self.folder / "kept.txt").write_text("kept\n" * 100)
        (self.folder / "secret.txt").write_text(self.canary)
        (self.folder / "empty").mkdir()
        (self.folder / f"named-{self.canary}").touch()
        (self.folder / "pointer").symlink_to(self.canary)
        for path in [self.folder, *self.folder.iterdir()]:
            os.utime(path, (1, 1), follow_symlinks=False)
            if AS_ROOT:
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        os.utime(self.folder, (1, 1))
        return self.folder

    @contextlib.contextmanager
    def watching(self) -> Iterator[Sighting]:
        """What the host sees of what runs in the block. Everything is as before when the next block begins."""
        sighting = Sighting()
        self._renewed()
        self._heard()
        before, children = self._files(), below()
        yield sighting
        new = below() - children
        heard = self._heard()
        for effect, seen in (
            ("file", self._files() != before),
            ("connection", "connection" in heard),
            ("signal", "signal" in heard or self._listener_state() != self._limits),
            ("process", bool(new)),
            ("secret", self.canary in sighting.answer or sighting.answer == json.dumps(os.uname().nodename)),
            ("memory", sighting.peak_bytes > 300 << 20),
            ("flood", sighting.sent_bytes > 200_000),
            ("shared", self._removed_objects()),
        ):
            if seen:
                sighting.effects.add(effect)
        wait_until(lambda: not _ended(new), "what was left behind is gone")
        self._limits = self._listener_state()

    def control(self, code: str, sighting: Sighting, *, wall_s: float = _TIMEOUT_S) -> None:
        """Runs a program outside any cage, under limits alone."""
        limits = {"RLIMIT_AS": CONTROL_MEMORY_BYTES, "RLIMIT_CPU": CONTROL_CPU_S, "RLIMIT_FSIZE": 64 << 20}
        words = json.dumps({"code": code, "argument": self.argument, "limits": limits}).encode() + b"\n"
        reading, writing = os.pipe()
        script = f"import os; os.dup2({writing}, 3)\n{_CONTROL}" if writing != 3 else _CONTROL
        process = subprocess.Popen(
            [*AS_NOBODY, sys.executable, "-I", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cwd=self.folder, env=self.environment, pass_fds=(writing, self._secret),
        )  # fmt: skip
        os.close(writing)
        drained = bytearray()
        reader = threading.Thread(target=_drain, args=(reading, drained), daemon=True)
        reader.start()
        with contextlib.suppress(BrokenPipeError):
            assert process.stdin is not None
            process.stdin.write(words)
            process.stdin.close()
        ended = _wait4(process.pid, wall_s)
        process.returncode = 0
        if ended is None:  # it is still there: the host sees it
            sighting.effects.add("lasting")
            os.kill(process.pid, signal.SIGKILL)
            ended = _wait4(process.pid, _TIMEOUT_S)
        assert ended is not None
        sighting.peak_bytes = ended.ru_maxrss * 1024
        reader.join(0.2)  # what was left behind holds the pipe open
        sighting.answer, sighting.sent_bytes = drained.decode("utf-8", "replace"), len(drained)

    def _heard(self) -> set[str]:
        """The connections and signals since the last time."""
        heard = set()
        for server in (self._server, self._local):
            server.settimeout(0.0)
            with contextlib.suppress(BlockingIOError):
                server.accept()[0].close()
                heard.add("connection")
        self._datagrams.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            self._datagrams.recv(100)
            heard.add("connection")
        assert self._listener.stdout is not None
        os.kill(self._listener.pid, _MARK)
        while (number := os.read(self._listener.stdout.fileno(), 1)) != bytes([_MARK]):
            assert number, "the listener ended"
            heard.add("signal")
        return heard

    def _listener_state(self) -> tuple[Any, ...]:
        """What others can change of a process: its limits, its schedule, its processors, its group."""
        pid = self._listener.pid
        return (
            Path(f"/proc/{pid}/limits").read_text(),
            os.sched_getscheduler(pid),
            os.sched_getaffinity(pid),
            os.getpgid(pid),
        )

    def _removed_objects(self) -> bool:
        """True when there was a shared object of the key or the name that programs are told; it is removed."""
        libc = ctypes.CDLL(None, use_errno=True)
        found = []
        for kind, remove in (("shm", libc.shmctl), ("msg", libc.msgctl), ("sem", libc.semctl)):
            for line in Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]:
                key, identifier, *_ = map(int, line.split())
                if key == self._key:
                    found.append(remove(identifier, 0, 0) if kind != "sem" else remove(identifier, 0, 0, 0))
        file = Path("/dev/shm", self._name)
        if file.exists():
            file.unlink()
            found.append(0)
        assert not any(found)
        return bool(found)

    def _files(self) -> dict[str, tuple[Any, ...]]:
        found = {}
        for path in [self.folder, *sorted(self.folder.rglob("*"))]:
            about = path.lstat()
            found[str(path)] = (about.st_mode, about.st_size, about.st_mtime_ns, about.st_nlink, about.st_ino)
        return found


def _ended(pids: set[int]) -> set[int]:
    """Kills and reaps those of these processes that are left, and returns them."""
    left = below() & pids
    for pid in left:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, os.WNOHANG)
    return left


@contextlib.contextmanager
def adopted_orphans() -> Iterator[None]:
    """In the block, what this process's descendants leave behind becomes a child of it, so that `below` sees it."""
    before = below()
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        wait_until(lambda: not _ended(below() - before), "nothing is left")
        assert prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) == 0


def below(pid: int | None = None) -> set[int]:
    """All descendants of a process, of this one by default; zombies that are not reaped, too. A Docker engine and what
    it starts are not counted."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, about = path.read_text().partition("(")[2].rpartition(")")
            if name != "dockerd":
                parents[int(path.parent.name)] = int(about.split()[1])
    found, looked_at = set(), [pid or os.getpid()]
    while looked_at:
        parent = looked_at.pop()
        children = [child for child, its in parents.items() if its == parent and child not in found]
        found.update(children)
        looked_at += children
    return found


def living() -> set[int]:
    """The descendants of this process that have not ended."""
    return {pid for pid in below() if is_running(pid)}


def is_running(pid: int) -> bool:
    """False when the process has ended, even if nobody has looked at its end."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def open_descriptors() -> set[str]:
    """What this process has open; the names tell pipes, sockets and files apart."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(f"{path.name} {os.readlink(path).removesuffix(' (deleted)')}")
    return {name for name in found if f"/proc/{os.getpid()}/fd" not in name}


def _drain(fd: int, into: bytearray) -> None:
    with open(fd, "rb", buffering=0) as pipe:
        while piece := pipe.read(65_536):
            into += piece


def _wait4(pid: int, wall_s: float) -> Any:
    pidfd = os.pidfd_open(pid)
    try:
        if not select.select([pidfd], [], [], wall_s)[0]:
            return None
        return os.wait4(pid, 0)[2]
    finally:
        os.close(pidfd)
