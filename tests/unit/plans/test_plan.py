"""A plan as a value: its hash covers what it does and nothing else, and its state follows from the moment."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from council.ids import sha256_hex
from council.keys.keyring import Key, Keyring, new_key
from council.plans.confirmation_token import confirmation_token, is_token_of
from council.plans.plan import CONFIRMED_MS, NAME_CHARS, Advice, Operation, Plan, State, plan_hash
from council.tools.preview import Preview

BORN, OLD = 1_000_000, 9_000_000
ONE = Operation("putPage", {"title": "Soil", "content": "dig"}, "one")
TWO = Operation("putPage", {"title": "Seeds"}, "two")
PLAN = Plan(
    plan_id="20261122-120000-abcdefgh",
    kind="pages",
    principal="ada",
    stored="draft",
    scope={"shelf": "near"},
    operations=(ONE, TWO),
    previews=(Preview("Puts Soil."), Preview("Puts Seeds.")),
    advice=Advice("Spring"),
    hash=plan_hash("pages", {"shelf": "near"}, "ada", (ONE, TWO)),
    created_ms=BORN,
    expires_ms=OLD,
)


def plan(**changes: Any) -> Plan:
    return msgspec.structs.replace(PLAN, **changes)


@pytest.mark.parametrize(
    ("stored", "confirmed_ms", "handed_ms", "at_ms", "state"),
    [
        ("draft", None, None, OLD, "draft"),
        ("draft", None, None, OLD + 1, "expired"),
        ("confirmed", BORN, None, BORN + CONFIRMED_MS, "confirmed"),
        ("confirmed", BORN, None, BORN + CONFIRMED_MS + 1, "draft"),
        ("confirmed", BORN, None, OLD + 1, "expired"),
        ("confirmed", OLD, None, OLD + 1, "confirmed"),
        ("confirmed", BORN, BORN, OLD + CONFIRMED_MS, "confirmed"),
        ("applied", BORN, None, OLD + 1, "applied"),
        ("rejected", None, None, OLD + 1, "rejected"),
        ("superseded", BORN, None, BORN, "superseded"),
        ("failed", BORN, None, BORN, "failed"),
    ],
)
def test_the_state_follows_from_what_happened_and_the_moment(
    stored: State, confirmed_ms: int | None, handed_ms: int | None, at_ms: int, state: State
) -> None:
    assert plan(stored=stored, confirmed_ms=confirmed_ms, handed_ms=handed_ms).state(at_ms) == state


def test_the_hash_is_64_hex_digits_and_ignores_spelling_and_advice() -> None:
    turned = Operation("putPage", {"content": "dig", "title": "Soil"}, "one")
    assert plan(operations=(turned, TWO), advice=Advice(rationale="other")).is_whole
    assert len(PLAN.hash) == 64
    assert int(PLAN.hash, 16) > 0


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "loose"},
        {"principal": "bob"},
        {"scope": {"shelf": "far"}},
        {"scope": {}},
        {"operations": (TWO, ONE)},
        {"operations": (ONE,)},
        {"operations": (msgspec.structs.replace(ONE, tool="editPage"), TWO)},
        {"operations": (msgspec.structs.replace(ONE, arguments={"title": "Soil"}), TWO)},
        {"operations": (msgspec.structs.replace(ONE, client_request_id="other"), TWO)},
    ],
)
def test_whatever_a_plan_does_changes_its_hash(changes: dict[str, Any]) -> None:
    assert not plan(**changes).is_whole


@pytest.mark.parametrize(
    "changes",
    [{"principal": "bob"}, {"plan_id": "20261122-120000-abcdefgi"}, {"hash": "0" * 64}, {"confirmed_ms": BORN + 1}],
)
def test_a_token_fits_one_person_one_plan_one_hash_and_one_confirmation(changes: dict[str, Any]) -> None:
    keys = Keyring((new_key(),))
    confirmed = plan(confirmed_ms=BORN)
    token = sha256_hex(confirmation_token(confirmed, keys.primary))
    assert is_token_of(confirmed, token, keys)
    assert not is_token_of(msgspec.structs.replace(confirmed, **changes), token, keys)
    assert not is_token_of(confirmed, token, Keyring((new_key(),)))


def test_a_token_outlives_a_rotation_and_not_the_retirement_of_its_key() -> None:
    older, newer = new_key(), new_key()
    confirmed = plan(confirmed_ms=BORN)
    token = sha256_hex(confirmation_token(confirmed, older))
    assert is_token_of(confirmed, token, Keyring((newer, Key(older.material, "active"))))
    assert not is_token_of(confirmed, token, Keyring((newer, Key(older.material, "retired"))))


def test_a_plan_without_a_title_is_named_by_its_first_operation_and_says_how_many_more_it_has() -> None:
    one, long = Preview("Puts the page “Soil”."), Preview("Puts the page “" + "Soil " * 50 + "”.")
    names = [plan(advice=Advice(), previews=previews).name for previews in ((one,), (one, one, one), (long, one))]
    assert names[:2] == ["Puts the page “Soil”.", "Puts the page “Soil” … and 2 more"]
    assert (names[2].endswith(" … and 1 more"), len(names[2]) <= NAME_CHARS) == (True, True)
    assert plan(previews=(one, one), advice=Advice(title="Two pages")).name == "Two pages"
