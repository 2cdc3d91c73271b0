"""What may become a run: what admission says of a command before anything of it begins."""

from __future__ import annotations

from council.app.reading import seeds_folder
from council.app.safekeeping import build_memory
from council.commands.models import (
    MIN_FORGOTTEN_CHARS,
    DeliberateCommand,
    ForgetCommand,
    MemoryCommand,
    RunCommand,
    canonical_hash,
    dump,
)
from council.deliberation.admission import admit_deliberation
from council.deliberation.memory_change import admit_memory_change
from council.engine.ledger import Ledger
from council.engine.receipts import Receipts
from council.engine.runs import Admission
from council.errors import CommandInvalid
from council.safety.untrusted import clean
from council.settings import Home, Settings
from council.storage.paths import OUTPUT_DENIED, ConfinedRoot, PathRules
from council.storage.reader import Looking


def admission_of(home: Home, store: Looking, settings: Settings, command: RunCommand) -> Admission:
    """What admission would say of a command, with no model and no run. Raises CommandInvalid or PathRefused."""
    if command.id is not None:
        unfinished = Ledger(store).unfinished()
        Receipts(store).answering(command.id, canonical_hash(command), unfinished.__contains__)
    seeds = seeds_folder(home, settings)
    match command:
        case DeliberateCommand():
            with ConfinedRoot(home.root) as root:
                return admit_deliberation(command, root, PathRules(deny=OUTPUT_DENIED), home.personas, seeds)
        case MemoryCommand():
            return admit_memory_change(command, build_memory(home, store), home.personas, seeds)
        case ForgetCommand():
            return admit_forget(command, store)


def admit_forget(command: ForgetCommand, store: Looking) -> Admission:
    """Record 0 keeps everything of the command but its text and its salt. Raises CommandInvalid for an unknown run."""
    if command.run is not None and not _is_known(store, command.run):
        raise CommandInvalid(
            f"`run` is {command.run!r}, which is not known here.",
            fix="`council status` lists the last runs",
            field="run",
        )
    if command.text is not None and len(clean(command.text).strip()) < MIN_FORGOTTEN_CHARS:
        raise CommandInvalid(
            f"`text` has fewer than {MIN_FORGOTTEN_CHARS} visible characters.",
            fix="give more of the text; invisible and control characters do not count",
            field="text",
        )
    what = [] if command.text is None else ["a text"]
    what += [] if command.run is None else [f"run {command.run}"]
    recorded = {**dump(command), "text": None if command.text is None else "", "salt": None}
    guessable = command.text is not None and command.salt is None
    return Admission(f"Forget {' and '.join(what)}", "", recorded=recorded, keeps_hashes=not guessable)


def _is_known(store: Looking, run_id: str) -> bool:
    return bool(Ledger(store).starting_with(run_id, 1))
