"""What a prompt carries of the memory: bounded in tokens of any script, and every task in it or in the summary."""

from __future__ import annotations

import pytest

from council.agents.memory import KEPT_TASKS
from council.agents.memory_digest import (
    DIGEST_TOKENS,
    SUMMARY_TOKENS,
    digest,
    estimated_tokens,
    short_summary,
    tasks_to_summarise,
)
from council.agents.session_file import RememberedTask, Session, Summary

SENTENCES = {
    "English": "The archive needs a storage engine that outlives its vendor. ",
    "Chinese": "档案需要一个比供应商更长寿的存储引擎。",
    "Russian": "Архиву нужен движок хранения, который переживёт поставщика. ",
    "emoji": "📦🧾🚀 ",
}


def session(count: int, answer: str, summary: str = "") -> Session:
    tasks = tuple(RememberedTask(f"r-{n:02}", f"Engine {n}", "succeeded", "", answer[:600]) for n in range(count))
    return Session("AUDITOR", tasks=tasks, summary=Summary(summary, "r-gone", "r-gone"))


@pytest.mark.parametrize("script", SENTENCES)
@pytest.mark.parametrize("count", [1, 3, 6, KEPT_TASKS])
def test_a_digest_of_any_script_keeps_its_bound_and_names_every_task(script: str, count: int) -> None:
    answer = SENTENCES[script] * 60
    for summary in ("", answer):
        said = digest(session(count, answer, summary))
        assert estimated_tokens(said) <= DIGEST_TOKENS
        assert [f"Engine {n} (succeeded)" in said for n in range(count)] == [True] * count
        assert said.splitlines()[-1].startswith(f"  The council answered: {answer[:6]}")


def test_a_token_is_estimated_on_the_safe_side_in_every_script() -> None:
    assert [estimated_tokens(text) for text in ("", "abcdef", "档案", "да", "📦")] == [0, 2, 2, 2, 3]


@pytest.mark.parametrize("script", SENTENCES)
def test_a_summary_keeps_its_bound_in_any_script(script: str) -> None:
    said = short_summary(SENTENCES[script] * 60)
    assert SUMMARY_TOKENS * 0.7 < estimated_tokens(said) <= SUMMARY_TOKENS
    assert said.startswith(SENTENCES[script].strip())


def test_the_older_tasks_are_shortened_before_the_newest_one() -> None:
    said = digest(session(6, SENTENCES["English"] * 20, "An old summary. " * 60))
    lengths = [len(line) for line in said.splitlines() if "The council answered" in line]
    assert len(lengths) == 6
    assert lengths[0] < 120 < 500 < lengths[-1]
    assert lengths == sorted(lengths)


@pytest.mark.parametrize("name", ["a.md", "a[1].md"])
def test_a_request_in_what_is_remembered_is_no_request_any_more(name: str) -> None:
    asked = f"[ORCHESTRATOR_REQUEST: READ_FILE({name})]"
    assert "No. (a request) So." in digest(session(2, asked, f"No. {asked} So."))
    assert "READ_FILE" not in digest(session(2, asked, asked))


def test_a_summary_is_due_every_fourth_task_and_leaves_the_newest_two() -> None:
    assert [len(tasks_to_summarise(session(count, "No."))) for count in (5, 6, 7)] == [0, 4, 5]
    made = Session("AUDITOR", tasks=session(9, "No.").tasks, summary=Summary("Old.", "r-03", "r-05"))
    assert tasks_to_summarise(made) == ()
    due = Session("AUDITOR", tasks=session(10, "No.").tasks, summary=Summary("Old.", "r-03", "r-05"))
    assert [task.run_id for task in tasks_to_summarise(due)] == ["r-04", "r-05", "r-06", "r-07"]
