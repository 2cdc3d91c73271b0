"""The report's four pictures: stances by round, the timeline, tokens and latencies per agent.

Values in, SVG out; None where there is nothing to draw. Everything that a picture shows stands in a table beside it,
too. `Svg` draws in numbers and classes, coloured by the page's style sheet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from xml.etree import ElementTree

from council.reports.explain import AgentShare, Explanation
from council.reports.explain_words import counted, duration, plain
from council.reports.time_scale import TimeScale, nice_ceiling
from council.safety.untrusted import plain_line
from council.turns.account import StanceEntry

_WIDTH = 920.0
_CAPITAL = 8.3  # pixels: the mean width of a capital in the font of the page
_NAME_CHARS = 20
_LABELS = _CAPITAL * _NAME_CHARS + 14  # room for names on the left
_COLOURS = 8  # positions beyond share colours; their numbers tell them apart


@dataclass(frozen=True)
class Position:
    """A position and its place in the legend; `colour` from 1."""

    key: str
    number: int
    text: str
    colour: int
    held_by: tuple[str, ...]


def positions(told: Explanation) -> list[Position]:
    """The positions in the order in which they were first taken, with who held each last."""
    held_by: defaultdict[str, list[str]] = defaultdict(list)
    for role, stance in {stance.role: stance for stance in told.stances}.items():
        held_by[stance.key].append(role)
    texts: dict[str, str] = {}
    for stance in told.stances:
        if stance.key:
            texts.setdefault(stance.key, stance.position)
    return [
        Position(key, number, plain(text, 400), (number - 1) % _COLOURS + 1, tuple(held_by[key]))
        for number, (key, text) in enumerate(texts.items(), start=1)
    ]


_ROW = 62.0
_COLUMN = 96.0


def stances_chart(told: Explanation) -> str | None:
    """A row per agent, a column per round; size is confidence, colour and number the position, a line how it moved."""
    if not any(stance.key for stance in told.stances):
        return None
    number_of = {position.key: position.number for position in positions(told)}
    roles = [agent.role for agent in told.agents if any(stance.role == agent.role for stance in told.stances)]
    rounds = sorted({stance.round for stance in told.stances})
    width = max(_WIDTH, _LABELS + _COLUMN * len(rounds))
    step = (width - _LABELS) / len(rounds)
    desc = "; ".join(
        f"{stance.role} in round {stance.round}: "
        + (f"position {number_of[stance.key]}, confidence {stance.confidence:.2f}" if stance.key else "not stated")
        for stance in told.stances
    )
    svg = Svg("stances", width, 34 + _ROW * len(roles), "Stances by round", desc)
    at = {round_no: _LABELS + step * (column + 0.5) for column, round_no in enumerate(rounds)}
    for round_no in rounds:
        svg.text(at[round_no], 18, f"round {round_no}", "tick mid")
    for row, role in enumerate(roles):
        y = 34 + _ROW * (row + 0.5)
        svg.line(_LABELS, y, width, y, "grid")
        svg.text(_LABELS - 12, y + 4, role, "label end", max_chars=_NAME_CHARS)
        changes = {(change.role, change.round): change for change in told.changes}
        own = [stance for stance in told.stances if stance.role == role]
        before: StanceEntry | None = None
        for stance in own:
            if not stance.key:
                continue
            if before is not None:
                change = changes.get((role, stance.round))
                kind = "kept" if change is None else "moved" if change.evidence else "unexplained"
                svg.line(at[before.round], y, at[stance.round], y, kind)
                if change is not None:
                    middle, why = (at[before.round] + at[stance.round]) / 2, ", ".join(change.evidence)
                    svg.text(middle, y - 8, why or "unexplained", f"{kind}-note mid", max_chars=18)
            before = stance
        for stance in own:
            x = at[stance.round]
            if not stance.key:
                svg.circle(x, y, 7, "unstated", f"{role}, round {stance.round}: not stated")
                continue
            number, radius = number_of[stance.key], 9 + 10 * stance.confidence
            hint = f"{role}, round {stance.round}: {stance.position} (confidence {stance.confidence:.2f})"
            if stance.advocate:
                svg.circle(x, y, radius + 4, "advocate", "devil's advocate in this round")
            svg.circle(x, y, radius, f"p{(number - 1) % _COLOURS + 1}", hint)
            svg.text(x, y + 4.5, str(number), "on mid")
    return svg.markup()


_BAR = 18.0
_BEGUN = 12.0  # the width of a step without an end
_LANE = 34.0
_CHAR = 7.5  # the room of a character of a label, with some of the space around it
_RUN = "reading, run"


def timeline_chart(told: Explanation) -> str | None:
    """A lane per agent; bars are calls, hatched where a try had failed and the next was waited for."""
    timed = [step for step in told.steps if step.began_ms is not None]
    if not timed:
        return None
    spans = [(step.began_ms or 0, step.ended_ms or step.began_ms or 0) for step in timed]
    scale = TimeScale(spans, _LABELS, _WIDTH - 24)  # half of a label stands behind the last tick
    roles = [agent.role for agent in told.agents if agent.role]
    lanes = [*roles, _RUN]
    height = 44 + _LANE * len(lanes)
    took = [call for call in told.calls if call.seconds is not None]
    desc = "; ".join(f"{call.step} took {duration(call.seconds)}" for call in took)
    svg = Svg("timeline", _WIDTH, height, "Timeline", desc)
    bottom = 16 + _LANE * len(lanes)
    taken: list[tuple[float, float]] = []  # by labels below the axis; one without room is left out

    def label(x: float, text: str, kind: str) -> None:
        x0, x1 = x - _CHAR * len(text) / 2, x + _CHAR * len(text) / 2
        if all(x1 < left or right < x0 for left, right in taken):
            taken.append((x0, x1))
            svg.text(x, bottom + 20, text, kind)

    for x0, x1, seconds in scale.pauses():
        svg.rect(x0 + 2, 12, x1 - x0 - 4, bottom - 12, "pause", f"nothing was under way for {duration(seconds)}")
        label((x0 + x1) / 2, duration(seconds), "pause-note mid")
    for x, seconds in scale.ticks():
        svg.line(x, 12, x, bottom, "grid")
        label(x, f"+{seconds:g} s" if seconds < 120 else f"+{duration(seconds)}", "tick mid")
    y_of = {lane: 16 + _LANE * (row + 0.5) for row, lane in enumerate(lanes)}
    for lane, y in y_of.items():
        svg.text(_LABELS - 12, y + 4, lane, "label end", max_chars=_NAME_CHARS)
    for attempt in told.attempts[1:]:
        if attempt.began_ms is not None:
            x = scale.x(attempt.began_ms)
            svg.line(x, 6, x, bottom, "attempt", f"attempt {attempt.number}: {attempt.because}")
    calls = {call.step: call for call in told.calls}
    lane_of = {step.name: step.role if step.role in roles and step.kind != "request" else _RUN for step in told.steps}
    for step in timed:
        call, began = calls.get(step.name), step.began_ms or 0
        x, y = scale.x(began), y_of[lane_of[step.name]]
        width = scale.x(step.ended_ms or began) - x
        hint = f"{step.name}: {step.outcome}"
        if step.outcome == "under way":
            svg.rect(x, y - _BAR / 2, _BEGUN, _BAR, "under-way", hint, radius=2)
            continue
        if step.outcome not in ("done", "refused"):
            svg.rect(x, y - _BAR / 2, max(4.0, width), _BAR, "cut", hint)
            svg.cross(x + 2, y, 8, "cut-mark", hint)
            continue
        kind = "aside"
        if call is not None:
            kind = "failed" if call.failure else "closing" if "closing" in call.purpose else "call"
        svg.rect(x, y - _BAR / 2, max(2.5, width), _BAR, kind, f"{step.name}: {duration(step.seconds)}", radius=2)
    for retry in told.retries:
        y = y_of[lane_of.get(retry.step, _RUN)]
        x0, x1 = scale.x(retry.at_ms), scale.x(retry.at_ms + int(retry.wait_s * 1000))
        hint = f"try {retry.attempt} failed ({retry.kind}); {duration(retry.wait_s)} until the next"
        svg.rect(x0, y - _BAR / 2, x1 - x0, _BAR, "retry", hint)
        svg.cross(x0, y, 7, "retry-mark", hint)
    return svg.markup()


_HALF = 450.0
_HALF_NAME_CHARS = 15
_HALF_LABELS = _CAPITAL * _HALF_NAME_CHARS + 14
_ROOM = _HALF - _HALF_LABELS - 24


def tokens_chart(agents: Sequence[AgentShare]) -> str | None:
    """A bar per agent: fresh and cached input, output and thought."""
    if not any(agent.tokens.input + agent.tokens.output for agent in agents):
        return None
    most = nice_ceiling(max(agent.tokens.input + agent.tokens.output for agent in agents))
    desc = "; ".join(f"{_name(a)}: {a.tokens.input} in, {a.tokens.output} out" for a in agents)
    svg = Svg("tokens", _HALF, 40 + _LANE * len(agents), "Tokens per agent", desc)
    for y, agent in _lanes(svg, agents, lambda share: f"{most * share:,.0f}"):
        x = _HALF_LABELS
        tokens = agent.tokens
        for kind, count in (
            ("fresh", tokens.input - tokens.cached),
            ("cached", tokens.cached),
            ("out", tokens.output - tokens.thought),
            ("thought", tokens.thought),
        ):
            width = _ROOM * max(0, count) / most
            svg.rect(x, y - _BAR / 2, width, _BAR, kind, f"{_name(agent)}: {count:,} {_TOKEN_WORDS[kind]}")
            x += width
    return svg.markup()


_TOKEN_WORDS = {"fresh": "input", "cached": "input from the cache", "out": "output", "thought": "thought"}


def latency_chart(told: Explanation) -> str | None:
    """A dot per call; where tries failed, a line leads from the time without their waits."""
    timed = [call for call in told.calls if call.seconds is not None]
    if not timed:
        return None
    most = nice_ceiling(max(call.seconds or 0.0 for call in timed))
    middles = {a.role: median(a.latencies_s) if a.latencies_s else None for a in told.agents}
    medians = {a.role: f"median {duration(middles[a.role])}" for a in told.agents}
    desc = "; ".join(f"{_name(a)}: {counted(len(a.latencies_s))}, {medians[a.role]}" for a in told.agents)
    svg = Svg("latency", _HALF, 40 + _LANE * len(told.agents), "Latency per agent", desc)
    for y, agent in _lanes(svg, told.agents, lambda share: f"{most * share:g} s"):
        if (middle := middles[agent.role]) is not None:
            x = _HALF_LABELS + _ROOM * middle / most
            svg.line(x, y - 11, x, y + 11, "median", f"median {duration(middle)}")
        for number, call in enumerate(call for call in timed if call.role == agent.role):
            at, seconds = y + (number % 3 - 1) * 6, call.seconds or 0.0  # equal times do not hide one another
            x, hint = _HALF_LABELS + _ROOM / most * seconds, f"{call.step}: {duration(seconds)}"
            if call.retries:
                alone = _HALF_LABELS + _ROOM / most * max(0.0, seconds - call.retries_s)
                svg.line(alone, at, x, at, "waited", f"{call.retries} tries failed")
            if call.failure:
                svg.cross(x, at, 9, "failed-mark", f"{hint}, failed ({call.failure})")
            else:
                svg.circle(x, at, 5, "closing dot" if "closing" in call.purpose else "call dot", hint)
    return svg.markup()


def _lanes(svg: Svg, agents: Sequence[AgentShare], tick: Callable[[float], str]) -> Iterator[tuple[float, AgentShare]]:
    """Draws the axis, then each agent's name; yields the middle of its lane."""
    bottom = 8 + _LANE * len(agents)
    for part in range(5):
        x = _HALF_LABELS + _ROOM * part / 4
        svg.line(x, 8, x, bottom, "grid")
        svg.text(x, bottom + 18, tick(part / 4), "tick mid")
    for row, agent in enumerate(agents):
        y = 8 + _LANE * (row + 0.5)
        svg.text(_HALF_LABELS - 10, y + 4, _name(agent), "label end", max_chars=_HALF_NAME_CHARS)
        yield y, agent


