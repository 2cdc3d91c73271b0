"""Keys, links and sessions of people: who comes in by which, and how each ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from council.audit.log import AuditLog
from council.errors import UsageError
from council.ids import timestamp
from council.storage.store import Store
from council.users.api_keys import add_key, key_holder, keys_of_people, make_key, revoke_keys
from council.users.enrolment import add_user, change_roles
from council.users.people import NoPrincipal, all_users
from council.users.sign_in_links import SignInRefused, end_session, make_link, open_session, session_holder
from tests.planning import KEYS, StillClock

HOUR_S = 3600.0


class Door:
    """A home's access, and what a server looks up."""

    def __init__(self, store: Store, runtime: Path) -> None:
        self.store, self.clock = store, StillClock()
        log = AuditLog(store, lambda: KEYS, runtime, self.clock)
        self.log = log
        add_user(log, "anna", "Anna", ["user"])

    def holder(self, word: str) -> str | None:
        return self.store.read(lambda tx: key_holder(tx, self.clock, word) or session_holder(tx, self.clock, word))

    def rows(self) -> str:
        return self.store.read(
            lambda tx: str([tx.execute(f"SELECT * FROM {t}").fetchall() for t in ("sign_ins", "api_keys")])
        )


@pytest.fixture(name="door")
def _door(tmp_path: Path) -> Iterator[Door]:
    with closing(Store.open(tmp_path)) as store:
        yield Door(store, tmp_path)


@pytest.mark.parametrize("user_id", ["anna", "ANNA", "Anna"])
def test_an_id_that_differs_from_another_in_its_case_alone_is_refused(door: Door, user_id: str) -> None:
    with pytest.raises(UsageError, match="there is already a user anna"):
        add_user(door.log, user_id, "", ["user"])
    assert [user.user_id for user in all_users(door.store)] == ["anna"]


def test_a_link_opens_one_session_within_five_minutes(door: Door) -> None:
    link, late = make_link(door.log, "anna"), make_link(door.log, "anna")
    session = open_session(door.log, link, HOUR_S)
    assert (door.holder(session), door.holder(link)) == ("anna", None)
    with pytest.raises(SignInRefused):
        open_session(door.log, link, HOUR_S)
    door.clock.pass_s(300)
    with pytest.raises(SignInRefused):
        open_session(door.log, late, HOUR_S)
    assert door.holder(session) == "anna"
    door.clock.pass_s(HOUR_S)
    assert door.holder(session) is None


def test_a_session_ends_when_it_is_told_to_and_when_a_key_of_its_person_is_revoked(door: Door) -> None:
    key = add_key(door.log, "anna")
    first, second = (open_session(door.log, key, HOUR_S) for _ in range(2))
    stewards = open_session(door.log, make_link(door.log, "steward"), HOUR_S)
    end_session(door.log, first)
    assert [door.holder(word) for word in (first, second, key)] == [None, "anna", "anna"]
    assert revoke_keys(door.log, keys_of_people(door.store)[0].key_id) == ("anna", 1)
    assert [door.holder(word) for word in (second, key, stewards)] == [None, None, "steward"]
    assert keys_of_people(door.store)[0].revoked
    ends = [
        (record.action, record.actor) for record in door.log.tail(9) if record.action in ("signed_out", "key_revoked")
    ]
    assert ends == [("signed_out", "anna"), ("key_revoked", "steward")]


def test_nothing_that_opens_is_kept(door: Door) -> None:
    key = add_key(door.log, "anna", timestamp(door.clock.now()))
    link = make_link(door.log, "anna")
    session = open_session(door.log, add_key(door.log, "steward"), HOUR_S)
    rows = door.rows()
    assert [word in rows for word in (key, link, session, "anna")] == [False, False, False, True]
    assert door.holder(key) is None, "its time is over"


def test_each_word_is_good_for_its_own_kind_alone(door: Door) -> None:
    with door.store.transaction() as tx:
        players = make_key(tx, door.clock, prefix="lev_", owner="player-1")
    session = open_session(door.log, make_link(door.log, "anna"), HOUR_S)
    assert door.holder(players) is None
    for word in (players, session, "", "council-link-", "council-key-" + "0" * 48, "\udc80"):
        with pytest.raises(SignInRefused):
            open_session(door.log, word, HOUR_S)
    assert keys_of_people(door.store) == []


def test_nobody_comes_in_without_a_role(door: Door) -> None:
    link = make_link(door.log, "anna")
    change_roles(door.log, "anna", [], ["user"])
    for enter in (lambda: open_session(door.log, link, HOUR_S), lambda: add_key(door.log, "nobody")):
        with pytest.raises(NoPrincipal):
            enter()


def test_keys_are_revoked_by_an_id_that_means_one_or_by_their_person_and_no_user_is_a_player(door: Door) -> None:
    add_key(door.log, "anna")
    for named in ("", "zzz"):
        with pytest.raises(UsageError, match="no key"):
            revoke_keys(door.log, named)
    add_key(door.log, "anna")
    assert [revoke_keys(door.log, "anna") for _ in range(2)] == [("anna", 2), ("anna", 0)]
    session = open_session(door.log, make_link(door.log, "steward"), HOUR_S)
    assert revoke_keys(door.log, "steward") == ("steward", 0)
    assert door.holder(session) is None
    with pytest.raises(UsageError, match="player"):
        add_user(door.log, "player-7", "", ["user"])
