"""`council prefs`: how the conductor speaks to a person, and what it may remember."""

from __future__ import annotations

from typing import Annotated

import typer

from council.cli.context import AsJson, aligned, print_json, state
from council.cli.waiting import wait_for
from council.desk.drop_and_wait import control
from council.ids import STEWARD

app = typer.Typer(no_args_is_help=True)

_User = Annotated[str, typer.Option("--user", help="Whose preferences; else the steward's.", show_default=False)]
_Name = Annotated[str, typer.Argument(help="language, verbosity, tone, style, humor or long_term_memory.")]


@app.command("show", help="Show your preferences, and the facts that you let agents remember.")
def show(ctx: typer.Context, user: _User = "", as_json: AsJson = False) -> None:
    from council.conductor.preferences import preferences_of  # not at the top: `council --help` needs none

    found = preferences_of(state(ctx).desk().store, user or STEWARD.id)
    if as_json:
        print_json({"preferences": found.values, "facts": list(found.facts)})
        return
    lines = aligned([[name, value] for name, value in found.values.items()]) if found.values else []
    lines += [f"remembered: {fact}" for fact in found.facts]
    typer.echo("\n".join(lines or ["Nothing is set. `council prefs set tone dry` sets the tone."]))


@app.command("set", help="Set a preference; it counts from the next request on.")
def set_(
    ctx: typer.Context, name: _Name, value: Annotated[str, typer.Argument(help="Its value.")], user: _User = ""
) -> None:
    _change(ctx, user, action="set", name=name, value=value)


@app.command("forget", help="Forget a preference, `facts` for all facts, or everything.")
def forget(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Its name. Default: everything.")] = "",
    user: _User = "",
) -> None:
    _change(ctx, user, action="forget", **({"name": name} if name else {}))


def _change(ctx: typer.Context, user: str, **keys: str) -> None:
    desk = state(ctx).desk()
    who = {"user": user} if user else {}
    receipt = wait_for(desk, control(desk, "prefs", **keys, **who), 60.0, quiet=True, offline=True)
    typer.echo("\n".join(receipt.notes))
