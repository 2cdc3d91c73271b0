"""The one walk for paths that come from commands, models and HTTP (security notes, section 3).

It has three layers, each enough to stop what it names. `check_relative` looks at the text alone, `PathRules` say what may be
named at all, and `ConfinedRoot` sees what is really there. The walk opens one component after another, relative to the open
folder above it, and follows no symbolic link. So nobody can swap a folder between a check and its use. It does not look at
contents: binary, encoding and secrets are the reader's matter.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import heapq
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Literal, NoReturn, Self

from council.errors import PathRefused
from council.storage.files import (
    MAX_NAME_BYTES,
    Syncs,
    as_storage_failed,
    descriptor,
    hidden_name,
    place,
    read_fd,
    storage_failed,
    sync_file,
    sync_folder,
    write_new,
)
from council.storage.globs import Letters, Token, tokens_of

MAX_PATH_CHARS = 1024
MAX_READ_BYTES = 1 << 20  # what a person would still call a text document

# Patterns without a slash fit a name at any depth, patterns with one start at the top, one ending in a slash is a
# folder at the top. See PathRules.
CREDENTIAL_FILES: tuple[str, ...] = (
    ".env*", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".htpasswd", ".vault-token", ".s3cfg", ".boto",
    ".ssh", ".aws", ".azure", ".gcloud", "gcloud", ".docker", ".kube", ".gnupg", ".password-store",
    "id_*", "*.pem", "*.key", "*.ppk", "*.p8", "*.p12", "*.pfx", "*.pkcs12", "*.keystore", "*.jks", "*.jceks", "*.keytab",
    "*.kdb", "*.kdbx", "*.agekey", "*.ovpn", "*.tfstate", "*.tfstate.backup", "*.tfvars", "kubeconfig*", "wallet.dat",
    "secrets*", "secret.json", "secret.y*ml", "*credentials*",
    "service-account*.json", "service_account*.json", "client_secret*.json",
    "*.env", "*adminsdk*.json", "gha-creds-*.json", "token.json", "tokens.json", "*_token.json", "auth.json", "oauth*.json",
    "*accesskeys.csv", "rootkey.csv", "accesstokens.json", "azureprofile.json", "msal_token_cache.json",
    "password*.txt", "password*.csv", "password*.xls*", "password*.json", "htpasswd*", "shadow", "master.passwd", "pgpass*",
    "my.cnf", "rclone.conf", "wg*.conf",
    "wp-config.php", "vault_pass*", "vault-pass*", "recovery-codes*", "backup-codes*", "bitwarden_export*", "lastpass*.csv",
    "1password*", "ssh_host_*", "secring*", "private*.asc", "privatekey.*", "private?key.*", "key3.db", "key4.db", "logins.json",
)  # fmt: skip
ASKS_FOLDER = "artifacts/asks"  # conversations are their person's alone
UPLOADS_FOLDER = "artifacts/uploads"  # never listed: who reads a document there knows its name
ALWAYS_DENIED: tuple[str, ...] = (
    *CREDENTIAL_FILES, ".git", "*.cassette.jsonl", "*.report.html", "council.toml",
    ".council/", "session_states/", "commands/", f"{ASKS_FOLDER}/",
)  # fmt: skip
OUTPUT_DENIED: tuple[str, ...] = (
    "commands/", "personas/", "session_states/", ".council/", ".git/", "council/", "tests/",
    "pyproject.toml", ".*", *ALWAYS_DENIED,
)  # fmt: skip

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a FIFO put there must not hang the daemon. O_NOCTTY: nor a terminal become ours.
_READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FOLDER_MODE = 0o755

# Control, format, surrogate, private, unassigned; line and paragraph separators, which forge lines in logs and prompts.
_REFUSED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_WEB = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

_INSIDE = "name a file inside the folder, relative to it, such as docs/plan.md"
_REASONS: dict[str, tuple[str, str]] = {
    "empty": ("it is empty", _INSIDE),
    "too_long": ("it is too long", f"use at most {MAX_PATH_CHARS} characters, {MAX_NAME_BYTES} bytes per name"),
    "character": ("it contains an invisible or unassigned character", "spell the name with visible characters"),
    "unicode": ("it contains a look-alike of a plainer character", "spell the name with the plain characters"),
    "absolute": ("it is absolute", _INSIDE),
    "home": ("it starts with ~", _INSIDE),
    "backslash": ("it contains a backslash", "separate folders with /"),
    "drive": ("it starts with a drive letter", _INSIDE),
    "web": ("it is a web address, and none is read", "save the page as a file inside the folder, and name that"),
    "segment": ("a part of it is empty or `.`", _INSIDE),
    "parent": ("a part of it is `..`", _INSIDE),
    "trailing": ("a name in it ends with a dot or a space", "remove the dot or space"),
    "denied": ("a rule denies it", "choose a path that the rules allow"),
    "not_found": ("there is no such file", "check the spelling and the folder"),
    "not_a_folder": ("something on the way is a file, not a folder", "check the spelling and the folder"),
    "directory": ("it is a folder", "name a file in it"),
    "special": ("it is a pipe, a socket or a device", "name a regular file"),
    "symlink": ("it leads through a symbolic link", "put the file itself there"),
    "hard_link": ("the file has a second name elsewhere", "put a copy there instead of a hard link"),
    "too_large": ("the file is too large", "split the file, or name a smaller one"),
    "permission": ("this user may not read it", "give the user that runs Council read permission"),
    "too_many": ("there are more files than the limit", "narrow the folder, or raise the limit"),
    "tag": ("the staging tag is not plain", "use letters, digits, - and _"),
}


@functools.lru_cache(maxsize=1024)  # a file is staged, synced and renamed by the same paths
def check_relative(path: str) -> tuple[str, ...]:
    """The segments of a plain relative path, by its text alone; one leading `./` is dropped. Raises PathRefused.

    Accents are welcome in either normal form. A character that NFKC would make another one (a full-width dot, a ligature) is
    not, since a later reader might.
    """
    if len(path) > MAX_PATH_CHARS:
        raise _refused(path, "too_long")
    if not (path.isascii() and path.isprintable()):
        if any(unicodedata.category(char) in _REFUSED_CATEGORIES for char in path):
            raise _refused(path, "character")
        if unicodedata.normalize("NFKC", path) != unicodedata.normalize("NFC", path):
            raise _refused(path, "unicode")
    plain = path.removeprefix("./")
    if not plain:
        raise _refused(path, "empty")
    if "\\" in plain:
        raise _refused(path, "backslash")
    if plain.startswith("/"):
        raise _refused(path, "absolute")
    if plain.startswith("~"):
        raise _refused(path, "home")
    if plain[0].isascii() and plain[0].isalpha() and plain[1:2] == ":":
        raise _refused(path, "drive")
    if _WEB.match(plain):
        raise _refused(path, "web")
    segments = tuple(plain.split("/"))
    for segment in segments:
        if segment in ("", "."):
            raise _refused(path, "segment")
        if segment == "..":
            raise _refused(path, "parent")
        if segment[-1] == "." or segment[-1].isspace():
            raise _refused(path, "trailing")
        if len(segment.encode()) > MAX_NAME_BYTES:
            raise _refused(path, "too_long")
    return segments


class PathRules:
    """Rules for paths: each must fit an `allow` pattern and no `deny` pattern, in any case and normal form.

    `*` and `?` stay within a name, `**` crosses folders. A pattern without a slash fits a name at any depth, one with a slash
    starts at the top. A trailing slash stands for the folder and all below it. A denied folder denies what lies in it; an
    allowed name allows only itself, so allow a folder as `docs/` or `docs/**`.
    """

    def __init__(self, deny: Sequence[str], allow: Sequence[str] = ("**",)) -> None:
        self._deny = tuple((pattern, _tokens(pattern.removesuffix("/"), at_top="/" in pattern)) for pattern in deny)
        self._allow = tuple(
            _tokens(f"{pattern}**" if pattern.endswith("/") else pattern, at_top="/" in pattern) for pattern in allow
        )

    def check(self, relative: str) -> None:
        """Raises PathRefused: `denied` with the `rule` in its data, or what `check_relative` refuses."""
        letters = Letters(_folded("/".join(check_relative(relative))))
        for pattern, tokens in self._deny:
            if letters.reached(tokens) & (letters.end | letters.slashes):
                raise _refused(relative, "denied", rule=pattern)
        if not any(letters.reached(tokens) & letters.end for tokens in self._allow):
            raise _refused(relative, "denied", rule="")


def _tokens(pattern: str, *, at_top: bool) -> list[Token]:
    if len(pattern) > MAX_PATH_CHARS:  # normal forms of many marks in a row take the square of the time
        raise _refused(pattern[:MAX_PATH_CHARS], "too_long")
    return tokens_of(_folded(pattern if at_top else f"**/{pattern}"))


def _folded(text: str) -> str:
    """One spelling for all that a case- or form-insensitive file system might take for the same name."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


