"""Examinations: a specialist before its whole suite, and the same model without it. `train_specialist` is one of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Any

import msgspec

from council.engine.records import Part
from council.ids import STEWARD, epoch_ms
from council.sandbox.cage import Sandbox
from council.specialists import specialist_registry as registry
from council.specialists.commands import TrainSpecialistCommand
from council.specialists.creation_gates import refuse_untrained
from council.specialists.lifecycle import examinable
from council.specialists.specialist_registry import SpecialistVersion
from council.specialists.specialist_run import SpecialistWork
from council.specialists.specialist_spec import SpecialistSpec
from council.specialists.suites import CaseResult, CaseTrial, TestSuite, TrainingGain, compared
from council.specialists.training import ask_specialist, baseline_system, cage_of, in_training, specialist_system, train
from council.storage.store import Tx
from council.systems import Core
from council.turns.bench import Bench
from council.turns.equipment import Speaker

MAX_ROLE_CHARS = 32


async def examined(
    core: Core, bench: Bench, model_of: Speaker, spec: SpecialistSpec, suite: TestSuite
) -> tuple[CaseResult, ...]:
    """The results of the whole suite; a specialist without code speaks by the models of `model_of`. Raises NoCage."""
    role = spec.role.upper()[:MAX_ROLE_CHARS]
    speaker = msgspec.structs.replace(model_of, role=role, system=specialist_system(spec))
    has_no_code = spec.kind == "prompt" or bench.run.is_closed
    cage: AbstractAsyncContextManager[Sandbox | None] = nullcontext() if has_no_code else cage_of(core, STEWARD.id)
    async with cage as sandbox:
        return await train("training", suite, in_training(spec, sandbox, bench, speaker))


async def worth(
    bench: Bench, model_of: Speaker, task: str, spec: SpecialistSpec, suite: TestSuite, results: tuple[CaseResult, ...]
) -> TrainingGain:
    """The specialist compared with the same model without it, in the hidden cases alone."""
    speaker = msgspec.structs.replace(model_of, role="MODEL_ALONE", system=baseline_system(task))
    mocks = {request.name: request.mock_reply for request in spec.requests}

    async def alone(step: str, input: Mapping[str, Any]) -> CaseTrial:
        return await ask_specialist(bench, step, speaker, spec, input, mocks)

    without = await train("alone", TestSuite((), suite.hidden), alone)
    hidden = results[len(suite.visible) :]
    return compared([one.confidence for one in hidden], [one.confidence for one in without])


class ExaminationRun(SpecialistWork):
    """One `train_specialist` command being worked on. Its results are the specialist's figures from then on."""

    command = TrainSpecialistCommand
    _command: TrainSpecialistCommand

    async def _work(self, bench: Bench, *speakers: Speaker) -> None:
        run, state, role = self._run, self.state, self._command.role
        principal = self._core.principal_of(run)

        def present_in(tx: Tx) -> SpecialistVersion:
            found = examinable(tx, role, principal)
            known = registry.versions_in(tx.execute, found.id)
            return next(one for one in known if one.version == found.version)

        look = partial(self._core.store.read, present_in)
        present = await run.look("specialist", look, type=SpecialistVersion, part=Part("agent"))
        state.spec, state.suite = present.spec, present.suite
        await self._require_healthy(bench, present.spec)
        state.results = results = await examined(self._core, bench, speakers[0], present.spec, present.suite)
        now_ms = epoch_ms(self._core.clock)

        def keep(tx: Tx) -> bool:
            registry.record_training(
                tx, present.agent_id, present.version, results, user=self._user, run_id=run.id, model=state.model,
                now_ms=now_ms,
            )  # fmt: skip
            return True

        await run.effect("examined", keep, type=bool)
        fix = f"`council specialists create … --changes {present.spec.role}` has a new version designed"
        refuse_untrained(present.suite, results, fix)
        state.outcome = f"The specialist {present.spec.role}, version {present.version}, has passed its suite."
