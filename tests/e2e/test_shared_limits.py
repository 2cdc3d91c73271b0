"""What a provider allows is shared by all runs of a daemon: seen from the provider, which notes when each call reached it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_openai import FakeOpenAI, FakeReply, RecordedRequest, error, text
from tests.harness import Daemon, command, drop_command, environment, receipts

LANES = ("a", "b", "c")
PAUSE_S = 2.0


class Provider(FakeOpenAI):
    """Answers the first call when it is told to, and then with `first`; notes when each call came and was answered."""

    def __init__(self, first: FakeReply) -> None:
        self.came_s: list[float] = []
        self.answered_s: list[float] = []
        self.at_once = self.most_at_once = 0
        self.go_on = threading.Event()
        self._first = first
        self._lock = threading.Lock()
        super().__init__(reply=self._answer)

    def _answer(self, request: RecordedRequest) -> FakeReply:
        with self._lock:
            self.came_s.append(time.monotonic())
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        self.go_on.wait(30)
        with self._lock:
            self.at_once -= 1
            self.answered_s.append(time.monotonic())
        return self._first if request.index == 0 else text(f"To request {request.index} I say: so be it.")


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(error(429, "slow down", retry_after=PAUSE_S)) as server:
        yield server


def limited(provider: Provider, **settings: str) -> dict[str, str]:
    keys = {"OPENAI_API_KEY": "sk-test-0123456789abcdef", "OPENAI_BASE_URL": provider.url}
    return environment(**keys, COUNCIL_MODEL="openai:gpt-4o-mini", **settings)


def drop_in_lanes(home: Path) -> None:
    for lane in LANES:
        body = command(f"The task of {lane}.", output_artifact_path=f"artifacts/{lane}.md", session=lane)
        drop_command(home, body, f"{lane}.json")


def all_waits(daemon: Daemon) -> set[str]:
    """What all runs wait for, once each of them does."""
    runs = [daemon.wait("run_started", count=number + 1)["run_id"] for number in range(len(LANES))]
    return {daemon.wait("run_waiting", run_id=run)["reason"] for run in runs}


def test_what_a_provider_asks_of_one_run_all_runs_wait_for(home: Path, provider: Provider) -> None:
    drop_in_lanes(home)
    with Daemon(home, env=limited(provider, COUNCIL_MAX_PROVIDER_CALLS="1")) as daemon:
        daemon.wait("turn_started", count=len(LANES))
        provider.wait_for_requests(1)
        provider.go_on.set()
        daemon.wait("run_ended", count=len(LANES))
    assert [receipt["status"] for receipt in receipts(home)] == ["succeeded"] * len(LANES)
    assert len(provider.came_s) == len(LANES) * 4 + 1
    assert provider.most_at_once == 1
    assert provider.came_s[1] - provider.answered_s[0] >= PAUSE_S


def test_a_pause_too_long_to_be_waited_for_parks_every_run_that_meets_it_and_nobody_asks(
    home: Path, provider: Provider
) -> None:
    drop_in_lanes(home)
    env = limited(provider, COUNCIL_MAX_PROVIDER_CALLS="1", COUNCIL_MAX_INLINE_WAIT_S="1")
    with Daemon(home, env=env) as daemon:
        daemon.wait("turn_started", count=len(LANES))
        provider.wait_for_requests(1)
        provider.go_on.set()
        waits = all_waits(daemon)
        daemon.wait("run_ended", count=len(LANES))
    assert waits == {"provider"}
    assert [receipt["status"] for receipt in receipts(home)] == ["succeeded"] * len(LANES)
    assert provider.came_s[1] - provider.answered_s[0] >= PAUSE_S


def test_a_cancel_ends_runs_that_stand_in_a_providers_queue_or_sit_out_its_pause(home: Path) -> None:
    drop_in_lanes(home)
    with Provider(error(429, "slow down", retry_after=55)) as provider:
        with Daemon(home, env=limited(provider, COUNCIL_MAX_PROVIDER_CALLS="1")) as daemon:
            runs = [daemon.wait("turn_started", count=number + 1)["run_id"] for number in range(len(LANES))]
            provider.wait_for_requests(1)
            provider.go_on.set()
            daemon.wait("model_retry")
            for run in runs:
                drop_command(home, {"type": "cancel", "run": run}, f"cancel-{run}.json")
            ended = [daemon.wait("run_ended", run_id=run)["status"] for run in runs]
        assert ended == ["cancelled"] * len(LANES)
        assert len(provider.came_s) == 1


def test_the_calls_of_a_minute_are_those_of_all_runs_together(home: Path, provider: Provider) -> None:
    provider.go_on.set()
    drop_in_lanes(home)
    env = limited(provider, COUNCIL_MAX_CALLS_PER_MINUTE="5", COUNCIL_MAX_INLINE_WAIT_S="3")
    with Daemon(home, env=env) as daemon:
        waits = all_waits(daemon)
        daemon.stop()
    assert waits == {"provider"}
    assert len(provider.came_s) == 5
