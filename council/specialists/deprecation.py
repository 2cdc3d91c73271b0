"""The keeper of specialists, a companion of the daemon. It deprecates one that nobody used for 90 days, and tells its creator
7 days before. It tells the steward and administrators when one is eligible, and promotes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Literal

import msgspec

from council.audit.log import Transaction
from council.audit.trail import Trail
from council.ids import STEWARD, Clock, epoch_ms
from council.specialists import statements as sql
from council.specialists.lifecycle import lacks
from council.specialists.specialist_registry import Specialist, notify, rows_in, specialists
from council.storage.marks import MARKS, SET_MARK
from council.storage.store import Store, Tx

DAY_MS = 86_400_000
IDLE_MS, NOTICE_MS = 90 * DAY_MS, 7 * DAY_MS
_MARK = "specialist/"


class Chore(msgspec.Struct, frozen=True):
    """One thing that is due for a specialist. `mark` is remembered when it is done, so that it is done once."""

    specialist: Specialist
    what: Literal["tell_idle", "deprecate", "tell_eligible"]
    mark: str = ""


def due(every: Sequence[Specialist], marks: Mapping[str, str], now_ms: int) -> list[Chore]:
    """The chores of now. One that was told is deprecated 7 days later at the earliest, also after the daemon was down long. A
    use begins the 90 days anew, and so does a suite that it takes."""
    found = []
    for one in every:
        if one.status != "unverified":
            continue
        if not lacks(one) and marks.get(f"{_MARK}eligible/{one.id}") != str(one.version):
            found.append(Chore(one, "tell_eligible", str(one.version)))
        since = max(one.last_used_at or 0, one.suite_at or 0, one.created_at)
        told_since, _, told_ms = marks.get(f"{_MARK}idle/{one.id}", "").partition(" ")
        if told_since != str(since):
            if now_ms - since >= IDLE_MS - NOTICE_MS:
                found.append(Chore(one, "tell_idle", f"{since} {now_ms}"))
        elif now_ms - since >= IDLE_MS and now_ms - int(told_ms) >= NOTICE_MS:
            found.append(Chore(one, "deprecate"))
    return found


@dataclass(frozen=True)
class SpecialistKeeper:
    """Looks every `look_s` seconds."""

    store: Store
    clock: Clock
    audit: Trail
    look_s: float
    name: str = "specialists"

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(self.look_s)

    async def look(self) -> None:
        """Does all that is due now. Raises StorageFailed."""
        every, marks = await asyncio.to_thread(lambda: (specialists(self.store), self.store.read(_marks)))
        if due(every, marks, epoch_ms(self.clock)):
            self.audit.settle(await self.store.write(self.do))

    def do(self, tx: Tx) -> Transaction:
        """All that is due, with its record and its notifications."""
        done, now_ms = self.audit.join(tx), epoch_ms(self.clock)
        administrators = [STEWARD.id, *(row[0] for row in tx.execute(sql.ADMINISTRATORS).fetchall())]
        for chore in due(rows_in(tx.execute, sql.ALL), _marks(tx), now_ms):
            one = chore.specialist
            tell = partial(notify, tx.core, now_ms=now_ms)
            if chore.what == "tell_eligible":
                figures = f"{one.success_count} of {one.execution_count} uses succeeded"
                fix = f"`council specialists promote {one.id}` examines it and drafts the plan"
                tell(administrators, f"The specialist {one.role} of {one.created_by} is eligible: {figures}. {fix}.")
                tx.execute(SET_MARK, (f"{_MARK}eligible/{one.id}", chore.mark))
            elif chore.what == "tell_idle":
                day = datetime.fromtimestamp((now_ms + NOTICE_MS) / 1000, UTC).date()
                tell([one.created_by], f"Your specialist {one.role} is deprecated on {day}, unless it is used before.")
                tx.execute(SET_MARK, (f"{_MARK}idle/{one.id}", chore.mark))
            else:
                tx.execute(sql.DEPRECATE, (one.id,))
                done.record("effect", "specialist_deprecated", "council", {"specialist": one.id, "role": one.role})
                tell([one.created_by], f"Your specialist {one.role} is deprecated: nobody used it for 90 days.")
        return done


def _marks(tx: Tx) -> dict[str, str]:
    return dict(map(tuple, tx.execute(MARKS, (len(_MARK), _MARK)).fetchall()))
