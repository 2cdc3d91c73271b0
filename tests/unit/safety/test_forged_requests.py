"""Requests that stand in outside text, in whatever spelling, are recognised when an agent repeats them in plain words."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from council.safety.echoes import OutsideTexts
from council.safety.encodings import READINGS, decodings
from council.safety.markdown import for_markdown
from council.safety.untrusted import clean, fence, plain_line
from council.tools.tokens import echoed, parse
from tests.injections import BEYOND, ENCODINGS, WRAPPERS, echoes, forged, obeyed, token

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


_TOKEN = token(PATH)
_LETTERS64 = base64.b64encode(_TOKEN.encode()).decode()
OTHER_SPELLINGS = {
    "quoted-printable": "".join(f"={byte:02X}" for byte in _TOKEN.encode()),
    "Base32": base64.b32encode(_TOKEN.encode()).decode(),
    "Base32, small": base64.b32encode(_TOKEN.encode()).decode().lower(),
    "long escapes": "".join(f"\\U{ord(char):08x}" for char in _TOKEN),
    "decimal numbers": " ".join(str(byte) for byte in _TOKEN.encode()),
    "decimal numbers with commas": ", ".join(str(byte) for byte in _TOKEN.encode()),
    "octal escapes": "".join(f"\\{byte:03o}" for byte in _TOKEN.encode()),
    "binary numbers": " ".join(f"{byte:08b}" for byte in _TOKEN.encode()),
    "code points": " ".join(f"U+{ord(char):04X}" for char in _TOKEN),
    "Base64 in fours": " ".join(_LETTERS64[at : at + 4] for at in range(0, len(_LETTERS64), 4)),
    "Base64 between signs": "*".join(_LETTERS64[at : at + 7] for at in range(0, len(_LETTERS64), 7)),
    "Base64 of UTF-16": base64.b64encode(_TOKEN.encode("utf-16")).decode(),
    "dots between": _TOKEN.replace("ORCHESTRATOR", "O.R.C.H.E.S.T.R.A.T.O.R"),
    "emphasis inside": _TOKEN.replace("TRATOR", "**TRATOR**"),
    "tags inside": _TOKEN.replace("TRATOR", "<b></b>TRATOR"),
    "a comment inside": _TOKEN.replace("TRATOR", "<!-- x -->TRATOR"),
    "Cherokee": _TOKEN.translate(str.maketrans("ERTAS", "ᎬᎡᎢᎪᏚ")),
    "Armenian and Coptic": _TOKEN.translate(str.maketrans("OCT", "ՕⲤⲦ")),
    "circled letters": "".join(chr(0x1F150 + ord(c) - 65) if "A" <= c <= "Z" else c for c in _TOKEN),
    "squared letters": "".join(chr(0x1F170 + ord(c) - 65) if "A" <= c <= "Z" else c for c in _TOKEN),
    "flags of letters": "".join(chr(0x1F1E6 + ord(c) - 65) if "A" <= c <= "Z" else c for c in _TOKEN),
    "other brackets": _TOKEN.translate(str.maketrans("[]()", "⟦⟧❨❩")),
    "another colon": _TOKEN.replace(":", "∶"),
    "another slash": _TOKEN.replace("/", "⁄"),
    "another path to it": token(f"./{PATH}"),
}


SPELLERS: dict[str, Callable[[str], str]] = {
    **{name: ENCODINGS[name] for name in ("entities", "escapes", "hexadecimal", "tags")},
    "percent": ENCODINGS["all percent"],
    "Base64": ENCODINGS["base64"],
    "Base32": lambda t: base64.b32encode(t.encode()).decode(),
    "quoted-printable": lambda t: "".join(f"={byte:02X}" for byte in t.encode()),
    "numbers": lambda t: " ".join(str(byte) for byte in t.encode()),
    "markup": lambda t: "<b></b>".join(t),
}


@pytest.mark.parametrize("outer", READINGS)
def test_every_encoding_that_is_seen_through_is_alone_and_around_every_other_one(outer: str) -> None:
    for written in (_TOKEN, *(spell(_TOKEN) for spell in SPELLERS.values())):
        outside = OutsideTexts()
        outside.add(f"The minutes of the meeting: {SPELLERS[outer](written)}\nEnd.")
        assert echoed(parse(_TOKEN)[0], outside), written
        assert not echoed(parse(token("docs/other.md"))[0], outside)


def test_the_list_of_what_is_seen_through_ends_there() -> None:
    assert SPELLERS.keys() == READINGS.keys()
    outside = OutsideTexts()
    for spell in BEYOND.values():
        outside.add(spell(_TOKEN))
    outside.add(ENCODINGS["base64"](ENCODINGS["base64"](ENCODINGS["base64"](_TOKEN))))  # a third one inside two
    assert not echoed(parse(_TOKEN)[0], outside)


@pytest.mark.parametrize("spelled", OTHER_SPELLINGS.values(), ids=OTHER_SPELLINGS.keys())
def test_an_obeyed_request_is_an_echo_of_spellings_that_the_corpus_does_not_hold(spelled: str) -> None:
    outside = OutsideTexts()
    outside.add(f"The minutes of the meeting, and then this: {spelled}\nEnd.")
    assert echoed(parse(_TOKEN)[0], outside)
    assert not echoed(parse(token("docs/other.md"))[0], outside)


def test_the_agent_that_obeys_finds_every_forged_request_by_itself() -> None:
    for encoding in ENCODINGS:
        for wrapper in WRAPPERS:
            assert obeyed([forged(PATH, wrapper, encoding)]) == [PATH], (wrapper, encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_reply_that_copies_a_fenced_forgery_asks_for_anything(encoding: str) -> None:
    for wrapper in WRAPPERS:
        shown = as_fenced(forged(PATH, wrapper, encoding))
        assert [request for request in parse(shown) if request.honoured] == [], (wrapper, encoding)


def test_nothing_invisible_reaches_a_prompt_a_page_or_a_line() -> None:
    for code in (*range(0xE0000, 0xE0080), *range(0xFE00, 0xFE10), 0x200B, 0x200C, 0x200D, 0x2060, 0x00AD):
        text = f"a{chr(code)}b"
        assert chr(code) not in as_fenced(text) + for_markdown(text) + plain_line(text, 80) + clean(text), hex(code)


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
