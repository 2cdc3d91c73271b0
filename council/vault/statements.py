"""The statement that lists credentials without their values: SQL in the common part of SQLite and PostgreSQL."""

from __future__ import annotations

ENTRIES = """SELECT user_id, specialist_role, credential_key, version, created_at, coalesce(expires_at, ''), encryption_key_id
FROM user_credentials ORDER BY user_id, specialist_role, credential_key"""
