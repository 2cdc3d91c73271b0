"""Processes of `python -m council …` whose interpreter has the modules in memory already.

Nine tenths of what a short `council` costs is loading modules, and the tests start thousands. So a server loads them once
and forks for each process that is asked for. Such a process is as real as one from nothing: it has a pid, a memory, an
environment, files and signals of its own, and begins by the same `-m`. At its end it waits for its threads, calls what is to
be called at the exit and flushes its output, but does not take its modules apart. It does not prove how an interpreter starts
and stops, nor what is imported when; whatever needs that starts its own with `subprocess`.

Two servers take turns, so that one process and the next have different hash seeds: what leans on the order of a set shows.
All workers of xdist share them. Each is nobody's child, and ends when nobody is connected any more.
A process whose environment says something to the interpreter itself, changes a constant of `council` before others import
it, or puts other packages in its way, starts from nothing. With COUNCIL_TEST_COLD=1 all do.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import importlib
import inspect
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = str(Path(__file__).parents[1])
_PACKAGES = (
    "anyio._backends._asyncio", "asyncio", "cronsim", "cryptography.fernet", "cryptography.x509", "dotenv",
    "encodings.utf_16_be", "encodings.utf_16_le", "encodings.utf_8_sig", "fastjsonschema", "genai_prices.data",
    "genai_prices.decompose", "genai_prices.validation", "google.auth.aio.credentials", "google.genai.types", "h11",
    "http.server", "httpcore2", "httpx2", "importlib.metadata", "markdown_it.main", "msgspec", "psycopg", "pydantic",
    "snowballstemmer", "sqlalchemy.dialects.postgresql", "sqlalchemy.dialects.sqlite", "sqlite3", "tantivy",
    "tenacity.asyncio", "text_to_num",
    "tomllib", "truststore", "typer._adapters", "typer._click.decorators", "typer.main", "uvicorn.lifespan.off",
    "uvicorn.protocols.http.h11_impl", "watchdog.observers", "yaml",
)  # fmt: skip
_LEFT_OUT = (
    "council.__main__",
    "council.telemetry.export",
)  # the program itself; what reads the environment when loaded
_CONSTANTS = {"COUNCIL_TEST_EPOCH", "COUNCIL_TEST_VERSION"}  # see tests/faults.py
_READ_AT_THE_START = ("PYTHON", "LC_", "LANG", "TZ", "LD_", "MALLOC_", "OPENSSL_", "TYPER_", "PYDANTIC_")
_GEMINI_TYPES = (
    "HttpOptions", "HttpResponse", "GenerateContentConfig", "_GenerateContentParameters", "Part", "UserContent",
    "Tool", "FunctionDeclaration", "GenerateContentResponse", "Candidate", "Content", "GenerateContentResponseUsageMetadata",
)  # fmt: skip
_MAX_REQUEST_BYTES = 128 * 1024  # one datagram; the kernel takes about 200 KiB
_NUMBER = struct.Struct("i")  # a pid, then a wait status
_HUGE, _MADV_COLLAPSE = 2 * 1024 * 1024, 25  # bytes of a huge page; what the kernel calls the advice to use them
FOLDER = "COUNCIL_TEST_WARM"  # the environment's word for where the servers listen; the workers of xdist inherit it


def start(
    module: str,
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: int | None = None,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
) -> subprocess.Popen[str]:
    """`python -m module …` with pipes for its output, unless other files are given."""
    kind = WarmProcess if _may_be_warm(module, arguments, env) else subprocess.Popen[str]
    return kind(
        [sys.executable, "-m", module, *arguments],
        cwd=cwd,
        env=env,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        text=True,
    )


def _may_be_warm(module: str, arguments: Sequence[str], env: Mapping[str, str]) -> bool:
    is_cold = FOLDER not in os.environ or os.environ.get("COUNCIL_TEST_COLD") == "1"  # a benchmark has no such folder
    if is_cold or env.get("PYTHONUNBUFFERED") != "1":
        return False
    if env.get("PYTHONPATH", REPOSITORY) != REPOSITORY or _CONSTANTS & env.keys():
        return False
    length = len(json.dumps([module, *arguments, dict(env)]))
    return _said_to_the_interpreter(env) == _said_to_the_interpreter(os.environ) and length < _MAX_REQUEST_BYTES


def _said_to_the_interpreter(env: Mapping[str, str]) -> dict[str, str]:
    handled = ("PYTHONPATH", "PYTHONUNBUFFERED")
    return {key: value for key, value in env.items() if key.startswith(_READ_AT_THE_START) and key not in handled}


class WarmProcess(subprocess.Popen[str]):
    """A Popen whose process a server forks, and whose end that server tells: it is not a child of this process."""

    _status = -1

    def _execute_child(self, *values: Any) -> None:
        given = _POPEN_STARTS.bind(self, *values).arguments
        pipes = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        files = [own if pipe == -1 else pipe for own, pipe in enumerate(pipes)]
        self._status, theirs = os.pipe()
        try:
            module, *arguments = given["args"][2:]
            request = {"module": module, "arguments": arguments, "cwd": str(given["cwd"]), "env": dict(given["env"])}
            _next_server().ask(request, [*files, theirs])
        finally:
            os.close(theirs)
        self.pid = self._told()
        self._child_created = True
        ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in ends))  # type: ignore[attr-defined]

    def _told(self) -> int:
        data = os.read(self._status, _NUMBER.size)
        if len(data) != _NUMBER.size:
            raise RuntimeError("the server of warm processes has ended")
        return int(_NUMBER.unpack(data)[0])

    def _ended_within(self, timeout_s: float | None) -> bool:
        if self.returncode is not None:
            return True
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        if not poll.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000):
            return False
        self.returncode = os.waitstatus_to_exitcode(self._told())
        os.close(self._status)
        return True

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        self._ended_within(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if not self._ended_within(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode


_POPEN_STARTS = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]


class Server:
    """A connection with the server of this number, which is started where there is none yet."""

    def __init__(self, number: int) -> None:
        folder = Path(os.environ[FOLDER])
        address = str(folder / str(number))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._socket.connect_ex(address):
                env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
                subprocess.run(
                    [sys.executable, __file__, address],
                    env={**env, "PYTHONUNBUFFERED": "1"},
                    stdin=subprocess.DEVNULL,
                    check=True,
                )
                self._socket.connect(address)

    def ask(self, request: dict[str, Any], files: list[int]) -> None:
        socket.send_fds(self._socket, [json.dumps(request).encode()], files)


_servers: deque[Server] = deque()
_lock = threading.Lock()


def _next_server() -> Server:
    with _lock:
        if len(_servers) < 2:
            _servers.appendleft(Server(len(_servers)))
        else:
            _servers.rotate()
        return _servers[0]


class Request(NamedTuple):
    """What a server is asked to start. `files`: those that become 0, 1 and 2."""

    module: str
    arguments: list[str]
    cwd: str
    env: dict[str, str]
    files: list[int]


def serve(listener: socket.socket) -> Request | None:
    """Forks for each request until nobody is connected any more; returns in the fork, with what it is to be."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests
    signal.set_wakeup_fd(wake)
    children: dict[int, int] = {}
    connections = [listener.accept()[0]]
    while connections:
        ready, _, _ = select.select([listener, woken, *connections], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _reap(children)
        if listener in ready:
            connections.append(listener.accept()[0])
        for asked in set(ready).intersection(connections):
            data, files, _, _ = socket.recv_fds(asked, _MAX_REQUEST_BYTES * 2, 4)
            if not data:
                connections.remove(asked)
                asked.close()
                continue
            pid = os.fork()
            if not pid:
                for open_socket in (listener, *connections):
                    open_socket.detach()
                return Request(**json.loads(data), files=files[:3])
            os.write(files[3], _NUMBER.pack(pid))
            children[pid] = files[3]
            for file in files[:3]:
                os.close(file)
    return None


def _reap(children: dict[int, int]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        told = children.pop(pid)
        try:
            os.write(told, _NUMBER.pack(status))
        except BrokenPipeError:
            pass  # nobody waits for it any more
        finally:
            os.close(told)


def become(request: Request, path: list[str]) -> None:
    """Makes this fork what `python -m module …` begins as, and runs it."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(request.files):
        os.dup2(file, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.env)
    own = [request.env["PYTHONPATH"]] if "PYTHONPATH" in request.env else []
    sys.path[:] = [os.getcwd(), *own, *(folder for folder in path if folder not in own)]
    sys.argv = [request.module, *request.arguments]
    code = 0
    try:
        runpy.run_module(request.module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        code = end.code or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(code)  # the interpreter tells of it
    os._exit(code & 0xFF)  # to take each loaded module apart would copy all that is shared with the server: 70 ms


def in_huge_pages() -> None:
    """Lets a fork copy one entry in the place of a table for each 2 MiB of memory: 7 ms of each. Linux has it as of 6.1."""
    advise = ctypes.CDLL(None).madvise
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights, _, _, _, *name = line.split(maxsplit=5)
        begin, end = (int(address, 16) // _HUGE for address in span.split("-"))
        if rights.startswith("rw") and name in ([], ["[heap]"]) and begin + 1 < end:
            advise(ctypes.c_void_p((begin + 1) * _HUGE), ctypes.c_size_t((end - begin - 1) * _HUGE), _MADV_COLLAPSE)


def _build(command: Any) -> None:
    """Makes the sub-commands of a command, and what reads the options of each."""
    for parameter in command.params:
        parameter.get_runtime_param()
    for name in getattr(command, "commands", ()):
        _build(command.get_command(None, name))


def main() -> None:
    path = sys.path[1:]  # the first is this file's folder
    sys.path[0] = REPOSITORY
    Path(sys.argv[1]).unlink(missing_ok=True)  # of a server that has ended
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(sys.argv[1])
    listener.listen()
    if os.fork():
        os._exit(0)  # who asked can connect
    gc.disable()  # all of this stays: to look for garbage in it is a fifth of loading it
    council = importlib.import_module("council")
    own = (module.name for module in pkgutil.walk_packages(council.__path__, "council."))
    for name in (*_PACKAGES, *own):
        if name not in _LEFT_OUT:
            importlib.import_module(name)
    # Kept in memory, too: personas by name and text, the offline engine's stems, what typer makes of the command line, and what
    # pydantic builds of command types, of tools' arguments, or of the Gemini SDK's types for 50 ms, when they are first used.
    sys.modules["council.agents.manifest"].load_personas(Path(REPOSITORY, "personas"))
    sys.modules["council.llm.offline.vocabulary"].weak_words()
    sys.modules["council.llm.offline.numerals"].figures()
    sys.modules["council.app"].commands_of(sys.modules["council.desk.all_systems"].house())
    _build(sys.modules["council.cli.main"].program())
    arguments = sys.modules["council.workspace.arguments"]
    for found in vars(arguments).values():
        if isinstance(found, type) and issubclass(found, arguments._WorkspaceArguments):
            found.model_rebuild()
    for name in _GEMINI_TYPES:
        getattr(sys.modules["google.genai.types"], name).model_rebuild()
    assert threading.active_count() == 1
    gc.freeze()
    gc.enable()
    in_huge_pages()
    request = serve(listener)
    if request is not None:
        become(request, path)


if __name__ == "__main__":
    main()
