"""The text of a file, whatever it is kept in: plain text, another encoding, PDF, DOCX, HTML, mail.

What is not plain UTF-8 is read by a child process with limits (`document_process`). Nothing of its answer is trusted, neither
size nor form. Decides nothing about who may read a file. Blocks its thread: call it outside the event loop.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from council.errors import PathRefused, StorageFailed
from council.ids import sha256_hex
from council.knowledge.document_process import EXITS
from council.lines_and_pages import document_kind, marked_page, page_mark
from council.safety.untrusted import clean
from council.storage.files import as_storage_failed
from council.storage.paths import ConfinedRoot
from council.typed_json import decode_json

_MIB = 1 << 20
_BINARY_PROBE_BYTES = 8192
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")
_SPLIT_WORD = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\n\s*(?P<rest>[^\W\d_]\S*)[ ]?")
_NAMES = {"cp932": "Shift_JIS", "cp949": "Windows-949", **{f"cp{n}": f"Windows-{n}" for n in range(1250, 1259)}}
_PROCESS = Path(__file__).with_name("document_process.py")
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH")  # of the environment: what it takes to start Python, and no secret
_LIMIT_SIGNALS = (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL)
_AT_ONCE = 2  # children; more would only take the processor from one another
_KEPT_CHARS = 32 * _MIB  # of texts that took a child, so that a search does not take it again for every hit

_AS_PDF = "save it as PDF or DOCX"
_UNREAD_FORMATS = {
    **dict.fromkeys((".rtf",), ("RTF", "save it as DOCX, PDF or plain text")),
    **dict.fromkeys((".doc", ".dot"), ("a Word document in the old format", "save it as DOCX")),
    ".odt": ("an OpenDocument text", _AS_PDF),
    ".pages": ("a Pages document", _AS_PDF),
    ".epub": ("an e-book", _AS_PDF),
    **dict.fromkeys((".xls", ".xlsx", ".ods", ".numbers"), ("a spreadsheet", "save the sheet as CSV")),
    **dict.fromkeys((".ppt", ".pptx", ".odp"), ("a presentation", "save it as PDF")),
}
_FAILED = "reader_failed"
_TOO_HEAVY = "split it, print it to a new PDF, or paste what matters into a text file"
_REFUSALS = {
    "encrypted": ("is protected by a password", "save a copy without the password, and name that"),
    "broken": ("is damaged, or is not what its name says", "open it in its program and save it again"),
    "too_heavy": ("needs more time, memory or space than a document may use", _TOO_HEAVY),
    "too_many_pages": ("has more than {pages:,} pages", "split it, and name the part that matters"),
    "encoding": ("is text in an encoding that was not recognised", "save it as UTF-8"),
    _FAILED: (
        "could not be read: the process that reads documents failed",
        "`pip check` names a library that is missing",
    ),
    "no_text": ("contains no text; it may be a scan", "run text recognition (OCR) over it first"),
}


@dataclass(frozen=True)
class ReadingLimits:
    """Bounds of one child process, and of what it may find."""

    cpu_s: int = 20
    wall_s: int = 60
    memory_bytes: int = 768 * _MIB
    output_bytes: int = 16 * _MIB
    unpacked_bytes: int = 128 * _MIB
    pages: int = 2_000


@dataclass(frozen=True)
class FileText:
    """`text` has plain newlines; `sha256` is of the file's bytes. `note` says what a reader of the text has to know."""

    text: str
    sha256: str
    note: str = ""


class _Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pages: list[str]
    encoding: str
    damaged: tuple[int, ...] = ()


