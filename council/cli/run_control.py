"""`council show`, `cancel`, `resume` and `retry`: the answer of a run, and steering runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

from council.cli.context import CliState, Run, Timeout, print_json, state, tell
from council.cli.status_command import progress_line
from council.cli.terminal_page import print_page
from council.cli.waiting import obey
from council.desk.drop_and_wait import wait_for_end
from council.desk.run_lookup import answer_of, changed_sources, find_any, find_for, growing_run, words_of
from council.engine.receipts import Receipt
from council.errors import UsageError
from council.ids import local_times
from council.settings.model_names import model_spelling
from council.storage.files import FileLock

_Steered = Annotated[
    str,
    typer.Argument(
        help="A run's id, its first characters, the path of its page, or `last`: the newest that this applies to."
    ),
]
_Model = Annotated[str, typer.Option("--model", help="Continue with this model instead of the run's own.")]
Receipted = Annotated[bool, typer.Option("--json", help="Print the receipt.")]


def show(ctx: typer.Context, run: Run = "last", as_json: Receipted = False) -> None:
    cli = state(ctx)
    desk = cli.desk()
    run_id = find_any(desk, run)
    receipt = desk.receipts.read(run_id)
    if receipt is not None:
        if as_json:
            answer = {"answer": words_of(desk, run_id)} if receipt.type == "ask" else {}
            print_json(msgspec.to_builtins(receipt) | answer)
        else:
            print_answer(cli, receipt)
            if run == "last" and (newer := [one for one in desk.ledger.unfinished() if one > run_id]):
                growing, _ = growing_run(desk, newer[-1])
                typer.echo(
                    f"A newer run has not ended: “{growing['title']}” ({progress_line(growing)}). "
                    f"`council show {newer[-1]}` shows how far it is."
                )
        return
    growing, text = growing_run(desk, run_id)
    if as_json:
        print_json(growing)
        return
    page = Path(os.path.relpath(desk.home.root / growing["output"]))
    print_page(cli, text or f"# {growing['title']}", page.absolute(), desk.home.root)
    typer.echo(f"\nStatus: {progress_line(growing)}. {f'The page grows: {page}' if text else 'There is no page yet.'}")


def cancel(ctx: typer.Context, run: _Steered, timeout_s: Timeout = 60.0, as_json: Receipted = False) -> None:
    run_id, _ = _steered(state(ctx), "cancel", run, timeout_s)
    receipt = wait_for_end(state(ctx).desk(), run_id, timeout_s)
    where = f"; what was said is in {receipt.artifact.path}" if receipt.artifact else ""
    tell(receipt, [f"Run {run_id}: {receipt.status}{where}."], as_json=as_json)


def resume(
    ctx: typer.Context,
    run: _Steered,
    accept_drift: Annotated[
        bool, typer.Option("--accept-drift", help="Continue even if the model or Council's prompts have changed.")
    ] = False,
    model: _Model = "",
    timeout_s: Timeout = 60.0,
    as_json: Receipted = False,
) -> None:
    run_id, receipt = _steered(state(ctx), "resume", run, timeout_s, model, accept_drift=accept_drift)
    tell(receipt, [f"Run {run_id} {_goes_on(state(ctx), 'continues')}."], as_json=as_json)


def retry(
    ctx: typer.Context,
    run: _Steered,
    from_step: Annotated[
        str, typer.Option("--from", metavar="STEP", help="Keep what was recorded before this step (`round/2/AUDITOR`).")
    ] = "",
    model: _Model = "",
    timeout_s: Timeout = 60.0,
    as_json: Receipted = False,
) -> None:
    run_id, receipt = _steered(state(ctx), "retry", run, timeout_s, model, **{"from": from_step})
    tell(receipt, [f"Run {run_id} {_goes_on(state(ctx), 'starts again')}."], as_json=as_json)


def told_status(receipt: Receipt) -> str:
    """The status, and the place of the run in its conversation."""
    conversation = receipt.details.get("conversation")
    return f"{receipt.status}." + (f" Run {receipt.run_id} of the conversation {conversation}." if conversation else "")


def print_answer(cli: CliState, receipt: Receipt, *, brief: bool = False) -> None:
    """The artifact's first screen, then where it is; `brief`: of a request, without the words of its person and without its
    route. Raises RunNotFound where neither page nor journal is left."""
    if receipt.artifact is None:
        typer.echo("\n".join([f"{receipt.title}: {told_status(receipt)}", *receipt.notes]))
    else:
        desk = cli.desk()
        page = Path(os.path.relpath(desk.home.root / receipt.artifact.path))
        text, became = answer_of(desk, receipt, page)
        if brief:
            text = text.partition("\n## Routing\n")[0].partition("\n\n")[2].strip()
        print_page(cli, text, page.absolute(), desk.home.root)
        record = f"The whole record: {page}"
        if became:
            record = f"{became}; this is from the journal, and `council replay {receipt.run_id}` prints all of it"
        typer.echo(f"\nStatus: {told_status(receipt)} {record}")
        if changed := changed_sources(desk, receipt.run_id):
            typer.echo(f"Changed since the council read them: {', '.join(changed)}.")
    if receipt.pruned is not None:
        kept = "this receipt stays" if receipt.artifact is None else "the page and its receipt stay"
        at = local_times(receipt.pruned.at, cli.desk().zone)
        typer.echo(f"Pruned on {at} by {receipt.pruned.by}: the journal is gone, {kept}.")


def _steered(
    cli: CliState, to: Literal["cancel", "resume", "retry"], given: str, timeout_s: float, model: str = "", **keys: Any
) -> tuple[str, Receipt]:
    """The run, and the receipt of the control command. Another model is named before anything is sent to it."""
    desk = cli.desk()
    run_id = find_for(desk, given, to)
    before = desk.receipts.read(run_id)
    named = desk.ledger.journal(run_id).named_model if desk.ledger.has_journal(run_id) else ""
    own = named or (before.model if before is not None else "")
    if model:
        try:
            keys["model"] = model_spelling(model)
        except ValueError as error:
            fix = "write <provider>:<model id>, scripted:<file>, cassette:<file> or offline"
            raise UsageError(f"--model is {model!r}: {error}.", fix=fix) from None
        instead = f" instead of {own}" if own not in ("", keys["model"]) else ""
        typer.echo(f"The run will use {keys['model']}{instead}.", err=True)
    receipt = obey(desk, to, None, timeout_s, run=run_id, **keys)
    if not model and to != "cancel" and own:
        typer.echo(f"The run keeps its model, {own}.", err=True)
    return run_id, receipt


def _goes_on(cli: CliState, what: Literal["continues", "starts again"]) -> str:
    if FileLock.holder(cli.desk().home.lock_file) is not None:
        return f"{what}; see `council status`"
    return f"is queued; it {what} when a daemon runs (`council run`, or `council run --once` for what waits)"
