"""`council submit`: the command line's way to drop a command file."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from council.cli.asking import NAME, command_of
from council.cli.context import CliState, state
from council.errors import (
    EXIT_CANCELLED,
    EXIT_DEGRADED,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_REFUSED,
    EXIT_USAGE,
    EXIT_WAITING,
    CommandInvalid,
    CouncilError,
    DaemonRunning,
    GuardrailBlocked,
    UsageError,
    WaitTimeout,
)
from council.ids import readable_json
from council.storage.drop import drop, lying_there, require_command_name
from council.storage.files import FileLock

if TYPE_CHECKING:
    from council.engine.receipts import Receipt
    from council.settings import Home
    from council.storage.drop import Dropped

_MAX_BYTES = 1 << 20  # no home can be set to take a larger command
_POLL_S = 0.1
_MAX_DRAINS = 3  # a file that is not taken up three times is none that ever will be
_NOTE_ENDING = ".error.md"
STATUS_EXIT = {
    "succeeded": EXIT_OK,
    "degraded": EXIT_DEGRADED,
    "failed": EXIT_FAILED,
    "cancelled": EXIT_CANCELLED,
    "skipped": EXIT_CANCELLED,  # the id of a scheduled occurrence that was skipped: nothing was run
}


def submit(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="The command file; - reads JSON from standard input. With --task: the documents to read, as many as you like.",
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", metavar="TEXT", help="Instead of a command file: what the council is asked.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="PATH", help="With --task: where the decision goes; else into artifacts/."
        ),
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, max=100, help="With --task: at most so many rounds.")] = None,
    name: Annotated[str | None, typer.Option(help="The name to drop it under; else its own.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end and print the answer.")] = False,
    timeout_s: Annotated[float, typer.Option(min=0.1, help="How long --wait waits, in seconds.")] = 3600.0,
    model: Annotated[str | None, typer.Option(help="With --wait and no daemon: which model.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Drop a command into commands/, whole; with --wait, stay for the answer (and run it here if no daemon does)."""
    cli = state(ctx)
    cli.flags = {"model": model}
    home = cli.home()
    if task is not None:
        shown, own_name, data = "the command", NAME, command_of(task, files or [], output, rounds, home.root)
    elif output is not None or rounds is not None:
        raise UsageError("--output and --rounds go with --task.", fix="write them into the command file")
    else:
        shown, own_name, data = _read(files or [])
    name = name or own_name
    _require_command(cli, shown, name, data, as_json, readable=task is not None)
    there = lying_there(home.commands, Path(shown), data) if (task, name) == (None, own_name) else None
    holder = FileLock.holder(home.lock_file)
    if wait:
        if model is not None and holder is not None:
            typer.echo("note: a daemon runs in this home, so its model answers, not --model.", err=True)
        receipt = drop_and_wait(cli, name, data, timeout_s, quiet=as_json, there=there)
        import msgspec

        from council.cli.runs import print_answer

        if as_json:
            typer.echo(readable_json(msgspec.to_builtins(receipt)))
        else:
            typer.echo("", err=True)  # between how it went and the answer
            print_answer(cli, receipt)
        raise typer.Exit(exit_code_of(receipt))
    dropped = there or drop(home.commands, name, data)
    if as_json:
        typer.echo(json.dumps({"file": str(dropped.path), "sha256": dropped.sha256, "daemon": holder}))
        return
    place = os.path.relpath(dropped.path)
    typer.echo(f"Dropped {place}." if there is None else f"{place} lies in the inbox already.")
    if holder is None:
        typer.echo("No daemon is running in this home: it waits there until `council run` is started.")
    else:
        typer.echo(f"The daemon (pid {holder.get('pid', '?')}) takes it up; see `council status`.")


def exit_code_of(receipt: Receipt) -> int:
    """The exit code of a command that waited for this receipt."""
    refused = receipt.error is not None and receipt.error.code == GuardrailBlocked.code
    return EXIT_REFUSED if refused else STATUS_EXIT[receipt.status]


