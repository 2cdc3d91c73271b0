"""Credentials in the vault of a home, and the key files of all homes of this user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from council.desk.desk import Desk
from council.errors import UsageError
from council.ids import timestamp
from council.keys.key_sources import HomeKeys
from council.vault.contract import StoredCredential
from council.vault.database import DatabaseVault, entries_in


def stored_credentials(desk: Desk) -> Sequence[StoredCredential]:
    """Everything that the vault holds, without the values. Raises ConfigError, StorageFailed."""
    if desk.settings.vault == "aws":
        with desk.safe() as safe:
            return safe.vault().list()
    return entries_in(desk.store)


@contextmanager
def own_vault(desk: Desk) -> Iterator[DatabaseVault]:
    """The vault in the database. Raises UsageError for one that a service keeps: it rotates and checks by itself."""
    with desk.safe() as safe:
        built = safe.vault()
        if not isinstance(built, DatabaseVault):
            raise UsageError("a service keeps this vault, not this home.", fix="rotate and check it there")
        yield built


def expiry_of(text: str) -> str:
    """The time at which a credential ends, as it is recorded; empty for none. Raises UsageError."""
    if not text:
        return ""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text[:40]!r} is not a time.", fix="write 2027-01-31 or 2027-01-31T12:00:00Z") from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    if moment <= datetime.now(UTC):
        raise UsageError(f"{text} is in the past.", fix="name a future time")
    return timestamp(moment)


def removable_keys(found: Sequence[HomeKeys], id_: str) -> HomeKeys:
    """The key file of this id, which no home uses. Raises UsageError."""
    wanted = next((each for each in found if each.id == id_), None)
    if wanted is None:
        raise UsageError(f"there is no key file {id_!r}.", fix="`council vault keys` lists them")
    if wanted.in_use:
        raise UsageError(f"the home {wanted.home} uses these keys.", fix="remove that home first")
    return wanted
