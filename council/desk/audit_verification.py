"""The audit against every end of its chain that is known elsewhere, and against the files that it names. Ends stand in the head
file, in receipts and pages, or are given by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec

from council.app.home_store import build_key_source, build_trail
from council.audit.chain import (
    GENESIS,
    RENEWED,
    RESTORED,
    ChainFinding,
    ChainHead,
    ChainVerdict,
    NamedFile,
    Record,
    read_line,
    verify,
    verify_lines,
)
from council.audit.head_file import HEAD_FILE, read_head
from council.audit.log import AuditLog
from council.desk.desk import Desk
from council.engine.outputs import written_at
from council.errors import UsageError
from council.keys.key_sources import require_keys
from council.settings import Home
from council.storage.paths import ConfinedRoot
from council.storage.versions import DATABASE_FILE

_MAX_PAGES = 100_000
_HEAD_BYTES = 8_192
_RUN = re.compile(r'^id: "([0-9]{8}-[0-9]{6}-[0-9a-z]{8})"$', re.MULTILINE)
_AUDIT_HEAD = re.compile(r'^audit_head: "([0-9]{1,18}:[0-9a-f]{64})"$', re.MULTILINE)


@contextmanager
def audit_of(desk: Desk, *, writes: bool = False) -> Iterator[AuditLog | None]:
    """The home's audit, read where nothing can be written; None without a record. Raises ConfigError, StorageFailed."""
    if desk.settings.database_url is None and not (desk.home.runtime / DATABASE_FILE).exists():
        yield None
    elif writes:
        with desk.safe() as safe:
            yield safe.trail.log()
    else:
        keys = desk.keys
        yield build_trail(desk.home, desk.store, desk.settings, keys, desk.environ, keys.redactor).log()


def verdict_of_home(desk: Desk, heads: Sequence[str], log: AuditLog | None) -> ChainVerdict:
    """The chain against all its known ends, and the pages against the runs.

    A database that was set back took the receipts of its last runs along: then the pages know more. Without a log the
    ends that stand elsewhere tell that it was taken away.
    """
    if log is None:
        head = read_head(desk.home.runtime / HEAD_FILE)
        chain = head.chain if head is not None else ""
        in_file = [(f"the file {HEAD_FILE}", head)] if head is not None else []
        return verify((), ChainHead(chain, 0, GENESIS), [*in_file, *_ends(desk, heads, chain, "")], lambda kid: None)
    ledger, renewed_to = desk.ledger, log.renewed_to()
    verdict = log.verify(_ends(desk, heads, log.head().chain, renewed_to))
    unknown = [
        ChainFinding("page_unknown", 0, f"{page.path} belongs to run {page.run_id}, which is not in the database.")
        for page in pages_in(desk.home)
        if page.run_id > renewed_to and not ledger.starting_with(page.run_id, 1)
    ]
    findings = [*verdict.findings, *unknown]
    last = log.latest((RESTORED, RENEWED)) if findings else None
    if last is not None and last.action == RESTORED:
        told = f"{findings[0].message} A copy of the database was taken back on {last.at} (record {last.seq})."
        findings[0] = replace(findings[0], message=told)
    return replace(verdict, findings=tuple(findings))


_MOVED = ".council/memory/"  # an older version had files there; they are rows now
FileState = Literal["as recorded", "accepted", "growing", "changed", "missing"]


@dataclass(frozen=True)
class AuditedFile:
    """A file that the chain names, and how it is now. `run_id`: of the run that wrote it, empty for none. `accepted`: the
    steward accepted it as it was at some time."""

    path: str
    run_id: str
    state: FileState
    accepted: bool = False

    @property
    def told(self) -> str:
        """The state in words."""
        return f"{self.state} since you accepted it" if self.accepted and not self.is_known else self.state

    @property
    def is_known(self) -> bool:
        """True when nobody but Council and, knowingly, the steward had a hand in it."""
        return self.state in ("as recorded", "accepted", "growing")


def audited_files(desk: Desk, files: Iterable[NamedFile]) -> list[AuditedFile]:
    """Each file that the chain names, compared with what is there. The page of a run under way grows. Raises StorageFailed."""
    unfinished = set(desk.ledger.unfinished())
    found = []
    with ConfinedRoot(desk.home.root) as root:
        for file in files:
            if file.path.startswith(_MOVED):
                continue
            now = root.fingerprint(file.path) or ""
            written = written_at(desk.store, file.path) if now != file.sha256 else None
            if now == file.sha256:
                state: FileState = "accepted" if file.accepted else "as recorded"
            elif written is not None and written.run_id in unfinished and now in written.sha256s:
                state = "growing"
            else:
                state = "changed" if (desk.home.root / file.path).exists() else "missing"
            found.append(AuditedFile(file.path, file.run_id, state, file.accepted))
    return found


@dataclass(frozen=True)
class ChainReport:
    """`ok`: nothing is wrong with the chain, and every file that it names is as recorded or accepted."""

    ok: bool
    records: int
    forgotten: int
    head: str
    findings: list[ChainFinding]
    files: list[AuditedFile]


