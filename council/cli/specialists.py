"""`council specialists`: the agents that were made here, their figures, and the plans that change them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import msgspec
import typer

from council.cli.ask import wait_for_answer
from council.cli.context import REQUIRED, AsJson, Timeout, User, print_json, state, table, tell, with_parameters
from council.cli.run_control import Receipted
from council.cli.waiting import print_receipt, wait_for
from council.desk.plan_lookup import moment
from council.desk.run_lookup import find_any
from council.desk.specialists_desk import (
    creation_command,
    find_specialist,
    last_use,
    listed,
    proposed,
    rate_uses,
    report,
    specialist_json,
    telemetry,
    trained,
    versions,
)
from council.engine.receipts import Receipt
from council.ids import STEWARD, local_times, readable_json
from council.safety.untrusted import plain_line
from council.specialists.lifecycle import lacks
from council.specialists.specialist_registry import Specialist
from council.turns.costs import told_cost

app = typer.Typer(no_args_is_help=True)

_Name = Annotated[str, typer.Argument(help="The specialist's role, or its id.")]
_WAIT_S = 60.0
_plain = partial(plain_line, max_chars=20_000)
_NONE = "There is no specialist yet."


@app.command("list")
def list_(
    ctx: typer.Context,
    user: User = STEWARD.id,
    every: Annotated[bool, typer.Option("--all", help="Include deprecated ones.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the specialists that you may use; an administrator sees all of them."""
    desk = state(ctx).desk()
    found = [one for one in listed(desk, user) if every or one.status != "deprecated"]
    rows = [(one.role, one.status, one.created_by, str(one.version), plain_line(one.spec.purpose, 60)) for one in found]
    lines = table(("ROLE", "STATUS", "MADE FOR", "VERSION", "PURPOSE"), rows, _NONE)
    tell({"specialists": [specialist_json(one, desk.settings.model) for one in found]}, lines, as_json=as_json)


@app.command()
def show(ctx: typer.Context, specialist: _Name, user: User = STEWARD.id, as_json: AsJson = False) -> None:
    """Show a specialist: its whole spec, its figures and its versions."""
    desk = state(ctx).desk()
    one = find_specialist(desk, specialist, user)
    known = versions(desk, one)
    told = [msgspec.to_builtins(each) | {"created_at": moment(each.created_at)} for each in known]
    lines = [f"{one.role}  {one.status}, {one.scope} scope, version {one.version}, made for {one.created_by}"]
    lines += [f"id: {one.id}", *([f"made from: {one.parent}"] if one.parent else [])]
    if one.admin_approved_by:
        lines.append(f"approved by {one.admin_approved_by} at {moment(one.admin_approved_at)}")
    lines = [local_times(line, desk.zone) for line in (*lines, *_figures(one, desk.settings.model))]
    for name, value in msgspec.to_builtins(one.spec).items():
        if name == "role" or value in ("", (), [], None):
            continue
        if isinstance(value, list | tuple) and all(isinstance(line, str) for line in value):
            lines += [f"{name}:", *(f"  {number}. {_plain(line)}" for number, line in enumerate(value, start=1))]
        elif isinstance(value, str) and "\n" in value:  # code keeps its indentation
            code = value.strip("\n").splitlines()
            lines += [f"{name}:", *(f"  {' ' * (len(line) - len(line.lstrip(' ')))}{_plain(line)}" for line in code)]
        else:
            lines.append(f"{name}: {_plain(value if isinstance(value, str) else readable_json(value))}")
    lines.append("versions:")
    for each in known:
        made = local_times(moment(each.created_at), desk.zone)
        lines.append(f"  {each.version}. {made}  {_plain(each.change)}")
    tell(specialist_json(one, desk.settings.model) | {"versions": told}, lines, as_json=as_json)


