"""`council stats`: the sums over all runs."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec
import typer

from council.cli.context import columns, state
from council.errors import UsageError
from council.ids import escape_unseen, timestamp
from council.reports.recent import recent
from council.reports.stats import stats as sum_up
from council.reports.stats_terminal import show

_AGO = re.compile(r"([0-9]{1,5})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}


def stats(
    ctx: typer.Context,
    since: Annotated[
        str, typer.Option(metavar="WHEN", help="Only runs admitted since then: 7d, 24h, 4w, or a date (UTC).")
    ] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object; docs/explain.md has its keys.")
    ] = False,
) -> None:
    cli, first = state(ctx), moment(since, datetime.now(UTC))
    ledger = cli.desk().ledger
    entries = ledger.since(first)
    found = sum_up(entries, first, last_runs=recent(entries, ledger))
    if as_json:
        typer.echo(escape_unseen(msgspec.json.encode(found).decode()))
        return
    show(found, sys.stdout, columns=columns(), coloured=cli.coloured, plots=sys.stdout.isatty())


def moment(since: str, now: datetime) -> str:
    """`7d` or a date as RFC 3339 in UTC, "" for "". Raises UsageError."""
    if not since:
        return ""
    ago = _AGO.fullmatch(since.strip())
    try:
        if ago is not None:
            return timestamp(now - timedelta(hours=int(ago[1]) * _HOURS[ago[2]]))
        given = datetime.fromisoformat(since.strip())
        return timestamp(given if given.tzinfo else given.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise UsageError(
            f"--since {since!r} is no time.", fix="say 24h, 7d, 4w, or a date such as 2026-11-20"
        ) from None
