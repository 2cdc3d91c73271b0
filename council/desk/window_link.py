"""The window of a home: the address of its pages, and a link that signs a browser in."""

from __future__ import annotations

from council.desk.desk import Desk
from council.desk.overview import overview
from council.errors import EXIT_NO_DAEMON, CouncilError


class NoWindow(CouncilError):
    """No daemon of this home serves pages."""

    code = "no_window"
    exit_code = EXIT_NO_DAEMON
    http_status = 409


def sign_in_link(desk: Desk, user_id: str) -> str:
    """The address of the pages with a word that signs this person in once, within five minutes. Raises NoWindow,
    NoPrincipal, ConfigError, StorageFailed."""
    seen, settings = overview(desk), desk.settings
    if "http" not in seen.companions or seen.daemon is None:
        raise NoWindow(
            "no daemon serves the pages of this home.",
            fix="start one with `council run --http 127.0.0.1:8420`, or set `http` in council.toml",
        )
    if reason := seen.degraded.get("http"):
        raise NoWindow(
            f"the HTTP server of this home does not run: {reason}", fix="`council status` shows when it does"
        )
    secure = settings.behind_tls and settings.http_hosts
    address = f"https://{settings.http_hosts[0]}" if secure else f"http://{seen.daemon['http']}"
    with desk.safe() as safe:
        return f"{address}/sign-in?link={safe.sign_ins().make_link(user_id)}"
