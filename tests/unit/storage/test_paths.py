"""The walk, its rules, and a corpus of hostile paths: each is tried as a read and as a write around a canary."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import hashlib
import os
import socket
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.errors import PathRefused, StorageFailed
from council.storage.paths import (
    ALWAYS_DENIED,
    CREDENTIAL_FILES,
    OUTPUT_DENIED,
    ConfinedRoot,
    PathRules,
    check_relative,
)

CANARY = b"canary-7f3a: nobody may ever read this"
REPO = Path(__file__).parents[3]

# What is wrong with the text alone.
LEXICAL: list[tuple[str, str]] = [
    ("", "empty"),
    ("./", "empty"),
    (".", "segment"),
    ("..", "parent"),
    ("../outside/secret.txt", "parent"),
    ("./../outside/secret.txt", "parent"),
    ("../../../../../../../../etc/passwd", "parent"),
    ("docs/../../outside/secret.txt", "parent"),
    ("docs/../.env", "parent"),
    ("docs/..", "parent"),
    ("docs/../docs/good.md", "parent"),
    ("docs/./good.md", "segment"),
    ("././docs/good.md", "segment"),
    ("docs//good.md", "segment"),
    (".//outside", "absolute"),
    (".//etc/passwd", "absolute"),
    ("docs/", "segment"),
    ("docs/.", "segment"),
    ("docs/good.md/", "segment"),
    ("/etc/passwd", "absolute"),
    ("//etc/passwd", "absolute"),
    ("///", "absolute"),
    ("/", "absolute"),
    ("/dev/zero", "absolute"),
    ("/proc/self/environ", "absolute"),
    ("/proc/self/root/etc/passwd", "absolute"),
    ("~", "home"),
    ("~/.ssh/id_rsa", "home"),
    ("~root/.bashrc", "home"),
    ("./~/.env", "home"),
    ("..\\outside\\secret.txt", "backslash"),
    ("docs\\good.md", "backslash"),
    ("docs/..\\..\\outside", "backslash"),
    ("\\\\server\\share\\secret.txt", "backslash"),
    ("C:", "drive"),
    ("C:/Windows/win.ini", "drive"),
    ("c:secret.txt", "drive"),
    ("./C:/secret.txt", "drive"),
    ("https://example.org/plan.html", "web"),
    ("file:///etc/passwd", "web"),
    ("docs/good.md\x00.png", "character"),
    ("\x00", "character"),
    ("docs/good\n.md", "character"),
    ("docs/good\r.md", "character"),
    ("docs/\x1b[2Jgood.md", "character"),
    ("docs/\x7fgood.md", "character"),
    ("docs/\x85good.md", "character"),
    ("docs/go\u200bod.md", "character"),  # zero-width space
    (".e\u200dnv", "character"),  # zero-width joiner
    (".e\u00adnv", "character"),  # soft hyphen
    ("\ufeff.env", "character"),  # byte order mark
    ("docs/\u202ecod.md", "character"),  # right-to-left override
    ("docs/\u2066good.md", "character"),
    ("docs/good\u2028.md", "character"),  # line separator
    ("docs/good\u2029.md", "character"),
    ("docs/\ud800.md", "character"),  # lone surrogate
    ("docs/\udcff.md", "character"),  # what surrogateescape makes of a stray byte
    ("docs/\ue000.md", "character"),  # private use
    ("docs/\U000f0000.md", "character"),
    ("docs/\u0378.md", "character"),  # unassigned
    ("docs/\U000e0041.md", "character"),  # tag character
    ("\u2025/outside/secret.txt", "unicode"),  # two dot leader
    ("\uff0e\uff0e/outside/secret.txt", "unicode"),  # full-width dots
    ("\u2024\u2024/outside/secret.txt", "unicode"),  # one dot leaders
    ("docs\uff0fgood.md", "unicode"),  # full-width solidus
    ("..\uff0foutside\uff0fsecret.txt", "unicode"),
    ("\uff0fetc\uff0fpasswd", "unicode"),
    ("docs\uff3cgood.md", "unicode"),  # full-width backslash
    ("\uff5e/.env", "unicode"),  # full-width tilde
    ("\uff23\uff1a/secret.txt", "unicode"),  # full-width drive
    ("\uff0eenv", "unicode"),
    (".\uff45nv", "unicode"),
    (".ⅇnv", "unicode"),  # double-struck e
    ("ſecrets.txt", "unicode"),  # long s
    ("docs/\u2100.md", "unicode"),  # a sign that spells a/c
    ("docs/good\u2026md", "unicode"),  # ellipsis
    ("docs/a\u00a0b.md", "unicode"),  # no-break space
    ("docs/ﬁle.md", "unicode"),
    ("docs/good.md.", "trailing"),
    ("docs/good.md ", "trailing"),
    ("docs./good.md", "trailing"),
    ("docs /good.md", "trailing"),
    ("...", "trailing"),
    (".. /outside/secret.txt", "trailing"),
    (".env.", "trailing"),
    (".env ", "trailing"),
    (" ", "trailing"),
    ("docs/\u1680", "trailing"),  # a space that NFKC keeps
    ("a" * 256, "too_long"),
    ("docs/" + "é" * 128 + ".md", "too_long"),  # 259 bytes
    ("a/" * 600 + "a", "too_long"),
    ("../" * 5000 + "etc/passwd", "too_long"),
]

# A plain text that a rule denies, for reading and for writing alike.
DENIED: list[str] = [
    ".env", "./.env", ".ENV", ".Env", ".env.local", ".ENV.PRODUCTION", ".envrc", ".env~", "docs/.env", "docs/deep/.Env",
    ".env/inside.txt", ".git", ".git/config", ".GIT/config", "docs/.git/HEAD", ".ssh/id_rsa", ".SSH/known_hosts",
    ".\u00dfh/known_hosts", ".aws/credentials", ".docker/config.json", ".netrc", ".pgpass", ".npmrc", ".pypirc",
    "id_rsa", "ID_RSA", "id_rsa.pub", "docs/id_ed25519", "id_ecdsa_sk", "secrets", "secrets.yaml", "SECRETS/a.md",
    "docs/secrets.json", "credentials", "Credentials.csv", "server.pem", "SERVER.PEM", "tls/server.key",
    "tls/server.\u212aey", "a.p12", "a.pfx", "a.kdbx", "a.keystore", ".council/lock", ".Council/home.json",
    "session_states/marcus.json", "Session_States/archive/x.md", "commands/task.json", "COMMANDS/task.json", "commands",
    "commands/failed/x.json",
]  # fmt: skip

# What is really there, in the fixture below; plain in its text and denied by no rule.
PLANTED: list[tuple[str, str]] = [
    ("link_file.md", "symlink"),
    ("link_relative.md", "symlink"),
    ("link_inside.md", "symlink"),
    ("link_env.md", "symlink"),
    ("link_loop.md", "symlink"),
    ("link_loop.md/x.md", "symlink"),
    ("link_dangling.md", "symlink"),
    ("link_zero.md", "symlink"),
    ("link_null.md", "symlink"),
    ("link_chain.md", "symlink"),
    ("link_dir", "symlink"),
    ("link_dir/secret.txt", "symlink"),
    ("link_dir/new.md", "symlink"),
    ("link_dir/deep/new.md", "symlink"),
    ("link_root/etc/passwd", "symlink"),
    ("link_parent/outside/secret.txt", "symlink"),
    ("link_self/docs/good.md", "symlink"),
    ("link_proc/self/environ", "symlink"),
    ("link_fds/0", "symlink"),
    ("docs/deep/link_up/outside/secret.txt", "symlink"),
    ("docs/deep/link_secret.md", "symlink"),
    ("pipe.md", "special"),
    ("docs/pipe.md", "special"),
    ("socket.md", "special"),
    ("docs", "directory"),
    ("docs/deep", "directory"),
    ("docs/good.md/x.md", "not_a_folder"),
    ("pipe.md/x.md", "not_a_folder"),
    ("socket.md/x.md", "not_a_folder"),
]
# Harmless to replace, since a rename replaces the name and not the bytes behind it; reading would leak.
PLANTED_FOR_READERS: list[tuple[str, str]] = [
    ("hard.md", "hard_link"),
    ("docs/hard_env.md", "hard_link"),
    ("huge.md", "too_large"),
    ("absent.md", "not_found"),
    ("absent/absent.md", "not_found"),
]
FOR_WRITERS: list[str] = [
    "personas/marcus.md", "Personas/new.md", "council/errors.py", "COUNCIL/__init__.py", "tests/test_x.py",
    "pyproject.toml", "PyProject.toml", ".bashrc", ".github/workflows/ci.yml", "docs/.hidden/x.md", "docs/.x.md.ab.tmp",
    ".gitignore", ".vscode/tasks.json",
]  # fmt: skip

BENIGN: list[str] = [
    "a", "good.md", "docs/good.md", "./docs/good.md", "docs/deep/er/still.md", "Résumé.md",
    "docs/Re\u0301sume\u0301.md",
    "café/menu.md", "Über uns.md", "naïve façade.txt", "São Paulo/relatório.md", "Żółć.md", "Ωmega/λ.md", "Привет.md",
    "日本語/設計.md", "한국어.md", "עברית.md", "العربية.md", "हिन्दी.md", "ไทย.md", "emoji 🚀.md", "a b c.md",
    "plan (final).md", "plan (final) (2).md", "[draft] plan.md", "{x}.md", "it's.md", 'say "hi".md', "50% & more.md",
    "a+b=c.md", "#1.md", "@home.md", "$HOME.md", "-rf.md", "--help.md", "a;b.md", "a|b.md", "*.md", "what?.md",
    "10:30.md",
    "UPPER.MD", "x" * 255, "/".join(["d"] * 200), "no-extension", "a..b.md", "a...b", "environment.md", "my.env.md",
    "keys.md", "keynote.txt", "docs/commands/x.md", "docs/council/x.md", "docs/tests/x.md", "monkey", "secret.md",
    "credential.md", "pem.md", "gitignore.md", "x~.md", "~x"[::-1],
]  # fmt: skip

HOSTILE_READS = (
    [(path, reason) for path, reason in LEXICAL] + [(path, "denied") for path in DENIED] + PLANTED + PLANTED_FOR_READERS
)
HOSTILE_WRITES = (
    [(path, reason) for path, reason in LEXICAL] + [(path, "denied") for path in DENIED + FOR_WRITERS] + PLANTED
)


def label(value: object) -> str:
    return ascii(value)[:60]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home full of traps beside an `outside` that holds the canary."""
    outside, home = tmp_path / "outside", tmp_path / "home"
    (home / "docs/deep").mkdir(parents=True)
    (home / "tls").mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_bytes(CANARY)
    (home / "docs/good.md").write_bytes(b"good")
    for trap in (".env", ".ENV.PRODUCTION", "id_rsa", "secrets.yaml", "server.pem", "tls/server.key", "docs/.env"):
        (home / trap).write_bytes(CANARY)
    for folder in (".git", ".ssh", ".aws", ".council", "session_states", "commands", "personas", "council", "tests"):
        (home / folder).mkdir()
        for name in ("config", "credentials", "task.json", "marcus.json", "marcus.md", "errors.py", "lock"):
            (home / folder / name).write_bytes(CANARY)
    links: dict[str, Path | str] = {
        "link_file.md": outside / "secret.txt", "link_relative.md": "../outside/secret.txt",
        "link_inside.md": "docs/good.md", "link_env.md": ".env", "link_loop.md": "link_loop.md",
        "link_dangling.md": outside / "new.md", "link_zero.md": "/dev/zero", "link_null.md": "/dev/null",
        "link_chain.md": "link_file.md", "link_dir": outside, "link_root": "/", "link_parent": "..", "link_self": ".",
        "link_proc": "/proc", "link_fds": "/dev/fd", "docs/deep/link_up": "../../..",
        "docs/deep/link_secret.md": "../../../outside/secret.txt",
    }  # fmt: skip
    for name, target in links.items():
        (home / name).symlink_to(target)
    os.link(outside / "secret.txt", home / "hard.md")
    os.link(home / ".env", home / "docs/hard_env.md")
    os.mkfifo(home / "pipe.md")
    os.mkfifo(home / "docs/pipe.md")
    monkeypatch.chdir(home)  # the address of a socket is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.md")
    (home / "huge.md").write_bytes(CANARY)
    os.truncate(home / "huge.md", (1 << 20) + 1)
    return home


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[ConfinedRoot]:
    (tmp_path / "root").mkdir()
    with ConfinedRoot(tmp_path / "root") as root:
        yield root


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every entry below: its type and permissions, its inode, its bytes or where it points."""
    found = {}
    for top, folders, files in os.walk(folder):
        for name in folders + files:
            path = Path(top, name)
            status = path.lstat()
            if path.is_symlink():
                content = os.fsencode(path.readlink())
            else:
                content = path.read_bytes() if path.is_file() and status.st_size < 4096 else b""
            found[str(path)] = (status.st_mode, status.st_ino, content)
    return found


def test_the_corpus_has_more_than_a_hundred_cases_for_each_direction() -> None:
    assert len(set(HOSTILE_READS)) > 100
    assert len(set(HOSTILE_WRITES)) > 100
    assert len(set(BENIGN)) >= 30


def refusal_of(act: Callable[[], object], path: str) -> PathRefused:
    """How an act on this path is refused; it must be."""
    try:
        act()
    except PathRefused as refused:
        return refused
    raise AssertionError(f"{path!r} is not refused")


def test_a_hostile_path_is_never_read(home: Path) -> None:
    rules = PathRules(ALWAYS_DENIED)

    def read(root: ConfinedRoot, path: str) -> None:
        rules.check(path)
        root.read(path)

    for path, reason in HOSTILE_READS:
        with ConfinedRoot(home) as root:
            refusal = refusal_of(partial(read, root, path), path)
        assert (refusal.reason, path) == (reason, path)
        assert refusal.fix
        assert CANARY.decode() not in str(refusal)
        assert refusal.message.isprintable()


def test_a_hostile_path_is_never_written(home: Path) -> None:
    rules = PathRules(OUTPUT_DENIED)

    def write(root: ConfinedRoot, path: str) -> None:
        rules.check(path)
        root.write_atomic(path, b"overwritten")

    before = snapshot(home.parent)
    for path, reason in HOSTILE_WRITES:
        with ConfinedRoot(home) as root:
            refusal = refusal_of(partial(write, root, path), path)
        assert (refusal.reason, path) == (reason, path)
        assert snapshot(home.parent) == before, path


def test_the_walk_alone_without_rules_stops_what_leads_outside(home: Path) -> None:
    before = snapshot(home.parent)
    for path, reason in LEXICAL + PLANTED:
        with ConfinedRoot(home) as root:
            acts: list[Callable[[], object]] = [
                partial(root.read, path),
                partial(root.write_atomic, path, b"x"),
                partial(root.stage, path, b"x", "run1"),
                partial(root.rename, path, "docs/new.md"),
                partial(root.rename, "docs/good.md", path),
            ]
            assert [refusal_of(act, path).reason for act in acts] == [reason] * len(acts), path
        assert snapshot(home.parent) == before, path


def test_every_known_credential_file_is_denied_at_any_depth_in_any_case() -> None:
    rules = PathRules(ALWAYS_DENIED)
    for pattern in CREDENTIAL_FILES:
        name = pattern.replace("*", "x") if not pattern.startswith(".env") else ".env.local"
        for path in (name, f"docs/deep/{name}", name.upper()):
            assert refusal_of(partial(rules.check, path), path).reason == "denied"


def test_a_denied_path_is_denied_for_output_too() -> None:
    rules = PathRules(OUTPUT_DENIED)
    assert {refusal_of(partial(rules.check, path), path).reason for path in DENIED} == {"denied"}


@pytest.mark.parametrize("path", BENIGN, ids=label)
def test_a_benign_path_is_written_and_read_back(empty: ConfinedRoot, path: str) -> None:
    PathRules(ALWAYS_DENIED).check(path)
    PathRules(OUTPUT_DENIED).check(path)
    empty.write_atomic(path, b"new", sync=False)
    staged = empty.stage(path, b"newer", "20261120-225413-k3f9x2ab")
    assert empty.read(path).data == b"new"
    empty.rename(staged, path)
    assert empty.read(path).data == b"newer"
    assert list(empty.walk(max_entries=1000)) == [path.removeprefix("./")]


def test_calls_that_follow_one_another_open_each_folder_once_and_leave_none_open(empty: ConfinedRoot) -> None:
    with empty.folders() as opened:
        for path in ("out/a.md", "out/b/c.md", "out/b/d.md", "e.md"):
            empty.rename(empty.stage(path, path.encode(), "run1", opened), path, opened)
        assert opened.keys() == {(), ("out",), ("out", "b")}
    assert {path: empty.read(path).data.decode() for path in empty.walk(max_entries=9)} == {
        path: path for path in ("e.md", "out/a.md", "out/b/c.md", "out/b/d.md")
    }
    for fd in opened.values():
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


_PIECES = st.sampled_from(
    ["..", ".", "/", "\\", "~", "", "a", "docs", "C:", "\x00", "\uff0e", "\uff0f", "\u2025", "\u2215", "\u2044", " ",
     "\ud800", "e\u0301", "%2e%2e", "%2f", "\u200b", "ﬀ"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=40), st.lists(_PIECES, max_size=12).map("".join)))
def test_whatever_check_relative_lets_through_stays_below_the_root(path: str) -> None:
    try:
        segments = check_relative(path)
    except PathRefused:
        segments = ("refused",)
    joined = os.path.join("/root/home", *segments)
    assert os.path.normpath(joined) == joined
    assert joined.startswith("/root/home/")
    assert check_relative("/".join(segments)) == segments
    joined.encode()


@given(st.text(max_size=30))
def test_the_rules_raise_nothing_but_path_refused(path: str) -> None:
    outcome = []
    try:
        PathRules(OUTPUT_DENIED, allow=("docs/**/*.md",)).check(path)
        outcome.append("allowed")
    except PathRefused:
        outcome.append("refused")
    assert len(outcome) == 1


@pytest.mark.parametrize(
    ("allow", "path", "allowed"),
    [
        ("**", "a/b/c.md", True),
        ("docs/**", "docs/a/b.md", True),
        ("docs/", "docs/a/b.md", True),
        ("docs/", "DOCS/a/b.md", True),
        ("docs/", "docs", False),
        ("docs/", "docs2/a.md", False),
        ("docs/", "x/docs/a.md", False),
        ("docs/*.md", "docs/a.md", True),
        ("docs/*.md", "docs/a/b.md", False),
        ("docs/**/*.md", "docs/a.md", True),
        ("docs/**/*.md", "docs/a/b/c.md", True),
        ("docs/**/*.md", "docs/a/b/c.txt", False),
        ("*.md", "deep/down/a.MD", True),
        ("*.md", "x.md/a.txt", False),
        ("?.md", "a.md", True),
        ("?.md", "ab.md", False),
        ("a[1].md", "a[1].md", True),
        ("a.md", "abmd", False),
    ],
)
def test_an_allow_pattern_fits_what_it_says(allow: str, path: str, allowed: bool) -> None:
    try:
        PathRules((), (allow,)).check(path)
        outcome = True
    except PathRefused as refusal:
        outcome = refusal.reason != "denied"
    assert outcome is allowed


@pytest.mark.parametrize("path", ["Pay/É.md", "pay/e\u0301.md", "PAY/E\u0301.MD"], ids=ascii)
def test_a_rule_fits_either_normal_form_in_any_case(path: str) -> None:
    for rules in (PathRules(("pay/é.md",)), PathRules(("Pay/E\u0301.md",)), PathRules(("e\u0301*",))):
        with pytest.raises(PathRefused) as refusal:
            rules.check(path)
        assert refusal.value.reason == "denied"


def test_deny_wins_over_allow_and_names_its_rule() -> None:
    rules = PathRules(("docs/private",), ("docs/**",))
    rules.check("docs/public/a.md")
    with pytest.raises(PathRefused) as refusal:
        rules.check("docs/Private/a.md")
    assert refusal.value.data["rule"] == "docs/private"


def test_a_read_tells_time_and_inode(empty: ConfinedRoot) -> None:
    empty.write_atomic("a.md", b"12345")
    status = (empty.root / "a.md").stat()
    read = empty.read("a.md")
    assert (read.data, read.mtime_ns, read.inode) == (b"12345", status.st_mtime_ns, status.st_ino)


def test_what_is_written_while_a_file_is_read_comes_with_its_time(
    empty: ConfinedRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = empty.root / "a.md"
    empty.write_atomic("a.md", b"half")
    os.utime(place, (1, 1))
    real_read = os.read

    def write_and_read(fd: int, count: int) -> bytes:
        if place.stat().st_mtime_ns == 1_000_000_000:
            place.write_bytes(b"all of it")
        return real_read(fd, count)

    monkeypatch.setattr(os, "read", write_and_read)
    read = empty.read("a.md")
    assert (read.data, read.mtime_ns) == (b"all of it", place.stat().st_mtime_ns)


def test_a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_not(empty: ConfinedRoot) -> None:
    empty.write_atomic("a.md", b"12345")
    assert empty.read("a.md", max_bytes=5).data == b"12345"
    with pytest.raises(PathRefused) as refusal:
        empty.read("a.md", max_bytes=4)
    assert refusal.value.reason == "too_large"


def test_a_file_that_grows_while_it_is_read_is_too_large(empty: ConfinedRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    empty.write_atomic("a.md", b"12345")
    real_fstat = os.fstat

    def grow_after(fd: int) -> os.stat_result:
        status = real_fstat(fd)
        os.truncate(empty.root / "a.md", 1_000_000)
        return status

    monkeypatch.setattr(os, "fstat", grow_after)
    with pytest.raises(PathRefused) as refusal:
        empty.read("a.md", max_bytes=10)
    assert refusal.value.reason == "too_large"


@pytest.mark.parametrize("reason", ["symlink", "hard_link", "special", "directory"])
def test_a_file_swapped_between_the_look_and_the_opening_is_refused_by_what_was_opened(
    empty: ConfinedRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    empty.write_atomic("a.md", b"good")
    (tmp_path / "secret.txt").write_bytes(CANARY)
    path = empty.root / "a.md"
    plant: dict[str, Callable[[], None]] = {
        "symlink": lambda: path.symlink_to(tmp_path / "secret.txt"),
        "hard_link": lambda: path.hardlink_to(tmp_path / "secret.txt"),
        "special": lambda: os.mkfifo(path),
        "directory": path.mkdir,
    }
    real_open = os.open

    def swap_and_open(name: str, flags: int, *args: int, dir_fd: int | None = None) -> int:
        path.unlink()
        plant[reason]()
        return real_open(name, flags, *args, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swap_and_open)
    with pytest.raises(PathRefused) as refusal:
        empty.read("a.md")
    assert refusal.value.reason == reason


@pytest.mark.parametrize("path", ["a.md", "docs/a.md"])
@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_what_this_user_may_not_open_is_refused_as_permission(
    empty: ConfinedRoot, monkeypatch: pytest.MonkeyPatch, path: str, number: int
) -> None:
    empty.write_atomic(path, b"good")

    def fail(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(PathRefused) as refusal:
        empty.read(path)
    assert refusal.value.reason == "permission"


def test_a_disk_that_cannot_be_read_is_storage_failed(empty: ConfinedRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    empty.write_atomic("a.md", b"good")

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "read", fail)
    for act in (empty.read, empty.sha256):
        with pytest.raises(StorageFailed) as failure:
            act("a.md")
        assert failure.value.data["errno"] == "EIO"


def test_kind_and_sha256_tell_what_is_there(home: Path) -> None:
    with ConfinedRoot(home) as root:
        assert root.kind("docs/good.md") == "file"
        assert root.kind("docs") == "directory"
        assert root.kind("absent") == "absent"
        assert root.kind("absent/absent.md") == "absent"
        assert root.kind("docs/good.md/x.md") == "absent"
        assert root.kind("pipe.md") == "other"
        assert root.kind("link_file.md") == "other"
        assert root.sha256("docs/good.md") == hashlib.sha256(b"good").hexdigest()
        assert root.sha256("absent/absent.md") is None
        with pytest.raises(PathRefused) as refusal:
            root.kind("link_dir/secret.txt")
    assert refusal.value.reason == "symlink"


def test_replacing_a_hard_link_leaves_the_bytes_behind_its_other_name(home: Path) -> None:
    with ConfinedRoot(home) as root:
        root.write_atomic("hard.md", b"new")
        assert root.read("hard.md").data == b"new"
    assert (home.parent / "outside/secret.txt").read_bytes() == CANARY


def test_a_write_makes_the_missing_folders_and_leaves_only_the_file(empty: ConfinedRoot) -> None:
    empty.write_atomic("a/b/c.md", b"1", mode=0o600)
    empty.write_atomic("a/b/c.md", b"2", mode=0o600)
    assert list(snapshot(empty.root)) == [str(empty.root / part) for part in ("a", "a/b", "a/b/c.md")]
    assert (empty.root / "a/b/c.md").stat().st_mode & 0o777 == 0o600


def test_a_synced_write_syncs_the_file_before_its_rename_and_the_folders_after_and_so_does_unlink(
    empty: ConfinedRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    real_fsync, real_replace, real_unlink = os.fsync, os.replace, os.unlink

    def fsync(fd: int) -> None:
        steps.append("folder" if os.path.isdir(f"/dev/fd/{fd}") else "file")
        real_fsync(fd)

    def replace(*args: object, **kwargs: object) -> None:
        steps.append("rename")
        real_replace(*args, **kwargs)  # type: ignore[arg-type]

    def unlink(*args: object, **kwargs: object) -> None:
        steps.append("unlink")
        real_unlink(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(os, "unlink", unlink)
    empty.write_atomic("new/a.md", b"1")
    assert steps == ["folder", "file", "rename", "folder"]
    steps.clear()
    empty.write_atomic("new/a.md", b"2", sync=False)
    assert steps == ["rename"]
    steps.clear()
    empty.unlink("new/a.md")
    assert steps == ["unlink", "folder"]


def test_however_many_runs_sync_at_once_only_a_few_of_their_files_are_open(
    empty: ConfinedRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [f"out/{run}/{number}.md" for run in range(6) for number in range(8)]
    for path in files:
        empty.write_atomic(path, b"1", sync=False)
    real_fsync, before, most, synced = os.fsync, len(os.listdir("/dev/fd")), 0, 0

    def fsync(fd: int) -> None:
        nonlocal most, synced
        time.sleep(0.01)  # a disk that is busy
        most, synced = max(most, len(os.listdir("/dev/fd"))), synced + 1
        real_fsync(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    with ThreadPoolExecutor(6) as runs:
        for done in [runs.submit(empty.sync, files[run * 8 : run * 8 + 8]) for run in range(6)]:
            done.result()
    assert synced == len(files) + 6
    assert most - before <= 4 * 8, "a run waits for a sync with its files closed"


def test_a_stage_is_hidden_beside_its_target_and_a_second_one_replaces_it(empty: ConfinedRoot) -> None:
    assert empty.stage("out/a.md", b"1", "run1") == "out/.a.md.run1.staged"
    assert empty.stage("out/a.md", b"2", "run1") == "out/.a.md.run1.staged"
    assert empty.kind("out/a.md") == "absent"
    empty.rename("out/.a.md.run1.staged", "out/a.md")
    assert empty.read("out/a.md").data == b"2"
    assert list(empty.walk(max_entries=10)) == ["out/a.md"]


def test_two_names_too_long_to_keep_whole_are_staged_apart(empty: ConfinedRoot) -> None:
    first, second = "é" * 120 + "1.md", "é" * 120 + "2.md"
    staged = [empty.stage(name, name.encode(), "20261120-225413-k3f9x2ab") for name in (first, second)]
    assert staged[0] != staged[1]
    assert all(len(name.encode()) <= 255 for name in staged)
    assert empty.read(staged[0]).data == first.encode()


@pytest.mark.parametrize("tag", ["", "../x", "a/b", ".", "a b", "a\n", "x" * 65])
def test_a_staging_tag_cannot_lead_elsewhere(empty: ConfinedRoot, tag: str) -> None:
    with pytest.raises(PathRefused) as refusal:
        empty.stage("a.md", b"1", tag)
    assert refusal.value.reason == "tag"
    assert snapshot(empty.root) == {}


def test_a_rename_of_nothing_is_refused_and_changes_nothing(empty: ConfinedRoot) -> None:
    empty.write_atomic("a.md", b"1")
    with pytest.raises(PathRefused) as refusal:
        empty.rename("absent.md", "a.md")
    assert refusal.value.reason == "not_found"
    assert empty.read("a.md").data == b"1"


def test_unlink_removes_a_file_or_a_link_itself_but_never_a_folder(home: Path) -> None:
    with ConfinedRoot(home) as root:
        root.unlink("docs/good.md")
        root.unlink("docs/good.md")
        root.unlink("link_file.md")
        with pytest.raises(PathRefused) as missing:
            root.unlink("docs/good.md", missing_ok=False)
        with pytest.raises(PathRefused) as folder:
            root.unlink("docs")
        with pytest.raises(PathRefused) as through_link:
            root.unlink("link_dir/secret.txt")
        assert root.kind("docs/good.md") == "absent"
        assert root.kind("link_file.md") == "absent"
    assert [missing.value.reason, folder.value.reason, through_link.value.reason] == [
        "not_found", "directory", "symlink",
    ]  # fmt: skip
    assert (home.parent / "outside/secret.txt").read_bytes() == CANARY


def test_a_walk_lists_files_in_order_without_links_and_skipped_folders(home: Path) -> None:
    asked: list[str] = []

    def skip(folder: str) -> bool:
        asked.append(folder)
        return folder.startswith((".", "session_states", "commands", "personas", "council", "tests"))

    with ConfinedRoot(home) as root:
        listed = list(root.walk(max_entries=1000, skip=skip))
    assert listed == sorted(
        [".ENV.PRODUCTION", ".env", "docs/.env", "docs/good.md", "docs/hard_env.md", "hard.md", "huge.md", "id_rsa",
         "secrets.yaml", "server.pem", "tls/server.key"]
    )  # fmt: skip
    assert "docs/deep" in asked
    assert not {"link_dir", "link_root", "docs/deep/link_up"} & set(asked)


def test_a_walk_is_sorted_by_whole_paths(empty: ConfinedRoot) -> None:
    paths = ["a-b", "a.md", "a/b", "a/b0", "a0", "b/a/c", "b/a.c", "b"[::-1] + "/z/y/x", "é"]
    for path in paths:
        empty.write_atomic(path, b"", sync=False)
    (empty.root / os.fsdecode(b"\xff.md")).write_bytes(b"")  # a name that no path can spell
    assert list(empty.walk(max_entries=100)) == sorted(paths)


def test_a_walk_over_its_limit_says_so_after_the_first_entries(empty: ConfinedRoot) -> None:
    for number in range(7):
        empty.write_atomic(f"{number}.md", b"", sync=False)
    listed: list[str] = []
    with pytest.raises(PathRefused) as refusal:
        listed.extend(empty.walk(max_entries=6))  # keeps what came before the refusal
    assert refusal.value.reason == "too_many"
    assert listed == [f"{number}.md" for number in range(6)]
    assert len(list(empty.walk(max_entries=7))) == 7


@pytest.mark.parametrize("broken", ["write", "fsync", "replace", "close", "open", "mkdir"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.EDQUOT])
def test_a_failing_disk_is_storage_failed_and_leaves_the_old_file_and_no_other(
    empty: ConfinedRoot, monkeypatch: pytest.MonkeyPatch, broken: str, number: int
) -> None:
    empty.write_atomic("old/a.md", b"old")
    before = snapshot(empty.root)
    real: Callable[..., object] = getattr(os, broken)

    def fail(*args: object, **kwargs: object) -> object:
        if broken == "open" and not (isinstance(args[1], int) and args[1] & os.O_CREAT):
            return real(*args, **kwargs)
        if broken == "close":
            is_folder = stat.S_ISDIR(os.fstat(args[0]).st_mode)  # type: ignore[arg-type]
            real(*args, **kwargs)
            if is_folder:  # no system fails that
                return None
        raise OSError(number, os.strerror(number))

    path = "new/a.md" if broken == "mkdir" else "old/a.md"
    with monkeypatch.context() as patch:
        patch.setattr(os, broken, fail)
        with pytest.raises(StorageFailed) as failure:
            empty.write_atomic(path, b"new")
    assert os.strerror(number) in failure.value.message
    assert failure.value.fix
    assert failure.value.data["errno"] == errno.errorcode[number]
    assert snapshot(empty.root) == before


def test_a_write_over_the_file_size_limit_is_storage_failed_and_leaves_nothing(tmp_path: Path) -> None:
    script = """
        import pathlib, resource, sys
        from council.errors import StorageFailed
        from council.storage.paths import ConfinedRoot
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        with ConfinedRoot(pathlib.Path(sys.argv[1])) as root:
            try:
                root.write_atomic("a.md", b"x" * 2000)
            except StorageFailed as failure:
                print(failure.data["errno"])
    """
    done = run_python(script, str(tmp_path))
    assert done.stdout.split() == ["EFBIG"]
    assert snapshot(tmp_path) == {}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_file_system_that_takes_no_files_is_storage_failed() -> None:
    with ConfinedRoot(Path("/proc/self")) as root:
        for path in ("a.md", "folder/a.md"):
            with pytest.raises(StorageFailed) as failure:
                root.write_atomic(path, b"x")
            assert failure.value.fix


def test_an_absent_root_and_a_closed_one_are_storage_failed(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed):
        ConfinedRoot(tmp_path / "absent")
    root = ConfinedRoot(tmp_path)
    root.close()
    root.close()
    with pytest.raises(StorageFailed):
        root.read("a.md")


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="needs /dev/fd")
def test_no_descriptor_is_left_open_after_refusals_and_successes(home: Path) -> None:
    gc.collect()  # what earlier tests left is closed now, and not meanwhile
    with ConfinedRoot(home) as root:
        before = len(os.listdir("/dev/fd"))
        for path, _ in HOSTILE_READS:
            for act in (root.read, root.kind, root.sha256):
                with contextlib.suppress(PathRefused):
                    act(path)
        root.write_atomic("docs/deep/x.md", b"x")
        assert list(root.walk(max_entries=1000))
        assert len(os.listdir("/dev/fd")) == before


def run_python(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *args],
        capture_output=True, text=True, check=True, timeout=60, env={**os.environ, "PYTHONPATH": str(REPO)},
    )  # fmt: skip


_SWAP = """
    import ctypes, os, sys
    exchange = ctypes.CDLL(None).renameat2
    exchange.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    one, other = map(os.fsencode, sys.argv[1:])
    assert exchange(-100, one, -100, other, 2) == 0
    print("swapping", flush=True)
    tests = os.getppid()
    while os.getppid() == tests:  # ends with them, however they end
        exchange(-100, one, -100, other, 2)
