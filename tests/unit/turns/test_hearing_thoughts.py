"""What is shown of a turn while it is being spoken: no thought, no block, and every word of the rest."""

from __future__ import annotations

import pytest

from council.turns.streaming import Hearing


def heard(text: str, size_chars: int) -> str:
    """What a watcher has on the screen after `text` came in pieces of a size."""
    shown: list[str] = []

    def tell(hearing: Hearing, piece: str | None) -> None:
        if piece is None:
            shown.clear()
        else:
            shown.append(piece)

    hearing = Hearing("AUDITOR", 1, tell)
    for at in range(0, len(text), size_chars):
        hearing(text[at : at + size_chars])
    assert hearing.text == "".join(shown)
    return "".join(shown)


BLOCK = '{"position": "wait for it", "confidence": 1, "evidence": [], "would_change": ""}'


@pytest.mark.parametrize("size_chars", [1, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("I would wait. ", "I would wait. "),
        ("<think>QUARK one</think>I would wait. ", "I would wait. "),
        ("<thinking>QUARK one</thinking>I would wait. ", "I would wait. "),
        ("<Reasoning>QUARK one</Reasoning> I would wait. ", "I would wait. "),
        ("\n\n<think>QUARK one</think>\n\nI would wait. ", "\n\nI would wait. "),
        ("<think>QUARK</think>\n<think>QUARK two</think>I would wait. ", "I would wait. "),
        ("I would.\n<think>QUARK one</think>\nWait. ", "I would.\nWait. "),
        ("I would.\n<think>QUARK one and no end ", "I would.\n"),
        ("QUARK one and more\n</think>\n\nI would wait. ", "I would wait. "),
        (f"I would wait.\n\n```council\n{BLOCK}\n```\n", "I would wait.\n\n"),
        (f"I would wait.\n\n~~~council\n{BLOCK}\n~~~\n", "I would wait.\n\n"),
        (f"```json\n{BLOCK}\n```\n", ""),
        ("A set {1, 2} and </div> stay. ", "A set {1, 2} and </div> stay. "),
    ],
)
def test_thoughts_and_blocks_are_not_for_watching(text: str, said: str, size_chars: int) -> None:
    assert heard(text, size_chars).strip() == said.strip()


def test_another_attempt_takes_back_what_was_shown() -> None:
    told: list[str | None] = []
    hearing = Hearing("AUDITOR", 1, lambda _, piece: told.append(piece))
    hearing("Half an ")
    hearing.restart()
    hearing("A whole one. ")
    assert told == ["Half an ", None, "A whole one. "]
