"""The statements of the audit: SQL in the common part of SQLite and PostgreSQL, `?` for each value."""

from __future__ import annotations

_COLUMNS = "seq, at, kind, action, actor, run_id, step, detail, salt, detail_sha256, kid, mac"

APPEND = f"INSERT INTO audit_records ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
ADVANCE = "UPDATE audit_chain SET seq = ?, mac = ?"
BEGIN_CHAIN = "INSERT INTO audit_chain (id, chain, seq, mac) VALUES (1, ?, 0, ?)"
HEAD = "SELECT chain, seq, mac FROM audit_chain"
MAC = "SELECT mac FROM audit_records WHERE seq = ?"
LAST_SIGNED_WITH = "SELECT kid FROM audit_records WHERE seq = (SELECT seq FROM audit_chain)"
KNOWN = "SELECT 1 FROM audit_records WHERE run_id = ? AND step = ?"
TOLD = "SELECT detail FROM audit_records WHERE run_id = ? AND action = ?"
_FITTING = "FROM audit_records WHERE (kind = ? OR ? = '') AND (action = ? OR ? = '') AND (actor = ? OR ? = '')"
TAIL = f"SELECT {_COLUMNS} {_FITTING} ORDER BY seq DESC LIMIT ? OFFSET ?"
COUNT = f"SELECT count(*) {_FITTING}"
PAGE = f"SELECT {_COLUMNS} FROM audit_records WHERE seq > ? ORDER BY seq LIMIT ?"
# LIKE folds case in SQLite. What was forgotten may have begun so.
LATEST = f"""SELECT {_COLUMNS} FROM audit_records WHERE action = ? AND (substr(detail, 1, ?) = ? OR detail IS NULL)
ORDER BY seq DESC LIMIT 1"""
BLANK = "UPDATE audit_records SET detail = NULL, salt = NULL WHERE seq = ?"
