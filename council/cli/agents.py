"""`council agents`: the agents that deliberate here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from council.cli.context import CliState, state
from council.errors import PersonaError
from council.ids import readable_json

if TYPE_CHECKING:
    from council.agents.manifest import AgentManifest

app = typer.Typer(no_args_is_help=True)


@app.callback()
def agents() -> None:
    """The agents of this home: their roles, tools and personas."""


@app.command("list")
def list_(
    ctx: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False
) -> None:
    """List every agent with its tools and purpose."""
    found = sorted(personas(state(ctx)).values(), key=lambda manifest: manifest.role)
    if as_json:
        told = [manifest.model_dump(mode="json", exclude={"instructions"}) for manifest in found]
        typer.echo(readable_json(told, indent=2))
        return
    width = max((len(manifest.role) for manifest in found), default=0)
    for manifest in found:
        typer.echo(f"{manifest.role:<{width}}  {manifest.purpose}")
        typer.echo(f"{'':<{width}}  tools: {', '.join(manifest.tools) or 'none'}; trust: {manifest.trust}")


@app.command()
def show(
    ctx: typer.Context,
    role: Annotated[str, typer.Argument(help="The agent's role.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print one agent: its manifest and its instructions."""
    found = personas(state(ctx))
    manifest = found.get(role.upper())
    if manifest is None:
        known = ", ".join(sorted(found)) or "none"
        raise PersonaError(f"there is no agent {role.upper()} here (found: {known}).", fix="see `council agents list`")
    if as_json:
        typer.echo(readable_json(manifest.model_dump(mode="json"), indent=2))
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


def personas(cli: CliState) -> dict[str, AgentManifest]:
    """Every persona of the home. Raises PersonaError."""
    from council.agents.manifest import load_personas

    home, settings = cli.home(), cli.settings().settings
    return load_personas(home.personas, home.root / settings.seeds_dir if settings.seeds_dir else None)


def _words(words: tuple[str, ...]) -> str:
    return ", ".join(words) or "nothing"
