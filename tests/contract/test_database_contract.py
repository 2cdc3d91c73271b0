"""One database, whichever it is: SQLite and PostgreSQL keep the same promises."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from council.app.safekeeping import open_database
from council.audit.chain import Head, verify_lines
from council.audit.head_file import HEAD_FILE, read_head
from council.audit.log import AuditLog
from council.errors import DatabaseTooNew, KeysRefused, StorageFailed, UsageError
from council.ids import SystemClock
from council.keys.keyring import Keyring, new_key
from council.redaction import Redactor, Secret
from council.settings import Home, Settings
from council.storage.database import Database, metadata, url_of
from council.storage.database_version import VERSIONS
from council.storage.migrations import upgrade
from council.users.directory import Users

KEYS = Keyring((new_key(),))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.root.mkdir()
    home.ensure_runtime()
    return home


@pytest.fixture
def settings(database_url: str | None) -> Settings:
    return Settings(database_url=database_url)


@pytest.fixture
def database(home: Home, settings: Settings) -> Iterator[Database]:
    database = open_database(home, settings)
    yield database
    database.close()


@pytest.fixture
def log(database: Database, home: Home) -> AuditLog:
    return AuditLog(database, lambda: KEYS, home.runtime, SystemClock())


def shape(database: Database) -> dict[str, object]:
    """Tables with their columns, keys and constraints, as the database tells them."""
    with database.reading() as connection:
        found = inspect(connection)
        return {
            table: {
                "columns": {
                    column["name"]: (str(column["type"]), column["nullable"]) for column in found.get_columns(table)
                },
                "primary": found.get_pk_constraint(table),
                "unique": sorted(map(str, found.get_unique_constraints(table))),
                "foreign": sorted(map(str, found.get_foreign_keys(table))),
                "indexes": sorted(map(str, found.get_indexes(table))),
                "checks": sorted(str(check["name"]) for check in found.get_check_constraints(table)),
            }
            for table in found.get_table_names()
        }


def test_the_migrations_make_what_a_new_database_is_made_as(database: Database, home: Home, settings: Settings) -> None:
    made = shape(database)
    with database.begin() as connection:
        metadata.drop_all(connection)
        connection.execute(text("DROP TABLE alembic_version"))
        upgrade(connection)
    assert shape(database) == made


@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_an_older_database_comes_forward_with_its_rows(
    database: Database, home: Home, settings: Settings, log: AuditLog, version: str
) -> None:
    newest = shape(database)
    with database.begin() as connection:
        metadata.drop_all(connection)
        connection.execute(text("DROP TABLE alembic_version"))
        upgrade(connection, version)
    with log.transaction() as transaction:
        transaction.record("effect", "written_before", "steward", {})
    again = open_database(home, settings)
    try:
        assert shape(again) == newest
        assert [record.action for record in AuditLog(again, lambda: KEYS, home.runtime, SystemClock()).tail(5)] == [
            "written_before"
        ]
    finally:
        again.close()


def test_a_newer_database_is_refused_and_left_alone(database: Database, home: Home, settings: Settings) -> None:
    with database.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DatabaseTooNew, match="9999"):
        open_database(home, settings)
    with database.reading() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "9999"


def test_processes_that_start_at_once_make_one_database(home: Home, settings: Settings) -> None:
    opened: list[Database] = []
    threads = [threading.Thread(target=lambda: opened.append(open_database(home, settings))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(opened) == 6
    with opened[0].reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM alembic_version")).scalar() == 1
    for database in opened:
        database.close()


def test_what_raises_changes_nothing(database: Database, log: AuditLog) -> None:
    def fail() -> None:
        with log.transaction() as transaction:
            transaction.record("effect", "half_done", "steward", {})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert log.tail(5) == []
    assert log.verify().findings == ()


def test_who_reads_sees_what_was_before_while_another_writes(
    database: Database, log: AuditLog, home: Home, settings: Settings
) -> None:
    other = open_database(home, settings)
    with log.transaction() as transaction:
        transaction.record("effect", "first", "steward", {})
    with log.transaction() as transaction:
        transaction.record("effect", "second", "steward", {})
        with other.reading() as connection:  # SQLite in WAL mode; otherwise it would wait for the writer
            assert connection.execute(text("SELECT action FROM audit_records")).scalars().all() == ["first"]
    assert [record.action for record in log.tail(5)] == ["first", "second"]
    other.close()


def test_a_step_of_a_run_is_recorded_once(database: Database, log: AuditLog) -> None:
    with log.transaction() as transaction:
        assert transaction.record("effect", "run_ended", "steward", {}, run_id="r", step="commit") is True
        assert transaction.record("effect", "run_ended", "steward", {}, run_id="r", step="commit") is False
    insert = text(
        "INSERT INTO audit_records (seq, at, kind, action, actor, run_id, step, detail_sha256, kid, mac) "
        "VALUES (99, '', '', '', '', 'r', 'commit', '', '', '')"
    )
    with pytest.raises(StorageFailed), database.begin() as connection:
        connection.execute(insert)
    assert [record.seq for record in log.tail(5)] == [1]


def test_many_who_record_at_once_make_one_chain(home: Home, settings: Settings, database: Database) -> None:
    def append(name: str) -> None:
        own = open_database(home, settings)
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
    log = AuditLog(database, lambda: KEYS, home.runtime, SystemClock())
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
def test_what_was_done_to_the_chain_is_found(database: Database, log: AuditLog, name: str) -> None:
    for number in range(5):
        with log.transaction() as transaction:
            transaction.record("effect", "run_ended", "steward", {"number": number})
    statement, code, seq = CUTS[name]
    with database.begin() as connection:
        connection.execute(text(statement))
    [finding] = log.verify().findings[:1]
    assert (finding.code, finding.seq) == (code, seq)


@pytest.mark.parametrize(
    "column",
    ["at", "kind", "action", "actor", "run_id", "step", "detail", "salt", "detail_sha256", "kid", "mac"],
)
def test_a_change_of_any_column_of_any_record_is_found_there(database: Database, log: AuditLog, column: str) -> None:
    for number in range(5):
        with log.transaction() as transaction:
            transaction.record("effect", "run_ended", "steward", {"n": number}, run_id=f"r{number}", step="commit")
    for seq in (1, 3, 5):
        with database.begin() as connection:
            was = connection.execute(text(f"SELECT {column} FROM audit_records WHERE seq = {seq}")).scalar()
            changed = was.swapcase() if was.swapcase() != was else was[:-1] + ("1" if was[-1] == "0" else "0")
            update = text(f"UPDATE audit_records SET {column} = :value WHERE seq = {seq}")
            connection.execute(update, {"value": changed})
        [finding, *_] = log.verify().findings
        assert (finding.code, finding.seq) == ("bad_record", seq)
        with database.begin() as connection:
            connection.execute(update, {"value": was})
    assert log.verify().findings == ()


@pytest.mark.parametrize(
    "change",
    ["chain = 'f' || substr(chain, 2, 30) || 'x'", "seq = 4", "seq = 6", "mac = repeat_f"],
)
def test_a_change_of_the_head_is_found(database: Database, log: AuditLog, change: str) -> None:
    for number in range(5):
        with log.transaction() as transaction:
            transaction.record("effect", "run_ended", "steward", {"n": number})
    with database.begin() as connection:
        connection.execute(text(f"UPDATE audit_chain SET {change.replace('repeat_f', repr('f' * 64))}"))
    assert log.verify().findings != ()


def test_a_chain_set_back_with_its_head_is_found_by_the_file_beside_it_and_stays_found(
    database: Database, log: AuditLog
) -> None:
    for number in range(5):
        with log.transaction() as transaction:
            transaction.record("effect", "run_ended", "steward", {"number": number})
    with database.begin() as connection:
        connection.execute(text("DELETE FROM audit_records WHERE seq > 3"))
        back = "UPDATE audit_chain SET seq = 3, mac = (SELECT mac FROM audit_records WHERE seq = 3)"
        connection.execute(text(back))
    assert [finding.code for finding in log.verify().findings] == ["truncated"]
    for number in range(4):  # the chain grows past the place: the old head is kept as evidence
        with log.transaction() as transaction:
            transaction.record("effect", "later", "steward", {"number": number})
    assert [finding.code for finding in log.verify().findings] == ["head_mismatch"]


def test_a_chain_is_not_continued_under_other_keys(database: Database, home: Home, log: AuditLog) -> None:
    with log.transaction() as transaction:
        transaction.record("effect", "run_ended", "steward", {})
    others = Keyring((new_key(),))
    with (
        pytest.raises(KeysRefused, match=KEYS.primary.kid),
        AuditLog(database, lambda: others, home.runtime, SystemClock()).transaction(),
    ):
        pass
    both = Keyring((new_key(), replace(KEYS.primary, status="active")))
    with AuditLog(database, lambda: both, home.runtime, SystemClock()).transaction() as transaction:
        transaction.record("effect", "run_ended", "steward", {})
    assert AuditLog(database, lambda: both, home.runtime, SystemClock()).verify().findings == ()


def test_a_head_that_another_process_noted_later_stays(
    database: Database, home: Home, log: AuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit is over before its head is noted: the next one may be quicker."""
    with log.transaction() as transaction:
        transaction.record("effect", "first", "steward", {})
    later = AuditLog(database, lambda: KEYS, home.runtime, SystemClock())

    original = AuditLog._note

    def slow(self: AuditLog, known: Head | None, head: Head) -> None:
        monkeypatch.undo()
        with later.transaction() as transaction:
            transaction.record("effect", "third", "steward", {})
        original(self, known, head)

    monkeypatch.setattr(AuditLog, "_note", slow)
    with log.transaction() as transaction:
        transaction.record("effect", "second", "steward", {})
    head = read_head(home.runtime / HEAD_FILE)
    assert head is not None
    assert head.seq == 3


