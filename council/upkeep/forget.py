"""How a `forget` command becomes a run: in its lane's turn it takes one text out of everything that Council keeps.

The text itself is read from the command file, which goes when the run ends; record 0 does not hold it. All is rewritten
in one stretch in which no other run moves, and may be repeated: a process that dies in between begins again. What a
person wrote (documents, commands, edited artifacts) is left, and named where it lies in the home's own folders.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from council.agents.memory import decode_session, encode_session
from council.app import App, admit_forget, build_cortex
from council.commands.models import ForgetCommand, RunCommand
from council.commands.parsing import parse_command
from council.engine.commit import Output
from council.engine.journal import JOURNAL, FileJournal
from council.engine.outputs import OutputLedger
from council.engine.receipts import ArtifactRef, Receipt
from council.engine.rewriting import changed, rewrite_journal
from council.engine.runs import Admission, Finish, Outcome, Run
from council.errors import CouncilError, PathRefused
from council.ids import sha256_hex
from council.reports.replay import replay
from council.storage.files import is_temporary, write_atomic

_MARK_CHARS = 12
_MAX_FILE_BYTES = 64 << 20
_SHOWN = 10


class CannotForget(CouncilError):
    """Something stands in the way; nothing was changed, or what was can be repeated."""

    code = "cannot_forget"
    http_status = 409


class Forgotten(msgspec.Struct, frozen=True):
    """The hashed record: `sha256` is salted with the run's secret, `counts` says in how many files of each kind the text
    was, `left` names files of a person that still hold it."""

    at: str
    run_id: str
    sha256: str
    counts: dict[str, int]
    left: tuple[str, ...] = ()


def install(app: App) -> None:
    """Adds what upkeep handles to the commands that this council runs."""
    app.handlers["forget"] = ForgetHandler(app)


class ForgetHandler:
    """Commands of the type `forget`."""

    def __init__(self, app: App) -> None:
        self._app = app

    def admit(self, command: RunCommand) -> Admission:
        assert isinstance(command, ForgetCommand)
        return admit_forget(command)

    def begin(self, run: Run) -> Forgetting:
        return Forgetting(run, self._app)


class Forgetting:
    """One forget command being worked on (an engine Execution)."""

    def __init__(self, run: Run, app: App) -> None:
        self._run = run
        self._app = app
        self._done: Forgotten | None = None

    async def work(self) -> None:
        """Raises CannotForget: the command file is gone, or an unfinished run holds the text."""
        self._done = await self._run.step("forget", self._forget, type=Forgotten)

    async def _forget(self) -> Forgotten:
        text = self._text()
        digest = sha256_hex(self._run.secret + text.encode())
        traces = Traces(self._app, self._run.id, text, f"[forgotten {digest[:_MARK_CHARS]}]")
        traces.require_no_unfinished_run()
        counts = await traces.remove()
        return Forgotten(self._run.header.created, self._run.id, digest, counts, tuple(traces.left()))

    def _text(self) -> str:
        """Raises CannotForget."""
        file = self._run.header.file
        try:
            data = self._app.root.read(f"commands/{file.name}", max_bytes=self._app.settings.max_command_bytes).data
        except PathRefused as error:
            raise CannotForget(f"the command file is gone: {error.message}", fix="drop the command again") from error
        if sha256_hex(data) != file.sha256:
            raise CannotForget(f"commands/{file.name} has changed.", fix="drop the command again, and leave it")
        command = parse_command(file.name, data)
        assert isinstance(command, ForgetCommand)
        return command.text

    def conclude(self, finish: Finish) -> Outcome:
        if self._done is None:
            return Outcome("cancelled" if finish.cancelled else "failed", None, error=finish.error)
        data = json.dumps(msgspec.to_builtins(self._done), indent=2) + "\n"
        record = Output(f".council/forgotten/{self._run.id}.json", data.encode())
        counts = ", ".join(f"{kind} {count}" for kind, count in self._done.counts.items() if count)
        notes = [f"Forgotten in: {counts}." if counts else "The text was found nowhere."]
        if self._done.left:
            shown = ", ".join(f"`{path}`" for path in self._done.left[:_SHOWN])
            notes.append(f"Not Council's to change, and left as they are: {shown}.")
        return Outcome("succeeded", None, (record,), notes=tuple(notes))


class Traces:
    """Everywhere that Council keeps words, and one text in it."""

    def __init__(self, app: App, run_id: str, text: str, mark: str) -> None:
        self._app = app
        self._home = app.home
        self._run_id = run_id
        self._text = text
        self._mark = mark
        spelt = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
        self._spellings = [spelling.encode() for spelling in sorted(spelt, key=len, reverse=True)]
        self._ours = OutputLedger(app.home.runtime / "outputs")

    def require_no_unfinished_run(self) -> None:
        """Raises CannotForget: its journal is being written, and its agents have read the text."""
        for marker in sorted((self._home.runtime / "active").iterdir()):
            folder = self._home.runs / marker.name
            if marker.name != self._run_id and any(self._is_in(path) for path in _files(folder)):
                raise CannotForget(
                    f"the unfinished run {marker.name} holds the text.",
                    fix=f"wait for its end or `council cancel {marker.name}`, then forget again",
                )

    async def remove(self) -> dict[str, int]:
        """How many files of each kind held the text."""
        self._remove_leftovers()
        counts = {"runs": 0, "artifacts": 0, "receipts": 0, "memory": 0, "logs": 0}
        for folder in sorted(self._home.runs.iterdir()):
            if folder.name != self._run_id and not folder.name.startswith("."):
                ran = any([self._in_earlier(folder), await self._in_run(folder, counts)])
                counts["runs"] += ran
        counts["receipts"] += sum([self._in_receipt(path) for path in sorted(self._home.receipts.glob("*.json"))])
        counts["artifacts"] += sum([self._in_orphan(path) for path in _files(self._home.artifacts)])
        for folder in (self._home.session_states, self._home.runtime / "memory"):
            counts["memory"] += sum([self._in_memory(path) for path in _files(folder)])
        counts["logs"] += sum([self._in_log(path) for path in _files(self._home.log_file.parent)])
        self._app.ledger.replace_text(self._text, self._mark)
        self._rebuild_indexes()
        return counts

    def _remove_leftovers(self) -> None:
        """Of a forgetting that was cut off: the folders of ended runs are written to by nobody else."""
        for folder in (self._home.runs, self._home.receipts, self._home.session_states, self._home.runtime / "memory"):
            for path in _files(folder):
                if is_temporary(path.name) and path.parent.name != self._run_id:
                    path.unlink()

    def left(self) -> Iterator[str]:
        """Files in the home's own folders that still hold the text: a person's."""
        for folder in (self._home.commands, self._home.artifacts, self._home.personas, self._home.session_states):
            for path in _files(folder):
                name = path.relative_to(self._home.root).as_posix()
                if name != f"commands/{self._own_file()}" and self._is_in(path):
                    yield name

    def _own_file(self) -> str:
        return self._app.engine.active[self._run_id].header.file.name

    # ── runs and what they left ──────────────────────────────────────────────────────────────────────────────────────

    async def _in_run(self, folder: Path, counts: dict[str, int]) -> bool:
        """The journal, then its artifact, rendered again from it."""
        path = folder / JOURNAL
        if not any(self._is_in(part) for part in (path, *_files(folder / "blobs"))):
            return False
        rewrite_journal(path, self._change)
        committed = FileJournal.read(path).committed
        receipt = self._app.receipts.read(folder.name)
        if committed is None or receipt is None or receipt.artifact is None:
            return True
        page = await replay(FileJournal.read(path), self._app.handlers)
        old, new = receipt.artifact.sha256, sha256_hex(page)
        counts["artifacts"] += self._replace_artifact(receipt.artifact.path, folder.name, old, page)
        rewrite_journal(path, self._change, artifact=(old, new))
        self._write_receipt(msgspec.structs.replace(receipt, artifact=ArtifactRef(receipt.artifact.path, new)))
        return True

    def _replace_artifact(self, path: str, run_id: str, old: str, page: bytes) -> bool:
        """True when what stands there is the run's own page, and now the new one."""
        try:
            if self._app.root.sha256(path) != old:
                return False
        except PathRefused:
            return False
        self._ours.note(path, run_id, sha256_hex(page), current=old, sync=True)
        self._app.root.write_atomic(path, page)
        return True

    def _in_earlier(self, folder: Path) -> bool:
        """Artifacts and receipts of earlier attempts, and damaged journals."""
        found = [self._in_raw(path) for path in folder.iterdir() if path.is_file() and path.name != JOURNAL]
        return any(found)

    def _in_receipt(self, path: Path) -> bool:
        receipt = self._app.receipts.read(path.stem)
        if receipt is None:
            return self._in_raw(path)
        if not self._is_in(path):
            return False
        self._write_receipt(msgspec.convert(changed(msgspec.to_builtins(receipt), self._change), Receipt))
        return True

    def _write_receipt(self, receipt: Receipt) -> None:
        """In its place in the order of ends."""
        path = self._home.receipts / f"{receipt.run_id}.json"
        status = path.stat()
        write_atomic(path, (json.dumps(msgspec.to_builtins(receipt), indent=2, ensure_ascii=False) + "\n").encode())
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _in_orphan(self, path: Path) -> bool:
        """A page of ours whose run's journal was pruned: the text is replaced in the page."""
        name = path.relative_to(self._home.root).as_posix()
        entry = self._ours.read(name)
        if entry is None or not self._is_in(path):
            return False
        old = path.read_bytes()
        if sha256_hex(old) not in entry.sha256s:
            return False
        new = self._without(old)
        self._ours.note(name, entry.run_id, sha256_hex(new), current=sha256_hex(old), sync=True)
        self._app.root.write_atomic(name, new)
        return True

    # ── memory, logs, indexes ────────────────────────────────────────────────────────────────────────────────────────

    def _in_memory(self, path: Path) -> bool:
        if not path.name.endswith("_session.json"):
            return self._in_raw(path)
        if not self._is_in(path):
            return False
        lane = "main" if path.parent.name in ("session_states", "memory") else path.parent.name
        session, _ = decode_session(path.read_bytes(), path.name.removesuffix("_session.json").upper(), lane)
        if session is None:
            return self._in_raw(path)
        kept = changed(msgspec.to_builtins(session), self._change)
        write_atomic(path, encode_session(msgspec.convert(kept, type(session))), mode=0o644)
        return True

    def _in_raw(self, path: Path) -> bool:
        if not self._is_in(path):
            return False
        write_atomic(path, self._without(path.read_bytes()), mode=path.stat().st_mode & 0o777)
        return True

    def _in_log(self, path: Path) -> bool:
        """In the file itself: the log is open, and lines are only ever added to it."""
        if not self._is_in(path):
            return False
        data = self._without(path.read_bytes())
        with path.open("r+b") as stream:
            stream.write(data)
            stream.truncate()
        return True

    def _rebuild_indexes(self) -> None:
        cortex = build_cortex(self._app.root, self._app.settings)
        for scope in ("files", "memory"):
            if (self._home.runtime / "cortex" / scope).exists():
                cortex.refresh(scope, rebuild=True, patience_s=10.0)

    # ── the text ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _change(self, text: str) -> str:
        return text.replace(self._text, self._mark)

    def _is_in(self, path: Path) -> bool:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return False
        return any(spelling in data for spelling in self._spellings)

    def _without(self, data: bytes) -> bytes:
        for spelling in self._spellings:
            data = data.replace(spelling, self._mark.encode())
        return data


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _MAX_FILE_BYTES:
            yield path
