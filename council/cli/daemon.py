"""`council run`: the daemon in the foreground."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from council.cli import collector
from council.cli.context import CliState, state

if TYPE_CHECKING:
    from council.app import App
    from council.events import Event


def run(
    ctx: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Do what is there, then end with the worst run's code.")] = False,
    model: Annotated[
        str | None,
        typer.Option(
            help="<provider>:<model id> (`council models list`), scripted:<file>, cassette:<file> or offline."
        ),
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    log_format: Annotated[str | None, typer.Option(help="auto, human or json.")] = None,
    home: Annotated[Path | None, typer.Option(help="As before the sub-command.")] = None,
) -> None:
    """Watch commands/ and run what is dropped there, until SIGTERM or Ctrl-C."""
    cli = state(ctx)
    cli.home_flag = home or cli.home_flag
    cli.flags = {"model": model, "log_level": log_level, "log_format": log_format}
    raise typer.Exit(serve(cli, once=once, tell=sys.stdout))


def serve(
    cli: CliState, *, once: bool, tell: TextIO | None, only: str | None = None, timeout_s: float | None = None
) -> int:
    """Builds the council and serves; the exit code. `tell`: where events are told, None: nowhere. `only` and `timeout_s`
    as `Service` takes them."""
    import asyncio

    app = built(cli)
    from council.daemon.service import Service
    from council.daemon.terminal import HumanLines, JsonLines

    if tell is not None:
        format_ = app.settings.log_format
        human = tell.isatty() if format_ == "auto" else format_ == "human"
        app.events.subscribe(HumanLines(tell, app.redactor) if human else JsonLines(tell, app.clock, app.redactor))
    collector.look_as_usual()
    with logging_to_file(app):
        return asyncio.run(Service(app, once=once, only=only, timeout_s=timeout_s).run())


def built(cli: CliState) -> App:
    """The council of this home, with logging set up. Imported late: other commands need none of it."""
    from council.app import build_app
    from council.app.telemetry import build_telemetry
    from council.logs import configure

    settings, keys = cli.settings().settings, cli.keys()
    configure(settings.log_level, settings.log_format, keys.redactor)
    telemetry = build_telemetry(settings, keys, cli.environ)
    return build_app(cli.home(), settings, keys, environ=cli.environ, telemetry=telemetry)


@contextlib.contextmanager
def logging_to_file(app: App) -> Iterator[None]:
    """Events and log records go to `.council/logs/`; a folder that cannot be written stops nothing."""
    from council.events import SpeechPiece
    from council.logs import LogFile

    try:
        log_file = LogFile(app.home.log_file, app.redactor)
    except OSError as error:
        typer.echo(f"warning: no log is kept: {app.home.log_file.parent}: {error.strerror}", err=True)
        yield
        return

    def note(event: Event) -> None:
        if not isinstance(event, SpeechPiece):  # what is being said stands in the journal once it is said
            log_file.write_event(event.kind, event.run_id, event.values())

    unsubscribe = app.events.subscribe(note)
    try:
        yield
    finally:
        unsubscribe()
        log_file.close()