OpenFolders = dict[tuple[str, ...], int]  # segments below the root -> a descriptor


@dataclass(frozen=True)
class FileBytes:
    data: bytes
    mtime_ns: int
    inode: int


class ConfinedRoot:
    """A folder opened once; every path is walked below it. Every failure is PathRefused or StorageFailed.

    `root` itself is trusted and may be a symbolic link. It may be used from several threads. Close it, or use it in a
    `with` statement.

    NOTE: a folder that somebody with write access moves out of the root while it is open is still walked. A second name that is
    removed between opening and looking is not seen. Both need an attacker who could read the file anyway.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._fd = -1
        self._syncs = Syncs()
        with as_storage_failed(f"Cannot open the folder {root}"):
            self._fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._syncs.close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def read(self, relative: str, *, max_bytes: int = MAX_READ_BYTES) -> FileBytes:
        """The whole of a regular file with one name. Refused: not_found, not_a_folder, directory, special, symlink,
        hard_link, too_large, permission, and what `check_relative` refuses."""
        with self._reading(relative) as (fd, status):
            if status.st_size > max_bytes:
                raise _refused(relative, "too_large", max_bytes=max_bytes)
            data = read_fd(fd, max_bytes + 1)
            if len(data) > max_bytes:  # it grew since
                raise _refused(relative, "too_large", max_bytes=max_bytes)
            # Its time is asked for after its bytes: one from before would be older than what was written meanwhile.
            return FileBytes(data, os.fstat(fd).st_mtime_ns, status.st_ino)

    def sha256(self, relative: str) -> str | None:
        """The hash of a file of any size; None if there is none. Refuses what `read` refuses, except too_large."""
        try:
            with self._reading(relative) as (fd, _):
                digest = hashlib.sha256()
                while chunk := os.read(fd, 1 << 20):
                    digest.update(chunk)
                return digest.hexdigest()
        except PathRefused as refusal:
            if _is_absence(refusal):
                return None
            raise

    def fingerprint(self, relative: str) -> str | None:
        """The hash like `sha256`, but empty where it would be refused: what is there is no file of ours."""
        try:
            return self.sha256(relative)
        except PathRefused:
            return ""

    def kind(self, relative: str) -> Literal["file", "directory", "absent", "other"]:
        """The kind of what lies there. A symbolic link is `other`; a path that leads through one is refused."""
        try:
            with self._parent(relative) as (folder_fd, name):
                status = _look(relative, folder_fd, name)
        except PathRefused as refusal:
            if _is_absence(refusal):
                return "absent"
            raise
        if status is None:
            return "absent"
        if stat.S_ISDIR(status.st_mode):
            return "directory"
        return "file" if stat.S_ISREG(status.st_mode) else "other"

    def write_atomic(self, relative: str, data: bytes, *, sync: bool = True, mode: int = 0o644) -> None:
        """Put `data` there, whole or not at all, creating missing folders. Refuses to replace anything but a file."""
        with self._parent(relative, create=True, sync=sync) as (folder_fd, name):
            _require_replaceable(relative, folder_fd, name)
            place(folder_fd, name, data, sync=sync, mode=mode)

    @contextlib.contextmanager
    def folders(self) -> Iterator[OpenFolders]:
        """For calls that follow one another: each folder on their ways is opened once, and closed with the block."""
        opened: OpenFolders = {(): os.dup(self._fd)}  # the root may be closed meanwhile
        try:
            yield opened
        finally:
            for fd in opened.values():
                os.close(fd)

    def stage(self, relative: str, data: bytes, tag: str, opened: OpenFolders | None = None) -> str:
        """Write `data` beside its final place, as `.<name>.<tag>.staged`; returns that path for `rename`.

        The same tag replaces what it staged before. Bytes and name are on the medium after `sync`.
        """
        if not _TAG.fullmatch(tag):
            raise _refused(relative, "tag", tag=tag)
        *folders, name = check_relative(relative)
        staged_name = hidden_name(name, f"{tag}.staged")
        staged = "/".join([*folders, staged_name])
        check_relative(staged)  # it can be too long where the final path is not
        with self._parent(relative, create=True, sync=True, opened=opened) as (folder_fd, name):
            _require_replaceable(relative, folder_fd, name)
            try:
                write_new(folder_fd, staged_name, data, sync=False, mode=0o644)
            except FileExistsError:  # of a try that was cut off: nobody reads it before the commit is recorded
                _require_replaceable(staged, folder_fd, staged_name)
                os.unlink(staged_name, dir_fd=folder_fd)
                write_new(folder_fd, staged_name, data, sync=False, mode=0o644)
        return staged

    def sync(self, files: Iterable[str]) -> None:
        """Put the bytes of these files, and the names in their folders, on the medium."""
        by_folder: dict[str, list[str]] = {}
        for file in files:
            by_folder.setdefault(file.rpartition("/")[0], []).append(file)
        self._syncs.wait_for([partial(self._sync, *group) for group in by_folder.items()])

    def sync_folders(self, files: Iterable[str]) -> None:
        """Put the names in the folders of these files on the medium, each folder once."""
        folders = dict.fromkeys(file.rpartition("/")[0] for file in files)
        self._syncs.wait_for([partial(self._sync, folder, ()) for folder in folders])

    def _sync(self, folder: str, files: Iterable[str]) -> None:
        """NOTE: a folder's files one after another: a thread for each costs more of the processor than it saves."""
        with self._parent(f"{folder}/x" if folder else "x") as (folder_fd, _):
            for file in files:
                with _opened(file, folder_fd, file.rpartition("/")[2]) as (fd, _):
                    sync_file(fd)
            sync_folder(folder_fd)

    def rename(self, src: str, dst: str, opened: OpenFolders | None = None) -> None:
        """Move a file over another or to a free name, in existing folders. The names are synced after `sync_folders`."""
        with (
            self._parent(src, opened=opened) as (src_fd, src_name),
            self._parent(dst, opened=opened) as (dst_fd, dst_name),
        ):
            status = _status(src_fd, src_name)
            if reason := "not_found" if status is None else _not_a_file(status):
                raise _refused(src, reason)
            _require_replaceable(dst, dst_fd, dst_name)
            os.replace(src_name, dst_name, src_dir_fd=src_fd, dst_dir_fd=dst_fd)

    def unlink(self, relative: str, missing_ok: bool = True) -> None:
        """Remove a file, or a symbolic link itself, and sync the folder. Refuses a folder."""
        try:
            with self._parent(relative) as (folder_fd, name):
                status = _status(folder_fd, name)
                if status is None:
                    raise _refused(relative, "not_found")
                if stat.S_ISDIR(status.st_mode):
                    raise _refused(relative, "directory")
                with contextlib.suppress(FileNotFoundError):  # somebody else removed it just now
                    os.unlink(name, dir_fd=folder_fd)
                sync_folder(folder_fd)
        except PathRefused as refusal:
            if not (missing_ok and _is_absence(refusal)):
                raise

    def walk(self, *, max_entries: int, skip: Callable[[str], bool] = lambda folder: False) -> Iterator[str]:
        """The regular files below the root, sorted, without following a link.

        `skip` is asked for each folder's relative path. Names that `check_relative` refuses, unreadable folders and
        files that vanish meanwhile are left out. Raises PathRefused `too_many` after the first `max_entries` entries
        (files and folders looked at), so a listing is never short in silence.
        """
        seen = 0
        waiting = [("", True)]  # a stack, the next one last
        while waiting:
            path, is_folder = waiting.pop()
            if path:
                seen += 1
                if seen > max_entries:
                    raise _refused(path, "too_many", max_entries=max_entries)
            if not is_folder:
                yield path
                continue
            listed = self._list(path, max_entries - seen + 1, skip)
            waiting.extend(reversed(listed))

    def _list(self, folder: str, limit: int, skip: Callable[[str], bool]) -> list[tuple[str, bool]]:
        """The first `limit` files and folders in one folder as (path, is a folder), in the order of whole paths."""

        def acceptable(entries: Iterator[os.DirEntry[str]]) -> Iterator[tuple[str, bool]]:
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                with contextlib.suppress(PathRefused):
                    check_relative(path)
                    if entry.is_dir(follow_symlinks=False):
                        yield from [] if skip(path) else [(path, True)]
                    elif entry.is_file(follow_symlinks=False):
                        yield path, False

        try:
            segments = check_relative(folder) if folder else ()
            with (
                as_storage_failed(f"Cannot list {folder or self.root}"),
                self._folder(folder, segments) as fd,
                # Of its own: descriptors that `dup` makes share one position, and of two threads each would miss what the
                # other got.
                descriptor(".", _FOLDER_FLAGS, dir_fd=fd) as own_fd,
                os.scandir(own_fd) as entries,
            ):
                return heapq.nsmallest(limit, acceptable(entries), key=lambda entry: entry[0] + "/" * entry[1])
        except PathRefused:  # gone, swapped for a link, or unreadable since it was listed
            return []

    @contextlib.contextmanager
    def _reading(self, relative: str) -> Iterator[tuple[int, os.stat_result]]:
        """An open regular file with one name, and its status."""
        with self._parent(relative) as (folder_fd, name), _opened(relative, folder_fd, name) as opened:
            yield opened

    @contextlib.contextmanager
    def _parent(
        self, relative: str, *, create: bool = False, sync: bool = False, opened: OpenFolders | None = None
    ) -> Iterator[tuple[int, str]]:
        *folders, name = check_relative(relative)
        try:
            with self._folder(relative, folders, create=create, sync=sync, opened=opened) as folder_fd:
                yield folder_fd, name
        except OSError as error:
            what = f"Cannot {'write' if create else 'use'} {_shown(relative)} in {self.root}"
            raise storage_failed(error, what) from error

    @contextlib.contextmanager
    def _folder(
        self,
        relative: str,
        segments: Sequence[str],
        *,
        create: bool = False,
        sync: bool = False,
        opened: OpenFolders | None = None,
    ) -> Iterator[int]:
        with self.folders() if opened is None else contextlib.nullcontext(opened) as known:
            fd = known[()]
            for depth, segment in enumerate(segments, 1):
                parent, place = fd, tuple(segments[:depth])
                if place not in known:
                    try:
                        known[place] = _open_child(relative, parent, segment, writing=create)
                    except FileNotFoundError:  # a writer's: it makes the folder
                        with contextlib.suppress(FileExistsError):  # somebody else made it just now
                            os.mkdir(segment, _NEW_FOLDER_MODE, dir_fd=parent)
                        if sync:
                            sync_folder(parent)
                        known[place] = _open_child(relative, parent, segment, writing=True)
                fd = known[place]
            yield fd


