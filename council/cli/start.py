"""`council init` and `council demo`: the first minutes."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from council.cli.context import CliState, named_folder, state
from council.cli.run_control import print_answer
from council.cli.validate import write_schemas
from council.desk.drop_and_wait import Errand
from council.errors import EXIT_FAILED, UsageError
from council.settings import builtin_personas_dir, init_home

_DEMO = Path(__file__).parents[1] / "resources" / "demo"
_VSCODE = Path(__file__).parents[1] / "resources" / "vscode"  # its matcher reads what `council validate` prints


def init(
    ctx: typer.Context,
    directory: Annotated[
        Path | None,
        typer.Argument(
            show_default=False,
            path_type=str,
            callback=named_folder,
            help="The folder to make a home of. It is created if it does not exist. Default: that of --home, or this one.",
        ),
    ] = None,
    vscode: Annotated[bool, typer.Option("--vscode", help="Also write .vscode/settings.json and tasks.json.")] = False,
) -> None:
    directory = directory or state(ctx).home_flag or Path()
    created = init_home(directory, personas_from=builtin_personas_dir())
    created += write_schemas(state(ctx).commands, directory)
    kept: dict[Path, str] = {}
    if vscode:
        for source in sorted(_VSCODE.iterdir()):
            text, path = source.read_text(encoding="utf-8"), directory / ".vscode" / source.name
            path.parent.mkdir(exist_ok=True)
            try:
                with path.open("x", encoding="utf-8") as stream:
                    stream.write(text)
                created.append(path)
            except FileExistsError:  # what is there and differs is told, to be added by hand
                if path.read_text(encoding="utf-8", errors="replace") != text:
                    kept[path] = text
    for path in created:
        typer.echo(f"  + {path}")
    typer.echo(f"{directory.resolve()} is a home." if created else f"{directory.resolve()} is already a home.")
    for path, text in kept.items():
        typer.echo(f"\n{path} already exists and was not changed. Add this to it:\n\n{text}")
    if not created:
        typer.echo("Next: run `council doctor` there, which says if anything is missing.")
        return
    typer.echo(
        "Next: put GEMINI_API_KEY=… into its .env and start `council run` there, or `council run --model offline`"
    )
    typer.echo("without a key; then drop a command into commands/ (its README.md has one to copy).")


def demo(
    directory: Annotated[
        Path, typer.Argument(path_type=str, callback=named_folder, help="Where to make the demo home.")
    ] = Path("council-demo"),
) -> None:
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file.", fix="name a folder: `council demo DIR`")
    if directory.is_dir() and any(directory.iterdir()) and not (directory / "commands").is_dir():
        fix = "name another one: `council demo DIR`"
        raise UsageError(f"the folder {directory} is not empty and not a home.", fix=fix)
    begun = "Dropped" if (directory / "council.toml").exists() else f"Made a home in {directory}/ and dropped"
    init_home(directory, personas_from=builtin_personas_dir())
    shutil.copytree(_DEMO / "docs", directory / "docs", dirs_exist_ok=True)
    cli = CliState(home_flag=directory.resolve())
    desk = cli.desk()
    errand = Errand(desk, "command.json", (_DEMO / "command.json").read_bytes())
    shown = os.path.relpath(errand.dropped.path)
    typer.echo(f"{begun} {shown}. Starting the daemon, offline:\n")
    # The real daemon in a process of its own; its terminal is ours.
    command = [sys.executable, "-m", "council", "--home", str(desk.home.root), "run", "--once"]
    command += ["--model", "offline", "--log-format", "human", "--log-level", "warning"]
    sys.stdout.flush()
    code = subprocess.run(command, check=False).returncode
    receipt = errand.answer()
    if receipt is None:  # the daemon has said why
        raise typer.Exit(code or EXIT_FAILED)
    typer.echo("")
    print_answer(cli, receipt)
    typer.echo(f"As a page with charts: council --home {shlex.quote(str(directory))} report --open")
    raise typer.Exit(code)
