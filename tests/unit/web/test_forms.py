"""Forms of pages: their fields come from the models, and only what a person changed is sent on."""

from __future__ import annotations

from starlette.datastructures import FormData

from council.commands.file_formats import Problem
from council.deliberation.commands import DeliberateCommand, DeliberateConfig
from council.errors import CommandInvalid, UsageError
from council.web.forms import FormField, as_text, faults_of, fields_of, stands_otherwise, texts_of, values_of
from council.workspace.arguments import EventPatch, NewPermission, NewRole, NewTask, TaskPatch


def by_name(fields: tuple[FormField, ...]) -> dict[str, FormField]:
    return {one.name: one for one in fields}


def test_a_field_has_the_kind_the_words_and_the_bounds_of_its_model() -> None:
    found = by_name(fields_of(NewTask, {"projectId": "p-1"}, options={"assignedToId": ["", "ben"]}))
    assert {name: one.kind for name, one in found.items()} == {
        "projectId": "hidden", "title": "line", "description": "text", "priority": "choice", "epic": "line",
        "stage": "line", "orderIndex": "number", "acceptanceCriteria": "lines", "assignedToId": "choice",
        "dueDate": "day", "status": "choice",
    }  # fmt: skip
    assert found["projectId"].value == "p-1"
    assert found["priority"].options == ("low", "medium", "high", "urgent")
    assert (found["priority"].value, found["title"].needed, found["epic"].needed) == ("medium", True, False)
    assert found["assignedToId"].label == "Assigned to"
    assert found["assignedToId"].hint == "The user it is assigned to."


def test_what_was_left_as_it_was_is_not_sent_on() -> None:
    sent = {
        "taskId": "t-1", "title": "New", "was.title": "Old", "description": "same", "was.description": "same",
        "orderIndex": "7", "was.orderIndex": "0", "assignedToId": "", "was.assignedToId": "ben",
        "acceptanceCriteria": "one\n\n two ", "was.acceptanceCriteria": "", "dueDate": "", "was.dueDate": "",
    }  # fmt: skip
    assert values_of(TaskPatch, sent) == {
        "taskId": "t-1", "title": "New", "orderIndex": 7, "assignedToId": None, "acceptanceCriteria": ["one", "two"],
    }  # fmt: skip


def test_a_field_in_which_something_else_stands_now_is_named() -> None:
    shown = {
        "was.title": "Old",
        "was.content": "a\nb",
        "was.assignedToId": "",
        "was.reminders": as_text([60, 5]),
        "was.public": "",
    }
    assert (
        stands_otherwise({"content": "a\r\nb", "assignedToId": None, "reminders": [60, 5], "public": False}, shown)
        == {}
    )
    now = {"title": "New", "assignedToId": "ben", "reminders": [5], "public": True, "unseen": "x"}
    assert stands_otherwise(now, shown) == {"title": "New", "assignedToId": "ben", "reminders": "5", "public": "true"}


def test_numbers_stand_on_one_line_and_are_read_with_commas_or_without() -> None:
    was = {"reminders": as_text([60, 10])}
    field = by_name(fields_of(EventPatch, {}, was))["reminders"]
    assert (field.kind, field.value) == ("numbers", "60, 10")
    sent = {"eventId": "e-1", "was.reminders": "60, 10"}
    assert values_of(EventPatch, {**sent, "reminders": "60,10 ; 1"})["reminders"] == [60, 10, 1]
    assert values_of(EventPatch, {**sent, "reminders": "60\nsoon"})["reminders"] == [60, "soon"]
    assert values_of(EventPatch, {**sent, "reminders": ""})["reminders"] == []
    assert "reminders" not in values_of(EventPatch, {**sent, "reminders": "60, 10"})


def test_what_a_function_needs_is_sent_on_even_if_nobody_changed_it() -> None:
    sent = {"orgId": "o-1", "userId": "ben", "was.userId": "ben", "role": "guest", "was.role": "guest"}
    assert values_of(NewRole, sent) == {"orgId": "o-1", "userId": "ben", "role": "guest"}


def test_a_tick_that_was_taken_away_is_sent_on_and_one_that_was_never_there_is_not() -> None:
    base = {"projectId": "p-1", "userId": "ben", "permission": "view", "was.permission": ""}
    assert values_of(NewPermission, {**base, "was.granted": "true"})["granted"] is False
    assert "granted" not in values_of(NewPermission, {**base, "granted": "true", "was.granted": "true"})


def test_a_number_that_is_none_stays_text_so_that_the_model_says_what_is_wrong() -> None:
    sent = {"config.max_rounds": "many", "was.config.max_rounds": "3", "config.agents": "AUDITOR\nWRITER"}
    assert values_of(DeliberateConfig, sent, "config.") == {"max_rounds": "many", "agents": ["AUDITOR", "WRITER"]}


def test_several_values_of_one_name_are_lines() -> None:
    assert texts_of(FormData([("a", "1"), ("a", "2"), ("b", "x\r\ny")])) == {"a": "1\n2", "b": "x\ny"}


def test_each_problem_stands_beside_its_field_and_the_rest_above_all() -> None:
    problems = [
        Problem("is not a number", "write 3", "config.max_rounds"),
        Problem("cannot be read", "name another", "input_artifacts.2"),
        Problem("is odd", "do not"),
    ]
    fields = [one.name for one in fields_of(DeliberateCommand, {})] + ["config.max_rounds"]
    found = faults_of(CommandInvalid("wrong", problems=problems), fields)
    assert {name: [one.message for one in some] for name, some in found.items()} == {
        "config.max_rounds": ["is not a number"], "input_artifacts": ["cannot be read"], "": ["is odd"],
    }  # fmt: skip
    assert list(faults_of(UsageError("`title`: too long.", field="title"), ["title"])) == ["title"]
    assert list(faults_of(CommandInvalid("too small", field="width"), ["width", "height"])) == ["width"]
