"""The work of a run done again over its recorded steps. No model and no tool is called, and its artifact comes out byte for
byte."""

from __future__ import annotations

from collections.abc import Mapping

from council.engine.journal import Journal, JournalEnd
from council.engine.outputs import PlacedOutput
from council.engine.receipts import ErrorRef
from council.engine.runs import Execution, Finish, Handler, Run, Runs
from council.errors import CouncilError, RunNotFound
from council.events import Events


async def replay(journal: Journal, handlers: Mapping[str, Handler]) -> bytes:
    """Raises RunNotFound for a run that has not ended or left no artifact, UnknownType, JournalDamaged for a blob that is
    gone."""
    committed = journal.committed
    run_id = journal.header.run_id
    if committed is None or not journal.recorded("finish"):
        raise RunNotFound(f"run {run_id} has not ended.", fix="`council status` shows how far it is")
    if not journal.header.output_path or not committed.files:
        raise RunNotFound(f"run {run_id} left no artifact.", fix="`council show` prints its receipt")
    execution = Runs(handlers).begin(PastRun(journal))
    finish = journal.result("finish", Finish)
    await work_again(execution, finish.error)
    outcome = execution.conclude(finish)
    assert outcome.artifact is not None
    return outcome.artifact


class PastRun(Run):
    """A run of recorded steps alone. Where its artifact went nothing is looked at and nothing written."""

    def __init__(self, journal: Journal) -> None:
        journal.closed = True
        output = PlacedOutput(journal.header, journal.committed) if journal.header.output_path else None
        super().__init__(journal, Events(), output)


async def work_again(execution: Execution, ended_with: ErrorRef | None) -> None:
    """Does the work of a run over its recorded steps, as far as they go. Raises an error that it did not end with."""
    try:
        await execution.work()
    except JournalEnd:
        pass  # the run ended before this step: the rest is what it left
    except CouncilError as error:
        if ended_with is None or ended_with.code != error.code:
            raise
