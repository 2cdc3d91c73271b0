"""The statements of the world: SQL in the common part of SQLite and PostgreSQL, `?` for each value."""

from __future__ import annotations

_PLAYER = "agent_id, name, description, member_id, registered_at, banned"

MAKE = """INSERT INTO world (world_id, seed, pace_s, phase, deadline_ms, round_id, state, next_agent_id, next_event_id)
VALUES (?, ?, ?, 'accepting', ?, 0, ?, 1, 1)"""
NOW = "SELECT world_id, seed, round_id FROM world"
STATE = "SELECT state FROM world"
ROUND_NOW = "SELECT phase, deadline_ms, round_id, pace_s FROM world"
SET_PHASE = "UPDATE world SET phase = ?, deadline_ms = ?"
CLOSE_WINDOW = "UPDATE world SET phase = 'executing' WHERE phase = 'accepting' AND round_id = ?"
SETTLE = """UPDATE world SET phase = 'accepting', deadline_ms = ?, round_id = ?, state = ?
WHERE round_id = ? AND phase = 'executing'"""
ROLL_BACK = """UPDATE world SET phase = CASE WHEN phase = 'paused' THEN 'paused' ELSE 'accepting' END,
deadline_ms = ?, round_id = ?, state = ? WHERE round_id = ?"""
NEXT_AGENT = "UPDATE world SET next_agent_id = next_agent_id + 1 RETURNING next_agent_id - 1"
NEXT_EVENT = "UPDATE world SET next_event_id = next_event_id + 1 RETURNING next_event_id - 1"

ADD_ROUND = "INSERT INTO world_rounds (round_id, rollback_to, receipt, state) VALUES (?, ?, ?, ?)"
RECEIPT = "SELECT receipt FROM world_rounds WHERE round_id = ?"
ROUNDS = "SELECT round_id, rollback_to, receipt, state FROM world_rounds ORDER BY round_id"
RECEIPTS_SINCE = "SELECT receipt FROM world_rounds WHERE round_id > ? ORDER BY round_id DESC LIMIT ?"
KEPT_BEFORE = """SELECT round_id, state FROM world_rounds WHERE round_id <= ? AND state <> ''
ORDER BY round_id DESC LIMIT 1"""

ADD_ACTION = "INSERT INTO world_actions (round_id, number, action) VALUES (?, ?, ?)"
ACTIONS = "SELECT action FROM world_actions WHERE round_id = ? ORDER BY number"

ADD_PLAYER = f"INSERT INTO world_players ({_PLAYER}) VALUES (?, ?, ?, ?, ?, 0)"
PLAYER = f"SELECT {_PLAYER} FROM world_players WHERE agent_id = ?"
PLAYERS = f"SELECT {_PLAYER} FROM world_players ORDER BY agent_id"
MEMBERS_TAKEN = "SELECT member_id FROM world_players"
BAN = "UPDATE world_players SET banned = ? WHERE agent_id = ?"

SUBMITTED = """SELECT submission_id, body_sha256 FROM world_submissions
WHERE agent_id = ? AND round_id = ? AND kind = ? AND idempotency_key = ?"""
SUBMISSIONS_OF = "SELECT kind FROM world_submissions WHERE agent_id = ? AND round_id = ?"
VOTES_OF = """SELECT count(*) FROM world_submissions
WHERE agent_id = ? AND round_id = ? AND kind = 'vote' AND code LIKE ?"""
SUBMIT = """INSERT INTO world_submissions (submission_id, round_id, agent_id, kind, idempotency_key, body_sha256, code)
VALUES (?, ?, ?, ?, ?, ?, ?)"""
PENDING = """SELECT s.submission_id, s.kind, s.agent_id, p.member_id, s.code
FROM world_submissions s JOIN world_players p ON p.agent_id = s.agent_id
WHERE s.round_id = ? ORDER BY s.submission_id"""
ANSWER = "UPDATE world_submissions SET code = '', error = ? WHERE submission_id = ?"
ANSWER_ALL = "UPDATE world_submissions SET code = '', error = ? WHERE round_id = ?"
OUTCOMES = """SELECT submission_id, round_id, kind, error FROM world_submissions
WHERE agent_id = ? AND round_id > ? ORDER BY round_id, submission_id LIMIT ?"""

ADD_LETTER = "INSERT INTO world_letters (round_id, number, from_id, to_id, text) VALUES (?, ?, ?, ?, ?)"
LETTERS = """SELECT round_id, from_id, text FROM world_letters WHERE to_id = ? AND round_id > ?
ORDER BY round_id, number LIMIT ?"""
NEWEST_LETTERS = """SELECT round_id, from_id, to_id, text FROM world_letters ORDER BY round_id DESC, number DESC
LIMIT ? OFFSET ?"""
LETTER_COUNT = "SELECT count(*) FROM world_letters"
DROP_LETTERS = "DELETE FROM world_letters WHERE round_id <= ?"

ADD_EVENT = "INSERT INTO world_events (event_id, event_type, round_id, timestamp, payload) VALUES (?, ?, ?, ?, ?)"
EVENTS_SINCE_ROUND = """SELECT event_id, event_type, round_id, timestamp, payload FROM world_events
WHERE round_id > ? ORDER BY event_id LIMIT ?"""
EVENTS_AFTER = """SELECT event_id, event_type, round_id, timestamp, payload FROM world_events
WHERE event_id > ? ORDER BY event_id LIMIT ?"""

_MECHANISM = """SELECT m.mechanism_id, m.agent_id, m.round_id, m.description, m.status, m.rules, m.report, s.error
FROM world_mechanisms m JOIN world_submissions s ON s.submission_id = m.mechanism_id"""
ADD_MECHANISM = """INSERT INTO world_mechanisms (mechanism_id, agent_id, round_id, description, status, rules, report)
VALUES (?, ?, ?, ?, 'submitted', '{}', '{}')"""
MECHANISM = f"{_MECHANISM} WHERE m.mechanism_id = ?"
MECHANISMS = f"{_MECHANISM} WHERE m.status LIKE ? ORDER BY m.round_id DESC, m.mechanism_id LIMIT ? OFFSET ?"
MECHANISM_COUNT = "SELECT count(*) FROM world_mechanisms"
UNDECIDED_MECHANISMS = "SELECT agent_id FROM world_mechanisms WHERE status IN ('submitted', 'pending_vote')"
OPEN_VOTE = "UPDATE world_mechanisms SET status = 'pending_vote', rules = ?, report = ? WHERE mechanism_id = ?"
SET_MECHANISM = "UPDATE world_mechanisms SET status = ? WHERE mechanism_id = ?"
REFUSE_MECHANISMS = "UPDATE world_mechanisms SET status = 'rejected' WHERE status = 'submitted' AND round_id = ?"
ROLL_BACK_MECHANISMS = """UPDATE world_mechanisms SET status = 'rolled_back'
WHERE round_id > ? AND status IN ('submitted', 'pending_vote', 'active')"""
