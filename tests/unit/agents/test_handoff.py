"""Handoffs: what an agent is given, what is left out, and which Returns count."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from council.agents.directory import AgentListing, AgentUnknown, Directories
from council.agents.handoff import (
    Forward,
    Handoff,
    Return,
    UnknownHandoff,
    answer_to,
    forwards_of,
    prepare,
    require_known,
)
from council.agents.manifest import AgentManifest
from council.errors import PersonaError


def agent(id: str = "hacker", **keys: Any) -> AgentManifest:
    values = {"id": id, "role": id.upper(), "purpose": "Looks.", "instructions": "You look.", **keys}
    return AgentManifest.model_validate(values)


FIELDS = {"task": "Review this", "code": "print(1)", "personal": "Ann, 12 Elm Street", "financial": "82,000 a year"}


def test_a_handoff_has_the_fields_of_the_manifest_and_says_what_was_left_out() -> None:
    hacker = agent(context={"required": ["task", "code"], "optional": [], "forbidden": ["personal"]})

    handoff = prepare("handoff-1", hacker, FIELDS)

    assert handoff.context.content == {"task": "Review this", "code": "print(1)"}
    assert handoff.context.excluded == ("financial", "personal")
    assert handoff.context.scope == "task"


def test_a_handoff_is_spelled_as_the_source_spells_it() -> None:
    told = msgspec.json.decode(msgspec.json.encode(prepare("handoff-1", agent(), {"task": "Look"})))

    assert {"id", "from", "to", "type", "context", "expected_output", "safety"} <= told.keys()
    assert told["safety"] == {"laws": "inherit", "additional": []}
    assert told["context"].keys() == {"scope", "content", "excluded"}


def test_words_that_are_left_out_are_not_in_the_task_either() -> None:
    task = "Ann, 12 Elm Street wants to know which tax to pay."

    handoff = prepare("handoff-1", agent(), FIELDS | {"task": task})

    assert handoff.task == "[personal: left out] wants to know which tax to pay."


@pytest.mark.parametrize("trust", ["unverified", "temporary"])
def test_an_untrusted_agent_gets_nothing_private_and_no_memory(trust: str) -> None:
    optional = ["personal", "financial", "memory", "code"]
    stranger = agent(trust=trust, context={"required": ["task"], "optional": optional})

    handoff = prepare("handoff-1", stranger, FIELDS | {"memory": "We met before."})

    assert handoff.context.content.keys() == {"task", "code"}
    assert handoff.context.excluded == ("financial", "memory", "personal")


def test_a_child_gets_no_field_and_no_tool_that_its_parent_had_not() -> None:
    architect = agent("architect", context={"required": ["task"], "optional": ["code"]}, tools=["READ_FILE"])
    child = agent(
        "child", context={"required": ["task"], "optional": ["code", "financial"]}, tools=["READ_FILE", "LIST_FILES"]
    )
    tools = ("READ_FILE", "LIST_FILES")
    parent = prepare("handoff-1", architect, FIELDS, tools=tools)

    handoff = prepare("handoff-1.1", child, {**FIELDS, "task": "Part"}, tools=tools, parent=parent, type="hierarchical")

    assert handoff.context.content == {"task": "Part", "code": "print(1)"}
    assert handoff.tools == ("READ_FILE",)
    assert handoff.parent == "handoff-1"


def test_a_shared_field_is_one_that_the_agent_was_given() -> None:
    editor = agent("editor", context={"required": ["task", "draft"], "optional": []})

    handoff = prepare("handoff-2", editor, {"task": "Edit", "draft": "Once", "notes": "N"}, shared=("draft", "notes"))

    assert handoff.shared == ("draft",)


def test_a_field_both_required_and_forbidden_is_an_invalid_manifest() -> None:
    with pytest.raises(ValueError, match="both required and forbidden"):
        agent(context={"required": ["code"], "forbidden": ["code"]})


def test_a_return_answers_a_handoff_that_was_sent_to_that_agent() -> None:
    sent = prepare("handoff-1", agent(), {"task": "Look"})

    assert require_known(answer_to(sent, output={"answer": "Seen."}), [sent]) is sent
    for id, who in (("handoff-2", "hacker"), ("handoff-1", "other")):
        with pytest.raises(UnknownHandoff):
            require_known(Return(id="return-1", handoff_id=id, from_=who, to="conductor"), [sent])


def test_two_changes_of_one_domain_are_one_and_there_are_at_most_three() -> None:
    sent = prepare("handoff-1", agent(), {"task": "Look"})
    asked = [
        Forward("modify_tasks", "add one"),
        Forward("notes_ops", "note it"),
        Forward("modify_tasks", "add two", "p1"),
    ]
    more = [Forward("events_ops", "invite"), Forward("membership_ops", "make Ann a manager")]

    found = forwards_of([answer_to(sent, handoff=tuple(asked)), answer_to(sent, handoff=tuple(more))])

    assert [forward.kind for forward in found] == ["modify_tasks", "notes_ops", "events_ops"]
    assert found[0] == Forward("modify_tasks", "add one\nadd two", "p1")


class Desk(AgentListing):
    async def run(self, handoff: Handoff) -> Return:
        return answer_to(handoff, output={"answer": handoff.task})


def test_agents_are_found_by_id_role_and_alias_in_any_directory() -> None:
    hacker, writer = agent(aliases=["security"]), agent("writer")
    directories = Directories([Desk([hacker]), Desk([writer])])

    assert [found.id for found in directories.list()] == ["hacker", "writer"]
    assert all(directories.of(name)[1] is hacker for name in ("hacker", "HACKER", "Security"))
    with pytest.raises(AgentUnknown, match="nobody"):
        directories.of("nobody")


def test_an_alias_that_calls_two_agents_is_refused() -> None:
    with pytest.raises(PersonaError):
        AgentListing([agent(aliases=["both"]), agent("writer", aliases=["both"])])
