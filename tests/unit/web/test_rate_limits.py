"""The token bucket: an even pace, a bound on what it remembers."""

from __future__ import annotations

from council.web.rate_limits import RateLimit


class Hands:
    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def test_a_minutes_worth_at_once_then_one_per_interval() -> None:
    clock = Hands()
    limit = RateLimit(60, clock)
    assert [limit.wait_s("a") for _ in range(60)] == [0.0] * 60
    assert limit.wait_s("a") == 1.0
    clock.s = 0.5
    assert limit.wait_s("a") == 0.5
    clock.s = 1.0
    assert limit.wait_s("a") == 0.0
    assert limit.wait_s("b") == 0.0, "another name has a bucket of its own"


def test_a_full_bucket_does_not_grow() -> None:
    clock = Hands()
    limit = RateLimit(2, clock)
    clock.s = 1e6
    assert [limit.wait_s("a") for _ in range(3)] == [0.0, 0.0, 30.0]


def test_a_crowd_of_names_does_not_grow_without_bound() -> None:
    limit = RateLimit(1, Hands())
    limit.wait_s("first")
    assert limit.wait_s("first") > 0
    for number in range(10_000):
        limit.wait_s(str(number))
    assert limit.wait_s("first") == 0.0, "the one that asked longest ago was forgotten"
