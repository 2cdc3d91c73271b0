"""The places where keys are kept: the system's keyring, a systemd credential, CREDENTIAL_ENCRYPTION_KEY, or a file
outside the home.

Whoever reads the home must not have its keys: a file inside it, or one that others may read, is refused.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import shlex
import stat
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from council.errors import KeysRefused, StorageFailed
from council.keys.keyring import KEY_FIX, Key, Keyring, keyring_of, listed_keyring, new_key
from council.redaction import Secret
from council.storage.files import as_storage_failed, locked, read_limited, storage_failed, write_atomic

log = logging.getLogger(__name__)

KEY_VARIABLE = "CREDENTIAL_ENCRYPTION_KEY"
SYSTEMD_CREDENTIAL = "council-keys"
KeySourceName = Literal["auto", "keyring", "systemd", "environment", "file"]
_MAX_BYTES = 65_536
_FORMAT = 1
_SERVICE = "council"
KEY_ID_FILE = "key-id"  # in the run-time folder: names the keys of this home, and is no secret
_ID_BYTES = 8
_PATIENCE_S = 60.0  # a desktop may be asking its user for a password


class KeySource(Protocol):
    """`writable`: Council can add and retire keys there by itself."""

    name: str
    writable: bool

    def load(self) -> Keyring | None:
        """Loads the keys. None when nothing is kept there yet. Raises KeysRefused, StorageFailed."""

    def save(self, keyring: Keyring) -> None:
        """Replaces what is kept there, whole. Raises KeysRefused, StorageFailed."""

    def create(self, keyring: Keyring) -> Keyring:
        """Puts `keyring` there unless another process was quicker: then it is that one's. Raises KeysRefused,
        StorageFailed."""

    def held(self) -> AbstractContextManager[None]:
        """Holds the keys, between a `load` and the `save` that builds on it. Raises StorageFailed."""


class KeyFile:
    """A file for its owner only, outside the home."""

    writable = True

    def __init__(self, path: Path, home: Path) -> None:
        self.name = str(path)
        self._path = path
        self._home = home

    def load(self) -> Keyring | None:
        self._require_outside()
        try:
            status = os.lstat(self._path)
        except FileNotFoundError:
            if (aside := _aside(self._path)).exists():
                raise KeysRefused(
                    "the keys of this home were set aside: `council vault keys --remove` took its home for gone.",
                    fix=f"`{shlex.join(('mv', str(aside), str(self._path)))}` puts them back",
                ) from None
            return None
        except OSError as error:
            raise storage_failed(error, f"Cannot read {self._path}") from error
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise KeysRefused(
                f"the key file {self._path} is not a regular file of this user.", fix="name another one with `key_file`"
            )
        if status.st_mode & 0o077:
            raise KeysRefused(
                f"the key file {self._path} can be read by others (mode {stat.S_IMODE(status.st_mode):o}).",
                fix=f"`chmod 600 {self._path}`; if others may have read it, rotate: `council vault rotate`",
            )
        return _decoded(read_limited(self._path, _MAX_BYTES).decode("utf-8", "replace"), self.name)

    def save(self, keyring: Keyring) -> None:
        self._make_folder()
        write_atomic(self._path, _encoded(keyring, self._home).encode(), mode=0o600)

    def create(self, keyring: Keyring) -> Keyring:
        self._make_folder()
        _create_once(self._path, _encoded(keyring, self._home).encode())
        found = self.load()
        if found is None:
            raise StorageFailed(f"{self._path} has disappeared.", fix="keep the key file where it is")
        return found

    def held(self) -> AbstractContextManager[None]:
        return locked(self._path.parent, _PATIENCE_S)

    def note_home(self) -> None:
        """Writes down where its home is now, if it is not where it was, and if that can be written. Raises KeysRefused."""
        if _home_of(self._path) is not None or not os.access(self._path, os.W_OK):
            return
        try:
            with self.held():
                if (keyring := self.load()) is not None:
                    self.save(keyring)
        except StorageFailed as error:
            log.warning("the key file cannot record where its home is: %s", error)

    def _make_folder(self) -> None:
        self._require_outside()
        with as_storage_failed(f"Cannot make {self._path.parent}"):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _require_outside(self) -> None:
        if self._path.resolve().is_relative_to(self._home.resolve()):
            raise KeysRefused(
                f"the key file {self._path} is inside the home, so anyone who can read the home would have the keys.",
                fix="name a file outside it with `key_file`",
            )


class SystemKeyring:
    """The keyring of the desktop or system, by the package `keyring`."""

    name = "the system's keyring"
    writable = True

    def __init__(self, account: str, runtime: Path) -> None:
        self._account = account
        self._runtime = runtime

    def load(self) -> Keyring | None:
        import keyring
        from keyring.errors import KeyringError

        try:
            text = keyring.get_password(_SERVICE, self._account)
        except KeyringError as error:
            raise self._absent(error) from error
        return None if text is None else _decoded(text, self.name)

    def save(self, keyring: Keyring) -> None:
        import keyring as system
        from keyring.errors import KeyringError

        try:
            system.set_password(_SERVICE, self._account, _encoded(keyring))
        except KeyringError as error:
            raise self._absent(error) from error

    def create(self, keyring: Keyring) -> Keyring:
        with self.held():  # a keyring has no "unless there is one"
            found = self.load()
            if found is None:
                self.save(keyring)
            return found or keyring

    def held(self) -> AbstractContextManager[None]:
        return locked(self._runtime, _PATIENCE_S)

    def _absent(self, error: Exception) -> KeysRefused:
        return KeysRefused(
            f"the system's keyring does not answer ({type(error).__name__}).",
            fix='unlock it, or set key_source = "file"',
        )


class GivenKeys:
    """Keys that somebody else keeps, as a list whose first one is the primary: Council only reads them."""

    writable = False

    def __init__(self, name: str, text: Secret) -> None:
        self.name = name
        self._text = text

    def load(self) -> Keyring | None:
        return listed_keyring(self._text.reveal(), self.name)

    def save(self, keyring: Keyring) -> None:
        raise KeysRefused(
            f"Council cannot change {self.name}.",
            fix="put a new key before the present one, separated by a comma, then `council vault rotate`",
        )

    def create(self, keyring: Keyring) -> Keyring:
        raise KeysRefused(f"{self.name} holds no key.", fix=f"put one there; {KEY_FIX}")

    def held(self) -> AbstractContextManager[None]:
        return nullcontext()


def key_source(
    kind: KeySourceName, key_file: str | None, home: Path, environ: Mapping[str, str], given: Secret | None
) -> KeySource:
    """`auto`: a systemd credential if there is one, else CREDENTIAL_ENCRYPTION_KEY (`given`) if it is set, else the file.
    Raises KeysRefused when the one that is named is not there."""
    credential = Path(environ.get("CREDENTIALS_DIRECTORY", "/nonexistent")) / SYSTEMD_CREDENTIAL
    if kind == "keyring":
        return SystemKeyring(_id_of(home), home / ".council")
    if kind == "systemd" or (kind == "auto" and credential.is_file()):
        try:
            text = read_limited(credential, _MAX_BYTES).decode("ascii", "replace")
        except FileNotFoundError:
            raise KeysRefused(
                f"there is no systemd credential {SYSTEMD_CREDENTIAL}.",
                fix=f"add LoadCredential={SYSTEMD_CREDENTIAL}:<file> to the service",
            ) from None
        return GivenKeys(f"the systemd credential {SYSTEMD_CREDENTIAL}", Secret(text))
    if kind == "environment" or (kind == "auto" and given is not None):
        if given is None:
            raise KeysRefused(f"{KEY_VARIABLE} is not set.", fix=f"set it, or leave key_source = {'auto'!r}")
        return GivenKeys(KEY_VARIABLE, given)
    if key_file:
        return KeyFile(home_relative(key_file, home), home)
    # A file for each home: a rotation in one concerns no other.
    return KeyFile(keys_folder(environ) / f"{_id_of(home)}.json", home)


def keys_folder(environ: Mapping[str, str]) -> Path:
    """The folder of this user's key files, each named after the id of its home."""
    base = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if base.startswith("/") else Path(environ.get("HOME") or Path.home()) / ".config"
    return folder / "council" / "keys"


