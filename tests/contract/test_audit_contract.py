"""The audit and the users, whichever database they are in."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from council.app.home_store import open_store
from council.audit.chain import verify_lines
from council.audit.head_file import HEAD_FILE, read_head
from council.audit.log import AuditLog, Transaction
from council.audit.trail import MAX_REFUSALS, record_refusals
from council.errors import KeysRefused, StorageFailed, UsageError
from council.ids import SystemClock
from council.keys.keyring import Keyring, new_key
from council.redaction import Redactor, Secret
from council.settings import Home, Settings
from council.storage.store import Store
from council.users.enrolment import add_user, change_roles
from council.users.people import all_users

KEYS = Keyring((new_key(),))


@pytest.fixture
def settings(database_url: str | None) -> Settings:
    return Settings(database_url=database_url)


def change(store: Store, statement: str, *values: object) -> None:
    store.write_now(lambda tx: tx.execute(statement, values))


@pytest.fixture
def log(store: Store, home: Home) -> AuditLog:
    return AuditLog(store, lambda: KEYS, home.runtime, SystemClock())


def test_what_raises_changes_nothing(store: Store, log: AuditLog) -> None:
    def fail() -> None:
        with log.transaction() as transaction:
            transaction.record("effect", "half_done", "steward", {})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert log.tail(5) == []
    assert log.verify().findings == ()


def test_a_step_of_a_run_is_recorded_once(store: Store, log: AuditLog) -> None:
    with log.transaction() as transaction:
        assert transaction.record("effect", "run_ended", "steward", {}, run_id="r", step="commit") is True
        assert transaction.record("effect", "run_ended", "steward", {}, run_id="r", step="commit") is False
    insert = (
        "INSERT INTO audit_records (seq, at, kind, action, actor, run_id, step, detail_sha256, kid, mac) "
        "VALUES (99, '', '', '', '', 'r', 'commit', '', '', '')"
    )
    with pytest.raises(StorageFailed):
        change(store, insert)
    assert [record.seq for record in log.tail(5)] == [1]
    assert [record.seq for record in log.tail(5, kind=log.tail(1)[0].kind)] == [1]
    assert log.tail(5, skip=1) == log.tail(5, actor="nobody") == log.tail(5, action="no_action") == []


def test_many_who_record_at_once_make_one_chain(home: Home, settings: Settings, store: Store) -> None:
    def append(name: str) -> None:
        own = open_store(home, settings)
        log = AuditLog(own, lambda: KEYS, home.runtime, SystemClock())
        for number in range(10):
            with log.transaction() as transaction:
                transaction.record("effect", name, "steward", {"number": number})
        own.close()

    threads = [threading.Thread(target=append, args=(f"writer_{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    log = AuditLog(store, lambda: KEYS, home.runtime, SystemClock())
    verdict = log.verify()
    assert (verdict.records, verdict.findings) == (40, ())
    for name in {record.action for record in log.tail(40)}:
        numbers = [record.detail for record in log.tail(40) if record.action == name]
        assert numbers == [f'{{"number":{number}}}' for number in range(10)]


def test_an_export_verifies_by_itself(log: AuditLog) -> None:
    for number in range(3):
        with log.transaction() as transaction:
            transaction.record("refusal", "request_refused", "steward", {"number": number, "wörd": "\u2028"})
    lines = list(log.export())
    assert verify_lines(lines, (), lambda kid: KEYS.primary.derive("audit")).findings == ()
    assert len(lines) == 4


CUTS = {
    "a changed detail": ("UPDATE audit_records SET detail = '{}' WHERE seq = 2", "bad_record", 2),
    "a changed actor": ("UPDATE audit_records SET actor = 'somebody' WHERE seq = 3", "bad_record", 3),
    "a record taken out": ("DELETE FROM audit_records WHERE seq = 2", "bad_record", 2),
    "a blanked detail": (
        "UPDATE audit_records SET detail = NULL, salt = NULL WHERE seq = 2",
        "forgotten_unrecorded",
        2,
    ),
    "a record before the first": (
        "INSERT INTO audit_records (seq, at, kind, action, actor, run_id, step, detail_sha256, kid, mac) "
        "VALUES (-1, '', '', '', '', 'a run to come', 'commit', '', '', '')",
        "bad_record",
        1,
    ),
    "the end cut off": ("DELETE FROM audit_records WHERE seq > 3", "truncated", 4),
    "all of it cut off": ("DELETE FROM audit_records", "truncated", 1),
}


@pytest.mark.parametrize("name", CUTS)
def test_what_was_done_to_the_chain_is_found(store: Store, log: AuditLog, name: str) -> None:
    for number in range(5):
        with log.transaction() as transaction:
            transaction.record("effect", "run_ended", "steward", {"number": number})
    statement, code, seq = CUTS[name]
    change(store, statement)
    [finding] = log.verify().findings[:1]
    assert (finding.code, finding.seq) == (code, seq)


@pytest.mark.parametrize(
    "column",
    ["at", "kind", "action", "actor", "run_id", "step", "detail", "salt", "detail_sha256", "kid", "mac"],
)
def test_a_change_of_any_column_of_any_record_is_found_there(store: Store, log: AuditLog, column: str) -> None:
    for number in range(5):
        with log.transaction() as transaction:
            transaction.record("effect", "run_ended", "steward", {"n": number}, run_id=f"r{number}", step="commit")
    for seq in (1, 3, 5):
        find = f"SELECT {column} FROM audit_records WHERE seq = {seq}"
        was = store.read(lambda tx, find=find: tx.execute(find).fetchone()[0])  # type: ignore[misc]
        changed = was.swapcase() if was.swapcase() != was else was[:-1] + ("1" if was[-1] == "0" else "0")
        update = f"UPDATE audit_records SET {column} = ? WHERE seq = {seq}"
        change(store, update, changed)
        [finding, *_] = log.verify().findings
        assert (finding.code, finding.seq) == ("bad_record", seq)
        change(store, update, was)
    assert log.verify().findings == ()


@pytest.mark.parametrize(
    "what",
    ["chain = 'f' || substr(chain, 2, 30) || 'x'", "seq = 4", "seq = 6", "mac = repeat_f"],
)
def test_a_change_of_the_head_is_found(store: Store, log: AuditLog, what: str) -> None:
    for number in range(5):
        with log.transaction() as transaction:
            transaction.record("effect", "run_ended", "steward", {"n": number})
    change(store, f"UPDATE audit_chain SET {what.replace('repeat_f', repr('f' * 64))}")
    assert log.verify().findings != ()


def test_a_chain_set_back_with_its_head_is_found_by_the_file_beside_it_and_stays_found(
    store: Store, log: AuditLog
) -> None:
    for number in range(5):
        with log.transaction() as transaction:
            transaction.record("effect", "run_ended", "steward", {"number": number})
    change(store, "DELETE FROM audit_records WHERE seq > 3")
    change(store, "UPDATE audit_chain SET seq = 3, mac = (SELECT mac FROM audit_records WHERE seq = 3)")
    assert [finding.code for finding in log.verify().findings] == ["truncated"]
    for number in range(4):  # the chain grows past the place: the old head is kept as evidence
        with log.transaction() as transaction:
            transaction.record("effect", "later", "steward", {"number": number})
    assert [finding.code for finding in log.verify().findings] == ["head_mismatch"]


def test_a_chain_is_not_continued_under_other_keys(store: Store, home: Home, log: AuditLog) -> None:
    with log.transaction() as transaction:
        transaction.record("effect", "run_ended", "steward", {})
    others = Keyring((new_key(),))
    with (
        pytest.raises(KeysRefused, match=KEYS.primary.kid),
        AuditLog(store, lambda: others, home.runtime, SystemClock()).transaction(),
    ):
        pass
    both = Keyring((new_key(), replace(KEYS.primary, status="active")))
    with AuditLog(store, lambda: both, home.runtime, SystemClock()).transaction() as transaction:
        transaction.record("effect", "run_ended", "steward", {})
    assert AuditLog(store, lambda: both, home.runtime, SystemClock()).verify().findings == ()


def test_a_head_that_another_process_noted_later_stays(
    store: Store, home: Home, log: AuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit is over before its head is noted: the next one may be quicker."""
    with log.transaction() as transaction:
        transaction.record("effect", "first", "steward", {})
    later = AuditLog(store, lambda: KEYS, home.runtime, SystemClock())

    original = AuditLog.settle

    def slow(self: AuditLog, done: Transaction) -> None:
        monkeypatch.undo()
        with later.transaction() as transaction:
            transaction.record("effect", "third", "steward", {})
        original(self, done)

    monkeypatch.setattr(AuditLog, "settle", slow)
    with log.transaction() as transaction:
        transaction.record("effect", "second", "steward", {})
    head = read_head(home.runtime / HEAD_FILE)
    assert head is not None
    assert head.seq == 3


