"""A job for the cage, its result, and the five levels of isolation that a result names.

Sources: Leviathan phase 2, component 1 (`execute_agent_code`), and Kingdom, section 6 (`execute_test`).
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from enum import IntEnum
from typing import Any, Literal

from council.errors import EXIT_REFUSED, CouncilError

MAX_CODE_BYTES = 65_536
MAX_ARGUMENT_BYTES = 1 << 20

Status = Literal["ok", "error", "timeout", "memory", "output_cap", "refused", "sandbox_lost"]


class Level(IntEnum):
    """The strength with which foreign code is kept apart. Below L2 none runs, unless the steward has set `allow_weak_sandbox`."""

    L0 = 0
    L1 = 1
    L2 = 2
    L3 = 3
    L4 = 4


MEANINGS = {
    Level.L0: "in the daemon's own process; never for foreign code",
    Level.L1: "a process of its own with limits and an empty environment",
    Level.L2: "L1 with a system call filter that cannot be taken off",
    Level.L3: "a container without network, capabilities or a writable root",
    Level.L4: "a container whose kernel is gVisor's",
}


@dataclass(frozen=True)
class Limits:
    """The most that one job may use. `output_bytes`: the length of its answer."""

    wall_s: float = 5.0
    cpu_s: int = 2
    memory_bytes: int = 256 << 20
    output_bytes: int = 65_536

    def within(self, hard: Limits) -> Limits:
        """The lower of both, value by value."""
        return Limits(*map(min, astuple(self), astuple(hard)))


PLAIN = "def call(function, argument):\n    return function(argument)\n"


@dataclass(frozen=True)
class Job:
    """Foreign Python code, the function in it to call, and that function's argument, which is JSON.

    `harness` is the trusted half inside the cage: source code that needs the standard library alone. It defines
    `call(function, argument)`, which calls the function and returns the answer. `limits` can only lower those of the cage.
    `random` is seeded with `seed` before the code starts.
    """

    code: str
    entry: str
    argument: Any = None
    harness: str = field(default=PLAIN, repr=False)
    limits: Limits | None = None
    seed: int = 0


@dataclass(frozen=True)
class Result:
    """The outcome of a job.

    `value` comes from foreign code: it is JSON, and the caller checks what it means. The status `refused` means that the
    code was not started; `sandbox_lost` means that it was, and that nobody knows how far it came. In a container,
    `peak_memory_bytes` is the peak of all its jobs so far.
    """

    status: Status
    level: Level
    value: Any = None
    error: str = ""
    traceback: str = ""
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_memory_bytes: int = 0


class NoCage(CouncilError):
    """The cage cannot be set up. No foreign code was started."""

    code = "sandbox_refused"
    exit_code = EXIT_REFUSED
    http_status = 503
