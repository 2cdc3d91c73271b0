"""A cassette: the whole model traffic of ended runs as JSON lines, first a `Header`, then a `CassetteCall` for each
call.

`sha256` in the header is that of the whole file with these 64 characters left out. A file of another format is refused,
not guessed at. `council.llm.replay` answers from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from council.errors import ConfigError, ModelErrorKind, StorageFailed
from council.ids import sha256_hex
from council.llm.base import AbsentModel, Finish, Message, TurnInfo, Usage
from council.storage.files import read_limited
from council.typed_json import json_decoder

FORMAT = 5
SUFFIX = ".cassette.jsonl"  # files so named are never read by agents
MAX_CASSETTE_BYTES = 256 << 20
_NO_HASH = ""
_MAKE_ANEW = "make it again: `council cassette RUN -o FILE`"


class RecordedRun(msgspec.Struct, frozen=True):
    """A run on the cassette. `run_secret` (hex, 32 bytes): from it come the marks in its prompts and its lots. By
    `task_sha256` a run of the same task finds it. `window_chars`: how many characters the model's window was taken for, 0
    without end. `opinions`: the model that gave second opinions, empty where none did. `day`: what its agents were told of
    the day."""

    run_id: str
    run_secret: str
    task_sha256: str
    window_chars: int
    status: str
    opinions: str = ""
    day: str = ""


class Header(msgspec.Struct, frozen=True):
    """`redacted`: in how many calls a secret was left out. `meanings`: by which embedding model questions were answered, empty
    for by words alone. `runs` are one or more."""

    cassette: int
    council: str
    epoch: int
    model: str
    runs: tuple[RecordedRun, ...]
    calls: int = 0
    redacted: int = 0
    meanings: str = ""
    sha256: str = _NO_HASH


class CassetteFailure(msgspec.Struct, frozen=True, omit_defaults=True):
    kind: ModelErrorKind
    message: str
    fix: str = ""


class CassetteCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call and what it came to: a reply, or `failed`. `request` is the hash of what was asked, `request_hash` of
    the recorded model's name, `system` and `messages`, which are kept as roles and texts. `messages` None: what was asked is no
    longer known but for its hash. `replaced`: the models in whose place `model` answered. `thoughts`: the reply began with some,
    which are not kept."""

    step: str
    request: str
    role: str = ""
    purpose: Literal["turn", "synthesis", "other"] = "other"
    round: int = 0
    system: str = ""
    messages: tuple[Message, ...] | None = None
    text: str = ""
    finish: Finish = "stop"
    model: str = ""
    usage: Usage | None = None
    failed: CassetteFailure | None = None
    replaced: tuple[AbsentModel, ...] = ()
    thoughts: bool = False


def asked_call(step: str, request: str, system: str, messages: Sequence[Message], info: TurnInfo) -> CassetteCall:
    """A call without what came of it."""
    plain = tuple(Message(message.role, message.text) for message in messages)
    return CassetteCall(step, request, info.role, info.purpose, info.round, system, plain)


class Cassette(msgspec.Struct, frozen=True):
    header: Header
    calls: tuple[CassetteCall, ...]


_header_decoder = json_decoder(Header)
_call_decoder = json_decoder(CassetteCall)


def joined(cassettes: Sequence[Cassette]) -> Cassette:
    """Cassettes of runs as one. Raises IndexError for none."""
    header = msgspec.structs.replace(
        cassettes[0].header,
        runs=tuple(run for each in cassettes for run in each.header.runs),
        redacted=sum(each.header.redacted for each in cassettes),
    )
    return Cassette(header, tuple(call for each in cassettes for call in each.calls))


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
        header = _header_decoder.decode(first)
        known = bool(header.runs) and header.cassette == FORMAT
        for run in header.runs:
            bytes.fromhex(run.run_secret)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, RecursionError):
        known = False
    if not known:
        raise ConfigError(f"{name}: line 1: this is not a cassette of this version of Council.", fix=_MAKE_ANEW)
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