def test_users_have_the_roles_they_were_granted_and_each_change_is_recorded(log: AuditLog) -> None:
    add_user(log, "bert", "", ["user"])
    add_user(log, "anna", "Anna", ["user"])
    assert change_roles(log, "anna", ["administrator"], ["user"]).roles == ("administrator",)
    assert [(user.user_id, user.principal.kind) for user in all_users(log.store)] == [
        ("anna", "administrator"),
        ("bert", "user"),
    ]
    assert [record.action for record in log.tail(9)] == ["user_added", "user_added", "role_granted", "role_revoked"]
    for unfit in (
        lambda: add_user(log, "anna", "", ["user"]),
        lambda: add_user(log, "Steward", "", ["user"]),
        lambda: change_roles(log, "carl", ["user"], []),
    ):
        with pytest.raises(UsageError):
            unfit()
    assert len(log.tail(9)) == 4


def test_the_name_of_a_user_holds_no_secret(store: Store, home: Home) -> None:
    log = AuditLog(store, lambda: KEYS, home.runtime, SystemClock())
    token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    assert add_user(log, "ada", f"Ada {token}", ["user"]).name == "Ada [secret]"
    assert [user.name for user in all_users(store)] == ["Ada [secret]"]


def test_a_role_of_nobody_is_refused_by_the_database(store: Store) -> None:
    with pytest.raises(StorageFailed):
        change(store, "INSERT INTO roles (user_id, role) VALUES ('nobody', 'user')")


