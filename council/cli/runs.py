"""`council status`, `show`, `cancel`, `resume` and `retry`: looking at runs, and steering them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from council.cli.context import CliState, state
from council.cli.hyperlinks import linked, unlinked
from council.errors import CommandInvalid, RunNotFound, WaitTimeout
from council.ids import readable_json, timestamp
from council.storage.files import FileLock

if TYPE_CHECKING:
    from council.engine.ledger import Ledger
    from council.engine.receipts import Receipt
    from council.settings import Home

_FIRST = '`council submit --wait --task "…" DOCUMENT`'
_RECENT = 10
_UNFINISHED = 100  # shown of those that no daemon works on: each is a journal to read
_POLL_S = 0.05
_NOTE_BYTES = 1 << 20
_SEARCHED = 1_000
_FOOTNOTE_MARK = re.compile(r"\[\^E[0-9]+\]")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_PAGE_ID = re.compile(r'\A---\nid: "([^"\n]+)"\n')


Run = Annotated[
    str, typer.Argument(help="A run's id, the beginning of one, or `last`: the newest that this can be done to.")
]
_RUN_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-z]{8}")
Timeout = Annotated[float, typer.Option(min=0.1, help="How long to wait for the receipt, in seconds.")]
Json = Annotated[bool, typer.Option("--json", help="Print the receipt.")]


def status(
    ctx: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False
) -> None:
    """Print what the daemon is doing, what waits, and how the last runs ended."""
    view = status_view(state(ctx))
    if as_json:
        typer.echo(readable_json(view, indent=2))
        return
    holder = view["daemon"]
    lines = [f"home    {view['home']}"]
    if holder is None:
        lines.append("daemon  not running (start it with `council run`)")
    else:
        lines.append(f"daemon  {view['state']}, pid {holder.get('pid', '?')}, model {view.get('model', '?')}")
    lines += [f"  degraded: {name}: {reason}" for name, reason in view["degraded"].items()]
    for run in view["runs"]:
        progress = f", round {run['round']} of {run['max_rounds']}" if run.get("max_rounds") else ""
        speaker = f", {run['role']}" if run.get("role") else ""
        waits = f" for {run['waiting_for']}" if run.get("waiting_for") else ""
        lines.append(f"  {run['run_id']}  {run['status']}{waits}{progress}{speaker}: {run['title']}")
        if run["status"] == "waiting" and run.get("error"):
            lines.append(f"    until {run['until']}, or `council resume {run['run_id']}`: {run['error']}")
    if view.get("unfinished", 0) > len(view["runs"]):
        lines.append(f"  … and {view['unfinished'] - len(view['runs'])} more that have not ended")
    if view["waiting_files"]:
        lines.append(f"inbox   {', '.join(view['waiting_files'][:_RECENT])}")
    if view["not_commands"]:
        lines.append(f"skipped {', '.join(view['not_commands'][:_RECENT])}")
        lines.append("        (no command by name or content; `council validate FILE` says why)")
    if view["recent"]:
        lines.append("recent")
    elif not view["runs"] and not view["waiting_files"]:
        lines.append(f"no run yet: {_FIRST} asks the council")
    lines += [f"  {run['run_id']}  {run['status']:<9}  {run['artifact'] or run['title']}" for run in view["recent"]]
    typer.echo("\n".join(lines))


def show(
    ctx: typer.Context,
    run: Annotated[str, typer.Argument(help="A run's id, the beginning of one, or `last`.")] = "last",
    as_json: Annotated[bool, typer.Option("--json", help="Print the receipt.")] = False,
) -> None:
    """Print the answer of a run and where its artifact is."""
    cli = state(ctx)
    receipt = read_receipt(cli, find_run(cli, run))
    if as_json:
        import msgspec

        typer.echo(readable_json(msgspec.to_builtins(receipt), indent=2))
    else:
        print_answer(cli, receipt)


def cancel(
    ctx: typer.Context,
    run: Run,
    timeout_s: Timeout = 60.0,
    as_json: Json = False,
) -> None:
    """End a run; it leaves what was said until then."""
    cli = state(ctx)
    run = _meant(cli, run, "cancel")
    _control(cli, {"type": "cancel", "run": run}, timeout_s)
    deadline = time.monotonic() + timeout_s
    while (receipt := cli.receipts().read(run)) is None:
        if time.monotonic() >= deadline:
            raise WaitTimeout(f"run {run} has not ended within {timeout_s:g} s.", fix="`council status` shows it")
        time.sleep(_POLL_S)
    where = f"; what was said is in {receipt.artifact.path}" if receipt.artifact else ""
    _say(f"Run {run} ended {receipt.status}{where}.", as_json, receipt)


def resume(
    ctx: typer.Context,
    run: Run,
    accept_drift: Annotated[
        bool, typer.Option("--accept-drift", help="Go on although persona, prompt or model changed meanwhile.")
    ] = False,
    timeout_s: Timeout = 60.0,
    as_json: Json = False,
) -> None:
    """Let a run go on: one that waits, or one that failed or was cancelled."""
    cli = state(ctx)
    run = _meant(cli, run, "resume")
    receipt = _control(cli, {"type": "resume", "run": run, "accept_drift": accept_drift}, timeout_s)
    _say(f"Run {run} {_goes_on(cli.home())}.", as_json, receipt)


def retry(
    ctx: typer.Context,
    run: Run,
    from_step: Annotated[
        str, typer.Option("--from", metavar="STEP", help="Keep what was recorded before this step (`round/2/AUDITOR`).")
    ] = "",
    timeout_s: Timeout = 60.0,
    as_json: Json = False,
) -> None:
    """Do an ended run's work again, with a new budget: all of it, or from one step on."""
    cli = state(ctx)
    run = _meant(cli, run, "retry")
    receipt = _control(cli, {"type": "retry", "run": run, "from": from_step}, timeout_s)
    _say(f"Run {run} {_goes_on(cli.home())}.", as_json, receipt)