def record_json(record: Record) -> dict[str, Any]:
    """A record as programs read it. `detail` is None where its words are forgotten."""
    told: dict[str, Any] = msgspec.to_builtins(record)
    return told | {"detail": None if record.detail is None else json.loads(record.detail)}


def chain_report(desk: Desk, log: AuditLog | None, heads: Sequence[str] = ()) -> ChainReport:
    """Every record, the end of the chain, each file. `heads` were given by hand. Raises as `audited_files`."""
    verdict = verdict_of_home(desk, heads, log)
    return _report(verdict, audited_files(desk, verdict.files))


def _report(verdict: ChainVerdict, files: list[AuditedFile]) -> ChainReport:
    is_good = not verdict.findings and all(each.is_known for each in files)
    return ChainReport(is_good, verdict.records, verdict.forgotten, str(verdict.head), [*verdict.findings], files)


def accept(desk: Desk, log: AuditLog | None, paths: Sequence[str]) -> list[AuditedFile]:
    """Records that the steward knows of these files as they are now; those that it was. Raises UsageError."""
    named = log.files() if log is not None else {}
    if unnamed := [path for path in paths if path not in named]:
        fix = "give a path as `council audit verify` prints it"
        raise UsageError(f"the audit names no file {unnamed[0]!r}.", fix=fix)
    other = [file for file in audited_files(desk, (named[path] for path in paths)) if not file.is_known]
    if log is not None and other:
        with ConfinedRoot(desk.home.root) as root:
            log.accept({file.path: root.fingerprint(file.path) or "" for file in other})
    return other


def report_of_export(desk: Desk, file: Path, heads: Sequence[str]) -> ChainReport:
    """An exported chain under this home's keys, without files. Raises UsageError where it cannot be read, KeysRefused."""
    keys = require_keys(build_key_source(desk.home, desk.settings, desk.keys, desk.environ))
    derived = {key.kid: key.derive("audit") for key in keys.keys}
    try:
        with file.open("rb") as stream:
            head = read_line(stream.readline(), ChainHead)
            stream.seek(0)
            verdict = verify_lines(stream, _given(heads, head.chain if head else ""), derived.get)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}.", fix="name an export") from None
    return _report(verdict, [])


def renewable(desk: Desk, log: AuditLog | None) -> tuple[AuditLog, tuple[ChainFinding, ...]]:
    """The chain that may take the place of an older one, and what is found against it now. Raises UsageError."""
    if log is None:
        raise UsageError("there is no audit yet.", fix="it begins with the next run")
    if (own := log.verify(disputed=False)).findings:
        fix = "restore database and head file from a backup; only an intact chain can be renewed"
        raise UsageError(f"the chain itself is damaged: {own.findings[0].message}", fix=fix)
    findings = verdict_of_home(desk, [], log).findings
    if not findings:
        raise UsageError("every known head matches: there is nothing to accept.", fix="`council audit verify`")
    return log, findings


def renew(desk: Desk, log: AuditLog) -> None:
    """Records that the runs known until now may know another chain."""
    known = [*(receipt.run_id for receipt in desk.receipts.all()), *(page.run_id for page in pages_in(desk.home))]
    log.renew(max(known, default=""))


def _ends(desk: Desk, heads: Sequence[str], chain: str, after: str) -> Iterator[tuple[str, ChainHead]]:
    """Ends of the chain that stand elsewhere. `after`: the runs up to this one may know another chain."""
    yield from _given(heads, chain)
    for receipt in desk.receipts.all():
        if receipt.run_id > after and receipt.audit_head:
            yield f"the receipt of run {receipt.run_id}", _head_of(receipt.audit_head, chain)
    for page in pages_in(desk.home):
        if page.run_id > after and page.audit_head:
            yield page.path, _head_of(page.audit_head, chain)


def _given(heads: Sequence[str], chain: str) -> Iterator[tuple[str, ChainHead]]:
    for text in heads:
        yield f"the head {text[:20]}…", _head_of(text, chain)


def _head_of(text: str, chain: str) -> ChainHead:
    seq, _, mac = text.partition(":")
    if not seq.isascii() or not seq.isdecimal() or len(seq) > 18 or len(mac) != 64:
        raise UsageError(f"{text[:80]!r} is not a head.", fix="copy `audit_head` from an artifact: 12:9f86d08…")
    return ChainHead(chain, int(seq), mac)


@dataclass(frozen=True)
class PageHead:
    """`audit_head`: the end of the audit's chain just before the run's commit; empty where the page has none."""

    path: str
    run_id: str
    audit_head: str


def pages_in(home: Home) -> Iterator[PageHead]:
    """Every page below `artifacts/` that says whose it is; a file that cannot be read says nothing."""
    for path in islice(sorted(home.artifacts.rglob("*.md")), _MAX_PAGES):
        try:
            with path.open("rb") as stream:
                text = stream.read(_HEAD_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        head = text.partition("\n---\n")[0] if text.startswith("---\n") else ""
        run, noted = _RUN.search(head), _AUDIT_HEAD.search(head)
        if run is not None:
            yield PageHead(path.relative_to(home.root).as_posix(), run[1], noted[1] if noted is not None else "")
