"""An ended run that is to go on: the reasons for which it cannot."""

from __future__ import annotations

from council.engine.ledger import Ledger
from council.engine.receipts import Receipt, Receipts
from council.engine.records import FORGOTTEN
from council.errors import CommandInvalid, CouncilSilent, Drift
from council.proposals import nearest
from council.storage.reader import Looking

_SHOWN_STEPS = 40


def require_resumable(store: Looking, run_id: str, *, accept_drift: bool) -> Receipt:
    """The receipt of the ended run, if it can go on. Raises CommandInvalid with the reason when it cannot, StorageFailed."""
    receipt = _with_a_journal(store, run_id)
    if receipt.status not in ("failed", "cancelled"):
        raise not_resumable(run_id, f"has already ended ({receipt.status})", f"`council retry {run_id}` repeats it")
    if receipt.error is not None and receipt.error.code == Drift.code and not accept_drift:
        raise not_resumable(run_id, "was ended by drift", "set accept_drift: true (--accept-drift) to continue")
    if receipt.error is not None and receipt.error.code == CouncilSilent.code:
        raise not_resumable(
            run_id, "failed because its agents did not answer, and a resume asks none of them again", receipt.error.fix
        )
    return receipt


def require_retryable(store: Looking, run_id: str, first: str) -> Receipt:
    """The receipt of the ended run, if its work can be done again from the step `first` on; empty: from its beginning.
    Raises as `require_resumable`, and JournalDamaged."""
    receipt = _with_a_journal(store, run_id)
    journal = Ledger(store).journal(run_id) if first else None
    if journal is None or journal.recorded(first):
        return receipt
    names = [step.name for step in journal.steps()]
    near = nearest(first, names)
    known = f"its steps: {', '.join(names[:_SHOWN_STEPS])}{', …' if len(names) > _SHOWN_STEPS else ''}"
    fix = f"did you mean {near!r}? {known}" if near else known
    raise CommandInvalid(f"the run {run_id!r} recorded no step {first!r}.", fix=fix, field="from")


def _with_a_journal(store: Looking, run_id: str) -> Receipt:
    receipt = Receipts(store).read(run_id)
    if receipt is None:
        raise not_resumable(run_id, "is not known here", "`council runs` lists all runs")
    if receipt.imported:
        raise not_resumable(run_id, "was imported from another home", "drop its command here to run it again")
    if not Ledger(store).has_journal(run_id):
        fix = "drop its command to run it again" if receipt.lane else "`council runs` lists all runs"
        raise not_resumable(run_id, why_no_journal(receipt), fix)
    return receipt


def why_no_journal(receipt: Receipt) -> str:
    """Tells what became of a journal that is not there, as the end of "the run …"."""
    if receipt.pruned is not None:
        return f"was pruned on {receipt.pruned.at} by {receipt.pruned.by}: its journal is gone"
    if receipt.command_sha256 == FORGOTTEN:
        return "has no journal any more: it was forgotten"
    if not receipt.lane:
        return f"is not a run: it is the receipt of a {receipt.type} command"
    return "has no journal here: it came from elsewhere without one"


def not_resumable(run_id: str, reason: str, fix: str) -> CommandInvalid:
    return CommandInvalid(f"the run {run_id!r} {reason}.", fix=fix, field="run")
