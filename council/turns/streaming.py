"""An agent's words as they arrive, for those who watch. The journal gets the whole reply only.

Thoughts, the block that ends a turn and a record in JSON are not for watching, nor are secrets.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Collection

from council.llm.base import Restartable
from council.llm.extraction import names_keys
from council.markup import CLOSING, OPENING, equal_at_start, without_thoughts
from council.safety.untrusted import clean

# The beginning of a block, in a fence or bare. The expression begins with a set of signs: so `re` passes over all others
# quickly. Its runs of blanks are possessive: they cost no square of their length.
_BLOCK = re.compile(
    r"[`~{](?:(?:(?<=`)``|(?<=~)~~)[ \t]*+(?:council|(?P<fenced>(?:json[5c]?+|\r?\n)\s*+\{))|(?P<bare>(?<=^\{)(?=\s*+[\"}])))",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSING_FENCE = re.compile(r"(?:^|\})[ \t]*+(?:`{3,}+|~{3,}+)[ \t\r]*+$", re.MULTILINE)
_END = re.compile(r"(?:\s*+\[[^\]\n]*+(?:\]|\Z))*+\s*+\Z")  # requests may stand behind a block
_MAY_BLOCK = re.compile(r"(?:```|~~~)[ \t]*(?:json[5c]?)?\s*\Z", re.IGNORECASE)  # as long as nothing follows
_MAY_BLOCK_CHARS = 40
_TO_UNSPACED = re.compile(r".*[^\x00-\x7f]", re.DOTALL)
_MAX_UNBROKEN = 400  # characters: beyond, a script without spaces is shown, too; a key is in no such script
_JUDGED_CHARS = 2_000  # before what is new, read with it: several sentences
_GROWTH = 50  # the reply is looked at when it has grown by this part of itself, so that the work stays linear
_MORE = "_"  # stands for what is still to come: what is before it is not the end of the reply


Blocks = Callable[[str], bool]  # of a guardrail: True for words that nobody may be shown


class Hearing(Restartable):
    """A listener (`council.llm.base.OnText`) for one call. `tell` gets each new piece of `text`, None when all is taken
    back. Words that `blocks` is true of are withheld, with all that follows. `redact` takes the secrets out. `keys` are
    those of the record that is asked for, if one is.

    Shown text stays: the beginning of a secret with white space in it may have been shown."""

    def __init__(
        self,
        role: str,
        round_no: int,
        tell: Callable[[Hearing, str | None], None],
        blocks: Blocks = lambda text: False,
        redact: Callable[[str], str] = str,
        keys: Collection[str] = (),
    ) -> None:
        self.role = role
        self.round = round_no
        self._tell = tell
        self._blocks = blocks
        self._redact = redact
        self._keys = keys
        self._begin()

    def _begin(self) -> None:
        self._pieces: list[str] = []
        self._size_chars = self._looked_chars = 0
        self._forget()

    def _forget(self) -> None:
        self._visible = self.text = ""
        self._withheld = False

    def __call__(self, piece: str) -> None:
        self._pieces.append(piece)
        self._size_chars += len(piece)
        if self._size_chars - self._looked_chars > self._size_chars // _GROWTH:
            self._looked_chars = self._size_chars
            self._show(visible("".join(self._pieces), self._keys))

    def end(self) -> None:
        """The reply is whole: its last word is told, too."""
        self._show(visible("".join(self._pieces), self._keys, whole=True))

    def restart(self) -> None:
        if self._pieces:
            self._begin()
            self._tell(self, None)

    def _show(self, now: str) -> None:
        if not now.startswith(self._visible.rstrip()):  # what was shown was a thought, as its end says
            self._forget()
            self._tell(self, None)
        new = max(0, len(self._visible) - _JUDGED_CHARS)
        self._visible = now
        self._withheld = self._withheld or self._blocks(now[new:])
        if self._withheld:
            return
        text = self._redact(now)
        if told := text[equal_at_start(self.text, text) :]:
            self.text = text
            self._tell(self, told)


def visible(reply: str, keys: Collection[str] = (), *, whole: bool = False) -> str:
    """The part of a reply that is for watching. Its last word is not while it may go on: words are told whole, keys
    above all. Nor is its first block, with all behind it: a fence tagged `council`, or JSON that ends the reply so far or
    names the `keys`. Other JSON with words behind it is an example."""
    said = without_thoughts(clean(reply if whole else f"{reply}{_MORE}"))
    if said.startswith("{"):
        return ""
    said = said if whole else said.removesuffix(_MORE)
    at = 0
    while block := _BLOCK.search(said, at):
        end: int | None = None
        if block["fenced"]:
            closing = _CLOSING_FENCE.search(said, block.end() - 1)
            end = None if closing is None else closing.end()
        elif block["bare"] is not None:
            with contextlib.suppress(ValueError, RecursionError):  # it is not whole, or no JSON
                _, end = json.JSONDecoder().raw_decode(said, block.start())
        if end is None or _END.match(said, end) or names_keys(said[block.start() : end], keys):
            said = said[: block.start()]
            break
        at = end
    openings = [opening.start() for opening in OPENING.finditer(said)] if "<" in said else []
    if openings and CLOSING.search(said, openings[-1]) is None:
        said = said[: openings[-1]]
    if whole:
        return said
    if block := _MAY_BLOCK.search(said, max(0, len(said) - _MAY_BLOCK_CHARS)):
        said = said[: block.start()]
    words_end = max(said.rfind(" "), said.rfind("\n")) + 1
    if len(said) - words_end > _MAX_UNBROKEN and (unspaced := _TO_UNSPACED.match(said, words_end)):
        words_end = unspaced.end()
    return said[:words_end]
