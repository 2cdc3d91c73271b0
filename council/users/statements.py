"""The statements on people and their keys: SQL in the common part of SQLite and PostgreSQL, `?` for each value."""

from __future__ import annotations

USER = "SELECT user_id, name, created FROM users WHERE user_id = ?"
USERS = "SELECT user_id, name, created FROM users"  # unordered: an index alone would not tell of a damaged table
ROLES = "SELECT role FROM roles WHERE user_id = ? ORDER BY role"
ADD_KEY = "INSERT INTO api_keys (sha256, owner, created, expires) VALUES (?, ?, ?, ?)"
OWNER = "SELECT owner, expires, revoked FROM api_keys WHERE sha256 = ?"
REVOKE = "UPDATE api_keys SET revoked = ? WHERE owner = ? AND revoked = ''"
