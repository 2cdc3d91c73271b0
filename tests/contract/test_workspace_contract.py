"""The workspace, whichever database it is: who is protected, what a plan changes and takes back, what a lock hides."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import ValidationError
from sqlalchemy import Table, delete, insert, update
from sqlalchemy.event import listen
from sqlalchemy.exc import IntegrityError

from council.errors import StorageFailed
from council.plans.approval import PlanRefused, Proposal
from council.redaction import Redactor, Secret
from council.storage.store import Store
from council.storage.tables import words_of
from council.upkeep.table_words import change_words, count_words
from council.users.enrolment import change_roles
from council.users.tables import roles
from council.workspace import notes, tables
from council.workspace.arguments import NoteFilter, OfNote
from council.workspace.functions import ACTIONS
from council.workspace.reminders import tell_due
from council.workspace.transaction import Visit, WorkspaceRefused
from tests.space import Space

CANARY = "the canary sings at midnight"
SEALED = Secret("open sesame")
DAY_S = 86_400.0


@pytest.fixture
def space(tmp_path: Path, database_url: str | None) -> Iterator[Space]:
    store = Store.open(tmp_path, database_url, Redactor([Secret("hunter2-hunter2")]))
    yield Space(store, tmp_path).furnish()
    store.close()


def refused(code: str, work: Callable[[], Any]) -> str:
    with pytest.raises(WorkspaceRefused) as error:
        work()
    assert error.value.code == code, error.value
    return str(error.value)


def row(space: Space, table: Any, **key: str) -> dict[str, Any]:
    [found] = [each for each in space.rows(table) if key.items() <= each.items()]
    return found


# ── members ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_invitation_is_for_one_person_and_seven_days(space: Space) -> None:
    org = space.ids["org"]
    refused("already_invited", lambda: space.do("ada", "inviteMember", orgId=org, userId="inga"))
    refused("not_invited", lambda: space.do("otto", "acceptInvitation", orgId=org))
    task, project = space.ids["task"], space.ids["project"]
    for visit in (
        lambda: space.do("ada", "updateTask", taskId=task, assignedToId="inga"),
        lambda: space.do("ada", "setProjectPermission", projectId=project, userId="inga", permission="view"),
    ):
        told = refused("no_member", visit)
        assert f"have not accepted: `council workspace orgs accept {org} --user inga`" in told
    space.planning.clock.pass_s(7 * DAY_S - 1)
    assert space.come_to("inga", "acceptInvitation", orgId=org).summary == "Inga is now a member of Garden."
    space.planning.clock.pass_s(1)
    refused("not_invited", lambda: space.do("inga", "acceptInvitation", orgId=org))
    space.do("ada", "inviteMember", orgId=org, userId="inga", role="guest")
    space.do("inga", "acceptInvitation", orgId=org)
    assert row(space, tables.members, user_id="inga")["role"] == "guest"
    assert space.rows(tables.invitations) == []
    refused("already_member", lambda: space.do("ada", "inviteMember", orgId=org, userId="inga"))


def test_an_invitation_is_corrected_and_withdrawn_until_it_is_accepted(space: Space) -> None:
    org = space.ids["org"]
    for capability in ("invite_members", "remove_members"):
        space.do("ada", "grantCapability", orgId=org, userId="mia", capability=capability)
    space.do("ada", "inviteMember", orgId=org, userId="inga", role="administrator")
    told = refused(
        "already_invited", lambda: space.do("ada", "inviteMember", orgId=org, userId="inga", role="administrator")
    )
    assert f"`council workspace members remove {org} inga` withdraws it" in told
    refused("forbidden", lambda: space.do("mia", "inviteMember", orgId=org, userId="inga", role="guest"))
    refused("forbidden", lambda: space.do("mia", "removeMember", orgId=org, userId="inga"))
    refused("forbidden", lambda: space.do("nora", "removeMember", orgId=org, userId="inga"))
    space.do("ada", "inviteMember", orgId=org, userId="inga", role="guest")
    assert [each["role"] for each in space.rows(tables.invitations)] == ["guest"]
    assert space.come_to("mia", "removeMember", orgId=org, userId="inga").summary == (
        "Inga: the invitation to Garden is withdrawn."
    )
    space.do("mia", "removeMember", orgId=org, userId="inga")
    assert space.rows(tables.invitations) == []
    refused("not_invited", lambda: space.do("inga", "acceptInvitation", orgId=org))
    refused("no_member", lambda: space.do("ada", "removeMember", orgId=org, userId="inga"))
    told = [each["text"] for each in space.come_to("inga", "listNotifications")]
    assert "Your invitation to Garden is withdrawn." in told


def test_a_member_leaves_and_an_invited_person_declines(space: Space) -> None:
    org, task = space.ids["org"], space.ids["task"]
    space.do("ada", "updateTask", taskId=task, assignedToId="mia")
    assert [each["taskId"] for each in space.come_to("ada", "listTasks", assignedToId="mia")] == [task]
    assert space.come_to("ada", "listTasks", assignedToId="nora") == []
    space.do("mia", "leaveOrganization", orgId=org)
    refused("not_found", lambda: space.come_to("mia", "getOrganization", orgId=org))
    assert row(space, tables.tasks, task_id=task)["assignee"] is None
    space.do("inga", "leaveOrganization", orgId=org)
    refused("not_invited", lambda: space.do("inga", "acceptInvitation", orgId=org))
    for who in ("inga", "otto", "steward"):
        refused("no_member", lambda who=who: space.do(who, "leaveOrganization", orgId=org))
    told = {who: [each["text"] for each in space.come_to(who, "listNotifications")] for who in ("ada", "alan")}
    assert ["Mia has left Garden." in told[who] for who in told] == [True, True]
    assert "Inga declined the invitation to Garden." in told["ada"]
    space.do("alan", "leaveOrganization", orgId=org)
    refused("last_administrator", lambda: space.do("ada", "leaveOrganization", orgId=org))


def test_organizations_and_projects_are_renamed(space: Space) -> None:
    org, project = space.ids["org"], space.ids["project"]
    space.do("ada", "updateOrganization", orgId=org, name="Orchard")
    assert space.come_to("gus", "getOrganization", orgId=org)["name"] == "Orchard"
    refused("unchanged", lambda: space.do("ada", "updateOrganization", orgId=org, name="Orchard"))
    space.do("ada", "updateProject", projectId=project, description="All that smells.")
    space.do("ada", "updateProject", projectId=project, name="Spices")
    found = space.come_to("mia", "getProjectDetail", projectId=project)
    assert (found["name"], found["description"]) == ("Spices", "All that smells.")


def test_the_last_administrator_stays_and_nobody_changes_their_own_standing(space: Space) -> None:
    org, project = space.ids["org"], space.ids["project"]
    refused("own_standing", lambda: space.do("ada", "changeRole", orgId=org, userId="ada", role="member"))
    refused("own_standing", lambda: space.do("ada", "removeMember", orgId=org, userId="ada"))
    own = {"orgId": org, "userId": "ada", "capability": "change_roles"}
    refused("own_standing", lambda: space.do("ada", "grantCapability", **own))
    own = {"projectId": project, "userId": "ada", "permission": "view"}
    refused("own_standing", lambda: space.do("ada", "setProjectPermission", **own))
    space.do("ada", "changeRole", orgId=org, userId="alan", role="member")
    refused("last_administrator", lambda: space.do("steward", "changeRole", orgId=org, userId="ada", role="guest"))
    refused("last_administrator", lambda: space.do("steward", "removeMember", orgId=org, userId="ada"))
    space.do("ada", "changeRole", orgId=org, userId="mia", role="administrator")
    space.do("mia", "removeMember", orgId=org, userId="ada")
    assert {each["user_id"]: each["role"] for each in space.rows(tables.members)} == {
        "alan": "member",
        "gus": "guest",
        "mia": "administrator",
        "nora": "member",
    }


def test_a_capability_reaches_no_administrator_and_makes_none(space: Space) -> None:
    org = space.ids["org"]
    for capability in ("change_roles", "remove_members", "invite_members"):
        space.do("ada", "grantCapability", orgId=org, userId="mia", capability=capability)
    refused("forbidden", lambda: space.do("mia", "removeMember", orgId=org, userId="alan"))
    refused("forbidden", lambda: space.do("mia", "changeRole", orgId=org, userId="alan", role="guest"))
    refused("forbidden", lambda: space.do("mia", "changeRole", orgId=org, userId="gus", role="administrator"))
    refused("forbidden", lambda: space.do("mia", "inviteMember", orgId=org, userId="otto", role="administrator"))
    space.do("mia", "changeRole", orgId=org, userId="gus", role="member")
    assert {each["user_id"]: each["role"] for each in space.rows(tables.members)}["gus"] == "member"
    space.do("mia", "removeMember", orgId=org, userId="gus")
    left = {each["user_id"]: each["role"] for each in space.rows(tables.members)}
    assert {user for user, role in left.items() if role == "administrator"} == {"ada", "alan"}, "as before"
    assert "gus" not in left


def test_a_removed_member_loses_grants_tasks_and_what_they_wrote_in_projects(space: Space) -> None:
    org, project, task = space.ids["org"], space.ids["project"], space.ids["task"]
    space.do("ada", "grantCapability", orgId=org, userId="nora", capability="manage_events")
    space.do("ada", "setProjectPermission", projectId=project, userId="nora", permission="edit_tasks")
    space.do("ada", "updateTask", taskId=task, assignedToId="nora")
    space.do("ada", "removeMember", orgId=org, userId="nora")
    assert [each for each in space.rows(tables.capabilities) if each["user_id"] == "nora"] == []
    assert [each for each in space.rows(tables.permissions) if each["user_id"] == "nora"] == []
    assert row(space, tables.tasks, task_id=task)["assignee"] is None
    refused("not_found", lambda: space.do("nora", "updateNote", noteId=space.ids["note"], content="Still here"))
    assert space.come_to("nora", "getNoteContentIfUnlocked", noteId=space.ids["own"])["content"] == "Mine alone."
    told = [each["text"] for each in space.come_to("nora", "listNotifications")]
    assert "You are no longer a member of Garden." in told


def test_who_has_no_role_in_the_home_any_more_is_marked_and_gets_no_task(space: Space) -> None:
    org, project, task = space.ids["org"], space.ids["project"], space.ids["task"]
    space.store.write_now(lambda tx: tx.core.execute(delete(roles).where(roles.c.user_id == "mia")))
    for name, rows, of in (
        ("getOrganization", "members", {"orgId": org}),
        ("getProjectDetail", "collaborators", {"projectId": project}),
    ):
        seen = space.come_to("ada", name, **of)[rows]
        assert [each["userId"] for each in seen if each["hasLeft"]] == ["mia"]
    told = refused("no_member", lambda: space.do("ada", "updateTask", taskId=task, assignedToId="mia"))
    assert "mia has no role in this home any more" in told
    refused("no_member", lambda: space.do("ada", "createTask", projectId=project, title="Dig", assignedToId="mia"))
    space.do("ada", "updateTask", taskId=task, assignedToId="nora")


def test_a_member_of_one_organization_is_nobody_in_another(space: Space) -> None:
    other = space.do("otto", "createOrganization", name="Orchard")
    project = space.do("otto", "createProject", orgId=other, name="Apples")
    task = space.do("otto", "createTask", projectId=project, title="Prune")
    for who in ("ada", "nora", "gus"):
        refused("not_found", lambda who=who: space.come_to(who, "getTaskDetail", taskId=task))
        refused("not_found", lambda who=who: space.do(who, "deleteTask", taskId=task))
        assert "Apples" not in str(space.come_to(who, "listProjects"))
    refused("no_member", lambda: space.do("otto", "updateTask", taskId=task, assignedToId="mia"))
    assert len(space.come_to("hana", "listProjects")) == 2
    assert [each["name"] for each in space.come_to("otto", "listOrganizations")] == ["Orchard"]


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("table", "key", "values"),
    [
        (tables.tasks, "task_id", {"status": "maybe"}),
        (tables.tasks, "task_id", {"priority": "highest"}),
        (tables.tasks, "task_id", {"position": -1}),
        (tables.tasks, "task_id", {"project_id": "none"}),
        (tables.tasks, "task_id", {"assignee": "none"}),
        (tables.members, "org_id", {"role": "king"}),
        (tables.comments, "comment_id", {"task_id": None}),
        (tables.events, "event_id", {"org_id": "none"}),
    ],
)
def test_the_database_itself_refuses_rows_that_make_no_sense(
    space: Space, table: Any, key: str, values: dict[str, Any]
) -> None:
    chosen = space.rows(table)[0][key]
    before = space.rows(table)
    with pytest.raises((IntegrityError, StorageFailed)):
        space.store.write_now(lambda tx: tx.core.execute(update(table).where(table.c[key] == chosen).values(values)))
    assert space.rows(table) == before


def test_nobody_is_twice_a_member(space: Space) -> None:
    twice = insert(tables.members).values(org_id=space.ids["org"], user_id="mia", role="guest", created_ms=0)
    with pytest.raises((IntegrityError, StorageFailed)):
        space.store.write_now(lambda tx: tx.core.execute(twice))


def test_a_patch_changes_what_it_names_and_null_takes_away(space: Space) -> None:
    task = space.do(
        "ada",
        "createTask",
        projectId=space.ids["project"],
        title="Water",
        acceptanceCriteria=["wet", "not drowned"],
        assignedToId="mia",
        dueDate="2026-12-31",
        orderIndex=3,
        epic="Summer",
        stage="Care",
        priority="urgent",
    )
    space.do("ada", "updateTask", taskId=task, dueDate=None, acceptanceCriteria=[], description="Twice a day")
    found = space.come_to("mia", "getTaskDetail", taskId=task)
    assert (found["dueDate"], found["acceptanceCriteria"], found["description"]) == ("", [], "Twice a day")
    assert (found["title"], found["priority"], found["orderIndex"], found["epic"], found["stage"]) == (
        "Water",
        "urgent",
        3,
        "Summer",
        "Care",
    )
    assert found["assignedToId"] == "mia"
    refused("unchanged", lambda: space.do("ada", "updateTask", taskId=task, dueDate=None))
    space.do("ada", "updateTask", taskId=task, assignedToId=None)
    assert space.come_to("mia", "getTaskDetail", taskId=task)["assignedToId"] == ""


def test_tasks_are_listed_by_project_status_and_priority_in_their_order(space: Space) -> None:
    project = space.ids["project"]
    space.do("ada", "createTask", projectId=project, title="Second", orderIndex=2, priority="low")
    space.do("ada", "createTask", projectId=project, title="First", orderIndex=1, status="blocked")

    def titles(**filters: str) -> list[str]:
        return [each["title"] for each in space.come_to("mia", "listTasks", **filters)]

    space.do("ada", "createTask", projectId=project, title="Past", status="done")
    assert titles() == titles(projectId=project) == ["Sow basil", "First", "Second", "Past"]
    assert titles(status="blocked") == ["First"]
    assert titles(priority="low") == ["Second"]
    assert titles(status="done", projectId=project) == ["Past"]


def test_the_newest_note_stands_first(space: Space) -> None:
    space.planning.clock.pass_s(60)
    space.do("nora", "createNote", content="x", title="Of today")
    space.planning.clock.pass_s(60)
    space.do("nora", "createNote", content="x", title="Of this minute")
    listed = [each["title"] for each in space.come_to("nora", "listNotesMetadata")]
    assert (listed[:2], len(listed)) == (["Of this minute", "Of today"], 4)


def test_a_list_asks_once_for_each_note_of_somebody_else(space: Space) -> None:
    def statements(visit: Visit) -> int:
        asked: list[str] = []
        listen(visit.connection, "before_cursor_execute", lambda *told: asked.append(told[2]))
        ACTIONS["listNotesMetadata"](visit, NoteFilter(projectId=space.ids["project"]))
        return len(asked)

    before = space.visiting("ada", statements)
    space.do("ada", "setProjectPermission", projectId=space.ids["project"], userId="nora", permission="edit_notes")
    for number in range(3):
        space.do("nora", "createNote", projectId=space.ids["project"], content=f"Frost {number}.", title="Frost")
    assert space.visiting("ada", statements) - before == 3


def test_secrets_are_taken_out_and_forgetting_reaches_every_word(space: Space) -> None:
    project, org = space.ids["project"], space.ids["org"]
    words = "about hunter2-hunter2 and mandrake"
    space.do("ada", "createOrganization", name=words)
    space.do("ada", "createProject", orgId=org, name=words, description=words)
    texts = {"title": words, "description": words, "epic": words, "stage": words, "acceptanceCriteria": [words]}
    task = space.do("ada", "createTask", projectId=project, **texts)
    space.do("ada", "createNote", content=words, title=words)
    space.do("ada", "createEvent", orgId=org, title=words, description=words, region=words, date="2026-12-20T10:00")
    space.do("ada", "addComment", taskId=task, content=words)
    held = [
        (table.name, column.name)
        for table in (tables.organizations, tables.projects, tables.tasks, tables.notes, tables.events, tables.comments)
        for column in words_of(table)
        if any(each[column.name] == "about [secret] and mandrake" for each in space.rows(table))
    ]
    every = [
        (table.name, column.name)
        for table in vars(tables).values()
        if isinstance(table, Table)
        for column in words_of(table)
    ]
    assert sorted(held) == sorted(every)
    rooms = ["council.workspace.tables"]
    change_words(space.store, rooms, lambda text: text.replace("mandrake", ""))
    assert "mandrake" not in str(space.everything())
    assert space.store.write_now(lambda tx: count_words(tx, rooms, lambda text: text.replace("mandrake", ""))) == 0


# ── plans ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def applied(space: Space, who: str, kind: str, *operations: tuple[str, dict[str, Any]], **how: Any) -> Any:
    planning, by = space.planning, space.principal(who)
    return planning.apply(planning.confirm(planning.draft(*operations, kind=kind, by=by, **how), by=by), by=by).plan


def test_a_plan_creates_and_changes_and_its_undo_keeps_what_somebody_changed_since(space: Space) -> None:
    project, task = space.ids["project"], space.ids["task"]
    plan = applied(
        space,
        "ada",
        "tasks",
        ("createTask", {"title": "Sow thyme", "priority": "high"}),
        ("createTask", {"title": "Sow sage"}),
        ("updateTask", {"taskId": task, "title": "Sow more basil"}),
        ("updateTaskStatus", {"taskId": task, "status": "in_progress"}),
        scope={"projectId": project},
    )
    assert plan.stored == "applied"
    assert {each["title"] for each in space.rows(tables.tasks)} == {"Sow more basil", "Sow thyme", "Sow sage"}
    sage = row(space, tables.tasks, title="Sow sage")["task_id"]
    space.do("mia", "addComment", taskId=sage, content="Which sort?")
    undone = space.planning.undo(plan, by=space.principal("ada")).plan
    assert [each.undo for each in undone.results] == [
        "undone",
        "was kept: somebody changed it since",
        "undone",
        "undone",
    ]
    assert {(each["title"], each["status"]) for each in space.rows(tables.tasks)} == {
        ("Sow basil", "todo"),
        ("Sow sage", "todo"),
    }
    assert len([each for each in space.rows(tables.comments) if each["task_id"] == sage]) == 1


def test_an_undo_of_a_deletion_says_what_is_gone_and_where_it_was(space: Space) -> None:
    for name, ids, where in (
        ("deleteNote", {"noteId": space.ids["note"]}, "The note “Frost” in Herbs"),
        ("deleteTask", {"taskId": space.ids["task"]}, "The task “Sow basil” in Herbs"),
    ):
        plan = applied(space, "steward", f"{name[6:].lower()}s", (name, ids))
        with pytest.raises(PlanRefused, match=f"{where} is deleted.* cannot be brought back") as gone:
            space.planning.undo(plan, by=space.principal("steward"))
        assert gone.value.code == "nothing_to_undo"


def test_a_row_that_changed_since_the_draft_refuses_the_plan(space: Space) -> None:
    planning, ada, task = space.planning, space.principal("ada"), space.ids["task"]
    plan = planning.confirm(planning.draft(("deleteTask", {"taskId": task}), kind="tasks", by=ada), by=ada)
    space.do("alan", "updateTaskStatus", taskId=task, status="done")
    ending = planning.apply(plan, by=ada)
    assert ending.error is not None
    assert ending.error.code == "changed_since_draft"
    assert row(space, tables.tasks, task_id=task)["status"] == "done"


def test_a_plan_stays_in_its_scope(space: Space) -> None:
    other = space.do("ada", "createProject", orgId=space.ids["org"], name="Trees")
    for name, given in (
        ("updateTask", {"taskId": space.ids["task"], "title": "x"}),
        ("deleteTask", {"taskId": space.ids["task"]}),
        ("addComment", {"taskId": space.ids["task"], "content": "x"}),
        ("removeComment", {"commentId": space.ids["comment"]}),
    ):
        with pytest.raises(PlanRefused) as error:
            space.planning.draft((name, given), kind="tasks", by=space.principal("ada"), scope={"projectId": other})
        assert error.value.code == "not_found"
    wanted = ("createTask", {"title": "x", "projectId": space.ids["project"]})
    with pytest.raises(PlanRefused) as foreign:
        space.planning.draft(wanted, kind="tasks", by=space.principal("ada"), scope={"projectId": other})
    assert foreign.value.code == "outside_scope"


def test_each_kind_of_plan_holds_its_own_tools_alone(space: Space) -> None:
    with pytest.raises(PlanRefused) as error:
        space.planning.draft(("createNote", {"content": "x"}), kind="tasks", by=space.principal("ada"))
    assert error.value.code == "tool_not_allowed"


def test_a_plan_about_members_names_what_is_refused_and_does_the_rest(space: Space) -> None:
    org, planning, ada = space.ids["org"], space.planning, space.principal("ada")
    plan = planning.confirm(
        planning.draft(
            ("changeRole", {"orgId": org, "userId": "mia", "role": "guest"}),
            ("grantCapability", {"orgId": org, "userId": "gus", "capability": "manage_events"}),
            kind="members",
            by=ada,
        ),
        by=ada,
    )
    space.do("alan", "removeMember", orgId=org, userId="mia")
    done = planning.apply(plan, by=ada).plan
    assert [each.code for each in done.results] == ["no_member", ""]
    assert row(space, tables.capabilities, user_id="gus")["capability"] == "manage_events"


def test_the_same_request_gives_the_same_row_in_one_project_and_another_in_the_next(space: Space) -> None:
    other = space.do("ada", "createProject", orgId=space.ids["org"], name="Trees")
    for project in (space.ids["project"], space.ids["project"], other):
        wanted = {
            "kind": "tasks",
            "scope": {"projectId": project},
            "operations": [{"tool": "createTask", "arguments": {"title": "Once"}, "client_request_id": "once-0001"}],
        }
        planning, ada = space.planning, space.principal("ada")
        plan = planning.propose(msgspec.convert(wanted, Proposal), ada)
        assert planning.apply(planning.confirm(plan, by=ada), by=ada).error is None
    assert sorted(each["project_id"] for each in space.rows(tables.tasks) if each["title"] == "Once") == sorted(
        (space.ids["project"], other)
    )


def test_an_undo_is_promised_to_those_alone_who_may_take_it_back(space: Space) -> None:
    project = space.ids["project"]
    wanted = {"projectId": project, "title": "Sow thyme"}
    space.do("ada", "setProjectPermission", projectId=project, userId="gus", permission="edit_tasks")
    assert not space.come_to("gus", "createTask", **wanted).preview.undoable
    space.do("ada", "setProjectPermission", projectId=project, userId="gus", permission="delete_tasks")
    assert space.come_to("gus", "createTask", **wanted).preview.undoable


# ── locks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def locked(space: Space) -> str:
    note = space.do("nora", "createNote", content=CANARY, title="Diary")
    space.do("nora", "lockNote", noteId=note)
    return note


def everything_said(space: Space, who: str, note: str) -> str:
    said = [str(space.come_to(who, name)) for name in ("listNotesMetadata", "listNotifications", "getSessionContext")]
    said += [str(each.detail) for each in space.planning.log.tail(1000)]
    said += [json.dumps(each, default=str) for each in space.everything()["workspace_comments"]]
    rows = space.store.read(
        lambda tx: tx.execute("SELECT operations, previews, results, outcome FROM plans").fetchall()
    )
    return "".join([*said, *(str(each) for each in rows)])


def test_a_locked_note_says_nothing_and_cannot_be_changed_until_it_is_unlocked(space: Space, locked: str) -> None:
    for who in ("nora", "mia", "ada", "steward"):
        for name, more in (
            ("getNoteContentIfUnlocked", {}),
            ("updateNote", {"content": "gone"}),
            ("deleteNote", {}),
            ("lockNote", {}),
            ("removeLock", {}),
        ):
            code = "locked" if who == "nora" else "not_found"
            assert CANARY not in refused(
                code, lambda who=who, name=name, more=more: space.do(who, name, noteId=locked, **more)
            )
        assert CANARY not in everything_said(space, who, locked)
    with pytest.raises(PlanRefused, match="is locked"):
        space.planning.draft(
            ("updateNote", {"noteId": locked, "content": "x"}), kind="notes", by=space.principal("nora")
        )
    assert row(space, tables.notes, note_id=locked)["content"] == CANARY


def test_an_unlock_is_for_one_principal_and_ends_by_itself(space: Space) -> None:
    note = space.ids["note"]
    space.do("nora", "lockNote", noteId=note)
    for secret in ("", "open sesam", "Open sesame"):
        refused("wrong_secret", lambda secret=secret: unlock(space, "mia", note, secret))
    told = refused("locked", lambda: space.come_to("mia", "getNoteContentIfUnlocked", noteId=note))
    assert f"`council workspace notes unlock {note} --user mia` asks for its secret" in told, "as run it is for her"
    unlock(space, "mia", note, SEALED.reveal())
    assert "frost" in space.come_to("mia", "getNoteContentIfUnlocked", noteId=note)["content"]
    refused("locked", lambda: space.come_to("nora", "getNoteContentIfUnlocked", noteId=note))
    refused("locked", lambda: space.come_to("steward", "getNoteContentIfUnlocked", noteId=note))
    space.planning.clock.pass_s(899)
    space.come_to("mia", "getNoteContentIfUnlocked", noteId=note)
    space.planning.clock.pass_s(1)
    refused("locked", lambda: space.come_to("mia", "getNoteContentIfUnlocked", noteId=note))
    refused("short_secret", lambda: lock(space, "nora", space.ids["own"], "abc"))


def lock(space: Space, who: str, note: str, secret: str) -> None:
    space.visiting(who, lambda visit: notes.lock_note(visit, OfNote(noteId=note), notes.NoteLock.of(Secret(secret))))


def unlock(space: Space, who: str, note: str, secret: str) -> None:
    """As the desk does it: the try is counted in a transaction of its own."""
    of_note = OfNote(noteId=note)
    lock = space.visiting(who, lambda visit: notes.count_try(visit, of_note))
    lock.require(Secret(secret))
    space.visiting(who, lambda visit: notes.unlock_note(visit, of_note, lock, 900_000).write(visit.connection))


def test_after_five_wrong_secrets_a_note_is_closed_for_a_growing_time_to_that_principal(space: Space) -> None:
    note = space.ids["note"]
    space.do("nora", "lockNote", noteId=note)

    def tries(secret: str, code: str, count: int) -> None:
        for _ in range(count):
            refused(code, lambda: unlock(space, "mia", note, secret))

    tries("7391", "wrong_secret", 5)
    told = refused("too_many_tries", lambda: unlock(space, "mia", note, SEALED.reveal()))
    assert "5 secrets were wrong. Fix: try again after 2026-11-22T12:01:00Z" in told
    for wait_s in (60, 120, 240):
        space.planning.clock.pass_s(wait_s - 1)
        tries(SEALED.reveal(), "too_many_tries", 1)
        space.planning.clock.pass_s(1)
        tries("7392", "wrong_secret", 1)
    unlock(space, "nora", note, SEALED.reveal())
    space.planning.clock.pass_s(480)
    unlock(space, "mia", note, SEALED.reveal())
    tries("7393", "wrong_secret", 5)
    tries("7393", "too_many_tries", 1)


def test_a_plan_on_an_unlocked_note_shows_and_keeps_nothing_of_what_it_said(space: Space, locked: str) -> None:
    space.do("nora", "unlockNote", noteId=locked)
    plan = applied(space, "nora", "notes", ("updateNote", {"noteId": locked, "content": "A new day."}))
    assert plan.stored == "applied"
    assert not plan.previews[0].undoable
    assert plan.results[0].inverse is None
    assert row(space, tables.notes, note_id=locked)["content"] == "A new day."
    assert CANARY not in everything_said(space, "nora", locked)
    space.planning.clock.pass_s(900)
    refused("locked", lambda: space.come_to("nora", "getNoteContentIfUnlocked", noteId=locked))


@pytest.mark.parametrize("leaves", ["removed", "without a role"])
def test_the_lock_of_somebody_who_left_is_removed_by_an_administrator_with_its_secret(
    space: Space, leaves: str
) -> None:
    note, org = space.ids["note"], space.ids["org"]
    space.do("nora", "lockNote", noteId=note)
    for who in ("ada", "steward"):
        space.do(who, "unlockNote", noteId=note)
        refused("forbidden", lambda who=who: space.do(who, "removeLock", noteId=note))
    if leaves == "removed":
        space.do("ada", "removeMember", orgId=org, userId="nora")
    else:
        change_roles(space.planning.log, "nora", [], ["user"])
    space.do("mia", "unlockNote", noteId=note)
    refused("forbidden", lambda: space.do("mia", "removeLock", noteId=note))
    refused("locked", lambda: space.do("alan", "removeLock", noteId=note))
    space.do("ada", "removeLock", noteId=note)
    assert space.come_to("mia", "getNoteContentIfUnlocked", noteId=note)["content"] == "Basil hates frost."


def test_a_lock_after_the_draft_refuses_the_plan_and_taking_it_off_opens_the_note(space: Space) -> None:
    planning, nora, note = space.planning, space.principal("nora"), space.ids["own"]
    plan = planning.confirm(planning.draft(("deleteNote", {"noteId": note}), kind="notes", by=nora), by=nora)
    space.do("nora", "lockNote", noteId=note)
    ending = planning.apply(plan, by=nora)
    assert ending.error is not None
    assert ending.error.code == "locked"
    space.do("nora", "unlockNote", noteId=note)
    space.do("nora", "removeLock", noteId=note)
    assert space.rows(tables.note_unlocks) == []
    assert space.come_to("nora", "getNoteContentIfUnlocked", noteId=note)["content"] == "Mine alone."


# ── events and notifications ─────────────────────────────────────────────────────────────────────────────────────────


def test_an_event_is_seen_inside_and_a_public_one_by_everybody(space: Space) -> None:
    org, event = space.ids["org"], space.ids["event"]
    assert space.come_to("otto", "listEventsPublic") == space.come_to("otto", "listEvents") == []
    space.do("ada", "updateEvent", eventId=event, public=True, zone="Europe/Sofia", region="Plovdiv", reminders=[60, 5])
    [seen] = space.come_to("otto", "listEventsPublic")
    assert (seen["title"], seen["zone"], seen["region"], seen["reminders"]) == (
        "Open day",
        "Europe/Sofia",
        "Plovdiv",
        [60, 5],
    )
    assert row(space, tables.events, event_id=event)["starts_ms"] == 1_797_753_600_000  # 08:00 UTC
    space.do("mia", "addComment", eventId=event, content="I come.")
    [inside] = space.come_to("gus", "listEvents", orgId=org)
    assert [each["content"] for each in inside["comments"]] == ["I come."]
    refused("one_subject", lambda: space.do("mia", "addComment", content="About nothing."))


def test_events_ahead_come_first_then_past_ones_and_days_bound_the_list(space: Space) -> None:
    org = space.ids["org"]
    for date in ("2026-11-20T09:00", "2027-02-01T09:00", "2026-11-22T08:00", "2026-08-01T09:00", "2026-11-30T23:30"):
        space.do("ada", "createEvent", orgId=org, title=date[:10], date=date, zone="Europe/Sofia", public=True)
    space.do("ada", "deleteEvent", eventId=space.ids["event"])

    def days(name: str, **filters: str) -> list[str]:
        return [each["title"] for each in space.come_to("gus", name, **filters)]

    ahead, past = ["2026-11-22", "2026-11-30", "2027-02-01"], ["2026-11-20", "2026-08-01"]
    assert days("listEvents") == days("listEventsPublic") == [*ahead, *past]
    assert days("listEvents", since="2026-11-30") == ["2026-11-30", "2027-02-01"]
    assert days("listEvents", since="2026-11-20", until="2026-11-30", orgId=org) == [*ahead[:2], past[0]]
    assert days("listEvents", until="2026-08-01") == ["2026-08-01"]


def test_an_event_starts_at_a_time_that_there_is(space: Space) -> None:
    org, event = space.ids["org"], space.ids["event"]
    for when in ("2026-12-31", "2026-12-31T18:00:30", "0001-01-01T10:00", "2026-12-31T18:00+01:00"):
        with pytest.raises(ValidationError):
            space.do("ada", "createEvent", orgId=org, title="Never", date=when)
    gap = {"date": "2027-03-28T02:30", "zone": "Europe/Berlin"}
    told = refused("no_such_time", lambda: space.do("ada", "createEvent", orgId=org, title="Gap", **gap))
    assert "Fix: name another time, such as 2027-03-28T03:30" in told
    refused("no_such_time", lambda: space.do("ada", "updateEvent", eventId=event, **gap))
    space.do("ada", "updateEvent", eventId=event, **gap | {"date": "2027-10-31T02:30"})
    assert row(space, tables.events, event_id=event)["starts_ms"] == 1_824_942_600_000, "the first of two"


def test_an_event_of_a_plan_is_in_the_zone_of_the_home_unless_it_names_one(space: Space) -> None:
    new = {"orgId": space.ids["org"], "date": "2026-12-21T18:00"}
    plan = applied(
        space,
        "ada",
        "events",
        ("createEvent", {**new, "title": "Here"}),
        ("createEvent", {**new, "title": "There", "zone": "Europe/Lisbon"}),
    )
    assert "2026-12-21T18:00 (Europe/Sofia)" in plan.previews[0].summary
    zones = {each["title"]: each["zone"] for each in space.rows(tables.events)}
    assert (zones["Here"], zones["There"]) == ("Europe/Sofia", "Europe/Lisbon")


def remind(space: Space) -> int:
    """What the daemon's companion does at this moment."""
    now_ms = int(space.planning.clock.now().timestamp() * 1000)
    return space.store.write_now(lambda tx: tell_due(tx, now_ms))


