"""What is kept of a home: its store, its memory, and on the store its audit, users and vault."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from council.agents.memory import Memory
from council.audit.head_file import HEAD_FILE
from council.audit.trail import Trail
from council.commands.models import RunCommand
from council.errors import CommandInvalid, KeysRefused
from council.ids import STEWARD, SystemClock
from council.keys.key_sources import KEY_VARIABLE, KeySource, key_source, load_or_create, require_keys
from council.redaction import Redactor, Secret
from council.settings import Home, ProviderKeys, Settings
from council.storage.reader import Looking, looking
from council.storage.store import Store
from council.storage.versions import DATABASE_FILE
from council.users.people import user_of

if TYPE_CHECKING:
    from council.audit.log import AuditLog
    from council.users.directory import Users
    from council.vault.contract import Vault

TABLES = (
    "council.audit.tables",
    "council.budgets.tables",
    "council.engine.tables",
    "council.users.tables",
    "council.vault.tables",
)  # declared on the shared metadata
ADMINISTRATORS_ONLY = ("memory", "forget")


def build_memory(home: Home, store: Looking) -> Memory:
    return Memory(home.session_states, store)


def build_trail(
    home: Home, store: Looking, settings: Settings, keys: ProviderKeys, environ: Mapping[str, str], redactor: Redactor
) -> Trail:
    """The home's audit; no key is loaded or made before its first record. What records needs a `Store`."""

    def opening() -> AuditLog:
        from council.audit.log import AuditLog

        source = build_key_source(home, settings, keys, environ)
        (require_keys if (home.runtime / HEAD_FILE).exists() else load_or_create)(source)
        return AuditLog(store, partial(require_keys, source), home.runtime, SystemClock(), redactor)

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


def open_store(home: Home, settings: Settings) -> Store:
    """Makes the home's run-time folder and its database where there are none. Raises ConfigError, StorageFailed."""
    home.ensure_runtime()
    return Store.open(home.runtime, settings.database_url)


def look_at(home: Home, settings: Settings) -> Looking:
    """For who only looks: makes nothing. Raises ConfigError, StorageFailed."""
    return looking(home.runtime, settings.database_url)


def build_users(trail: Trail) -> Users:
    """Raises ConfigError, KeysRefused, StorageFailed."""
    from council.users.directory import Users

    return Users(trail.log(), SystemClock())


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
    in_database = settings.database_url is not None or (home.runtime / DATABASE_FILE).exists()
    if name == KEY_VARIABLE or not (in_database or settings.vault == "aws"):
        return None
    from council.vault.sealing import CredentialPlace

    place = CredentialPlace(STEWARD.id, "", name)
    with contextlib.closing(open_store(home, settings)) as store:
        trail = build_trail(home, store, settings, keys, environ, keys.redactor)
        vault = build_vault(home, settings, keys, environ, trail, keys.redactor)
        if not any(entry.place == place for entry in vault.list()):
            return None
        return vault.get(place, actor=STEWARD.id, purpose="a model's key")


def require_authority(command: RunCommand, store: Looking) -> None:
    """A command on somebody's behalf can do what that person may. Raises CommandInvalid."""
    if command.user is None:
        return
    user = user_of(store, command.user)
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