@contextlib.contextmanager
def _opened(relative: str, folder_fd: int, name: str) -> Iterator[tuple[int, os.stat_result]]:
    before = _look(relative, folder_fd, name)  # opening a device can already act on it, so look first
    if reason := "not_found" if before is None else _unreadable(before):
        raise _refused(relative, reason)
    try:
        fd = os.open(name, _READ_FLAGS, dir_fd=folder_fd)
    except OSError as error:
        _raise_refusal(relative, error)
    try:
        status = os.fstat(fd)  # what was really opened
        if reason := _unreadable(status):
            raise _refused(relative, reason)
        yield fd, status
    finally:
        os.close(fd)


def _open_child(relative: str, folder_fd: int, name: str, *, writing: bool) -> int:
    try:
        return os.open(name, _FOLDER_FLAGS, dir_fd=folder_fd)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):  # a link is the one on Linux, the other on macOS
            status = _status(folder_fd, name)
            is_link = status is not None and stat.S_ISLNK(status.st_mode)
            raise _refused(relative, "symlink" if is_link else "not_a_folder") from error
        if writing:
            raise
        _raise_refusal(relative, error)


def _look(relative: str, folder_fd: int, name: str) -> os.stat_result | None:
    """`_status` for a reader."""
    try:
        return _status(folder_fd, name)
    except OSError as error:
        _raise_refusal(relative, error)


