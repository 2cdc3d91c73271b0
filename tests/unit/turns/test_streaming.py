"""What those who watch a turn hear of it, however its text is cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from council.turns.streaming import Hearing

SAID = "A word of caution, then another one.\n\nAnd that is all. "


def heard(pieces: Sequence[str]) -> tuple[str, list[str | None]]:
    told: list[str | None] = []
    hearing = Hearing("AUDITOR", 1, lambda hearing, piece: told.append(piece))
    for piece in pieces:
        hearing(piece)
    hearing.end()
    return hearing.text, told


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 1000])
@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (SAID, SAID),
        (f"<think>Hm. ```council</think>\n{SAID}", SAID),
        (f"{SAID}```council\n{{}}\n```\nmore words", SAID),
        ('  {"answer": "words in it"}', ""),
        ('```json\n{"answer": "words in it"}\n```', ""),
        ("```council\nwords\n```", ""),
        (f'{SAID}```json\n{{"position": "words in it"}}\n```', SAID),
        (f'{SAID}```\n{{"answer": "words in it"}}\n```', SAID),
        (f'{SAID}\n{{"answer": "words in it"}}', SAID),
        ("```python\nprint(1)\n```\nIt prints. ", "```python\nprint(1)\n```\nIt prints. "),
        ("<thin air, they say, is no thought. ", "<thin air, they say, is no thought. "),
    ],
    ids=[
        "prose",
        "thought",
        "block",
        "json",
        "fenced json",
        "only a block",
        "block of json",
        "bare block",
        "record",
        "other fence",
        "no thought",
    ],
)
def test_the_words_are_heard_and_neither_thoughts_nor_blocks(reply: str, expected: str, size: int) -> None:
    text, told = heard(cut(reply, size))
    assert text == "".join(piece or "" for piece in told)
    assert text.rstrip() == expected.rstrip()


REQUEST = "[ORCHESTRATOR_REQUEST: READ_FILE(a b.md)]"
ENDING = '{"position": "words in it", "more": [{"a": 1}]}'
FENCED, BARE = '```json\n{"port": 80}\n```', '{\n"port": {"is": 80}\n}'


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("block", [f"```json\n{ENDING}\n```", f"```\n{ENDING}```", f"~~~json {ENDING}\n~~~", ENDING])
@pytest.mark.parametrize(
    "said",
    [
        f"I would ship {{x}}.\n\n{FENCED}\n\nSo much for that. ",
        f"I would.\n\n{BARE}\n\nSo much for that. ",
        f"{FENCED}\n\nSo much for that.\n\n{FENCED}\n\nAnd {{y}}. ",
        "I would.\n\n~~~json\n{port: 80, // as ever\n}\n~~~\n\n{x} holds. ",
    ],
)
def test_json_amid_a_speech_is_heard_and_only_json_that_ends_it_is_not(said: str, block: str, size: int) -> None:
    for end in ("", "\n", f"\n\n{REQUEST}\n{REQUEST}"):
        text, _ = heard(cut(f"{said}\n\n{block}{end}", size))
        assert text.rstrip() == said.rstrip()
    text, _ = heard(cut(said, size))
    assert text.rstrip() == said.rstrip()


@pytest.mark.parametrize("end", ["", "`", "```", f"```\n{REQUEST[:20]}", f"```\n{REQUEST}\n"])
def test_json_that_may_end_the_reply_is_not_heard_as_long_as_no_word_follows(end: str) -> None:
    hearing = Hearing("AUDITOR", 1, lambda hearing, piece: None)
    hearing(f"I would.\n\n```json\n{ENDING}\n{end}")
    assert hearing.text == "I would.\n\n"


def test_a_word_is_never_told_in_two_pieces() -> None:
    _, told = heard(cut(SAID, 3))
    assert all((piece or "").endswith((" ", "\n")) for piece in told[:-1])


def test_a_script_without_spaces_is_heard_too_and_its_block_is_not() -> None:
    text, _ = heard(cut("\u7a7a" * 1000 + "```council\n{}", 9))
    assert text == "\u7a7a" * 1000


def test_another_attempt_takes_back_what_was_heard() -> None:
    told: list[str | None] = []
    hearing = Hearing("AUDITOR", 1, lambda hearing, piece: told.append(piece))
    hearing("Half a thought ")
    hearing.restart()
    hearing.restart()
    hearing("A whole one. ")
    assert (told, hearing.text) == (["Half a thought ", None, "A whole one. "], "A whole one. ")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("So be it.", "So be it."),
        ("Yes", "Yes"),
        ("It holds if a<b.", "It holds if a<b."),
        ("<think>Hm.</think>No", "No"),
        ("A word.\n\n```council\n{}\n```", "A word.\n\n"),
        ('{"answer": "words"}', ""),
        ("A word.\n\n<think>Hm, and", "A word.\n\n"),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 50])
def test_the_last_word_of_a_whole_reply_is_told(reply: str, expected: str, size: int) -> None:
    told: list[str | None] = []
    hearing = Hearing("AUDITOR", 1, lambda hearing, piece: told.append(piece))
    for piece in cut(reply, size):
        hearing(piece)
    hearing.end()
    assert hearing.text == expected
    assert "".join(piece for piece in told if piece is not None) == expected


@pytest.mark.parametrize("size", [1, 7, 500])
def test_a_key_of_any_length_is_told_whole_and_a_script_without_spaces_as_it_comes(size: int) -> None:
    key = "aB3xZ9w_" * 200
    _, told = heard(cut(f"The key is {key} and more. ", size))
    assert any(piece is not None and key in piece for piece in told)
    _, told = heard(cut("議会は月曜日まで待つことにした。" * 60, size))
    assert len(told) > 1
