"""`council models`: the models there are, and a trial of one from here."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from decimal import Decimal
from typing import Annotated, Any

import typer
from msgspec import to_builtins

from council.budgets.prices import Price
from council.cli.context import AsJson, CliState, aligned, state
from council.errors import EXIT_FAILED, EXIT_OK, CouncilError
from council.ids import SystemClock, escape_unseen
from council.upkeep.model_trial import (
    EmbeddingTrial,
    Overview,
    ServedModels,
    Trial,
    embedding_trial,
    listing,
    overview,
    trial,
)

app = typer.Typer(no_args_is_help=True)

_SHOWN_MODELS = 40
_COLOURS = {"yes": "green", "unclear": "yellow", "no": "red"}


@app.command("list")
def list_(
    ctx: typer.Context,
    provider: Annotated[
        str | None, typer.Argument(help="Ask this provider which models it has, instead.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the models in use and for whom, all providers and their keys, and the models of a local Ollama."""
    cli = state(ctx)
    desk = cli.desk()
    home, loaded, keys = desk.home, desk.loaded, desk.keys
    if provider is None:
        found = asyncio.run(overview(home, loaded.settings, keys, source=loaded.sources["model"]))
        _print(cli, _json(asdict(found)) if as_json else _overview_text(found))
        return
    listed = asyncio.run(listing(home, loaded.settings, keys, provider))
    _print(cli, _json(asdict(listed)) if as_json else _listing_text(listed, limit=None))
    if listed.error:
        raise typer.Exit(EXIT_FAILED)


