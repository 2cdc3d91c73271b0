"""The pictures of a report."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from council.reports.charts import latency_chart, timeline_chart, tokens_chart


def labels_of(spans: list[tuple[int, int]]) -> list[tuple[float, float]]:
    """Where the labels below the axis of a timeline begin and end, in the font of the page."""
    steps = [
        SimpleNamespace(
            name=f"s{number}", role="", kind="", began_ms=began, ended_ms=ended, outcome="done", seconds=0.01
        )
        for number, (began, ended) in enumerate(spans)
    ]
    told: Any = SimpleNamespace(steps=steps, agents=(), calls=(), attempts=(), retries=())
    drawn = timeline_chart(told)
    assert drawn is not None
    found = [each for each in ElementTree.fromstring(drawn).iter("text") if "mid" in each.attrib["class"]]
    places = [(float(each.attrib["x"]), 3 * len(each.text or "")) for each in found]
    return sorted((x - half, x + half) for x, half in places)


@pytest.mark.parametrize(
    "spans",
    [
        [(0, 12), (62, 74), (124, 136)],
        [(0, 5), (40, 48), (90, 91), (140, 160), (900, 902)],
        [(0, 80)],
        [(0, 100_000)],
    ],
)
def test_labels_of_a_timeline_do_not_run_into_each_other(spans: list[tuple[int, int]]) -> None:
    labels = labels_of(spans)
    assert len(labels) >= 3
    assert all(one[1] < other[0] for one, other in itertools.pairwise(labels))


def test_the_words_of_the_latencies_count_one_call_in_the_singular() -> None:
    agents = [SimpleNamespace(role=role, latencies_s=seconds) for role, seconds in (("A", (1.0,)), ("B", (1.0, 3.0)))]
    calls = [SimpleNamespace(role="A", seconds=1.0, step="a turn", purpose="", retries=0, failure="")]
    told: Any = SimpleNamespace(agents=agents, calls=calls)
    assert "A: 1 call, median 1.00 s; B: 2 calls, median 2.00 s" in str(latency_chart(told))


def test_a_long_name_stands_whole_inside_its_picture() -> None:
    tokens = SimpleNamespace(input=12, output=7, cached=0, thought=0)
    agent: Any = SimpleNamespace(role="WORKSPACE_CONCIERGE", tokens=tokens, latencies_s=())
    step = SimpleNamespace(name="s", role=agent.role, kind="", began_ms=0, ended_ms=9, outcome="done", seconds=0.01)
    told: Any = SimpleNamespace(steps=(step,), agents=(agent,), calls=(), attempts=(), retries=())
    widths_px = {"WORKSPACE_CONC…": 124.3, "WORKSPACE_CONCIERGE": 147.6}  # in the widest font of the page, DejaVu Sans
    for drawn in (tokens_chart([agent]), timeline_chart(told)):
        assert drawn is not None
        names = [each for each in ElementTree.fromstring(drawn).iter("text") if (each.text or "") in widths_px]
        assert [float(each.attrib["x"]) >= widths_px[str(each.text)] for each in names] == [True]
