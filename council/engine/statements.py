"""The engine's statements: SQL in the common part of SQLite and PostgreSQL, `?` for each value.

A test prepares each of them on both. The tables are declared in `tables.py`.
"""

from __future__ import annotations

ENTRY_COLUMNS = (
    "run_id", "status", "type", "lane", "title", "created", "finished", "file", "command_id", "artifact", "error", "calls",
    "tokens_in", "tokens_out", "cost_usd", "text_bytes", "pruned", "ended_ns", "model", "tokens_cached", "unknown_calls",
    "took_ms",
)  # fmt: skip
_ENTRIES = f"SELECT {', '.join(ENTRY_COLUMNS)} FROM runs"

ADMIT = """INSERT INTO runs (run_id, status, type, lane, title, created, file, command_id, place, header)
VALUES (?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?) RETURNING run"""
OPEN = "SELECT run_id, ended_ns FROM runs WHERE open = 1 ORDER BY place, run_id"
UNFINISHED = "SELECT run_id FROM runs WHERE open = 1 AND ended_ns IS NULL ORDER BY place, run_id"
HEADER = "SELECT run, header FROM runs WHERE run_id = ? AND header IS NOT NULL"
APPEND = "INSERT INTO steps (run, seq, kind, name, request, at_ms, out) VALUES (?, ?, ?, ?, ?, ?, ?)"
STEPS = "SELECT seq, kind, name, request, at_ms, out FROM steps WHERE run = ? AND seq > ? ORDER BY seq"
COMMITS = """SELECT out FROM steps WHERE run IN (SELECT run FROM runs WHERE run_id = ?) AND kind = 'commit'
ORDER BY seq DESC"""
COMMIT = "UPDATE runs SET receipt = ? WHERE run = ?"
TAKEN = "UPDATE runs SET open = 0 WHERE run_id = ?"
END = """UPDATE runs SET status = ?, title = ?, finished = ?, artifact = ?, error = ?, calls = ?, tokens_in = ?,
tokens_out = ?, tokens_cached = ?, unknown_calls = ?, cost_usd = ?, model = ?, took_ms = ?, text_bytes = ?, receipt = ?,
ended_ns = ? WHERE run_id = ?"""
REOPEN = "UPDATE runs SET status = 'queued', open = 1, ended_ns = NULL, receipt = NULL WHERE run = ?"
OPEN_IN_LANE = "SELECT run_id, run FROM runs WHERE open = 1 AND ended_ns IS NULL AND lane = ? ORDER BY place, run_id"
RESULTS = "SELECT name, out FROM steps WHERE run = ? AND kind = 'done' ORDER BY seq"
# Of a user at first sight: whoever asks looks into the header, where a plan may name somebody, too.
NEWEST_MAYBE_OF_USER = """SELECT lane, header, ended_ns FROM runs WHERE type = ? AND lane <> '' AND header LIKE ?
ORDER BY run DESC LIMIT ?"""
CONVERSATIONS = """SELECT found.lane, oldest.title, found.requests, newest.header, newest.ended_ns FROM
(SELECT lane, min(run) AS first, max(run) AS last, count(*) AS requests
FROM runs WHERE type = 'ask' AND lane <> '' AND header LIKE ? GROUP BY lane) AS found
JOIN runs AS oldest ON oldest.run = found.first JOIN runs AS newest ON newest.run = found.last ORDER BY found.last DESC"""
NEWEST_IN_LANE = "SELECT header FROM runs WHERE lane = ? AND header IS NOT NULL ORDER BY run DESC LIMIT 1"
ANSWER = """INSERT INTO runs (run_id, status, type, lane, title, created, finished, file, command_id, open, place,
receipt, ended_ns) VALUES (?, ?, ?, '', ?, ?, ?, ?, ?, 0, 0, ?, ?)"""

# A control command, and the id of an occurrence that was skipped, have a row that is answered by a receipt and no lane.
NEWEST = f"{_ENTRIES} WHERE lane <> '' ORDER BY run DESC LIMIT ?"
IN_LANE = f"{_ENTRIES} WHERE lane = ? ORDER BY run DESC"
NEWEST_ENDED = f"{_ENTRIES} WHERE lane <> '' AND ended_ns IS NOT NULL ORDER BY ended_ns DESC, run DESC LIMIT ?"
STARTING_WITH = f"{_ENTRIES} WHERE run_id >= ? AND run_id < ? ORDER BY run_id LIMIT ?"
SINCE = f"{_ENTRIES} WHERE created >= ? ORDER BY run_id"
MAYBE_OF_USER = f"{_ENTRIES.replace(' FROM', ', header FROM')} WHERE created >= ? AND header LIKE ? ORDER BY run_id"
ENDED = f"{_ENTRIES} WHERE ended_ns IS NOT NULL AND pruned = '' AND header IS NOT NULL ORDER BY ended_ns, run LIMIT ?"
KEPT = """SELECT count(*), coalesce(sum(text_bytes), 0) FROM runs
WHERE ended_ns IS NOT NULL AND pruned = '' AND header IS NOT NULL"""
BARE = """SELECT run_id FROM runs WHERE ended_ns IS NOT NULL AND (pruned <> '' OR header IS NULL)
AND (command_id = '' OR (lane = '' AND status <> 'skipped')) ORDER BY ended_ns DESC, run DESC LIMIT ? OFFSET ?"""
ALL_ENDS = "SELECT run_id, ended_ns FROM runs"
FIRST_CREATED = "SELECT created FROM runs ORDER BY created LIMIT 1"
COUNT = "SELECT count(*) FROM runs"
NEWEST_FINISH = "SELECT finished FROM runs WHERE ended_ns IS NOT NULL ORDER BY ended_ns DESC LIMIT 1"

