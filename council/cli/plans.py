"""`council plans`: what is to be changed, shown without ids, and a person's word on it."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated, Any

import typer

from council.cli.context import AsJson, CliState, print_json, state, table, tell
from council.cli.run_control import Receipted
from council.cli.waiting import obey, print_receipt
from council.desk.desk import Desk
from council.desk.plan_lookup import (
    awaits_resume,
    edited,
    find_plan,
    is_safe,
    moment,
    now_ms,
    only_waiting,
    plan_json,
    redrafted,
    revised_by,
    token_of,
    told_result,
)
from council.errors import EXIT_FAILED, CommandInvalid, UsageError
from council.ids import STEWARD, Principal, local_times
from council.plans.approval import decision_of
from council.plans.plan import Plan
from council.plans.register import newest_plans, waiting_plans
from council.safety.untrusted import plain_line, spelled_out
from council.users.people import principal_in

app = typer.Typer()

_Given = Annotated[str, typer.Argument(help="A plan's id, its first characters, or `last`.")]
_Waiting = Annotated[
    str | None,
    typer.Argument(
        help="A plan's id, its first characters, or `last`. Default: the one that waits.", show_default=False
    ),
]
_For = Annotated[
    str | None,
    typer.Option(
        "--user", help="Decide on behalf of this user; may stand before the command, too.", show_default=False
    ),
]
_LISTED = 50
_plain = partial(plain_line, max_chars=20_000)


@app.callback(invoke_without_command=True)
def walk(
    ctx: typer.Context,
    user: Annotated[str | None, typer.Option(help="Decide on behalf of this user, not as the steward.")] = None,
) -> None:
    """Walk through the plans that wait for you: confirm and apply, reject, or skip each."""
    if ctx.invoked_subcommand is not None:
        return
    cli = state(ctx)
    everyone = waiting_plans(cli.desk().store, now_ms())
    plans = [plan for plan in everyone if plan.principal == (user or STEWARD.id)]
    if not plans:
        typer.echo("No plan waits for a decision.")
        for other in sorted({plan.principal for plan in everyone}):
            typer.echo(f"For {other} there is one: `council plans --user {other}` shows it.")
        return
    if not sys.stdin.isatty():
        raise UsageError("there is nobody to ask.", fix="`council plans list`, then `council plans confirm PLAN`")
    failed = 0  # the exit code of the first that was refused
    for number, plan in enumerate(plans, start=1):
        typer.echo(f"Plan {number} of {len(plans)}")
        _show(cli, plan)
        typer.echo("\n[y] confirm and apply   [n] reject   [s] skip   [q] quit ", nl=False)
        key = ""
        while key not in ("y", "n", "s", "q"):
            key = typer.getchar().lower()
            if key in ("\x03", "\x04"):
                raise KeyboardInterrupt
        typer.echo(key)
        if key == "q":
            break
        try:
            if key == "n":
                comment = typer.prompt("Why (for whoever drafts it again)", default="", show_default=False)
                obey(cli.desk(), "reject", user, plan=plan.plan_id, comment=comment)
                typer.echo("Rejected.\n")
            elif key == "y" and (is_safe(plan) or typer.confirm("Go on with all of it?")):
                obey(cli.desk(), "confirm", user, plan=plan.plan_id)
                print_receipt(obey(cli.desk(), "apply", user, plan=plan.plan_id))
                typer.echo("")
        except CommandInvalid as refused:
            cli.complain(refused)
            failed = failed or refused.exit_code
        except typer.Exit as ended:
            if ended.exit_code != EXIT_FAILED:  # the plan waits with its command
                raise
            failed = failed or EXIT_FAILED
    if failed:
        raise typer.Exit(failed)


@app.command("list")
def list_(
    ctx: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Include decided plans, newest first.")] = False,
    user: Annotated[str | None, typer.Option(help="Only the plans of this user.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """List the plans that wait for a decision, whoever decides them."""
    desk, user = state(ctx).desk(), _user(ctx, user)
    at = now_ms()
    plans = newest_plans(desk.store, _LISTED, user) if every else [
        one for one in waiting_plans(desk.store, at) if user in (None, one.principal)
    ]  # fmt: skip
    rows = [(plan.plan_id, plan.state(at), plan.principal, _local(desk, plan.created_ms), plan.name) for plan in plans]
    lines = table(("PLAN", "STATE", "FOR", "SINCE", "TITLE"), rows, "No plan waits for a decision.")
    tell({"plans": list(map(plan_json, plans))}, lines, as_json=as_json)


@app.command()
def show(
    ctx: typer.Context,
    plan: _Given = "last",
    user: Annotated[str | None, typer.Option(help="Only a plan of this user.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a plan changes, for whom, and whether it can be undone."""
    cli, user = state(ctx), _user(ctx, user)
    found = find_plan(cli.desk(), plan, STEWARD if user is None else Principal(user, "user"))
    if as_json:
        print_json(plan_json(found))
    else:
        _show(cli, found)


