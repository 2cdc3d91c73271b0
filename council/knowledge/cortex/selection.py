"""The files that an index holds: those that READ_FILE may read and no `.gitignore` leaves out, or the archive of old
memory.

Looks at names and file status only; contents, apart from the `.gitignore` files themselves, are read elsewhere.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

from council.errors import PathRefused
from council.knowledge.cortex.catalog import Stamp
from council.knowledge.cortex.chunks import front_matter_value, is_rehearsed_artifact, is_script
from council.knowledge.library import is_closed, is_denied
from council.storage.globs import Letters, Token, Wild
from council.storage.paths import UPLOADS_FOLDER, ConfinedRoot, PathRules

MAX_ENTRIES = 200_000  # files and folders of one home; beyond that the index says that it is not whole
ARCHIVE = "session_states/archive"
_MAX_GITIGNORE_BYTES = 1 << 20
_NO_GITIGNORE = ("not_found", "not_a_folder", "directory", "symlink")  # gone since, or what git itself passes over
# Machines write them, nobody asks about them; hidden names (.venv, .mypy_cache, .idea) are left out by their dot.
_MACHINE_FOLDERS = frozenset({"node_modules", "__pycache__"})


@dataclass
class Listing:
    """`stamps`: the files that belong into the index. `left_out` counts names by reason (a folder counts once). `whole`: no
    more than MAX_ENTRIES. `unread`: the `.gitignore` files that could not be read."""

    stamps: dict[str, Stamp] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    whole: bool = True
    unread: tuple[str, ...] = ()


class Selection(Protocol):
    """The source of a shelf of the Cortex."""

    def listing(self) -> Listing: ...

    def permits(self, path: str) -> bool:
        """Tells whether the file may be known at all, were it there. Cheap, and asked again before anything is quoted."""
        ...

    def is_as_installed(self, path: str, sha256: str) -> bool:
        """Tells whether the file has the bytes that `init` wrote: nobody said anything in it."""
        ...

    def groups(self, path: str, text: str) -> tuple[str, ...]:
        """Names by which a question can be narrowed to this file."""
        ...


def of_language_models(group: str = "") -> str:
    """The name of the part of a group that was not rehearsed: all that a language model is told of."""
    return f"{group} of language models".lstrip()


class HomeFiles:
    """Scope `files`: the library's rules, and every `.gitignore` on the way."""

    def __init__(self, root: ConfinedRoot, rules: PathRules, installed: Callable[[], Mapping[str, str]]) -> None:
        """`installed` gives the SHA-256 of each file that `init` writes, by its path; it is asked once, when it is needed."""
        self._root = root
        self._rules = rules
        self._ignores = GitIgnores(root)
        self._installed = cache(installed)
        self._permitted: dict[str, bool] = {}  # the rules never change, and matching them is most of a walk

    def listing(self) -> Listing:
        listing = Listing()
        self._ignores.look_again()

        def skip(folder: str) -> bool:
            if is_closed(self._rules, folder):
                listing.left_out["denied"] += 1
                return True
            name = folder.rpartition("/")[2]
            ignored = _hidden(folder) or name in _MACHINE_FOLDERS or folder == UPLOADS_FOLDER
            ignored = ignored or self._ignores.ignore(f"{folder}/")
            if ignored:
                listing.left_out["ignored"] += 1
            return ignored

        for path in _walk(self._root, skip, listing):
            if not self.permits(path):
                listing.left_out["denied"] += 1
            elif _hidden(path) or self._ignores.ignore(path):
                listing.left_out["ignored"] += 1
            else:
                _add(listing, self._root, path)
        listing.unread = tuple(sorted(self._ignores.unread))
        return listing

    def permits(self, path: str) -> bool:
        known = self._permitted.get(path)
        if known is None:
            if len(self._permitted) > MAX_ENTRIES:
                self._permitted.clear()
            known = self._permitted[path] = not is_denied(self._rules, path)
        return known

    def is_as_installed(self, path: str, sha256: str) -> bool:
        return self._installed().get(path) == sha256

    def groups(self, path: str, text: str) -> tuple[str, ...]:
        return () if is_rehearsed_artifact(text) or is_script(path, text) else (of_language_models(),)


class ArchivedMemory:
    """Scope `memory`: the Markdown pages below `session_states/archive/<lane>/<role>/`, and nothing else."""

    def __init__(self, root: ConfinedRoot, was_rehearsed: Callable[[str], bool]) -> None:
        """`was_rehearsed` tells it of a run, for pages of older versions, which do not say."""
        self._root = root
        self._was_rehearsed = was_rehearsed
        self._rules = PathRules(deny=(), allow=(f"{ARCHIVE}/*/*/*.md",))

    def listing(self) -> Listing:
        listing = Listing()

        def leads_elsewhere(folder: str) -> bool:
            return not (folder == ARCHIVE.split("/")[0] or f"{folder}/".startswith(f"{ARCHIVE}/"))

        for path in _walk(self._root, leads_elsewhere, listing):
            if self.permits(path):
                _add(listing, self._root, path)
        return listing

    def permits(self, path: str) -> bool:
        return not is_denied(self._rules, path)

    def is_as_installed(self, path: str, sha256: str) -> bool:
        return False

    def groups(self, path: str, text: str) -> tuple[str, ...]:
        lane, role = path.removeprefix(f"{ARCHIVE}/").split("/")[:2]
        own = (lane, f"{lane}/{role}")
        said = front_matter_value(text, "rehearsed")
        rehearsed = said == "yes" if said else self._was_rehearsed(front_matter_value(text, "run"))
        return own if rehearsed else (*own, *map(of_language_models, own))


