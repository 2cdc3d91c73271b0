"""Rotations that meet: whoever is second goes on from where the first one is, and no key is lost."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field

import pytest

from council.audit.log import AuditLog
from council.errors import StorageFailed
from council.ids import SystemClock
from council.keys.keyring import Keyring, new_key
from council.redaction import Secret
from council.settings import Home
from council.storage.store import Store
from council.vault.database import DatabaseVault
from council.vault.sealing import CredentialPlace

PLACE = CredentialPlace("anna", "CALLER", "twilio_api_key")
VALUE = "tw-canary-0123456789"
MEETING_S = 1.0


@dataclass
class MeetingKeys:
    """A key source whose first two readers wait for each other, if both come."""

    keyring: Keyring = field(default_factory=lambda: Keyring((new_key(),)))
    name: str = "memory"
    writable: bool = True
    meeting: threading.Barrier | None = None

    def load(self) -> Keyring | None:
        found = self.keyring
        if self.meeting is not None:
            try:
                self.meeting.wait(MEETING_S)
            except threading.BrokenBarrierError:
                self.meeting = None
        return found

    def save(self, keyring: Keyring) -> None:
        self.keyring = keyring

    def create(self, keyring: Keyring) -> Keyring:
        raise AssertionError("there are keys")

    def held(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


def vault_over(store: Store, home: Home, keys: MeetingKeys) -> DatabaseVault:
    return DatabaseVault(AuditLog(store, lambda: keys.keyring, home.runtime, SystemClock()), keys, SystemClock())


def test_two_rotations_at_once_lose_no_key(store: Store, home: Home) -> None:
    keys = MeetingKeys()
    vault = vault_over(store, home, keys)
    vault.set(PLACE, Secret(VALUE))
    made: list[str] = []
    keys.meeting = threading.Barrier(2)
    threads = [threading.Thread(target=lambda: made.append(vault.rotate().kid)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(made) == 2
    assert {key.kid for key in keys.keyring.keys} >= set(made)
    assert vault.get(PLACE, actor="anna", purpose="a call").reveal() == VALUE
    log = AuditLog(store, lambda: keys.keyring, home.runtime, SystemClock())
    assert log.verify().findings == ()
    assert [(one.action, one.actor) for one in log.tail(9, action="keys_rotated")] == [("keys_rotated", "steward")] * 2


def test_files_that_cannot_be_swept_undo_neither_a_rotation_nor_a_removal(
    store: Store, home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    vault = vault_over(store, home, MeetingKeys())
    vault.set(PLACE, Secret(VALUE))

    def busy() -> None:
        raise StorageFailed("the database is being read.")

    monkeypatch.setattr(store, "sweep", busy)
    done = vault.rotate()
    assert [entry.kid for entry in vault.list()] == [done.kid]
    vault.remove(PLACE)
    assert list(vault.list()) == []
    assert caplog.text.count("may still be in") == 2
