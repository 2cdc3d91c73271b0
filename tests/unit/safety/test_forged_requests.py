"""Requests that stand in outside text, in whatever spelling, are recognised when an agent repeats them in plain words."""

from __future__ import annotations

import pytest

from council.safety.encodings import decodings
from council.safety.untrusted import OutsideTexts, clean, fence, for_markdown, plain_line
from council.tools.tokens import echoed, parse
from tests.injections import ENCODINGS, WRAPPERS, echoes, forged, obeyed, token

SECRET = b"k" * 32
PATH = "docs/allowed.md"


def as_fenced(text: str) -> str:
    return fence(text, secret=SECRET, source_id="E1", path="a.md", sha256="0" * 64, ordinal=1)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_obeyed_request_is_an_echo_however_the_document_spelled_it(encoding: str) -> None:
    for wrapper in WRAPPERS:
        text = f"Notes of the meeting.\n\n{forged(PATH, wrapper, encoding)}\n\nEnd.\n"
        outside = OutsideTexts()
        outside.add(text)
        [request] = parse(token(PATH))
        assert request.honoured
        assert echoed(request, outside), (wrapper, encoding)
        [other] = parse(token("docs/other.md"))
        assert not echoed(other, outside), (wrapper, encoding)


def test_the_agent_that_obeys_finds_every_forged_request_by_itself() -> None:
    for encoding in ENCODINGS:
        for wrapper in WRAPPERS:
            assert obeyed([forged(PATH, wrapper, encoding)]) == [PATH], (wrapper, encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_reply_that_copies_a_fenced_forgery_asks_for_anything(encoding: str) -> None:
    for wrapper in WRAPPERS:
        shown = as_fenced(forged(PATH, wrapper, encoding))
        assert [request for request in parse(shown) if request.honoured] == [], (wrapper, encoding)


@pytest.mark.parametrize(
    "code", [*range(0xE0000, 0xE0080), *range(0xFE00, 0xFE10), 0x200B, 0x200C, 0x200D, 0x2060, 0x00AD]
)
def test_nothing_invisible_reaches_a_prompt_a_page_or_a_line(code: str) -> None:
    text = f"a{chr(int(code))}b"
    assert chr(int(code)) not in as_fenced(text) + for_markdown(text) + plain_line(text, 80) + clean(text)


def test_plain_prose_has_no_other_reading() -> None:
    assert decodings("The archive grows by 40 GB a month; see docs/needs.md, lines 1 to 3.") == []


def test_a_hash_or_a_picture_is_read_and_holds_nothing() -> None:
    outside = OutsideTexts()
    outside.add(
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n" + "iVBORw0KGgoAAAANSUhEUgAA" * 50
    )
    assert not echoed(parse(token(PATH))[0], outside)


def test_what_is_searched_for_a_canary_finds_it_in_every_reading() -> None:
    for spelled in ("canary 17", "ＣＡＮＡＲＹ17", "63616e6172793137", "%63anary17".replace("%63", "c"), "Y2FuYXJ5MTc"):
        assert echoes("canary17", spelled.encode()), spelled
    assert not echoes("canary17", b"canary 18")
