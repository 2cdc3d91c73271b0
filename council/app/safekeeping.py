"""What is kept of a home beside its runs' journals: receipts, the ledger, memory; the database with audit, users and vault."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from council.agents.memory import Memory
from council.audit.head_file import HEAD_FILE
from council.audit.trail import Trail
from council.commands.models import RunCommand
from council.engine.ledger import Ledger, entry_of_receipt, found_on_disk
from council.engine.receipts import Receipt, Receipts
from council.errors import CommandInvalid, KeysRefused, StorageFailed
from council.ids import STEWARD, SystemClock
from council.keys.sources import KEY_VARIABLE, KeySource, key_source, load_or_create, require_keys
from council.redaction import Redactor, Secret
from council.settings import Home, ProviderKeys, Settings
from council.storage.database_version import DATABASE_FILE

if TYPE_CHECKING:
    from council.audit.log import AuditLog
    from council.storage.database import Database
    from council.users.directory import Users
    from council.vault.base import Vault

log = logging.getLogger(__name__)

TABLES = ("council.audit.tables", "council.users.tables", "council.vault.tables")  # declared on the shared metadata
ADMINISTRATORS_ONLY = ("memory", "forget")


def build_receipts(home: Home, ledger: Ledger | None = None) -> Receipts:
    """The home's receipts; each new one becomes a row of `ledger`."""
    if ledger is None:
        return Receipts(home.receipts, home.runtime / "ids")

    def note(receipt: Receipt, ended_ns: int) -> None:
        ledger.put(entry_of_receipt(receipt, folder=home.runs / receipt.run_id, ended_ns=ended_ns))

    return Receipts(home.receipts, home.runtime / "ids", note)


def build_ledger(home: Home) -> Ledger:
    """The run ledger, filled from receipts and journals when it is new (or was lost). A receipt whose row a crash cut off
    gets it now."""
    ledger = Ledger(home.runtime / "ledger.sqlite")
    receipts = build_receipts(home)
    if ledger.is_incomplete:
        ledger.rebuild(found_on_disk(home.runs, home.runtime / "active", receipts))
    else:
        _note_missing(home, ledger, receipts)
    return ledger


def _note_missing(home: Home, ledger: Ledger, receipts: Receipts) -> None:
    for run_id in sorted(set(receipts.run_ids()) - ledger.ended_ids()):
        receipt = receipts.read(run_id)
        if receipt is not None:
            entry = entry_of_receipt(receipt, folder=home.runs / run_id, ended_ns=receipts.written_ns(run_id))
            try:
                ledger.put(entry)
            except StorageFailed as error:  # an index: the next start tries again
                log.warning("the run ledger lacks run %s: %s", run_id, error)
                return


def build_memory(home: Home) -> Memory:
    return Memory(home.session_states, home.runtime / "memory")


def build_trail(
    home: Home, settings: Settings, keys: ProviderKeys, environ: Mapping[str, str], redactor: Redactor
) -> Trail:
    """The home's audit; nothing is loaded, opened or made before its first record."""

    def opening() -> AuditLog:
        from council.audit.log import AuditLog

        source = build_key_source(home, settings, keys, environ)
        (require_keys if (home.runtime / HEAD_FILE).exists() else load_or_create)(source)
        database = open_database(home, settings)
        return AuditLog(database, partial(require_keys, source), home.runtime, SystemClock(), redactor)

    return Trail(opening)


def build_key_source(home: Home, settings: Settings, keys: ProviderKeys, environ: Mapping[str, str]) -> KeySource:
    """Raises KeysRefused."""
    given = keys.get(KEY_VARIABLE)
    if given is not None and not environ.get(KEY_VARIABLE, "").strip():
        raise KeysRefused(
            f"{KEY_VARIABLE} stands in .env, inside the home, whose readers would have the key as well.",
            fix="set it in the environment of the process, and take it out of .env",
        )
    return key_source(settings.key_source, settings.key_file, home.root, environ, given)


def has_database(home: Home, settings: Settings) -> bool:
    """Whether there may be anything in it; opening one that is not there would make it."""
    return settings.database_url is not None or (home.runtime / DATABASE_FILE).exists()


def build_users(trail: Trail) -> Users:
    """Raises ConfigError, KeysRefused, StorageFailed."""
    from council.users.directory import Users

    return Users(trail.log(), SystemClock())


def known_users(home: Home, settings: Settings, trail: Trail) -> Users | None:
    """None where there never were any, which opens nothing. Raises ConfigError, KeysRefused, StorageFailed."""
    return build_users(trail) if has_database(home, settings) else None


def build_vault(
    home: Home, settings: Settings, keys: ProviderKeys, environ: Mapping[str, str], trail: Trail, redactor: Redactor
) -> Vault:
    """Raises ConfigError, KeysRefused, StorageFailed."""
    if settings.vault == "aws":
        from council.vault.aws import AwsVault

        return AwsVault(trail.log(), settings.aws_prefix, SystemClock(), redactor.register)
    from council.vault.database import DatabaseVault

    source = build_key_source(home, settings, keys, environ)
    return DatabaseVault(trail.log(), source, SystemClock(), redactor.register)


def key_in_vault(
    name: str, home: Home, settings: Settings, keys: ProviderKeys, environ: Mapping[str, str]
) -> Secret | None:
    """A provider's key that the steward put into the vault; None when it holds none of that name. Raises CredentialRefused
    (expired, changed), KeysRefused, StorageFailed, ConfigError."""
    if name == KEY_VARIABLE or not (has_database(home, settings) or settings.vault == "aws"):
        return None
    from council.vault.sealing import Place

    place = Place(STEWARD.id, "", name)
    trail = build_trail(home, settings, keys, environ, keys.redactor)
    try:
        vault = build_vault(home, settings, keys, environ, trail, keys.redactor)
        if not any(entry.place == place for entry in vault.list()):
            return None
        return vault.get(place, actor=STEWARD.id, purpose="a model's key")
    finally:
        trail.close()


def require_authority(command: RunCommand, users: Callable[[], Users | None]) -> None:
    """A command on somebody's behalf can do what that person may. `users` None: there never were any. Raises
    CommandInvalid."""
    if command.user is None:
        return
    known = users()
    user = known.get(command.user) if known is not None else None
    if user is None:
        raise CommandInvalid(
            f"`user` is {command.user!r}, and there is no such user here.",
            fix=f"`council users add {command.user}` makes one; without `user` the command acts as the steward",
            field="user",
            refused=True,
        )
    if not user.roles:
        raise CommandInvalid(
            f"`user` is {command.user!r}, who has no role here any more.",
            fix=f"`council users roles {command.user} --grant user`, or leave `user` out",
            field="user",
            refused=True,
        )
    if command.type in ADMINISTRATORS_ONLY and user.principal.kind != "administrator":
        raise CommandInvalid(
            f"`user` is {command.user!r}, who is no administrator: a {command.type} command is not theirs to give.",
            fix=f"`council users roles {command.user} --grant administrator`, or leave `user` out",
            field="user",
            refused=True,
        )


def open_database(home: Home, settings: Settings) -> Database:
    """The home's database with the tables of every room. Raises ConfigError, StorageFailed."""
    from council.storage.database import Database, url_of

    for room in TABLES:
        import_module(room)
    return Database.open(url_of(settings.database_url, home.runtime))