@app.command("test")
def try_model(
    ctx: typer.Context,
    model: Annotated[
        str | None, typer.Argument(help="The model to try. Default: the one in use.", show_default=False)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only check if it answers.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a short call to a model, and three more to try streaming, JSON mode and native tools.

    Without MODEL, this also tries the embedding model. MODEL can also name that one."""
    cli = state(ctx)
    desk = cli.desk(model=model)
    home, settings, keys = desk.home, desk.settings, desk.keys
    embedding = settings.embedding_model
    wanted = [settings.model] if model is not None or embedding is None else [settings.model, embedding]
    told: list[dict[str, Any]] = []
    exit_code = EXIT_OK
    for name in wanted:
        try:
            tried: Trial | EmbeddingTrial
            if name == embedding:
                tried = asyncio.run(embedding_trial(home, settings, keys, name, SystemClock()))
            else:
                tried = asyncio.run(trial(home, settings, keys, name, SystemClock(), features=not quick))
        except CouncilError as error:
            if not as_json:
                raise
            failure = {"code": error.code, "message": error.message, "fix": error.fix}
            told.append({"model": name, "answers": False, "error": failure})
            exit_code = error.exit_code
            break
        if as_json:
            told.append(asdict(tried) | {"answers": True})
        else:
            if isinstance(tried, EmbeddingTrial):
                counted = f"{tried.usage.input_tokens} tokens" if tried.usage else "tokens not counted"
                took = f"in {tried.latency_s:.1f} s: {tried.dimensions} dimensions ({counted})"
                answers = f"{cli.styled('yes', fg='green')}, {took}"
                works = "yes" if tried.tells_apart else "no"
                nearness = f"{tried.related:.2f} between two that mean the same, {tried.unrelated:.2f}"
                tells_apart = f"{cli.styled(works, fg=_COLOURS[works])}: {nearness} between two that do not"
                rows = [("", ""), ("embeddings", tried.model), ("answers", answers), ("tells apart", tells_apart)]
            else:
                rows = _trial_rows(cli, tried)
            rows.append(("price", _price_words(tried.price)))
            _print(cli, "\n".join(f"{name:12}  {value}" if name else "" for name, value in rows))
    if as_json:  # the embedding model's trial stands within that of the model in use
        _print(cli, _json(told[0] if len(told) == 1 else {**told[0], "embedding": told[1]}))
    raise typer.Exit(exit_code)


def _print(cli: CliState, text: str) -> None:
    typer.echo(cli.desk().keys.redactor.redact(text))  # no key is put into it; this catches what a server repeats


def _overview_text(found: Overview) -> str:
    chosen = found.chosen
    lines = [f"model    {chosen.name}, from {chosen.source}"]
    if chosen.error:
        lines += [f"         {chosen.error}", f"         fix: {chosen.fix}", ""]
    else:
        lines += [f"context  {chosen.context_tokens} tokens", f"price    {_price_words(chosen.price)}", ""]
    if found.also:  # the other models that settings and personas name, and who asks them
        rows = [("ALSO NAMED", "FOR", "SAID BY", "PRICE")]
        rows += [
            (used.name, used.by, used.source, "-" if used.error else _price_words(used.price, brief=True))
            for used in found.also
        ]
        for line, used in zip(aligned(rows), [None, *found.also], strict=True):
            lines.append(line)
            if used is not None and used.error:
                lines += [f"  {used.error}", f"  fix: {used.fix}"]
        lines.append("")
    keys = [("PROVIDER", "KEY", "")]
    keys += [
        (known.name, known.key.words if known.key else "-", known.error or known.summary) for known in found.providers
    ]
    lines += [*aligned(keys), ""]
    if found.ollama.error:
        lines.append(f"Ollama: not found here ({found.ollama.error.rstrip('.')})")
    else:
        lines += ["Ollama is here:", _listing_text(found.ollama, limit=_SHOWN_MODELS)]
    lines += ["", "`council models list PROVIDER` asks one for its models, `council models test MODEL` tries one."]
    return "\n".join(lines)


def _listing_text(listed: ServedModels, *, limit: int | None) -> str:
    if listed.error:
        return f"{listed.provider}: {listed.error}\n  fix: {listed.fix}"
    models = sorted(listed.models, key=lambda model: model.id.lower())
    width = max((len(model.id) for model in models), default=0)
    lines = [
        f"  {listed.provider}:{model.id:{width}}  {f'{model.context_tokens} tokens' if model.context_tokens else ''}".rstrip()
        for model in models[:limit]
    ]
    if limit is not None and len(models) > limit:
        lines.append(f"  and {len(models) - limit} more: `council models list {listed.provider}`")
    return "\n".join(lines) or f"  {listed.provider} has no models yet"


def _trial_rows(cli: CliState, tried: Trial) -> list[tuple[str, str]]:
    usage = tried.usage
    counted = f"{usage.input_tokens} + {usage.output_tokens} tokens" if usage else "tokens not counted"
    rows = [
        ("model", tried.model),
        ("answers", f"{cli.styled('yes', fg='green')}, in {tried.latency_s:.1f} s: {tried.words} ({counted})"),
    ]
    for feature in tried.features:
        rows.append((feature.name, f"{cli.styled(feature.works, fg=_COLOURS[feature.works])}: {feature.words}"))
    context, served, table = f"{tried.context_tokens} tokens", tried.served_tokens, tried.model.partition(":")[0]
    if served is not None and served < tried.context_tokens:
        context += (
            f", but the server holds only {served} and cuts the rest off: raise it there, or "
            f"set context_tokens = {served} in [providers.{table}]"
        )
    elif served is not None and served > tried.context_tokens:
        context += f"; the server holds {served}: set context_tokens in [providers.{table}]"
    return [*rows, ("context", context)]


def _price_words(price: Price | None, *, brief: bool = False) -> str:
    if price is None:
        return "unknown"
    told = f"{float(price.input):g} in, {float(price.output):g} out"
    if brief:
        return told
    cached = f", {float(price.cached):g} from a cache" if price.cached is not None else ""
    return f"{told}{cached} (USD per million tokens)"


def _json(told: object) -> str:
    def plain(value: object) -> object:
        if isinstance(value, Price):
            return {"input": value.input, "output": value.output, "cached": value.cached}
        return float(value) if isinstance(value, Decimal) else to_builtins(value)

    return escape_unseen(json.dumps(told, indent=2, ensure_ascii=False, default=plain))
