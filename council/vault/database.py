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

from sqlalchemy import Connection, delete, insert, select, update

from council.audit.chain import Record
from council.audit.log import AuditLog
from council.errors import CredentialRefused, StorageFailed
from council.ids import STEWARD, Clock, timestamp
from council.keys.key_sources import KeySource, require_keys
from council.keys.keyring import Keyring
from council.redaction import Secret
from council.storage.reader import Looking
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
from council.vault.tables import credentials

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rotation:
    """`resealed` credentials are now under `kid`; `retired` are the ids of keys that open no more."""

    kid: str
    resealed: int
    retired: tuple[str, ...]


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
                before = _row(transaction.tx.core, one.place)
                version = before.version + 1 if before is not None else 1
                entry = StoredCredential(one.place, version, self._now(), one.expires_at, key.kid)
                sealed = seal(one.value, one.place, version, one.expires_at, key)
                _put(transaction.tx.core, entry, sealed, before.id if before is not None else None)
                transaction.record("effect", CREDENTIAL_SET, STEWARD.id, told_of(entry) | {"key": key.kid})
                entries.append(entry)
            return entries

    def get(self, place: CredentialPlace, *, actor: str, purpose: str) -> Secret:
        with self._audit.transaction() as transaction:
            detail = {"credential": str(place), "purpose": purpose}
            transaction.record("secret_read", "credential_read", actor, detail)
        with self._audit.store.reading() as tx:
            connection = tx.core
            row = _row(connection, place)
        if row is None:
            raise absent(place)
        if row.expires_at and row.expires_at <= self._now():
            raise expired(place, row.expires_at)
        # A sealed value that is put back into its own place would open.
        entry = _entry(row)
        record = self._audit.latest((CREDENTIAL_SET, CREDENTIAL_REMOVED), credential=str(entry.place))
        version = _version_told(record) if record is not None else None
        if version is not None and version != entry.version:
            fix = "set it again with `council vault set`, and look at `council audit verify`"
            raise CredentialRefused(_not_as_told(entry, version), reason="tampered", fix=fix)
        value = self._opened(row, self._keys())
        self._register(value)
        return value

    def list(self) -> Sequence[StoredCredential]:
        return entries_in(self._audit.store)

    def remove(self, place: CredentialPlace) -> None:
        with self._audit.transaction() as transaction:
            if transaction.tx.core.execute(delete(credentials).where(_at(place))).rowcount == 0:
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
        with self._audit.store.reading() as tx:
            connection = tx.core
            for row in connection.execute(select(credentials)):
                entry = _entry(row)
                version = versions.pop(str(entry.place), None)
                problem = "" if partly or version == entry.version else _not_as_told(entry, version or 0)
                if not problem:
                    try:
                        self._opened(row, keys)
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
            rows = transaction.tx.core.execute(select(credentials)).all()
            opened = [(row, self._opened(row, keys)) for row in rows if row.encryption_key_id != newer.primary.kid]
            if newer is not keys:
                self._source.save(newer)
            for row, value in opened:
                entry = _entry(row)
                sealed = seal(value, entry.place, entry.version, entry.expires_at, newer.primary)
                changed = {"encrypted_value": sealed, "encryption_key_id": newer.primary.kid}
                transaction.tx.core.execute(update(credentials).where(credentials.c.id == row.id).values(**changed))
            old = [key.kid for key in newer.superseded] if self._source.writable else []
            detail = {"key": newer.primary.kid, "resealed": len(opened), "retired": old}
            transaction.record("effect", "keys_rotated", STEWARD.id, detail)
        if self._source.writable:
            with self._audit.transaction() as transaction, self._source.held():
                used = transaction.tx.core.execute(select(credentials.c.encryption_key_id).distinct()).scalars()
                self._source.save(self._keys().settled(set(used)))  # without those that seal nothing any more
        self._sweep()
        return Rotation(newer.primary.kid, len(opened), tuple(old))

    def _sweep(self) -> None:
        """Sweeps after a commit: what was to be done is done, also where the bytes of before cannot be removed now."""
        try:
            self._audit.sweep()
        except StorageFailed as error:
            log.warning("what was encrypted before may still be in the database's files, encrypted: %s", error)

    def _opened(self, row: Any, keys: Keyring) -> Secret:
        entry = _entry(row)
        key = keys.get(entry.kid)
        if key is None or key.status == "retired":
            message = f"the credential {entry.place} was encrypted with the key {entry.kid}, which is not in use here."
            fix = f"put that key back into {self._source.name}, or set the credential again"
            raise CredentialRefused(message, reason="unknown_key", fix=fix)
        return unseal(bytes(row.encrypted_value), entry.place, entry.version, entry.expires_at, key)

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


def _at(place: CredentialPlace) -> Any:
    row = credentials.c
    return (row.user_id == place.user) & (row.specialist_role == place.role) & (row.credential_key == place.key)


def _row(connection: Connection, place: CredentialPlace) -> Any:
    return connection.execute(select(credentials).where(_at(place))).first()


def entries_in(store: Looking) -> list[StoredCredential]:
    """Every place that holds a value, in order; no key is needed. Raises StorageFailed."""
    rows = store.read(lambda tx: tx.execute(sql.ENTRIES).fetchall())
    return [StoredCredential(CredentialPlace(*row[:3]), *row[3:]) for row in rows]


def _entry(row: Any) -> StoredCredential:
    place = CredentialPlace(row.user_id, row.specialist_role, row.credential_key)
    return StoredCredential(place, row.version, row.created_at, row.expires_at or "", row.encryption_key_id)


def _put(connection: Connection, entry: StoredCredential, sealed: bytes, id_: str | None) -> None:
    values = {
        "encrypted_value": sealed,
        "encryption_key_id": entry.kid,
        "version": entry.version,
        "created_at": entry.created_at,
        "expires_at": entry.expires_at or None,
    }
    if id_ is not None:
        connection.execute(update(credentials).where(credentials.c.id == id_).values(**values))
        return
    place = entry.place
    named = {"user_id": place.user, "specialist_role": place.role, "credential_key": place.key}
    connection.execute(insert(credentials).values(id=str(uuid.uuid4()), **named, **values))
