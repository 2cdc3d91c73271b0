"""`council run`: the daemon in the foreground."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from council.cli.context import USUAL_COLLECTION, state
from council.errors import ConfigError
from council.events import Event, EventLines, SpeechPiece
from council.ids import new_run_id
from council.logs import LogFile, configure

if TYPE_CHECKING:
    from council.app import App
    from council.desk.desk import Desk
    from council.systems import Companion


def run(
    ctx: typer.Context,
    once: Annotated[
        bool, typer.Option("--once", help="Run what is there, then exit with the code of the worst run.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            help="<provider>:<model id> (`council models list`), scripted:<file>, cassette:<file> or offline."
        ),
    ] = None,
    http: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve HTTP beside the daemon, such as 127.0.0.1:8420.")
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    log_format: Annotated[str | None, typer.Option(help="auto, human or json.")] = None,
    home: Annotated[Path | None, typer.Option(help="The same option as before the sub-command.")] = None,
) -> None:
    cli = state(ctx)
    cli.home_flag = home or cli.home_flag
    desk = cli.desk(model=model, http=http, log_level=log_level, log_format=log_format)
    raise typer.Exit(serve(desk, once=once, tell=sys.stdout))


def serve(
    desk: Desk,
    *,
    once: bool,
    tell: TextIO | None,
    only: str | None = None,
    timeout_s: float | None = None,
    hear: Callable[[Event], None] | None = None,
) -> int:
    """`tell`: where events are told, None: nowhere. `hear` is told of every event. `only` and `timeout_s` as `Service`."""
    from council.app import build_app  # not at the top: who waits for a daemon's answer needs no council of his own
    from council.daemon.full_disk import app_when_there_is_room
    from council.daemon.service import Service
    from council.daemon.terminal import HumanLines, JsonLines
    from council.telemetry.switch import build_telemetry

    settings, keys = desk.settings, desk.keys
    configure(settings.log_level, settings.log_format, keys.redactor)
    telemetry = build_telemetry(settings, keys, desk.environ)

    def build() -> App:
        return build_app(desk.home, settings, keys, systems=desk.systems(), environ=desk.environ, telemetry=telemetry)

    app = build() if once or only is not None else app_when_there_is_room(build, desk.home, settings)
    if isinstance(app, int):
        return app
    lines = EventLines(app.redactor.redact)
    if tell is not None:
        human = tell.isatty() if settings.log_format == "auto" else settings.log_format == "human"
        app.events.subscribe(HumanLines(tell, app.redactor) if human else JsonLines(tell, app.clock, lines))
    if hear is not None:
        app.events.subscribe(hear)
    gc.set_threshold(*USUAL_COLLECTION)
    with logging_to_file(app, lines):
        companions = [] if once or only is not None else _web(desk, app)
        return asyncio.run(Service(app, once=once, only=only, timeout_s=timeout_s, companions=companions).run())


def _web(desk: Desk, app: App) -> list[Companion]:
    """The HTTP server, where the settings name an address. Raises ConfigError without the packages that it needs."""
    if not desk.settings.http:
        return []
    try:
        from council.users.api_keys import keys_of_people  # not at the top: packages that may not be there
        from council.web.asgi import build_application
        from council.web.live_updates import Broadcast, Floor
        from council.web.server import HttpServer
        from council.world.system import book_of
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"`http` needs the package {missing.name}.", fix="pip install 'council[web]'", field="http"
        ) from missing
    broadcast = Broadcast(app.events, new_run_id(app.clock.now()))
    floor = Floor(app.events)
    application = build_application(desk, desk.settings, book_of(app), broadcast, floor)
    has_keys = any(not key.revoked for key in keys_of_people(app.store))
    return [HttpServer(desk.settings, application, broadcast, has_keys=has_keys)]


@contextlib.contextmanager
def logging_to_file(app: App, lines: EventLines) -> Iterator[None]:
    """Events and log records go to `.council/logs/`; a folder that cannot be written stops nothing."""
    try:
        log_file = LogFile(app.home.log_file, app.redactor)
    except OSError as error:
        typer.echo(f"warning: the log cannot be written: {app.home.log_file.parent}: {error.strerror}", err=True)
        yield
        return

    def note(event: Event) -> None:
        if not isinstance(event, SpeechPiece):  # what is being said stands in the journal once it is said
            log_file.write_event(lines.of(event))

    unsubscribe = app.events.subscribe(note)
    try:
        yield
    finally:
        unsubscribe()
        log_file.close()
