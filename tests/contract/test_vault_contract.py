"""One vault, wherever it keeps its secrets: SQLite, PostgreSQL, AWS Secrets Manager."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from council.app.home_store import open_store
from council.audit.log import AuditLog
from council.errors import CredentialRefused, StorageFailed
from council.keys.keyring import Keyring, new_key
from council.redaction import Redactor, Secret
from council.settings import Home, Settings
from council.storage.store import Store
from council.vault.aws import AwsVault
from council.vault.contract import Vault
from council.vault.database import DatabaseVault
from council.vault.sealing import CredentialPlace

PLACE = CredentialPlace("anna", "CALLER", "twilio_api_key")
VALUE = "tw-canary-0123456789"


class HeldClock:
    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment

    def monotonic_s(self) -> float:
        return self.moment.timestamp()


@dataclass
class HeldKeys:
    """A key source in memory, which keeps what it was told to."""

    keyring: Keyring = field(default_factory=lambda: Keyring((new_key(),)))
    name: str = "memory"
    writable: bool = True

    def load(self) -> Keyring | None:
        return self.keyring

    def save(self, keyring: Keyring) -> None:
        self.keyring = keyring

    def held(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


@dataclass
class Site:
    vault: Vault
    log: AuditLog
    store: Store
    clock: HeldClock
    keys: HeldKeys
    redactor: Redactor

    def change(self, statement: str) -> None:
        self.store.write_now(lambda tx: tx.execute(statement))


def site(tmp_path: Path, database_url: str | None, *, aws: bool = False) -> Site:
    home = Home(tmp_path / "home")
    home.root.mkdir(exist_ok=True)
    home.ensure_runtime()
    clock, keys, redactor = HeldClock(), HeldKeys(), Redactor()
    store = open_store(home, Settings(database_url=database_url))
    log = AuditLog(store, lambda: keys.keyring, home.runtime, clock)
    vault: Vault = DatabaseVault(log, keys, clock, redactor.register)
    if aws:
        vault = AwsVault(log, "test-home", clock, redactor.register)
    return Site(vault, log, store, clock, keys, redactor)


@pytest.fixture(params=["sqlite", "postgresql", "aws"])
def here(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    if request.param == "aws":
        from moto import mock_aws

        for name, value in {"ID": "testing", "KEY": "testing"}.items():
            monkeypatch.setenv(f"AWS_{'ACCESS_KEY_ID' if name == 'ID' else 'SECRET_ACCESS_KEY'}", value)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        with mock_aws():
            found = site(tmp_path, None, aws=True)
            yield found
            found.store.close()
        return
    url = None if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    found = site(tmp_path, url)
    yield found
    found.store.close()


@pytest.fixture
def database_site(database_url: str | None, tmp_path: Path) -> Iterator[Site]:
    found = site(tmp_path, database_url)
    yield found
    found.store.close()


def test_what_was_set_is_read_again_by_its_place_alone(here: Site) -> None:
    here.vault.set(PLACE, Secret(VALUE))
    assert here.vault.get(PLACE, actor="anna", purpose="a call").reveal() == VALUE
    for other in (
        CredentialPlace("bert", "CALLER", PLACE.key),
        CredentialPlace("anna", "", PLACE.key),
        CredentialPlace("anna", "CALLER", "other"),
    ):
        with pytest.raises(CredentialRefused) as caught:
            here.vault.get(other, actor="anna", purpose="a call")
        assert caught.value.reason == "absent"


def test_a_new_value_is_a_new_version_in_the_same_place(here: Site) -> None:
    here.vault.set(PLACE, Secret("the first value"))
    assert here.vault.set(PLACE, Secret(VALUE)).version == 2
    assert here.vault.get(PLACE, actor="anna", purpose="a call").reveal() == VALUE
    assert [(entry.place, entry.version) for entry in here.vault.list()] == [(PLACE, 2)]


def test_names_that_differ_in_case_alone_are_two_places(here: Site) -> None:
    for name, values in (("key", ["first"]), ("KEY", ["second", "third"]), ("key_2", ["fourth", "fifth", "sixth"])):
        for value in values:
            here.vault.set(CredentialPlace("anna", "", name), Secret(f"{value} value"))
    read = [
        here.vault.get(CredentialPlace("anna", "", name), actor="anna", purpose="a call")
        for name in ("key", "KEY", "key_2")
    ]
    assert [value.reveal() for value in read] == ["first value", "third value", "sixth value"]


def test_a_list_is_in_order_and_shows_no_value(here: Site) -> None:
    places = [CredentialPlace("steward", "", "b"), CredentialPlace("steward", "", "a"), PLACE]
    for place in places:
        here.vault.set(place, Secret(VALUE), expires_at="2027-01-01T00:00:00Z")
    listed = here.vault.list()
    assert [entry.place for entry in listed] == [places[2], places[1], places[0]]
    assert {entry.expires_at for entry in listed} == {"2027-01-01T00:00:00Z"}
    assert VALUE not in repr(listed)


def test_what_is_removed_is_gone(here: Site) -> None:
    here.vault.set(PLACE, Secret(VALUE))
    here.vault.remove(PLACE)
    assert list(here.vault.list()) == []
    with pytest.raises(CredentialRefused):
        here.vault.get(PLACE, actor="anna", purpose="a call")
    with pytest.raises(CredentialRefused):
        here.vault.remove(PLACE)


def test_an_expired_credential_is_refused_from_its_moment_on(here: Site) -> None:
    here.vault.set(PLACE, Secret(VALUE), expires_at="2026-11-21T12:00:01Z")
    assert here.vault.get(PLACE, actor="anna", purpose="a call").reveal() == VALUE
    here.clock.moment += timedelta(seconds=1)
    with pytest.raises(CredentialRefused) as caught:
        here.vault.get(PLACE, actor="anna", purpose="a call")
    assert caught.value.reason == "expired"


def test_every_change_and_every_read_leaves_a_record_without_the_value(here: Site) -> None:
    here.vault.set(PLACE, Secret(VALUE))
    here.vault.get(PLACE, actor="anna", purpose="a call")
    with pytest.raises(CredentialRefused):
        here.vault.get(CredentialPlace("anna", "", "none"), actor="anna", purpose="a guess")
    here.vault.remove(PLACE)
    records = here.log.tail(10)
    assert [(record.kind, record.action) for record in records] == [
        ("effect", "credential_set"),
        ("secret_read", "credential_read"),
        ("secret_read", "credential_read"),
        ("effect", "credential_removed"),
    ]
    assert VALUE not in repr(records)
    assert here.log.verify().findings == ()


def test_without_its_record_no_secret_is_read(here: Site) -> None:
    here.vault.set(PLACE, Secret(VALUE))
    here.change("ALTER TABLE audit_records RENAME TO gone")
    with pytest.raises(StorageFailed):
        here.vault.get(PLACE, actor="anna", purpose="a call")
    with pytest.raises(StorageFailed):
        here.vault.set(PLACE, Secret("another value"))
    here.change("ALTER TABLE gone RENAME TO audit_records")
    assert here.vault.get(PLACE, actor="anna", purpose="a call").reveal() == VALUE


def test_what_was_set_or_read_is_known_to_redaction(here: Site) -> None:
    here.vault.set(PLACE, Secret(VALUE))
    assert VALUE not in here.redactor.redact(f"an error with {VALUE} in it")


SWAPS = {
    "the user": "UPDATE user_credentials SET user_id = 'mallory' WHERE user_id = 'anna'",
    "the role": "UPDATE user_credentials SET specialist_role = 'OTHER'",
    "the name": "UPDATE user_credentials SET credential_key = 'other'",
    "the version": "UPDATE user_credentials SET version = 7",
    "the expiry": "UPDATE user_credentials SET expires_at = '2036-01-01T00:00:00Z'",
    "no expiry": "UPDATE user_credentials SET expires_at = NULL",
}


@pytest.mark.parametrize("what", SWAPS)
def test_a_row_that_was_edited_does_not_open(database_site: Site, what: str) -> None:
    here = database_site
    here.vault.set(PLACE, Secret(VALUE), expires_at="2027-01-01T00:00:00Z")
    here.change(SWAPS[what])
    [entry] = here.vault.list()
    with pytest.raises(CredentialRefused) as caught:
        here.vault.get(entry.place, actor="anna", purpose="a call")
    assert caught.value.reason == "tampered"
    assert isinstance(here.vault, DatabaseVault)
    assert entry.place in [failed.place for failed, _ in here.vault.verify()]


def test_a_rotation_seals_everything_anew_and_retires_the_old_key(database_site: Site) -> None:
    here = database_site
    before = here.keys.keyring.primary.kid
    places = [CredentialPlace("anna", "CALLER", f"key_{number}") for number in range(20)]
    for place in places:
        here.vault.set(place, Secret(f"value of {place}"))
    assert isinstance(here.vault, DatabaseVault)
    done = here.vault.rotate()
    assert (done.resealed, done.retired) == (20, (before,))
    assert {entry.kid for entry in here.vault.list()} == {done.kid}
    for place in places:
        assert here.vault.get(place, actor="anna", purpose="a call").reveal() == f"value of {place}"
    assert here.log.verify().findings == ()  # records that the old key signed, too


def test_a_rotation_that_meets_a_record_that_does_not_open_changes_nothing(database_site: Site) -> None:
    here = database_site
    for name in ("a", "b", "c"):
        here.vault.set(CredentialPlace("anna", "", name), Secret(VALUE))
    here.change("UPDATE user_credentials SET version = 9 WHERE credential_key = 'b'")
    assert isinstance(here.vault, DatabaseVault)
    with pytest.raises(CredentialRefused):
        here.vault.rotate()
    for name in ("a", "c"):
        assert here.vault.get(CredentialPlace("anna", "", name), actor="anna", purpose="a call").reveal() == VALUE


def test_keys_that_somebody_else_keeps_are_rotated_by_putting_a_new_one_first(database_site: Site) -> None:
    here = database_site
    here.vault.set(PLACE, Secret(VALUE))
    here.keys.writable, older = False, here.keys.keyring
    here.keys.keyring = older.grown()
    assert isinstance(here.vault, DatabaseVault)
    done = here.vault.rotate()
    assert (done.resealed, done.retired) == (1, ())
    assert here.vault.get(PLACE, actor="anna", purpose="a call").reveal() == VALUE
    assert [entry.kid for entry in here.vault.list()] == [here.keys.keyring.primary.kid]


def test_what_was_put_back_taken_away_or_slipped_in_is_found_by_the_audit(database_site: Site) -> None:
    """Each of these rows opens: it was sealed for its place."""
    here = database_site
    assert isinstance(here.vault, DatabaseVault)
    places = {name: CredentialPlace("anna", "CALLER", name) for name in ("renewed", "removed", "deleted", "kept")}
    for place in (*places.values(), CredentialPlace("anna", "", "kept")):
        here.vault.set(place, Secret(VALUE))
    here.change("CREATE TABLE copies AS SELECT * FROM user_credentials")
    here.vault.set(places["renewed"], Secret("another value"))
    here.vault.remove(places["removed"])
    assert here.vault.verify() == []
    assert [(one.kind, one.action, one.actor) for one in here.log.tail(1)] == [
        ("secret_read", "vault_verified", "steward")
    ]
    here.change("DELETE FROM user_credentials WHERE credential_key IN ('renewed', 'deleted')")
    back = "INSERT INTO user_credentials SELECT * FROM copies WHERE credential_key IN ('renewed', 'removed')"
    here.change(back)
    problems = {entry.place.key: problem for entry, problem in here.vault.verify()}
    assert set(problems) == {"renewed", "removed", "deleted"}
    assert "the last one set was version 2" in problems["renewed"]
    assert "was removed" in problems["removed"]
    assert "is gone" in problems["deleted"]
    for name in ("renewed", "removed"):
        with pytest.raises(CredentialRefused) as caught:
            here.vault.get(places[name], actor="anna", purpose="a call")
        assert caught.value.reason == "tampered"
    assert here.vault.get(places["kept"], actor="anna", purpose="a call").reveal() == VALUE


def test_what_was_forgotten_of_the_audit_shuts_no_credential(database_site: Site) -> None:
    here = database_site
    assert isinstance(here.vault, DatabaseVault)
    here.vault.set(PLACE, Secret("the first value"))
    here.vault.set(PLACE, Secret(VALUE), expires_at="2027-01-31T00:00:00Z")
    assert here.log.forget(lambda words: "2027-01-31" in words, "a-run", ()) == 1
    assert here.vault.get(PLACE, actor="anna", purpose="a call").reveal() == VALUE
    assert here.vault.verify() == []
