"""The things that a home keeps: its store, and on the store its audit, users and vault."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Iterator, Mapping
from functools import partial

from council.audit.head_file import HEAD_FILE, MAX_HEAD_BYTES
from council.audit.log import AuditLog
from council.audit.trail import Trail
from council.errors import ConfigError, CredentialRefused, KeysRefused, StorageFailed
from council.ids import STEWARD, SystemClock
from council.keys.key_sources import KEY_VARIABLE, KeyFile, KeySource, key_source, load_or_create, require_keys
from council.keys.keyring import Keyring
from council.redaction import Redactor, Secret
from council.settings import Home, ProviderKeys, Settings
from council.storage.files import descriptor
from council.storage.reader import Looking, Reader, is_older, looking
from council.storage.store import Store
from council.storage.versions import DATABASE_FILE, HOME_FILE
from council.vault import statements as sql
from council.vault.aws import AwsVault
from council.vault.contract import CREDENTIAL_SET, StoredCredential, Vault
from council.vault.database import DatabaseVault, entries_in
from council.vault.sealing import CredentialPlace

log = logging.getLogger(__name__)

TABLES = (
    "council.audit.tables",
    "council.budgets.tables",
    "council.engine.tables",
    "council.plans.tables",
    "council.users.tables",
    "council.vault.tables",
)  # of the house itself; each system names its own


def build_trail(
    home: Home, store: Looking, settings: Settings, keys: ProviderKeys, environ: Mapping[str, str], redactor: Redactor
) -> Trail:
    """The home's audit; no key is loaded or made before its first record. What records needs a `Store`."""

    def opening() -> AuditLog:
        source = build_key_source(home, settings, keys, environ)
        (require_keys if (home.runtime / HEAD_FILE).exists() else load_or_create)(source)
        if isinstance(source, KeyFile):
            source.note_home()
        return AuditLog(store, partial(require_keys, source), home.runtime, SystemClock(), redactor)

    return Trail(opening)


def build_key_source(home: Home, settings: Settings, keys: ProviderKeys, environ: Mapping[str, str]) -> KeySource:
    given = keys.get(KEY_VARIABLE)
    if given is not None and not environ.get(KEY_VARIABLE, "").strip():
        raise KeysRefused(
            f"{KEY_VARIABLE} is in .env, inside the home, so anyone who can read the home would have the key.",
            fix="set it in the environment of the process, and remove it from .env",
        )
    return key_source(settings.key_source, settings.key_file, home.root, environ, given)


def open_store(home: Home, settings: Settings, redactor: Redactor | None = None) -> Store:
    """Makes the database where there is none. `redactor` takes secrets out of columns of words. Raises ConfigError,
    StorageFailed."""
    home.ensure_runtime()
    return Store.open(home.runtime, settings.database_url, redactor)


def look_at(home: Home, settings: Settings) -> Looking:
    """Makes nothing: it is for who only looks. Raises ConfigError, StorageFailed."""
    return looking(home.runtime, settings.database_url)


class Safe:
    def __init__(
        self, home: Home, store: Store, settings: Settings, keys: ProviderKeys, environ: Mapping[str, str]
    ) -> None:
        self.store = store
        self.trail = build_trail(home, store, settings, keys, environ, keys.redactor)
        self._open_keys = partial(build_key_source, home, settings, keys, environ)
        self._settings = settings
        self._redactor = keys.redactor

    def keyring(self) -> Keyring:
        return require_keys(self._open_keys())

    def may_hold_credentials(self) -> bool:
        """False where the vault's table is empty; a vault elsewhere is not asked. Raises StorageFailed."""
        return self._settings.vault == "aws" or bool(self.store.read(lambda tx: tx.execute(sql.ENTRIES).fetchone()))

    def vault(self) -> Vault:
        if self._settings.vault == "aws":
            return AwsVault(self.trail.log(), self._settings.aws_prefix, SystemClock(), self._redactor.register)
        return DatabaseVault(self.trail.log(), self._open_keys(), SystemClock(), self._redactor.register)


class VaultWords:
    """Makes redaction know every value in a vault, whichever process set it. Each is read, and audited, once."""

    def __init__(self, home: Home, safe: Safe) -> None:
        self._head = home.runtime / HEAD_FILE
        self._safe = safe
        self._seen = b""  # of the file that changes with every record of the audit
        self._known_to = 0  # the last record that was looked at
        self._known: set[StoredCredential] = set()
        self._learning = asyncio.Lock()
        self._reading = threading.Lock()  # a thread that nobody waits for any more goes on

    async def learn(self) -> None:
        """Costs a look at one file where nothing was recorded since. Raises StorageFailed: then nothing may be written
        down."""
        if self._head_now() == self._seen:
            return
        async with self._learning:
            if (head := self._head_now()) != self._seen:
                try:
                    if self._safe.may_hold_credentials():
                        await asyncio.to_thread(self._learn)
                except (KeysRefused, ConfigError, CredentialRefused) as error:
                    raise StorageFailed(f"redaction cannot read the vault: {error.message}", fix=error.fix) from error
                self._seen = head

    def _head_now(self) -> bytes:
        try:
            with descriptor(self._head, os.O_RDONLY) as fd:
                return os.read(fd, MAX_HEAD_BYTES)
        except FileNotFoundError:  # nothing was ever recorded, so no value was set
            return b""

    def _learn(self) -> None:
        with self._reading:
            audit = self._safe.trail.log()
            end = audit.head().seq
            if self._known_to == 0 or any(True for _ in audit.of((CREDENTIAL_SET,), self._known_to)):
                vault = self._safe.vault()
                for entry in vault.list():
                    if entry in self._known:
                        continue
                    try:
                        vault.get(entry.place, actor=STEWARD.id, purpose="redaction")
                    except CredentialRefused as error:
                        if error.reason == "unavailable":
                            raise
                        log.warning("redaction does not know a value of the vault: %s", error)
                    self._known.add(entry)
            self._known_to = end


@contextlib.contextmanager
def open_safe(home: Home, settings: Settings, keys: ProviderKeys, environ: Mapping[str, str]) -> Iterator[Safe]:
    """Open for as long as the block takes. Raises ConfigError, StorageFailed."""
    home.require_own_places()
    with contextlib.closing(open_store(home, settings, keys.redactor)) as store:
        yield Safe(home, store, settings, keys, environ)


def key_in_vault(
    name: str, home: Home, settings: Settings, keys: ProviderKeys, environ: Mapping[str, str]
) -> Secret | None:
    """A provider's key that the steward put into the vault, else None. Raises CredentialRefused, KeysRefused,
    StorageFailed, ConfigError."""
    begun = home.runtime / (HOME_FILE if settings.database_url is not None else DATABASE_FILE)
    in_database = begun.exists() or is_older(home.runtime)
    if name == KEY_VARIABLE or not (in_database or settings.vault == "aws"):
        return None

    place = CredentialPlace(STEWARD.id, "", name)
    is_file = settings.vault != "aws" and settings.database_url is None
    if is_file and all(entry.place != place for entry in entries_in(Reader(home.runtime))):
        return None  # so it is in most homes: a look waits for no writer
    with open_safe(home, settings, keys, environ) as safe:
        vault = safe.vault()
        if not any(entry.place == place for entry in vault.list()):
            return None
        return vault.get(place, actor=STEWARD.id, purpose="a model's key")
