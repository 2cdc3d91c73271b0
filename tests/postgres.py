"""A PostgreSQL server of the tests' own: made in a temporary folder, reached by a socket in it, ended with them."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

_SUPERUSER = "council"
_TIMEOUT_S = 120
_MEMORY = Path("/dev/shm")
_MOST_BYTES = 2 * 1024**3  # more than the servers of all workers ever need


def programs() -> Path | None:
    """The folder of initdb and pg_ctl: of Debian's newest package, or on the PATH; None when there is none."""
    packaged = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    found = sorted(packaged, key=lambda path: int(path.parts[-3]), reverse=True)
    on_path = shutil.which("initdb")
    if found:
        return found[0].parent
    return Path(on_path).resolve().parent if on_path else None


@dataclass(frozen=True)
class Server:
    """A running server: `url` of one of its databases; it can be ended and started again."""

    url: str
    start: Callable[[], None]
    stop: Callable[[], None]


@contextmanager
def server(binaries: Path) -> Iterator[Server]:
    """PostgreSQL refuses root: then its own user runs it, else `nobody`."""
    # A database is 300 files: to make and drop one is half of the work in memory. A socket's path is short.
    is_roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _MOST_BYTES
    folder = Path(tempfile.mkdtemp(prefix="council-pg-", dir=_MEMORY if is_roomy else "/tmp"))
    try:
        command = _as_other(folder)
        data = folder / "data"
        env = {"PATH": f"{binaries}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(folder)}

        def run(*arguments: str) -> None:
            subprocess.run(
                [*command, *arguments], check=True, capture_output=True, timeout=_TIMEOUT_S, cwd=folder, env=env
            )

        run(str(binaries / "initdb"), "-D", str(data), "-U", _SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c max_connections=40"
        options += " -c max_wal_size=64MB"
        control = (str(binaries / "pg_ctl"), "-D", str(data), "-w", "-t", "60")
        start = partial(run, *control, "-l", str(folder / "log"), "-o", options, "start")
        stop = partial(run, *control, "-m", "immediate", "stop")
        start()
        try:
            yield Server(f"postgresql://{_SUPERUSER}@/postgres?host={folder}", start, stop)
        finally:
            stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def database(server_url: str, template: str = "template0") -> Iterator[str]:
    """The URL of a new database of that server: empty, or like its `template`."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        # Sorted as people sort, as most servers do: what counts on the order of bytes fails here.
        order = "LOCALE_PROVIDER icu ICU_LOCALE 'en-US' STRATEGY file_copy"
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" {order}')
        try:
            yield server_url.replace("/postgres?", f"/{name}?")
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def as_template(url: str) -> str:
    """Takes from a database what says whose it is. Its name, for `database`, which wants that nobody is connected to it."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DELETE FROM marks")
        return str(connection.info.dbname)


def _as_other(folder: Path) -> list[str]:
    if os.geteuid() != 0:
        return []
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
