"""The program inside the cage. It is handed over as text, needs the standard library alone, and cannot import Council.

It has three entry points. `serve` is the zygote, which forks for each job. `hold` is a container's first process. `once` runs
one job in a container. Hiding things from foreign code in Python is worth nothing, because frames reach everything. What
holds is the kernel's filter, which `_Cage` puts on before the first line of foreign code is compiled.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import linecache
import os
import random
import resource
import select
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

# In the cage no file can be opened: what is not in memory when a job starts cannot be imported by it.
PRELOADED = (
    "abc", "array", "base64", "bisect", "calendar", "cmath", "collections.abc", "contextlib", "copy", "dataclasses",
    "datetime", "decimal", "enum", "fractions", "functools", "graphlib", "hashlib", "heapq", "itertools", "json", "math",
    "numbers", "operator", "random", "re", "statistics", "string", "struct", "textwrap", "time", "types", "typing",
    "unicodedata", "_strptime", "encodings.ascii", "encodings.latin_1", "encodings.utf_16", "encodings.utf_32",
)  # fmt: skip

OUT_OF_MEMORY = 93  # exit code: there is not even memory for an answer that says so
_ANSWER, _JOB, _SHUT = 3, 4, 5  # descriptors of a child; when foreign code starts, the last two are closed
_ABOVE = 16  # descriptors from here on are not overwritten while the child sorts its own
_LIMITS = {"STACK": 8 << 20, "CORE": 0, "FSIZE": 0}  # of the zygote and its children; the last one silences errors, too
_LIMITS_OF_A_CHILD = {"NOFILE": 8, "NPROC": 1}
_CAPABILITIES_VERSION = 0x20080522
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_MAX_ERROR_CHARS = 2_000
_MAX_TRACEBACK_CHARS = 8_000
_FRAMES = 20
_NO_LIMIT = 1 << 63
_PATIENCE, _PAUSE_S = 200, 0.005  # one second until what was killed in a container is gone
_WRITABLE = ("/tmp", "/dev/mqueue")  # noqa: S108 - where foreign code in a container can make files
_FILE = "<job>"  # the name of the foreign code in tracebacks

Call = Callable[[Callable[..., Any], Any], Any]


def serve(boot: dict[str, Any]) -> None:
    """Forks for one job after the other until the other end of the control socket closes, however that happens."""
    call = _prepare(boot)
    null = os.open(os.devnull, os.O_RDWR)
    cage = _Cage(bytes.fromhex(boot["filter"]), boot["least"])
    cage.bequeath()
    with socket.socket(fileno=boot["control"]) as control:
        gc.collect()
        gc.freeze()
        control.send(b"ready")
        while True:
            order, handed, _, _ = socket.recv_fds(control, 4096, 2)
            if not order:
                return
            if not handed:  # a kill for a job that ended by itself in the meantime
                continue
            told = _run_in_child(control, json.loads(order), handed, null, cage, call)
            control.send(json.dumps(told).encode())


def _run_in_child(
    control: socket.socket, limits: dict[str, int], handed: list[int], null: int, cage: _Cage, call: Call
) -> dict[str, Any]:
    """Forks, and waits for the child's end. A message on the control socket, or its end, kills the child.

    `shut` in the answer is the level that the child reached, or why it reached none. It is empty when the child died before.
    """
    shut_out, shut_in = os.pipe()
    zygote = os.getpid()
    child = os.fork()
    if child == 0:
        _be_caged(zygote, limits, [handed[1], handed[0], shut_in], null, cage, call)
    for fd in (*handed, shut_in):
        os.close(fd)
    pidfd = os.pidfd_open(child)
    try:
        waiting = select.poll()
        waiting.register(pidfd, select.POLLIN)
        waiting.register(control, select.POLLIN)
        while pidfd not in (ready := [fd for fd, _ in waiting.poll()]):
            if control.fileno() in ready:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                waiting.unregister(control)
                if control.recv(16, socket.MSG_PEEK):
                    control.recv(16)
        _, status, used = os.wait4(child, 0)
        shut = os.read(shut_out, 1000).decode("utf-8", "replace")
    finally:
        os.close(pidfd)
        os.close(shut_out)
    return {
        "shut": shut,
        "exit": os.waitstatus_to_exitcode(status),
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_bytes": used.ru_maxrss * 1024,
    }


def _be_caged(zygote: int, limits: dict[str, int], fds: list[int], null: int, cage: _Cage, call: Call) -> NoReturn:
    try:
        os.setsid()
        copies = [fcntl.fcntl(fd, fcntl.F_DUPFD, _ABOVE) for fd in fds]
        for target, fd in enumerate((null, null, null, *copies)):
            os.dup2(fd, target)
        os.closerange(_SHUT + 1, os.sysconf("SC_OPEN_MAX"))
        try:
            level = cage.shut(zygote, limits)
        except (OSError, ValueError) as error:  # foreign code has not been read
            os.write(_SHUT, str(error).encode()[:1000])
            os._exit(1)
        os.write(_SHUT, str(level).encode())
        os.close(_SHUT)
        with open(_JOB, "rb") as file:
            job = json.loads(file.read())
        sys.path.clear()
        _write(_ANSWER, _answer(job, call))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BaseException:  # noqa: BLE001 - nothing may come back into the zygote's loop
        os._exit(1)
    os._exit(0)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


class _Cage:
    """The walls around a child. Everything that is needed for that is made before the fork."""

    def __init__(self, program: bytes, least: int) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._steps = ctypes.create_string_buffer(program, len(program)) if program else None
        self._program = _Program(len(program) // 8, ctypes.addressof(self._steps)) if self._steps else None
        self._least = least

    def bequeath(self) -> None:
        """Takes from the zygote what it does not need, and so from all its children. Raises OSError or ValueError."""
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):  # Python's own dispositions
            signal.signal(number, signal.SIG_DFL)
        _prctl(self._libc, "no new privileges", _PR_SET_NO_NEW_PRIVS, 1)
        # A daemon that runs as root has capabilities; with one of them `madvise` takes memory from the whole machine.
        header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITIES_VERSION, 0), 8)
        if self._libc.capset(header, ctypes.create_string_buffer(24)) != 0:
            raise OSError(f"no capabilities: {os.strerror(ctypes.get_errno())}")
        _prctl(self._libc, "no dump", _PR_SET_DUMPABLE, 0)
        _lower(_LIMITS)

    def shut(self, zygote: int, limits: dict[str, int]) -> int:
        """Closes the cage around this process for good. Returns the level; raises OSError or ValueError below `least`."""
        _prctl(self._libc, "dying with the zygote", _PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != zygote:
            raise OSError("the zygote is gone")
        _lower(limits | _LIMITS_OF_A_CHILD)
        try:
            if self._program is None:
                raise OSError("this kind of machine has no table of system calls")
            _prctl(self._libc, "system call filter", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(self._program))
            with contextlib.suppress(PermissionError):
                os.close(os.open("/", os.O_RDONLY))
                raise OSError("the system call filter does not hold")
        except OSError:
            if self._least > 1:
                raise
            return 1
        return 2


def _lower(limits: dict[str, int]) -> None:
    """Lowers limits of this process, and reads each back. Raises OSError or ValueError."""
    for name, most in limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(number)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(number, (most, most))
        if resource.getrlimit(number) != (most, most):
            raise OSError(f"the limit {name} does not hold")


def _prctl(libc: ctypes.CDLL, what: str, number: int, value: int, pointer: Any = None) -> None:
    nothing = ctypes.c_ulong(0)
    if libc.prctl(number, ctypes.c_ulong(value), pointer or nothing, nothing, nothing) != 0:
        raise OSError(f"{what}: {os.strerror(ctypes.get_errno())}")


def hold(boot: dict[str, Any]) -> None:
    """A container's first process. Reports what the container lacks of `expected`, and ends when its input closes.

    The engine closes that input when whoever started the container goes, so a killed daemon leaves no container. For each line
    of input, all other processes of the container are ended. The answer says what is left, and what was used so far.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans are reaped
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # without a handler, the kernel does not deliver it to a first process
    _prctl(ctypes.CDLL(None, use_errno=True), "no dump", _PR_SET_DUMPABLE, 0)  # foreign code here has the same user
    flaws = list(_flaws(boot["expected"]))
    _write(1, json.dumps({"flaws": flaws}).encode() + b"\n")
    while sys.stdin.buffer.readline():
        patience = _PATIENCE
        while (processes := _cgroup(("pids/pids.current", "pids.current"))) > 1 and patience:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            time.sleep(_PAUSE_S)
            patience -= 1
        told = {
            "left": processes - 1 + sum(len(os.listdir(folder)) for folder in _WRITABLE if os.path.isdir(folder)),
            "cpu_ns": _cgroup(("cpuacct/cpuacct.usage",)) or _cgroup(("cpu.stat",), 1) * 1_000,
            "peak_bytes": _cgroup(("memory/memory.max_usage_in_bytes", "memory.peak")),
            "killed_for_memory": _cgroup(("memory/memory.oom_control",), 5) or _cgroup(("memory.events",), 9),
        }
        _write(1, json.dumps(told).encode() + b"\n")