@app.command()
def stats(ctx: typer.Context, user: User = STEWARD.id, as_json: AsJson = False) -> None:
    """Print the figures of the specialists, and what each still needs to be promoted."""
    desk = state(ctx).desk()
    rows, told = [], []
    for one in listed(desk, user):
        uses = [row for row in telemetry(desk, one) if row.kind == "use"]
        costs = [row.cost_usd for row in uses]
        cost = None if None in costs else sum(filter(None, costs))
        tokens, calls = sum(row.tokens for row in uses), sum(row.calls for row in uses)
        told.append({**specialist_json(one, desk.settings.model), "calls": calls, "tokens": tokens, "cost_usd": cost})
        suite = "-" if one.avg_confidence is None else f"{one.avg_confidence:.2f}"
        missing = "; ".join(lacks(one)) if one.status == "unverified" else ""
        eligible = missing or ("eligible" if one.status == "unverified" else one.status)
        figures = (f"{one.success_count} of {one.execution_count}", suite, str(tokens), told_cost(cost))
        rows.append((one.role, one.created_by, str(one.version), *figures, eligible))
    heads = ("ROLE", "MADE FOR", "VERSION", "SUCCEEDED", "SUITE", "TOKENS", "COST", "PROMOTION")
    tell({"specialists": told}, table(heads, rows, _NONE), as_json=as_json)


@app.command()
def audit(ctx: typer.Context, specialist: _Name, user: User = STEWARD.id, as_json: AsJson = False) -> None:
    """Let the audit minister read a specialist's telemetry. What it would change becomes a draft plan."""
    desk = state(ctx).desk()
    one = find_specialist(desk, specialist, user)
    found = report(desk, one, user)
    if not as_json:
        typer.echo("\n".join([*_figures(one, desk.settings.model), *(f"finding: {each}" for each in found.findings)]))
    receipt = None
    if found.proposals and one.status == "unverified":
        asked = [(each.tool, dict(each.arguments)) for each in found.proposals]
        receipt = _drafted(ctx, user, *asked, title=f"The audit of {one.role}", quiet=as_json)
    elif found.proposals and not as_json:
        typer.echo(
            f"A verified spec does not change: nothing is proposed. `council specialists fork {one.role}` makes a copy."
        )
    if as_json:
        print_json(msgspec.to_builtins(found) | {"notes": list(receipt.notes) if receipt else []})


@app.command()
def rate(
    ctx: typer.Context,
    run: Annotated[
        str,
        typer.Argument(help="The run that used it: its id, its first characters, or `last`, your last use."),
    ],
    rating: Annotated[str, typer.Argument(help="`good` or `bad`.", metavar="good|bad")],
    user: User = STEWARD.id,
    as_json: AsJson = False,
) -> None:
    """Rate what a specialist did for you. A use that you call bad counts as a failure."""
    if rating not in ("good", "bad"):
        raise typer.BadParameter("say `good` or `bad`", param_hint="RATING")
    desk = state(ctx).desk()
    run_id = last_use(desk, user) if run == "last" else find_any(desk, run)
    rows = rate_uses(desk, run_id, user, is_good=rating == "good")
    counts = ["succeeded" if row.success and not row.objected else "failed" for row in rows]
    lines = [f"The use in {run_id} counts as {status}." for status in counts]
    tell({"uses": [msgspec.to_builtins(row) for row in rows]}, lines, as_json=as_json)


@app.command()
def create(
    ctx: typer.Context,
    request: Annotated[str, typer.Argument(help="What it is to do again and again, in your own words.")],
    examples: Annotated[
        str, typer.Option(help="A JSON file with test cases of your own: a list of {input, expected_output}.")
    ] = "",
    changes: Annotated[str, typer.Option(help="Your specialist that gets a new version. Default: a new one.")] = "",
    user: User = STEWARD.id,
    timeout_s: Timeout = 3600.0,
    as_json: AsJson = False,
) -> None:
    """Have a specialist designed and reviewed. Returns when it has a question, or a plan, for you."""
    cli, body = state(ctx), creation_command(request, user, changes=changes, examples_file=examples)
    wait_for_answer(cli, cli.desk(), body, timeout_s, as_json)


@app.command()
def train(
    ctx: typer.Context,
    specialist: _Name,
    user: User = STEWARD.id,
    timeout_s: Timeout = 3600.0,
    as_json: Receipted = False,
) -> None:
    """Test a specialist with its whole suite again. From then on, its figures are those of this suite."""
    desk = state(ctx).desk()
    receipt = wait_for(desk, trained(desk, find_specialist(desk, specialist, user), user), timeout_s, quiet=as_json)
    print_receipt(receipt, as_json=as_json)


