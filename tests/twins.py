"""Two snapshots side by side: what differs between twin worlds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def differences(path: str, one: Any, other: Any) -> Iterable[tuple[str, Any]]:
    """Each path that differs, with its value in the other; members by id."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from differences(f"{path}/{key}", one.get(key), other.get(key))
    elif path == "/members":
        by_id = [{each["id"]: each for each in side} for side in (one, other)]
        for key in sorted(by_id[0].keys() | by_id[1].keys()):
            yield from differences(f"{path}/{key}", by_id[0].get(key), by_id[1].get(key))
    elif one != other:
        yield path, other