def _flaws(expected: dict[str, int]) -> Iterator[str]:
    """The protections that this container lacks. Every limit is read back, because an engine may drop one silently."""
    with open("/proc/self/status", encoding="ascii") as file:
        said = dict(line.rstrip().split(":\t", 1) for line in file if ":\t" in line)
    for name, value in (("NoNewPrivs", "1"), ("Seccomp", "2"), ("CapEff", "0" * 16), ("CapBnd", "0" * 16)):
        if said.get(name, "").strip() != value:
            yield f"{name} is {said.get(name, 'unknown')}, not {value}"
    if os.getuid() != expected["uid"]:
        yield f"it runs as user {os.getuid()}"
    if not os.statvfs("/").f_flag & os.ST_RDONLY:
        yield "its root can be written"
    with open("/proc/net/dev", encoding="ascii") as file:
        devices = {line.partition(":")[0].strip() for line in file if ":" in line} - {"lo"}
    if devices:
        yield f"it has a network: {', '.join(sorted(devices))}"
    for what, names, most in (
        ("memory", ("memory/memory.limit_in_bytes", "memory.max"), expected["memory_bytes"]),
        ("processes", ("pids/pids.max", "pids.max"), expected["processes"]),
        ("processor time", ("cpu/cpu.cfs_quota_us", "cpu.max"), expected["cpu_quota_us"]),
    ):
        limit = _cgroup(names)
        if not 0 < limit <= most:
            yield f"its limit of {what} is {limit or 'unknown'}, not {most}"
    with open("/proc/swaps", encoding="ascii") as file:
        swaps = len(file.readlines()) > 1
    version_2 = os.path.exists("/sys/fs/cgroup/memory.swap.max")
    together = _cgroup(("memory/memory.memsw.limit_in_bytes",))
    if version_2:
        together = expected["memory_bytes"] + _cgroup(("memory.swap.max",))
    if swaps and not 0 < together <= expected["memory_bytes"]:
        yield "it may swap"


