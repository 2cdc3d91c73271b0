"""`council doctor`: checks of everything a council needs, each with the command that mends it."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from typing import Annotated

import typer

from council.cli.context import AsJson, print_json, state
from council.errors import EXIT_CONFIG
from council.ids import SystemClock
from council.upkeep.doctor import examine, ping

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor(
    ctx: typer.Context,
    online: Annotated[bool, typer.Option("--online", help="Also ask the model one tiny question.")] = False,
    model: Annotated[str | None, typer.Option(help="As for `council run`.")] = None,
    as_json: AsJson = False,
) -> None:
    cli = state(ctx)
    desk = cli.desk(model=model)
    checks = examine(desk.home, desk.keys, flags=desk.flags, environ=desk.environ, clock=SystemClock())
    if online and not any(check.name == "settings" and check.status == "fail" for check in checks):
        checks.append(asyncio.run(ping(desk.home, desk.settings, desk.keys)))
    redact = desk.keys.redactor.redact
    checks = [replace(check, message=redact(check.message), fix=redact(check.fix)) for check in checks]
    if as_json:
        worst = next(status for status in ("fail", "warn", "ok") if any(check.status == status for check in checks))
        print_json({"status": worst, "checks": [asdict(check) for check in checks]})
    else:
        width = max(len(check.name) for check in checks)
        lines = [f"home: {desk.home.root}", ""]
        for check in checks:
            word = cli.styled(f"{check.status:<4}", fg=_COLOURS[check.status])
            lines.append(f"{word}  {check.name:<{width}}  {check.message}")
            if check.fix:
                lines.append(f"{'':6}{'':<{width}}  fix: {check.fix}")
        counts = {status: sum(check.status == status for check in checks) for status in _COLOURS}
        lines += ["", ", ".join(f"{count} {status}" for status, count in counts.items() if count)]
        typer.echo("\n".join(lines))
    if any(check.status == "fail" for check in checks):
        raise typer.Exit(EXIT_CONFIG)
