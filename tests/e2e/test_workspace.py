"""The workspace through the real process: people change it directly, agents by plans, and a lock hides what it guards."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Daemon, drop_command, environment, make_home, opened, receipts, rows_of, run_cli, wait_until
from tests.space import Space

MACHINE_ID = re.compile(r"\d{8}-\d{6}-[0-9a-z]{8}")
CANARY = "the canary sings at midnight"
READ = (
    "getSessionContext()",
    "listOrganizations()",
    'getOrganization("{org}")',
    "listProjects()",
    'getProjectDetail("{project}")',
    "listTasks()",
    'getTaskDetail({{"taskId": "{task}"}})',
    "listNotifications()",
    "listEventsPublic()",
    "listEvents()",
    "listNotesMetadata()",
    'getNoteContentIfUnlocked({{"noteId": "{note}"}})',
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path / "home", settings='model = "offline"\nsettle_s = 0.5\nscan_interval_s = 0.5\n')


@pytest.fixture
def furnished(home: Path) -> Iterator[Space]:
    with opened(home) as store:
        yield Space(store, home / ".council").furnish()


def ask(home: Path, *arguments: str, code: int = 0, stdin: str = "") -> str:
    done = run_cli("--home", str(home), *arguments, cwd=home, env=environment(), stdin=stdin.encode())
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def workspace(home: Path, user: str, *arguments: str, **how: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ask(home, "workspace", *arguments, "--user", user, "--json", **how))
    return found


def test_people_share_a_workspace_on_the_command_line_and_every_change_is_audited(home: Path) -> None:
    for user in ("anna", "boris"):
        ask(home, "users", "add", user, "--name", user.title())
    org = workspace(home, "anna", "orgs", "add", "Garden")["id"]
    workspace(home, "anna", "members", "invite", org, "boris", "--role", "guest")
    assert "accepts." in workspace(home, "boris", "notifications", "list")["rows"][0]["text"]
    workspace(home, "boris", "orgs", "accept", org)
    project = workspace(home, "anna", "projects", "add", org, "Herbs")["id"]
    assert workspace(home, "boris", "projects", "list")["rows"] == []
    told = ask(home, "workspace", "tasks", "add", project, "Sow", "--user", "boris", code=6)
    assert "error (not_found): There is no project, or you may not see it." in told
    workspace(home, "anna", "projects", "permit", project, "boris", "edit_tasks")
    task = workspace(
        home, "boris", "tasks", "add", project, "Sow basil", "--priority", "high", "--due-date", "2027-03-01",
        "--acceptance-criteria", "The bed is wet", "--acceptance-criteria", "The seeds are in", "--assigned-to", "anna",
    )["id"]  # fmt: skip
    workspace(home, "boris", "tasks", "edit", task, "--due-date", "", "--title", "Sow more basil")
    told = " ".join(ask(home, "workspace", "tasks", "edit", "--help").split())
    assert ('assigned to; "" for nobody.' in told, 'its zone; "" for none.' in told, "null" in told) == (
        True,
        True,
        False,
    )
    workspace(home, "boris", "tasks", "edit", task, "--assigned-to", "")
    assert workspace(home, "boris", "tasks", "show", task)["assignedToId"] == ""
    workspace(home, "boris", "tasks", "status", task, "in_progress")
    told = ask(home, "workspace", "tasks", "delete", task, "--user", "boris", code=6)
    assert "error (forbidden): boris may not use deleteTask here." in told
    assert "`delete_tasks`" in told
    workspace(home, "anna", "comments", "add", "Good.", "--task", task)
    shown = workspace(home, "anna", "tasks", "show", task)
    assert (shown["title"], shown["status"], shown["dueDate"]) == ("Sow more basil", "in_progress", "")
    assert shown["acceptanceCriteria"] == ["The bed is wet", "The seeds are in"]
    assert [comment["content"] for comment in shown["comments"]] == ["Good."]
    listed = ask(home, "workspace", "tasks", "list", "--user", "boris")
    assert f"{task}  Sow more basil  in_progress  high" in listed
    event = ("Open day", "2026-12-20T10:00", "--zone", "Europe/Sofia", "--public", "--reminders", "60")
    workspace(home, "anna", "events", "add", org, *event)
    with (home / "council.toml").open("a") as settings:
        settings.write('timezone = "Europe/Sofia"\n')
    here = workspace(home, "anna", "events", "add", org, "Closing", "2026-12-21T18:00", "--reminders", "60")
    assert "“Closing”, 2026-12-21T18:00 (Europe/Sofia)." in here["summary"]
    assert rows_of(home, "SELECT zone, starts_ms FROM workspace_events WHERE title = 'Closing'") == [
        ("Europe/Sofia", 1_797_868_800_000)
    ]
    ask(home, "users", "add", "otto")
    assert [row["title"] for row in workspace(home, "otto", "events", "public")["rows"]] == ["Open day"]
    assert "error (no_principal)" in ask(home, "workspace", "tasks", "list", "--user", "nobody", code=6)
    assert "`dueDate`" in ask(home, "workspace", "tasks", "edit", task, "--due-date", "soon", "--user", "anna", code=2)
    assert rows_of(home, "SELECT title, version FROM workspace_tasks") == [("Sow more basil", 4)]
    exported = ask(home, "audit", "tail", "-n", "100")
    assert exported.count("workspace_changed") == 12
    assert exported.count("workspace_refused") == 2
    assert "Sow" not in exported
    ask(home, "audit", "verify")


def test_a_reminder_that_became_due_while_nothing_ran_is_one_notification_and_stays_one(
    home: Path, furnished: Space
) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=30)
    at = {"title": "Sowing", "date": f"{soon:%Y-%m-%dT%H:%M}", "reminders": [60, 45]}
    furnished.do("ada", "createEvent", orgId=furnished.ids["org"], **at)
    told = f"“Sowing” begins at {at['date']} (UTC)."

    def found() -> list[str]:
        rows = json.loads(ask(home, "workspace", "notifications", "--user", "gus", "--json"))["rows"]
        return [row["text"] for row in rows if row["text"] == told]

    assert found() == []
    with Daemon(home) as daemon:
        daemon.ready()
        wait_until(found, "gus is reminded")
        daemon.kill()
    with Daemon(home) as daemon:
        daemon.ready()
        daemon.scan()
        assert "reminders" in json.loads(ask(home, "status", "--json"))["companions"]
        assert daemon.stop() == 0
    assert found() == [told]
    assert told in ask(home, "workspace", "notifications", "list", "--user", "gus")


def plan_of(home: Path, daemon: Daemon, kind: str, user: str, operations: list[dict[str, Any]]) -> str:
    """A plan that a person dropped as a file, read, confirmed and applied through the daemon. How its apply ended."""
    name = f"{kind}-{user}"
    drop_command(home, {"type": "plan", "kind": kind, "user": user, "operations": operations}, f"{name}.json")
    daemon.wait("control", type="plan", file=f"{name}.json")
    [(plan,)] = rows_of(
        home, "SELECT plan_id FROM plans WHERE kind = ? AND principal = ? AND state = 'draft'", kind, user
    )
    shown = [line for line in ask(home, "plans", "show", plan).splitlines() if plan not in line]
    assert [line[:4] for line in shown if line[3:4] == "."] == [f"{n:>3}." for n in range(1, len(operations) + 1)]
    assert [line for line in shown if MACHINE_ID.search(line)] == []
    drop_command(home, {"type": "confirm", "plan": plan, "user": user}, f"{name}.confirm.json")
    daemon.wait("control", type="confirm", file=f"{name}.confirm.json")
    drop_command(home, {"type": "apply", "plan": plan, "user": user}, f"{name}.apply.json")
    daemon.wait("run_ended", file=f"{name}.apply.json")
    [(state,)] = rows_of(home, "SELECT state FROM plans WHERE plan_id = ?", plan)
    return str(state)


def op(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def test_each_write_tool_changes_rows_by_a_plan_and_another_process_reads_them(home: Path, furnished: Space) -> None:
    space, ids = furnished, furnished.ids
    org, project = ids["org"], ids["project"]
    extra_task = space.do("ada", "createTask", projectId=project, title="Never mind")
    extra_event = space.do("ada", "createEvent", orgId=org, title="Never", date="2026-12-01T10:00")
    remark = space.do("mia", "addComment", eventId=ids["event"], content="Rude.")
    space.do("ada", "grantCapability", orgId=org, userId="nora", capability="create_projects")
    with Daemon(home) as daemon:
        daemon.ready()
        tasks = [
            op("createTask", projectId=project, title="Sow thyme", acceptanceCriteria=["dry", "warm"]),
            op("updateTask", taskId=ids["task"], title="Sow more basil", assignedToId="mia"),
            op("updateTaskStatus", taskId=ids["task"], status="blocked"),
            op("deleteTask", taskId=extra_task),
            op("addComment", taskId=ids["task"], content="Wait for May."),
            op("removeComment", commentId=ids["comment"]),
        ]
        assert plan_of(home, daemon, "tasks", "ada", tasks) == "applied"
        notes = [
            op("createNote", content="Sage needs sun."),
            op("updateNote", noteId=ids["own"], content="Mine, still."),
            op("deleteNote", noteId=ids["note"]),
        ]
        assert plan_of(home, daemon, "notes", "nora", notes) == "applied"
        events = [
            op("createEvent", orgId=org, title="Harvest", date="2027-08-01T09:00", zone="Europe/Sofia"),
            op("updateEvent", eventId=ids["event"], region="Plovdiv", public=True),
            op("deleteEvent", eventId=extra_event),
            op("addComment", eventId=ids["event"], content="Bring gloves."),
            op("removeComment", commentId=remark),
        ]
        assert plan_of(home, daemon, "events", "ada", events) == "applied"
        members = [
            op("inviteMember", orgId=org, userId="otto", role="guest"),
            op("changeRole", orgId=org, userId="mia", role="guest"),
            op("removeMember", orgId=org, userId="gus"),
            op("grantCapability", orgId=org, userId="nora", capability="manage_events"),
            op("revokeCapability", orgId=org, userId="nora", capability="create_projects"),
            op("setProjectPermission", projectId=project, userId="mia", permission="edit_tasks"),
        ]
        assert plan_of(home, daemon, "members", "ada", members) == "applied"
        assert daemon.stop() == 0
    assert sorted(rows_of(home, "SELECT title, status, assignee, criteria FROM workspace_tasks")) == [
        ("Sow more basil", "blocked", "mia", ""),
        ("Sow thyme", "todo", None, "dry\nwarm"),
    ]
    assert sorted(rows_of(home, "SELECT content FROM workspace_comments")) == [("Bring gloves.",), ("Wait for May.",)]
    assert sorted(rows_of(home, "SELECT content FROM workspace_notes")) == [("Mine, still.",), ("Sage needs sun.",)]
    assert sorted(rows_of(home, "SELECT title, region, public FROM workspace_events")) == [
        ("Harvest", "", 0),
        ("Open day", "Plovdiv", 1),
    ]
    assert sorted(rows_of(home, "SELECT user_id, role FROM workspace_members")) == [
        ("ada", "administrator"),
        ("alan", "administrator"),
        ("mia", "guest"),
        ("nora", "member"),
    ]
    assert rows_of(home, "SELECT capability FROM workspace_capabilities") == [("manage_events",)]
    assert rows_of(home, "SELECT user_id, permission FROM workspace_permissions") == [("mia", "edit_tasks")]
    assert sorted(rows_of(home, "SELECT user_id, role FROM workspace_invitations")) == [
        ("inga", "member"),
        ("otto", "guest"),
    ]


def test_a_member_who_is_demoted_between_confirm_and_apply_changes_nothing(home: Path, furnished: Space) -> None:
    ids = furnished.ids
    ask(home, "workspace", "projects", "permit", ids["project"], "gus", "edit_tasks", "--user", "ada")
    with Daemon(home) as daemon:
        daemon.ready()
        wanted = [op("createTask", projectId=ids["project"], title="Sow weeds")]
        drop_command(home, {"type": "plan", "kind": "tasks", "user": "gus", "operations": wanted}, "weeds.json")
        daemon.wait("control", type="plan")
        ask(home, "plans", "--user", "gus", "confirm")
        ask(
            home,
            "workspace",
            "projects",
            "permit",
            ids["project"],
            "gus",
            "edit_tasks",
            "--no-granted",
            "--user",
            "ada",
        )
        told = ask(home, "plans", "--user", "gus", "apply", code=1)
        assert "Nothing was applied." in told
        assert daemon.stop() == 0
    assert rows_of(home, "SELECT title FROM workspace_tasks") == [("Sow basil",)]
    assert [found["status"] for found in receipts(home) if found["type"] == "apply"] == ["failed"]
    assert "plan_refused" in ask(home, "audit", "tail", "-n", "2")


def script(home: Path, requests: list[str]) -> None:
    """The auditor, who may use every read tool, asks for these."""
    said = "".join(f"      [ORCHESTRATOR_REQUEST: {request}]\n" for request in requests)
    (home / "script.yaml").write_text(
        f"replies:\n  - role: AUDITOR\n    round: 1\n    text: |\n{said}default: {{text: Nothing to add.}}\n"
    )
    (home / "council.toml").write_text('model = "scripted:script.yaml"\nmax_requests_per_reply = 20\n')
    persona = home / "personas" / "auditor.md"
    names = ", ".join(request.partition("(")[0] for request in READ)
    persona.write_text(persona.read_text().replace("QUERY_CORTEX", names, 1))


def answers(home: Path, user: str) -> dict[str, dict[str, Any]]:
    """What the journal of a deliberation on behalf of that user holds of each answer, by the tool's name."""
    with Daemon(home) as daemon:
        daemon.ready()
        body = {"task_description": "What now?", "output_artifact_path": "artifacts/a.md", "user": user}
        drop_command(home, body, f"task-{user}.json")
        daemon.wait("run_ended", file=f"task-{user}.json")
        assert daemon.stop() == 0
    lines = [json.loads(line) for line in ask(home, "journal", "last", "--jsonl").splitlines()]
    found = [line["out"] for line in lines if isinstance(line.get("out"), dict) and "action" in line["out"]]
    return {item["action"]: item for item in found}


