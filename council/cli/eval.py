"""`council eval`: golden questions, answered by one call, by a vote and by the council at an equal budget."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Annotated, Literal

import typer

from council.app import build_app
from council.budgets.budget import BudgetLimits
from council.cli.context import AsJson, aligned, print_json, state
from council.cli.daemon import logging_to_file
from council.cli.given_files import checked, from_home, require_new
from council.conductor.routing import usable
from council.daemon.service import Service
from council.daemon.terminal import event_line
from council.desk.desk import Desk
from council.errors import EXIT_DEGRADED, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, ConfigError, CouncilError, UsageError
from council.evaluation import summary as rendered
from council.evaluation.evaluate import EvaluationEnd
from council.evaluation.grading import AnsweredQuestion, row_of
from council.evaluation.routing_set import GoldenRequest, RoutedRequest, RoutingReport, open_trial, read_set
from council.evaluation.session import EvaluationRequest, OpenEvaluation, open_session
from council.evaluation.summary import Report
from council.events import DaemonStart, DaemonStop, Event, EventLines, ModelRetry, RunWait
from council.ids import STEWARD, readable_json
from council.logs import configure
from council.storage.files import write_atomic

_EXAMPLE = Path(__file__).parents[1] / "resources" / "evaluation"
_DEMO_DOCUMENTS = Path(__file__).parents[1] / "resources" / "demo" / "docs"
_Protocol = Literal["independent", "triad", "review"]  # docs/protocols.md
_EXITS = {"": EXIT_OK, "budget": EXIT_DEGRADED, "failed": EXIT_FAILED, "interrupted": EXIT_INTERRUPTED}


def evaluate(
    ctx: typer.Context,
    folder: Annotated[
        Path,
        typer.Argument(
            help="The folder with questions.yaml or .jsonl and their documents; `routing`: how requests find their agents."
        ),
    ],
    init: Annotated[bool, typer.Option("--init", help="Make the folder with an example, and ask nothing.")] = False,
    model: Annotated[str | None, typer.Option(help="As for `council run`.")] = None,
    protocol: Annotated[_Protocol, typer.Option(help="How the council deliberates.")] = "independent",
    rounds: Annotated[int, typer.Option(min=1, max=100, help="At most this many rounds.")] = 3,
    split: Annotated[str | None, typer.Option(help="Only the questions of this split. Default: all.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many questions, drawn at random.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random order and of the bootstrap.")] = 0,
    resamples: Annotated[int, typer.Option(min=100, max=100_000, help="Number of bootstrap samples.")] = 2_000,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="At most this many tokens for the whole evaluation.")
    ] = None,
    max_usd: Annotated[
        float | None, typer.Option(min=0.000001, help="At most this many US dollars for the whole evaluation.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the last evaluation of this folder.")] = False,
    record: Annotated[
        Path | None,
        typer.Option(help="Save all model calls and replies to this file, a cassette that can be evaluated again."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Also write the report to this file, as Markdown."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", hidden=True, help="The older name of --output.")] = None,
    requests: Annotated[
        Path | None, typer.Option(help="With `routing`: a set of requests of your own, or a folder of them.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    if init:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} already exists.", fix="name a new folder")
        try:
            shutil.copytree(_EXAMPLE, folder, dirs_exist_ok=True)
            shutil.copytree(_DEMO_DOCUMENTS, folder / "docs")
        except OSError as error:
            why = f"cannot make {folder}: {error.strerror or error}."
            raise ConfigError(why, fix="name a folder that can be made") from None
        typer.echo(f"{folder} has an example: questions.yaml, and the docs/ that it asks about.")
        typer.echo(f"Next, in a home: `council eval {folder} --limit 5`")
        return
    desk = state(ctx).desk(model=model)
    if str(folder) == "routing":
        evaluate_routing(desk, requests, limit, BudgetLimits(None, max_tokens, max_usd), as_json=as_json)
        return
    output = output or out
    output = checked(output) if output is not None else None

    wanted = EvaluationRequest(folder, protocol, rounds, split, limit, seed, resamples, max_tokens, max_usd, resume)
    if record is not None:
        require_new(record)
    report, redact, not_recorded = asyncio.run(_evaluated(desk, wanted, record))
    typer.echo(redact(readable_json(rendered.as_json(report)) if as_json else rendered.as_text(report)))
    if report.stopped.fix and not as_json:
        typer.echo(f"Fix: {redact(report.stopped.fix)}", err=True)
    if output is not None:  # last: a disk that is full takes nothing away from what is shown
        write_atomic(output, redact(rendered.as_markdown(report)).encode(), mode=0o644)
    if not_recorded is not None:
        raise not_recorded
    raise typer.Exit(_EXITS[report.stopped.why])


async def _evaluated(
    desk: Desk, wanted: EvaluationRequest, record: Path | None
) -> tuple[Report, Callable[[str], str], CouncilError | None]:
    """The report, of what there is when it was interrupted; what redacts it; and why `record` is not there."""
    settings = desk.settings
    session = open_session(desk.home, settings, desk.keys, desk.systems(), desk.environ, wanted)
    app = session.app
    configure("error", settings.log_format, app.redactor)

    def tell(event: Event) -> None:
        if isinstance(event, ModelRetry | RunWait):  # what a person who waits wants to know of the runs
            typer.echo(event_line(event).strip(), err=True)

    app.events.subscribe(tell)
    try:
        with logging_to_file(app, EventLines(app.redactor.redact)):
            stopped = await _answered(session, Service(app, once=False))
        not_recorded: CouncilError | None = None
        try:
            if record is not None:
                write_atomic(record, await session.cassette(desk.keys, desk.environ))
                typer.echo(
                    f"{record} can answer instead of the model: --model cassette:{from_home(record, session.home.root)}",
                    err=True,
                )
        except CouncilError as error:  # told behind the report, which was paid for
            not_recorded = error
        return session.report(stopped), app.redactor.redact, not_recorded
    finally:
        session.close()


async def _answered(session: OpenEvaluation, service: Service) -> EvaluationEnd:
    numbers = count(1)
    locked = asyncio.Event()  # nothing is asked before: another process may be at work in that home

    async def ask() -> EvaluationEnd:
        await locked.wait()
        return await session.answer(tell_progress)

    def tell_progress(answered: AnsweredQuestion) -> None:
        row = row_of(answered)
        marks = {
            arm: "right" if marked.right else "wrong" if marked.readable else "unreadable"
            for arm, marked in row.arms.items()
        }
        told = f"single {marks['single']}, vote of {len(answered.ballots)} {marks['vote']}, council {marks['council']}"
        typer.echo(f"[{next(numbers)}/{len(session.questions)}] {row.id}: {told}", err=True)

    def on_event(event: Event) -> None:
        if isinstance(event, DaemonStart):
            locked.set()
        elif isinstance(event, DaemonStop) and not asking.done():
            typer.echo("Stopping after the calls under way. Press Ctrl-C again to stop at once.", err=True)
            asking.cancel()

    session.app.events.subscribe(on_event)
    asking = asyncio.ensure_future(ask())
    serving = asyncio.ensure_future(service.run())
    try:
        await asyncio.wait({serving, asking}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        service.stop()
        asking.cancel()
        await asyncio.wait({serving, asking})
    serving.result()
    if asking.cancelled():
        again = "With --resume, interrupted questions are asked again."
        return EvaluationEnd("interrupted", again, "continue with --resume")
    return asking.result()


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
            return await open_trial(app, agents, limits).route_all(golden, tell)
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
