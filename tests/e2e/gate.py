"""Who asks the fake provider, and replies that wait, so that a test can look at a run in the middle."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

from tests.fake_gemini import FakeReply, RecordedRequest, text

_PATIENCE_S = 100  # less than the client waits for an answer


def role_of(request: RecordedRequest) -> str:
    """Whose turn a request is, by the rule that stands in every system text."""
    found = re.search(r"You are ([A-Z]+), a member of an AI council", request.system)
    assert found is not None
    return found[1]


def is_closing(request: RecordedRequest) -> bool:
    return "The rounds are over" in "".join(request.texts)


class Gate:
    """A reply function that lets COORDINATOR speak in the rounds and keeps everybody else waiting until it is opened; with
    `held`, it keeps that role waiting, and nobody else."""

    def __init__(self, held: str = "") -> None:
        self._held = held
        self._opened = threading.Event()
        self.first: Callable[[], str] = lambda: "The words of the first speaker."
        self.then: Callable[[RecordedRequest], FakeReply] = lambda request: text("Later words.")

    def __call__(self, request: RecordedRequest) -> FakeReply:
        if self._waits(request):
            self._opened.wait(_PATIENCE_S)
            return self.then(request)
        return text(self.first())

    def _waits(self, request: RecordedRequest) -> bool:
        if self._held:
            return f"You are {self._held}" in request.system
        return "You are COORDINATOR" not in request.system or "The rounds are over" in request.texts[-1]

    def open(self) -> None:
        self._opened.set()
