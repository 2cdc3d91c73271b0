"""The `council` command: its options, its sub-commands, and what an error looks like."""

from __future__ import annotations

import errno
import gc
import io
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer
from typer import completion as typer_completion
from typer.main import get_command

from council import __version__
from council.cli.context import AsJson, CliState, named_folder, state
from council.cli.groups import DEVELOP, KNOW, LOOK, MEND, START, WORK, LazyGroup, SubCommand
from council.desk.all_systems import house
from council.errors import EXIT_CODES, EXIT_FAILED, EXIT_INTERRUPTED, CouncilError

if TYPE_CHECKING:
    from council.systems import System

# \b: lines stay lines.
_EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())
_COMPLETES = "_COUNCIL_COMPLETE"  # set: typer answers with completions, in the words that each shell's script expects
_OBJECTS_WHILE_LOADING = 50_000  # young ones; with the usual 700 all is looked through a dozen times until it is loaded


class _Council(LazyGroup):
    # fmt: off
    entries: ClassVar[dict[str, SubCommand]] = {
        "init": SubCommand("start:init", START,
            "Make a home: commands/, artifacts/, personas/, session_states/, council.toml. Overwrites nothing of yours."),
        "demo": SubCommand("start:demo", START,
            "Make a demo home with three documents, drop a command, and let the real daemon deliberate offline."),
        "run": SubCommand("daemon:run", WORK, "Watch commands/ and run what is dropped there, until SIGTERM or Ctrl-C."),
        "submit": SubCommand("submit:submit", WORK,
            "Drop a command into commands/. With --wait, wait for the answer, and run it here if no daemon does."),
        "ui": SubCommand("users_command:ui", WORK,
            "Open the pages of this home in a browser, signed in by a link that works once. Without a browser, print it."),
        "validate": SubCommand("validate:validate", WORK,
            "Check a command file without dropping it. Exits with code 2 if the daemon would refuse it. "
            "Exits with code 1 if an input cannot be read, or if the run would fail as things are."),
        "check": SubCommand("validate:check", WORK,
            "Ask the guardrails and the ministers about a file. Exits with code 6 if one of them objects. "
            "In a home, its `scope_topics` apply to tasks."),
        "cancel": SubCommand("run_control:cancel", WORK, "Cancel a run. Its page keeps what was said until then."),
        "resume": SubCommand("run_control:resume", WORK, "Continue a run that waits, failed or was cancelled."),
        "retry": SubCommand("run_control:retry", WORK,
            "Repeat an ended run with a new budget: all of it, or from one step on."),
        "ask": SubCommand("ask:ask", WORK,
            "Ask the conductor: it finds who can help, and answers. The next request continues the conversation."),
        "answer": SubCommand("ask:answer", WORK, "Answer the question for which a run waits."),
        "prefs": SubCommand("users_command:prefs", KNOW, "Your preferences: how the conductor speaks, and what it may remember."),
        "plans": SubCommand("plans:app", WORK,
            "Decide what waits for you: each change is shown, then confirmed and applied, rejected or skipped."),
        "status": SubCommand("status_command:status", LOOK,
            "Print what the daemon is doing, what waits, and how the last runs ended."),
        "runs": SubCommand("reporting:runs", LOOK,
            "List the runs, newest first: time, status, cost, page and title. "
            "With WORDS, list only those that contain them. A run's id begins with the time of its admission (UTC)."),
        "show": SubCommand("run_control:show", LOOK, "Print the answer of a run and where its page is."),
        "explain": SubCommand("reporting:explain", LOOK,
            "Explain how a run came about: times, tokens and cost per agent, what was read, who changed its mind, "
            "why it stopped."),
        "report": SubCommand("reporting:report", LOOK,
            "Write an HTML page about a run: what `explain` says, with charts, the decision and the transcript."),
        "replay": SubCommand("journals:replay", LOOK,
            "Render the page of an ended run again from its journal, without a model call."),
        "diff": SubCommand("journals:diff", LOOK,
            "Show where two runs differ: the first step asked or answered differently, with what differs in the prompts."),
        "stats": SubCommand("reporting:stats", LOOK,
            "Sum up all runs: how they ended, tokens, cost, times, models and days."),
        "logs": SubCommand("logs_command:logs", LOOK, "Print the daemon's log: events and log records, oldest first."),
        "forget": SubCommand("agents:forget", KNOW,
            "Remove a text or a run from all that Council keeps: memory, archive, index, journals, logs and artifacts."),
        "doctor": SubCommand("maintenance:doctor", MEND,
            "Check everything that a council needs. Each problem comes with the command that fixes it."),
        "repair": SubCommand("maintenance:repair", MEND,
            "Repair what a crash left inconsistent outside the database: memory and leftover files."),
        "prune": SubCommand("maintenance:prune", MEND,
            "Prune the oldest ended runs beyond keep_days, keep_runs and keep_bytes, as the daemon does each hour."),
        "backup": SubCommand("maintenance:backup", MEND,
            "Copy the home's database, even while the daemon runs. Use any tool to copy the files."),
        "restore": SubCommand("maintenance:restore", MEND,
            "Restore the database from a copy, and set the present one aside. Names the runs and spending that the copy lacks."),
        "version": SubCommand("main:version", MEND, "Print the version."),
        "workspace": SubCommand("workspace:app", WORK,
            "Organizations, projects, tasks, notes and events: see and change them (docs/workspace.md)."),
        "specialists": SubCommand("specialists:app", WORK,
            "Specialists: agents that are made, tested and promoted here (docs/specialists.md)."),
        "schedule": SubCommand("schedules:app", WORK, "Recurring commands: the files in commands/recurring/."),
        "audit": SubCommand("audit:app", LOOK,
            "A signed chain of records: changes, approvals, reads of secrets, refusals (docs/security.md)."),
        "agents": SubCommand("agents:agents", KNOW, "The agents of this home: their roles, tools and personas."),
        "memory": SubCommand("agents:memory", KNOW, "The memory of agents across tasks (Protocol 94)."),
        "cortex": SubCommand("cortex_command:app", KNOW,
            "The index behind QUERY_CORTEX: passages of this home's files, with path, lines and SHA-256."),
        "models": SubCommand("models_command:app", KNOW, "Models: list them, and test whether they work from here."),
        "config": SubCommand("config:app", MEND, "Settings and where they come from."),
        "users": SubCommand("users_command:users", MEND,
            "The people on whose behalf a command may act (its key `user`), and their roles."),
        "keys": SubCommand("users_command:keys", MEND,
            "The keys by which people's programs call over HTTP (docs/http.md)."),
        "world": SubCommand("world:app", WORK,
            "The world, in which outside programs play over HTTP (docs/world.md)."),
        "sandbox": SubCommand("sandbox:app", MEND,
            "Foreign code in a sandbox: check what this machine can isolate, or run a function (docs/sandbox.md)."),
        "vault": SubCommand("vault:app", MEND,
            "Encrypted credentials, each for one user and role; every read is audited before it happens (docs/security.md)."),
        "journal": SubCommand("journals:journal", DEVELOP,
            "Print a run's journal, record by record, even if the run has not ended."),
        "cassette": SubCommand("journals:cassette", DEVELOP,
            "Save all model calls and replies of ended runs as a cassette, a file that can replace the model."),
        "eval": SubCommand("eval:evaluate", DEVELOP,
            "Measure on golden questions whether the council is worth it, or (`routing`) how requests find their agents."),
        "schema": SubCommand("validate:schema", DEVELOP, "Print the JSON Schema of command files."),
        "completion": SubCommand("main:completion", DEVELOP,
            "Print the completion script of a shell; its first lines say where it goes."),
    }
    # fmt: on


