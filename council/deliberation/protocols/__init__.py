"""The protocols by which a council speaks: one short module each, all over the same turn (`Deliberation.speak`). See
docs/protocols.md."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from council.deliberation.commands import ProtocolName
from council.deliberation.protocols import independent, review, triad

if TYPE_CHECKING:
    from council.deliberation.deliberate import Deliberation

PROTOCOLS: Mapping[ProtocolName, Callable[[Deliberation], Awaitable[None]]] = {
    "triad": triad.deliberate,
    "independent": independent.deliberate,
    "review": review.deliberate,
}
