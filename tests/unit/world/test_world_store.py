"""The world's book over a real database: who is faster, and what a changed row of the log comes to."""

from __future__ import annotations

import json

import pytest

from council.ids import SystemClock
from council.redaction import Redactor, Secret
from council.storage.store import Store, Tx
from council.world.kernel import Action, settle
from council.world.world_store import Book

PACE_S = 30


@pytest.fixture(name="book")
async def _book(store: Store) -> Book:
    book = Book(store, SystemClock())
    await book.make(6, (6, 5), 11, PACE_S, lambda tx: None)
    return book


async def settled(book: Book, *actions: Action) -> bool:
    """The attempt to settle the round that is open with these actions."""
    world, seed = book.world()
    return await book.settle(settle(world, actions, seed), actions, {}, {}, 0)


async def play(book: Book, rounds: int) -> None:
    for number in range(1, rounds + 1):
        assert await book.close_window(number)
        text = "Truce?" + "x" * 900
        assert await settled(
            book, Action(f"{number}.1", 1, "message", 2, text=text), Action(f"{number}.2", 1, "expand")
        )


def phase(book: Book) -> tuple[int, str]:
    now = book.open_round()
    assert now is not None
    return now.round_id, now.phase


async def test_a_window_that_closes_does_not_end_a_pause(book: Book) -> None:
    await book.set_phase("paused", 0, lambda tx: None)
    assert not await book.close_window(1)
    assert phase(book) == (1, "paused")


async def test_a_round_that_accepts_again_is_not_settled_without_what_comes_in(book: Book) -> None:
    player, _ = await book.register("Anna", "")
    await book.close_window(1)
    await book.set_phase("paused", 0, lambda tx: None)
    assert not await settled(book)
    deadline_ms = int(1000 * SystemClock().now().timestamp()) + 1000 * PACE_S
    await book.set_phase("accepting", deadline_ms, lambda tx: None)
    submission_id = await book.act(player, "code", "k")
    assert not await settled(book)
    assert phase(book) == (1, "accepting")
    assert await book.close_window(1)
    assert [one.submission_id for one in book.pending(1)] == [submission_id]
    assert await settled(book)
    assert phase(book) == (2, "accepting")


async def test_no_row_of_a_player_holds_a_secret_but_the_code_that_is_to_run(store: Store, book: Book) -> None:
    secret = "hunter2-hunter2-hunter2"
    book = Book(store, SystemClock(), Redactor([Secret(secret)]))
    player, _ = await book.register(f"Anna {secret}", f"says {secret}")
    submission_id = await book.act(player, "code", f"key {secret} 1")
    assert await book.act(player, "code", f"key {secret} 1") == submission_id
    assert await book.act(player, "code", f"key {secret} 2") != submission_id
    mechanism_id = await book.propose(player, "code", f"because of {secret}", secret)
    await book.close_window(1)
    world, seed = book.world()
    actions = [Action("1.1", 1, "message", 2, text=f"Psst: {secret}")]
    assert await book.settle(settle(world, actions, seed), actions, {mechanism_id: f"saw {secret}"}, {}, 0)

    def rows(tx: Tx) -> list[str]:
        tables = ("players", "submissions", "mechanisms", "actions", "letters", "events", "rounds")
        return [str(tuple(row)) for name in tables for row in tx.execute(f"SELECT * FROM world_{name}").fetchall()]

    told = store.read(rows)
    assert [row for row in told if secret in row] == []
    assert sum("[secret]" in row for row in told) == 5


async def test_a_rollback_leaves_a_pause_as_it_is(book: Book) -> None:
    await play(book, 1)
    await book.set_phase("paused", 0, lambda tx: None)
    await book.roll_back(0, lambda tx: None)
    assert phase(book) == (3, "paused")
    assert [differs for _, _, differs in book.replay()] == ["", ""]


@pytest.mark.parametrize(
    ("statement", "differs"),
    [
        ("UPDATE world_actions SET action = '[' WHERE round_id = 2", (2, "a row that cannot be read")),
        ("UPDATE world_actions SET action = '{}' WHERE round_id = 2", (2, "a row that cannot be read")),
        ("UPDATE world_actions SET action = replace(action, 'expand', 'attack')", (1, "actions_hash")),
        ("DELETE FROM world_actions WHERE round_id = 2", (2, "actions_hash")),
        ("UPDATE world_rounds SET receipt = '' WHERE round_id = 2", (2, "a row that cannot be read")),
        ("UPDATE world_rounds SET receipt = '[]' WHERE round_id = 1", (1, "actions_hash, last_receipt_hash")),
        ("UPDATE world_rounds SET rollback_to = 7 WHERE round_id = 2", (2, "rollback_to")),
        ("UPDATE world_rounds SET state = '[' WHERE round_id = 50", (50, "a row that cannot be read")),
        ("UPDATE world_rounds SET state = replace(state, '\"age\":', '\"age\":1') WHERE round_id = 50", (50, "state")),
        (
            "UPDATE world_rounds SET receipt = replace(receipt, '\"population\": ', '\"population\": 1') WHERE round_id = 1",
            (1, "round_metrics"),
        ),
        ("UPDATE world SET state = replace(state, '\"cargo\":', '\"cargo\":1')", (51, "state")),
    ],
)
async def test_whatever_is_changed_in_the_log_is_named_and_breaks_nothing(
    store: Store, book: Book, statement: str, differs: tuple[int, str]
) -> None:
    await play(book, 51)
    store.write_now(lambda tx: tx.execute(statement))
    looks = Book(store, SystemClock())  # one that has read nothing yet
    round_id, _, said = list(looks.replay())[-1]
    assert (round_id, said) == differs


async def test_each_round_is_replayed_with_its_hash(book: Book) -> None:
    await play(book, 51)
    told = [(number, book.receipt(number)["snapshot_hash_after"], "") for number in range(1, 52)]
    assert list(book.replay()) == told


async def test_words_that_forget_makes_longer_change_no_hash(store: Store, book: Book) -> None:
    await play(book, 2)
    statement = "UPDATE world_actions SET action = replace(action, 'Truce?', ?)"
    store.write_now(lambda tx: tx.execute(statement, ("[forgotten]" * 50,)))
    assert len(json.dumps(book.actions(1)[0].text)) > 1_000
    assert [differs for _, _, differs in book.replay()] == ["", ""]