RECEIPT = "SELECT receipt FROM runs WHERE run_id = ? AND ended_ns IS NOT NULL"
RECEIPTS = "SELECT run_id, receipt FROM runs WHERE ended_ns IS NOT NULL AND run_id > ? ORDER BY run_id LIMIT ?"
RECEIPTS_SINCE = """SELECT run_id, receipt FROM
(SELECT run_id, receipt, file FROM runs WHERE ended_ns > ? ORDER BY ended_ns DESC LIMIT ?) AS newest WHERE file = ?"""
NEWEST_DECISION_AT = """SELECT run_id FROM runs WHERE artifact = ? AND ended_ns IS NOT NULL
AND status IN ('succeeded', 'degraded') ORDER BY ended_ns DESC LIMIT 1"""
ENDED_NS = "SELECT ended_ns FROM runs WHERE run_id = ?"
BIND = """INSERT INTO ids (id, shown, command_hash, run_id) VALUES (?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET shown = excluded.shown, command_hash = excluded.command_hash, run_id = excluded.run_id"""
BOUND = "SELECT shown, command_hash, run_id FROM ids WHERE id = ?"
FORGET_COMMAND = "UPDATE ids SET shown = ?, command_hash = ? WHERE run_id = ?"

PRUNE = """UPDATE runs SET pruned = ?, header = NULL, text_bytes = 0, receipt = ?, open = 0
WHERE run_id = ? AND ended_ns IS NOT NULL"""
DROP_STEPS = "DELETE FROM steps WHERE run IN (SELECT run FROM runs WHERE run_id = ?)"
REMOVE = "DELETE FROM runs WHERE run_id = ? AND ended_ns IS NOT NULL RETURNING command_id"
DROP_RUN = "DELETE FROM runs WHERE run_id = ?"
AS_RUN = "UPDATE runs SET lane = ?, pruned = ? WHERE run_id = ?"  # a receipt whose journal is gone
UNBIND = "DELETE FROM ids WHERE run_id = ?"
DROP_KEPT = "DELETE FROM kept WHERE owner = ?"

NOTE_WRITTEN = """INSERT INTO written (path, run_id, sha256s) VALUES (?, ?, ?)
ON CONFLICT (path) DO UPDATE SET run_id = excluded.run_id, sha256s = excluded.sha256s"""
WRITTEN = "SELECT path, run_id, sha256s FROM written WHERE path = ?"
ALL_WRITTEN = "SELECT path, run_id, sha256s FROM written ORDER BY path"
DROP_WRITTEN = "DELETE FROM written WHERE path = ?"
KEEP = """INSERT INTO kept (owner, name, data) VALUES (?, ?, ?)
ON CONFLICT (owner, name) DO UPDATE SET data = excluded.data"""
KEPT_DATA = "SELECT data FROM kept WHERE owner = ? AND name = ?"
KEPT_NAMES = "SELECT name FROM kept WHERE owner = ? ORDER BY name"
KEPT_OF = "SELECT name, data FROM kept WHERE owner = ? ORDER BY name"
KEPT_BYTES = "SELECT data FROM kept WHERE owner = ?"

ENDED_RUNS = """SELECT run, run_id, ended_ns, (SELECT count(*) FROM kept WHERE owner = run_id) FROM runs
WHERE ended_ns IS NOT NULL AND run > ? ORDER BY run LIMIT ?"""
WORDS_OF_RUN = "SELECT header, receipt FROM runs WHERE run_id = ?"
REWRITE_STEP = "UPDATE steps SET request = ?, out = ? WHERE run = ? AND seq = ?"
REWRITE_RUN = "UPDATE runs SET title = ?, file = ?, command_id = ?, artifact = ?, receipt = ? WHERE run_id = ?"
REWRITE_HEADER = "UPDATE runs SET header = ? WHERE run_id = ?"
