"""Where keys may be kept, and where they are refused."""

from __future__ import annotations

import base64
import os
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from council.app.home_store import build_key_source
from council.errors import KeysRefused
from council.keys.key_sources import KeyFile, KeySource, key_source, load_or_create, require_keys
from council.keys.keyring import Keyring, hkdf_sha256, listed_keyring, new_key
from council.redaction import Secret
from council.settings import Home, Settings, load_provider_keys

FERNET = base64.urlsafe_b64encode(bytes(range(32))).decode()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / ".council").mkdir(parents=True)
    return tmp_path / "home"


def auto(home: Path, tmp_path: Path, given: str = "", **environ: str) -> KeySource:
    found = {"XDG_CONFIG_HOME": str(tmp_path / "config"), **environ}
    return key_source("auto", None, home, found, Secret(given) if given else None)


def test_a_first_key_is_made_in_a_private_file_outside_the_home(home: Path, tmp_path: Path) -> None:
    source = auto(home, tmp_path)
    keys = load_or_create(source)
    [file] = (tmp_path / "config" / "council" / "keys").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert require_keys(auto(home, tmp_path)).primary.kid == keys.primary.kid
    assert keys.primary.material.reveal() not in "".join(path.read_text() for path in home.rglob("*") if path.is_file())


def test_two_homes_have_keys_of_their_own(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".council").mkdir(parents=True)
    kids = {load_or_create(auto(folder, tmp_path)).primary.kid for folder in (home, other)}
    assert len(kids) == 2


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_may_read_is_refused(home: Path, tmp_path: Path, mode: int) -> None:
    file = tmp_path / "keys.json"
    load_or_create(KeyFile(file, home))
    file.chmod(mode)
    with pytest.raises(KeysRefused, match="chmod 600"):
        KeyFile(file, home).load()


def test_a_file_inside_the_home_is_refused_by_whatever_way_it_is_named(home: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home, target_is_directory=True)
    for path in (home / "keys.json", tmp_path / "link" / "keys.json", home / ".." / "home" / "keys.json"):
        with pytest.raises(KeysRefused, match="inside the home"):
            load_or_create(KeyFile(path, home))
    assert not (home / "keys.json").exists()


def test_a_link_is_refused(home: Path, tmp_path: Path) -> None:
    load_or_create(KeyFile(tmp_path / "keys.json", home))
    os.symlink(tmp_path / "keys.json", tmp_path / "link.json")
    with pytest.raises(KeysRefused, match="regular file"):
        KeyFile(tmp_path / "link.json", home).load()


def test_the_variable_comes_before_the_file_and_a_systemd_credential_before_both(home: Path, tmp_path: Path) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "council-keys").write_text(new_key().material.reveal() + "\n")
    by_variable = load_or_create(auto(home, tmp_path, FERNET))
    by_systemd = load_or_create(auto(home, tmp_path, FERNET, CREDENTIALS_DIRECTORY=str(credentials)))
    assert by_variable.primary.kid == listed_keyring(FERNET, "it").primary.kid
    assert by_systemd.primary.kid != by_variable.primary.kid
    assert not (tmp_path / "config").exists()


def test_of_a_list_of_keys_the_first_is_the_primary(home: Path, tmp_path: Path) -> None:
    newer = new_key().material.reveal()
    keys = load_or_create(auto(home, tmp_path, f"{newer},{FERNET}"))
    assert [key.material.reveal() for key in keys.keys] == [newer, FERNET]
    assert [key.status for key in keys.keys] == ["primary", "active"]


@pytest.mark.parametrize("value", ["short", "!" * 44, base64.b64encode(bytes(31)).decode(), "ü" * 44])
def test_what_is_no_key_is_refused_and_not_repeated(home: Path, tmp_path: Path, value: str) -> None:
    with pytest.raises(KeysRefused) as caught:
        load_or_create(auto(home, tmp_path, value))
    assert value not in str(caught.value)


def test_each_purpose_has_a_key_of_its_own() -> None:
    key = new_key()
    derived = {key.derive("credentials"), key.derive("audit"), key.derive("confirmation")}
    assert len(derived) == 3
    assert all(len(value) == 32 for value in derived)


@pytest.mark.parametrize("length", [4, 16, 32])
def test_keys_are_derived_as_rfc_5869_says(length: int) -> None:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    known = HKDF(algorithm=SHA256(), length=length, salt=None, info=b"purpose").derive(bytes(range(32)))
    assert hkdf_sha256(bytes(range(32)), b"purpose", length) == known


def test_the_variable_in_the_home_is_refused(home: Path, tmp_path: Path) -> None:
    (home / ".env").write_text(f"CREDENTIAL_ENCRYPTION_KEY={FERNET}\n")
    keys = load_provider_keys(Home(home), {})
    with pytest.raises(KeysRefused, match="inside the home"):
        build_key_source(Home(home), Settings(), keys, {"XDG_CONFIG_HOME": str(tmp_path)})


def test_keys_in_the_systems_keyring_are_made_and_found_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import keyring
    from keyring.backend import KeyringBackend

    class InMemory(KeyringBackend):
        priority = 1  # type: ignore[assignment]

        def __init__(self) -> None:
            super().__init__()
            self.kept: dict[tuple[str, str], str] = {}

        def get_password(self, service: str, username: str) -> str | None:
            return self.kept.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            self.kept[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            del self.kept[service, username]

    before = keyring.get_keyring()
    keyring.set_keyring(InMemory())
    try:
        source = key_source("keyring", None, home, {}, None)
        made = load_or_create(source)
        late = source.create(Keyring((new_key(),)))  # as a process does that looked before the first one had made any
        assert late.primary.kid == made.primary.kid
        source.save(made.grown().settled())
        again = require_keys(key_source("keyring", None, home, {}, None))
    finally:
        keyring.set_keyring(before)
    assert again.get(made.primary.kid) is not None
    assert again.primary.kid != made.primary.kid


def test_more_keys_than_a_list_takes_are_refused_and_none_is_left_out() -> None:
    with pytest.raises(KeysRefused, match="more than 400 keys"):
        listed_keyring(",".join(new_key().material.reveal() for _ in range(401)), "the variable")


def test_a_key_file_holds_as_many_keys_as_there_may_be(home: Path, tmp_path: Path) -> None:
    keys = Keyring((new_key(),))
    for _ in range(399):
        keys = keys.grown()
    source = KeyFile(tmp_path / "keys.json", home)
    source.save(keys)
    assert require_keys(source).primary.kid == keys.primary.kid
    with pytest.raises(KeysRefused, match="400 keys already"):
        keys.grown()


def test_noting_where_the_home_is_waits_for_who_changes_the_keys(home: Path, tmp_path: Path) -> None:
    source = auto(home, tmp_path)
    assert isinstance(source, KeyFile)
    load_or_create(source)
    elsewhere = KeyFile(Path(source.name), home.rename(tmp_path / "moved"))
    with ThreadPoolExecutor(1) as pool:
        with source.held():
            keys = require_keys(source)
            noting = pool.submit(elsewhere.note_home)
            assert not wait([noting], 0.2).done
            source.save(keys.grown())
        noting.result(60)
    assert require_keys(elsewhere).primary.kid != keys.primary.kid
