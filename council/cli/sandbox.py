"""`council sandbox`: foreign code in its cage, and whether this machine has one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from council.cli.context import AsJson, aligned, print_json, state, tell
from council.errors import EXIT_FAILED, EXIT_REFUSED, StorageFailed, UsageError
from council.ids import STEWARD, readable_json
from council.sandbox.cage import open_sandbox
from council.sandbox.job import MAX_CODE_BYTES, MEANINGS, Job, Level, Limits, Result
from council.sandbox.probes import probe_all
from council.storage.files import read_limited

app = typer.Typer(no_args_is_help=True)


@app.command()
def check(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Try to break out of each sandbox of this machine, and say what isolates foreign code and how to fix the rest."""
    settings = state(ctx).desk().settings
    probes = asyncio.run(probe_all(settings))
    enough = any(probe.level is not None and probe.level >= Level.L2 for probe in probes)
    names = [probe.level.name if probe.level is not None else None for probe in probes]
    told = [asdict(probe) | {"level": name} for probe, name in zip(probes, names, strict=True)]
    rows = [(probe.name, name or "—", probe.message) for probe, name in zip(probes, names, strict=True)]
    lines: list[str] = []
    for line, probe in zip(aligned(rows), probes, strict=True):
        lines += [line, *([f"{'':12}fix: {probe.fix}"] if probe.fix else [])]
    lines += ["", *(f"{level.name}  {MEANINGS[level]}" for level in Level)]
    tell({"ok": enough, "sandboxes": told}, lines, as_json=as_json)
    if not enough:
        raise typer.Exit(EXIT_REFUSED)


@app.command()
def run(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="A file of Python code.")],
    entry: Annotated[str, typer.Option(help="The function in it to call.")],
    input_: Annotated[str, typer.Option("--input", help="Its argument, as JSON.")] = "null",
    docker: Annotated[bool, typer.Option("--docker", help="In a container (L3), not in a zygote (L2).")] = False,
    seed: Annotated[int, typer.Option(help="The seed of `random`.")] = 0,
    wall_s: Annotated[
        float | None,
        typer.Option(
            min=0.1, help=f"Time limit in seconds; at most the default, {Limits().wall_s:g}.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Call a function of a file in a sandbox, and print what it returns."""
    desk = state(ctx).desk()
    try:
        argument = json.loads(input_)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--input is not JSON: {error}.", fix="--input '{\"a\": 1}'") from None
    try:
        code = read_limited(file, MAX_CODE_BYTES).decode()
    except (OSError, StorageFailed, UnicodeDecodeError) as error:
        said = error.message if isinstance(error, StorageFailed) else f"cannot read {file}: {error}."
        raise UsageError(said, fix=f"name a file of Python code, UTF-8, at most {MAX_CODE_BYTES:,} bytes") from None
    limits = None if wall_s is None else Limits(wall_s=wall_s, cpu_s=30)
    job = Job(code, entry, argument, limits=limits, seed=seed)

    def refuse(detail: Mapping[str, Any]) -> None:
        with desk.safe() as safe:
            safe.trail.refuse("sandbox_refused", STEWARD.id, detail)

    async def result_of_job() -> Result:
        async with open_sandbox("docker" if docker else "zygote", desk.settings, refuse) as sandbox:
            return await sandbox.run(job)

    result = asyncio.run(result_of_job())
    if as_json:
        print_json(asdict(result) | {"level": result.level.name})
    elif result.status == "ok":
        typer.echo(readable_json(result.value, indent=2))
    else:
        typer.echo(f"{result.status}: {result.error}\n{result.traceback}".rstrip(), err=True)
    if result.status != "ok":
        raise typer.Exit(EXIT_REFUSED if result.status == "refused" else EXIT_FAILED)


@app.command("build-image")
def build_image(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Build a container image from the local Python and its standard library. Nothing is downloaded."""
    from council.sandbox import image  # not at the top: the docker SDK

    state(ctx).desk()
    name, size = image.build_image()
    tell({"image": name, "bytes": size}, [f"{name}: {size / 1e6:.0f} MB"], as_json=as_json)