def test_a_detail_holds_half_of_a_pair_and_no_secret(store: Store, home: Home) -> None:
    value = 'canary-0123"456789\\'
    log = AuditLog(store, lambda: KEYS, home.runtime, SystemClock(), Redactor([Secret(value)]))
    with log.transaction() as transaction:
        transaction.record("refusal", "request_refused", "steward", {"request": ("half \ud800", f'{{"a":"{value}"}}')})
    [record] = log.tail(1)
    assert record.detail == '{"request":["half \\ud800","{\\"a\\":\\"[secret]\\"}"]}'
    assert log.verify().findings == ()


def test_what_was_refused_is_told_once_in_whatever_order_it_comes(log: AuditLog) -> None:
    """A run that waits tells what was refused so far; when it goes on, another agent's may stand before it."""
    first, second = {"request": "a"}, {"request": "b"}
    for refused in ([first], [second, first], [second, first, first]):
        with log.transaction() as transaction:
            transaction.record_missing("refusal", "request_refused", "steward", refused, run_id="r", step="refusal")
    assert [record.detail for record in log.tail(9)] == ['{"request":"a"}', '{"request":"b"}', '{"request":"a"}']
    assert [record.step for record in log.tail(9)] == ["refusal-1", "refusal-2", "refusal-3"]


def test_of_more_refusals_than_are_recorded_the_audit_says_that_there_were_more(log: AuditLog) -> None:
    refused = [{"request": f"{number}"} for number in range(MAX_REFUSALS + 2)]
    for count in (MAX_REFUSALS, MAX_REFUSALS + 1, MAX_REFUSALS + 2):
        with log.transaction() as transaction:
            record_refusals(transaction, "r", "steward", refused[:count])
    assert log.count(action="request_refused") == MAX_REFUSALS
    [more] = log.tail(9, action="requests_refused")
    assert (more.kind, more.detail) == ("refusal", f'{{"more_than":{MAX_REFUSALS}}}')
