"""Level L2: one process per worker and harness loads the standard library once, and forks for each job.

Before the fork reads the job, it takes on limits, gives up capabilities and puts on the filter of `system_calls`. Where
bubblewrap is installed, the zygote also has namespaces of its own, without a network, other processes or a home.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import shutil
import socket
import sys
import sysconfig
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from council.sandbox.answers import JobEnd, lost, result_of
from council.sandbox.job import Job, Level, Limits, NoCage, Result
from council.sandbox.system_calls import filter_program

HARD_LIMITS = Limits()
JOBS_OF_ONE = 1_000  # the children of one zygote share its hash seed and the layout of its memory
INSIDE = Path(__file__).with_name("inside.py")
LOADER = (
    "import sys,json;boot=json.loads(sys.stdin.buffer.readline());space={'__name__':'cage'};"
    "exec(compile(boot.pop('program'),'<cage>','exec'),space);space[boot.pop('way')](boot)"
)
INTERPRETER = ("-s", "-S", "-P", "-c", LOADER)  # not -I, which would ignore the hash seed
_NOT_SET_UP = "The cage could not be set up"
_FIX_BUBBLEWRAP = 'let this user make namespaces, or set sandbox_bubblewrap = "off"'
_FIX_SHUT = "run Council where a process may limit and filter itself; some containers forbid it"
_START_S = 30.0
_END_S = 5.0  # from a kill to the notice of it; beyond that the zygote itself is ended
_READ_BYTES = 65_536
_MAX_MESSAGE_BYTES = 4096


class Zygotes:
    """Starts, lends, recycles and replaces zygotes. Nothing runs before the first job."""

    name = "zygote"

    def __init__(self, *, bubblewrap: bool = True, weak: bool = False) -> None:
        """`bubblewrap`: use it where it is installed. `weak`: go on at L1 where the filter cannot be put on."""
        self._bubblewrap = shutil.which("bwrap") if bubblewrap else None
        self._least = Level.L1 if weak else Level.L2
        self._idle: dict[str, list[Zygote]] = defaultdict(list)
        self._busy: set[Zygote] = set()
        self.level = Level.L2

    async def run(self, job: Job) -> Result:
        try:
            zygote = await self._lend(job.harness)
        except NoCage as error:
            return Result("refused", self.level, error=str(error))
        self._busy.add(zygote)
        try:
            return await zygote.run(job, (job.limits or HARD_LIMITS).within(HARD_LIMITS))
        except BaseException:  # a caller that no longer waits: nothing of the job goes on
            zygote.kill()
            raise
        finally:
            self._busy.discard(zygote)
            if zygote.alive and zygote.jobs < JOBS_OF_ONE:
                self._idle[job.harness].append(zygote)
            else:
                await zygote.close()

    async def _lend(self, harness: str) -> Zygote:
        """A zygote that is alive. Raises NoCage."""
        idle = self._idle[harness]
        while idle:
            zygote = idle.pop()
            if zygote.alive:
                return zygote
            await zygote.close()
        return await Zygote.start(harness, self._least, self._bubblewrap)

    async def aclose(self) -> None:
        """Ends all zygotes, and with them every process of theirs."""
        for zygote in self._busy:
            zygote.kill()
        idle = [zygote for zygotes in self._idle.values() for zygote in zygotes]
        self._idle.clear()
        await asyncio.gather(*(zygote.close() for zygote in idle))


class Zygote:
    """One process that forks for one job at a time."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self._process = process
        self._control = control
        self.jobs = 0

    @classmethod
    async def start(cls, harness: str, least: Level, bubblewrap: str | None) -> Zygote:
        """Raises NoCage."""
        if not sys.platform.startswith("linux"):
            raise NoCage("The zygote needs Linux.", fix="use the docker sandbox (council sandbox check)")
        environment = {"PYTHONHASHSEED": "0"}
        if sysconfig.get_config_var("Py_ENABLE_SHARED"):
            environment["LD_LIBRARY_PATH"] = str(sysconfig.get_config_var("LIBDIR"))
        fix = _FIX_BUBBLEWRAP if bubblewrap else _FIX_SHUT
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        boot = {
            "program": INSIDE.read_text(encoding="utf-8"), "way": "serve", "harness": harness,
            "control": theirs.fileno(), "least": int(least), "filter": filter_program(platform.machine()).hex(),
        }  # fmt: skip
        first_words, errors = _in_memory(json.dumps(boot).encode() + b"\n"), _in_memory(b"")
        zygote: Zygote | None = None
        try:
            process = await asyncio.create_subprocess_exec(
                *_command(bubblewrap, environment), stdin=first_words, stdout=asyncio.subprocess.DEVNULL, stderr=errors,
                pass_fds=(theirs.fileno(),), env=environment, cwd="/",
                start_new_session=True,  # a Ctrl-C in the terminal is for Council alone
            )  # fmt: skip
            zygote = cls(process, ours)
            theirs.close()  # so that the end of the process is the end of `ours`
            async with asyncio.timeout(_START_S):
                if await asyncio.get_running_loop().sock_recv(ours, _MAX_MESSAGE_BYTES) == b"ready":
                    return zygote
            said = os.pread(errors, _READ_BYTES, 0).decode("utf-8", "replace").strip(" .\n").rpartition("\n")[2]
            raise NoCage(f"{_NOT_SET_UP}: {said or 'its first process said nothing'}.", fix=fix)
        except BaseException as error:
            ours.close()
            if zygote is not None:
                zygote.kill()
            if isinstance(error, OSError | TimeoutError):
                reason = error or "its first process did not start in time"
                raise NoCage(f"{_NOT_SET_UP}: {reason}.", fix=fix) from None
            raise
        finally:
            theirs.close()
            os.close(first_words)
            os.close(errors)

    @property
    def alive(self) -> bool:
        """False as soon as its end of the control socket is closed."""
        try:
            self._control.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False  # the end, or a message that nobody asked for

    async def run(self, job: Job, limits: Limits) -> Result:
        """Raises no error of the job."""
        self.jobs += 1
        began = time.monotonic()
        words = {"code": job.code, "entry": job.entry, "argument": job.argument, "seed": job.seed}
        order = {"AS": limits.memory_bytes, "CPU": limits.cpu_s}
        answer_out, answer_in = os.pipe()
        job_fd = _in_memory(json.dumps(words).encode())
        tasks: list[asyncio.Task[Any]] = []
        try:
            try:
                socket.send_fds(self._control, [json.dumps(order).encode()], [job_fd, answer_in])
            finally:
                os.close(job_fd)
                os.close(answer_in)
            notice = asyncio.ensure_future(asyncio.get_running_loop().sock_recv(self._control, _MAX_MESSAGE_BYTES))
            answer = asyncio.ensure_future(self._read(answer_out, limits.output_bytes))
            tasks = [notice, answer]
            done, _ = await asyncio.wait([notice], timeout=limits.wall_s)
            if timed_out := not done:
                self._end_job()
            async with asyncio.timeout(_END_S):
                told, data = json.loads(await notice or b"null"), await answer
        except (OSError, TimeoutError):
            told = None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            os.close(answer_out)
        wall_s = time.monotonic() - began
        if told is None:
            self.kill()
            return lost(Level.L2, wall_s)
        shut = told["shut"] or ("2" if timed_out else "it ended before it was shut")
        if not shut.isdigit():
            return Result("refused", Level.L2, error=f"The cage could not be shut: {shut}. Fix: {_FIX_SHUT}")
        ending = JobEnd(told["exit"], told["cpu_s"], wall_s, told["peak_bytes"], timed_out)
        return result_of(data, ending, Level(int(shut)), limits)

    async def _read(self, fd: int, most: int) -> bytes:
        """The answer until its end, or what there is of it when it is longer than `most`: then the job is ended."""
        data = b""
        loop = asyncio.get_running_loop()
        while len(data) <= most:
            ready = loop.create_future()
            loop.add_reader(fd, ready.set_result, None)
            try:
                await ready
            finally:
                loop.remove_reader(fd)
            piece = os.read(fd, _READ_BYTES)
            if not piece:
                return data
            data += piece
        self._end_job()
        return data

    def _end_job(self) -> None:
        with contextlib.suppress(OSError):  # a zygote that is gone has ended its child
            self._control.send(b"kill")

    def kill(self) -> None:
        """Ends it at once. Its child dies with it."""
        self.jobs = JOBS_OF_ONE  # it takes no other
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def close(self) -> None:
        """Lets it end, and waits for that."""
        self._control.close()
        try:
            async with asyncio.timeout(_END_S):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()


def _command(bubblewrap: str | None, environment: dict[str, str]) -> list[str]:
    """Bubblewrap gives it its own namespaces, no capability, and of the files only the interpreter and its libraries."""
    interpreter = [os.path.realpath(sys.executable), *INTERPRETER]  # a virtual environment's is a link
    if not bubblewrap:
        return interpreter
    command = [
        bubblewrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--uid", "65534",
        "--gid", "65534", "--dev", "/dev", "--tmpfs", "/tmp",  # noqa: S108 - inside
        "--chdir", "/", "--clearenv",
    ]  # fmt: skip
    for name, value in environment.items():
        command += ["--setenv", name, value]
    for folder in dict.fromkeys(["/usr", "/lib", "/lib64", "/lib32", sys.base_prefix]):
        if os.path.isdir(folder):
            command += ["--ro-bind", folder, folder]
    return command + interpreter


def _in_memory(data: bytes) -> int:
    """A file without a name: a temporary file would stay on disk, and an argument would show in the process list."""
    fd = os.memfd_create("cage")
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
