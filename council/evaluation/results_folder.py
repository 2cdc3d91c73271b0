"""The place of an evaluation: `FOLDER/results/<id>/`, with a home of its own for its runs.

    council.db       what was answered: a store of the evaluation's own (record 0 of its run holds the setup)
    calls.jsonl      what every call cost
    traffic.jsonl    what the calls that are no part of a run asked, and what was answered
    home/            a home: personas as they were, the documents, the real runs; `council --home … explain` looks inside

Labels lie nowhere in it: the models of an evaluation could read them there. Here alone an evaluation begins, or goes on with,
the journal that it writes; all else of this room reads records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from council.engine.journal import Journal, admit, load_journal
from council.engine.records import EPOCH, FileIdentity, RunHeader
from council.errors import CouncilError, DaemonRunning, UsageError
from council.evaluation.council_arm import DOCUMENTS
from council.evaluation.questions import Question
from council.ids import Clock, canonical_json, new_run_id, sha256_hex, timestamp
from council.settings.home import Home, init_home
from council.storage.files import FileLock, as_storage_failed, write_atomic
from council.storage.paths import ConfinedRoot
from council.storage.store import Store
from council.storage.versions import DATABASE_FILE

RESULTS = "results"
_TYPE = "evaluation"


class NotTheSame(CouncilError):
    """An evaluation cannot continue: what it asks, or whom, is another thing now."""

    code = "evaluation_changed"
    http_status = 409


@dataclass(frozen=True)
class Results:
    """One evaluation on the disk."""

    folder: Path
    store: Store
    journal: Journal

    @property
    def id(self) -> str:
        return self.journal.header.run_id

    @property
    def home(self) -> Home:
        return Home((self.folder / "home").resolve())

    @property
    def calls(self) -> Path:
        return self.folder / "calls.jsonl"

    @property
    def traffic(self) -> Path:
        return self.folder / "traffic.jsonl"


def begin(folder: Path, setup: Mapping[str, Any], personas: Path, clock: Clock) -> Results:
    """A new evaluation of `folder` with an empty home. Raises StorageFailed and ConfigError."""
    now = clock.now()
    run_id = new_run_id(now)
    place = folder / RESULTS / run_id
    with as_storage_failed(f"Cannot make {place}"):
        place.mkdir(parents=True, mode=0o700)
        ignore = folder / RESULTS / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")  # whole prompts and answers: nobody's commit by accident
    init_home(place / "home", personas_from=personas)
    setup = dict(setup)
    header = RunHeader(
        run_id=run_id,
        epoch=EPOCH,
        created=timestamp(now),
        lane="",
        type=_TYPE,
        command=setup,
        command_hash=sha256_hex(canonical_json(setup)),
        file=FileIdentity(folder.name, 0, 0, ""),
        secret="",
        title=f"Evaluation of {folder.name}",
    )
    store = Store.open(place)
    run = store.write_now(lambda tx: admit(tx, header))
    return Results(place, store, Journal(header, run, store))


def resume(folder: Path, setup: Mapping[str, Any]) -> Results:
    """The last evaluation of `folder`; what is recorded of it is on the disk. Raises UsageError when there is none,
    NotTheSame when it had another setup, DaemonRunning when it is under way, JournalDamaged, StorageFailed."""
    found = sorted((folder / RESULTS).glob(f"*/{DATABASE_FILE}"))
    if not found:
        raise UsageError(f"{folder} has no evaluation to continue.", fix="leave --resume out")
    place = found[-1].parent
    lock = Home((place / "home").resolve()).lock_file
    holder = FileLock.holder(lock)
    if holder is not None:
        fix = "wait for its end"
        raise DaemonRunning(f"the evaluation {place.name} is under way (process {holder.get('pid', '?')}).", fix=fix)
    store = Store.open(place)
    results = Results(place, store, store.read(lambda tx: load_journal(tx, place.name, store)))
    before = results.journal.header.command
    changed = [key for key in sorted({*before, *setup}) if before.get(key) != setup.get(key)]
    if changed:
        told = "; ".join(f"{key} was {_shown(before.get(key))} and is {_shown(setup.get(key))}" for key in changed)
        fix = "put it back, or start again without --resume"
        raise NotTheSame(f"the evaluation {results.id} cannot continue: {told}.", fix=fix)
    return results


def _shown(value: object) -> str:
    return str(value)[:100]


def require_same_questions(results: Results, questions: Sequence[Question]) -> None:
    """Raises NotTheSame for a question that was answered when it was another one. Labels may have changed."""
    asked = {step.name: step.request for step in results.journal.steps()}
    changed = [each.id for each in questions if asked.get(f"{each.id}/council", each.asked) != each.asked]
    if changed:
        why = f"{', '.join(changed[:5])} had other content when answered"
        fix = "give a changed question another id, or start again without --resume"
        raise NotTheSame(f"the evaluation {results.id} cannot continue: {why}.", fix=fix)


def bring_documents(results: Results, folder: ConfinedRoot, questions: Sequence[Question], *, max_bytes: int) -> None:
    """Copies the questions' documents into the evaluation's home. Raises NotTheSame, PathRefused, StorageFailed."""
    for path in sorted({path for question in questions for path in question.documents}):
        data = folder.read(path, max_bytes=max_bytes).data
        copy = results.home.root / DOCUMENTS / path
        with as_storage_failed(f"Cannot copy {path}"):
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                write_atomic(copy, data, sync=False)
            elif copy.read_bytes() != data:
                message = f"the evaluation {results.id} cannot continue: {path} changed since it began."
                fix = "put it back, or start again without --resume"
                raise NotTheSame(message, fix=fix)
