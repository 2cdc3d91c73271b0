"""The files of a home as `forget` reads and changes them: JSON, lines of JSON, pages, plain text."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from council.engine.journal_rewriting import Change, changed
from council.engine.records import FORGOTTEN
from council.storage.files import rewrite
from council.storage.versions import DATABASE_FILE

_SQLITE = b"SQLite format 3\0"
_IN_USE = frozenset({DATABASE_FILE, f"{DATABASE_FILE}-wal", f"{DATABASE_FILE}-shm"})
_COMMAND_HASH = re.compile(rb"\A(---\n(?:(?!---\n).*\n)*?command_sha256: )[^\n]*")


def changed_file(name: str, data: bytes, change: Change) -> bytes:
    """Any file of ours: `change` applied to the texts in JSON, in lines of JSON, or to plain text."""
    if ".jsonl" in name:
        return b"\n".join(_changed_json(line, change) or changed_text(line, change) for line in data.split(b"\n"))
    after = _changed_json(data, change, indented=b"\n" in data.strip()) if name.endswith(".json") else None
    return changed_text(data, change) if after is None else after + (b"\n" if data.endswith(b"\n") else b"")


def _changed_json(data: bytes, change: Change, *, indented: bool = False) -> bytes | None:
    try:
        value = json.loads(data)
    except ValueError:
        return None
    if not isinstance(value, dict | list):
        return None
    return json.dumps(changed(value, change), indent=2 if indented else None, ensure_ascii=False).encode()


def changed_text(data: bytes, change: Change) -> bytes:
    """Bytes that are no UTF-8 stay as they are."""
    return change(text_of(data)).encode("utf-8", "surrogateescape")


def without_command_hash(page: bytes) -> bytes:
    """A page whose front matter no longer tells the hash of its command: from it a short missing text could be guessed."""
    return _COMMAND_HASH.sub(rb"\g<1>" + FORGOTTEN.encode(), page, count=1)


def owner_of(session_file: Path) -> tuple[str, str]:
    """Role and lane of a session file or, by its name, of its copy."""
    parent = session_file.parent.name
    lane = "main" if parent in ("session_states", "") else parent
    return session_file.name.removesuffix("_session.json").upper(), lane


def rewritten(path: Path, before: bytes, after: bytes) -> bool:
    """Writes what has changed, and keeps what was appended since `before` was read; False when nothing has. A file that
    became another one meanwhile is left: whoever looks again finds it."""
    if after == before:
        return False
    with suppress(FileNotFoundError):
        now = path.read_bytes()
        if now.startswith(before):
            rewrite(path, after + now[len(before) :])
    return True


def text_of(data: bytes) -> str:
    """Bytes that are no UTF-8 become lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def size_of(path: Path) -> int:
    """The size in bytes; zero when the file is gone."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def is_database(path: Path) -> bool:
    """True for an SQLite file that is not in use here: rewritten as text it would be destroyed.

    NOTE: the home's own database is never opened beside SQLite. With the descriptor the process's locks on it would go. Another
    process would begin its `-shm` anew, and the next access to that is a SIGBUS.
    """
    if path.name in _IN_USE:
        return False
    try:
        with path.open("rb") as stream:
            return stream.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def entries_of(folder: Path) -> list[Path]:
    """Sorted; nothing where there is no folder."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def files_below(folder: Path) -> Iterator[Path]:
    """All regular files below; nothing where there is no folder, and none through a link."""
    for parent, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(parent, name)
            if path.is_file() and not path.is_symlink():
                yield path
