"""The records of a run's journal: typed, one per row.

Record 0 (`RunHeader`) says what was asked; every `StepResult` is the result of one unit of work; `Commit` is the point
of no return. Times are RFC 3339 in UTC.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

FORGOTTEN = "forgotten"  # stands where a hash stood from which a text that was forgotten could be guessed
NOT_KEPT = "not_kept"  # stands where a hash of words that could be guessed from it was never kept
NO_HASHES = (NOT_KEPT, FORGOTTEN)
RESTORE = "`council doctor` looks at the whole database; `council restore` takes a copy back"  # a record cannot be read
EPOCH = 3  # raised when the meaning of recorded steps changes; a journal of another epoch is not resumed

# `skipped` is no run's: it stands in the receipt of a scheduled occurrence that never became one.
RunStatus = Literal["queued", "running", "waiting", "succeeded", "degraded", "failed", "cancelled", "skipped"]

DECIDED: frozenset[RunStatus] = frozenset({"succeeded", "degraded"})  # the ends with a decision

# What a run does while it is parked, by the reason; the empty one stands for any other.
WAITS = {
    "answer": "waits for a person's answer",
    "provider": "waits for the provider",
    "network": "waits for the network",
    "storage": "waits for the disk or the database",
    "budget": "waits for the budget of another day",
    "keys": "waits for the key of this home",
    "credential": "waits for a credential",
    "index": "waits for the search index",
    "restart": "waits for the next start of the council",
    "": "waits",
}


def waited_for(reason: str) -> str:
    """` for the network`: what follows "waits", "waiting" or "waited"."""
    return WAITS.get(reason, WAITS[""]).removeprefix("waits")


class FileIdentity(msgspec.Struct, frozen=True):
    """A command file as it was admitted: the same three values mean the same drop."""

    name: str
    inode: int
    mtime_ns: int
    sha256: str

    @property
    def drop(self) -> str:
        """Names this one drop: the same command dropped again has another."""
        return f"{self.inode}.{self.mtime_ns}.{self.sha256}"


class RunHeader(msgspec.Struct, frozen=True, tag="run", tag_field="t"):
    """Record 0. `secret` (hex, 32 bytes) feeds every random choice of the run. `command_hash` ignores spelling and id.
    `order` grows with each admission: it is the order in a lane, after a restart too. `priority` chooses between lanes. `day` is
    that of its admission in the home's zone (2026-11-20), the one clock that a prompt holds. `model` is the spelling of the
    daemon's model at the admission. Both are empty where an older version did not note them."""

    run_id: str
    epoch: int
    created: str
    lane: str
    type: str
    command: dict[str, Any]
    command_hash: str
    file: FileIdentity
    secret: str
    output_path: str = ""
    title: str = ""
    order: int = 0
    priority: int = 0
    day: str = ""
    model: str = ""

    @property
    def admitted_ms(self) -> int:
        """The time of its admission, in milliseconds since the epoch. It is exact to the second only where `order` does not
        say, as after a clock was set back."""
        second_ms = int(datetime.fromisoformat(self.created).timestamp()) * 1000
        ordered_ms = self.order // 1_000_000
        return ordered_ms if second_ms <= ordered_ms < second_ms + 1000 else second_ms


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part that a step has in its run: its `kind` in a word of its system, whose it is, and in which round. `kind` empty:
    it is the run's own, or an older version recorded it."""

    kind: str = ""
    role: str = ""
    round: int = 0


OWN = Part()


class StepStart(msgspec.Struct, frozen=True, tag="begin", tag_field="t", omit_defaults=True):
    """A step that begins, written without a sync. It tells after a kill that a call may have been in flight. `at` (here and
    below): milliseconds since the epoch, 0 where an older version did not note it."""

    name: str
    at: int = 0
    part: Part = OWN


class StepResult(msgspec.Struct, frozen=True, tag="done", tag_field="t", omit_defaults=True):
    """`request` is the hash of what was asked, empty when there was nothing to hash (or it was forgotten)."""

    name: str
    request: str
    out: msgspec.Raw
    at: int = 0


class Retry(msgspec.Struct, frozen=True, tag="retry", tag_field="t"):
    """A row without a sync: try number `attempt` (from 1) of the call in `step` failed as `kind`, and another one follows after
    `wait_s`. Counts for nothing; it is there for who asks later what took so long."""

    step: str
    at: int
    attempt: int
    wait_s: float
    kind: str
    error: str


class Waiting(msgspec.Struct, frozen=True, tag="wait", tag_field="t"):
    reason: str
    since: str
    seconds: float
    error: str


class CommitFile(msgspec.Struct, frozen=True):
    """One file of a commit, as paths relative to the home: `staged` is renamed to `final`.

    A `final` that exists is replaced only while its SHA-256 stands in `replaces` (or already equals `sha256`). `replaces` None:
    the file is the run's own business, and always replaced. Else the new file goes to `otherwise`. `is_copy`: another file of
    the commit holds its words, so it is not synced. A power cut may take it, and who owns it makes it anew.
    """

    staged: str
    final: str
    sha256: str
    replaces: tuple[str, ...] | None = None
    otherwise: str = ""
    is_copy: bool = False


class Commit(msgspec.Struct, frozen=True, tag="commit", tag_field="t"):
    """`displaced`: why the artifact is not where it was wanted, as its page says."""

    status: RunStatus
    files: tuple[CommitFile, ...]
    receipt: msgspec.Raw
    displaced: str = ""


class Continuation(msgspec.Struct, frozen=True, tag="reopen", tag_field="t"):
    """An ended run goes on. What was recorded of its end no longer counts; what was recorded of its work does. With
    `retry_from` set (a retry), that step and all recorded after it are done again. `by` names the drop that asked for it.
    `model` is the spelling of the model that was named for it; empty: the run keeps its own."""

    at: str
    accept_drift: bool
    retry_from: str = ""
    by: str = ""
    model: str = ""


Record = RunHeader | StepStart | StepResult | Retry | Waiting | Commit | Continuation
