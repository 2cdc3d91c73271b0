"""`council doctor`: checks of everything a council needs, each with the command that mends it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from council.cli.context import state
from council.errors import EXIT_CONFIG
from council.ids import readable_json

if TYPE_CHECKING:
    pass

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor(
    ctx: typer.Context,
    online: Annotated[bool, typer.Option("--online", help="Also ask the model one tiny question.")] = False,
    model: Annotated[str | None, typer.Option(help="As for `council run`.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check everything a council needs; each finding comes with the command that mends it."""
    import asyncio

    from council.ids import SystemClock
    from council.upkeep.doctor import examine, ping

    cli = state(ctx)
    cli.flags = {"model": model}
    checks = examine(cli.home(), cli.keys(), flags=cli.flags, environ=cli.environ, clock=SystemClock())
    if online and not any(check.name == "settings" and check.status == "fail" for check in checks):
        checks.append(asyncio.run(ping(cli.home(), cli.settings().settings, cli.keys())))
    redact = cli.keys().redactor.redact
    checks = [replace(check, message=redact(check.message), fix=redact(check.fix)) for check in checks]
    if as_json:
        worst = next(status for status in ("fail", "warn", "ok") if any(check.status == status for check in checks))
        typer.echo(readable_json({"status": worst, "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        width = max(len(check.name) for check in checks)
        lines = [f"home: {cli.home().root}", ""]
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
