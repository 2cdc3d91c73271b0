"""Messages that a person does not see: text in tag characters, variation selectors or zero-width characters.

They are stripped wherever text comes in or is shown (`untrusted.clean`); that one was there at all is worth knowing.
"""

from __future__ import annotations

import re

_FLAG = re.compile(
    "\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{1,8}\U000e007f"
)  # England, Scotland, Wales, …
_CARRIERS = re.compile(
    "[\U000e0020-\U000e007e]{6,}"  # a short word, one tag to a letter
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{6,}"  # a byte to a selector; an emoji or a letter has one
    "|[\u200b-\u200d\u2060-\u2064\ufeff]{16,}"  # a bit to a character; scripts that need them have one or two
)


def hides_text(text: str) -> bool:
    """Tells whether `text` carries a message in characters that show nothing. Flags of countries and emoji do not count."""
    return not text.isascii() and _CARRIERS.search(_FLAG.sub("", text)) is not None
