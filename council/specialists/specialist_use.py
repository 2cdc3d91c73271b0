"""The end of a use, in a turn or after a plan: the code of the specialist in the cage, and its output in words."""

from __future__ import annotations

from functools import partial
from typing import Any

from council.engine.records import Part
from council.engine.runs import Run
from council.ids import readable_json, sha256_hex
from council.safety.untrusted import plain_line
from council.specialists.specialist_registry import Specialist
from council.specialists.suites import CaseTrial
from council.specialists.training import open_cage, run_code
from council.systems import Core
from council.turns.guarding import Guard, withheld

_VALUE_CHARS = 2_000


async def code_output(
    core: Core, run: Run, step: str, asker: str, one: Specialist, input: dict[str, Any], replies: dict[str, Any]
) -> CaseTrial:
    """The output of its code, as the step of a run. `replies` are by the names of its requests. Raises NoCage."""

    async def caged() -> CaseTrial:
        refuse = partial(core.audit.refuse, "sandbox_refused", asker)
        async with open_cage(core.settings, refuse) as sandbox:
            return await run_code(sandbox, one.spec, input, replies)

    asked = sha256_hex(readable_json([one.id, one.version, input, replies]))
    return await run.step(step, caged, type=CaseTrial, request=asked, part=Part("code", one.role.upper()))


def told_output(trial: CaseTrial, guard: Guard) -> tuple[list[str], str]:
    """The output field by field, and the reason why it is not told, empty where it is."""
    if trial.error:
        return [], f"its output cannot be used: {trial.error}"
    shown = {name: value if isinstance(value, str) else readable_json(value) for name, value in trial.output.items()}
    lines = [f"{name}: {plain_line(value, _VALUE_CHARS)}" for name, value in shown.items()]
    verdict = guard.check("decision", "\n".join(lines))
    return ([], f"its answer was {withheld(verdict)}") if verdict.blocks else (lines, "")
