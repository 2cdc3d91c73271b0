"""The home: the folder that holds a council's commands, artifacts, personas and memory. It is never derived from where
the code is installed."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import council
from council.errors import ConfigError, HomeNotFound, StorageFailed, UsageError

README_NAME = "README.md"
_FOLDERS = ("commands", "artifacts", "personas", "session_states")
_MARKS = ("commands", "personas")  # the two folders that make a folder a home
SETTINGS_FILES = ("council.toml", ".env")
_GITIGNORE_LINES = (".council/", "session_states/*.json", ".env")
_PACKAGE = Path(council.__file__).parent
_SERVER = re.compile(rb"^\s*(export\s+)?(COUNCIL_)?database_url\s*=", re.MULTILINE | re.IGNORECASE)


class _Place:
    def __init__(self, *names: str) -> None:
        self._names = names

    def __get__(self, home: Home, owner: type[Home]) -> Path:
        return home.root.joinpath(*self._names)


@dataclass(frozen=True)
class Home:
    """The places inside one home. `root` is absolute."""

    root: Path

    commands = _Place("commands")
    failed = _Place("commands", "failed")
    recurring = _Place("commands", "recurring")
    artifacts = _Place("artifacts")
    personas = _Place("personas")
    session_states = _Place("session_states")
    runtime = _Place(".council")
    lock_file = _Place(".council", "lock")
    state_file = _Place(".council", "state.json")
    log_file = _Place(".council", "logs", "council.jsonl")

    def settings_edited_since(self, moment: str) -> list[str]:
        """The files of settings that changed after that moment (RFC 3339, to the second): a daemon that began then does not
        know what they say now."""
        told_s = datetime.fromisoformat(moment).timestamp() + 1  # the second itself may have been before it
        edited = []
        for name in SETTINGS_FILES:
            with contextlib.suppress(OSError):
                edited += [name] if (self.root / name).stat().st_mtime >= told_s else []
        return edited

    def require_own_places(self, lane: str = "main") -> None:
        """Raises ConfigError where the memory of `lane` or the end of the audit would lie elsewhere than they seem to."""
        for place in (self.session_states, self.session_states / lane, self.runtime / "audit.head"):
            if place.is_symlink():
                raise ConfigError(
                    f"{place.relative_to(self.root)} is a symbolic link; Council only writes inside the home itself.",
                    fix=f"put the {'folder' if place.is_dir() else 'file'} itself in place of the link",
                )

    def ensure_runtime(self) -> None:
        """Readable by their owner only: journals hold whole prompts. Raises StorageFailed."""
        try:
            self.runtime.mkdir(mode=0o700, exist_ok=True)
            if self.runtime.stat().st_mode & 0o077:
                self.runtime.chmod(0o700)
        except OSError as error:
            raise StorageFailed(
                f"cannot make {self.runtime}: {error.strerror}.", fix="make the home writable for this user."
            ) from error


def find_home(flag: Path | None, environ: Mapping[str, str], cwd: Path) -> Home:
    """`--home`, then `COUNCIL_HOME`, then the nearest folder from `cwd` upward that is a home. Raises HomeNotFound."""
    if flag is not None:
        return _given_home(flag, "--home", cwd)
    if named := environ.get("COUNCIL_HOME", ""):
        return _given_home(Path(named), "COUNCIL_HOME", cwd)
    start = cwd.resolve()
    for folder in (start, *start.parents):
        if not _missing_marks(folder):
            return Home(folder)
    raise HomeNotFound(
        f"no home in {start} or any folder above it (a home holds commands/ and personas/).",
        fix="make one with `council init DIR`, or name one with --home or COUNCIL_HOME.",
        folder=str(start),
    )


def _given_home(path: Path, origin: str, cwd: Path) -> Home:
    folder = (cwd / path.expanduser()).resolve()
    if missing := _missing_marks(folder):
        what = f"lacks {' and '.join(f'{name}/' for name in missing)}" if folder.is_dir() else "is not a folder"
        makes = f"`council init {shlex.quote(str(folder))}` makes it one."
        raise HomeNotFound(
            f"{folder} ({origin}) is not a home: it {what}.",
            fix=makes if folder.is_dir() or not folder.exists() else "name a folder.",
            folder=str(folder),
        )
    return Home(folder)


def _missing_marks(folder: Path) -> list[str]:
    return [name for name in _MARKS if not (folder / name).is_dir()]


def path_in_home(given: str, home: Path) -> str:
    """The path as commands spell it: from the home, with slashes."""
    if "://" in given:  # a web address: refused as one, where it is read
        return given
    place = Path(os.path.abspath(given))  # not resolved: what leads through a link is refused by name, where it is read
    slash = "/" if given.endswith("/") else ""
    if place.is_relative_to(home):
        return f"{place.relative_to(home).as_posix()}{slash}"
    if not os.path.isabs(given) and ".." not in Path(given).parts and not place.is_file():
        return given
    raise UsageError(
        f"{given} is outside the home {home}, but a council only reads and writes inside it.",
        fix="copy it into the home and name it there; if you mean a file of the home, change into the home first",
    )


def names_a_server(home: Home, environ: Mapping[str, str]) -> bool:
    """True when `database_url` may be set; else who only looks need not wait for all settings to be read and right."""
    if environ.get("COUNCIL_DATABASE_URL"):
        return True
    for name in SETTINGS_FILES:
        try:
            if _SERVER.search((home.root / name).read_bytes()):
                return True
        except OSError:
            continue
    return False


def builtin_personas_dir() -> Path:
    """The personas that ship with the package: inside a wheel, else beside the package (editable install)."""
    packaged = _PACKAGE / "resources" / "personas"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "personas"


def init_home(directory: Path, *, personas_from: Path) -> list[Path]:
    """Returns what was created or, for `.gitignore`, extended; nothing is overwritten. Raises ConfigError."""
    created: list[Path] = []
    try:
        for path, content in home_files(personas_from):
            folder = (directory / path).parent
            if not folder.is_dir():
                folder.mkdir(parents=True)
                created.append(folder)
            try:
                with (directory / path).open("xb") as file:
                    file.write(content)
            except FileExistsError:
                continue
            created.append(directory / path)
        ignored = directory / ".gitignore"
        present = ignored.read_bytes() if ignored.exists() else b""
        missing = [line for line in _GITIGNORE_LINES if line.encode() not in present.splitlines()]
        if missing:
            joint = [""] if present and not present.endswith(b"\n") else []
            with ignored.open("ab") as file:
                file.write("\n".join([*joint, *missing, ""]).encode())
            created.append(ignored)
    except OSError as error:
        is_file = isinstance(error, FileExistsError | NotADirectoryError)
        raise ConfigError(
            f"cannot make a home in {directory}: {error.strerror or error} ({error.filename}).",
            fix="name another folder, or move away the file that stands where a folder belongs."
            if is_file
            else "name a folder that this user can write to.",
        ) from error
    return created


def left_out(directory: Path, read_roots: tuple[str, ...]) -> tuple[str, ...]:
    """Names that the default `read_roots` leave out: those with a dot before them, and what `council init` wrote and nobody
    changed."""

    def is_untouched(path: Path, content: bytes) -> bool:
        try:
            status = path.lstat()  # what is no regular file is not opened: a pipe would be waited for
            return stat.S_ISREG(status.st_mode) and status.st_size == len(content) and path.read_bytes() == content
        except OSError:
            return False

    if read_roots != ("**",):
        return ()
    written = home_files(builtin_personas_dir())
    return (".*", *(path for path, content in written if is_untouched(directory / path, content)))


def home_files(personas_from: Path) -> Iterator[tuple[str, bytes]]:
    from council.settings.table import council_toml_template  # late: finding a home needs none of pydantic

    for name in _FOLDERS:
        yield f"{name}/{README_NAME}", (_PACKAGE / "resources" / "home" / name / README_NAME).read_bytes()
    for persona in sorted(personas_from.iterdir()):
        if persona.is_file() and persona.name != README_NAME and not persona.name.startswith("."):
            yield f"personas/{persona.name}", persona.read_bytes()
    yield "council.toml", council_toml_template().encode()
