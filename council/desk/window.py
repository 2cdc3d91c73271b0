"""The window of a home: the link that signs a browser in, and a command that a person gives there, answered by its receipt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from council.commands.parsing import parse_command
from council.desk.desk import Desk
from council.desk.drop_and_wait import Errand
from council.desk.overview import overview
from council.engine.receipts import Receipt
from council.errors import EXIT_NO_DAEMON, CommandInvalid, CouncilError, DaemonRunning
from council.ids import STEWARD
from council.users.sign_in_links import make_link

_WAIT_S = 30.0


def hand_in(desk: Desk, command: Mapping[str, Any], user: str | None) -> Receipt:
    """The receipt of a command on behalf of `user`, else as the steward. For one that ends soon: a decision, an answer. Raises
    CommandInvalid for one that is set aside or fails, WaitTimeout, PathRefused, StorageFailed."""
    given = ordered(desk, user, command)
    receipt = given if isinstance(given, Receipt) else given.wait(_WAIT_S, no_drain)
    require_success(receipt)
    return receipt


def require_success(receipt: Receipt) -> None:
    """Raises CommandInvalid with the error of a run that failed."""
    if receipt.error is not None:
        failed = CommandInvalid(receipt.error.message, fix=receipt.error.fix)
        failed.code = receipt.error.code
        raise failed


def ordered(desk: Desk, user: str | None, body: Mapping[str, Any]) -> Errand | Receipt:
    """A command of this user, else of the steward, dropped; the receipt where its id is known. What is not admitted
    is not dropped. Raises CouncilError, CommandInvalid with every problem of its form."""
    given = body.get("user")
    if given not in (None, user):
        message = f"`user` is {given!r}, and this is asked by {user or STEWARD.id}."
        raise CommandInvalid(message, fix="leave `user` out", field="user", refused=True)
    data = json.dumps(body if user is None else {**body, "user": user}).encode()
    command = parse_command(desk.commands, "command.json", data)
    known = desk.admission_of(command)
    return known if isinstance(known, Receipt) else Errand(desk, f"{command.type}.json", data, is_typed=True)


def no_drain(name: str, timeout_s: float) -> None:
    """The drain of a door that stands inside the daemon."""
    raise DaemonRunning("the daemon that serves this stops.", fix="try again when it runs")


class NoWindow(CouncilError):
    """No daemon of this home serves pages."""

    code = "no_window"
    exit_code = EXIT_NO_DAEMON
    http_status = 409


def sign_in_link(desk: Desk, user_id: str) -> str:
    """The pages' address with a word that signs in once. Raises NoWindow, NoPrincipal, ConfigError, StorageFailed."""
    seen, settings = overview(desk), desk.settings
    if "http" not in seen.companions or seen.daemon is None:
        fix = "start one with `council run --http 127.0.0.1:8420`, or set `http` in council.toml"
        raise NoWindow("no daemon serves the pages of this home.", fix=fix)
    if reason := seen.degraded.get("http"):
        fix = "`council status` shows when it does"
        raise NoWindow(f"the HTTP server of this home does not run: {reason}", fix=fix)
    secure = settings.behind_tls and settings.http_hosts
    address = f"https://{settings.http_hosts[0]}" if secure else f"http://{seen.daemon['http']}"
    with desk.safe() as safe:
        return f"{address}/sign-in?link={make_link(safe.trail.log(), user_id)}"