def _meant(cli: CliState, given: str, to: Literal["cancel", "resume", "retry"]) -> str:
    """The run's id in full, where it can be found out before anything is dropped. Raises RunNotFound."""
    if _RUN_ID.fullmatch(given):
        return given
    ledger = cli.ledger()
    unfinished = [] if to == "retry" else ledger.unfinished()
    if given != "last":
        active = [run_id for run_id in unfinished if given and run_id.startswith(given)]
        return active[0] if len(active) == 1 else find_any_run(cli, given)
    for run_id in reversed(unfinished[-_UNFINISHED:]):
        if to == "cancel" or _unfinished(ledger, run_id)["status"] == "waiting":
            return run_id
    ended = [] if to == "cancel" else ledger.newest(_SEARCHED, ended_only=True)
    for entry in ended:
        if entry.artifact and (to == "retry" or entry.status in ("failed", "cancelled")):
            return entry.run_id
    raise RunNotFound(f"there is no run to {to} in {cli.home().root}.", fix="`council status` lists the last runs")


def _control(cli: CliState, body: dict[str, str | bool], timeout_s: float) -> Receipt:
    """Drops a control command and stays for its receipt; without a daemon this process gives it, and runs nothing."""
    from council.cli.submit import drop_and_wait

    cli.flags = {"model": "offline"}  # of no use here: no run is executed
    return drop_and_wait(cli, f"{body['type']}.json", json.dumps(body).encode(), timeout_s, quiet=True)


def _goes_on(home: Home) -> str:
    if FileLock.holder(home.lock_file) is not None:
        return "goes on; see `council status`"
    return "is queued; it goes on when a daemon runs (`council run`, or `council run --once` for what waits)"


def _say(text: str, as_json: bool, receipt: Receipt) -> None:
    import msgspec

    typer.echo(readable_json(msgspec.to_builtins(receipt), indent=2) if as_json else text)


def status_view(cli: CliState) -> dict[str, Any]:
    """Everything `status` tells, as plain JSON values."""
    from council.storage.drop import is_command_name, is_left_alone

    home, ledger = cli.home(), cli.ledger()
    holder = FileLock.holder(home.lock_file)
    view: dict[str, Any] = {"home": str(home.root), "state": "STOPPED", "daemon": holder, "degraded": {}, "runs": []}
    if holder is not None:
        try:
            current = json.loads(home.state_file.read_bytes())
            view.update({key: current[key] for key in ("state", "runs", "model", "degraded")})
        except (OSError, ValueError, KeyError):
            view["state"] = "STARTING"
    else:
        view["runs"], view["unfinished"] = unfinished(ledger)
    bound = {run["file"] for run in view["runs"]}
    names = []
    with contextlib.suppress(FileNotFoundError):
        names = sorted(entry.name for entry in os.scandir(home.commands) if entry.is_file(follow_symlinks=False))
    meant = [name for name in names if not is_left_alone(name) and name not in bound]
    view["not_commands"] = [name for name in meant if not is_command_name(name) or _is_note(home.commands / name)]
    view["waiting_files"] = [name for name in meant if name not in view["not_commands"]]
    view["recent"] = [
        {
            "run_id": entry.run_id,
            "status": entry.status,
            "title": entry.title,
            "artifact": entry.artifact,
            "finished": entry.finished,
        }
        for entry in ledger.newest(_RECENT, ended_only=True)
    ]
    return view


def unfinished(ledger: Ledger) -> tuple[list[dict[str, Any]], int]:
    """The first runs that the next start goes on with, from their journals, and the number of all."""
    names = ledger.unfinished()
    return [_unfinished(ledger, name) for name in names[:_UNFINISHED]], len(names)


