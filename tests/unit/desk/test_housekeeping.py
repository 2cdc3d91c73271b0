"""Looking after what a home keeps."""

from __future__ import annotations

import json
import sqlite3

import pytest

from council.budgets.spend import Reservation, Spend
from council.budgets.statements import SETTLE
from council.desk.desk import Desk
from council.desk.housekeeping import back_up, take_back
from council.errors import KeysRefused
from council.ids import SystemClock
from council.storage.versions import DATABASE_FILE
from tests.harness import opened
from tests.rows import ended


async def test_the_audit_says_what_a_restore_took_away(desk: Desk) -> None:
    copy = desk.home.root / "copy.db"
    with opened(desk.home.root) as store:
        ended(store, "r1", 1)
        back_up(desk, copy)
        ended(store, "r2", 2)
        await Spend(store, "r2", 0, SystemClock()).reserve(Reservation("one", 500), None)
        store.write_now(lambda tx: tx.execute(SETTLE, (120, 0.0, 1.0, "r2", "one")))
    take_back(desk, copy)
    with desk.safe() as safe:
        [record] = safe.trail.log().tail(1)
    assert (record.kind, record.action, record.actor) == ("effect", "database_restored", "steward")
    assert json.loads(record.detail or "") == {"copy": "copy.db", "runs": ["r2"], "calls": 1, "tokens": 120}


def test_a_copy_that_other_keys_signed_is_refused_before_anything_is_moved(desk: Desk) -> None:
    copy = desk.home.root / "copy.db"
    with desk.safe() as safe, safe.trail.log().transaction() as transaction:
        transaction.record("effect", "people", "steward", {})
    back_up(desk, copy)
    with sqlite3.connect(copy) as changed:  # as the home that has this key would have signed it
        changed.execute("UPDATE audit_records SET kid = ?", ("0" * 32,))
    database = desk.home.runtime / DATABASE_FILE
    before = database.stat().st_ino
    with pytest.raises(KeysRefused, match="signed with the key 0000"):
        take_back(desk, copy)
    assert database.stat().st_ino == before
    assert not list(desk.home.runtime.glob("*before-restore*"))
