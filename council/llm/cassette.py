"""A cassette: the whole model traffic of ended runs as JSON lines, first a `Header`, then a `CassetteCall` for each
call.

`sha256` in the header is that of the whole file with these 64 characters left out. A file of a later format is refused,
not guessed at. `council.llm.replay` answers from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from council.errors import ConfigError, ModelErrorKind, StorageFailed
from council.ids import sha256_hex
from council.llm.base import AbsentModel, Finish, Usage
from council.storage.files import read_limited
from council.typed_json import decode_json, json_decoder

FORMAT = 4
SUFFIX = ".cassette.jsonl"  # files so named are never read by agents
MAX_CASSETTE_BYTES = 256 << 20
_NO_HASH = ""
_MAKE_ANEW = "make it again: `council cassette RUN -o FILE`"


class RecordedRun(msgspec.Struct, frozen=True):
    """One of several runs. `task_sha256`: by it a run of the same task finds it. `opinions` as in Header."""

    run_id: str
    run_secret: str
    task_sha256: str
    window_chars: int
    status: str
    opinions: str = ""
    day: str = ""


class Header(msgspec.Struct, frozen=True):
    """`run_secret` (hex, 32 bytes) is the run's: from it come the marks in its prompts and its lots. `window_chars`: how
    many characters the model's window was taken for, 0 without end. `status`: how the run ended. `redacted`: in how many
    calls a secret was left out. `runs`: all of them where there are several; the other fields are then those of the first.
    `meanings`: by which embedding model questions were answered, empty for by words alone, None in files that do not say.
    `opinions`: the model that gave second opinions, empty where none did. `day`: what the agents were told of the day."""

    cassette: int
    council: str
    epoch: int
    run_id: str
    run_secret: str
    model: str
    status: str
    window_chars: int
    calls: int
    redacted: int = 0
    sha256: str = _NO_HASH
    runs: tuple[RecordedRun, ...] = ()
    meanings: str | None = None
    opinions: str = ""
    day: str = ""


class CassetteMessage(msgspec.Struct, frozen=True):
    role: Literal["user", "model"]
    text: str


class CassetteFailure(msgspec.Struct, frozen=True, omit_defaults=True):
    kind: ModelErrorKind
    message: str
    fix: str = ""


class CassetteCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call and what it came to: a reply, or `failed`. `request` is the hash of what was asked, `request_hash` of
    the recorded model's name, `system` and `messages`. `messages` None: what was asked is no longer known but for its hash.
    `replaced`: the models in whose place `model` answered. `thoughts`: the reply began with some, which are not kept."""

    step: str
    request: str
    role: str = ""
    purpose: Literal["turn", "synthesis", "other"] = "other"
    round: int = 0
    system: str = ""
    messages: tuple[CassetteMessage, ...] | None = None
    text: str = ""
    finish: Finish = "stop"
    model: str = ""
    usage: Usage | None = None
    failed: CassetteFailure | None = None
    replaced: tuple[AbsentModel, ...] = ()
    thoughts: bool = False


class Cassette(msgspec.Struct, frozen=True):
    header: Header
    calls: tuple[CassetteCall, ...]


class _Any(msgspec.Struct):
    cassette: int


_header_decoder = json_decoder(Header)
_call_decoder = json_decoder(CassetteCall)


def joined(cassettes: Sequence[tuple[Cassette, str]], beside: Sequence[CassetteCall] = ()) -> bytes:
    """Cassettes of runs, each with its task, as one; with calls that belong to no run. Raises ValueError for none."""
    if not cassettes:
        raise ValueError("a cassette needs a run")
    heads = [cassette.header for cassette, _ in cassettes]
    runs = tuple(
        RecordedRun(
            head.run_id, head.run_secret, sha256_hex(task), head.window_chars, head.status, head.opinions, head.day
        )
        for head, (_, task) in zip(heads, cassettes, strict=True)
    )
    calls = [call for cassette, _ in cassettes for call in cassette.calls]
    header = msgspec.structs.replace(heads[0], runs=runs, redacted=sum(head.redacted for head in heads))
    return encode(header, [*calls, *beside])


def encode(header: Header, calls: Sequence[CassetteCall]) -> bytes:
    """The whole file; `header.calls` and `header.sha256` are filled in."""
    header = msgspec.structs.replace(header, calls=len(calls), sha256=_NO_HASH)
    body = b"".join(msgspec.json.encode(call) + b"\n" for call in calls)
    digest = sha256_hex(msgspec.json.encode(header) + b"\n" + body)
    return msgspec.json.encode(msgspec.structs.replace(header, sha256=digest)) + b"\n" + body


def load(path: Path) -> Cassette:
    """Raises ConfigError naming the file and the line: not there, no cassette, of a later version, damaged, cut off."""
    try:
        data = read_limited(path, MAX_CASSETTE_BYTES)
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: there is no such cassette.", fix="check the path; it is relative to the home"
        ) from None
    except StorageFailed as error:
        raise ConfigError(f"{path}: {error.message}", fix=error.fix) from error
    return decode(data, str(path))


def decode(data: bytes, name: str) -> Cassette:
    first, _, rest = data.partition(b"\n")
    try:
        found = decode_json(first, _Any).cassette
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ConfigError(
            f"{name}: line 1: this is not a cassette.", fix="`council cassette RUN -o FILE` writes one"
        ) from None
    if found > FORMAT:
        raise ConfigError(
            f"{name}: line 1: it was written by a later version of Council (cassette format {found}; this one reads {FORMAT}).",
            fix=f"update Council, or {_MAKE_ANEW}",
        )
    try:
        header = _header_decoder.decode(first)
        for secret in (header.run_secret, *(run.run_secret for run in header.runs)):
            bytes.fromhex(secret)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        raise _damaged(name, 1, str(error)) from None
    if not header.sha256:
        raise _damaged(name, 1, "it has no sha256")
    lines = rest.split(b"\n")
    if lines.pop():
        raise _damaged(name, len(lines) + 2, "the line has no end: the file was cut off")
    calls = []
    for number, line in enumerate(lines, start=2):
        try:
            calls.append(_call_decoder.decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise _damaged(name, number, str(error)) from None
    if len(calls) != header.calls:
        raise _damaged(name, len(calls) + 1, f"the file ends here, after {len(calls)} of {header.calls} calls")
    if sha256_hex(data.replace(header.sha256.encode(), b"", 1)) != header.sha256:
        raise _damaged(name, 1, "its sha256 is not that of the file, which was changed after it was written")
    return Cassette(header, tuple(calls))


def _damaged(name: str, line: int, reason: str) -> ConfigError:
    return ConfigError(
        f"{name}: line {line}: the cassette is damaged: {reason.rstrip('.')}.", fix=_MAKE_ANEW, line=line
    )
