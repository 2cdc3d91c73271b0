"""The policy of running foreign code, whatever keeps it apart: what is refused, in which order, how many at once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, Literal, Protocol

from council.ids import canonical_json, sha256_hex
from council.sandbox.job import MAX_ARGUMENT_BYTES, MAX_CODE_BYTES, Job, Level, Result

if TYPE_CHECKING:
    from council.settings import Settings

Kind = Literal["zygote", "docker"]


class Backend(Protocol):
    """A way to keep foreign code apart. `run` raises no error of a job."""

    name: str
    level: Level

    async def run(self, job: Job) -> Result: ...

    async def aclose(self) -> None: ...


class Sandbox:
    """Runs jobs in the order in which they come, at most `workers` at once. Nothing starts before the first job.

    One function stands for the sources' `execute_agent_code`, `execute_mechanism_code`, `create_sandbox`, `execute_test`
    and `cleanup_sandbox`.
    """

    def __init__(self, backend: Backend, *, workers: int, refuse: Callable[[Mapping[str, Any]], None]) -> None:
        """`refuse` records a refusal; it may block."""
        self._backend = backend
        self._turn = asyncio.Semaphore(workers)
        self._refuse = refuse

    async def __aenter__(self) -> Sandbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def run(self, job: Job) -> Result:
        """Raises StorageFailed when a refusal cannot be recorded."""
        if flaw := _flaw_in(job):
            result = Result("refused", self._backend.level, error=flaw)
        else:
            async with self._turn:
                result = await self._backend.run(job)
        if result.status == "refused":
            detail = {
                "reason": result.error,
                "backend": self._backend.name,
                "level": result.level.name,
                "code_sha256": sha256_hex(job.code.encode("utf-8", "surrogatepass")),
            }
            await asyncio.to_thread(self._refuse, detail)
        return result

    async def aclose(self) -> None:
        """Ends every process and container of this sandbox, and with them the jobs that still run."""
        await self._backend.aclose()


def open_sandbox(kind: Kind, settings: Settings, refuse: Callable[[Mapping[str, Any]], None]) -> Sandbox:
    """A sandbox as the settings want it. With `docker`, one sandbox is one container at a time, and one suite of cases."""
    backend: Backend
    if kind == "docker":
        from council.sandbox.containers import Containers  # not at the top: the docker SDK

        backend, workers = Containers(settings.sandbox_image), 1
    else:
        from council.sandbox.zygotes import Zygotes  # not at the top: an idle daemon runs no foreign code

        backend = Zygotes(bubblewrap=settings.sandbox_bubblewrap == "auto", weak=settings.allow_weak_sandbox)
        workers = settings.sandbox_workers or os.cpu_count() or 1
    return Sandbox(backend, workers=workers, refuse=refuse)


def _flaw_in(job: Job) -> str:
    try:
        code, argument = len(job.code.encode()), len(canonical_json(job.argument))
    except UnicodeEncodeError:
        return "The code or its argument is not valid Unicode"
    except (TypeError, ValueError) as error:
        return f"The argument is not JSON: {error}"
    except RecursionError:
        return "The argument is nested too deeply"
    if job.limits and not min(astuple(job.limits)) > 0:
        return "A limit is not above zero"
    if code > MAX_CODE_BYTES:
        return f"The code has {code:,} bytes, and may have {MAX_CODE_BYTES:,}"
    if argument > MAX_ARGUMENT_BYTES:
        return f"The argument has {argument:,} bytes, and may have {MAX_ARGUMENT_BYTES:,}"
    return ""