def test_each_read_tool_shows_an_agent_what_its_person_may_see(home: Path, furnished: Space) -> None:
    ids = furnished.ids
    furnished.do("ada", "updateEvent", eventId=ids["event"], public=True)
    script(home, [request.format(**ids) for request in READ])
    seen = answers(home, "nora")
    texts = {name: item["text"] for name, item in seen.items()}
    assert {name: part for name, part in SHOWN.items() if part not in texts.get(name, "")} == {}
    outside = answers(home, "otto")
    assert "Open day" in outside["listEventsPublic"]["text"]
    hidden = {name for name in SHOWN if SHOWN[name] not in outside[name].get("text", "")}
    assert hidden == set(SHOWN) - {"listEventsPublic"}


SHOWN = {
    "getSessionContext": '"nora"',
    "listOrganizations": "Garden",
    "getOrganization": "Gus",
    "listProjects": "Herbs",
    "getProjectDetail": "collaborators",
    "listTasks": "Sow basil",
    "getTaskDetail": "Soon.",
    "listNotifications": "You are invited",
    "listEventsPublic": "Open day",
    "listEvents": "Open day",
    "listNotesMetadata": "Frost",
    "getNoteContentIfUnlocked": "Basil hates frost.",
}


def test_an_administrator_takes_the_lock_of_somebody_who_left_off_with_its_secret(home: Path, furnished: Space) -> None:
    note, org = furnished.ids["note"], furnished.ids["org"]
    ask(home, "workspace", "notes", "lock", note, "--user", "nora", stdin="open sesame\n")
    ask(home, "workspace", "notes", "unlock", note, "--user", "ada", stdin="open sesame\n")
    told = ask(home, "workspace", "notes", "remove-lock", note, "--user", "ada", code=6)
    assert "fix: it is for its owner and administrators once the owner has left; see" in told
    ask(home, "workspace", "members", "remove", org, "nora", "--user", "ada")
    ask(home, "workspace", "notes", "remove-lock", note, "--user", "ada")
    assert workspace(home, "mia", "notes", "show", note)["content"] == "Basil hates frost."


