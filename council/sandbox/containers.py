"""Level L3: one container for a suite of jobs, and one exec in it for each, through the docker SDK.

Source: Kingdom, section 6, with what its sketch lacks: a deadline that kills, equal limits of memory and swap, a writable
`/tmp`, no log, and an end of every container with whoever started it. Its first process reads an input that the engine
closes when our connection closes. Images are never pulled.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import secrets
import socket
import time
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

from council.sandbox.answers import answered, out_of_memory
from council.sandbox.inside import OUT_OF_MEMORY
from council.sandbox.job import Job, Level, Limits, NoCage, Result
from council.sandbox.system_calls import container_profile
from council.sandbox.zygotes import INSIDE, INTERPRETER

HARD_LIMITS = Limits(wall_s=30.0, cpu_s=30)
LOCAL_IMAGE = "council-sandbox:latest"  # what `council sandbox build-image` makes
USUAL_IMAGE = "python:3.11-slim"
_FIX_LIMITS = "use an engine that enforces limits of memory, processes and processor time"
LABEL = "council.sandbox"
PROCESSES = 50
CPU_PERIOD_US, CPU_QUOTA_US = 100_000, 50_000  # half a core
NOBODY = 65_534
_START_S = 30.0
_END_S = 5.0
_KILLED = 137  # the exit code of SIGKILL; the engine's own word on memory is about its first process alone
_READ_BYTES = 65_536
_REST_BYTES = 64 << 20  # of a flood, on its way when it was ended
_FIX_ENGINE = "start Docker, let this user reach it, or set DOCKER_HOST"


class Containers:
    """One sandbox of containers. The next job gets a new one when the last had to be killed or left processes behind."""

    name = "docker"
    level = Level.L3

    def __init__(self, image: str | None = None) -> None:
        """`image`: unset, the one that was built here, else the usual one, if it is there."""
        self._image = image
        self._api: Any = None
        self._suite: Suite | None = None

    async def run(self, job: Job) -> Result:
        limits = (job.limits or HARD_LIMITS).within(HARD_LIMITS)
        suite = self._suite
        try:
            if suite is None:
                suite = self._suite = await asyncio.to_thread(self._start)
        except NoCage as error:
            return Result("refused", self.level, error=str(error))
        working = asyncio.ensure_future(asyncio.to_thread(suite.run, job, limits))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            await asyncio.to_thread(suite.end)
            await asyncio.wait([working])
            raise
        finally:
            if suite.ended:
                self._suite = None

    async def aclose(self) -> None:
        if self._suite is not None:
            await asyncio.to_thread(self._suite.end)
        if self._api is not None:
            self._api.close()
        self._suite = self._api = None

    def _start(self) -> Suite:
        try:
            if self._api is None:
                self._api = engine()
                sweep(self._api)
            return Suite(self._api, found_image(self._api, self._image))
        except (DockerException, OSError, ValueError) as error:
            raise NoCage(f"The container could not be set up: {error}.", fix="council sandbox check") from None


def engine() -> Any:
    """The engine's interface. Raises NoCage."""
    try:
        return docker.from_env().api
    except DockerException as error:
        where = os.environ.get("DOCKER_HOST", "its usual socket")
        raise NoCage(f"Docker cannot be reached at {where}.", fix=_FIX_ENGINE) from error


def found_image(api: Any, wanted: str | None) -> str:
    """The image for a container, which must be there. Raises NoCage."""
    for image in [wanted] if wanted else [LOCAL_IMAGE, USUAL_IMAGE]:
        with contextlib.suppress(ImageNotFound):
            api.inspect_image(image)
            return image
    missing = wanted or f"{LOCAL_IMAGE} or {USUAL_IMAGE}"
    raise NoCage(f"Docker has no image {missing}.", fix="council sandbox build-image")


