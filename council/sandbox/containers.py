"""Level L3: one container for a suite of jobs, and one exec in it for each, through the docker SDK.

Source: Kingdom, section 6. To its sketch come a deadline that kills, equal limits of memory and swap, a writable `/tmp`, and no
log. Containers end with the process that started them: the engine closes the input of their first process when our connection
closes. Images are never pulled.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import secrets
import socket
import threading
import time
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound

from council.sandbox.answers import JobEnd, lost, result_of
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
_SIGNALLED = 128  # what the engine adds to a signal's number in an exit code
_PAUSE_S = 0.005
_READ_BYTES = 65_536
_REST_BYTES = 64 << 20  # of a flood, on its way when it was ended
_FIX_ENGINE = "apt install docker.io and start it, let this user reach it, or set DOCKER_HOST"


class Containers:
    """One sandbox of containers. A container in which a job left a process or a file is replaced for the next job."""

    name = "docker"
    level = Level.L3

    def __init__(self, image: str | None = None) -> None:
        """`image`: unset, the one that was built here, else the usual one, if it is there."""
        self._image = image
        self._api: Any = None
        self._suite: Suite | None = None
        self._changing = threading.Lock()  # a caller that no longer waits leaves a start behind, which goes on

    async def run(self, job: Job) -> Result:
        try:
            suite = await asyncio.to_thread(self._lend)
        except NoCage as error:
            return Result("refused", self.level, error=str(error))
        limits = (job.limits or HARD_LIMITS).within(HARD_LIMITS)
        working = asyncio.ensure_future(asyncio.to_thread(suite.run, job, limits))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            await asyncio.to_thread(suite.end)
            await asyncio.wait([working])
            raise

    def _lend(self) -> Suite:
        """A container that is fit for the next job. Raises NoCage."""
        with self._changing:
            try:
                if self._api is None:
                    self._api = engine()
                    sweep(self._api)
                if self._suite is None or self._suite.ended:
                    self._suite = Suite(self._api, found_image(self._api, self._image))
                return self._suite
            except (DockerException, OSError, ValueError) as error:
                raise NoCage(f"The container could not be set up: {error}.", fix="council sandbox check") from None

    async def aclose(self) -> None:
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        with self._changing:
            if self._suite is not None:
                self._suite.end()
            if self._api is not None:
                self._api.close()
            self._suite = self._api = None


def engine() -> Any:
    """The engine's interface. Raises NoCage."""
    try:
        return docker.from_env().api
    except DockerException as error:
        where = os.environ.get("DOCKER_HOST") or "its usual socket"
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
    """One container. It ends when its connection closes, so that is held open."""

    def __init__(self, api: Any, image: str) -> None:
        """Starts the container. Raises DockerException, OSError, NoCage."""
        self._api = api
        self.ended = False
        self._id = ""
        self._used = {"cpu_ns": 0, "killed_for_memory": 0}
        self._held: Any = None
        try:
            name = f"specialist-sandbox-{secrets.token_hex(6)}"
            created = api.create_container(**container_settings(api, image, name))
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
        """Runs one job in its own process. Ends the container when the job left anything behind in it."""
        began = time.monotonic()
        data, timed_out = b"", False
        words = {"code": job.code, "entry": job.entry, "argument": job.argument, "seed": job.seed}
        lower = {"CPU": limits.cpu_s}
        if limits.memory_bytes < HARD_LIMITS.memory_bytes:  # else the container's own limit counts what is really used
            lower["AS"] = limits.memory_bytes
        try:
            execution = self._api.exec_create(self._id, ["python", *INTERPRETER], stdin=True, stderr=False)["Id"]
            with contextlib.closing(self._api.exec_start(execution, socket=True)) as stream:
                raw = _raw(stream)
                try:
                    raw.settimeout(limits.wall_s)
                    raw.sendall(_boot("once", harness=job.harness, job=words, limits=lower))
                    data = _received(raw, began + limits.wall_s, most=limits.output_bytes)
                except TimeoutError:
                    timed_out = True
                first = _raw(self._held)  # which ends all others, and says what they used
                first.settimeout(_END_S)
                first.sendall(b"\n")
                told = json.loads(_received(first, time.monotonic() + _END_S, most=_READ_BYTES, until=b"\n"))
                used = {name: int(value) for name, value in told.items()}
                # NOTE: a stream that is closed while it is full holds up the engine for 20 s when the container is removed.
                _received(raw, time.monotonic() + _END_S, most=_REST_BYTES)
            code = self._exit_code(execution)
        except (DockerException, OSError, ValueError):
            self.end()
            return lost(Level.L3, time.monotonic() - began)
        ending = JobEnd(
            code if code < _SIGNALLED else _SIGNALLED - code, (used["cpu_ns"] - self._used["cpu_ns"]) / 1e9,
            time.monotonic() - began, used["peak_bytes"], timed_out,
            used["killed_for_memory"] > self._used["killed_for_memory"],
        )  # fmt: skip
        self._used = used
        if used["left"]:
            self.end()
        return result_of(data, ending, Level.L3, limits)

    def _exit_code(self, execution: str) -> int:
        """Waits for it: the engine may hear of an end after we do. Raises DockerException, OSError."""
        deadline = time.monotonic() + _END_S
        while (code := self._api.exec_inspect(execution)["ExitCode"]) is None:
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(_PAUSE_S)
        return int(code)

    def end(self) -> None:
        """Kills every process of the container, and removes it."""
        self.ended = True
        if self._id:
            with contextlib.suppress(DockerException, OSError):  # it is being removed already, or the engine is gone
                self._api.remove_container(self._id, force=True, v=True)
        if self._held is not None:
            self._held.close()


def container_settings(api: Any, image: str, name: str) -> dict[str, Any]:
    """The settings of a container: everything that keeps foreign code in it."""
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
        "use_config_proxy": False,  # a proxy's address can hold a password
        "labels": {LABEL: owner()},
        "stdin_open": True,
        "host_config": host,
    }


def owner() -> str:
    """The label by which a container names the process that started it: host, boot of the machine, pid, start."""
    return f"{platform.node()} {_boot_id()} {os.getpid()} {_started(os.getpid())}"


def sweep(api: Any) -> list[str]:
    """Removes containers whose process, on this host, is gone. Returns their names."""
    gone = []
    for found in api.containers(all=True, filters={"label": LABEL}):
        host, boot, pid, started = (*found["Labels"].get(LABEL, "").split(" "), "", "", "", "")[:4]
        if host == platform.node() and (boot != _boot_id() or _started(int(pid)) != started):
            with contextlib.suppress(APIError):  # it is gone, or is being removed
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
    """Standard output in the engine's stream: to its end, to `until`, or to more than `most`. Raises TimeoutError."""
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
