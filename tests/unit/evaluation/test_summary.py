"""What a report says of itself, and that nothing in it breaks the page."""

from __future__ import annotations

from typing import Any

import pytest

from council.evaluation.council_arm import CouncilAnswer
from council.evaluation.evaluate import EvaluationEnd
from council.evaluation.grading import AnsweredQuestion, row_of
from council.evaluation.meter import Expense
from council.evaluation.questions import Question
from council.evaluation.self_consistency import Ballot
from council.evaluation.statistics import figures, verdict
from council.evaluation.summary import Report, as_json, as_markdown, as_text

QUESTION = Question(id="q1", question="Where?", accept=["here"])


def report(said: str = "here", **keys: Any) -> Report:
    ballot = Ballot(said, 0.5, said)
    answered = AnsweredQuestion(
        QUESTION, CouncilAnswer("run-1", "succeeded", ballot), (ballot,), Expense(1, 10), Expense(1, 10), Expense(1, 10)
    )
    rows = [row_of(answered)]
    found = figures(rows, resamples=100, seed=0)
    values: dict[str, Any] = {
        "id": "e1",
        "folder": "golden",
        "place": "results/e1",
        "model": "gemini:x",
        "models": ["gemini:x"],
        "providers": ["gemini"],
        "protocol": "independent",
        "max_rounds": 3,
        "split": None,
        "asked": 1,
        "answered": [answered],
        "rows": rows,
        "figures": found,
        "verdict": verdict(found),
        "everything": Expense(2, 20),
        "stopped": EvaluationEnd(),
    }
    return Report(**{**values, **keys})


@pytest.mark.parametrize(
    ("providers", "told"),
    [
        (["cassette"], "on cassettes this proves the arithmetic only"),
        (["cassette", "gemini"], "on cassettes this proves the arithmetic only"),
        (["scripted"], "with scripted models this proves the arithmetic only"),
    ],
)
def test_answers_of_no_live_model_prove_the_arithmetic_only(providers: list[str], told: str) -> None:
    found = report(providers=providers)
    assert told in as_text(found)
    assert told in as_markdown(found)
    assert as_json(found)["proves"] == "arithmetic only"


def test_answers_of_a_live_model_prove_more() -> None:
    assert as_json(report())["proves"] == ""
    assert "arithmetic only" not in as_markdown(report())


def test_what_a_model_says_cannot_leave_its_cell_of_the_page() -> None:
    page = as_markdown(report("a | b\n\n# Heading <script>x</script> \x1b[31mred"))
    (line,) = [line for line in page.split("\n") if line.startswith("| q1 ")]
    assert line.replace("\\|", "").count("|") == 8
    assert "<script>" not in page
    assert "\x1b" not in page
    assert "\n# Heading" not in page


def test_what_lessens_a_report_stands_in_it() -> None:
    notes = as_text(
        report(
            temperature=0.0,
            everything=Expense(2, 20, None, 1.0, estimated=1),
            stopped=EvaluationEnd("budget", "the evaluation's budget of 20 tokens does not allow another call."),
            asked=3,
        )
    )
    assert "Stopped early (budget): 1 of 3 questions were answered by all arms. the evaluation's budget" in notes
    assert "did not count the tokens of 1 of 2 calls" in notes
    assert "The temperature is 0" in notes
    assert "The price of a model is not known" in notes