def test_the_text_of_a_locked_note_is_nowhere_but_behind_its_unlock(home: Path) -> None:
    ask(home, "users", "add", "nora")
    note = workspace(home, "nora", "notes", "add", "-", "--title", "Diary", stdin="Nothing yet.")["id"]
    apply_alone(home, op("updateNote", noteId=note, content=CANARY))
    submit_plan(home, op("updateNote", noteId=note, content="Later."))
    assert CANARY in ask(home, "plans", "show")
    assert workspace(home, "nora", "notes", "show", note)["content"] == CANARY
    ask(home, "workspace", "notes", "lock", note, "--user", "nora", stdin="open sesame\n")
    assert "It failed: The note “Diary” is locked." in ask(home, "plans", "show")
    said = ""
    for asked in (("show", note), ("edit", note, "--content", "gone"), ("delete", note), ("remove-lock", note)):
        told = ask(home, "workspace", "notes", *asked, "--user", "nora", code=6)
        assert "error (locked): The note “Diary” is locked." in told
        said += told
    wrong = ask(home, "workspace", "notes", "unlock", note, "--user", "nora", stdin="open\n", code=6)
    assert "error (wrong_secret)" in wrong
    assert workspace(home, "nora", "notes", "list")["rows"][0]["locked"] is True
    said += json.dumps(workspace(home, "nora", "notes", "list"))
    script(home, [f'getNoteContentIfUnlocked({{"noteId": "{note}"}})', "listNotesMetadata()"])
    refused = answers(home, "nora")["getNoteContentIfUnlocked"]
    assert refused["error_code"] == "locked"
    for tool in (op("updateNote", noteId=note, content="gone"), op("deleteNote", noteId=note)):
        plan = {"type": "plan", "kind": "notes", "user": "nora", "operations": [tool]}
        (home / "plan.json").write_text(json.dumps(plan))
        said += ask(home, "submit", "--wait", str(home / "plan.json"), code=2)
    assert "is locked." in said
    for door in (
        ("plans", "list", "--all", "--json"),
        ("audit", "export"),
        ("journal", "last", "--jsonl"),
        ("logs",),
        ("status",),
        ("runs",),
    ):
        said += ask(home, *door)
    assert CANARY not in said
    files = [path for path in home.rglob("*") if path.is_file() and ".db" not in path.name]
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []
    assert [path for path in home.rglob("*") if path.is_file() and b"open sesame" in path.read_bytes()] == []
    assert tables_with(home, CANARY) == ["workspace_notes"]
    unlocked = ask(home, "workspace", "notes", "unlock", note, "--user", "nora", stdin="open sesame\n")
    assert "It stays open to nora for 900 seconds." in unlocked
    assert workspace(home, "nora", "notes", "show", note)["content"] == CANARY
    apply_alone(home, op("updateNote", noteId=note, content=f"Still {CANARY}"))
    assert tables_with(home, CANARY) == ["workspace_notes"]
    assert "error (not_found)" in ask(home, "workspace", "notes", "show", note, code=6)
    ask(home, "audit", "verify")