def _unfinished(ledger: Ledger, run_id: str) -> dict[str, Any]:
    journal = ledger.journal(run_id)
    header = journal.header
    run = {"run_id": run_id, "status": "queued", "title": header.title, "file": header.file.name, "lane": header.lane}
    if not journal.waits:
        return run
    wait = journal.waits[-1]
    until = timestamp(datetime.fromisoformat(wait.since) + timedelta(seconds=wait.seconds))
    return {**run, "status": "waiting", "waiting_for": wait.reason, "until": until, "error": wait.error}


def _is_note(file: Path) -> bool:
    """True for Markdown that is no command: the inbox leaves it alone."""
    if file.suffix.lower() != ".md":
        return False
    from council.commands.documents import NotACommand, read_document

    try:
        with file.open("rb") as stream:
            read_document(file.name, stream.read(_NOTE_BYTES))
    except NotACommand:
        return True
    except (CommandInvalid, OSError):
        pass  # a command with a fault, or gone meanwhile: the daemon says what is wrong
    return False


def find_run(cli: CliState, given: str) -> str:
    """The one ended run that `given` means: an id, the beginning of one, or `last`. Raises RunNotFound."""
    if given == "last":
        newest = cli.ledger().newest(_SEARCHED, ended_only=True)
        matches = [entry.run_id for entry in newest if entry.artifact][:1]
    else:
        found = cli.ledger().starting_with(given, _SEARCHED)
        matches = [entry.run_id for entry in found if entry.ended_ns]
    fix = "`council status` lists the last runs and the active ones"
    return _only_match(cli, given, matches, nothing="no run has ended", none="no ended run matches", fix=fix)


def find_any_run(cli: CliState, given: str) -> str:
    """As `find_run`, but also a run that has not ended; `last` is still the last that ended, if any has. Raises
    RunNotFound."""
    if given == "last":
        newest = cli.ledger().newest(1)
        ended = cli.ledger().newest(_SEARCHED, ended_only=True)
        matches = [entry.run_id for entry in [*(entry for entry in ended if entry.artifact), *newest]][:1]
    else:
        matches = [entry.run_id for entry in cli.ledger().starting_with(given, _SEARCHED)]
        matches = [given] if given in matches else matches
    fix = "`council status` lists the last runs"
    return _only_match(cli, given, matches, nothing="there is no run", none="no run matches", fix=fix)


def _only_match(cli: CliState, given: str, matches: list[str], *, nothing: str, none: str, fix: str) -> str:
    """Raises RunNotFound for more than one match; with `nothing` where the home has no run, with `none` for another id."""
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise RunNotFound(f"{given!r} means {len(matches)} runs.", fix="give more of the id", matches=matches[:_RECENT])
    root = cli.home().root
    if given == "last":
        raise RunNotFound(
            f"{nothing} in {root} yet.", fix=f"{_FIRST} asks the council; `council submit FILE` drops a command"
        )
    raise RunNotFound(f"{none} {given!r} in {root}.", fix=fix)


def read_receipt(cli: CliState, run_id: str) -> Receipt:
    receipt = cli.receipts().read(run_id)
    if receipt is None:
        raise RunNotFound(f"run {run_id} has no receipt.", fix="it has not ended yet: `council status` shows it")
    return receipt


def print_answer(cli: CliState, receipt: Receipt) -> None:
    """The artifact's first screen: title, notes, answer; then where it is. Raises RunNotFound where neither the page nor
    the journal is left."""
    if receipt.artifact is None:
        typer.echo(f"{receipt.title}: {receipt.status}.")
        for note in receipt.notes:
            typer.echo(note)
    else:
        path = Path(os.path.relpath(cli.home().root / receipt.artifact.path))
        page, record, became = "", f"The whole record: {path}", ""
        try:
            page = path.read_text(encoding="utf-8", errors="replace")  # as edited since
            holder = _PAGE_ID.search(page)
            if holder is not None and holder[1] != receipt.run_id:
                became = f"{path} now holds the page of run {holder[1]}"
        except OSError as error:
            became = f"{path} cannot be read ({error.strerror})"
        if became:
            from council.cli.reports import rendered_again

            try:
                page = rendered_again(cli, receipt.run_id).decode("utf-8", "replace")
            except RunNotFound as error:
                raise RunNotFound(f"{became}, and {error.message}", fix=error.fix) from None
            record = f"{became}; this is from the journal, and `council replay {receipt.run_id}` prints all of it"
        body = _FRONT_MATTER.sub("", page)
        answer = _FOOTNOTE_MARK.sub("", body.split("\n## Task\n")[0].strip())
        typer.echo(linked(answer, path.absolute(), cli.home().root) if cli.hyperlinked else unlinked(answer))
        typer.echo(f"\nStatus: {receipt.status}. {record}")
    if receipt.pruned is not None:
        kept = "this receipt stays" if receipt.artifact is None else "the page and its receipt stay"
        typer.echo(f"Pruned on {receipt.pruned.at} by {receipt.pruned.by}: the journal is gone, {kept}.")
