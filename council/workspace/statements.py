"""The statements of the workspace's companion: SQL in the common part of SQLite and PostgreSQL, `?` for each value. Who visits
the workspace asks through SQLAlchemy (transaction.py)."""

from __future__ import annotations

EVENTS = """SELECT event_id, org_id, title, date, zone, starts_ms, reminders FROM workspace_events
WHERE reminders <> '' AND starts_ms > ? ORDER BY starts_ms, event_id"""
MEMBERS = "SELECT user_id FROM workspace_members WHERE org_id = ? ORDER BY user_id"