@app.command()
def confirm(
    ctx: typer.Context,
    plan: _Waiting = None,
    edit: Annotated[
        list[str] | None,
        typer.Option(metavar="N.KEY=VALUE", help="Change an argument of operation N; may be given again."),
    ] = None,
    leave_out: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Leave operation N out; may be given again.")
    ] = None,
    user: _For = None,
    as_json: AsJson = False,
) -> None:
    """Confirm a plan for ten minutes, and print the token with which a program may apply it."""
    cli = state(ctx)
    user = _user(ctx, user)
    found = _to_decide(cli, plan, user)
    obey(cli.desk(), "confirm", user, plan=found.plan_id, edits=_edits(edit or [], found), leave_out=leave_out or [])
    confirmed = find_plan(cli.desk(), found.plan_id)
    token, until = token_of(cli.desk(), confirmed), moment(confirmed.confirmed_until_ms)
    ends = local_times(until, cli.desk().zone)
    applies = f"“{confirmed.name}” is confirmed until {ends}: {decision_of('apply', confirmed)} applies it."
    lines = [applies, "With this token a program may apply it for the steward:", token]
    tell(plan_json(confirmed) | {"token": token, "until": until}, lines, as_json=as_json)


@app.command()
def apply(
    ctx: typer.Context,
    plan: _Waiting = None,
    token: Annotated[str | None, typer.Option(help="The token of its confirmation.")] = None,
    user: _For = None,
    as_json: Receipted = False,
) -> None:
    """Apply a confirmed plan: all of it, or nothing."""
    cli = state(ctx)
    keys = {} if token is None else {"token": token}
    user = _user(ctx, user)
    found = _to_decide(cli, plan, user)
    print_receipt(obey(cli.desk(), "apply", user, plan=found.plan_id, **keys), as_json=as_json)


@app.command()
def reject(
    ctx: typer.Context,
    plan: _Waiting = None,
    comment: Annotated[str, typer.Option(help="The reason, for whoever drafts it again.")] = "",
    user: _For = None,
    as_json: Receipted = False,
) -> None:
    """Reject a plan for good."""
    cli, user = state(ctx), _user(ctx, user)
    found = _to_decide(cli, plan, user)
    print_receipt(obey(cli.desk(), "reject", user, plan=found.plan_id, comment=comment), as_json=as_json)


@app.command()
def undo(ctx: typer.Context, plan: _Given = "last", user: _For = None, as_json: Receipted = False) -> None:
    """Take back what a plan changed in the last ten minutes. What somebody has changed since stays."""
    cli, user = state(ctx), _user(ctx, user)
    found = _to_decide(cli, plan, user)
    print_receipt(obey(cli.desk(), "undo", user, plan=found.plan_id), as_json=as_json)


def _user(ctx: typer.Context, given: str | None) -> str | None:
    """The user who is named behind the sub-command, else the one before it."""
    assert ctx.parent is not None
    return given or ctx.parent.params["user"]


def _to_decide(cli: CliState, given: str | None, user: str | None) -> Plan:
    """The plan that is named, of those that this user sees; else the only one that waits, so that nobody decides on one that
    came after a look."""
    desk, user = cli.desk(), user or STEWARD.id
    if given is None:
        return only_waiting(desk, user)
    return find_plan(desk, given, desk.store.read(lambda tx: principal_in(tx, user)))


