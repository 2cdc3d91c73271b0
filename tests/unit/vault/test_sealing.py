"""Sealing: what was made for one place opens there and nowhere else, and only as it was made."""

from __future__ import annotations

import copy
import io
import json
import logging
import pickle
from dataclasses import asdict, dataclass, replace

import msgspec
import pydantic
import pydantic_core
import pytest
import yaml

from council.errors import CredentialRefused
from council.keys.keyring import new_key
from council.redaction import Redactor, Secret
from council.vault.sealing import CredentialPlace, associated, seal, unseal

KEY = new_key()
PLACES = [CredentialPlace(f"user{number}", f"ROLE_{number}", f"key_{number}") for number in range(20)]
EXPIRES = "2027-01-01T00:00:00Z"


def value_of(place: CredentialPlace) -> Secret:
    return Secret(f"secret of {place} ü")


def test_every_bit_flip_of_twenty_records_is_refused() -> None:
    flips = opened = refused = 0
    for place in PLACES:
        sealed = seal(value_of(place), place, 1, EXPIRES, KEY)
        assert unseal(sealed, place, 1, EXPIRES, KEY).reveal() == value_of(place).reveal()
        for bit in range(len(sealed) * 8):
            changed = bytearray(sealed)
            changed[bit // 8] ^= 1 << bit % 8
            flips += 1
            try:
                unseal(bytes(changed), place, 1, EXPIRES, KEY)
                opened += 1
            except CredentialRefused as error:
                refused += error.reason == "tampered"
    assert flips > 20 * 8 * 28
    assert (opened, refused) == (0, flips)


def test_every_cut_is_refused() -> None:
    sealed = seal(value_of(PLACES[0]), PLACES[0], 1, EXPIRES, KEY)
    for length in range(len(sealed)):
        with pytest.raises(CredentialRefused):
            unseal(sealed[:length], PLACES[0], 1, EXPIRES, KEY)


def test_a_record_in_any_other_place_is_refused() -> None:
    for place in PLACES:
        sealed = seal(value_of(place), place, 1, EXPIRES, KEY)
        for other in PLACES:
            swaps = [replace(place, user=other.user), replace(place, role=other.role), replace(place, key=other.key)]
            for swapped in [*swaps, other] if other != place else ():
                with pytest.raises(CredentialRefused):
                    unseal(sealed, swapped, 1, EXPIRES, KEY)


@pytest.mark.parametrize(
    ("version", "expires", "key"),
    [(2, EXPIRES, KEY), (1, "2028-01-01T00:00:00Z", KEY), (1, "", KEY), (1, EXPIRES, new_key())],
    ids=["version", "expiry", "no expiry", "key"],
)
def test_another_version_expiry_or_key_is_refused(version: int, expires: str, key: object) -> None:
    sealed = seal(value_of(PLACES[0]), PLACES[0], 1, EXPIRES, KEY)
    with pytest.raises(CredentialRefused):
        unseal(sealed, PLACES[0], version, expires, key)  # type: ignore[arg-type]


def test_no_two_places_spell_the_same_associated_data() -> None:
    shifted = [
        CredentialPlace("u1", "sms", "k"),
        CredentialPlace("u1s", "ms", "k"),
        CredentialPlace("u1", "sm", "sk"),
        CredentialPlace("u1sms", "", "k"),
    ]
    assert len({associated(place, 1, "", "kid") for place in shifted}) == len(shifted)


def test_the_same_value_sealed_twice_shows_no_likeness() -> None:
    assert seal(Secret("same value"), PLACES[0], 1, "", KEY) != seal(Secret("same value"), PLACES[0], 1, "", KEY)


VALUE = "canary-4b7f-ä'\"\\"


@dataclass
class Holder:
    secret: Secret


class HoldingModel(pydantic.BaseModel, arbitrary_types_allowed=True):
    secret: Secret


def held_by_a_dataclass(secret: Secret) -> object:
    return asdict(Holder(secret))


def held_by_a_model(secret: Secret) -> object:
    return HoldingModel(secret=secret).model_dump_json()


def test_a_secret_shows_in_no_traceback_and_no_container() -> None:
    """As libraries print the variables of a frame."""
    from rich.console import Console
    from rich.traceback import Traceback

    def fail(secret: Secret) -> None:
        held = {"secret": secret, "model": HoldingModel(secret=secret), "holder": Holder(secret), "key": new_key()}
        raise RuntimeError(f"{held}")

    console = Console(record=True, width=200, file=io.StringIO())
    try:
        fail(Secret(VALUE))
    except RuntimeError:
        console.print(Traceback(show_locals=True))
    shown = console.export_text()
    assert "canary" not in shown
    assert shown.count("[secret]") >= 6


def test_a_secret_is_not_printed_nor_logged(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret(VALUE)
    with caplog.at_level(logging.INFO):
        logging.getLogger("test").info("%s %r", secret, {"value": secret})
    shown = f"{secret} {secret!r} {secret:>40} {[secret]} {caplog.text}"
    assert "canary" not in shown
    assert shown.count("[secret]") >= 6


@pytest.mark.parametrize(
    "serialise",
    [
        pickle.dumps,
        copy.copy,
        copy.deepcopy,
        json.dumps,
        msgspec.json.encode,
        msgspec.to_builtins,
        pydantic_core.to_json,
        vars,
        lambda secret: secret.__getstate__(),
        lambda secret: secret.__reduce_ex__(5),
        held_by_a_dataclass,
        held_by_a_model,
        yaml.dump,
    ],
    ids=lambda function: function.__name__,
)
def test_a_secret_is_not_serialised(serialise: object) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        serialise(Secret(VALUE))  # type: ignore[operator]
    assert "canary" not in str(caught.value)


def test_redaction_knows_the_spellings_of_a_value() -> None:
    secret = Secret(VALUE)
    raw = VALUE.encode()
    import base64
    import urllib.parse

    spellings = [
        VALUE, raw.hex(), raw.hex().upper(), urllib.parse.quote(VALUE, safe=""), json.dumps(VALUE),
        json.dumps(VALUE, ensure_ascii=False), base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode(),
    ]  # fmt: skip
    redact = Redactor([secret]).redact
    for spelling in spellings:
        assert "[secret]" in redact(f"before {spelling} after")
        assert spelling.strip('"') not in redact(f"before {spelling} after")
