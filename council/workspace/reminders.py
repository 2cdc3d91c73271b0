"""Reminders of events, a companion of the daemon: each that is due becomes one notification for each member, once.

What was told is written with the notifications, in one transaction. After a downtime the reminders of an event that have
become due meanwhile are one notification. A moved event is reminded of anew.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import msgspec

from council.ids import Clock, epoch_ms, new_run_id
from council.storage.marks import DROP_MARK, MARK, MARKS, SET_MARK
from council.storage.store import Store, Tx
from council.workspace import statements as sql

LATE_MS = 7 * 86_400_000  # after its event a reminder still comes for so long: the daemon may have been down
_MARK = "reminded/"


class Reminder(msgspec.Struct, frozen=True):
    """The newest reminder of an event that nobody was told of yet, and when it is due."""

    event_id: str
    org_id: str
    title: str
    date: str
    zone: str
    starts_ms: int
    minutes: int

    @property
    def due_ms(self) -> int:
        return self.starts_ms - self.minutes * 60_000

    def text(self, now_ms: int) -> str:
        begins = "begins" if now_ms < self.starts_ms else "began"
        return f"“{self.title}” {begins} at {self.date} ({self.zone})."


@dataclass(frozen=True)
class Reminders:
    """Looks for what is due at least every `look_s` seconds: people change events in processes of their own."""

    store: Store
    clock: Clock
    look_s: float
    name: str = "reminders"

    async def run(self) -> None:
        while True:
            now_ms = epoch_ms(self.clock)
            coming = await asyncio.to_thread(self.store.read, partial(untold, now_ms=now_ms))
            if any(reminder.due_ms <= now_ms for reminder in coming):
                await self.store.write(partial(tell_due, now_ms=now_ms))
            waits = [(reminder.due_ms - now_ms) / 1000 for reminder in coming if reminder.due_ms > now_ms]
            await asyncio.sleep(min([self.look_s, *waits]))


def untold(tx: Tx, now_ms: int) -> list[Reminder]:
    """The reminders that nobody was told of. Of those of one event that are due, only the last one."""
    found: list[Reminder] = []
    rows = tx.execute(sql.EVENTS, (now_ms - LATE_MS,)).fetchall()
    for event_id, org_id, title, date, zone, starts_ms, reminders in rows:
        row = tx.execute(MARK, (f"{_MARK}{event_id}",)).fetchone()
        told_start, told_minutes = map(int, row[0].split()) if row is not None else (0, 0)
        left = [
            Reminder(event_id, org_id, title, date, zone, starts_ms, minutes)
            for minutes in sorted(map(int, reminders.split(",")), reverse=True)
            if told_start != starts_ms or minutes < told_minutes
        ]
        due = [reminder for reminder in left if reminder.due_ms <= now_ms]
        found += [*due[-1:], *left[len(due) :]]
    return found


def tell_due(tx: Tx, now_ms: int) -> int:
    """Writes the notifications that are due, and that they were written. The number of reminders that were told."""
    from council.users.notifications import notice  # not at the top: it loads SQLAlchemy, and reminders are seldom due

    due = [reminder for reminder in untold(tx, now_ms) if reminder.due_ms <= now_ms]
    for reminder in due:
        for (user_id,) in tx.execute(sql.MEMBERS, (reminder.org_id,)).fetchall():
            notification_id = new_run_id(datetime.fromtimestamp(now_ms / 1000, UTC))
            tx.core.execute(notice(notification_id, user_id, reminder.text(now_ms), now_ms))
        tx.execute(SET_MARK, (f"{_MARK}{reminder.event_id}", f"{reminder.starts_ms} {reminder.minutes}"))
    there = {f"{_MARK}{row[0]}" for row in tx.execute(sql.EVENTS, (now_ms - LATE_MS,)).fetchall()}
    for name, _ in tx.execute(MARKS, (len(_MARK), _MARK)).fetchall():
        if name not in there:
            tx.execute(DROP_MARK, (name,))
    return len(due)
