"""What a vault is, wherever it keeps its secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from council.errors import CredentialRefused
from council.ids import STEWARD
from council.redaction import Secret
from council.vault.sealing import Place


@dataclass(frozen=True)
class Entry:
    """A credential without its value. `expires_at` is RFC 3339, empty for never; `kid` names the key that sealed it."""

    place: Place
    version: int
    created_at: str
    expires_at: str
    kid: str


class Vault(Protocol):
    """Every change and every read is audited; what cannot be audited does not happen."""

    def set(self, place: Place, value: Secret, *, expires_at: str = "", actor: str = STEWARD.id) -> Entry:
        """Puts a value in a place, as its next version. Raises CredentialRefused, StorageFailed, KeysRefused."""

    def get(self, place: Place, *, actor: str, purpose: str) -> Secret:
        """The value, from then on known to redaction. Raises CredentialRefused (absent, expired, tampered, …), StorageFailed,
        KeysRefused: then nothing was read."""

    def list(self) -> Sequence[Entry]:
        """Every place that holds a value, in order."""

    def remove(self, place: Place, *, actor: str = STEWARD.id) -> None:
        """Raises CredentialRefused when there is nothing."""


def absent(place: Place) -> CredentialRefused:
    return CredentialRefused(
        f"the vault holds no {place}.", reason="absent", fix="`council vault list` shows what it holds"
    )


def expired(place: Place, expires_at: str) -> CredentialRefused:
    return CredentialRefused(
        f"the credential {place} expired at {expires_at}.",
        reason="expired",
        fix="set it again with `council vault set`",
    )
