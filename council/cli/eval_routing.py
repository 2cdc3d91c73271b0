"""`council eval routing`: golden requests, routed as `council ask` would route them; no agent is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import typer

from council.app import build_app
from council.budgets.budget import BudgetLimits
from council.cli.context import aligned, print_json
from council.conductor.routing import usable
from council.desk.desk import Desk
from council.errors import UsageError
from council.evaluation.routing_set import GoldenRequest, RoutedRequest, RoutingReport, open_trial, read_set
from council.ids import STEWARD

_SHIPPED = Path(__file__).parents[1] / "resources" / "routing"


def evaluate_routing(
    desk: Desk, requests: Path | None, limit: int | None, limits: BudgetLimits, *, as_json: bool
) -> None:
    """Prints how many requests were routed right, wrong, asked back and admitted. Raises UsageError, ConfigError, ModelError."""
    place = requests or _SHIPPED
    files = sorted(place.glob("*.yaml")) if place.is_dir() else [place]
    if not files:
        raise UsageError(f"{place} has no set of requests.", fix="name a .yaml file")
    if desk.settings.model == "offline":
        raise UsageError("the offline engine understands no request.", fix="name a language model with --model")
    own = [persona for persona in desk.personas().values() if persona.role != "CONDUCTOR"]
    agents, golden = usable(own, STEWARD.id), list[GoldenRequest]()
    for file in files:
        found, agents = read_set(file, agents)
        golden += found.requests
    golden = golden[:limit]

    async def trial() -> RoutingReport:
        app = build_app(desk.home, desk.settings, desk.keys, systems=desk.systems(), environ=desk.environ)
        try:
            return await open_trial(app, desk.keys, agents, limits).route_all(golden, tell)
        finally:
            await app.aclose()

    def tell(row: RoutedRequest) -> None:
        typer.echo(f"{row.mark:<8}  {row.ask[:60]}: {', '.join(row.found) or 'nothing'}", err=True)

    report = asyncio.run(trial())
    if as_json:
        print_json(report)
        return
    typer.echo(f"{len(golden)} requests, {report.agents} agents, {report.model}")
    typer.echo("\n".join(aligned([[mark, str(count)] for mark, count in report.counts.items()])))
    wrong = [row for row in report.rows if row.mark == "wrong"]
    if wrong:
        typer.echo("\nRouted wrong:")
        typer.echo("\n".join(aligned([[row.ask[:60], ", ".join(row.wanted), ", ".join(row.found)] for row in wrong])))
    if not report.embedding:
        typer.echo("\nNo embedding model is set, so no threshold is calibrated (`embedding_model`).")
    elif report.verified_match is None:
        typer.echo(f"\nNo value of `verified_match` separates right from wrong with {report.embedding}. Set it to 1.")
    else:
        typer.echo(f"\nFor {report.embedding} and these agents: verified_match = {report.verified_match}")
