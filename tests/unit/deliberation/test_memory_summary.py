"""A summary of older tasks is remembered by those alone of whose memory it was made."""

from __future__ import annotations

from msgspec.structs import replace

from council.agents.memory_digest import tasks_to_summarise
from council.agents.session_file import RememberedTask, Session, Summary
from council.deliberation.memory_summary import SummaryTry, applied, material_of
from council.turns.result import Failure, TurnResult

TASKS = tuple(
    RememberedTask(f"r-{at:02}", f"Task {at}", "succeeded", "2026-01-01T00:00:00Z", "Yes.") for at in range(8)
)
SESSION = Session("AUDITOR", tasks=TASKS)
TRY = SummaryTry(("AUDITOR",), material_of(SESSION), "r-03", TurnResult("In short: yes.", "scripted:script"))


def test_who_remembers_what_was_summarised_gets_the_summary_with_how_far_it_goes() -> None:
    assert tasks_to_summarise(SESSION)
    assert applied(SESSION, SESSION, TRY).summary == Summary("In short: yes.", "r-03", "r-07")


def test_a_memory_that_was_edited_meanwhile_or_is_another_agents_stays_as_it_is() -> None:
    edited = replace(SESSION, tasks=(replace(TASKS[0], answer="No."), *TASKS[1:]))
    assert applied(edited, edited, TRY) == edited
    assert applied(SESSION, SESSION, replace(TRY, roles=("STRATEGIST",))) == SESSION
    assert applied(SESSION, SESSION, None) == SESSION


def test_a_summary_that_failed_is_not_tried_again_at_once() -> None:
    failed = replace(TRY, result=TurnResult("", "scripted:script", failure=Failure("timeout", "no luck")))
    assert applied(SESSION, SESSION, failed).summary == Summary(tried="r-07")
