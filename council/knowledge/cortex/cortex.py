"""QUERY_CORTEX's answers: passages of the home's files, or of archived memory, as they stand on disk at this moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from council.errors import StorageFailed
from council.knowledge.cortex.chunks import Reads
from council.knowledge.cortex.index import Findings, Hit, Refresh, Shelf, Status
from council.knowledge.cortex.selection import ArchivedMemory, HomeFiles, Selection
from council.knowledge.cortex.tantivy_index import IndexBroken
from council.knowledge.cortex.vectors import Meaning, MissingVectors, VectorKey
from council.knowledge.file_texts import FileTexts
from council.safety.untrusted import clean
from council.storage.paths import PathRules

Scope = Literal["files", "memory"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
DEFAULT_LIMIT = 5
MAX_LIMIT = 50
MAX_QUESTION_CHARS = 2_000
_ATTEMPTS = 3  # files that change while they are quoted are indexed again and asked again, this often


@dataclass(frozen=True)
class CortexAnswer:
    """Passages, best first, and sentences on them. `upkeep`: those of the notes that tell of the index alone, and change no
    passage."""

    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()
    upkeep: tuple[str, ...] = ()


class Cortex:
    """The two indexes of a home. Making one touches nothing: disk and engine are used when it is asked. May be used
    from several threads, which then wait for one another; several processes share the folder."""

    def __init__(
        self,
        texts: FileTexts,
        rules: PathRules,
        folder: Path,
        *,
        redact: Callable[[str], str] = str,
        installed: Callable[[], Mapping[str, str]] = dict,
        was_rehearsed: Callable[[str], bool] = lambda run_id: False,
    ) -> None:
        """`rules` are those of READ_FILE; `folder` is the Cortex's own (`.council/cortex`). Of a text the
        index keeps what `redact` leaves, line for line. `installed` and `was_rehearsed` as in `selection`."""
        self.lock_path = folder / "lock"
        self._guard = threading.Lock()
        selections: dict[Scope, Selection] = {
            "files": HomeFiles(texts.root, rules, installed),
            "memory": ArchivedMemory(texts.root, was_rehearsed),
        }
        reads = Reads(texts, redact)
        self._shelves = {  # of memory that a person had forgotten nothing may stay
            scope: Shelf(scope, folder / scope, self.lock_path, selection, reads, forgets=scope == "memory")
            for scope, selection in selections.items()
        }

    def query(
        self,
        question: str,
        *,
        scope: Scope = "files",
        limit: int = DEFAULT_LIMIT,
        group: str = "",
        patience_s: float = 0.0,
        meaning: Meaning | None = None,
    ) -> CortexAnswer:
        """The passages that fit best, after the index followed every change on disk. They are found by their words. With
        `meaning` they are found by their vectors, too, as far as they have one.
        `group` narrows memory to a `lane` or a `lane/role`, and either scope to what was not rehearsed
        (`of_language_models`). No text is special in `question`. What is too weak to help is left out, and said. Raises
        StorageFailed. While another process writes the index, waits `patience_s`, then answers from what is there and says
        so."""
        question = clean(question[:MAX_QUESTION_CHARS])
        limit = min(max(limit, 1), MAX_LIMIT)
        shelf = self._shelves[scope]
        notes: list[str] = []
        upkeep: list[str] = []
        found, stale = Findings([], set()), set[str]()
        if not any(char.isalnum() for char in question):
            return CortexAnswer((), ("the question holds no word to look for",))
        with self._guard:
            for attempt in range(1, _ATTEMPTS + 1):
                refreshed = shelf.refresh(distrusted=stale, patience_s=patience_s)
                notes += refreshed.notes
                upkeep += refreshed.upkeep
                try:
                    found = shelf.search(question, limit, group, meaning)
                except IndexBroken as error:
                    if attempt == _ATTEMPTS:
                        fix = "delete .council/cortex; the next question builds it again"
                        raise StorageFailed(f"The index of {scope} cannot be read ({error}).", fix=fix) from error
                    shelf.distrust_index()
                    continue
                stale = found.stale
                if not stale:
                    break
        if found.weak:
            several = found.weak != 1
            notes.append(f"{found.weak} weaker passage{'s were' if several else ' was'} left out")
        if stale:
            files = "1 file that is" if len(stale) == 1 else f"{len(stale)} files that are"
            notes.append(f"passages of {files} changing were left out")
        return CortexAnswer(tuple(found.hits), tuple(dict.fromkeys(notes)), tuple(dict.fromkeys(upkeep)))

    def missing_vectors(self, model: str, scope: Scope, question: str, patience_s: float) -> MissingVectors:
        """Texts to be embedded before a question can be asked by its meaning, after a refresh. Raises StorageFailed."""
        with self._guard:
            return self._shelves[scope].missing_vectors(model, question, patience_s)

    def keep_vectors(self, model: str, scope: Scope, found: Mapping[VectorKey, Any], patience_s: float) -> None:
        """Raises DimensionsChanged, DaemonRunning while another process writes, StorageFailed."""
        with self._guard:
            self._shelves[scope].keep_vectors(model, found, patience_s)

    def refresh(self, scope: Scope = "files", *, rebuild: bool = False, patience_s: float = 0.0) -> Refresh:
        """Brings one index up to date. Raises DaemonRunning while another process writes, StorageFailed."""
        with self._guard:
            return self._shelves[scope].refresh(rebuild=rebuild, patience_s=patience_s, must=True)

    def status(self, scope: Scope = "files") -> Status:
        """Tells what one index holds, without changing it or loading the engine."""
        with self._guard:
            return self._shelves[scope].status()