app = typer.Typer(
    name="council",
    cls=_Council,
    add_completion=False,  # `council completion` prints the script of the shell that is asked for
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
    help="Drop a command file; a council of AI agents deliberates and leaves a decision you can audit.",
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def top(
    ctx: typer.Context,
    home: Annotated[
        Path | None,
        typer.Option(
            path_type=str,
            callback=named_folder,
            help="The home. Default: COUNCIL_HOME, or the nearest folder upward that is a home.",
        ),
    ] = None,
    show_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options before the sub-command count for all of them."""
    state(ctx).home_flag = home


def version(as_json: AsJson = False) -> None:
    typer.echo(json.dumps({"version": __version__}) if as_json else f"council {__version__}")


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Which shell.")],
) -> None:  # typer's own `--show-completion` prints the script of the shell it runs in, whatever it is asked
    script = Path(__file__).parents[1] / "resources" / "completion" / f"council.{shell}"
    typer.echo(script.read_text(encoding="utf-8"), nl=False)


@cache
def program() -> Any:
    """The program that typer makes of `app`. Each sub-command is made when it is looked up."""
    return get_command(app)


def _accept_every_character() -> None:
    """A terminal that cannot show a character gets its escape. A stream that is closed takes anything and shows nothing."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for as long as the process lives
        elif isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="backslashreplace")


def main(systems: Callable[[], Sequence[System]] = house) -> None:
    """Runs the command line of a council of these systems; a CouncilError becomes one message on stderr and its exit code."""
    gc.set_threshold(_OBJECTS_WHILE_LOADING)
    if _COMPLETES in os.environ:
        vars(typer_completion)["completion_init"]()  # with `add_completion=False` it does not know the shells by itself
    cli = CliState(systems=systems)
    _accept_every_character()
    try:
        program()(obj=cli)
    except CouncilError as error:
        cli.complain(error)
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
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # of an output whose writer does not say where
            from council.storage.files import storage_failed

            cli.complain(storage_failed(error, "Cannot write"))
            sys.exit(EXIT_FAILED)
        print(cli.redact("".join(traceback.format_exception(error))), file=sys.stderr)  # noqa: T201
        sys.exit(EXIT_FAILED)
    finally:
        gc.freeze()  # the interpreter ends: it need not look through all that is loaded once more
