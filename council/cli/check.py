"""`council check`: the guardrails and the ministers on a file, without running anything."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from council.agents.manifest import DEFAULT_TOOLS
from council.cli.context import AsJson, print_json, state
from council.cli.given_files import beginning_of
from council.desk.guardrail_check import CheckedKind, check_text
from council.errors import EXIT_REFUSED, HomeNotFound, UsageError
from council.safety.untrusted import plain_line

_MAX_BYTES = 1 << 20


def check(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Python code, a persona or agent spec, a command, or any text.")],
    kind: Annotated[CheckedKind, typer.Option("--as", help="How to judge it; auto decides by the file.")] = "auto",
    as_json: AsJson = False,
) -> None:
    if os.path.exists(file) and not file.is_file():  # Path.exists raises for a name that is too long
        raise UsageError(f"{file} is not a regular file.", fix="name a text file")
    data = beginning_of(file, _MAX_BYTES, "name a text file")
    if len(data) > _MAX_BYTES:
        raise UsageError(f"{file} is larger than {_MAX_BYTES} bytes.", fix="split it")
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 (byte {error.start}).", fix="save it as UTF-8") from None
    cli = state(ctx)
    try:
        desk = cli.desk()
        scope, tools = tuple(desk.settings.scope_topics), desk.reading_tools
    except HomeNotFound:
        if cli.home_flag is not None:
            raise
        scope, tools = (), lambda: DEFAULT_TOOLS  # outside of any home everything is in scope
    judged_as, findings = check_text(file, text, kind, scope, tools)
    blocked = any(finding.blocks for finding in findings)
    if as_json:
        told = {finding.by: finding.told for finding in findings}
        print_json({"file": str(file), "as": judged_as, "passed": not blocked, **told})
    else:
        typer.echo(f"{plain_line(str(file), 300)}: {'refused' if blocked else 'ok'} (as {judged_as})")
        for finding in findings:
            typer.echo(f"  {finding.line}")
    if blocked:
        raise typer.Exit(EXIT_REFUSED)
