"""The contract of a vault, wherever it keeps its secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from council.errors import CredentialRefused
from council.redaction import Secret
from council.vault.sealing import MAX_SECRET_BYTES, CredentialPlace

CREDENTIAL_SET, CREDENTIAL_REMOVED = "credential_set", "credential_removed"  # the audit's words


@dataclass(frozen=True)
class StoredCredential:
    """A credential without its value. `expires_at` is RFC 3339, empty for never; `kid` names the key that sealed it."""

    place: CredentialPlace
    version: int
    created_at: str
    expires_at: str
    kid: str


@dataclass(frozen=True)
class NewCredential:
    """A value for a place. `expires_at` as in `Entry`."""

    place: CredentialPlace
    value: Secret
    expires_at: str = ""


class Vault(Protocol):
    """Every change, by the steward, and every read is audited; what cannot be audited does not happen."""

    def set_all(self, given: Sequence[NewCredential]) -> Sequence[StoredCredential]:
        """Puts each value in its place, as its next version: all of them or, where a transaction covers it, none. Raises
        CredentialRefused, StorageFailed, KeysRefused."""

    def set(self, place: CredentialPlace, value: Secret, *, expires_at: str = "") -> StoredCredential:
        """Seals like `set_all`, one value."""
        [entry] = self.set_all([NewCredential(place, value, expires_at)])
        return entry

    def get(self, place: CredentialPlace, *, actor: str, purpose: str) -> Secret:
        """The value, from then on known to redaction. Raises CredentialRefused (absent, expired, tampered, …), StorageFailed,
        KeysRefused: then nothing was read."""

    def list(self) -> Sequence[StoredCredential]:
        """Every place that holds a value, in order."""

    def remove(self, place: CredentialPlace) -> None:
        """Raises CredentialRefused when there is nothing."""


def require_storable(given: NewCredential) -> None:
    """Raises CredentialRefused."""
    if not given.value or len(given.value.reveal().encode("utf-8", "surrogatepass")) > MAX_SECRET_BYTES:
        message = f"the value for {given.place} is empty or larger than {MAX_SECRET_BYTES} bytes."
        fix = "give it on standard input"
        raise CredentialRefused(message, reason="unfit", fix=fix)


def told_of(entry: StoredCredential) -> dict[str, object]:
    """The audit's detail of a value that was set."""
    return {"credential": str(entry.place), "version": entry.version, "expires_at": entry.expires_at}


def absent(place: CredentialPlace) -> CredentialRefused:
    return CredentialRefused(
        f"{place} is not in the vault.", reason="absent", fix="`council vault list` shows what is there"
    )


def expired(place: CredentialPlace, expires_at: str) -> CredentialRefused:
    return CredentialRefused(
        f"the credential {place} expired at {expires_at}.",
        reason="expired",
        fix="set it again with `council vault set`",
    )