@dataclass(frozen=True)
class HomeKeys:
    """A key file. `home`: where its home was when it was last written, empty where an older version wrote it. `in_use`:
    that home is there, and has these keys."""

    id: str
    path: Path
    home: str
    in_use: bool

    def set_aside(self) -> Path:
        """Renames the file, and deletes nothing: a home that was moved cannot be told from one that is gone. Raises
        StorageFailed."""
        aside = _aside(self.path)
        with as_storage_failed(f"Cannot rename {self.path}"):
            self.path.rename(aside)
        return aside


def all_home_keys(folder: Path) -> list[HomeKeys]:
    """This user's key files, without what they hold. Raises StorageFailed."""
    found = []
    for path in sorted(folder.glob("*.json")):
        home = _home_of(path)
        found.append(HomeKeys(path.stem, path, _noted_home(path), in_use=home is not None))
    return found


def _aside(path: Path) -> Path:
    return path.with_name(f"{path.name}.removed")


def _home_of(path: Path) -> Path | None:
    """The home that a key file names, if it is there and its keys are those of this file."""
    noted = _noted_home(path)
    if not noted:
        return None
    try:
        same = read_limited(Path(noted) / ".council" / KEY_ID_FILE, _MAX_BYTES).decode("ascii", "replace") == path.stem
    except (FileNotFoundError, StorageFailed):
        return None
    return Path(noted) if same else None