@dataclass
class FileTexts:
    """Reads inside one confined root. May be used from several threads. `max_file_bytes` bounds plain files,
    `max_document_bytes` PDF, DOCX, HTML and mail."""

    root: ConfinedRoot
    max_file_bytes: int
    max_document_bytes: int
    limits: ReadingLimits = ReadingLimits()
    _known: OrderedDict[tuple[str, str], FileText | str] = field(default_factory=OrderedDict, init=False, repr=False)
    _children: set[subprocess.Popen[bytes]] = field(default_factory=set, init=False, repr=False)
    _closed: bool = field(default=False, init=False, repr=False)
    _guard: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _places: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(_AT_ONCE), init=False, repr=False)

    def close(self) -> None:
        """Ends the children, so that nobody waits for a document any more."""
        with self._guard:
            self._closed = True
            for child in self._children:
                child.kill()

    def max_bytes(self, path: str) -> int:
        return self.max_document_bytes if document_kind(path) else self.max_file_bytes

    def read(self, path: str) -> FileText:
        """Raises PathRefused for what cannot be read, with what to do; StorageFailed."""
        max_bytes = self.max_bytes(path)
        try:
            data = self.root.read(path, max_bytes=max_bytes).data
        except PathRefused as error:
            if error.reason != "too_large":
                raise
            _require_format(path, b"")
            setting = "max_document_bytes" if document_kind(path) else "max_file_bytes"
            message = f"`{path}` is larger than the {max_bytes:,} bytes that are read of a file."
            fix = f"split the file, or raise {setting}"
            raise PathRefused(message, reason="too_large", fix=fix) from None
        kind = _kind(path, data)
        if kind == "plain":
            return FileText(data.decode("utf-8-sig").replace("\r\n", "\n"), sha256_hex(data))
        key = (kind, sha256_hex(data))
        with self._guard:
            found = self._known.get(key)
        if found is None:
            with self._places:
                found = self._extracted(kind, data)
            if found != _FAILED:
                with self._guard:
                    self._known[key] = found
                    while (
                        sum(len(one.text) if isinstance(one, FileText) else 1 for one in self._known.values())
                        > _KEPT_CHARS
                    ):
                        self._known.popitem(last=False)
        if isinstance(found, str):
            what, fix = _REFUSALS[found]
            raise PathRefused(f"`{path}` {what.format(pages=self.limits.pages)}.", reason=found, fix=fix)
        return found

    def _extracted(self, kind: str, data: bytes) -> FileText | str:
        limits = self.limits
        command = [sys.executable, "-I", str(_PROCESS), kind, json.dumps(vars(limits))]
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        with as_storage_failed("Cannot start a process that reads documents"), tempfile.TemporaryFile() as output:
            with subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd="/",
                start_new_session=True,  # an interrupt at the terminal is not for it
            ) as child:
                with self._guard:
                    self._children.add(child)
                    if self._closed:
                        child.kill()
                try:
                    child.communicate(data, timeout=limits.wall_s)
                except subprocess.TimeoutExpired:
                    child.kill()
                finally:
                    with self._guard:
                        self._children.discard(child)
            output.seek(0)
            answer = output.read(limits.output_bytes + 1)
        if self._closed:  # says nothing about the document
            raise StorageFailed("A document was being read when this process was told to end.")
        if child.returncode < 0:
            return "too_heavy" if -child.returncode in _LIMIT_SIGNALS else "broken"
        if child.returncode:
            return EXITS.get(child.returncode, _FAILED)
        if len(answer) > limits.output_bytes:
            return "too_heavy"
        try:
            said = decode_json(answer, _Answer)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return "broken"
        if len(said.pages) > limits.pages:
            return "too_many_pages"
        pages = [_lines(_SPLIT_WORD.sub(_joined, page) if kind == "pdf" else page) for page in said.pages]
        if not any(any(map(str.isalnum, line)) for page in pages for line in page):
            nothing = "broken" if said.damaged else "no_text"
            return nothing if kind != "text" else FileText("", sha256_hex(data))
        if kind == "pdf":
            damaged = sorted({*said.damaged} & {*range(1, len(pages) + 1)})
            blank = [number for number, page in enumerate(pages, start=1) if not any(page) and number not in damaged]
            lines = [line for number, page in enumerate(pages, start=1) for line in (page_mark(number), *page)]
            notes = [f"{_listed(damaged)} could not be read in full"] if damaged else []
            notes += [f"no text on {_listed(blank)}"] if blank else []
            return FileText("\n".join(lines) + "\n", sha256_hex(data), "; ".join(notes))
        # The answer of a child is not trusted.
        named = _NAMES.get(said.encoding) or clean(said.encoding)[:40].replace("_", "-").upper()
        note = f"encoding guessed: {named}" if kind == "text" else ""
        return FileText("\n".join(line for page in pages for line in page) + "\n", sha256_hex(data), note)


def _listed(pages: list[int]) -> str:
    several, more = "s" if len(pages) > 1 else "", " and more" if len(pages) > 10 else ""
    return f"page{several} {', '.join(map(str, pages[:10]))}{more}"


def _kind(path: str, data: bytes) -> str:
    """`plain` for UTF-8, else what a child has to read it as. Raises PathRefused for what is not read at all."""
    _require_format(path, data)
    kind = document_kind(path)
    if kind != "pdf" and data.lstrip()[:5] == b"%PDF-":
        fix = "rename it so that it ends in .pdf"
        raise PathRefused(f"`{path}` is a PDF under another name.", reason="format", fix=fix)
    if kind == "docx" and data.startswith(b"\xd0\xcf\x11\xe0"):  # what Word makes of a document with a password
        what, fix = _REFUSALS["encrypted"]
        raise PathRefused(f"`{path}` {what}, or is in Word's old format.", reason="encrypted", fix=fix)
    if kind:
        return kind
    if data.startswith(_BYTE_ORDER_MARKS):
        return "text"
    if len(data) % 2 == 0 and _is_utf_16(data[:_BINARY_PROBE_BYTES]):
        what, fix = _REFUSALS["encoding"]
        raise PathRefused(f"`{path}` {what}.", reason="encoding", fix=fix)
    if b"\0" in data[:_BINARY_PROBE_BYTES]:
        raise PathRefused(f"`{path}` is a binary file.", reason="binary", fix="name a text file, a PDF or a DOCX")
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "text"
    return "plain"


def _is_utf_16(data: bytes) -> bool:
    """Tells UTF-16 without a byte order mark: of most writing every other byte is zero, and none between."""
    halves = data[::2], data[1::2]
    return any(2 * high.count(0) > len(high) and 0 not in low for high, low in (halves, halves[::-1]))


def _require_format(path: str, data: bytes) -> None:
    for suffix, (what, fix) in _UNREAD_FORMATS.items():
        if path.lower().endswith(suffix) or (suffix == ".rtf" and data.startswith(b"{\\rtf")):
            raise PathRefused(f"`{path}` is {what}, which is not read.", reason="format", fix=fix)


def _lines(page: str) -> list[str]:
    lines = [line.rstrip() for line in clean(page).replace("\r", "\n").strip("\n").split("\n")]
    return [f"({line.strip()[1:-1]})" if marked_page(line) is not None else line for line in lines if page.strip()]


def _joined(split: re.Match[str]) -> str:
    """A word that a line end splits, on its first line; a compound such as `Excel-Tabelle` stays in two."""
    return f"{split['rest']}\n" if split["rest"][0].islower() else split[0]
