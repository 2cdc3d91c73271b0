"""What every test may ask for."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # a shell's background job: every process started here would ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def require_service() -> Callable[[str, bool, str], None]:
    """`require_service("docker", available, "start the docker daemon")`: go on, or skip saying what is absent and how
    to have it. With COUNCIL_TEST_NO_SKIP=1 (continuous integration) an absent service is a failure."""

    def require(name: str, available: bool, how: str) -> None:
        if available:
            return
        if os.environ.get("COUNCIL_TEST_NO_SKIP") == "1":
            pytest.fail(f"{name} absent: {how} (COUNCIL_TEST_NO_SKIP=1 makes this a failure)")
        pytest.skip(f"{name} absent: {how}")

    return require