def _edits(given: list[str], plan: Plan) -> list[dict[str, Any]]:
    """Each edit is read as `edited` does. Raises UsageError."""
    edits: dict[int, dict[str, Any]] = {}
    for edit in given:
        target, equals, value = edit.partition("=")
        number, _, key = target.partition(".")
        if not (equals and number.isdecimal() and key):
            raise UsageError(f"--edit {edit!r} is not an edit.", fix='write --edit 2.title="Another title"')
        arguments = edits.setdefault(int(number), {})
        proposed = plan.operations[int(number) - 1 :][:1]
        arguments[key] = edited(proposed[0].arguments.get(key) if proposed else None, value)
    return [{"index": number, "arguments": arguments} for number, arguments in edits.items()]


def _show(cli: CliState, plan: Plan) -> None:
    at = now_ms()
    typer.echo(f"{plan.plan_id}  {plan.state(at)}, for {plan.principal}, since {_local(cli.desk(), plan.created_ms)}")
    advice, older = plan.advice, revised_by(cli.desk(), plan)
    new, gone = redrafted(plan, older)
    lines = [advice.title, *([f"Why: {advice.rationale}"] if advice.rationale else [])]
    if older is not None:
        reason = f": {older.outcome}" if older.outcome else ""
        lines.append(f"In place of {older.plan_id}, which is {older.state(at)}{reason}")
    for line in filter(None, lines):
        typer.echo(_plain(line))
    for number, preview in enumerate(plan.previews, start=1):
        mark = cli.styled(" (new)", fg="green") if number in new else ""
        last = "" if preview.undoable else cli.styled(" This cannot be undone.", fg="yellow")
        typer.echo(f"\n{number:>3}. {spelled_out(preview.summary)}{last}{mark}")
        for one in preview.differences:
            changed = [cli.difference(line, f"{line[0]} {spelled_out(line[1:])}") for line in one.lines]
            margin = "\n" + " " * (len(one.field) + 7)
            typer.echo(f"     {one.field}: {margin.join(changed)}")
        if preview.affects:
            typer.echo(f"     Affects {_plain(', '.join(preview.affects))}.")
        for result in plan.results[number - 1 : number]:
            typer.echo(f"     → {_plain(told_result(result))}")
    for summary in gone:
        typer.echo(cli.styled(f"\n  –  {spelled_out(summary)} (no more)", fg="red"))
    for name, items in (("Risk", advice.risks), ("Question", advice.questions)):
        for item in items:
            typer.echo(f"\n{name}: {_plain(item)}")
    typer.echo(f"\n{_next(cli, plan, at)}")


def _next(cli: CliState, plan: Plan, at: int) -> str:
    match plan.state(at):
        case "draft":
            expires = _local(cli.desk(), plan.expires_ms)
            return f"It waits until {expires}: {decision_of('confirm', plan)}, or the same with `reject`."
        case "confirmed" if plan.handed_ms is not None and awaits_resume(cli.desk(), plan):
            return f"It was handed to a run. The run has ended; `council resume {plan.run_id}` goes on with it."
        case "confirmed" if plan.handed_ms is not None:
            return "It was handed to a run, which applies it: `council status` shows the runs."
        case "confirmed":
            return f"It is confirmed until {_local(cli.desk(), plan.confirmed_until_ms)}: {decision_of('apply', plan)}."
        case "applied" if not any(result.inverse for result in plan.results):
            return "It was applied, and cannot be undone."
        case "applied" if at <= plan.undo_until_ms:
            return f"It can be undone until {_local(cli.desk(), plan.undo_until_ms)}: {decision_of('undo', plan)}."
        case "applied":
            return "It was applied more than ten minutes ago, so it cannot be undone."
        case other:
            told = {"expired": "has expired", "failed": "failed"}.get(other, f"was {other}")
            return f"It {told}" + (f": {_plain(plan.outcome)}" if plan.outcome else ".")


def _local(desk: Desk, ms: int | None) -> str:
    return local_times(moment(ms), desk.zone)
