"""The session file of an agent: its tasks and summary as JSON with a checksum, encoded, decoded and made harmless."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from council.ids import sha256_hex
from council.safety.untrusted import clean, inert
from council.storage.files import descriptor, read_fd
from council.typed_json import decode_json

SCHEMA = "council.session/1"
SESSION_ENDING = "_session.json"
MAX_SESSION_BYTES = 64 << 20


class MemoryMessage(msgspec.Struct, frozen=True):
    role: Literal["user", "model"]
    text: str


class RememberedTask(msgspec.Struct, frozen=True):
    """`answer` is the beginning of the council's. `rehearsed`: no language model stood behind some of its words; unset
    in files of older versions."""

    run_id: str
    title: str
    status: str
    finished: str
    answer: str
    messages: tuple[MemoryMessage, ...] = ()
    rehearsed: bool | msgspec.UnsetType = msgspec.UNSET


class Summary(msgspec.Struct, frozen=True):
    """`through` is the newest of the tasks in it, `tried` the newest when the last was tried; run ids."""

    text: str = ""
    through: str = ""
    tried: str = ""


class Session(msgspec.Struct, frozen=True):
    role: str
    lane: str = "main"
    tasks: tuple[RememberedTask, ...] = ()
    summary: Summary = Summary()


def session_name(role: str, lane: str) -> str:
    """Relative to `session_states/`: Protocol 94's explicit name for lane `main`."""
    name = f"{role.lower()}{SESSION_ENDING}"
    return name if lane == "main" else f"{lane}/{name}"


class _SessionFile(Session, frozen=True, forbid_unknown_fields=True, kw_only=True):
    schema: str
    sha256: str


class _Schema(msgspec.Struct):
    schema: str = ""


def encode_session(session: Session) -> bytes:
    file = _SessionFile(**msgspec.structs.asdict(session), schema=SCHEMA, sha256=_checksum(session))
    return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"


def _checksum(session: Session) -> str:
    """SHA-256 of the schema and the session in canonical JSON (sorted keys, no white space, UTF-8)."""
    body: dict[str, object] = {"schema": SCHEMA, "role": session.role, "lane": session.lane, "tasks": session.tasks}
    if session.summary != Summary():  # files from before there were summaries have none to check
        body["summary"] = session.summary
    return sha256_hex(msgspec.json.encode(body, order="sorted"))


def session_bytes(path: Path) -> bytes:
    """The bytes of a session file, cut off where `decode_session` refuses it as too large. Raises OSError."""
    with descriptor(path, os.O_RDONLY) as fd:
        return read_fd(fd, MAX_SESSION_BYTES + 1)


def decode_session(data: bytes, role: str, lane: str) -> tuple[Session | None, str]:
    if len(data) > MAX_SESSION_BYTES:
        return None, f"larger than {MAX_SESSION_BYTES} bytes"
    try:
        file = decode_json(data, _SessionFile)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        try:
            schema = decode_json(data, _Schema).schema
        except msgspec.ValidationError:
            schema = ""
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None, "not JSON"
        return None, str(error) if schema == SCHEMA else f"not in the format {SCHEMA}"
    if file.schema != SCHEMA:
        return None, f"not in the format {SCHEMA}"
    session = Session(file.role, file.lane, file.tasks, file.summary)
    if file.sha256 != _checksum(session):
        return None, "its checksum does not match"
    if (session.role, session.lane) != (role, lane):
        return None, f"it belongs to {session.role} in lane {session.lane}"
    return session, ""


def sanitised(session: Session) -> Session:
    """Returns the session without invisible text and live requests: today's memory is tomorrow's prompt."""

    def plain(text: str) -> str:
        return inert(clean(text))

    texts = [session.summary.text]
    for task in session.tasks:
        texts += [task.title, task.answer, *[message.text for message in task.messages]]
    whole = "\n".join(texts)
    if plain(whole) == whole:  # what was remembered before is: all is looked at in one go
        return session
    tasks = tuple(
        msgspec.structs.replace(
            task,
            title=plain(task.title),
            answer=plain(task.answer),
            messages=tuple(MemoryMessage(message.role, plain(message.text)) for message in task.messages),
        )
        for task in session.tasks
    )
    summary = msgspec.structs.replace(session.summary, text=plain(session.summary.text))
    return msgspec.structs.replace(session, tasks=tasks, summary=summary)
