"""What every test may ask for."""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import math
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import certifi
import hypothesis
import pytest

from tests import docker_engine, postgres, warm

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # a shell's background job: every process started here would ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Every process that a test starts makes its keys here, and not among those of whoever runs the tests. Before any module is
# collected: some take the environment as it is then.
_config = tempfile.TemporaryDirectory(prefix="council-tests-config-")
os.environ["XDG_CONFIG_HOME"] = _config.name


# A core that a test builds here, with no environment at all, looks for the folder of the user instead.
setattr(Path, "home", staticmethod(lambda: Path(os.environ["XDG_CONFIG_HOME"])))  # noqa: B010 - mypy allows no assignment

# The warm servers listen in the folder of the process that starts the workers of xdist, so that they share them.
os.environ.setdefault(warm.FOLDER, _config.name)


# Homes of tests lie in memory where it has room: each run of a council waits for a disk to sync some forty times.
_MEMORY, _ROOM = Path("/dev/shm"), 2 << 30
if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


# One authority in the place of 140: every process with a model, and every request that a test sends, would read them all, for
# 20 ms. Nobody outside is asked here, and tests of certificates have their own.
_authority = Path(_config.name) / "authority.pem"
_authority.write_text("".join(Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----")[:2]))
os.environ["SSL_CERT_FILE"] = str(_authority)


# Thousands of processes start here: each would compile the whole package anew where bytecode may not lie beside the sources.
_bytecode = tempfile.TemporaryDirectory(prefix="council-tests-bytecode-")
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    os.environ["PYTHONPYCACHEPREFIX"] = _bytecode.name  # the workers of xdist inherit it


# No duration is proven here: an example may take its time where others work on the machine.
hypothesis.settings.register_profile("suite", deadline=None)
hypothesis.settings.load_profile("suite")


# What is collected stays to the end: to look again and again for garbage in it is a fifth of collecting.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_xdist_auto_num_workers() -> int:
    """Three for each core: most of the time a test waits, for a pause to end or a disk to have room."""
    return 3 * len(os.sched_getaffinity(0))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Each worker of xdist begins to load the test modules at another place: their assertions are rewritten, for 12 s, by
    whoever comes first, and read by the others. Who loaded all in one order would all rewrite all."""
    worker: dict[str, Any] = getattr(session.config, "workerinput", {})
    asked = [session.config.invocation_params.dir / one.partition("::")[0] for one in session.config.args]
    files = sorted({file for path in asked for file in ([path] if path.is_file() else path.rglob("test_*.py"))})
    first = len(files) * int(worker.get("workerid", "gw0")[2:]) // worker.get("workercount", 1)
    for file in [*files[first:], *files[:first]] if worker else []:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # told when it is collected
            importlib.import_module(".".join(file.relative_to(session.config.rootpath).with_suffix("").parts))


_MANY = 100  # tests of a file; several workers may have these, which are short. Others share a database server or a Docker engine


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests begin first; they stand in files of few. Each worker of xdist has an equal part of this list, and takes from
    the end of another's part when its own is done."""
    parts: list[list[pytest.Item]] = [[] for _ in range(getattr(config, "workerinput", {}).get("workercount", 1))]
    files = [list(tests) for _, tests in itertools.groupby(items, key=lambda item: item.path)]
    for tests in sorted(files, key=len) if len(parts) > 1 else files:
        step = len(tests) if len(tests) < _MANY else math.ceil(len(tests) / len(parts))
        for at in range(0, len(tests), step):
            min(parts, key=len).extend(tests[at : at + step])
    items[:] = itertools.chain.from_iterable(parts)


def pytest_unconfigure() -> None:
    _config.cleanup()
    _bytecode.cleanup()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With COUNCIL_TEST_NO_SKIP=1 (continuous integration) a test that was skipped, for whatever reason, is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []  # the workers of xdist have none
    if skipped and os.environ.get("COUNCIL_TEST_NO_SKIP") == "1":
        reporter.write_line(f"{len(skipped)} skipped, and COUNCIL_TEST_NO_SKIP=1 makes that a failure.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def require_service() -> Callable[[str, bool, str], None]:
    """`require_service("docker", available, "start the docker daemon")`: go on, or skip saying what is absent and how
    to have it."""

    def require(name: str, available: bool, how: str) -> None:
        if not available:
            pytest.skip(f"{name} absent: {how}")

    return require


@pytest.fixture(scope="session")
def postgres_programs() -> Path:
    """The folder of PostgreSQL's programs."""
    binaries = postgres.programs()
    if binaries is None:
        pytest.skip("PostgreSQL absent: install Debian's package postgresql")
    return binaries


@pytest.fixture(scope="session")
def postgres_server(postgres_programs: Path) -> Iterator[str]:
    """The URL of a PostgreSQL server of this test process's own."""
    with postgres.server(postgres_programs) as running:
        yield running.url


@pytest.fixture(scope="session")
def prepared_database(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a PostgreSQL database that has the tables and belongs to no home yet."""
    from council.storage.store import Store

    with postgres.database(postgres_server) as url:
        Store.open(tmp_path_factory.mktemp("prepared"), url).close()
        yield postgres.as_template(url)


@pytest.fixture
def postgres_url(postgres_server: str, prepared_database: str) -> Iterator[str]:
    """The URL of a PostgreSQL database with the tables of a home, as the first start would make them, and without a home."""
    with postgres.database(postgres_server, prepared_database) as url:
        yield url


@pytest.fixture
def empty_postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an empty PostgreSQL database, for what proves how its tables come."""
    with postgres.database(postgres_server) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """The setting `database_url` for each backend: None for SQLite."""
    return None if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture(scope="session")
def docker_server() -> Iterator[str]:
    """The address of a Docker engine with the image that Council builds."""
    from council.sandbox.image import build_image

    with contextlib.ExitStack() as stack:
        if docker_engine.can_start() and "DOCKER_HOST" not in os.environ:
            address = stack.enter_context(docker_engine.engine())
        elif docker_engine.reachable():
            address = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
        else:
            how = "start Docker, or install Debian's package docker.io and be root"
            if os.environ.get("COUNCIL_TEST_NO_SKIP") == "1":
                pytest.fail(f"Docker absent: {how} (COUNCIL_TEST_NO_SKIP=1 makes this a failure)")
            pytest.skip(f"Docker absent: {how}")
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("DOCKER_HOST", address)
            if not docker_engine.has_image():
                build_image()
            yield address
