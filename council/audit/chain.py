"""A record, its link to the one before, and the check of a chain. Pure: no database, no files.

Each record carries the HMAC-SHA-256 of its fields and of the HMAC before it. Its detail is signed through a salted hash, so
that `council forget` can take the words out and leave the chain whole. A detail that is gone without a record of a forgetting
that names it is a finding.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import msgspec

from council.ids import canonical_json, sha256_hex
from council.typed_json import decode_json

SCHEMA = "council.audit.v1"
GENESIS = "0" * 64
FORGOT = "details_forgotten"  # the action whose detail `records` names records without a detail
ACCEPTED = "change_accepted"  # the action whose `files` a person changed or took away, and the steward knows it
RESTORED = "database_restored"  # the action that says that a copy of the database, and of the chain, was taken back
RENEWED = "chain_renewed"  # the action that says up to which run receipts may know another chain
MAX_DETAIL_BYTES = 1 << 20  # of one commit: 64 files whose paths are as long as a path may be
_HEX = re.compile(r"(?:[0-9a-f]{2})+")  # one spelling: a changed letter is a change
_Line = TypeVar("_Line", "ChainHead", "Record")
Kind = Literal["effect", "approval", "secret_read", "refusal"]


class Record(msgspec.Struct, frozen=True):
    """`at`: RFC 3339 in UTC. `run_id` and `step` are empty for what no run did. `detail` is canonical JSON and `salt` hex;
    both are None when they were forgotten. `kid` names the key, `mac` is hex."""

    seq: int
    at: str
    kind: str
    action: str
    actor: str
    run_id: str
    step: str
    detail: str | None
    salt: str | None
    detail_sha256: str
    kid: str
    mac: str


class ChainHead(msgspec.Struct, frozen=True):
    """The end of a chain: as it stands in the database, in the file beside it, and in each artifact."""

    chain: str
    seq: int
    mac: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.mac}"


@dataclass(frozen=True)
class ChainFinding:
    """Something that does not hold. `seq`: of the first record concerned, 0 when it is the chain as a whole."""

    code: Literal[
        "bad_record", "torn_tail", "truncated", "head_mismatch", "head_missing", "forgotten_unrecorded", "page_unknown"
    ]
    seq: int
    message: str


@dataclass(frozen=True)
class NamedFile:
    """A file as the last record that names it tells. `sha256` is empty for one that is not to be there, `run_id` for one that
    no run wrote. `accepted`: the record is the steward's, about a change by somebody else."""

    path: str
    sha256: str
    run_id: str
    accepted: bool = False


@dataclass(frozen=True)
class ChainVerdict:
    """`records` that verify, `forgotten` of them without their words. `files`: those that they name."""

    records: int
    forgotten: int
    head: ChainHead
    findings: tuple[ChainFinding, ...]
    files: tuple[NamedFile, ...] = ()


MacKey = Callable[[str], bytes | None]  # the key for the audit by its id, None when it is not known


def detail_hash(detail: str, salt: str) -> str:
    return sha256_hex(bytes.fromhex(salt) + detail.encode())


def mac_of(record: Record, chain: str, previous: str, key: bytes) -> str:
    """Signs everything but the words of the detail, which are signed through their hash."""
    signed = [SCHEMA, chain, previous, record.seq, record.at, record.kind, record.action, record.actor]
    signed += [record.run_id, record.step, record.detail_sha256, record.kid]
    return hmac.digest(key, canonical_json(signed), "sha256").hex()


@dataclass
class Checker:
    """Goes along a chain, record by record. After a record that does not hold nothing behind it can be trusted."""

    chain: str
    key: MacKey
    seq: int = 0
    mac: str = GENESIS
    bad: ChainFinding | None = None
    blank: set[int] = field(default_factory=set)
    excused: set[int] = field(default_factory=set)
    files: dict[str, NamedFile] = field(default_factory=dict)

    def take(self, record: Record) -> bool:
        """False at the first record that does not hold, and ever after."""
        if self.bad is not None:
            return False
        problem = self._problem(record)
        if problem:
            self.bad = ChainFinding("bad_record", self.seq + 1, f"record {self.seq + 1} {problem}.")
            return False
        self.seq, self.mac = record.seq, record.mac
        if record.detail is None:
            self.blank.add(record.seq)
            return True
        if record.action == FORGOT:
            self.excused |= set(json.loads(record.detail).get("records", ()))
        note_files(self.files, record)
        return True

    def _problem(self, record: Record) -> str:
        if record.seq != self.seq + 1:
            return f"is missing: record {record.seq} is in its place"
        key = self.key(record.kid)
        if key is None:
            return f"is signed with the key {record.kid[:16]}, which this home does not have"
        if not hmac.compare_digest(record.mac.encode(), mac_of(record, self.chain, self.mac, key).encode()):
            return "was changed or moved"
        if (record.detail is None) != (record.salt is None):
            return "has lost part of its detail"
        if record.detail is None or record.salt is None:  # forgotten
            return ""
        is_signed = _HEX.fullmatch(record.salt) and detail_hash(record.detail, record.salt) == record.detail_sha256
        return "" if is_signed else "has a changed detail"

    @property
    def head(self) -> ChainHead:
        return ChainHead(self.chain, self.seq, self.mac)


