"""`council world`: the steward's commands on the world, and a look at it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from council.cli.context import Timeout, state, tell
from council.cli.waiting import obey, print_receipt
from council.errors import EXIT_FAILED, UsageError
from council.ids import SystemClock
from council.safety.untrusted import plain_line
from council.world.world_store import Book, deadline_utc

app = typer.Typer(no_args_is_help=True)

_Agent = Annotated[int, typer.Argument(min=1, help="The player's agent_id; `council world status` lists them.")]


@app.command()
def init(
    ctx: typer.Context,
    members: Annotated[int, typer.Option(min=1, help="Members at the beginning.")] = 50,
    land: Annotated[
        str, typer.Option(metavar="WxH", help="Size of the land in cells, of which there must be more than members.")
    ] = "20x20",
    seed: Annotated[int, typer.Option(min=0, help="The seed of every random number.")] = 1,
    pace: Annotated[int, typer.Option(min=1, help="Seconds in which a round accepts actions.")] = 30,
    timeout_s: Timeout = 60.0,
) -> None:
    """Make the world of this home. Its rounds begin with the daemon."""
    width, times, height = land.lower().partition("x")
    if not times or not width.isdigit() or not height.isdigit():
        raise UsageError(f"--land {land} is not a size.", fix="write it as 20x20")
    _obey(ctx, "world_init", timeout_s, members=members, width=int(width), height=int(height), seed=seed, pace=pace)


@app.command()
def pause(ctx: typer.Context, timeout_s: Timeout = 60.0) -> None:
    """Stop the rounds; submissions are refused until the world goes on."""
    _obey(ctx, "world_pause", timeout_s)


@app.command()
def resume(ctx: typer.Context, timeout_s: Timeout = 60.0) -> None:
    """Let a paused world go on."""
    _obey(ctx, "world_resume", timeout_s)


@app.command()
def ban(ctx: typer.Context, agent: _Agent, timeout_s: Timeout = 60.0) -> None:
    """Refuse a player from now on."""
    _obey(ctx, "world_ban", timeout_s, agent=agent)


@app.command()
def unban(ctx: typer.Context, agent: _Agent, timeout_s: Timeout = 60.0) -> None:
    """Let a banned player in again."""
    _obey(ctx, "world_unban", timeout_s, agent=agent)


@app.command()
def rollback(
    ctx: typer.Context,
    to_round: Annotated[int, typer.Argument(min=0, help="The round whose end is the new beginning.")],
    timeout_s: Timeout = 60.0,
) -> None:
    """Begin a new round as an older one ended. Nothing is deleted."""
    _obey(ctx, "world_rollback", timeout_s, to_round=to_round)


@app.command()
def status(ctx: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Print the world, its open round and its players."""
    book = _book(ctx)
    now = book.require_round()
    world, seed = book.world()
    players = book.players()
    last = book.receipts(now.round_id - 2, 1)
    metrics = last[-1]["round_metrics"] if last else {}
    told = {"world_id": world.world_id, "seed": seed, "land": list(world.shape), "pace_s": now.pace_s}
    told |= {"round_id": now.round_id, "state": now.phase, "deadline_utc": deadline_utc(now), "metrics": metrics}
    told |= {"players": list(map(asdict, players)), "mechanisms": list(map(asdict, world.mechanisms))}
    width, height = world.shape
    figures = "; " + ", ".join(f"{name} {value:g}" for name, value in metrics.items()) if metrics else ""
    lines = [
        f"World {world.world_id}, {width}x{height} cells, seed {seed}, a round every {now.pace_s} s",
        f"Round {now.round_id} is {now.phase}" + (f" until {deadline_utc(now)}" if deadline_utc(now) else ""),
        f"{len(world.members)} members live{figures}",
    ]
    for player in players:
        alive = "" if player.member_id in world.members else ", dead"
        banned = ", banned" if player.banned else ""
        name = plain_line(player.name, 80)
        lines.append(f"  player {player.agent_id} {name}: member {player.member_id}{alive}{banned}")
    for one in world.mechanisms:
        rules = ", ".join(f"{name} {value}" for name, value in one.rules.items())
        lines.append(f"  vote on {one.id}: {rules}; {len(one.yes)} yes, {len(one.no)} no")
    tell(told, lines, as_json=as_json)


@app.command()
def replay(ctx: typer.Context) -> None:
    """Compute every round again from the log, and print its hash. Ends at the first difference."""
    for round_id, state_hash, differs in _book(ctx).replay():
        typer.echo(f"Round {round_id}  {state_hash}  {f'differs: {differs}' if differs else 'as recorded'}")


@app.command()
def verify(ctx: typer.Context) -> None:
    """Compute every round again from the log, and compare its hash. Exits with code 1 at the first difference."""
    count = 0
    for round_id, _, differs in _book(ctx).replay():
        if differs:
            typer.echo(f"Round {round_id} differs: {differs}.")
            raise typer.Exit(EXIT_FAILED)
        count += 1
    typer.echo(f"{count} rounds, all as recorded.")


def _book(ctx: typer.Context) -> Book:
    return Book(state(ctx).desk().store, SystemClock())


def _obey(ctx: typer.Context, type_: str, timeout_s: float, **keys: Any) -> None:
    print_receipt(obey(state(ctx).desk(), type_, None, timeout_s, **keys))
