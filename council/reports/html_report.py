"""`council report`: one page with everything that an explanation says, its charts, the decision and the transcript.

Self-contained: no script, no remote load; a policy in the page itself forbids both. Everything from agents, files and
providers is escaped by the template engine, by ElementTree (charts) or by a Markdown parser without HTML, links and images.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from council import __version__
from council.artifacts.page import PageSpeech
from council.artifacts.render import without_brackets
from council.reports import charts
from council.reports import explain_words as words
from council.reports.agent_markdown import AgentMarkdown, Excerpts
from council.reports.explain import ExplainedRun, Explanation
from council.safety.untrusted import plain_line
from council.turns.costs import told_cost

REPORT_TEMPLATES = Path(__file__).parent / "templates"


def render_html(explained: ExplainedRun) -> str:
    """The whole page, as a file of its own."""
    style = (REPORT_TEMPLATES / "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    template = report_environment().get_template("report.html")
    return template.render(
        **report_values(explained),
        style=Markup(style),  # noqa: S704  our own file
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        version=__version__,
    )


def report_environment(*folders: Path) -> Environment:
    """The templates of these folders and those of the report. Their filters tell times, figures and steps in words, and an
    agent's text as one line."""
    loader = FileSystemLoader([*folders, REPORT_TEMPLATES])
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    told = (
        words.duration, words.number, words.clock, words.lines_read, words.outcome_of, words.change_words,
        words.mended_words, words.asked_for, words.call_of,
    )  # fmt: skip
    made.filters.update({function.__name__: function for function in told})
    made.filters["cost"] = told_cost
    made.filters["worded"] = str  # advice, which another door says in words of its own
    made.filters["plain"] = lambda text, max_chars=1_000: plain_line(str(text), max_chars)
    return made


def report_values(explained: ExplainedRun) -> dict[str, Any]:
    """The values of `run_body.html`, the part that the file and the served page have in common."""
    told = explained.explanation
    begins = {read.id: f"{words.lines_read(read)}\n{read.excerpt}" for read in told.reads if read.id}
    markdown = AgentMarkdown(begins, Excerpts(explained.sources))
    return {
        "told": told,
        "words": words,
        "page": explained.page,
        "markdown": markdown,
        "inline": markdown.inline,
        "item_of": markdown.item,
        "speech": lambda entry: isinstance(entry, PageSpeech),
        "spelling": lambda entry: without_brackets(plain_line(entry.spelling, 300)),
        "tiles": list(_tiles(told)),
        "positions": charts.positions(told),
        "stances_chart": _chart(charts.stances_chart(told)),
        "timeline_chart": _chart(charts.timeline_chart(told)),
        "tokens_chart": _chart(charts.tokens_chart(told.agents)),
        "latency_chart": _chart(charts.latency_chart(told)),
    }


def _chart(svg: str | None) -> Markup | None:
    return None if svg is None else Markup(svg)  # noqa: S704  ElementTree escaped it


def _tiles(told: Explanation) -> Iterator[tuple[str, str, str]]:
    """The label, the value and the note of each."""
    tokens, times = told.tokens, told.times
    yield "time", words.duration(times.total_s), f"at work {words.duration(times.working_s)}"
    if not told.agents:
        return
    failed = sum(agent.failed for agent in told.agents)
    yield "calls", words.number(told.calls_counted), f"{failed} failed"
    note = f"{tokens.input:,} in, {tokens.output:,} out"
    if tokens.unknown_calls:
        unknown = f"unknown for {words.counted(tokens.unknown_calls)}"
        note = unknown if words.is_uncounted(told) else f"{note}; {unknown}"
    yield "tokens", "unknown" if words.is_uncounted(told) else words.number(tokens.input + tokens.output), note
    note = "USD, by the prices of the run" if told.cost_usd else ""
    if told.cost_usd is None:
        note = "no price known"
        if told.charged.cost_usd:
            note = f"{told_cost(told.charged.cost_usd)} charged to the budget"
    yield "cost", told_cost(told.cost_usd).removesuffix(" USD"), note
    unexplained = sum(not change.evidence for change in told.changes)
    note = "all on new evidence" if told.changes else "nobody changed their mind"
    if unexplained:
        note = f"{unexplained} unexplained"
    yield "minds changed", str(len(told.changes)), note
    in_vain = sum(bool(read.error_code) for read in told.reads)
    note = "all brought something" if told.reads else "nothing was asked for"
    yield "reads", str(len(told.reads) - in_vain), f"{in_vain} more brought nothing" if in_vain else note
    waited = sum(retry.wait_s for retry in told.retries) + times.waiting_s
    note = f"{words.duration(waited)} waited" if waited else "none"
    yield "retries, waits", f"{len(told.retries)}, {len(told.waits)}", note