def note_files(files: dict[str, NamedFile], record: Record) -> None:
    """Adds the files that a record names, and takes out the one that a person's edit kept a run from writing."""
    if record.detail is None or '"files":' not in record.detail:
        return
    try:
        detail = decode_json(record.detail, _FilesDetail)
    except msgspec.ValidationError:  # these `files` are something else, as in a refused specification
        return
    files.pop(detail.wanted, None)
    for file in detail.files:
        files[file.path] = NamedFile(file.path, file.sha256, record.run_id, record.action == ACCEPTED)


class _NamedBytes(msgspec.Struct):
    path: str
    sha256: str


class _FilesDetail(msgspec.Struct):
    files: list[_NamedBytes] = []
    wanted: str = ""


def verify(
    records: Iterable[Record], head: ChainHead, anchors: Iterable[tuple[str, ChainHead]], key: MacKey
) -> ChainVerdict:
    """Checks a whole chain and its end as the database says it. `anchors`: ends noted elsewhere, each with its place."""
    checker = Checker(head.chain, key)
    wanted = sorted(anchors, key=lambda anchor: anchor[1].seq)
    findings: list[ChainFinding] = []
    beyond = 0
    waiting = iter(wanted)
    anchor = next(waiting, None)
    for record in records:
        if checker.seq >= head.seq:
            beyond = beyond or record.seq
        if not checker.take(record):
            break
        while anchor is not None and anchor[1].seq <= checker.seq:
            findings += _anchored(anchor, checker)
            anchor = next(waiting, None)
    findings += [checker.bad] if checker.bad is not None else []
    if checker.bad is None:
        if checker.seq < head.seq:
            message = f"the chain ends with record {checker.seq}, but its head says {head.seq}: the end was cut off."
            findings.append(ChainFinding("truncated", checker.seq + 1, message))
        elif beyond:
            message = f"records from {beyond} on come after the head ({head.seq}): the last write was incomplete."
            findings.append(ChainFinding("torn_tail", beyond, message))
        elif checker.mac != head.mac:
            findings.append(
                ChainFinding("head_mismatch", head.seq, "the head in the database does not match the records.")
            )
        while anchor is not None:
            findings += _anchored(anchor, checker)
            anchor = next(waiting, None)
    for seq in sorted(checker.blank - checker.excused)[:1]:
        message = f"record {seq} has lost its detail, and no record says that it was forgotten."
        findings.append(ChainFinding("forgotten_unrecorded", seq, message))
    forgotten = len(checker.blank & checker.excused)
    return ChainVerdict(checker.seq, forgotten, checker.head, tuple(findings), tuple(checker.files.values()))


def _anchored(anchor: tuple[str, ChainHead], checker: Checker) -> Iterator[ChainFinding]:
    where, head = anchor
    if head.chain != checker.chain:
        yield ChainFinding("head_mismatch", 0, f"{where} belongs to another chain of records.")
    elif head.seq > checker.seq:
        message = f"{where} names record {head.seq}, but the chain ends with {checker.seq}: the end was cut off."
        yield ChainFinding("truncated", checker.seq + 1, message)
    elif head.seq == checker.seq and head.mac != checker.mac:
        yield ChainFinding(
            "head_mismatch", head.seq, f"{where} names a different record {head.seq}: the chain was replaced."
        )


def export_line(value: ChainHead | Record) -> bytes:
    """One line of JSONL in its only spelling, so that a changed byte is a changed line."""
    return canonical_json(msgspec.to_builtins(value)) + b"\n"


def read_line(line: bytes, type: type[_Line]) -> _Line | None:
    """None when it is not exactly a line that `export_line` writes."""
    try:
        value = decode_json(line, type)
        return value if export_line(value) == line else None
    except (msgspec.MsgspecError, ValueError, UnicodeError):
        return None


def verify_lines(lines: Iterable[bytes], anchors: Iterable[tuple[str, ChainHead]], key: MacKey) -> ChainVerdict:
    """An exported chain: its head on the first line, then one record on each."""
    given = iter(lines)
    head = read_line(next(given, b""), ChainHead)
    if head is None:
        message = (
            "the first line is not the head of a chain: FILE must be an export, made by `council audit export`. "
            "Without FILE, the chain of this home is checked, and each page that it names."
        )
        finding = ChainFinding("head_missing", 0, message)
        return ChainVerdict(0, 0, ChainHead("", 0, GENESIS), (finding,))
    torn: list[ChainFinding] = []

    def records() -> Iterator[Record]:
        for number, line in enumerate(given, start=1):
            record = read_line(line, Record)
            if record is not None:
                yield record
            elif not line.endswith(b"\n"):
                torn.append(ChainFinding("torn_tail", number, f"record {number} is incomplete: its line has no end."))
                return
            else:
                torn.append(
                    ChainFinding(
                        "bad_record", number, f"record {number} was changed: Council does not write records like this."
                    )
                )
                return

    verdict = verify(records(), head, anchors, key)
    return replace(verdict, findings=(*torn, *verdict.findings))


def detail_text(detail: dict[str, Any]) -> str:
    """One spelling of it; what is no text of UTF-8 stands escaped. Raises ValueError when it is larger than a record takes."""
    try:
        encoded = canonical_json(detail)
    except UnicodeEncodeError:  # half of a pair, as JSON from anywhere may hold one
        encoded = json.dumps(detail, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    if len(encoded) > MAX_DETAIL_BYTES:
        raise ValueError(f"the detail of a record is larger than {MAX_DETAIL_BYTES} bytes")
    return encoded.decode()
