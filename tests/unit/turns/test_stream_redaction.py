"""A reply that comes in pieces loses its secrets as if it were whole, before anybody hears of it."""

from __future__ import annotations

import re

import pytest

from council.redaction import Redactor, Secret
from council.safety.untrusted import clean
from council.turns.streaming import Hearing

BODY = "\n".join(f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTU{number:04}" for number in range(400))
KEY = f"-----BEGIN PRIVATE KEY-----\n{BODY}\n-----END PRIVATE KEY-----"


def shown(said: str, *secrets: str) -> str:
    """What is shown of it, word by word."""
    told: list[str | None] = []
    redactor = Redactor([Secret(secret) for secret in secrets])
    hearing = Hearing("AUDITOR", 1, lambda _, piece: told.append(piece), redact=redactor.redact)
    for piece in re.findall(r"\S{1,388}\s*|\s+", said):
        hearing(piece)
    hearing.end()
    assert None not in told
    assert hearing.text.rstrip() == redactor.redact(clean(said)).rstrip()
    return "".join(piece or "" for piece in told)


@pytest.mark.parametrize("said", ["", "One word.", "Say it.\n\nThen say it again.\n", "word " * 3_000])
def test_what_holds_no_secret_is_shown_as_it_is(said: str) -> None:
    assert shown(said).rstrip() == said.rstrip()


def test_a_secret_of_one_word_is_never_shown() -> None:
    assert (
        shown("The key is zebra-0451-omega\u200b-7, so it is.", "zebra-0451-omega-7")
        == "The key is [secret], so it is."
    )


def test_a_value_of_several_words_is_cut_off_at_half_of_it() -> None:
    said = shown("The phrase is zebra Quartz hunter 0451 omega, as ever.", "zebra Quartz hunter 0451 omega")
    assert said.startswith("The phrase is zebra Quartz [secret]")
    assert said.endswith(", as ever.")
    assert "hunter" not in said
    assert "0451" not in said


def test_what_only_began_like_a_secret_is_told_after_all() -> None:
    assert "zebra Quartz hunter of lions" in shown("A zebra Quartz hunter of lions.", "zebra Quartz hunter 0451 omega")


@pytest.mark.parametrize("before", ["", "word " * 3_000])
def test_a_private_key_is_not_shown(before: str) -> None:
    said = shown(f"{before}{KEY}\nAnd so on.")
    assert "MIIE" not in said
    assert said.startswith(before)
    assert said.endswith("And so on.")