def submit_plan(home: Path, operation: dict[str, Any]) -> None:
    (home / "plan.json").write_text(
        json.dumps({"type": "plan", "kind": "notes", "user": "nora", "operations": [operation]})
    )
    ask(home, "submit", "--wait", str(home / "plan.json"))
    (home / "plan.json").unlink()


def apply_alone(home: Path, operation: dict[str, Any]) -> None:
    """Applies a plan without a daemon, and without the key of a model."""
    submit_plan(home, operation)
    ask(home, "plans", "--user", "nora", "confirm")
    ask(home, "plans", "--user", "nora", "apply")


def tables_with(home: Path, words: str) -> list[str]:
    names = [name for (name,) in rows_of(home, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    return [name for name in names if words in str(rows_of(home, f"SELECT * FROM {name}"))]


def test_forgetting_reaches_the_words_of_the_workspace(home: Path, furnished: Space) -> None:
    furnished.do("ada", "createTask", projectId=furnished.ids["project"], title="Call Mr. Mandragora")
    drop_command(home, {"type": "forget", "text": "Mandragora"}, "forget.json")
    with Daemon(home) as daemon:
        daemon.wait("run_ended", file="forget.json")
        assert daemon.stop() == 0
    assert "Mandragora" not in str(rows_of(home, "SELECT title FROM workspace_tasks"))