def import_image(archive: str, changes: list[str]) -> int:
    """Makes LOCAL_IMAGE of a tar file. Returns its size in bytes. Raises NoCage."""
    repository, _, tag = LOCAL_IMAGE.partition(":")
    try:
        api = engine()
        api.import_image_from_file(archive, repository=repository, tag=tag, changes=changes)
        return int(api.inspect_image(LOCAL_IMAGE)["Size"])
    except (DockerException, OSError) as error:
        raise NoCage(f"Docker did not take the image: {error}.", fix="council sandbox check") from None


class Suite:
    """One container. Its connection is held open, for the container ends with it."""

    def __init__(self, api: Any, image: str) -> None:
        """Starts the container. Raises DockerException, OSError, NoCage."""
        self._api = api
        self.ended = False
        self._id = ""
        self.container_name = f"specialist-sandbox-{secrets.token_hex(6)}"
        self._cpu_ns = 0
        self._held: Any = None
        try:
            created = api.create_container(**container_settings(api, image, self.container_name))
            self._id = created["Id"]
            self._held = api.attach_socket(self._id, params={"stdin": 1, "stdout": 1, "stream": 1})
            api.start(self._id)
            expected = {
                "uid": NOBODY, "memory_bytes": HARD_LIMITS.memory_bytes, "processes": PROCESSES,
                "cpu_quota_us": CPU_QUOTA_US,
            }  # fmt: skip
            raw = _raw(self._held)
            raw.settimeout(_START_S)
            raw.sendall(_boot("hold", expected=expected))
            said = _received(raw, time.monotonic() + _START_S, most=_READ_BYTES, until=b"\n")
            if flaws := json.loads(said or b'{"flaws": ["its first process ended without a word"]}')["flaws"]:
                raise NoCage(f"The container is not what was asked for: {'; '.join(flaws)}.", fix=_FIX_LIMITS)
        except BaseException:
            self.end()
            raise

    def run(self, job: Job, limits: Limits) -> Result:
        """Runs one job in a process of its own, and ends the container when more than the answer came of it."""
        began = time.monotonic()
        data, timed_out = b"", False
        try:
            words = {"code": job.code, "entry": job.entry, "argument": job.argument, "seed": job.seed}
            execution = self._api.exec_create(self._id, ["python", *INTERPRETER], stdin=True, stderr=False)["Id"]
            with contextlib.closing(self._api.exec_start(execution, socket=True)) as stream:
                raw = _raw(stream)
                try:
                    raw.settimeout(limits.wall_s)
                    raw.sendall(_boot("once", harness=job.harness.source, job=words))
                    data = _received(raw, began + limits.wall_s, most=limits.output_bytes)
                except TimeoutError:
                    timed_out = True
                complete = not timed_out and len(data) <= limits.output_bytes
                used = self._end_processes()
                # NOTE: a stream that is closed while it is full holds up the engine for 20 s when the container is removed.
                _received(raw, time.monotonic() + _END_S, most=_REST_BYTES)
            code = self._api.exec_inspect(execution)["ExitCode"]
        except (DockerException, OSError, ValueError):
            self.end()
            error = "The sandbox was lost while the job ran; it is not repeated"
            return Result("sandbox_lost", Level.L3, error=error, wall_s=time.monotonic() - began)
        if not complete or used["processes"] != 1:
            self.end()
        cpu_s, self._cpu_ns = (used["cpu_ns"] - self._cpu_ns) / 1e9, used["cpu_ns"]
        measured: dict[str, Any] = {
            "cpu_s": cpu_s,
            "wall_s": time.monotonic() - began,
            "peak_memory_bytes": used["peak_bytes"],
        }
        if timed_out:
            return Result("timeout", Level.L3, error=f"Timed out after {limits.wall_s:g}s", **measured)
        if not complete:
            error = f"The answer is longer than {limits.output_bytes:,} bytes"
            return Result("output_cap", Level.L3, error=error, **measured)
        if code in (_KILLED, OUT_OF_MEMORY):
            return out_of_memory(Level.L3, limits, measured)
        return answered(data, Level.L3, limits, measured)

    def _end_processes(self) -> dict[str, int]:
        """Lets the first process end all others and tell what was used. Raises OSError, ValueError."""
        raw = _raw(self._held)
        raw.settimeout(_END_S)
        raw.sendall(b"\n")
        told = json.loads(_received(raw, time.monotonic() + _END_S, most=_READ_BYTES, until=b"\n"))
        return {name: int(told[name]) for name in ("processes", "cpu_ns", "peak_bytes")}

    def end(self) -> None:
        """Kills every process of the container, and removes it."""
        self.ended = True
        if self._id:
            with contextlib.suppress(APIError):  # the engine is removing it already, or has
                self._api.remove_container(self._id, force=True, v=True)
        if self._held is not None:
            self._held.close()