def reminders_of(space: Space, who: str) -> list[str]:
    found = space.come_to(who, "listNotifications")
    return [each["text"] for each in found if each["text"].startswith("“")]


def test_a_due_reminder_is_one_notification_for_each_who_belongs_there_then(space: Space) -> None:
    org = space.ids["org"]
    event = space.do("ada", "createEvent", orgId=org, title="Sowing", date="2026-11-22T14:00", reminders=[60, 15])
    assert remind(space) == 0
    space.planning.clock.pass_s(3_599)
    assert remind(space) == 0
    space.planning.clock.pass_s(1)
    assert (remind(space), remind(space)) == (1, 0)
    told = ["“Sowing” begins at 2026-11-22T14:00 (UTC)."]
    assert [reminders_of(space, who) for who in ("ada", "mia", "gus", "otto")] == [told, told, told, []]
    space.do("ada", "removeMember", orgId=org, userId="mia")
    space.planning.clock.pass_s(45 * 60)
    assert (remind(space), remind(space)) == (1, 0)
    assert [reminders_of(space, who) for who in ("gus", "mia")] == [told * 2, told]
    space.do("ada", "updateEvent", eventId=event, date="2026-11-22T13:50")
    assert (remind(space), remind(space)) == (1, 0)
    assert "“Sowing” begins at 2026-11-22T13:50 (UTC)." in reminders_of(space, "gus")


