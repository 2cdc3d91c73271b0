"""The `council` command: its options, its sub-commands, and what an error looks like."""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from council import __version__
from council.cli import (
    agents,
    audit,
    cassette,
    check,
    completion,
    config,
    cortex,
    daemon,
    doctor,
    evaluate,
    explain,
    logs,
    memory,
    models,
    repair,
    reports,
    runs,
    schedule,
    start,
    stats,
    submit,
    users,
    validate,
    vault,
)
from council.cli.context import CliState, state
from council.cli.help import KNOW, LOOK, MEND, START, WORK, SectionedGroup
from council.errors import EXIT_CODES, EXIT_FAILED, EXIT_INTERRUPTED, CouncilError

# \b: lines stay lines.
_EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())

app = typer.Typer(
    name="council",
    cls=SectionedGroup,
    add_completion=False,  # `council completion` prints the script of the shell that is asked for
    context_settings={"max_content_width": 100},
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
    state(ctx).home_flag = home


def version(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Print the version."""
    typer.echo(json.dumps({"version": __version__}) if as_json else f"council {__version__}")


app.command(rich_help_panel=START)(start.init)
app.command(rich_help_panel=START)(start.demo)
app.command(rich_help_panel=WORK)(daemon.run)
app.command(rich_help_panel=WORK)(submit.submit)
app.command(rich_help_panel=WORK)(validate.validate)
app.command(rich_help_panel=WORK)(check.check)
app.command(rich_help_panel=WORK)(runs.cancel)
app.command(rich_help_panel=WORK)(runs.resume)
app.command(rich_help_panel=WORK)(runs.retry)
app.add_typer(schedule.app, name="schedule", rich_help_panel=WORK)
app.command(rich_help_panel=LOOK)(runs.status)
app.command(rich_help_panel=LOOK)(runs.show)
app.command(rich_help_panel=LOOK)(explain.explain)
app.command(rich_help_panel=LOOK)(explain.report)
app.command(rich_help_panel=LOOK)(reports.replay)
app.command(rich_help_panel=LOOK)(reports.diff)
app.command(rich_help_panel=LOOK)(stats.stats)
app.command(rich_help_panel=LOOK)(cassette.cassette)
app.command(rich_help_panel=LOOK)(logs.logs)
app.add_typer(audit.app, name="audit", rich_help_panel=LOOK)
app.command("eval", rich_help_panel=LOOK)(evaluate.evaluate)
app.add_typer(agents.app, name="agents", rich_help_panel=KNOW)
app.add_typer(memory.app, name="memory", rich_help_panel=KNOW)
app.command(rich_help_panel=KNOW)(memory.forget)
app.add_typer(cortex.app, name="cortex", rich_help_panel=KNOW)
app.add_typer(models.app, name="models", rich_help_panel=KNOW)
app.command(rich_help_panel=MEND)(doctor.doctor)
app.command(rich_help_panel=MEND)(repair.repair)
app.command(rich_help_panel=MEND)(repair.prune)
app.add_typer(config.app, name="config", rich_help_panel=MEND)
app.command(rich_help_panel=MEND)(validate.schema)
app.command(rich_help_panel=MEND)(completion.completion)
app.add_typer(users.app, name="users", rich_help_panel=MEND)
app.add_typer(vault.app, name="vault", rich_help_panel=MEND)
app.command(rich_help_panel=MEND)(version)


def main() -> None:
    """Runs the command line; a CouncilError becomes one message on stderr and its exit code."""
    if completion.VARIABLE in os.environ:
        completion.prepare()
    cli = CliState()
    try:
        app(obj=cli)
    except CouncilError as error:
        told = f"error ({error.code}): {error.message}" + (f"\n  fix: {error.fix}" if error.fix else "")
        print(cli.redact(told), file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except PermissionError as error:
        print(f"error (permission): {error.strerror}: {error.filename}", file=sys.stderr)  # noqa: T201
        print("  fix: give this user access to it", file=sys.stderr)  # noqa: T201
        sys.exit(EXIT_FAILED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter's own flush is silent
        sys.exit(EXIT_FAILED)
    except Exception as error:  # noqa: BLE001 - a defect: its traceback is for a report, and may hold anybody's words
        print(cli.redact("".join(traceback.format_exception(error))), file=sys.stderr)  # noqa: T201
        sys.exit(EXIT_FAILED)
