"""What wakes the inbox, and what does not."""

from __future__ import annotations

from watchdog.events import FileMovedEvent

from council.daemon.watch import _Waker


def test_a_file_that_is_taken_wakes_nobody_and_one_that_is_put_back_does() -> None:
    woken: list[str] = []
    waker = _Waker(woken.append)
    waker.on_any_event(FileMovedEvent("commands/a.json", "commands/.20261120-225413-k3f9x2ab.taken"))
    assert woken == []
    waker.on_any_event(FileMovedEvent("commands/.20261120-225413-k3f9x2ab.taken", "commands/a.json"))
    assert woken == ["a.json"]
