"""`council check`: the guardrails and the ministers on a file, without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from council.cli.context import AsJson, print_json, state
from council.desk.checking import CheckedKind, check_text
from council.errors import EXIT_REFUSED, HomeNotFound, UsageError
from council.safety.untrusted import plain_line

_MAX_BYTES = 1 << 20


def check(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Python code, a persona or agent spec, a command, or any text.")],
    kind: Annotated[
        CheckedKind, typer.Option("--as", help="Judge it as that; auto goes by the file.")
    ] = CheckedKind.auto,
    as_json: AsJson = False,
) -> None:
    try:
        if file.exists() and not file.is_file():
            raise UsageError(f"{file} is not a regular file.", fix="name a text file")
        with file.open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise UsageError(f"{file} is larger than {_MAX_BYTES} bytes.", fix="split it")
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}.", fix="name a text file") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 (byte {error.start}).", fix="save it as UTF-8") from None
    cli = state(ctx)
    try:
        scope = tuple(cli.desk().settings.scope_topics)
    except HomeNotFound:
        if cli.home_flag is not None:
            raise
        scope = ()  # outside of any home everything is in scope
    judged_as, findings = check_text(file, text, kind, scope)
    blocked = any(finding.blocks for finding in findings)
    if as_json:
        told = {finding.by: finding.told for finding in findings}
        print_json({"file": str(file), "as": judged_as.value, "passed": not blocked, **told})
    else:
        typer.echo(
            "\n".join(
                [
                    f"{plain_line(str(file), 300)}: {'refused' if blocked else 'ok'} (as {judged_as.value})",
                    *(f"  {finding.line}" for finding in findings),
                ]
            )
        )
    if blocked:
        raise typer.Exit(EXIT_REFUSED)
