"""The statements on people and their keys: SQL in the common part of SQLite and PostgreSQL, `?` for each value."""

from __future__ import annotations

USER = "SELECT user_id, name, created FROM users WHERE user_id = ?"
USERS = "SELECT user_id, name, created FROM users"  # unordered: an index alone would not tell of a damaged table
ADD_USER = "INSERT INTO users (user_id, name, created) VALUES (?, ?, ?)"
ROLES = "SELECT role FROM roles WHERE user_id = ? ORDER BY role"
GRANT = "INSERT INTO roles (user_id, role) VALUES (?, ?)"
REVOKE = "DELETE FROM roles WHERE user_id = ? AND role = ?"
ADD_KEY = "INSERT INTO api_keys (sha256, owner, created, expires) VALUES (?, ?, ?, ?)"
OWNER = "SELECT owner, expires, revoked FROM api_keys WHERE sha256 = ?"
KEYS = "SELECT sha256, owner, created, expires, revoked FROM api_keys ORDER BY created, sha256"
REVOKE_ONE = "UPDATE api_keys SET revoked = ? WHERE sha256 = ? AND revoked = ''"
ADD_SIGN_IN = "INSERT INTO sign_ins (sha256, user_id, expires) VALUES (?, ?, ?)"
SIGN_IN = "SELECT user_id FROM sign_ins WHERE sha256 = ? AND expires > ?"
USE_SIGN_IN = "DELETE FROM sign_ins WHERE sha256 = ? AND expires > ? RETURNING user_id"
END_SIGN_INS = "DELETE FROM sign_ins WHERE user_id = ?"
SWEEP_SIGN_INS = "DELETE FROM sign_ins WHERE expires <= ?"
