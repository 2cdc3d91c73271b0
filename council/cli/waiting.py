"""Staying at the terminal until a dropped command is answered: this process drains it where no daemon does."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import typer

from council.cli.context import tell
from council.cli.daemon import serve
from council.cli.status_command import progress_line
from council.desk.desk import Desk
from council.desk.drop_and_wait import Errand, Show, control, silent
from council.engine.receipts import Receipt
from council.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_WAITING, UsageError
from council.storage.files import FileLock


def wait_for(desk: Desk, errand: Errand, timeout_s: float, *, quiet: bool, model: str | None = None) -> Receipt:
    """`quiet`: nothing of its course is shown. `model`: the council's where no daemon works; None is the home's
    own. Raises CommandInvalid (set aside), WaitTimeout, typer.Exit, or what building the council raises."""
    name = errand.dropped.path.name
    stays = f"{name} stays in commands/; it continues when a daemon runs."

    def drain(only: str, left_s: float) -> None:
        tell = None if quiet else sys.stderr  # standard output is for the answer alone
        served = desk if model is None else desk.asking(model)
        code = serve(served, once=True, tell=tell, only=only, timeout_s=left_s)
        if code in (EXIT_WAITING, EXIT_INTERRUPTED):
            typer.echo(stays, err=True)
            raise typer.Exit(code)

    try:
        return errand.wait(timeout_s, drain, silent if quiet or not sys.stderr.isatty() else _progress)
    except KeyboardInterrupt:
        if FileLock.holder(desk.home.lock_file) is None:
            typer.echo(stays, err=True)
            raise
        run = errand.run()
        ends = f"`council cancel {run['run_id']}` ends it" if run else "`council status` shows it"
        later = "`council show` prints its answer when it is ready"
        typer.echo(f"The daemon continues with {name}: {ends}, {later}.", err=True)
        raise


def obey(desk: Desk, type_: str, user: str | None = None, timeout_s: float = 60.0, /, **keys: Any) -> Receipt:
    """The receipt of a control command that a person typed, on behalf of `user`, else as the steward. Raises as `wait_for`."""
    return wait_for(desk, control(desk, type_, user, **keys), timeout_s, quiet=True, model="offline")


def require_own_model(desk: Desk, model: str | None) -> None:
    """A daemon asks its own model, whatever `--model` names here: somebody may want to keep their words from that one. Raises
    UsageError where one works."""
    holder = FileLock.holder(desk.home.lock_file)
    if model is not None and holder is not None and not holder.get("leaves"):
        fix = "leave --model out, or stop the daemon first"
        raise UsageError("--model names the model of a home without a daemon, and one works in this home.", fix=fix)


def print_receipt(receipt: Receipt, *, as_json: bool = False, quiet: bool = False) -> None:
    """The notes of an ended command, unless it is to be `quiet`. Raises typer.Exit for one that failed."""
    if as_json or (receipt.error is None and not quiet):
        tell(receipt, receipt.notes, as_json=as_json)
    if receipt.error is not None:
        typer.echo(f"error ({receipt.error.code}): {receipt.error.message}\n  fix: {receipt.error.fix}", err=True)
        raise typer.Exit(EXIT_FAILED)


@contextlib.contextmanager
def _progress() -> Iterator[Show]:
    """Shows a run's rounds while its answer is waited for."""
    from rich.console import Console  # not at the top: heavy, and only a terminal shows it
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bars = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*bars, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("waiting for the daemon", total=None)

        def show(run: dict[str, Any] | None) -> None:
            if run is None:
                return
            rounds, ended = run.get("max_rounds"), max(0, run.get("round", 0) - 1)
            progress.update(task, description=progress_line(run), total=rounds, completed=ended)

        yield show