class GitIgnores:
    """The `.gitignore` files of a tree, nested ones included; the deepest that speaks of a path decides, as in git."""

    def __init__(self, root: ConfinedRoot) -> None:
        self._root = root
        self._specs: dict[str, _Spec | None] = {}
        self._before: dict[str, _Spec | None] = {}
        self.unread: set[str] = set()

    def look_again(self) -> None:
        """Every `.gitignore` is read again when it is next needed; unchanged ones keep what they have decided."""
        self._before, self._specs = self._specs, {}
        self.unread.clear()

    def ignore(self, path: str) -> bool:
        """A folder's path ends in a slash. Expects that no folder above is ignored: nobody looks into those."""
        folder = path.removesuffix("/").rpartition("/")[0]
        while True:
            if folder not in self._specs:
                data = self._read(f"{folder}/.gitignore" if folder else ".gitignore")
                before = self._before.get(folder)
                unchanged = before is not None and before.data == data
                self._specs[folder] = before if unchanged else _Spec(data) if data else None
            spec = self._specs[folder]
            decision = spec.decide(path[len(folder) + 1 :] if folder else path) if spec else None
            if decision is not None:
                return decision
            if not folder:
                return False
            folder = folder.rpartition("/")[0]

    def _read(self, path: str) -> bytes:
        try:
            os.lstat(f"{self._root.root}/{path}")  # most folders have none, and this is the cheap way to know
            return self._root.read(path, max_bytes=_MAX_GITIGNORE_BYTES).data
        except (FileNotFoundError, NotADirectoryError):
            return b""
        except OSError:
            self.unread.add(path)
        except PathRefused as refusal:
            if refusal.reason not in _NO_GITIGNORE:
                self.unread.add(path)
        return b""


class _Spec:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self._rules = [rule for line in data.decode("utf-8-sig", "replace").splitlines() if (rule := _rule(line))]
        self._decided: dict[str, bool | None] = {}

    def decide(self, path: str) -> bool | None:
        if path not in self._decided:
            if len(self._decided) > MAX_ENTRIES:  # a file that never changes, and paths that come and go
                self._decided.clear()
            letters = Letters(path.removesuffix("/"))
            fitting = (rule for rule in reversed(self._rules) if rule.fits(letters, is_folder=path.endswith("/")))
            self._decided[path] = next((rule.ignores for rule in fitting), None)
        return self._decided[path]


@dataclass(frozen=True)
class _Rule:
    tokens: tuple[Token, ...]
    folders_only: bool
    ignores: bool

    def fits(self, letters: Letters, *, is_folder: bool) -> bool:
        return (is_folder or not self.folders_only) and bool(letters.reached(self.tokens) & letters.end)


_PART = re.compile(
    r"(?P<folders>(?<![^/])\*{2,}/)|(?P<all>(?<![^/])\*{2,}\Z)|(?P<name>\*+)|(?P<one>\?)"
    r"|\[(?P<none>[!^]?)(?P<set>\]?+(?>(?:\\.|[^\]\\])*))\]|(?P<open>\[.*)|\\(?P<escaped>.?)|.",
    re.DOTALL,
)
_RANGE = re.compile(r"(\\?.)(?:-(\\?.))?", re.DOTALL)
_WILD = {"folders": Wild.FOLDERS, "all": Wild.ALL, "name": Wild.NAME, "one": Wild.ONE}
_NEVER = ""  # a token that fits no character: git, too, passes over a pattern that it does not understand


def _rule(line: str) -> _Rule | None:
    """One line as git reads it (gitignore(5)); None where it says nothing."""
    text = line.rstrip(" ")
    if text.endswith("\\") and text != line:
        text += " "
    pattern = text.removeprefix("!")
    names = pattern.removesuffix("/")
    if not names or text.startswith("#"):
        return None
    tokens = [_token(part) for part in _PART.finditer(names.removeprefix("/"))]
    deep = () if "/" in names else (Wild.FOLDERS,)
    return _Rule((*deep, *tokens), folders_only=names != pattern, ignores=pattern == text)


def _token(part: re.Match[str]) -> Token:
    kind = part.lastgroup
    if kind in _WILD:
        return _WILD[kind]
    if kind == "set":
        ranges = [(first[-1], last[-1:]) for first, last in _RANGE.findall(part["set"])]
        inside = "".join(f"{re.escape(first)}-{re.escape(max(first, last))}" for first, last in ranges)
        return re.compile(f"[{'^' if part['none'] else ''}{inside}]")
    return part["escaped"] if kind == "escaped" else _NEVER if kind == "open" else part[0]


def _walk(root: ConfinedRoot, skip: Callable[[str], bool], listing: Listing) -> Iterator[str]:
    try:
        yield from root.walk(max_entries=MAX_ENTRIES, skip=skip)
    except PathRefused as error:
        if error.reason != "too_many":
            raise
        listing.whole = False


def _add(listing: Listing, root: ConfinedRoot, path: str) -> None:
    try:
        status = os.stat(f"{root.root}/{path}", follow_symlinks=False)
    except OSError:  # gone since the walk saw it
        return
    # It only tells whether to read again; what is read goes through the confined root.
    listing.stamps[path] = Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def _hidden(path: str) -> bool:
    return path.rpartition("/")[2].startswith(".")
