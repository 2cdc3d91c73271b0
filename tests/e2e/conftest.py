"""A fake Gemini server and a home, for tests that start the real daemon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser import chromium
from tests.e2e.gate import Gate
from tests.fake_gemini import FakeGemini
from tests.harness import Daemon, environment, make_home, scripted_home


@pytest.fixture
def fake() -> Iterator[FakeGemini]:
    with FakeGemini() as server:
        yield server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A fresh home whose waits are short."""
    return make_home(tmp_path / "home", settings="settle_s = 0.5\nscan_interval_s = 0.5\n")


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    """A home whose scripted model answers at once."""
    return scripted_home(tmp_path / "home")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for all tests of a file that only look at what becomes of their own files: none of these may end it."""
    with Daemon(scripted_home(tmp_path_factory.mktemp("served") / "home")) as daemon:
        yield daemon.ready()


@pytest.fixture
def env(fake: FakeGemini) -> dict[str, str]:
    """An environment in which the real Gemini client talks to the fake server."""
    return environment(GEMINI_API_KEY="test-key-0123456789abcdef", GOOGLE_GEMINI_BASE_URL=fake.url)


@pytest.fixture
def gate(fake: FakeGemini) -> Iterator[Gate]:
    """What the fake server answers by."""
    gate = Gate()
    fake.reply = gate
    yield gate
    gate.open()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened_browser:
        yield opened_browser
