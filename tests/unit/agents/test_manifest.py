"""Manifests: what an agent is given by its context, trust and scope, and the sources' spellings of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from council.agents.manifest import AgentManifest, by_name, context_for, load_personas, parse_manifest, tools_for
from council.errors import MissingContextError, PersonaError
from council.tools.preview import Preview
from council.tools.registry import ToolRegistry
from council.tools.tool import Arguments, Tool, ToolContext, ToolResult

AVAILABLE = {"task": "T", "memory": "M", "documents": "D", "transcript": "S", "personal_data": "P", "code": "C"}


def manifest(front: str = "", *, role: str = "HACKER", id: str = "hacker") -> AgentManifest:
    text = f"---\nid: {id}\nrole: {role}\npurpose: Looks.\n{front}\n---\nYou look."
    return parse_manifest(f"{id}.md", text)


def test_a_persona_without_trust_is_builtin_and_gets_what_a_deliberation_has() -> None:
    persona = manifest()

    assert persona.trust == "builtin"
    assert context_for(persona, AVAILABLE).keys() == {"task", "memory", "documents", "transcript"}


def test_an_agent_is_given_what_it_names_and_nothing_that_it_forbids() -> None:
    persona = manifest("context: {required: [task], optional: [Documents, code], forbidden: [documents, Memory]}")

    assert context_for(persona, AVAILABLE) == {"task": "T", "code": "C"}


def test_forbidding_the_outputs_of_other_agents_keeps_the_transcript_away() -> None:
    assert "transcript" not in context_for(manifest("context: {forbidden: [other_agent_outputs]}"), AVAILABLE)


@pytest.mark.parametrize("trust", ["unverified", "temporary"])
def test_an_untrusted_agent_gets_no_memory_and_nothing_personal_or_financial(trust: str) -> None:
    fields = "task, memory, personal_data, financial_information, aj_personal_info"
    persona = manifest(f"trust: {trust}\ncontext: {{optional: [{fields}]}}")
    available = AVAILABLE | {"financial_information": "F", "aj_personal_info": "I"}

    assert context_for(persona, available) == {"task": "T"}


@pytest.mark.parametrize("trust", ["builtin", "verified"])
def test_a_trusted_agent_gets_the_private_fields_that_it_names(trust: str) -> None:
    persona = manifest(f"trust: {trust}\ncontext: {{optional: [personal_data, memory]}}")

    assert context_for(persona, AVAILABLE) == {"task": "T", "personal_data": "P", "memory": "M"}


def test_an_agent_of_one_task_gets_no_memory() -> None:
    assert "memory" not in context_for(manifest("scope: task"), AVAILABLE)


@pytest.mark.parametrize(
    ("front", "why"),
    [
        ("context: {required: [programming_language]}", "`programming_language`, which nothing here provides"),
        ("trust: unverified\ncontext: {required: [memory]}", "`memory`, which no unverified agent is given"),
        ("scope: task\ncontext: {required: [memory]}", "`memory`, which no task-scoped agent is given"),
    ],
)
def test_a_required_field_that_cannot_be_given_is_a_named_error(front: str, why: str) -> None:
    with pytest.raises(MissingContextError, match=why) as raised:
        context_for(manifest(front), AVAILABLE)

    assert raised.value.data["role"] == "HACKER"
    assert raised.value.fix.startswith("take `")
    assert "here it is given: " in raised.value.fix


def test_a_required_field_that_is_misspelt_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(MissingContextError) as raised:
        context_for(manifest("context: {required: [tasks]}"), AVAILABLE)
    assert raised.value.fix.startswith("did you mean `task`? Otherwise, take `tasks` out of `required` in its persona")


async def _run(arguments: Arguments, /, *, context: ToolContext) -> ToolResult:
    return ToolResult(ok=True, title="")


def _apply(*_: object) -> ToolResult:
    return ToolResult(ok=True, title="")


def _preview(*_: object) -> Preview:
    return Preview("")


class Note(Arguments):
    text: str


@pytest.mark.parametrize(
    ("trust", "allowed"), [("builtin", ("READ", "WRITE", "GONE")), ("unverified", ("READ", "GONE"))]
)
def test_an_untrusted_agent_has_no_tool_that_writes(trust: str, allowed: tuple[str, ...]) -> None:
    registry = ToolRegistry(
        [Tool("READ", "", Note, "read", (), _run), Tool("WRITE", "", Note, "write", (), None, _apply, _preview)]
    )

    assert tools_for(manifest(f"trust: {trust}\ntools: [READ, WRITE, GONE]"), registry) == allowed


def test_the_conductors_spelling_is_read() -> None:
    persona = manifest(
        "context_requirements:\n  required: [code_to_review]\n  forbidden: [financial_information]\n"
        "context_outputs:\n  produces: [vulnerability_report]\n  scope: task\n"
        "context_side_effects:\n  none"
    )

    assert (persona.context.required, persona.context.optional) == (("code_to_review",), ())
    assert persona.context.forbidden == ("financial_information",)
    assert persona.scope == "task"
    assert persona.output_schema == {
        "type": "object",
        "properties": {"vulnerability_report": {}},
        "required": ["vulnerability_report"],
    }


@pytest.mark.parametrize(
    ("front", "why"),
    [
        ("context_side_effects: [sends mail]", "agents change nothing themselves"),
        ("context_outputs: {produces: [a], retention: 3d}", "may only have `produces` and `scope`"),
        ("scope: task\ncontext_outputs: {scope: task}", "`scope` and `context_outputs.scope` are both given"),
        ("context: {required: [memory], forbidden: [memory]}", "memory is both required and forbidden"),
        ("context: {forbidden: [memroy]}", r"`context\.forbidden` names memroy, which no agent is given"),
        (
            "scope: task\ncontext: {forbidden: [evidence]}",
            r"`context\.forbidden` names evidence, which no agent is given",
        ),
        ("context_requirements: {optional: [evidence]}", r"`context_requirements\.optional` names evidence"),
        ("context: [memory]", "the key `context` must have the keys `required`, `optional` and `forbidden`"),
        ("scope: finance", "the key `scope` must be 'deliberation', 'task' or 'user'"),
        ("scope: global", "the key `scope` must be 'deliberation', 'task' or 'user'"),
        ("context_outputs: {scope: global}", r"hacker\.md: the key `context_outputs\.scope` must be"),
        ("context_requirements: [task]", r"hacker\.md: `context_requirements` is empty"),
        (
            "context_requirements: {required: task}",
            r"hacker\.md: the key `context_requirements\.required` must be a list",
        ),
        ("context_outputs: [report]", r"hacker\.md: `context_outputs` may only have `produces` and `scope`"),
        ("context_outputs: {produces: 5}", r"hacker\.md: `context_outputs\.produces` is not a list of names"),
        ("context_outputs: {produces: name}", r"`context_outputs\.produces` is not a list of names"),
        ("context_outputs: {produces: [{name: text}]}", r"`context_outputs\.produces` is not a list of names"),
        ("output_schema: {type: string}", "JSON Schema of an object"),
        ("owner: ann", "`owner` has no effect on a trusted agent of the scope `deliberation`"),
        ("budget: 3", "the key `budget` is not known"),
        ("safety: [ab]", r"the key `safety\.0` must be at least 3 characters"),
        ("model: [a:b, a:b, a:b, a:b, a:b, a:b, a:b, a:b, a:b]", "the key `model` must be at most 8 entries"),
        ("safety: !none []", r"the front matter is not YAML \(a tag \(a word after !\) is not allowed\)"),
    ],
)
def test_what_is_not_enforced_is_refused(front: str, why: str) -> None:
    with pytest.raises(PersonaError, match=why):
        manifest(front)


@pytest.mark.parametrize(
    ("field", "fix"), [("memroy", "did you mean memory?"), ("evidence", "the fields are: task, memory, documents, ")]
)
def test_a_field_that_no_agent_is_given_is_refused_with_those_that_there_are(field: str, fix: str) -> None:
    with pytest.raises(PersonaError) as refused:
        manifest(f"context: {{forbidden: [{field}]}}")
    assert refused.value.fix.startswith(fix)


def test_an_agent_of_the_conductor_may_name_the_outputs_of_others() -> None:
    assert manifest("scope: task\ncontext: {optional: [report]}").context.optional == ("report",)


def test_an_agent_is_called_by_role_id_and_alias_and_an_alias_calls_one_agent(tmp_path: Path) -> None:
    body = "---\nid: {0}\nrole: {1}\npurpose: Looks.\naliases: [{2}]\n---\nYou look."
    (tmp_path / "a.md").write_text(body.format("white-hat", "HACKER", "pentester"))
    personas = load_personas(tmp_path)

    assert {name: found.role for name, found in by_name(personas).items()} == dict.fromkeys(
        ("HACKER", "WHITE-HAT", "PENTESTER"), "HACKER"
    )

    (tmp_path / "b.md").write_text(body.format("other", "TESTER", "hacker"))
    with pytest.raises(PersonaError, match="alias hacker of TESTER also calls HACKER"):
        load_personas(tmp_path)


@pytest.mark.parametrize("edit", ["in its place", "by a new file"])
def test_a_persona_that_was_edited_is_read_anew_although_it_has_as_many_bytes(tmp_path: Path, edit: str) -> None:
    text = "---\nid: hacker\nrole: HACKER\npurpose: {}.\n---\nYou look."
    path, other = tmp_path / "hacker.md", tmp_path / "other"
    path.write_text(text.format("Looks"))
    os.utime(path, ns=(0, 0))
    assert load_personas(tmp_path)["HACKER"].purpose == "Looks."
    (path if edit == "in its place" else other).write_text(text.format("Hears"))
    if edit == "by a new file":
        os.utime(other, ns=(0, 0))
        other.replace(path)
    assert load_personas(tmp_path)["HACKER"].purpose == "Hears."