def container_settings(api: Any, image: str, name: str) -> dict[str, Any]:
    """How each container is made: everything that keeps foreign code in it."""
    host = api.create_host_config(
        mem_limit=HARD_LIMITS.memory_bytes,
        memswap_limit=HARD_LIMITS.memory_bytes,  # equal: no swap
        cpu_period=CPU_PERIOD_US,
        cpu_quota=CPU_QUOTA_US,
        pids_limit=PROCESSES,
        network_mode="none",
        ipc_mode="none",
        read_only=True,
        tmpfs={"/tmp": "size=16m,mode=1777,noexec,nosuid,nodev"},  # noqa: S108 - inside the container
        cap_drop=["ALL"],
        security_opt=["no-new-privileges", f"seccomp={json.dumps(container_profile())}"],
        log_config={"Type": "none", "Config": {}},
        ulimits=[{"Name": "core", "Soft": 0, "Hard": 0}, {"Name": "nofile", "Soft": 256, "Hard": 256}],
        auto_remove=True,
    )
    return {
        "image": image,
        "name": name,
        "command": ["python", *INTERPRETER],
        "user": f"{NOBODY}:{NOBODY}",
        "environment": {"PYTHONHASHSEED": "0"},
        "labels": {LABEL: owner()},
        "stdin_open": True,
        "host_config": host,
    }


def owner() -> str:
    """This process, as a container names whose it is: host, start of the machine, pid, start of the process."""
    return f"{platform.node()} {_boot_id()} {os.getpid()} {_started(os.getpid())}"


def sweep(api: Any) -> list[str]:
    """Removes the containers of processes of this host that are gone. Returns their names."""
    gone = []
    for found in api.containers(all=True, filters={"label": LABEL}):
        host, boot, pid, started = (*found["Labels"].get(LABEL, "").split(" "), "", "", "", "")[:4]
        if host == platform.node() and (boot != _boot_id() or _started(int(pid)) != started):
            with contextlib.suppress(NotFound):
                api.remove_container(found["Id"], force=True, v=True)
                gone.append(found["Names"][0].lstrip("/"))
    return gone


def _boot_id() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return "-"


def _started(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return "-"


def _boot(way: str, **values: Any) -> bytes:
    program = INSIDE.read_text(encoding="utf-8")
    return json.dumps({"program": program, "way": way, **values}).encode() + b"\n"


def _raw(stream: Any) -> socket.socket:
    found: socket.socket = getattr(stream, "_sock", stream)
    return found


def _received(raw: socket.socket, deadline: float, *, most: int, until: bytes = b"") -> bytes:
    """Standard output out of the engine's stream, to its end, to `until`, or to more than `most`. Raises TimeoutError."""
    payload = pending = b""
    while len(payload) <= most and not (until and until in payload):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        raw.settimeout(left)
        piece = raw.recv(_READ_BYTES)
        if not piece:
            break
        pending += piece
        while len(pending) >= 8 and len(pending) >= 8 + (size := int.from_bytes(pending[4:8], "big")):
            payload += pending[8 : 8 + size] if pending[0] == 1 else b""
            pending = pending[8 + size :]
    return payload
