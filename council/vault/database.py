"""The vault in the database (table `user_credentials`).

A value is read in two transactions: the first writes the audit record and is on the disk before the second opens anything. No
record, no secret. A rotation adds a key and seals everything anew in one transaction, and retires the old keys in another. A
process that dies anywhere in between leaves every value readable, and the next rotation goes on from there.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from council.audit.chain import Record
from council.audit.log import AuditLog
from council.errors import CredentialRefused, StorageFailed
from council.ids import STEWARD, Clock, timestamp
from council.keys.key_sources import KeySource, require_keys
from council.keys.keyring import Keyring
from council.redaction import Secret
from council.storage.reader import Looking
from council.storage.store import Tx
from council.vault import statements as sql
from council.vault.contract import (
    CREDENTIAL_REMOVED,
    CREDENTIAL_SET,
    NewCredential,
    StoredCredential,
    Vault,
    absent,
    expired,
    require_storable,
    told_of,
)
from council.vault.sealing import CredentialPlace, seal, unseal

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rotation:
    """`resealed` credentials are now under `kid`; `retired` are the ids of keys that open no more."""

    kid: str
    resealed: int
    retired: tuple[str, ...]


@dataclass(frozen=True)
class _SealedEntry:
    """A credential as it is kept."""

    value: bytes
    entry: StoredCredential


@dataclass(eq=False)
class DatabaseVault(Vault):
    """See `council.vault.contract.Vault`. `_register` is told of each value that is set or read: redaction takes it out of
    whatever leaves."""

    _audit: AuditLog
    _source: KeySource
    _clock: Clock
    _register: Callable[[Secret], None] = lambda secret: None

    def set_all(self, given: Sequence[NewCredential]) -> Sequence[StoredCredential]:
        for one in given:
            require_storable(one)
            self._register(one.value)
        with self._audit.transaction() as transaction:
            key = self._keys().primary  # NOTE: under the write lock, so that no rotation retires it before the commit
            entries = []
            for one in given:
                before = _sealed_at(transaction.tx, one.place)
                version = before.entry.version + 1 if before is not None else 1
                entry = StoredCredential(one.place, version, self._now(), one.expires_at, key.kid)
                sealed = seal(one.value, one.place, version, one.expires_at, key)
                told = (version, entry.created_at, entry.expires_at, entry.kid)
                transaction.tx.execute(sql.PUT, (str(uuid.uuid4()), sealed, *one.place.parts, *told))
                transaction.record("effect", CREDENTIAL_SET, STEWARD.id, told_of(entry) | {"key": key.kid})
                entries.append(entry)
            return entries

    def get(self, place: CredentialPlace, *, actor: str, purpose: str) -> Secret:
        with self._audit.transaction() as transaction:
            detail = {"credential": str(place), "purpose": purpose}
            transaction.record("secret_read", "credential_read", actor, detail)
        found = self._audit.store.read(lambda tx: _sealed_at(tx, place))
        if found is None:
            raise absent(place)
        entry = found.entry
        if entry.expires_at and entry.expires_at <= self._now():
            raise expired(place, entry.expires_at)
        # A sealed value that is put back into its own place would open.
        record = self._audit.latest((CREDENTIAL_SET, CREDENTIAL_REMOVED), credential=str(entry.place))
        version = _version_told(record) if record is not None else None
        if version is not None and version != entry.version:
            fix = "set it again with `council vault set`, and look at `council audit verify`"
            raise CredentialRefused(_not_as_told(entry, version), reason="tampered", fix=fix)
        value = self._opened(found, self._keys())
        self._register(value)
        return value

    def list(self) -> Sequence[StoredCredential]:
        return entries_in(self._audit.store)

    def remove(self, place: CredentialPlace) -> None:
        with self._audit.transaction() as transaction:
            if transaction.tx.execute(sql.REMOVE, place.parts).fetchone() is None:
                raise absent(place)
            transaction.record("effect", CREDENTIAL_REMOVED, STEWARD.id, {"credential": str(place)})
        self._sweep()

    def verify(self) -> Sequence[tuple[StoredCredential, str]]:
        """Opens every record, shows none, and compares them with what the audit says was set and removed; what does not
        hold, and why. Audited. Raises StorageFailed, KeysRefused."""
        with self._audit.transaction() as transaction:
            transaction.record("secret_read", "vault_verified", STEWARD.id, {})
        versions: dict[str, int] = {}
        partly = False
        for record in self._audit.of((CREDENTIAL_SET, CREDENTIAL_REMOVED)):
            if record.detail is None:
                partly = True
            else:
                versions[json.loads(record.detail)["credential"]] = _version_told(record) or 0
        keys = self._keys()
        failed = []
        for one in self._audit.store.read(_all_sealed):
            entry = one.entry
            version = versions.pop(str(entry.place), None)
            problem = "" if partly or version == entry.version else _not_as_told(entry, version or 0)
            if not problem:
                try:
                    self._opened(one, keys)
                except CredentialRefused as error:
                    problem = error.message
            failed += [(entry, problem)] if problem else []
        for name, version in versions.items():
            if version and not partly:
                user, *role, key = name.split("/")
                entry = StoredCredential(CredentialPlace(user, "".join(role), key), version, "", "", "")
                failed.append((entry, f"the credential {name} is gone, and no record says that it was removed."))
        return failed

    def rotate(self) -> Rotation:
        """A new key for everything, and the old ones retired; one that was cut off is completed first. Raises
        CredentialRefused when a record does not open (then every key stays as it is), StorageFailed, KeysRefused."""
        # Here and below, keys change while both locks are held, so none is ever overwritten.
        with self._audit.transaction() as transaction, self._source.held():
            keys = self._keys()
            newer = keys.grown() if self._source.writable and not keys.superseded else keys
            older = [one for one in _all_sealed(transaction.tx) if one.entry.kid != newer.primary.kid]
            opened = [(one.entry, self._opened(one, keys)) for one in older]
            if newer is not keys:
                self._source.save(newer)
            for entry, value in opened:
                sealed = seal(value, entry.place, entry.version, entry.expires_at, newer.primary)
                transaction.tx.execute(sql.RESEAL, (sealed, newer.primary.kid, *entry.place.parts))
            old = [key.kid for key in newer.superseded] if self._source.writable else []
            detail = {"key": newer.primary.kid, "resealed": len(opened), "retired": old}
            transaction.record("effect", "keys_rotated", STEWARD.id, detail)
        if self._source.writable:
            with self._audit.transaction() as transaction, self._source.held():
                used = {str(row[0]) for row in transaction.tx.execute(sql.KEYS_IN_USE).fetchall()}
                self._source.save(self._keys().settled(used))  # without those that seal nothing any more
        self._sweep()
        return Rotation(newer.primary.kid, len(opened), tuple(old))

    def _sweep(self) -> None:
        """Sweeps after a commit: what was to be done is done, also where the bytes of before cannot be removed now."""
        try:
            self._audit.sweep()
        except StorageFailed as error:
            log.warning("what was encrypted before may still be in the database's files, encrypted: %s", error)

    def _opened(self, one: _SealedEntry, keys: Keyring) -> Secret:
        entry = one.entry
        key = keys.get(entry.kid)
        if key is None or key.status == "retired":
            message = f"the credential {entry.place} was encrypted with the key {entry.kid}, which is not in use here."
            fix = f"put that key back into {self._source.name}, or set the credential again"
            raise CredentialRefused(message, reason="unknown_key", fix=fix)
        return unseal(one.value, entry.place, entry.version, entry.expires_at, key)

    def _keys(self) -> Keyring:
        return require_keys(self._source)

    def _now(self) -> str:
        return timestamp(self._clock.now())


def _version_told(record: Record) -> int | None:
    """0 for a removal; None where the words were forgotten."""
    return None if record.detail is None else int(json.loads(record.detail).get("version", 0))


def _not_as_told(entry: StoredCredential, version: int) -> str:
    said = f"the last one set was version {version}" if version else "none was set there, or it was removed"
    return f"the credential {entry.place} is version {entry.version}, but the audit says that {said}."


def entries_in(store: Looking) -> list[StoredCredential]:
    """Every place that holds a value, in order; no key is needed. Raises StorageFailed."""
    return [_entry(row) for row in store.read(lambda tx: tx.execute(sql.ENTRIES).fetchall())]


def _all_sealed(tx: Tx) -> list[_SealedEntry]:
    return [_sealed(row) for row in tx.execute(sql.ALL_SEALED).fetchall()]


def _sealed_at(tx: Tx, place: CredentialPlace) -> _SealedEntry | None:
    row = tx.execute(sql.SEALED, place.parts).fetchone()
    return None if row is None else _sealed(row)


def _sealed(row: Sequence[Any]) -> _SealedEntry:
    return _SealedEntry(bytes(row[0]), _entry(row[1:]))


def _entry(row: Sequence[Any]) -> StoredCredential:
    return StoredCredential(CredentialPlace(*row[:3]), *row[3:])