def _name(agent: AgentShare) -> str:
    return agent.role or "memory"


_MAX_LABEL_CHARS = 60
Number = float | int


class Svg:
    """A drawing of `width` × `height` units; `name` is unique on the page."""

    def __init__(self, name: str, width: Number, height: Number, title: str, desc: str) -> None:
        self.width = width
        attributes = {
            "class": "chart",
            "viewBox": f"0 0 {_short(width)} {_short(height)}",
            "width": _short(width),
            "height": _short(height),
            "role": "img",
            "aria-labelledby": f"{name}-title {name}-desc",
        }
        self._root = ElementTree.Element("svg", attributes)
        for tag, text in (("title", title), ("desc", desc)):
            ElementTree.SubElement(self._root, tag, id=f"{name}-{tag}").text = plain_line(text, 2_000)

    def rect(
        self, x: Number, y: Number, width: Number, height: Number, kind: str, hint: str = "", *, radius: Number = 0
    ) -> None:
        values = {"x": x, "y": y, "width": max(0, width), "height": height, "rx": radius}
        self._add("rect", kind, hint, values)

    def line(self, x1: Number, y1: Number, x2: Number, y2: Number, kind: str, hint: str = "") -> None:
        self._add("line", kind, hint, {"x1": x1, "y1": y1, "x2": x2, "y2": y2})

    def circle(self, x: Number, y: Number, radius: Number, kind: str, hint: str = "") -> None:
        self._add("circle", kind, hint, {"cx": x, "cy": y, "r": radius})

    def cross(self, x: Number, y: Number, size: Number, kind: str, hint: str = "") -> None:
        half = size / 2
        left, top, along, back = map(_short, (x - half, y - half, size, -size))
        self.path(f"M{left} {top}l{along} {along}m0 {back}l{back} {along}", kind, hint)

    def path(self, course: str, kind: str, hint: str = "") -> None:
        """`course` is ours alone: the value of `d`."""
        self._add("path", kind, hint, {}).set("d", course)

    def text(self, x: Number, y: Number, text: str, kind: str = "label", *, max_chars: int = _MAX_LABEL_CHARS) -> None:
        """`kind` may hold `end` or `mid` for its anchor."""
        element = self._add("text", kind, "", {"x": x, "y": y})
        element.text = plain_line(text, max_chars)

    def markup(self) -> str:
        """The element, everything in it escaped."""
        return ElementTree.tostring(self._root, encoding="unicode")

    def _add(self, tag: str, kind: str, hint: str, values: dict[str, Number]) -> ElementTree.Element:
        places = {key: _short(value) for key, value in values.items()}
        element = ElementTree.SubElement(self._root, tag, {"class": kind, **places})
        if hint:
            ElementTree.SubElement(element, "title").text = plain_line(hint, 300)
        return element


def _short(value: Number) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
