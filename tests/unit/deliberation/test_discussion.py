"""The transcript as a message: rendered entry by entry, it says and hashes what it would if it were rendered at once."""

from __future__ import annotations

from council.deliberation.names import Names
from council.deliberation.prompts import Discussion
from council.deliberation.transcript import Turn
from council.ids import sha256_hex
from council.turns.evidence import Evidence
from council.turns.fencing import Fencer
from council.turns.result import Failure, TurnResult

ENTRIES = [
    Turn("COORDINATOR", 1, TurnResult("First, the figures.", "m")),
    Evidence("COORDINATOR", 1, "[…]", "READ_FILE", "b.md", "E1", "b.md", "b.md", 1, 1, "5e" * 32, "beta is second\n"),
    Turn("STRATEGIST", 1, TurnResult("", "m", failure=Failure("timeout", "no answer in 60 s"))),
    Turn("AUDITOR", 2, TurnResult("ünïcode, and a line\nbreak", "m")),
    Evidence("AUDITOR", 2, "[…]", "READ_FILE", "c.md", error_code="denied", error="it is not to be read"),
]


def said(count: int) -> Discussion:
    message = Discussion(Fencer(b"secret"), Names())
    for entry in ENTRIES[:count]:
        message.add(entry)
    return message


def test_nobody_spoke() -> None:
    assert said(0).message() is None


def test_asking_in_between_changes_nothing() -> None:
    growing = Discussion(Fencer(b"secret"), Names())
    for count, entry in enumerate(ENTRIES, start=1):
        growing.add(entry)
        assert growing.message() == said(count).message()


def test_the_hash_is_that_of_the_text() -> None:
    for count in range(1, len(ENTRIES) + 1):
        message = said(count).message()
        assert message is not None
        assert message.sha256 == sha256_hex(message.text)


def test_only_what_was_read_is_a_source() -> None:
    message = said(len(ENTRIES)).message()
    assert message is not None
    assert [source.id for source in message.sources] == ["E1"]
