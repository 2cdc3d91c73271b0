"""Keys of programs: whose they are, and how they end."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path

from council.ids import sha256_hex, timestamp
from council.storage.store import Store
from council.users import statements as sql
from council.users.api_keys import make_key, owner_of
from tests.planning import StillClock


def test_a_key_ends_when_it_is_revoked_and_when_its_time_is_over(tmp_path: Path) -> None:
    clock = StillClock()
    until = timestamp(clock.now() + timedelta(hours=1))
    with closing(Store.open(tmp_path)) as store:
        lasting = store.write_now(lambda tx: make_key(tx, clock, prefix="k_", owner="one"))
        short = store.write_now(lambda tx: make_key(tx, clock, prefix="k_", owner="one", expires=until))

        def owners() -> list[str | None]:
            return store.read(lambda tx: [owner_of(tx, clock, key) for key in (lasting, short)])

        assert owners() == ["one", "one"]
        clock.at += timedelta(hours=1)
        assert owners() == ["one", None]
        store.write_now(lambda tx: tx.execute(sql.REVOKE_ONE, (timestamp(clock.now()), sha256_hex(lasting))))
        assert owners() == [None, None]
        kept = store.read(lambda tx: str(tx.execute("SELECT * FROM api_keys").fetchall()))
    assert "one" in kept
    assert lasting not in kept
    assert short not in kept
