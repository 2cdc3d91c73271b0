"""A command that a person gives in a window: dropped in their name, and answered by its receipt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from council.desk.desk import Desk
from council.desk.errands import Errand
from council.engine.receipts import Receipt
from council.errors import CommandInvalid, DaemonRunning

_WAIT_S = 30.0


def hand_in(desk: Desk, command: Mapping[str, Any], user: str | None) -> Receipt:
    """The receipt of a command on behalf of `user`, else as the steward. For one that ends soon: a decision, an answer. Raises
    CommandInvalid for one that is set aside or fails, WaitTimeout, PathRefused, StorageFailed."""
    receipt = drop_for(desk, command, user).wait(_WAIT_S, no_drain)
    if receipt.error is not None:
        failed = CommandInvalid(receipt.error.message, fix=receipt.error.fix)
        failed.code = receipt.error.code
        raise failed
    return receipt


def drop_for(desk: Desk, command: Mapping[str, Any], user: str | None) -> Errand:
    """The command, dropped on behalf of `user`, else as the steward. Raises PathRefused, StorageFailed."""
    body = {**command, **({} if user is None else {"user": user})}
    return Errand(desk, f"{command['type']}.json", json.dumps(body).encode(), is_typed=True)


def no_drain(name: str, timeout_s: float) -> None:
    """The drain of a door that stands inside the daemon."""
    raise DaemonRunning("the daemon that serves this stops.", fix="try again when it runs")
