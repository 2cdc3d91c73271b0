"""Time on a chart: pauses are drawn short, and everything lies within the picture, in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from council.reports.time_scale import TimeScale, nice_ceiling

moments = st.integers(min_value=0, max_value=10**11)
spans = st.lists(st.tuples(moments, moments).map(lambda pair: (min(pair), max(pair))), min_size=1, max_size=30)


def test_a_night_in_a_wait_does_not_squeeze_the_work() -> None:
    night = 8 * 3_600_000
    scale = TimeScale([(0, 1000), (1000 + night, 2000 + night)], 0, 1000)
    [(x0, x1, seconds)] = scale.pauses()
    assert seconds == night / 1000
    assert x1 - x0 < 100
    assert scale.x(1000) - scale.x(0) > 400


def test_a_short_gap_is_drawn_to_scale() -> None:
    scale = TimeScale([(0, 1000), (1050, 2000)], 0, 1000)
    assert not list(scale.pauses())
    assert scale.x(1000) == 500


@given(spans=spans, asked=st.lists(moments, max_size=20))
def test_places_are_in_order_and_within_bounds(spans: list[tuple[int, int]], asked: list[int]) -> None:
    width = 60.0 * (len(spans) + 1)
    scale = TimeScale(spans, 0, width)
    places = [scale.x(moment) for moment in sorted(asked)]
    assert places == sorted(places)
    assert all(-0.001 <= place <= width + 0.001 for place in places)
    ticks = list(scale.ticks())
    assert all(-0.001 <= x <= width + 0.001 for x, _ in ticks)
    assert len(ticks) <= 17 * len(scale.stretches)


def test_an_axis_ends_at_the_next_round_number() -> None:
    assert [nice_ceiling(value) for value in (0, 0.9, 1.03, 9_100, 17_300)] == [1.0, 1.0, 1.2, 10_000, 20_000]