def test_after_a_downtime_an_event_is_reminded_of_once_and_a_week_later_no_more(space: Space) -> None:
    org = space.ids["org"]
    space.do("ada", "createEvent", orgId=org, title="Sowing", date="2026-11-22T14:00", reminders=[60, 15, 0])
    space.do("ada", "createEvent", orgId=org, title="Digging", date="2026-11-16T14:00", reminders=[60])
    space.do("ada", "createEvent", orgId=org, title="Long ago", date="2026-11-01T14:00", reminders=[60])
    space.planning.clock.pass_s(86_400)
    assert (remind(space), remind(space)) == (2, 0)
    assert sorted(reminders_of(space, "gus")) == [
        "“Digging” began at 2026-11-16T14:00 (UTC).",
        "“Sowing” began at 2026-11-22T14:00 (UTC).",
    ]
    space.planning.clock.pass_s(8 * 86_400)
    assert remind(space) == 0
    assert (
        space.store.read(
            lambda tx: tx.execute("SELECT name FROM marks WHERE substr(name, 1, 9) = 'reminded/'").fetchall()
        )
        == []
    )


@pytest.mark.parametrize(
    ("day", "hour_utc"), [("2027-03-27", 8), ("2027-03-28", 7), ("2027-10-30", 7), ("2027-10-31", 8)]
)
def test_a_reminder_goes_by_the_clock_at_the_place_of_the_event(space: Space, day: str, hour_utc: int) -> None:
    """Summer time begins there on 28 March and ends on 31 October."""
    org, place = space.ids["org"], {"zone": "Europe/Sofia", "reminders": [60]}
    space.planning.clock.at = datetime.fromisoformat(f"{day}T00:00:00+00:00")
    space.do("ada", "createEvent", orgId=org, title="Sowing", date=f"{day}T10:00", **place)
    due = datetime.fromisoformat(f"{day}T{hour_utc - 1:02}:00:00+00:00")
    space.planning.clock.at = due - timedelta(seconds=1)
    assert remind(space) == 0
    space.planning.clock.at = due
    assert remind(space) == 1
    assert reminders_of(space, "gus") == [f"“Sowing” begins at {day}T10:00 (Europe/Sofia)."]


def test_people_are_told_what_others_changed_for_them_and_read_it_once(space: Space) -> None:
    org, task = space.ids["org"], space.ids["task"]
    space.do("ada", "updateTask", taskId=task, assignedToId="mia")
    space.do("nora", "addComment", taskId=task, content="Well?")
    space.do("ada", "grantCapability", orgId=org, userId="mia", capability="manage_events")
    space.do("ada", "changeRole", orgId=org, userId="mia", role="guest")
    found = space.come_to("mia", "listNotifications")
    assert sorted(each["text"] for each in found if each["unread"])[:5] == [
        "Nora commented on “Sow basil”.",
        "The task “Sow basil” is yours now.",
        "You are invited to Garden as a member, for seven days. "
        f"`council workspace orgs accept {org} --user mia` accepts.",
        "You may now use `manage_events` in Garden.",
        "Your role in Garden is now guest.",
    ]
    space.do("mia", "readNotifications")
    assert not any(each["unread"] for each in space.come_to("mia", "listNotifications"))
    assert any(each["unread"] for each in space.come_to("nora", "listNotifications"))