def _cgroup(names: tuple[str, ...], field: int = 0) -> int:
    """A number of the container's control group, under its name in version 1 or 2; 0 where it cannot be read."""
    for name in names:
        with contextlib.suppress(OSError, ValueError), open(f"/sys/fs/cgroup/{name}", encoding="ascii") as file:
            word = file.read().split()[field]
            return _NO_LIMIT if word == "max" else int(word)
    return 0


def once(boot: dict[str, Any]) -> None:
    """Runs one job in this process, and writes its answer to what was standard output."""
    call = _prepare(boot)
    _lower(boot["limits"])
    os.dup2(1, _ANSWER)
    null = os.open(os.devnull, os.O_RDWR)
    for target in (0, 1, 2):
        os.dup2(null, target)
    try:
        _write(_ANSWER, _answer(boot["job"], call))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    os._exit(0)


def _prepare(boot: dict[str, Any]) -> Call:
    """Loads what jobs may import, and the harness."""
    os.environ.clear()
    for name in PRELOADED:
        importlib.import_module(name)
    space: dict[str, Any] = {"__name__": "harness"}
    exec(compile(boot["harness"], "<harness>", "exec"), space)  # noqa: S102 - the trusted half
    call: Call = space["call"]
    return call


def _answer(job: dict[str, Any], call: Call) -> bytes:
    """The job's answer, or its error, as JSON. Raises MemoryError."""
    random.seed(job["seed"])
    code, problem = job["code"], ""
    linecache.cache[_FILE] = (len(code), None, code.splitlines(keepends=True), _FILE)
    try:
        space: dict[str, Any] = {"__name__": "job"}
        exec(compile(code, _FILE, "exec", dont_inherit=True), space)  # noqa: S102 - what the cage is for
        entry = space.get(job["entry"])
        if not callable(entry):
            return _encoded({"error": f"No entry point: the code defines no function {job['entry']!r}"})
        value = call(entry, job["argument"])
        problem = "The answer is not JSON: "
        return _encoded({"value": value})
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit, too: whatever foreign code raises is its result
        return _encoded(_told(error, problem))


def _encoded(told: dict[str, Any]) -> bytes:
    return json.dumps(told, ensure_ascii=False, allow_nan=False).encode("utf-8")


def _told(error: BaseException, problem: str) -> dict[str, Any]:
    """An exception as the caller is told it; the frames above the foreign code are left out."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != _FILE:
        frames = frames.tb_next
    try:
        line = f"{type(error).__name__}: {error}".rstrip(": ")
        lines = traceback.format_exception(type(error), error, frames, limit=-_FRAMES, chain=False)
    except MemoryError:
        raise
    except BaseException:  # noqa: BLE001 - an exception may be made so that it cannot be shown
        line, lines = "", []
    line = problem + (line or "An exception that cannot be shown")
    text = "".join(lines)[-_MAX_TRACEBACK_CHARS:] if frames is not None or isinstance(error, SyntaxError) else ""
    plain = [part.encode("utf-8", "replace").decode() for part in (line[:_MAX_ERROR_CHARS], text)]
    return {"error": plain[0], "traceback": plain[1]}


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