def _noted_home(path: Path) -> str:
    try:
        value: Any = json.loads(read_limited(path, _MAX_BYTES))
        return str(value.get("home", ""))
    except (FileNotFoundError, ValueError, AttributeError):
        return ""


def require_keys(source: KeySource) -> Keyring:
    """The keys of a home that has used some before: a new one in their place would open and verify nothing. Raises
    KeysRefused, StorageFailed."""
    found = source.load()
    if found is None:
        raise KeysRefused(
            f"the keys of this home are gone: there are none in {source.name}.",
            fix="restore them from a backup. Without one, move .council/audit.head and .council/council.db away: audit and "
            "vault then start empty, and `council audit renew` accepts that",
        )
    return found


def load_or_create(source: KeySource) -> Keyring:
    """The keys; a first one is made where Council may. Raises KeysRefused, StorageFailed."""
    return source.load() or source.create(Keyring((new_key(),)))


def _id_of(home: Path) -> str:
    """Drawn when it is first asked for; it moves with the home. Raises StorageFailed."""
    path = home / ".council" / KEY_ID_FILE
    try:
        found = read_limited(path, _MAX_BYTES)
    except FileNotFoundError:
        _create_once(path, secrets.token_hex(_ID_BYTES).encode())
        found = read_limited(path, _MAX_BYTES)
    if not re.fullmatch(rb"[0-9a-f]{16}", found):
        raise KeysRefused(
            f"{path} does not contain the id of a set of keys.",
            fix="restore it from a backup, or name a file with `key_file`",
        )
    return found.decode()


def share_keys(home: Path, other: Path) -> None:
    """The home `other`, which is this one's own, has no keys beside this one's. Raises StorageFailed, KeysRefused."""
    (other / ".council").mkdir(mode=0o700, parents=True, exist_ok=True)
    _create_once(other / ".council" / KEY_ID_FILE, _id_of(home).encode())


def _create_once(path: Path, data: bytes) -> None:
    """Whole, unless another process was quicker. Raises StorageFailed."""
    with locked(path.parent, _PATIENCE_S):
        if not os.path.lexists(path):
            write_atomic(path, data)


def home_relative(path: str, home: Path) -> Path:
    return home / Path(path).expanduser()


def _encoded(keyring: Keyring, home: Path | None = None) -> str:
    keys = [{"kid": key.kid, "status": key.status, "key": key.material.reveal()} for key in keyring.keys]
    whose = {"home": str(home.resolve())} if home is not None else {}
    return json.dumps({"version": _FORMAT, **whose, "keys": keys}, indent=2) + "\n"


def _decoded(text: str, where: str) -> Keyring:
    """Raises KeysRefused, without what stands there."""
    broken = KeysRefused(
        f"{where} does not contain keys in the form that Council writes.", fix="restore it from a backup"
    )
    try:
        value: Any = json.loads(text)
        if value["version"] != _FORMAT:
            raise KeysRefused(f"{where} was written by another version.", fix="use the version that wrote it")
        keys = tuple(Key(Secret(str(entry["key"])), entry["status"]) for entry in value["keys"])
    except (ValueError, KeyError, TypeError):
        raise broken from None
    if any(key.status not in ("primary", "active", "retired") for key in keys):
        raise broken
    return keyring_of(keys, where)
