"""Files that documents and the task name, and which of them were not read."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from council.llm.base import Source
from council.llm.offline.text import Corpus, Statement

_EXTENSIONS = "md|markdown|txt|csv|tsv|json|ya?ml|toml|py|rst|ini|cfg"
# Every repetition is bounded: a long run of one character must not cost quadratic time.
_LINK = re.compile(r"\]\(\s{0,3}<?([^()<>#?\s][^()<>#?]{0,200}?)>?(?:#[^()\s]{0,200})?(?:\s\"[^\"]{0,200}\")?\s{0,3}\)")
_NAME = re.compile(
    rf"(?<![\w./:@-])(?:\.{{1,2}}/){{0,5}}[\w.-]{{1,100}}(?:/[\w.-]{{1,100}}){{0,9}}\.(?:{_EXTENSIONS})\b(?![\w/]|\.\w)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"(?<![\w.+-])[a-z][a-z0-9+.-]{0,15}://\S+", re.IGNORECASE)
# What a request token may hold: nothing that could end it or open another.
_SAFE = re.compile(rf"[\w./ -]{{1,200}}\.(?:{_EXTENSIONS})", re.IGNORECASE)
# Names that by custom stand at the top of a project; other bare names stand beside the document that names them.
_TOP_NAMES = ("readme", "license", "changelog", "contributing", "pyproject", "package", "requirements")


@dataclass(frozen=True)
class TaskFile:
    """`path` is relative to the home; `by` is the statement that names it first, None for the task."""

    path: str
    by: Statement | None


def unread_files(corpus: Corpus, task: str) -> list[TaskFile]:
    """Files that the task or a document names and that no source holds, in order; never hidden or outside ones."""
    read = {posixpath.normpath(source.path) for source in corpus.sources}
    bare = {posixpath.basename(path) for path in read}
    found: dict[str, TaskFile] = {}
    for raw in _names(task):
        _note(found, _resolve(raw, "", corpus.sources), None)
    for statement in corpus.statements:
        for raw in _names(statement.text):
            # Under any spelling: as written, beside the naming document, or by its bare name alone.
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(statement.path), raw))
            if not read & {posixpath.normpath(raw), beside} and raw not in bare:
                _note(found, _resolve(raw, statement.path, corpus.sources), statement)
    return [named for path, named in found.items() if path not in read]


def _names(text: str) -> list[str]:
    """Names as written, links first spelt as paths; addresses on the web are none."""
    text = _ADDRESS.sub(" ", text)
    links = [unquote(target) for target in _LINK.findall(text) if _SAFE.fullmatch(unquote(target))]
    return [*links, *_NAME.findall(_LINK.sub("] ", text))]


def _note(found: dict[str, TaskFile], path: str, by: Statement | None) -> None:
    hidden = any(part.startswith(".") for part in path.split("/"))
    if path and not path.startswith("/") and not hidden and _SAFE.fullmatch(path):
        found.setdefault(path, TaskFile(path, by))


def _resolve(raw: str, naming: str, sources: Sequence[Source]) -> str:
    """Bare names and `./x` from the naming document's folder; paths that leave the home keep their `..` and are dropped."""
    folder = posixpath.dirname(naming)
    bare = "/" not in raw and not raw.lower().startswith(_TOP_NAMES)
    beside = raw.startswith(("./", "../")) or bare
    return posixpath.normpath(posixpath.join(folder, raw) if beside else raw)
