"""Conversations with the conductor, as a window shows them: whose they are, what was asked and answered, a document brought
along."""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from council.conductor.conversation import LANE
from council.desk.ask_and_wait import Asking, agents_of
from council.desk.desk import Desk
from council.desk.drop_and_wait import until
from council.desk.run_lookup import raw_page, warnings_in
from council.desk.window import ordered, require_success
from council.engine import statements as sql
from council.engine.ledger import RunEntry, naming
from council.engine.receipts import Receipt
from council.engine.run_records import header_of
from council.errors import CouncilError, RunNotFound, UsageError, WaitTimeout
from council.ids import STEWARD, SystemClock
from council.markup import without_front_matter
from council.storage.files import write_atomic
from council.storage.paths import UPLOADS_FOLDER

_MOST_OF_PERSON = 20  # uploads, in all conversations that go on
_MOST_IN_ALL = 400
_TAKEN_S = 30.0
_PDF = b"%PDF-"
_RANDOM_BYTES = 16  # of an upload's name: only who was told it can name it
_BEFORE_ITS_OWN = re.compile(r"[0-9a-f]{16}-[0-9a-f]{32}-")  # of its person, and at random
_MOST_NAME_CHARS = 40


@dataclass(frozen=True)
class ConversationEntry:
    """A conversation in a list, by its first request and the time of its last. `is_over`: ended, or older than its time."""

    conversation: str
    title: str
    at: str
    requests: int
    is_over: bool


@dataclass(frozen=True)
class Exchange:
    """A request and what came of it. `answer` is Markdown, under its `heading`. It is empty until there is one.

    `agents` spoke; `warnings` stand above the answer, `notes` tell also how the request was routed. `documents` came with it.
    `project`: the one that it is about, empty for none.
    """

    run_id: str
    title: str
    request: str
    status: str
    heading: str
    answer: str
    agents: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    documents: tuple[str, ...]
    project: str
    at: str


def conversations(desk: Desk, user_id: str) -> list[ConversationEntry]:
    """The conversations of a person, the last one first. Raises ConfigError, StorageFailed."""
    rows = desk.store.read(lambda tx: tx.execute(sql.CONVERSATIONS, (naming(user_id),)).fetchall())
    over_before = SystemClock().now() - timedelta(seconds=desk.settings.conversation_ttl_s)
    found = []
    for lane, title, requests, encoded, ended_ns in rows:
        newest = header_of(encoded, lane)
        if (newest.command.get("user") or STEWARD.id) == user_id:
            name, is_ended = lane.removeprefix(LANE), bool(newest.command.get("end"))
            is_over = is_ended or (bool(ended_ns) and datetime.fromisoformat(newest.created) < over_before)
            found.append(ConversationEntry(name, title, newest.created, requests - is_ended, is_over))
    return found


def requests_of(desk: Desk, conversation: str, user_id: str) -> list[RunEntry]:
    """The runs of a conversation, the newest first. Raises RunNotFound for somebody else's, as for none."""
    entries = [entry for entry in desk.ledger.in_lane(f"{LANE}{conversation}") if not entry.pruned]
    if not entries or desk.ledger.user_of(entries[0].run_id) != user_id:  # a conversation is one person's
        raise RunNotFound("there is no such conversation.", fix="`/chat` begins one")
    return entries


def exchange_of(desk: Desk, entry: RunEntry) -> Exchange:
    """A request and what came of it, as its run tells. Raises RunNotFound."""
    header, receipt, body = desk.ledger.header(entry.run_id), desk.receipts.read(entry.run_id), ""
    with contextlib.suppress(RunNotFound):  # the end of a conversation, or a run that begins: neither has a page
        body = without_front_matter(raw_page(desk, entry.run_id))
    given: list[str] = header.command.get("input_artifacts") or []
    heading, _, answer = f"\n{body}".partition("\n## ")[2].partition("\n\n## ")[0].partition("\n")
    return Exchange(
        run_id=entry.run_id,
        title=entry.title,
        request="" if header.command.get("end") else str(header.command.get("request", "")),
        status=receipt.status if receipt else entry.status,
        heading=heading.strip(),
        answer=answer.strip() if receipt else "",
        agents=agents_of(receipt) if receipt else (),
        warnings=warnings_in(body),
        notes=receipt.notes if receipt else (),
        documents=tuple(_BEFORE_ITS_OWN.sub("", path.rpartition("/")[2]) for path in given),
        project=header.command.get("project") or "",
        at=header.created,
    )


def ask_in(
    desk: Desk, user: str | None, command: Mapping[str, Any], document: bytes | None = None, name: str = ""
) -> None:
    """A request or the end of a conversation, dropped and taken up: its run is there, or it has answered a question. A `document`
    of a request that is refused is not kept; `name` is its own. Raises CommandInvalid where it is refused, WaitTimeout, and as
    `keep_upload`."""
    body: dict[str, Any] = {"type": "ask", **command}
    kept = None if document is None else keep_upload(desk, user or STEWARD.id, body["conversation"], document, name)
    if kept is not None:
        body["input_artifacts"] = [str(kept.relative_to(desk.home.root))]
    try:
        dropped = ordered(desk, user, body)
        if isinstance(dropped, Receipt):
            require_success(dropped)
            return
        asking = Asking(desk, dropped, body)
        taken = until(lambda: asking.reply() or asking.run_id or None, _TAKEN_S)
    except CouncilError:
        if kept is not None:
            kept.unlink(missing_ok=True)
        raise
    if taken is None:
        raise WaitTimeout("the request was not taken up yet.", fix="it is in the inbox; the page Now shows it")


def keep_upload(desk: Desk, user_id: str, conversation: str, data: bytes, name: str = "") -> Path:
    """The place of a document that came with a request, under a random name that ends with its own. Only who knows it reads it.
    Raises UsageError for what is no PDF or too large, and where its person or all people together have uploaded too many;
    StorageFailed."""
    most = desk.settings.max_document_bytes
    if not data.startswith(_PDF):
        raise UsageError("this file is no PDF.", fix="upload a PDF; other documents lie in the home")
    if len(data) > most:
        fix = "upload a part of it, or raise `max_document_bytes`"
        raise UsageError(f"the PDF has more than {most:,} bytes.", fix=fix)
    uploads, owner = desk.home.root / UPLOADS_FOLDER, hashlib.sha256(user_id.encode()).hexdigest()[:16]
    plain = re.sub(r"[^\w-]+", "-", unicodedata.normalize("NFKC", Path(name).stem))[:_MOST_NAME_CHARS].strip("-")
    place = uploads / conversation / f"{owner}-{secrets.token_hex(_RANDOM_BYTES)}-{plain or 'document'}.pdf"
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(place, data, sync=True, mode=0o600)
    # NOTE: counted once it is there, so that many at once do not pass together.
    for whose, pattern, count, fix in (
        ("you", f"*/{owner}-*.pdf", _MOST_OF_PERSON, "end a conversation: its documents go with it"),
        ("people here", "*/*.pdf", _MOST_IN_ALL, "end conversations, or ask again later"),
    ):
        if sum(1 for _ in uploads.glob(pattern)) > count:
            place.unlink()
            raise UsageError(f"{whose} have uploaded {count} PDFs, and no more are kept.", fix=fix)
    return place