@app.command()
def promote(
    ctx: typer.Context,
    specialist: _Name,
    user: User = STEWARD.id,
    timeout_s: Timeout = 3600.0,
    as_json: Receipted = False,
) -> None:
    """Test a specialist with its suite again, and draft the plan that offers it to everybody. For administrators."""
    desk = state(ctx).desk()
    one = find_specialist(desk, specialist, user)
    print_receipt(wait_for(desk, trained(desk, one, user, for_promotion=True), timeout_s, quiet=as_json), quiet=True)
    _drafted(ctx, user, ("promoteSpecialist", {"specialist": one.id}), as_json=as_json)


_CHANGES: tuple[tuple[str, str, str, dict[str, tuple[Any, Any]]], ...] = (
    ("demote", "demoteSpecialist", "that makes a specialist serve only its creator again. For administrators", {}),
    ("deprecate", "deprecateSpecialist", "that takes a specialist out of use", {}),
    ("fork", "forkSpecialist", "that makes a copy of a specialist, unverified and your own", {
        "role": (Annotated[str, typer.Option(help="The copy's role. Default: the same.", show_default=False)], ""),
    }),
    ("add-rule", "addRule", "that adds a rule", {
        "rule": (Annotated[str, typer.Argument(help="One sentence that it must follow.")], REQUIRED),
    }),
    ("remove-rule", "removeRule", "that removes a rule", {
        "number": (Annotated[int, typer.Argument(help="The rule's number, as `show` prints it.")], REQUIRED),
    }),
    ("rollback", "rollbackSpecialist", "that takes a specialist back to an earlier version", {
        "version": (Annotated[int, typer.Option("--to", help="The version's number, as `show` prints it.")], REQUIRED),
    }),
)  # fmt: skip


def _change(tool: str, own: dict[str, tuple[Any, Any]]) -> Callable[..., None]:
    def run(ctx: typer.Context, user: str, as_json: bool, **given: Any) -> None:
        optional = [name for name, (_, default) in own.items() if default is not REQUIRED]
        arguments = {name: value for name, value in given.items() if value != "" or name not in optional}
        _drafted(ctx, user, (tool, arguments), as_json=as_json)

    whose = {"user": (User, STEWARD.id), "as_json": (Receipted, False)}
    return with_parameters(run, {"specialist": (_Name, REQUIRED), **own, **whose})


for _verb, _tool, _told, _own in _CHANGES:
    app.command(_verb, help=f"Draft a plan {_told}.")(_change(_tool, _own))


def _drafted(
    ctx: typer.Context,
    user: str,
    *operations: tuple[str, dict[str, Any]],
    title: str = "",
    as_json: bool = False,
    quiet: bool = False,
) -> Receipt:
    """The receipt of a plan that was drafted, printed unless it is to be `quiet`."""
    desk = state(ctx).desk()
    receipt = wait_for(desk, proposed(desk, user, *operations, title=title), _WAIT_S, quiet=True, model="offline")
    print_receipt(receipt, as_json=as_json, quiet=quiet)
    if not as_json and not quiet:
        whose = "" if user == STEWARD.id else f" --user {user}"
        typer.echo(f"`council plans{whose}` shows it, and nothing changes before you confirm and apply it.")
    return receipt


def _figures(one: Specialist, model: str) -> list[str]:
    suite = "not taken" if one.avg_confidence is None else f"{one.avg_confidence:.3f}, at {moment(one.suite_at)}"
    lines = [f"uses: {one.execution_count}, of which {one.success_count} succeeded", f"latest suite: {suite}"]
    if one.last_used_at:
        lines.append(f"last used: {moment(one.last_used_at)}")
    if one.has_new_model(model):
        lines.append(f"to be examined again: its suite was answered by {one.suite_model}, and the model is {model} now")
    if one.status == "unverified":
        missing = lacks(one)
        lines.append(f"not eligible yet: {'; '.join(missing)}" if missing else "eligible for promotion")
    return lines