"""


@pytest.fixture
def swapped(tmp_path: Path) -> Iterator[Path]:
    """A home where `swap/` is a folder one moment and a link to the folder of the canary the next, all the time."""
    outside, home = tmp_path / "outside", tmp_path / "home"
    (home / "swap").mkdir(parents=True)
    outside.mkdir()
    (home / "swap/note.md").write_bytes(b"good")
    (outside / "note.md").write_bytes(CANARY)
    (home / "decoy").symlink_to(outside)
    swapper = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_SWAP), home / "swap", home / "decoy"], stdout=subprocess.PIPE, text=True
    )
    assert swapper.stdout is not None
    assert swapper.stdout.readline() == "swapping\n"
    yield home
    swapper.kill()
    swapper.wait()
    swapper.stdout.close()


needs_exchange = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "renameat2"), reason="the race is driven by Linux's RENAME_EXCHANGE"
)


def naive_read(home: Path, relative: str) -> bytes:
    """What the walk replaces: resolve, compare, open."""
    try:
        if not os.path.realpath(home / relative).startswith(f"{home}/"):
            return b"refused"
        with open(home / relative, "rb") as file:
            return file.read()
    except OSError:  # realpath itself stumbles over the swap
        return b"refused"


@needs_exchange
def test_a_folder_swapped_for_a_link_leaks_from_a_naive_check_and_never_from_the_walk(swapped: Path) -> None:
    naive_leaks = 0
    give_up_at = time.monotonic() + 8
    while naive_leaks < 3 and time.monotonic() < give_up_at:
        naive_leaks += naive_read(swapped, "swap/note.md") == CANARY

    outcomes = {"good": 0, "refused": 0, "leaked": 0}
    with ConfinedRoot(swapped) as root:
        for _ in range(20_000):
            try:
                outcomes["good" if root.read("swap/note.md").data == b"good" else "leaked"] += 1
            except PathRefused:
                outcomes["refused"] += 1

    assert naive_leaks > 0
    assert outcomes["leaked"] == 0
    assert outcomes["good"] > 0
    assert outcomes["refused"] > 0


@needs_exchange
def test_a_folder_swapped_for_a_link_never_takes_a_write_outside(swapped: Path) -> None:
    before = snapshot(swapped.parent / "outside")
    outcomes = {"written": 0, "refused": 0}
    with ConfinedRoot(swapped) as root:
        for number in range(3_000):
            try:
                root.write_atomic(f"swap/{number % 50}.md", b"new", sync=False)
                outcomes["written"] += 1
            except PathRefused:
                outcomes["refused"] += 1
    assert snapshot(swapped.parent / "outside") == before
    assert outcomes["written"] > 0
    assert outcomes["refused"] > 0


def test_readers_of_a_file_that_is_replaced_all_the_time_see_whole_versions(empty: ConfinedRoot) -> None:
    versions = [bytes([letter]) * 50_000 for letter in b"ab"]
    empty.write_atomic("a.md", versions[0])
    stop = threading.Event()

    def replace() -> None:
        while not stop.is_set():
            for version in versions:
                empty.write_atomic("a.md", version, sync=False)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        seen = {empty.read("a.md").data for _ in range(2_000)}
    finally:
        stop.set()
        writer.join()
    assert seen <= set(versions)


def test_listed_from_many_threads_at_once_nothing_is_ever_missing(empty: ConfinedRoot) -> None:
    names = [f"{number:03}.md" for number in range(300)]
    for name in names:
        (empty.root / name).write_text("x")
    with ThreadPoolExecutor(4) as threads:
        walks = [threads.submit(lambda: list(empty.walk(max_entries=1000))) for _ in range(200)]
    assert {tuple(walk.result()) for walk in walks} == {tuple(names)}