def test_a_password_in_a_url_is_never_told(tmp_path: Path) -> None:
    url = url_of("postgresql://somebody:hunter2hunter2@127.0.0.1:1/none", tmp_path)
    with pytest.raises(StorageFailed) as caught:
        Database.open(url)
    assert "hunter2" not in str(caught.value)


def test_users_have_the_roles_they_were_granted_and_each_change_is_recorded(log: AuditLog) -> None:
    users = Users(log, SystemClock())
    users.add("bert", "", ["user"])
    users.add("anna", "Anna", ["user"])
    assert users.change_roles("anna", ["administrator"], ["user"]).roles == ("administrator",)
    assert [(user.user_id, user.principal.kind) for user in users.list()] == [
        ("anna", "administrator"),
        ("bert", "user"),
    ]
    assert [record.action for record in log.tail(9)] == ["user_added", "user_added", "role_granted", "role_revoked"]
    for unfit in (
        lambda: users.add("anna", "", ["user"]),
        lambda: users.add("Steward", "", ["user"]),
        lambda: users.change_roles("carl", ["user"], []),
    ):
        with pytest.raises(UsageError):
            unfit()
    assert len(log.tail(9)) == 4


def test_a_role_of_nobody_is_refused_by_the_database(database: Database) -> None:
    with pytest.raises(StorageFailed), database.begin() as connection:
        connection.execute(text("INSERT INTO roles (user_id, role) VALUES ('nobody', 'user')"))


