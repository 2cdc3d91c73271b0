"""The statements of plans: SQL in the common part of SQLite and PostgreSQL, `?` for each value."""

from __future__ import annotations

from council.plans.plan import Plan

COLUMNS = tuple("state" if field == "stored" else field for field in Plan.__struct_fields__)
_PLANS = f"SELECT {', '.join(COLUMNS)} FROM plans"

DRAFT = f"INSERT INTO plans ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
CHANGE = f"UPDATE plans SET {', '.join(f'{name} = ?' for name in COLUMNS[1:])} WHERE plan_id = ?"
LOCK = "UPDATE plans SET state = state WHERE plan_id = ?"  # both databases hold the row until the transaction ends
PLAN = f"{_PLANS} WHERE plan_id = ?"
OF_DROP = f"{_PLANS} WHERE last_drop = ?"
STARTING_WITH = (
    f"""{_PLANS} WHERE plan_id >= ? AND plan_id < ? AND (principal = ? OR ? = '') ORDER BY plan_id LIMIT ?"""
)
NEWEST = f"{_PLANS} ORDER BY plan_id DESC LIMIT ?"
NEWEST_OF = f"{_PLANS} WHERE principal = ? ORDER BY plan_id DESC LIMIT ?"
_MARKS = "SELECT plan_id, principal, state, expires_ms, confirmed_ms, handed_ms FROM plans"
MARKS = f"{_MARKS} ORDER BY plan_id DESC"
MARKS_OF = f"{_MARKS} WHERE principal = ? ORDER BY plan_id DESC"
NAMING = f"{_PLANS} WHERE operations LIKE ? OR results LIKE ?"
OF_RUN = f"{_PLANS} WHERE run_id = ? ORDER BY plan_id"
OPEN = f"{_PLANS} WHERE state IN ('draft', 'confirmed') ORDER BY plan_id"

DONE = "SELECT digest, text FROM plan_requests WHERE request = ?"
NOTE_DONE = "INSERT INTO plan_requests (request, plan_id, digest, text) VALUES (?, ?, ?, ?)"
DROP_DONE = "DELETE FROM plan_requests WHERE request = ? AND plan_id = ?"
