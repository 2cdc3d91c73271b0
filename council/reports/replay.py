"""The artifact of an ended run, rendered again from its journal: byte for byte, with no model and no tool called."""

from __future__ import annotations

from collections.abc import Mapping

from council.engine.journal import Exhausted, Journal
from council.engine.outputs import PlacedOutput
from council.engine.records import Committed
from council.engine.runs import Finish, Handler, Run
from council.errors import CouncilError, RunNotFound
from council.events import Events


def _placed(journal: Journal, committed: Committed) -> PlacedOutput:
    return PlacedOutput(journal.header.output_path, committed.files[0].final, committed.displaced)


async def replay(journal: Journal, handlers: Mapping[str, Handler]) -> bytes:
    """Raises RunNotFound for a run that has not ended or left no artifact; JournalDamaged for a blob that is gone."""
    committed = journal.committed
    run_id = journal.header.run_id
    if committed is None or not journal.recorded("finish"):
        raise RunNotFound(f"run {run_id} has not ended.", fix="`council status` shows how far it is")
    if not journal.header.output_path or not committed.files:
        raise RunNotFound(f"run {run_id} left no artifact.", fix="`council show` prints its receipt")
    journal.closed = True
    run = Run(journal, Events(), _placed(journal, committed))
    execution = handlers[journal.header.type].begin(run)
    finish = journal.result("finish", Finish)
    try:
        await execution.work()
    except Exhausted:
        pass  # the run ended before this step: the rest is what it left
    except CouncilError as error:
        if finish.error is None or finish.error.code != error.code:
            raise
    outcome = execution.conclude(finish)
    assert outcome.artifact is not None
    return outcome.artifact