def test_a_detail_holds_half_of_a_pair_and_no_secret(database: Database, home: Home) -> None:
    value = 'canary-0123"456789\\'
    log = AuditLog(database, lambda: KEYS, home.runtime, SystemClock(), Redactor([Secret(value)]))
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


def test_two_homes_with_the_same_keys_share_one_server_and_each_notes_the_head(
    tmp_path: Path, postgres_url: str
) -> None:
    logs = []
    for name in ("first", "second"):
        home = Home(tmp_path / name)
        home.root.mkdir()
        home.ensure_runtime()
        logs.append(
            AuditLog(
                open_database(home, Settings(database_url=postgres_url)), lambda: KEYS, home.runtime, SystemClock()
            )
        )
    for number in range(6):
        with logs[number % 2].transaction() as transaction:
            transaction.record("effect", "run_ended", "steward", {"number": number})
    assert [log.verify().findings for log in logs] == [(), ()]
    with logs[0].database.begin() as connection:
        connection.execute(text("DELETE FROM audit_records WHERE seq = 6"))
        connection.execute(text("UPDATE audit_chain SET seq = 5, mac = (SELECT mac FROM audit_records WHERE seq = 5)"))
    assert [[finding.code for finding in log.verify().findings] for log in logs] == [[], ["truncated"]]
    for log in logs:
        log.database.close()
