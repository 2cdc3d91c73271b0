"""`council agents`: the agents that deliberate here."""

from __future__ import annotations

from typing import Annotated

import typer

from council.cli.context import AsJson, print_json, state
from council.errors import PersonaError
from council.proposals import nearest

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_(
    ctx: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False
) -> None:
    """List every agent with its tools and purpose."""
    desk = state(ctx).desk()
    found = sorted(desk.personas().values(), key=lambda manifest: manifest.role)
    tools = desk.tools()
    for manifest in found:
        for name in manifest.tools:
            if name.upper() not in tools:
                near = nearest(name, tools)
                meant = f"did you mean {near}?" if near else f"known: {', '.join(sorted(tools))}"
                typer.echo(f"warning: {manifest.role} names the tool {name}, which does not exist; {meant}", err=True)
    if as_json:
        print_json([manifest.model_dump(mode="json", exclude={"instructions"}) for manifest in found])
        return
    width = max((len(manifest.role) for manifest in found), default=0)
    for manifest in found:
        typer.echo(f"{manifest.role:<{width}}  {manifest.purpose}")
        typer.echo(f"{'':<{width}}  tools: {', '.join(manifest.tools) or 'none'}; trust: {manifest.trust}")


@app.command()
def show(
    ctx: typer.Context,
    role: Annotated[str, typer.Argument(help="The agent's role.")],
    as_json: AsJson = False,
) -> None:
    """Print one agent: its manifest and its instructions."""
    found = state(ctx).desk().personas()
    manifest = found.get(role.upper())
    if manifest is None:
        known = ", ".join(sorted(found)) or "none"
        raise PersonaError(f"there is no agent {role.upper()} here (found: {known}).", fix="see `council agents list`")
    if as_json:
        print_json(manifest.model_dump(mode="json"))
        return
    context = manifest.context
    rows = {
        "role": manifest.role,
        "id": manifest.id,
        "purpose": manifest.purpose,
        "tools": ", ".join(manifest.tools) or "none",
        "trust": manifest.trust,
        "scope": manifest.scope,
        "context": f"needs {_words(context.required)}; may have {_words(context.optional)}; never {_words(context.forbidden)}",
    }
    for name, value in rows.items():
        typer.echo(f"{name:<8} {value}")
    typer.echo(f"\n{manifest.instructions}")


def _words(words: tuple[str, ...]) -> str:
    return ", ".join(words) or "nothing"
