"""The `council` command: its options, its sub-commands, and what an error looks like."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from council import __version__
from council.cli import config, daemon, runs, start, submit
from council.cli.context import CliState
from council.errors import EXIT_CODES, EXIT_FAILED, EXIT_INTERRUPTED, CouncilError

_EPILOG = "Exit codes:\n\n" + "\n\n".join(f"{code}: {meaning}" for code, meaning in EXIT_CODES.items())

app = typer.Typer(
    name="council",
    help="Drop a command file; a council of AI agents deliberates and leaves a decision you can audit.",
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def top(
    ctx: typer.Context,
    home: Annotated[
        Path | None, typer.Option(help="The home; else COUNCIL_HOME, else the nearest folder upward that is one.")
    ] = None,
) -> None:
    """Options before the sub-command count for all of them."""
    ctx.obj = CliState(home_flag=home)


@app.command()
def version(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Print the version."""
    typer.echo(json.dumps({"version": __version__}) if as_json else f"council {__version__}")


app.command()(start.init)
app.command()(start.demo)
app.command()(daemon.run)
app.command()(submit.submit)
app.command()(runs.status)
app.command()(runs.show)
app.command()(runs.cancel)
app.add_typer(config.app, name="config")


def main() -> None:
    """Runs the command line; a CouncilError becomes one message on stderr and its exit code."""
    try:
        app()
    except CouncilError as error:
        print(f"error ({error.code}): {error.message}", file=sys.stderr)  # noqa: T201
        if error.fix:
            print(f"  fix: {error.fix}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter's own flush is silent
        sys.exit(EXIT_FAILED)
