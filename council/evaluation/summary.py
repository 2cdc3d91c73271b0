"""An evaluation in numbers, for programs (`as_json`), for a terminal (`as_text`) and as a page (`as_markdown`). Pure.

Says of itself what it does not show: answers from a script or a cassette prove the arithmetic only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from council.evaluation.evaluate import EvaluationEnd
from council.evaluation.grading import AnsweredQuestion
from council.evaluation.meter import Expense
from council.evaluation.self_consistency import Ballot
from council.evaluation.statistics import ARMS, RULE, Arm, EvaluationFigure, EvaluationVerdict, Figures, QuestionRow
from council.safety.markdown import for_markdown
from council.safety.untrusted import plain_line

REHEARSED = {"scripted": "a script", "cassette": "a cassette"}
_NAMES: Mapping[Arm, str] = {"single": "single answer", "vote": "vote", "council": "council"}
_CELL_CHARS = 80


@dataclass(frozen=True)
class Report:
    """`providers`: of the models that answered. `asked`: how many questions. `everything`: spent on all of them."""

    id: str
    folder: str
    place: str
    model: str
    models: Sequence[str]
    providers: Sequence[str]
    protocol: str
    max_rounds: int
    split: str | None
    asked: int
    answered: Sequence[AnsweredQuestion]
    rows: Sequence[QuestionRow]
    figures: Figures
    verdict: EvaluationVerdict
    everything: Expense
    stopped: EvaluationEnd
    temperature: float | None = None

    @property
    def rehearsed(self) -> str:
        """The sentence that stands over answers of no live model, empty over others."""
        by = [REHEARSED[provider] for provider in self.providers if provider in REHEARSED]
        if not by:
            return ""
        what = {"a cassette": "on cassettes", "a script": "with scripted models"}[by[0]]
        proves = f"{what} this proves the arithmetic only, nothing about a model."
        return f"The answers come from {' and '.join(by)}: {proves}"

    def notes(self) -> Iterator[str]:
        if self.rehearsed:
            yield self.rehearsed
        if self.stopped.why:
            done = f"{len(self.rows)} of {self.asked} questions were answered by all arms"
            yield f"Stopped early ({self.stopped.why}): {done}. {self.stopped.message}"
        if self.everything.estimated:
            yield (
                f"The provider did not count the tokens of {self.everything.estimated} of {self.everything.calls} calls; "
                f"they are estimated, at four characters each, in all arms alike."
            )
        if self.temperature == 0:
            yield "The temperature is 0: the ballots of a vote are then much the same, and so is the vote a single answer."
        decided = [each.decided for each in self.answered]
        if degraded := sum(each.status == "degraded" for each in decided):
            yield f"{degraded} of the council's runs ended degraded; their answers count as they are."
        if restated := sum(each.restated for each in decided):
            yield f"{restated} of the council's decisions were asked for again, in the form that the question wants."
        if self.everything.usd is None:
            yield "The price of a model is not known, so neither is the cost; council.toml can set it under [prices]."


def as_json(report: Report) -> dict[str, Any]:
    return {
        "evaluation": report.id,
        "folder": report.folder,
        "results": report.place,
        "model": report.model,
        "models": list(report.models),
        "protocol": report.protocol,
        "max_rounds": report.max_rounds,
        "split": report.split,
        "asked": report.asked,
        "answered": len(report.rows),
        "proves": "arithmetic only" if report.rehearsed else "",
        "verdict": {"word": report.verdict.word, "sentence": report.verdict.sentence, "rule": RULE},
        "figures": asdict(report.figures),
        "spent": asdict(report.everything),
        "stopped": {"why": report.stopped.why, "message": report.stopped.message, "fix": report.stopped.fix},
        "notes": list(report.notes()),
        "questions": [_question(each, row) for each, row in zip(report.answered, report.rows, strict=True)],
    }


def _question(answered: AnsweredQuestion, row: QuestionRow) -> dict[str, Any]:
    decided = answered.decided
    said: dict[Arm, Ballot] = {"single": answered.ballots[0], "vote": answered.vote, "council": decided.answer}
    arms: dict[str, Any] = {
        arm: {
            "answer": said[arm].answer or None,
            "right": row.arms[arm].right,
            "confidence": said[arm].confidence,
            "fault": said[arm].fault,
            **{name: getattr(row.arms[arm].spent, name) for name in ("tokens", "calls", "seconds", "usd")},
        }
        for arm in ARMS
    }
    return {
        "id": row.id,
        "right": list(answered.question.right),
        "run": decided.run_id,
        "status": decided.status,
        "stopped": decided.stopped,
        "restated": decided.restated,
        "ballots": [ballot.answer or None for ballot in answered.ballots],
        "held": [
            {"role": held.role, "round": held.round, "answer": held.answer or None, "confidence": held.confidence}
            for held in decided.held
        ],
        **arms,
    }


def as_text(report: Report) -> str:
    found = report.figures
    lines = [f"{report.folder}: {len(report.rows)} of {report.asked} questions, {report.model}, {report.protocol}", ""]
    table = [_HEAD, *_arm_rows(found)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    lines += ["", *(f"{name:<25}{_interval(value, '+.3f')}" for name, value in _differences(found)), ""]
    lines += [*_flip_lines(found), ""]
    lines += [*(plain_line(note, 1_000) for note in report.notes()), ""] if any(report.notes()) else []
    return "\n".join([*lines, report.verdict.sentence])


_HEAD = ("", "accuracy", "Brier", "ECE", "unreadable", "tokens", "calls", "s", "USD")


def _arm_rows(found: Figures) -> Iterator[tuple[str, ...]]:
    for arm in ARMS:
        of = found.arms[arm]
        failed = f" + {of.failed} failed" if of.failed else ""
        costs = (f"{of.total.tokens:,}", f"{of.total.calls:,}", f"{of.total.seconds:,.1f}", _usd(of.total.usd))
        yield (_NAMES[arm], *map(_interval, (of.accuracy, of.brier, of.ece)), f"{of.unreadable}{failed}", *costs)


def _differences(found: Figures) -> Iterator[tuple[str, EvaluationFigure]]:
    yield "council minus vote", found.council_less_vote
    yield "council minus single", found.council_less_single
    yield "vote minus single", found.vote_less_single


def _flip_lines(found: Figures) -> Iterator[str]:
    counts = found.counts
    yield (
        f"single to council: {counts['good_flips']} good flips ({_interval(found.good_flips)} per question), "
        f"{counts['bad_flips']} bad ({_interval(found.bad_flips)})"
    )
    yield (
        f"members, first to last position: {counts['members_good']} good flips ({_interval(found.members_good)} per "
        f"question), {counts['members_bad']} bad ({_interval(found.members_bad)}), {counts['members_other']} from wrong to "
        f"wrong, {counts['members_kept']} kept"
    )
    if found.first_round.value is not None:
        yield f"the majority of the first round's positions: accuracy {_interval(found.first_round)}"


def _interval(figure: EvaluationFigure, form: str = ".3f") -> str:
    if figure.value is None:
        return "-"
    if figure.low is None or figure.high is None:
        return f"{figure.value:{form}}"
    return f"{figure.value:{form}} [{figure.low:{form}}, {figure.high:{form}}]"


def _usd(usd: float | None) -> str:
    return "unknown" if usd is None else f"{usd:.4f}"


def as_markdown(report: Report) -> str:
    found, spent = report.figures, report.everything
    answered_by = f" (answered: {_cell(', '.join(report.models), 300)})" if set(report.models) - {report.model} else ""
    setup = (
        f"- evaluation: {report.id}, in `{report.place}`; the runs are in its `home/`",
        f"- model: {_cell(report.model)}{answered_by}",
        f"- council: protocol {report.protocol}, at most {report.max_rounds} rounds",
        f"- questions: {len(report.rows)} of {report.asked}" + (f", split {report.split}" if report.split else ""),
        f"- spent in all: {spent.calls:,} calls, {spent.tokens:,} tokens, {_usd(spent.usd)} USD",
    )
    bins = []
    for arm in ARMS:
        for each in found.arms[arm].bins:
            span, sure = f"{each.low:.1f} to {each.high:.1f}", f"{each.mean_confidence:.3f}"
            bins.append((span, _NAMES[arm], str(each.count), sure, f"{each.accuracy:.3f}"))
    costs = [
        (label, *(_interval(getattr(found.arms[arm], name), form) for arm in ARMS))
        for label, name, form in (
            ("tokens", "tokens", ",.0f"),
            ("calls", "calls", ",.1f"),
            ("seconds", "seconds", ",.2f"),
            ("USD", "usd", ",.5f"),
        )
    ]
    tokens = found.vote_to_council_tokens
    share = "an unknown share" if tokens is None else f"{100 * tokens:.0f} %"
    parts = [
        f"# Evaluation of {_cell(report.folder)}",
        f"**{report.verdict.sentence}**",
        *(f"> {_cell(note, 1_000)}" for note in report.notes()),
        "\n".join(setup),
        "## The three arms",
        _table(_HEAD, _arm_rows(found)),
        "Tokens, calls, seconds (of calls under way, added up) and US dollars are those of all questions together. Unreadable "
        "answers count as wrong.",
        _table(("per question", *(_NAMES[arm] for arm in ARMS)), costs),
        "## Differences in accuracy, question by question",
        _table(("", "difference"), ((name, _interval(value, "+.3f")) for name, value in _differences(found))),
        f"Only the council was right on {found.counts['only_council_right']}, only the vote on "
        f"{found.counts['only_vote_right']}.",
        "## Changes of mind",
        "\n".join(f"- {line}" for line in _flip_lines(found)),
        "## Calibration",
        _table(("confidence", "arm", "answers", "mean confidence", "accuracy"), bins),
        "## How the verdict comes about",
        f"{RULE} Here the vote spent {share} of the council's tokens. Intervals: "
        f"{found.resamples:,} bootstrap draws of whole questions, seed {found.seed}, 2.5th to 97.5th percentile.",
        "## Questions",
        _table(
            _QUESTION_HEAD, (_question_row(each, row) for each, row in zip(report.answered, report.rows, strict=True))
        ),
    ]
    return "\n\n".join(parts) + "\n"


_QUESTION_HEAD = ("question", "right", "single", "vote", "council", "tokens vote / council", "run")


def _question_row(answered: AnsweredQuestion, row: QuestionRow) -> tuple[str, ...]:
    decided, vote, arms = answered.decided, answered.vote, row.arms
    tokens = f"{arms['vote'].spent.tokens:,} / {arms['council'].spent.tokens:,}"
    single = _given(answered.ballots[0], right=arms["single"].right)
    voted = f"{_given(vote, right=arms['vote'].right)} ({vote.said or f'{len(answered.ballots)} ballots'})"
    council = _given(decided.answer, right=arms["council"].right)
    right = _cell(", ".join(answered.question.right))
    return (_cell(row.id), right, single, voted, council, tokens, f"`{decided.run_id}`")


def _given(ballot: Ballot, *, right: bool) -> str:
    if not ballot.answer:
        return "✗ unreadable"
    return f"{'✓' if right else '✗'} {_cell(ballot.answer)}"


def _table(head: Sequence[str], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _cell(text: str, max_chars: int = _CELL_CHARS) -> str:
    return for_markdown(plain_line(text, max_chars)).replace("|", "\\|")
