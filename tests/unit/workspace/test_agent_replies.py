"""The replies of the workspace's agents: every limit, and what code refuses beyond the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from council.agents.manifest import load_personas
from council.evaluation.routing_set import read_set
from council.llm.structured import Reading, parse, repair_prompt
from council.settings import builtin_personas_dir
from council.workspace.agent_replies import (
    AgentReply,
    ConciergeReply,
    DraftReply,
    EventsReply,
    NotesReply,
    OrgReply,
    PlannerReply,
)
from council.workspace.context_pack import MAX_SHOWN_CHARS, ContextPack, PackReading
from council.workspace.drafting import changes_of
from council.workspace.functions import ACTIONS, KINDS
from council.workspace.reply_checks import Ground
from council.workspace.staff import STAFF
from council.workspace.workspace_directory import named_projects

DANGER = {"reason": "It is done.", "dangerous": True, "asked": "drop the old ones"}
WHY = {"reason": "She leads it."}
ANNA = {"orgId": "o1", "userId": "anna", **WHY}
WISH = {"kind": "modify_tasks", "userIntent": "Add one"}
SAMPLES: dict[type[AgentReply], dict[str, Any]] = {  # one entry of each list, as short as it may be
    ConciergeReply: {
        "details": "A line.",
        "risks": {"kind": "unclear", "taskId": "t1", "why": "No criteria."},
        "nextSteps": "Do it.",
        "handoff": WISH,
        "citations": {"label": "Sow basil", "ref": "t1"},
        "reads": {"tool": "getTaskDetail", "arguments": {"taskId": "t1"}},
    },
    PlannerReply: {
        "creates": {"title": "Sow"},
        "updates": {"taskId": "t1", "priority": "high"},
        "statusChanges": {"taskId": "t1", "status": "done"},
        "deletes": {"taskId": "t1", **DANGER},
    },
    NotesReply: {
        "operations": {"op": "create", "content": "Sage."},
        "operations.update": {"op": "update", "noteId": "n1", "title": "Frost"},
        "operations.delete": {"op": "delete", "noteId": "n1", **DANGER},
        "blocked": {"noteId": "n1", "reason": "It is locked."},
    },
    EventsReply: {
        "creates": {"title": "Open day", "date": "2026-12-20T10:00"},
        "updates": {"eventId": "e1", "region": "Sofia"},
        "deletes": {"eventId": "e1", **DANGER},
        "comments": {"eventId": "e1", "content": "Well done."},
        "commentRemovals": {"commentId": "c1", **DANGER},
    },
    OrgReply: {
        "roleChanges": {**ANNA, "role": "guest"},
        "invites": {**ANNA, "role": "guest"},
        "removals": {**ANNA, **DANGER},
        "capabilityChanges": {**ANNA, "capability": "manage_events", "granted": True},
        "permissionChanges": {"projectId": "p1", "userId": "anna", "permission": "view", **WHY},
    },
}
IDS = dict.fromkeys(("commentId", "eventId", "noteId", "orgId", "projectId", "taskId", "userId", "assignedToId"), 64)
EVERY = {
    "answer": 4_000, "question": 500, "reads": 4, "reads.tool": 64, "citations": 50, "citations.label": 500, "citations.ref": 64,
}  # fmt: skip
DRAFTED = {**EVERY, "title": 120, "summary": 2_000, "revises": 64, "risks.": 500, "questionsForUser.": 500}
TASK = {
    "title": 256, "description": 5_000, "epic": 200, "stage": 200, "orderIndex": 1_000_000, "acceptanceCriteria": 20,
    "acceptanceCriteria.": 200, "dueDate": 32,
}  # fmt: skip
EVENT = {"title": 256, "description": 5_000, "region": 64, "date": 32, "zone": 64, "reminders": 5, "reminders.": 40_320}


def within(field: str, most: int, *fields: str, **limits: int) -> dict[str, int]:
    """The limits of a list and of the fields of its entries; those of ids are the same everywhere."""
    inside = {**{name: IDS[name] for name in fields}, **limits}
    return {field.partition(".")[0]: most, **{f"{field}.{name}": limit for name, limit in inside.items()}}


GONE = {"reason": 500, "asked": 500}
LIMITS: dict[type[AgentReply], dict[str, int]] = {  # of the source, and of its lists
    ConciergeReply: {
        **EVERY, "details": 50, "details.": 500, "nextSteps": 7, "nextSteps.": 500,
        **within("risks", 20, "taskId", why=500), **within("handoff", 3, "projectId", userIntent=2_000),
    },
    PlannerReply: {
        **DRAFTED, "risks": 20, "questionsForUser": 10, "orderingRationale": 1_000,
        **within("creates", 30, "projectId", "assignedToId", reason=500, exception=300, **TASK),
        **within("updates", 50, "projectId", "taskId", "assignedToId", reason=500, **TASK),
        **within("statusChanges", 50, "projectId", "taskId", reason=500),
        **within("deletes", 10, "projectId", "taskId", **GONE),
    },
    NotesReply: {
        **DRAFTED, "risks": 20, "questionsForUser": 10,
        **within("operations", 50, "projectId", content=20_000, title=200, reason=500),
        **within("operations.update", 50, "projectId", "noteId", content=20_000, title=200, reason=500),
        **within("operations.delete", 50, "projectId", "noteId", **GONE),
        **within("blocked", 50, "noteId", reason=500),
    },
    EventsReply: {
        **DRAFTED, "risks": 10, "questionsForUser": 5,
        **within("creates", 10, "orgId", reason=500, **EVENT), **within("updates", 20, "orgId", "eventId", reason=500, **EVENT),
        **within("deletes", 5, "orgId", "eventId", **GONE),
        **within("comments", 20, "orgId", "projectId", "taskId", "eventId", content=500, reason=500),
        **within("commentRemovals", 10, "orgId", "projectId", "commentId", **GONE),
    },
    OrgReply: {
        **DRAFTED, "risks": 10, "questionsForUser": 5,
        **within("roleChanges", 10, "orgId", "userId", reason=300), **within("invites", 10, "orgId", "userId", reason=300),
        **within("removals", 5, "orgId", "userId", reason=300, asked=500),
        **within("capabilityChanges", 10, "orgId", "userId", reason=300),
        **within("permissionChanges", 10, "projectId", "userId", reason=300),
    },
}  # fmt: skip
EVERY_SAMPLE = {name: SAMPLES[ConciergeReply][name] for name in ("citations", "reads")}
SHARED_LINES = {"risks": "It may rain.", "questionsForUser": "By when?"}
LONGEST = {"dueDate": "2026-12-31T18:00:00.000000+00:00", "date": "2026-12-31T18:00", "zone": "Europe/Sofia"}
PACK = ContextPack(
    (
        PackReading("getSessionContext", text=json.dumps({"userId": "anna", "organizations": [{"orgId": "o1"}]})),
        PackReading(
            "listTasks",
            {"projectId": "p1"},
            "\n".join(
                json.dumps(row)
                for row in (
                    {"taskId": "t1", "title": "Sow basil", "status": "todo", "assignedToId": "boris", "dueDate": ""},
                    {"taskId": "t2", "title": "Dig", "status": "blocked", "assignedToId": "", "dueDate": "2026-11-01"},
                )
            ),
        ),
        PackReading("listNotesMetadata", text=json.dumps({"noteId": "n1", "title": "Frost", "locked": True})),
    )
)
GROUND = Ground("Tidy up, and drop the old ones. Give it to maria.", PACK, {"projectId": "p1"}, "2026-11-22")


def settled(type_: type[AgentReply], ground: Ground | None = None, **fields: Any) -> Reading[AgentReply]:
    outcomes = {ConciergeReply: {"outcome": "answer", "answer": "So it is."}}
    body: Mapping[str, Any] = {**outcomes.get(type_, {"outcome": "draft"}), **fields}
    return parse(json.dumps(body), type_, complete=True, check=ground.check if ground else None)


def limited(type_: type[AgentReply]) -> set[str]:
    """The path of each list, number and free text that a reply may hold, as its schema has them."""
    schema = type_.model_json_schema()

    def walk(name: str, node: dict[str, Any]) -> Iterator[str]:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
        for option in node.get("anyOf", ()):
            yield from walk(name, option)
        for option in node.get("oneOf", ()):
            found = schema["$defs"][option["$ref"].rpartition("/")[2]]
            op = found["properties"]["op"]["const"]
            yield from walk(name if op == "create" else f"{name}.{op}", found)
        kind = node.get("type")
        if kind == "array":
            yield name
            entries = node["items"] if "$ref" in node["items"] or "oneOf" in node["items"] else None
            yield from walk(name if entries else f"{name}.", entries or node["items"])
        elif kind == "integer" or (kind == "string" and not {"enum", "const"} & node.keys()):
            yield name
        for key, inner in node.get("properties", {}).items():
            yield from walk(f"{name}.{key}" if name else key, inner)

    return set(walk("", {"properties": schema["properties"]}))


def of_size(type_: type[AgentReply], path: str, size: int, *, fits: bool) -> dict[str, Any]:
    """The fields of a reply in which the value at this path has that size."""
    samples = {**SHARED_LINES, **EVERY_SAMPLE, **SAMPLES[type_]}
    if path in samples:
        return {path: [samples[path]] * size}
    holder, _, name = path.rpartition(".")
    inner, _, list_name = holder.rpartition(".")
    text: Any = LONGEST.get(name, "x" * size) if fits else "x" * size
    if path.endswith(".") and holder in samples:  # an entry of a list of texts
        return {holder: [text] * (3 if holder == "nextSteps" else 1)}
    if path.endswith("."):  # of a list in an operation
        return {inner: [{**samples[inner], list_name: [size if list_name == "reminders" else text]}]}
    value = {"orderIndex": size, "acceptanceCriteria": ["x"] * size, "reminders": [0] * size}.get(name, text)
    return {holder.partition(".")[0]: [{**samples[holder], name: value}]} if holder else {name: text}


@pytest.mark.parametrize("type_", LIMITS)
def test_every_list_number_and_text_of_a_reply_has_its_limit(type_: type[AgentReply]) -> None:
    assert limited(type_) == set(LIMITS[type_])


@pytest.mark.parametrize("type_", LIMITS)
def test_as_much_as_the_limit_is_accepted_and_one_more_is_refused_and_told(type_: type[AgentReply]) -> None:
    for path, most in LIMITS[type_].items():
        assert settled(type_, **of_size(type_, path, most, fits=True)).problems == (), path
        refused = settled(type_, **of_size(type_, path, most + 1, fits=False))
        assert refused.value is None, path
        [problem] = refused.problems[:1]
        assert path.partition(".")[0] in problem.path
        assert re.search(rf"(at most|less than or equal to) {most}\b|should match pattern", problem.message), path
        assert problem.message in repair_prompt(refused.problems, type_)


@pytest.mark.parametrize("type_", [post.reply for post in STAFF.values()])
def test_unknown_keys_are_dropped_and_defaults_filled_in(type_: type[AgentReply]) -> None:
    found = settled(type_, planHash="0" * 64, agentId="a2").value
    assert found is not None
    assert (found.citations, hasattr(found, "planHash")) == ([], False)


def test_a_new_task_gets_the_defaults_of_its_function() -> None:
    reply = settled(PlannerReply, creates=[{"title": "Sow", "colour": "green"}]).value
    assert isinstance(reply, PlannerReply)
    assert (reply.creates[0].priority, reply.creates[0].status, reply.creates[0].description) == ("medium", "todo", "")
    [change] = changes_of(reply)
    assert (change.tool, change.arguments) == ("createTask", {"title": "Sow"})


def test_a_scope_that_a_model_leaves_empty_is_the_servers() -> None:
    change = {"taskId": "t1", "status": "done", "projectId": None}
    create = {"title": "New", "projectId": "", "assignedToId": None}
    reply = settled(PlannerReply, GROUND, statusChanges=[change], creates=[create]).value
    assert isinstance(reply, PlannerReply)
    assert [one.arguments for one in changes_of(reply)] == [
        {"title": "New", "assignedToId": None},
        {"taskId": "t1", "status": "done"},
    ]


@pytest.mark.parametrize("given", [{"dangerous": False}, {"dangerous": None}, {"asked": ""}, {"reason": ""}])
def test_a_deletion_says_that_it_is_dangerous_why_and_in_which_words_it_was_asked_for(given: dict[str, Any]) -> None:
    whole = {"taskId": "t1", **DANGER}
    assert settled(PlannerReply, deletes=[whole]).value is not None
    assert settled(PlannerReply, deletes=[{**whole, **given}]).value is None
    without = {key: value for key, value in whole.items() if key not in given}
    assert settled(PlannerReply, deletes=[without]).value is None


def test_next_steps_are_three_to_seven_or_none() -> None:
    assert settled(ConciergeReply, nextSteps=[]).value is not None
    assert settled(ConciergeReply, nextSteps=["a", "b", "c"]).value is not None
    [problem] = settled(ConciergeReply, nextSteps=["a", "b"]).problems
    assert problem.message == "name 3 to 7 next steps in the order of their weight, or none"


def test_every_kind_of_operation_becomes_a_call_of_a_tool_of_its_own_agent_alone() -> None:
    proposed: dict[str, set[str]] = {}
    for post in STAFF.values():
        for name, one in SAMPLES[post.reply].items():
            reply = settled(post.reply, **{name.partition(".")[0]: [one]}).value
            if isinstance(reply, DraftReply):
                proposed.setdefault(post.kind, set()).update(change.tool for change in changes_of(reply))
    revoked = settled(OrgReply, capabilityChanges=[{**ANNA, "capability": "manage_events", "granted": False}]).value
    assert isinstance(revoked, OrgReply)
    proposed["members"] |= {change.tool for change in changes_of(revoked)}
    comments = {"addComment", "removeComment"}
    tools = {kind.name: set(kind.tools) for kind in KINDS}
    assert proposed == {**tools, "tasks": tools["tasks"] - comments}


# ── the table agent × tool ───────────────────────────────────────────────────────────────────────────────────────────

TASK_WRITES = {"createTask", "updateTask", "updateTaskStatus", "deleteTask"}
TABLE = {
    "workspace_concierge": {
        "getSessionContext", "listProjects", "getProjectDetail", "listTasks", "getTaskDetail", "listOrganizations",
        "listNotifications", "listEventsPublic",
    },
    "task_planner": {"getSessionContext", "getProjectDetail", "listTasks", "getTaskDetail"} | TASK_WRITES,
    "notes_vault": {"listNotesMetadata", "getNoteContentIfUnlocked", "createNote", "updateNote", "deleteNote"},
    "events_publisher": {
        "getSessionContext", "listEvents", "listEventsPublic", "createEvent", "updateEvent", "deleteEvent", "addComment",
        "removeComment",
    },
    "org_admin": {
        "getSessionContext", "listOrganizations", "getOrganization", "getProjectDetail", "inviteMember", "changeRole",
        "removeMember", "grantCapability", "revokeCapability", "setProjectPermission",
    },
}  # fmt: skip


def test_each_agent_has_its_tools_of_all_those_that_there_are_and_no_other() -> None:
    shipped = {manifest.id: manifest for manifest in load_personas(builtin_personas_dir()).values()}
    names = [name for name, verb in ACTIONS.items() if verb.for_tools]
    assert len(names) == 30
    for agent in STAFF:
        assert {name: name in shipped[agent].tools for name in names} == {name: name in TABLE[agent] for name in names}
        assert set(shipped[agent].tools) <= set(names)
        assert {*STAFF[agent].reads, *STAFF[agent].in_project} <= TABLE[agent]
    assert not any(ACTIONS[name].effect != "read" for name in TABLE["workspace_concierge"])


# ── checks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def faults(type_: type[AgentReply], ground: Ground = GROUND, **fields: Any) -> list[str]:
    return [str(problem) for problem in settled(type_, ground, **fields).problems]


def test_ids_come_from_what_was_read_and_the_scope_is_the_servers() -> None:
    assert faults(PlannerReply, statusChanges=[{"taskId": "t1", "status": "done"}]) == []
    [told] = faults(PlannerReply, statusChanges=[{"taskId": "t9", "status": "done"}])
    assert told == "`statusChanges[0].taskId`: 't9' is no taskId that was read; use the ids as they stand there"
    assert faults(PlannerReply, creates=[{"title": "New", "projectId": "p1"}]) == []
    [told] = faults(PlannerReply, creates=[{"title": "New", "projectId": "p2"}])
    assert "is another project than the one in scope, p1" in told
    [told] = faults(NotesReply, operations=[{"op": "delete", "noteId": "n7", **DANGER}])
    assert "is no noteId that was read" in told
    [told] = faults(ConciergeReply, outcome="handoff", handoff=[{**WISH, "projectId": "p9"}])
    assert "is no projectId that was read" in told


def test_a_person_is_one_who_was_read_or_whom_the_request_names() -> None:
    for known in ("anna", "boris", "maria"):
        assert faults(PlannerReply, creates=[{"title": "New", "assignedToId": known}]) == []
    assert len(faults(PlannerReply, creates=[{"title": "New", "assignedToId": "mari"}])) == 1


def test_a_task_of_the_same_title_is_an_update_or_a_stated_exception() -> None:
    [told] = faults(PlannerReply, creates=[{"title": "sow  BASIL"}])
    assert told == "`creates[0].title`: stands there already as t1: update that one, or say why in `exception`"
    assert faults(PlannerReply, creates=[{"title": "Sow basil", "exception": "A second bed."}]) == []
    [told] = faults(PlannerReply, creates=[{"title": "New"}, {"title": "new"}])
    assert "stands there already as creates[0]" in told


def test_something_is_deleted_only_where_the_request_asks_for_it_in_words() -> None:
    assert faults(PlannerReply, deletes=[{"taskId": "t1", **DANGER}]) == []
    for asked in ("delete all tasks", '"', "d"):
        [told] = faults(PlannerReply, deletes=[{"taskId": "t1", **DANGER, "asked": asked}])
        assert "must quote the words of the request that ask for this" in told


@pytest.mark.parametrize(("asked", "faulty"), [("削", 0), ("削除", 0), ("消", 1), ("d", 1), ("1", 1), ("。", 1)])
def test_one_sign_of_a_script_of_words_quotes_and_a_lone_letter_does_not(asked: str, faulty: int) -> None:
    ground = replace(GROUND, request="d1 の古いものを削除。")
    assert len(faults(PlannerReply, ground, deletes=[{"taskId": "t1", **DANGER, "asked": asked}])) == faulty


def test_citations_and_risks_are_looked_up_in_what_was_read() -> None:
    assert faults(ConciergeReply, citations=[{"label": "Sow basil", "ref": "t1"}]) == []
    for label, ref in (("Sow basil", "t2"), ("Sow parsley", "t1"), ("Sow basil", "t9"), ("s", "t1")):
        assert len(faults(ConciergeReply, citations=[{"label": label, "ref": ref}])) == 1
    right = [("overdue", "t2"), ("unassigned", "t2"), ("blocked", "t2"), ("unclear", "t1")]
    assert faults(ConciergeReply, risks=[{"kind": kind, "taskId": id, "why": "So."} for kind, id in right]) == []
    wrong = [("overdue", "t1"), ("unassigned", "t1"), ("blocked", "t1"), ("unclear", "t9")]
    assert len(faults(ConciergeReply, risks=[{"kind": kind, "taskId": id, "why": "So."} for kind, id in wrong])) == 4


def test_an_outcome_needs_what_it_is_about() -> None:
    assert faults(ConciergeReply, answer="") == ["`answer`: is empty, and the outcome `answer` needs it"]
    assert len(faults(ConciergeReply, outcome="handoff")) == 1
    assert len(faults(PlannerReply, outcome="clarify")) == 1
    assert faults(PlannerReply) == ["`outcome`: a draft needs at least one operation"]
    assert faults(NotesReply, blocked=[{"noteId": "n1", "reason": "Locked."}]) == []


def test_a_refinement_names_an_open_draft_and_agreement_needs_one() -> None:
    change = [{"taskId": "t1", "status": "done"}]
    assert len(faults(PlannerReply, statusChanges=change, revises="d1")) == 1
    assert len(faults(PlannerReply, outcome="confirm")) == 1
    ground = Ground(GROUND.request, PACK, GROUND.scope, GROUND.day, frozenset({"d1"}))
    assert faults(PlannerReply, ground, statusChanges=change, revises="d1") == []
    assert faults(PlannerReply, ground, outcome="confirm") == []


def test_without_a_project_nothing_is_drafted() -> None:
    ground = Ground("Add a task.", ContextPack(), {}, "2026-11-22", must_ask=True, may_read=False)
    [told] = faults(PlannerReply, ground, creates=[{"title": "New"}])
    assert "ask which of the listed projects is meant" in told
    assert faults(PlannerReply, ground, outcome="clarify", question="Which project?") == []


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_long_reading_is_cut_at_a_row_and_the_rows_that_were_not_shown_lend_no_ids() -> None:
    rows = [{"taskId": f"t{number}", "title": "x" * 1_000} for number in range(40)]
    reading = PackReading("listTasks", {}, "\n".join(map(json.dumps, rows)))
    assert (len(reading.rows), len(reading.shown), reading.left_out) == (40, 23, "17 rows")
    assert ContextPack((reading,)).ids["taskId"] == {f"t{number}" for number in range(23)}


@pytest.mark.parametrize(
    ("longest", "kept"),
    [
        ({"comments": [{"commentId": f"c{number}", "content": "x" * 500} for number in range(1_000)]}, 31),
        ({"description": "x" * 500_000}, 15_625),
    ],
)
def test_one_row_that_is_too_long_is_cut_within_and_what_was_cut_lends_no_ids(longest: Any, kept: int) -> None:
    rows = [{"taskId": "t1", "title": "Sow", **longest}, {"taskId": "t2", "title": "Dig"}]
    reading = PackReading("getTaskDetail", {}, "\n".join(map(json.dumps, rows)))
    [line] = reading.shown
    [(name, value)] = longest.items()
    assert len(line) <= MAX_SHOWN_CHARS
    assert json.loads(line) == {"taskId": "t1", "title": "Sow", name: value[:kept]}
    assert reading.left_out == "1 row and part of a long row"
    ids = ContextPack((reading,)).ids
    assert ids["taskId"] == {"t1"}
    assert len(ids.get("commentId", ())) == (kept if name == "comments" else 0)


@pytest.mark.parametrize(
    ("request_", "found"),
    [
        ("Break down Herbs into tasks", ["Herbs"]),
        ("Break down herbs garden", ["Herbs garden"]),
        ("Разбий Herbs на задачи", ["Herbs"]),
        ("Herbs and Trees, both", ["Herbs", "Trees"]),
        ("Add a task", []),
        ("Start a task", []),
        ("Plan “Art”: the start", ["Art"]),
    ],
)
def test_a_project_is_found_by_its_name_in_the_request(request_: str, found: list[str]) -> None:
    rows = [{"name": name} for name in ("Herbs", "Herbs garden", "Trees", "Art")]
    assert [row["name"] for row in named_projects(request_, rows)] == found


def test_the_routing_sentences_name_agents_that_are_shipped() -> None:
    shipped = tuple(load_personas(builtin_personas_dir()).values())
    found, agents = read_set(files("council").joinpath("resources/routing/workspace.yaml"), shipped)  # type: ignore[arg-type]
    named = {name for one in found.requests for name in (*one.wanted, *one.also)} - {"none"}
    assert named <= {agent.id for agent in agents}
    assert set(STAFF) <= named
    assert len(found.requests) >= 55
