"""The `council` command: its options, its sub-commands, and what an error looks like."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from council.cli import collector, completion
from council.cli.context import CliState, state
from council.cli.help import KNOW, LOOK, MEND, START, WORK
from council.cli.lazy import Entry, LazyGroup
from council.errors import EXIT_CODES, EXIT_FAILED, EXIT_INTERRUPTED, CouncilError

# \b: lines stay lines.
_EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())


class _Council(LazyGroup):
    entries: ClassVar[dict[str, Entry]] = {
        "init": Entry("start:init", START),
        "demo": Entry("start:demo", START),
        "run": Entry("daemon:run", WORK),
        "submit": Entry("submit:submit", WORK),
        "validate": Entry("validate:validate", WORK),
        "check": Entry("check:check", WORK),
        "cancel": Entry("runs:cancel", WORK),
        "resume": Entry("runs:resume", WORK),
        "retry": Entry("runs:retry", WORK),
        "status": Entry("runs:status", LOOK),
        "show": Entry("runs:show", LOOK),
        "explain": Entry("explain:explain", LOOK),
        "report": Entry("explain:report", LOOK),
        "replay": Entry("reports:replay", LOOK),
        "diff": Entry("reports:diff", LOOK),
        "journal": Entry("reports:journal", LOOK),
        "stats": Entry("stats:stats", LOOK),
        "cassette": Entry("cassette:cassette", LOOK),
        "logs": Entry("logs:logs", LOOK),
        "eval": Entry("evaluate:evaluate", LOOK),
        "forget": Entry("memory:forget", KNOW),
        "doctor": Entry("doctor:doctor", MEND),
        "repair": Entry("repair:repair", MEND),
        "prune": Entry("repair:prune", MEND),
        "backup": Entry("repair:backup", MEND),
        "restore": Entry("repair:restore", MEND),
        "schema": Entry("validate:schema", MEND),
        "completion": Entry("completion:completion", MEND),
        "version": Entry("version:version", MEND),
        "schedule": Entry("schedule:app", WORK),
        "audit": Entry("audit:app", LOOK),
        "agents": Entry("agents:app", KNOW),
        "memory": Entry("memory:app", KNOW),
        "cortex": Entry("cortex:app", KNOW),
        "models": Entry("models:app", KNOW),
        "config": Entry("config:app", MEND),
        "users": Entry("users:app", MEND),
        "vault": Entry("vault:app", MEND),
    }


app = typer.Typer(
    name="council",
    cls=_Council,
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


def main() -> None:
    """Runs the command line; a CouncilError becomes one message on stderr and its exit code."""
    collector.look_seldom()
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
    finally:
        collector.look_no_more()