def drop_and_wait(
    cli: CliState, name: str, data: bytes, timeout_s: float, *, quiet: bool, there: Dropped | None = None
) -> Receipt:
    """Drops a command, unless it lies `there` already, and stays for its receipt. Without a daemon this process takes
    the lock and drains that one file.

    Raises CommandInvalid (set aside), WaitTimeout, or what building the council raises.
    """
    waiting = _Waiting(cli, data)
    return waiting.until_answered(there or drop(cli.home().commands, name, data), timeout_s, quiet=quiet)


def _read(files: list[str]) -> tuple[str, str, bytes]:
    """The one command file: its name in messages, the name to drop it under, and its bytes.

    The bytes are cut off where every home refuses them as too many. Raises UsageError.
    """
    if len(files) != 1:
        message = "more than one command file is named." if files else "no command file is named."
        raise UsageError(
            message, fix='`council submit FILE`, or `council submit --task "…" DOCUMENT …` to do without one'
        )
    if files[0] == "-":
        return "standard input", "command.json", sys.stdin.buffer.read(_MAX_BYTES + 1)
    file = Path(files[0])
    try:
        with file.open("rb") as stream:
            return files[0], file.name, stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}.", fix="name a command file") from None


def _require_command(cli: CliState, shown: str, name: str, data: bytes, as_json: bool, *, readable: bool) -> None:
    """Says at once what the daemon would say; a command that cannot become a run is not dropped. Raises PathRefused,
    typer.Exit.

    A fault that may be mended until its turn, such as an input that is not there yet, is a warning. With `readable` it
    is a problem.
    """
    from council.cli.validate import findings, judged

    require_command_name(name)
    verdict = judged(cli, name, data)
    if readable:
        verdict.problems += [each for each in verdict.warnings if each.field.startswith("input_artifacts.")]
        verdict.warnings = [each for each in verdict.warnings if not each.field.startswith("input_artifacts")]
    if said := findings(shown, verdict):
        typer.echo(said, err=True)
    if verdict.problems:
        if as_json:
            typer.echo(
                json.dumps({"file": shown, "dropped": False, "problems": [asdict(each) for each in verdict.problems]})
            )
        else:
            typer.echo("Nothing was dropped.", err=True)
        raise typer.Exit(EXIT_USAGE)


