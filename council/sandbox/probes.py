"""Tells what this machine can keep apart, by running programs that try to get out."""

from __future__ import annotations

import asyncio
import platform
import shutil
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from council.sandbox.cage import Kind, open_sandbox
from council.sandbox.job import Job, Level, Result
from council.sandbox.system_calls import ALLOWED, MACHINES, WITHOUT_EXECUTION

if TYPE_CHECKING:
    from council.settings import Settings

SYSTEM_CALLS = 1024  # the newest kernels have about 470
# x86-64: kernels from 6.14 on do not filter these two. Both are harmless, and end the process that calls them.
UNFILTERED = (335, 336)
_ECHO = Job("def echo(value):\n    return value\n", "echo", "still here")
_ALONE = [0, 1, 2, 3]  # the null device three times, and the answer


@dataclass(frozen=True)
class Probe:
    """The worth of one kind of sandbox on this machine. `level`: what it reached; None when it does not work."""

    name: str
    level: Level | None
    message: str
    fix: str = ""


async def probe_all(settings: Settings) -> list[Probe]:
    """Tries every kind of sandbox, weakest first."""
    return [await probe_zygote(settings), *await probe_docker(settings)]


async def probe_zygote(settings: Settings) -> Probe:
    """Lets a program try every forbidden system call in the cage of a zygote, and never without the filter."""
    result = await _result_of("zygote", settings.model_copy(update={"allow_weak_sandbox": False}), sweep_job())
    if result.status == "refused" and settings.allow_weak_sandbox:
        weak = await _result_of("zygote", settings, _ECHO)
        if weak.status == "ok":
            return Probe("zygote", weak.level, "no system call filter, which allow_weak_sandbox allows")
    if result.status != "ok":
        return _failed("zygote", result)
    found = result.value
    if found["passed"] or found["executable_memory"] or found["descriptors"] != _ALONE or found["environment"]:
        return Probe("zygote", None, f"the filter has holes here: {found}", "report this machine and this line")
    message = f"{found['tried']} system calls were tried, and all refused"
    if settings.sandbox_bubblewrap == "auto" and shutil.which("bwrap"):
        return Probe("zygote", result.level, f"{message}; inside bubblewrap")
    fix = "apt install bubblewrap adds namespaces" if settings.sandbox_bubblewrap == "auto" else ""
    return Probe("zygote", result.level, f"{message}; without bubblewrap", fix)


async def probe_docker(settings: Settings) -> list[Probe]:
    """Starts a container, which reads its own limits back, and runs a job in it. gVisor is named where it is."""
    result = await _result_of("docker", settings, _ECHO)
    if result.status != "ok":
        return [_failed("docker", result)]
    from council.sandbox.containers import engine, found_image  # not at the top: the docker SDK

    api = await asyncio.to_thread(engine)
    try:
        about = await asyncio.to_thread(api.info)
        image = await asyncio.to_thread(found_image, api, settings.sandbox_image)
    finally:
        api.close()
    message = f"engine {about['ServerVersion']}, image {image}; the container has the limits that were asked for"
    probes = [Probe("docker", result.level, message)]
    if "runsc" in about.get("Runtimes", {}):
        probes.append(Probe("gvisor", Level.L4, "the engine has it; Council does not use it by itself"))
    return probes


def sweep_job() -> Job:
    """The program that tries every system call which this machine's table does not allow."""
    machine = platform.machine()
    column = MACHINES[machine][0] if machine in MACHINES else 0
    allowed = [numbers[column] for numbers in (*ALLOWED.values(), *WITHOUT_EXECUTION.values())]
    left_out = sorted({*allowed, *(UNFILTERED if machine == "x86_64" else ())})
    code = resources.files(__package__).joinpath("sweep.py").read_text(encoding="utf-8")
    return Job(code, "sweep", {"numbers": SYSTEM_CALLS, "left_out": left_out})


async def _result_of(kind: Kind, settings: Settings, job: Job) -> Result:
    async with open_sandbox(kind, settings, lambda detail: None) as sandbox:
        return await sandbox.run(job)


def _failed(name: str, result: Result) -> Probe:
    message, _, fix = result.error.partition(" Fix: ")
    return Probe(name, None, message if result.status == "refused" else f"{result.status}: {message}", fix)
