"""`council audit`: the chain of records of effects, approvals, secret reads and refusals."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from council.cli.context import CliState, state
from council.errors import EXIT_FAILED, UsageError
from council.ids import readable_json

if TYPE_CHECKING:
    from council.audit.chain import Head, Record, Verdict
    from council.audit.log import AuditLog

app = typer.Typer(no_args_is_help=True)

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_MAX_SHOWN = 10_000


@app.callback()
def audit() -> None:
    """What was changed, approved, read of secrets, and refused: a signed chain of records (docs/security.md)."""


@app.command()
def tail(
    ctx: typer.Context,
    count: Annotated[int, typer.Option("-n", min=1, max=_MAX_SHOWN, help="How many records.")] = 20,
    as_json: _Json = False,
) -> None:
    """Print the last records, oldest first."""
    with _log(state(ctx)) as log:
        records = log.tail(count) if log is not None else []
    if as_json:
        typer.echo(readable_json({"records": [_plain(record) for record in records]}, indent=2))
        return
    for record in records:
        typer.echo(_line(record))
    if not records:
        typer.echo("No record yet.")


@app.command()
def verify(
    ctx: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="An export to check, in place of this home's chain.", show_default=False)
    ] = None,
    head: Annotated[
        list[str] | None,
        typer.Option(help="An `audit_head` that an artifact shows: the chain must still hold it.", show_default=False),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Check every record, and that the end was not cut off: against the head file, receipts and --head."""
    cli = state(ctx)
    verdict = _verdict_of_file(cli, file, head or []) if file is not None else _verdict(cli, head or [])
    typer.echo(_json(verdict) if as_json else _text(verdict))
    if verdict.findings:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def export(ctx: typer.Context) -> None:
    """Print the chain as JSON lines: its head, then every record. `council audit verify FILE` checks it anywhere."""
    with _log(state(ctx)) as log:
        for line in log.export() if log is not None else ():
            sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


@app.command()
def renew(
    ctx: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Accept that the chain was begun anew: what older receipts know of another one is no finding any more. Recorded."""
    from council.app.safekeeping import build_receipts

    cli = state(ctx)
    with _log(cli) as log:
        if log is None:
            raise UsageError("there is no audit to go on with.", fix="it begins with the next run")
        if (own := log.verify(disputed=False)).findings:
            raise UsageError(
                f"the chain does not hold by itself: {own.findings[0].message}",
                fix="restore database and head file from a backup; only a whole chain can take the place of another",
            )
        findings = log.verify(_noted(cli, [], log)).findings
        if not findings:
            raise UsageError("every end that is known fits: there is nothing to accept.", fix="`council audit verify`")
        typer.echo("\n".join(f"{finding.code}: {finding.message}" for finding in findings))
        if not yes:
            typer.confirm("Is it known why, and is it to be a finding no more?", abort=True, err=True)
        log.renew(max(build_receipts(cli.home()).run_ids(), default=""))
    typer.echo("Recorded. What came before is vouched for by nothing here.")


@contextmanager
def _log(cli: CliState) -> Iterator[AuditLog | None]:
    """None where nothing was ever recorded."""
    from council.app.safekeeping import build_trail, has_database

    home, settings = cli.home(), cli.settings().settings
    if not has_database(home, settings):
        yield None
        return
    trail = build_trail(home, settings, cli.keys(), cli.environ, cli.keys().redactor)
    try:
        yield trail.log()
    finally:
        trail.close()


def _verdict(cli: CliState, heads: list[str]) -> Verdict:
    from council.audit.chain import GENESIS, Head, verify

    with _log(cli) as log:
        if log is None:
            known = _in_head_file(cli)
            chain = known[0][1].chain if known else ""
            noted = [*known, *_given(heads, chain), *_in_receipts(cli, chain, "")]
            return verify((), Head(chain, 0, GENESIS), noted, lambda kid: None)
        return log.verify(_noted(cli, heads, log))


def _in_head_file(cli: CliState) -> list[tuple[str, Head]]:
    """A head file beside no database: that was taken away."""
    from council.audit.head_file import HEAD_FILE, read_head

    head = read_head(cli.home().runtime / HEAD_FILE)
    return [] if head is None else [(f"the file {HEAD_FILE}", head)]


def _noted(cli: CliState, heads: list[str], log: AuditLog) -> Iterator[tuple[str, Head]]:
    """Ends of the chain that stand elsewhere: given by hand, and in the receipts."""
    chain = log.chain()
    yield from _given(heads, chain)
    yield from _in_receipts(cli, chain, log.renewed_to())


def _given(heads: list[str], chain: str) -> Iterator[tuple[str, Head]]:
    for text in heads:
        yield f"the head {text[:20]}…", _head_of(text, chain)


def _in_receipts(cli: CliState, chain: str, after: str) -> Iterator[tuple[str, Head]]:
    """`after`: the runs up to this one may know another chain."""
    from council.app.safekeeping import build_receipts

    receipts = build_receipts(cli.home())
    for run_id in receipts.run_ids():
        receipt = receipts.read(run_id) if run_id > after else None
        if receipt is not None and receipt.audit_head:
            yield f"the receipt of run {run_id}", _head_of(receipt.audit_head, chain)


def _head_of(text: str, chain: str) -> Head:
    from council.audit.chain import Head

    seq, _, mac = text.partition(":")
    if not seq.isascii() or not seq.isdecimal() or len(seq) > 18 or len(mac) != 64:
        raise UsageError(f"{text[:80]!r} is no head.", fix="copy `audit_head` from an artifact: 12:9f86d08…")
    return Head(chain, int(seq), mac)


def _verdict_of_file(cli: CliState, file: Path, heads: list[str]) -> Verdict:
    from council.app.safekeeping import build_key_source
    from council.audit.chain import read_head_line, verify_lines
    from council.keys.sources import require_keys

    keys = require_keys(build_key_source(cli.home(), cli.settings().settings, cli.keys(), cli.environ))
    derived = {key.kid: key.derive("audit") for key in keys.keys}
    try:
        with file.open("rb") as stream:
            head = read_head_line(stream.readline())
            stream.seek(0)
            return verify_lines(stream, _given(heads, head.chain if head else ""), derived.get)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}.", fix="name an export") from None


def _line(record: Record) -> str:
    from council.safety.untrusted import plain_line

    where = f"  run {record.run_id}" if record.run_id else ""
    detail = "[forgotten]" if record.detail is None else plain_line(record.detail, 400)
    return f"{record.seq:>6}  {record.at}  {record.kind:<11} {record.action:<20} {record.actor}{where}  {detail}"


def _plain(record: Record) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(record)
    return plain | {"detail": None if record.detail is None else json.loads(record.detail)}


def _text(verdict: Verdict) -> str:
    forgotten = f", the words of {verdict.forgotten} forgotten" if verdict.forgotten else ""
    lines = [f"{finding.code}: {finding.message}" for finding in verdict.findings]
    holds = "1 record holds" if verdict.records == 1 else f"{verdict.records} records hold"
    if not lines:
        return f"{holds}{forgotten}. Head: {verdict.head}"
    return "\n".join([*lines, f"{holds}{forgotten}."])


def _json(verdict: Verdict) -> str:
    from dataclasses import asdict

    told = {
        "ok": not verdict.findings,
        "records": verdict.records,
        "forgotten": verdict.forgotten,
        "head": str(verdict.head),
        "findings": [asdict(finding) for finding in verdict.findings],
    }
    return readable_json(told, indent=2)
