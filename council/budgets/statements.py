"""The statements of what is spent: SQL in the common part of SQLite and PostgreSQL, `?` for each value."""

from __future__ import annotations

_TOTALS = (
    "count(*), coalesce(sum(tokens), 0), coalesce(sum(usd), 0.0), coalesce(sum(seconds), 0.0), count(*) - count(usd)"
)

RESERVE = """INSERT INTO spending (run_id, call, attempt, day, state, closing, tokens, usd, seconds)
VALUES (?, ?, ?, ?, 'begin', ?, ?, ?, 0)"""
SETTLE = "UPDATE spending SET state = 'end', tokens = ?, usd = ?, seconds = ? WHERE run_id = ? AND call = ?"
WITHDRAW = "DELETE FROM spending WHERE run_id = ? AND call = ?"
OF_ATTEMPT = "SELECT call, state, closing, tokens, usd, seconds FROM spending WHERE run_id = ? AND attempt = ?"
OF_RUN = f"SELECT {_TOTALS} FROM spending WHERE run_id = ?"
OF_DAY = f"SELECT {_TOTALS} FROM spending WHERE day = ?"
SETTLED_BY_RUN = "SELECT run_id, count(*), sum(tokens) FROM spending WHERE state = 'end' GROUP BY run_id"
DROP_OLD = "DELETE FROM spending WHERE day < ?"
