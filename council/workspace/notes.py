"""Notes and their locks. The content of a locked note leaves this room only for a principal who has unlocked it.

A lock is a secret whose scrypt is kept; unlocking it counts for one principal, and ends by itself. The content is not
enciphered: who reads the database's file reads it (docs/security.md). A person sets and opens locks, on the command line or
in the window, and no tool does, so that no agent handles a secret. A try is counted before the secret is looked at, and each
wrong one after the fifth costs twice the wait of the one before.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from council.ids import timestamp_of
from council.redaction import Secret
from council.storage.tables import marks
from council.tools.preview import Difference, Inverse
from council.workspace.arguments import NewNote, NotePatch, OfNote
from council.workspace.organizations import project_row
from council.workspace.rights import Spot, absent, require
from council.workspace.tables import note_locks, note_unlocks, notes, projects
from council.workspace.transaction import Change, Visit, WorkspaceRefused, deleted, differences, edited

HIDDEN = "(locked)"
NOTES = (  # `locked`: it has a lock
    select(
        notes, projects.c.org_id, projects.c.name.label("project"), note_locks.c.note_id.is_not(None).label("locked")
    )
    .outerjoin_from(notes, projects)
    .outerjoin(note_locks, note_locks.c.note_id == notes.c.note_id)
)
_SCRYPT = {"n": 1 << 15, "r": 8, "p": 1, "dklen": 32, "maxmem": 1 << 26}
_MIN_SECRET_CHARS = 4
_FREE_TRIES = 5
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 60_000, 86_400_000
_TRIES = "unlock/"  # the beginning of a mark: the tries of one principal at one note, and when the last one was


@dataclass(frozen=True)
class NoteLock:
    """A secret as its scrypt, which takes a tenth of a second: it is never computed in a transaction, where others wait."""

    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, secret: Secret) -> NoteLock:
        """Raises WorkspaceRefused for a secret that is too short."""
        if len(secret.reveal()) < _MIN_SECRET_CHARS:
            fix = f"{_MIN_SECRET_CHARS} characters or more"
            raise WorkspaceRefused("short_secret", "The secret is too short.", fix=fix)
        salt = secrets.token_bytes(16)
        return cls(salt, _digest(secret, salt))

    def require(self, secret: Secret) -> None:
        """Raises WorkspaceRefused for another secret."""
        if not hmac.compare_digest(self.digest, _digest(secret, self.salt)):
            fix = f"try again; after {_FREE_TRIES} wrong secrets you have to wait"
            raise WorkspaceRefused("wrong_secret", "The note has another secret.", fix=fix)


def create_note(visit: Visit, arguments: NewNote) -> Change:
    """A note of the project, or of the principal alone."""
    who, spot, where = visit.principal.id, Spot(owner=visit.principal.id), "your notes"
    if arguments.projectId is not None:
        project = project_row(visit, arguments.projectId)
        spot, where = Spot(project.org_id, project.project_id), project.name
    require(visit, "createNote", spot, "project")
    note_id, shown = visit.new_id(), {"title": arguments.title, "content": arguments.content}
    values = {"note_id": note_id, "project_id": arguments.projectId, "author": who, "created_ms": visit.now_ms}
    told = f"A note is added to {where}{f': “{arguments.title}”' if arguments.title else ''}."
    made, inverse = insert(notes).values(**values, **shown), Inverse("deleteNote", {"noteId": note_id})
    return Change(told, (made,), note_id, differences({}, shown), inverse=inverse)


def update_note(visit: Visit, arguments: NotePatch) -> Change:
    """Changes what is given. A locked note shows nothing of what it said, so that change cannot be undone."""
    note = readable_note(visit, "updateNote", arguments)
    values = arguments.model_dump(exclude_unset=True, include={"title", "content"})
    back = {name: getattr(note, name) for name in values}
    change = edited(notes, note, _called(note), values, Inverse("updateNote", {"noteId": note.note_id, **back}))
    if not note.locked:
        return change
    hidden = Difference("content", f"{HIDDEN} as it was", f"{HIDDEN} as this operation says")
    shown = tuple(hidden if one.field == "content" else one for one in change.differences)
    return replace(change, differences=shown, inverse=None, is_guarded=True)


def delete_note(visit: Visit, arguments: OfNote) -> Change:
    """The note goes for good; a locked one only when the principal has unlocked it."""
    note = readable_note(visit, "deleteNote", arguments)
    where = f" in {note.project}" if note.project else ""
    return deleted(notes, note, f"{_called(note)}{where}", str(note.version))


def lock_note(visit: Visit, arguments: OfNote, lock: NoteLock) -> Change:
    """The secret that opens the note from now on, for its owner too. Another secret needs the note unlocked."""
    note = readable_note(visit, "lockNote", arguments)
    values = {"note_id": note.note_id, "salt": lock.salt, "digest": lock.digest}
    old, new = delete(note_locks).where(note_locks.c.note_id == note.note_id), insert(note_locks).values(values)
    return Change(f"{_called(note)} is locked.", (old, new, _grown(note)), note.note_id)


def count_try(visit: Visit, arguments: OfNote) -> NoteLock:
    """The lock of the note, for one secret. The try is written down as a wrong one, until `unlock_note` takes it back. Raises
    WorkspaceRefused, also for the time that earlier wrong ones cost."""
    note, lock = _locked(visit, arguments)
    name = f"{_TRIES}{note.note_id}/{visit.principal.id}"
    tries = visit.connection.execute(select(marks).where(marks.c.name.startswith(_TRIES)))
    found = {row.name: row.value for row in tries}
    count, last_ms = map(int, found.get(name, "0 0").split())
    wait_ms = _FIRST_WAIT_MS << min(count - _FREE_TRIES, 20) if count >= _FREE_TRIES else 0
    until_ms = last_ms + min(wait_ms, _LONGEST_WAIT_MS)
    if until_ms > visit.now_ms:
        message = f"{_called(note)} is closed to you for now: {count} secrets were wrong."
        raise WorkspaceRefused("too_many_tries", message, fix=f"try again after {timestamp_of(until_ms)}")
    over_ms = visit.now_ms - 2 * _LONGEST_WAIT_MS
    gone = [name, *(other for other, value in found.items() if int(value.split()[1]) < over_ms)]
    visit.connection.execute(delete(marks).where(marks.c.name.in_(gone)))
    visit.connection.execute(insert(marks).values(name=name, value=f"{count + 1} {visit.now_ms}"))
    return lock


def unlock_note(visit: Visit, arguments: OfNote, lock: NoteLock, ttl_ms: int) -> Change:
    """The content is open to this principal for that long: they had the secret of `lock`. Raises WorkspaceRefused where the
    note has another lock by now."""
    note, there = _locked(visit, arguments)
    if there != lock:
        raise WorkspaceRefused("wrong_secret", f"{_called(note)} has another secret by now.", fix="try again")
    key = {"note_id": note.note_id, "principal": visit.principal.id}
    mine = [note_unlocks.c[column] == value for column, value in key.items()]
    opened = insert(note_unlocks).values(**key, until_ms=visit.now_ms + ttl_ms)
    tries = delete(marks).where(marks.c.name == f"{_TRIES}{note.note_id}/{visit.principal.id}")
    return Change(f"{_called(note)} is unlocked.", (delete(note_unlocks).where(*mine), opened, tries), note.note_id)


def remove_lock(visit: Visit, arguments: OfNote) -> Change:
    """The note, unlocked by its owner, is no longer locked. Where the owner has left, an administrator who has unlocked it may
    do this."""
    note = readable_note(visit, "removeLock", arguments)
    if not note.locked:
        raise WorkspaceRefused("not_locked", f"{_called(note)} has no lock.", fix="nothing to do")
    dropped = delete(note_locks).where(note_locks.c.note_id == note.note_id)
    return Change(f"{_called(note)} is no longer locked.", (dropped, _grown(note)), note.note_id)


def note_row(visit: Visit, arguments: OfNote) -> tuple[Row[Any], Spot]:
    """The note, and where it stands. Raises WorkspaceRefused for one outside the scope."""
    note = visit.connection.execute(NOTES.where(notes.c.note_id == arguments.noteId)).one_or_none()
    if note is None or arguments.projectId not in (None, note.project_id):
        raise absent("note")
    return note, Spot(note.org_id or "", note.project_id or "", note.author)


def _locked(visit: Visit, arguments: OfNote) -> tuple[Row[Any], NoteLock]:
    """The note that this principal may unlock, and its lock. Raises WorkspaceRefused."""
    note, spot = note_row(visit, arguments)
    require(visit, "unlockNote", spot, "note")
    lock = visit.connection.execute(select(note_locks).where(note_locks.c.note_id == note.note_id)).one_or_none()
    if lock is None:
        raise WorkspaceRefused("not_locked", f"{_called(note)} has no lock.", fix="read it without a secret")
    return note, NoteLock(lock.salt, lock.digest)


def readable_note(visit: Visit, action: str, arguments: OfNote) -> Row[Any]:
    """The note, where this principal may do `action` to it and read it. Raises WorkspaceRefused."""
    note, spot = note_row(visit, arguments)
    require(visit, action, spot, "note")
    mine = (note_unlocks.c.note_id == note.note_id, note_unlocks.c.principal == visit.principal.id)
    unlocked_ms = select(note_unlocks.c.until_ms).where(*mine)
    if note.locked and (visit.connection.scalar(unlocked_ms) or 0) <= visit.now_ms:
        fix = f"`council workspace notes unlock {note.note_id} --user {visit.principal.id}` asks for its secret"
        raise WorkspaceRefused("locked", f"{_called(note)} is locked.", fix=fix)
    return note


def _called(note: Row[Any]) -> str:
    return f"The note “{note.title}”" if note.title else "The note without a title"


def _grown(note: Row[Any]) -> Any:
    """A lock is a change of the note: what was drafted before does not know of it."""
    return update(notes).where(notes.c.note_id == note.note_id).values(version=notes.c.version + 1)


def _digest(secret: Secret, salt: bytes) -> bytes:
    return hashlib.scrypt(secret.reveal().encode("utf-8", "surrogatepass"), salt=salt, **_SCRYPT)
