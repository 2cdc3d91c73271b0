"""An ended run goes on where its receipt and its journal allow it; else the reason is said."""

from __future__ import annotations

import difflib

from council.commands.models import ResumeCommand, RetryCommand
from council.engine.ledger import Ledger
from council.engine.receipts import Receipt, Receipts
from council.engine.records import FORGOTTEN
from council.errors import CommandInvalid, Drift
from council.storage.reader import Looking

_SHOWN_STEPS = 40


def require_reopenable(store: Looking, command: ResumeCommand | RetryCommand) -> Receipt:
    """The receipt of the ended run, if it can go on as `command` asks. Raises CommandInvalid with the reason when it
    cannot, JournalDamaged or StorageFailed when its journal cannot be read."""
    run_id, ledger = command.run, Ledger(store)
    receipt = Receipts(store).read(run_id)
    if receipt is None:
        raise not_resumable(run_id, "is not known here", "`council status` lists the last runs")
    if not ledger.has_journal(run_id):
        fix = "drop its command again to run it anew" if receipt.lane else "`council status` lists the last runs"
        raise not_resumable(run_id, why_no_journal(receipt), fix)
    if isinstance(command, ResumeCommand):
        if receipt.status not in ("failed", "cancelled"):
            raise not_resumable(run_id, f"ended {receipt.status}", f"`council retry {run_id}` does its work again")
        if receipt.error is not None and receipt.error.code == Drift.code and not command.accept_drift:
            raise not_resumable(run_id, "was ended by drift", "say accept_drift: true (--accept-drift) to go on")
    elif command.from_ and not (journal := ledger.journal(run_id)).recorded(command.from_):
        names = [step.name for step in journal.steps()]
        near = difflib.get_close_matches(command.from_, names, n=1)
        fix = f"its steps: {', '.join(names[:_SHOWN_STEPS])}{', …' if len(names) > _SHOWN_STEPS else ''}"
        fix = f"did you mean {near[0]!r}? {fix}" if near else fix
        raise CommandInvalid(f"the run {run_id!r} recorded no step {command.from_!r}.", fix=fix, field="from")
    return receipt


def why_no_journal(receipt: Receipt) -> str:
    """For "the run …": what became of a journal that is not there."""
    if receipt.pruned is not None:
        return f"was pruned on {receipt.pruned.at} by {receipt.pruned.by}: its journal is gone"
    if receipt.command_sha256 == FORGOTTEN:
        return "has no journal any more: it was forgotten"
    if not receipt.lane:
        return f"is no run: it is the receipt of a {receipt.type} command"
    return "has no journal here: it came from elsewhere without one"


def not_resumable(run_id: str, reason: str, fix: str) -> CommandInvalid:
    return CommandInvalid(f"the run {run_id!r} {reason}.", fix=fix, field="run")
