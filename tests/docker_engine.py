"""A Docker engine for tests: one of their own, from Debian's package `docker.io`, else the one that DOCKER_HOST names.

Their own needs root. Its data, its socket and its pid lie in a temporary folder, and it is stopped by that pid.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.harness import wait_until

_DOCKERD = shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def reachable() -> bool:
    """True when the environment's engine answers."""
    import docker
    from docker.errors import DockerException

    with contextlib.suppress(DockerException):
        return bool(docker.from_env(timeout=5).ping())
    return False


def has_image() -> bool:
    """True when an earlier test built the image there."""
    import docker

    from council.sandbox.containers import LOCAL_IMAGE

    return bool(docker.from_env().images.list(name=LOCAL_IMAGE))


def can_start() -> bool:
    return _DOCKERD is not None and os.geteuid() == 0


@contextlib.contextmanager
def engine() -> Iterator[str]:
    """The address of an engine of the tests' own, without a network."""
    folder = Path(tempfile.mkdtemp(prefix="council-docker-", dir="/tmp"))  # a socket's path is short
    assert _DOCKERD is not None
    address = f"unix://{folder}/socket"
    flags = [
        "--iptables=false", "--ip6tables=false", "--bridge=none", f"--data-root={folder}/data",
        f"--exec-root={folder}/exec", f"--pidfile={folder}/pid", f"--host={address}",
        "--add-runtime=runsc=/bin/false",  # a gVisor to be named; nothing is run by it
    ]  # fmt: skip
    environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([_DOCKERD, *flags], stdout=log, stderr=log, env=environment, start_new_session=True)
    try:
        wait_until(
            lambda: b"API listen on" in (folder / "log").read_bytes() or process.poll() is not None,
            "the engine starts", every_s=0.1,
        )  # fmt: skip
        assert process.poll() is None, (folder / "log").read_text()[-2000:]
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)