class _Waiting:
    """Waits for the receipt of a dropped file, or for the note that it could not become a run. Made before the drop."""

    def __init__(self, cli: CliState, data: bytes) -> None:
        self._cli = cli
        self._home = cli.home()
        self._data = data
        self._ended_before_ns = max(
            (entry.ended_ns or 0 for entry in cli.ledger().newest(1, ended_only=True)), default=0
        )
        self._failed_before = _names(self._home.failed)

    def until_answered(self, dropped: Dropped, timeout_s: float, *, quiet: bool) -> Receipt:
        """Raises CommandInvalid (set aside), WaitTimeout, or what building the council raises."""
        lock_file, name = self._home.lock_file, dropped.path.name
        deadline = time.monotonic() + timeout_s
        drains = 0
        while time.monotonic() < deadline:
            if FileLock.holder(lock_file) is None and dropped.path.exists():
                drains += 1
                if drains > _MAX_DRAINS:
                    raise UsageError(f"{name} was not taken up.", fix="`council validate` says why")
                with contextlib.suppress(DaemonRunning):  # one started in this instant: it answers
                    self._drain(dropped, deadline - time.monotonic(), quiet)
            try:
                with _progress(quiet) as show:
                    served = True  # once the daemon that was to answer has gone, the outer loop drains
                    while served and time.monotonic() < deadline:
                        served = FileLock.holder(lock_file) is not None
                        receipt = self._answer(dropped)
                        if receipt is not None:
                            return receipt
                        if served:
                            show(_active(self._home, dropped))
                            time.sleep(_POLL_S)
            except KeyboardInterrupt:
                if FileLock.holder(lock_file) is None:
                    typer.echo(f"{name} stays in commands/; it goes on when a daemon runs.", err=True)
                    raise
                run = _active(self._home, dropped)
                ends = f"`council cancel {run['run_id']}` ends it" if run else "`council status` shows it"
                later = "`council show` prints its answer when it is there"
                typer.echo(f"The daemon goes on with {name}: {ends}, {later}.", err=True)
                raise
        raise WaitTimeout(
            f"no answer to {name} within {timeout_s:g} s; it goes on.",
            fix="`council status` shows it; `council show last` prints the answer when it is there",
        )

    def _drain(self, dropped: Dropped, timeout_s: float, quiet: bool) -> None:
        from council.cli.daemon import serve

        try:
            tell = None if quiet else sys.stderr  # standard output is for the answer alone
            code = serve(self._cli, once=True, tell=tell, only=dropped.path.name, timeout_s=timeout_s)
            if code in (EXIT_WAITING, EXIT_INTERRUPTED):
                typer.echo(f"{dropped.path.name} stays in commands/; it goes on when a daemon runs.", err=True)
                raise typer.Exit(code)
        except CouncilError as error:
            if not isinstance(error, DaemonRunning):
                error.fix = f"{error.fix.rstrip('.')}; {dropped.path.name} stays in commands/ until a daemon runs"
            raise

    def _answer(self, dropped: Dropped) -> Receipt | None:
        """The receipt of this drop, or the one that its id is bound to. Raises CommandInvalid for one that was set aside."""
        from council.engine.records import FORGOTTEN

        receipts, failed = self._cli.receipts(), self._home.failed
        for receipt in receipts.ended_since(self._ended_before_ns, file=dropped.path.name):
            found = receipt.command_file
            same_drop = (found.inode, found.mtime_ns) == (dropped.inode, dropped.mtime_ns)
            if same_drop and found.sha256 in (dropped.sha256, FORGOTTEN):
                return receipt
        if dropped.path.exists():
            return None
        for name in sorted(_names(failed) - self._failed_before):
            if name.endswith(_NOTE_ENDING):  # of a forget command the note alone is kept
                note, aside = failed / name, failed / name.removesuffix(_NOTE_ENDING)
                is_ours = aside.name.startswith(dropped.path.stem) and not aside.exists()
            else:
                note, is_ours = failed / f"{name}{_NOTE_ENDING}", False
                with contextlib.suppress(FileNotFoundError):
                    is_ours = (failed / name).stat().st_ino == dropped.inode
            if is_ours and note.exists():
                lines = note.read_text(encoding="utf-8").splitlines()
                problem, fix = f"{note.name} says why it was refused", ""
                at = next((number for number, line in enumerate(lines) if line.startswith("- **")), None)
                if at is not None:
                    problem = lines[at].removeprefix("- **").removesuffix("**")
                    fix = "".join(lines[at + 1 : at + 2]).strip().removeprefix("Fix: ").removesuffix(".")
                raise CommandInvalid(problem, fix=f"{fix}; see {os.path.relpath(note)}".lstrip("; "))
        value: Any = None
        with contextlib.suppress(ValueError):
            value = json.loads(self._data)
        id_ = value.get("id") if isinstance(value, dict) else None
        bound = receipts.bound(id_) if isinstance(id_, str) else None
        return receipts.read(bound.run_id) if bound is not None else None


def _names(folder: Path) -> set[str]:
    try:
        return {name for name in os.listdir(folder) if not name.startswith(".")}
    except FileNotFoundError:
        return set()


def _active(home: Home, dropped: Dropped) -> dict[str, Any] | None:
    try:
        state_view = json.loads(home.state_file.read_bytes())
    except (OSError, ValueError):
        return None
    runs = [run for run in state_view.get("runs", []) if run.get("inode") == dropped.inode]
    return runs[0] if runs else None


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[dict[str, Any] | None], None]]:
    """Shows a run's rounds while its answer is waited for; nothing where nobody looks."""
    if quiet or not sys.stderr.isatty():
        yield lambda run: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("waiting for the daemon", total=None)

        def show(run: dict[str, Any] | None) -> None:
            if run is None:
                return
            round_no, max_rounds = run.get("round", 0), run.get("max_rounds")
            speaker = f", {run['role']}" if run.get("role") else ""
            text = f"{run['status']}: round {round_no} of {max_rounds}{speaker}" if max_rounds else run["status"]
            progress.update(task, description=text, total=max_rounds, completed=max(0, round_no - 1))

        yield show
