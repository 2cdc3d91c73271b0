"""What a model thought aloud is taken out of what it says, also while the text is still arriving. Pure.

Reasoning models write `<think>…</think>` before their answer where the server does not part the two. Some servers open
the element in the prompt, so that the reply holds the closing tag alone: that shows only once it has come.
"""

from __future__ import annotations

import re

from council.llm.extraction import BLANK, without_thoughts

_TAGS = ("<think>", "<thinking>", "<reasoning>")
_CLOSING = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_CLOSING_CHARS = len("</reasoning>")


class ThoughtFilter:
    """Takes the pieces of one reply and gives back, piece by piece, what is no thought.

    `end` gives what was held back because it could have become a tag. A thought that never ended is dropped with all
    that follows it.
    """

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._passing = False
        self.thought = False

    def feed(self, piece: str) -> str:
        """What may be shown now."""
        if self._passing:
            return piece
        self._held += piece
        while self._step():
            pass
        return self._release() if self._passing else ""

    def end(self) -> str:
        """What is left when no more comes."""
        return "" if self._inside else self._release()

    def _step(self) -> bool:
        """One tag taken off the front of what is held; False when there is none, or not yet."""
        if self._inside:
            closing = _CLOSING.search(self._held)
            if closing is None:
                self._held = self._held[-_CLOSING_CHARS:]  # a closing tag may be cut in two
                return False
            self._held, self._inside = self._held[closing.end() :], False
        if self.thought:
            self._held = self._held.lstrip(BLANK)
        text = self._held.lstrip(BLANK)
        head = text[:_CLOSING_CHARS].lower()
        tag = next((tag for tag in _TAGS if head.startswith(tag)), None)
        if tag is not None:
            self._held = text[len(tag) :]
            self._inside = self.thought = True
            return True
        self._passing = not any(candidate.startswith(head) for candidate in _TAGS)
        return False

    def _release(self) -> str:
        released, self._held = self._held, ""
        return released


def filtered(reply: str) -> str:
    """A whole reply without its thoughts; one without any is left as it is."""
    thoughts = ThoughtFilter()
    return behind_a_lone_closing(thoughts.feed(reply) + thoughts.end())


def behind_a_lone_closing(text: str) -> str:
    """`text` from behind the end of a thought whose opening tag never came; all of it where there is none."""
    answer = without_thoughts(text)
    return text if answer == text.strip(BLANK) else answer
