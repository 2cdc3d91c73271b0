"""`council audit`: the chain of records of effects, approvals, secret reads and refusals."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from council.cli.context import CliState, state
from council.errors import EXIT_FAILED, UsageError
from council.ids import readable_json
from council.upkeep.pages import pages_in

if TYPE_CHECKING:
    from council.audit.chain import ChainHead, ChainVerdict
    from council.audit.log import AuditLog

app = typer.Typer(no_args_is_help=True)

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_MAX_SHOWN = 10_000


@app.callback()
def audit() -> None:
    """A signed chain of records: changes, approvals, reads of secrets, refusals (docs/security.md)."""


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
        import msgspec

        plain = [
            msgspec.to_builtins(record) | {"detail": None if record.detail is None else json.loads(record.detail)}
            for record in records
        ]
        typer.echo(readable_json({"records": plain}, indent=2))
        return
    from council.safety.untrusted import plain_line

    for record in records:
        where = f"  run {record.run_id}" if record.run_id else ""
        detail = "[forgotten]" if record.detail is None else plain_line(record.detail, 400)
        action = f"{record.kind:<11} {record.action:<20} {record.actor}"
        typer.echo(f"{record.seq:>6}  {record.at}  {action}{where}  {detail}")
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
    """Check every record, and that the end was not cut off: against the head file, receipts, pages and --head."""
    cli = state(ctx)
    if file is not None:
        verdict = _verdict_of_file(cli, file, head or [])
    else:
        with _log(cli) as log:
            verdict = _verified(cli, head or [], log)
    if as_json:
        told = {
            "ok": not verdict.findings,
            "records": verdict.records,
            "forgotten": verdict.forgotten,
            "head": str(verdict.head),
            "findings": [asdict(finding) for finding in verdict.findings],
        }
        typer.echo(readable_json(told, indent=2))
    else:
        forgotten = f", the words of {verdict.forgotten} forgotten" if verdict.forgotten else ""
        holds = "1 record holds" if verdict.records == 1 else f"{verdict.records} records hold"
        lines = [f"{finding.code}: {finding.message}" for finding in verdict.findings]
        end = "" if lines else f" Head: {verdict.head}"
        typer.echo("\n".join([*lines, f"{holds}{forgotten}.{end}"]))
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
    cli = state(ctx)
    with _log(cli, writes=True) as log:
        if log is None:
            raise UsageError("there is no audit to go on with.", fix="it begins with the next run")
        if (own := log.verify(disputed=False)).findings:
            raise UsageError(
                f"the chain does not hold by itself: {own.findings[0].message}",
                fix="restore database and head file from a backup; only a whole chain can take the place of another",
            )
        findings = _verified(cli, [], log).findings
        if not findings:
            raise UsageError("every end that is known fits: there is nothing to accept.", fix="`council audit verify`")
        typer.echo("\n".join(f"{finding.code}: {finding.message}" for finding in findings))
        if not yes:
            typer.confirm("Is it known why, and is it to be a finding no more?", abort=True, err=True)
        known = [*(receipt.run_id for receipt in cli.receipts().all()), *(page.run_id for page in pages_in(cli.home()))]
        log.renew(max(known, default=""))
    typer.echo("Recorded. What came before is vouched for by nothing here.")


@contextmanager
def _log(cli: CliState, *, writes: bool = False) -> Iterator[AuditLog | None]:
    """None where nothing was ever recorded. Who only reads can do so where nothing can be written."""
    from council.app.safekeeping import build_trail
    from council.storage.versions import DATABASE_FILE

    if cli.settings().settings.database_url is None and not (cli.home().runtime / DATABASE_FILE).exists():
        yield None
    elif writes:
        with cli.trail() as trail:
            yield trail.log()
    else:
        home, settings, keys = cli.home(), cli.settings().settings, cli.keys()
        yield build_trail(home, cli.store(), settings, keys, cli.environ, keys.redactor).log()


def _verified(cli: CliState, heads: list[str], log: AuditLog | None) -> ChainVerdict:
    """The chain against all its known ends, and the pages against the runs.

    A database that was set back took the receipts of its last runs along: then the pages know more. Without a log the
    ends that stand elsewhere tell that it was taken away.
    """
    from council.audit.chain import GENESIS, ChainFinding, ChainHead, verify
    from council.audit.head_file import HEAD_FILE, read_head

    if log is None:
        head = read_head(cli.home().runtime / HEAD_FILE)
        chain = head.chain if head is not None else ""
        in_file = [(f"the file {HEAD_FILE}", head)] if head is not None else []
        return verify((), ChainHead(chain, 0, GENESIS), [*in_file, *_ends(cli, heads, chain, "")], lambda kid: None)
    ledger, renewed_to = cli.ledger(), log.renewed_to()
    verdict = log.verify(_ends(cli, heads, log.chain(), renewed_to))
    unknown = [
        ChainFinding("page_unknown", 0, f"{page.path} is of run {page.run_id}, which the database does not know.")
        for page in pages_in(cli.home())
        if page.run_id > renewed_to and not ledger.starting_with(page.run_id, 1)
    ]
    return replace(verdict, findings=(*verdict.findings, *unknown))


def _ends(cli: CliState, heads: list[str], chain: str, after: str) -> Iterator[tuple[str, ChainHead]]:
    """Ends of the chain that stand elsewhere: given by hand, in the receipts, in the pages. `after`: the runs up to this
    one may know another chain."""
    yield from _given(heads, chain)
    for receipt in cli.receipts().all():
        if receipt.run_id > after and receipt.audit_head:
            yield f"the receipt of run {receipt.run_id}", _head_of(receipt.audit_head, chain)
    for page in pages_in(cli.home()):
        if page.run_id > after and page.audit_head:
            yield page.path, _head_of(page.audit_head, chain)


def _given(heads: list[str], chain: str) -> Iterator[tuple[str, ChainHead]]:
    for text in heads:
        yield f"the head {text[:20]}…", _head_of(text, chain)


def _head_of(text: str, chain: str) -> ChainHead:
    from council.audit.chain import ChainHead

    seq, _, mac = text.partition(":")
    if not seq.isascii() or not seq.isdecimal() or len(seq) > 18 or len(mac) != 64:
        raise UsageError(f"{text[:80]!r} is no head.", fix="copy `audit_head` from an artifact: 12:9f86d08…")
    return ChainHead(chain, int(seq), mac)


def _verdict_of_file(cli: CliState, file: Path, heads: list[str]) -> ChainVerdict:
    from council.app.safekeeping import build_key_source
    from council.audit.chain import read_head_line, verify_lines
    from council.keys.key_sources import require_keys

    keys = require_keys(build_key_source(cli.home(), cli.settings().settings, cli.keys(), cli.environ))
    derived = {key.kid: key.derive("audit") for key in keys.keys}
    try:
        with file.open("rb") as stream:
            head = read_head_line(stream.readline())
            stream.seek(0)
            return verify_lines(stream, _given(heads, head.chain if head else ""), derived.get)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}.", fix="name an export") from None
