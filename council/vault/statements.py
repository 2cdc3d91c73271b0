"""The vault's statements: SQL in the common part of SQLite and PostgreSQL, `?` for each value.

A statement names the columns of an entry in the order of `StoredCredential`.
"""

from __future__ import annotations

_ENTRY = "user_id, specialist_role, credential_key, version, created_at, coalesce(expires_at, ''), encryption_key_id"
_SEALED = f"SELECT encrypted_value, {_ENTRY} FROM user_credentials"
_AT = "user_id = ? AND specialist_role = ? AND credential_key = ?"

ENTRIES = f"SELECT {_ENTRY} FROM user_credentials ORDER BY user_id, specialist_role, credential_key"
ALL_SEALED = _SEALED
SEALED = f"{_SEALED} WHERE {_AT}"
PUT = """INSERT INTO user_credentials (id, encrypted_value, user_id, specialist_role, credential_key, version, created_at,
expires_at, encryption_key_id) VALUES (?, ?, ?, ?, ?, ?, ?, nullif(?, ''), ?)
ON CONFLICT (user_id, specialist_role, credential_key) DO UPDATE SET encrypted_value = excluded.encrypted_value,
version = excluded.version, created_at = excluded.created_at, expires_at = excluded.expires_at,
encryption_key_id = excluded.encryption_key_id"""
RESEAL = f"UPDATE user_credentials SET encrypted_value = ?, encryption_key_id = ? WHERE {_AT}"
REMOVE = f"DELETE FROM user_credentials WHERE {_AT} RETURNING id"
KEYS_IN_USE = "SELECT DISTINCT encryption_key_id FROM user_credentials"