def _raise_refusal(relative: str, error: OSError) -> NoReturn:
    """Raise the refusal that this errno means to a reader; raise any other error as it is."""
    reasons = {
        errno.ENOENT: "not_found", errno.EACCES: "permission", errno.EPERM: "permission", errno.ELOOP: "symlink",
        errno.ENXIO: "special", errno.ENODEV: "special", errno.ENAMETOOLONG: "too_long",
    }  # fmt: skip
    if reason := reasons.get(error.errno or 0):
        raise _refused(relative, reason) from error
    raise error


def _status(folder_fd: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _require_replaceable(relative: str, folder_fd: int, name: str) -> None:
    status = _status(folder_fd, name)
    if status is not None and (reason := _not_a_file(status)):
        raise _refused(relative, reason)


def _not_a_file(status: os.stat_result) -> str | None:
    if stat.S_ISLNK(status.st_mode):
        return "symlink"
    if stat.S_ISDIR(status.st_mode):
        return "directory"
    return None if stat.S_ISREG(status.st_mode) else "special"


def _unreadable(status: os.stat_result) -> str | None:
    """The reason not to read it. No name at all is fine: it was replaced after it was opened, and its bytes are whole."""
    return _not_a_file(status) or ("hard_link" if status.st_nlink > 1 else None)


def _is_absence(refusal: PathRefused) -> bool:
    return refusal.reason in ("not_found", "not_a_folder")


def _refused(path: str, reason: str, **data: object) -> PathRefused:
    why, fix = _REASONS[reason]
    message, why = f"Path {_shown(path)} is refused: {why}.", f"{why}."
    if reason == "not_found":
        message, why = f"There is no file `{_shown(path)[1:-1]}`.", ""
    return PathRefused(message, reason=reason, fix=fix, why=why, path=path, **data)


def _shown(path: str) -> str:
    """Safe for a terminal and a log: repr spells out whatever does not print."""
    return repr(path if len(path) <= 120 else f"{path[:119]}…")
