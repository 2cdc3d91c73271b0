"""The statements that look for a person: SQL in the common part of SQLite and PostgreSQL, `?` for each value."""

from __future__ import annotations

USER = "SELECT user_id, name, created FROM users WHERE user_id = ?"
USERS = "SELECT user_id, name, created FROM users"  # unordered: an index alone would not tell of a damaged table
ROLES = "SELECT role FROM roles WHERE user_id = ? ORDER BY role"
