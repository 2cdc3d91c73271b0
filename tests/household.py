"""A home in which there is one of everything that the window shows, or many: people, work, runs, plans, a world."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from council.specialists import statements as specialist_rows
from council.storage.store import Store, Tx
from council.users.notifications import notice
from tests.conducting import Mind, material, part, pick, understanding
from tests.creating import EMAIL, HIDDEN, VISIBLE
from tests.fake_gemini import FakeGemini, default_reply
from tests.harness import Daemon, command, drop_command, opened, rows_of, wait_until
from tests.rows import ended
from tests.site import Site
from tests.space import Space

LONG = "Compare the archives of the last twenty years, page by page, and say which engine would have kept each of them"
ADVICE = """Sow it **after the last frost**, in light soil:

| month | what to do |
|---|---|
| March | sow under glass |
| May | plant out, 25 cm apart |

1. Water little.
2. Cut it back in August, as `needs.md` says.

> Thyme does not like wet feet.
"""
STATUSES = ("todo", "in_progress", "blocked", "done")
REGIONS = ("Plovdiv", "Sofia", "Varna", "Burgas")
_USED = """INSERT INTO task_telemetry (agent_id, run_id, step, version, user_id, kind, success, confidence, at)
VALUES (?, ?, ?, 1, 'ada', 'use', ?, 0.9, ?)"""


def furnish(home: Path, count: int) -> dict[str, str]:
    """Puts `count` of each into the home; `ada` is an administrator, and most is hers. The ids of one of each."""
    with opened(home) as store:
        space = Space(store, home / ".council").furnish()
        ids = space.ids
        org, project = ids["org"], ids["project"]
        for number in range(2, count + 1):
            title = f"{LONG} ({number})" if number % 7 == 0 else f"Bed {number}: dig, sow and water"
            task = space.do(
                "ada", "createTask", projectId=project, title=title, priority="high" if number % 3 else "low"
            )
            if number % 4:
                space.do("ada", "updateTaskStatus", taskId=task, status=STATUSES[number % 4])
            space.do("ada", "createNote", title=f"Note {number}", content=f"# Bed {number}\n\n{LONG}. " * 3)
            date = f"2026-12-{number % 28 + 1:02}T{number % 24:02}:00"
            region = REGIONS[number % len(REGIONS)]
            space.do("ada", "createEvent", orgId=org, title=f"Open day {number}", date=date, region=region, public=True)
            space.do("nora", "addComment", taskId=ids["task"], content=f"Remark {number}: {LONG}.")
        own = space.do("ada", "createNote", title="Frost", content="Basil hates frost.", projectId=project)
        space.do("ada", "lockNote", noteId=own)
        for number in range(count):
            told = notice(f"note-{number:04}", "ada", f"“Open day {number}” begins tomorrow.", 10**12 + number)
            store.write_now(lambda tx, asked=told: tx.core.execute(asked))
            run_id = f"20261120-1000{number % 60:02}-{number:08}"
            status = "failed" if number % 9 == 5 else "succeeded"
            ended(
                store, run_id, 10**18 + number, status=status, title=LONG if number % 5 == 4 else f"Question {number}"
            )
        ids["name"] = settle_specialists(store, [f"email_validator_{number}" for number in range(min(count, 40))])
    return {
        **ids,
        "note": own,
        "orgId": org,
        "projectId": project,
        "taskId": ids["task"],
        "noteId": own,
        "role": "AUDITOR",
    }


def work(here: Site, daemon: Daemon, count: int, ids: dict[str, str]) -> dict[str, str]:
    """Lets the daemon work: a run with documents, `count` plans, a world that was played. `ids` with those of these."""
    (here.home / "needs.md").write_text("# Needs\n\nThe archive has 17 GB. It must survive a loss of power.\n")
    task = command("Which engine keeps the archive?", input_artifacts=["needs.md"], rounds=2)
    drop_command(here.home, task | {"user": "ada"}, "run.json")
    operation = {"tool": "createTask", "arguments": {"projectId": ids["project"], "title": "Sow thyme"}}
    for number in range(count):
        body = {"type": "plan", "kind": "tasks", "user": "ada", "operations": [operation] * (number % 3 + 1)}
        drop_command(here.home, body, f"plan-{number}.json")
        daemon.wait("control", type="plan", count=number + 1)
    drop_command(
        here.home, {"type": "world_init", "members": 12, "width": 12, "height": 10, "pace": 1, "seed": 7}, "w.json"
    )
    daemon.wait("control", type="world_init")
    wait_until(lambda: rows_of(here.home, "SELECT 1 FROM world_rounds WHERE round_id > 1"), "a round is settled")
    drop_command(here.home, {"type": "world_pause"}, "pause.json")
    run_id = daemon.wait("run_ended", file="run.json")["run_id"]
    [plan] = rows_of(here.home, "SELECT plan_id FROM plans ORDER BY plan_id DESC LIMIT 1")
    return {**ids, "run": run_id, "plan": plan[0], "action": "createNote", "order": "world_pause"}


def talk(here: Site, daemon: Daemon, fake: FakeGemini, count: int, ids: dict[str, str]) -> dict[str, str]:
    """Conversations of ada's: an answer, a plan and an open question in the first, and `count` more. The model is `fake`."""

    def drafted(prompt: str) -> str:
        return json.dumps({"outcome": "draft", "summary": "A bed for thyme.", "creates": [{"title": "Sow thyme"}]})

    mind = Mind(
        understand=lambda prompt: understanding(
            part(asked := material(prompt, "The request"), changes="a bed" in asked), keep=[]
        ),
        choose=lambda prompt: [
            pick(1, "task_planner", 0.7 if "which" in prompt else 0.95)
            if "a bed" in prompt
            else pick(1, "NONE", can_answer=True)
        ],
        agents={"CONDUCTOR": lambda prompt: ADVICE, "TASK_PLANNER": drafted},
    )
    fake.reply = lambda one: default_reply(one) if "member of an AI council" in one.system else mind(one)
    for number, words in enumerate(
        ("When do I sow thyme?", "Plan a bed for it.", "And a bed for sage, which is there?")
    ):
        asked = {"type": "ask", "request": words, "conversation": "thyme", "user": "ada"}
        asked |= {"project": ids["project"]} if number else {}
        drop_command(here.home, asked, f"ask-{number}.json")
        daemon.wait("run_ended" if number < 2 else "run_waiting", count=number + 1 if number < 2 else 1)
    for number in range(count):
        asked = {"type": "ask", "request": f"{LONG} ({number})", "conversation": f"talk-{number}", "user": "ada"}
        drop_command(here.home, asked, f"ask-{number + 3}.json")
        daemon.wait("run_ended", file=f"ask-{number + 3}.json")
    return {**ids, "conversation": "thyme"}


def settle_specialists(store: Store, roles: Sequence[str], spec: dict[str, Any] = EMAIL) -> str:
    """Specialists of ada's as if they had been made, each used a few times; the id of the last."""

    def settle(tx: Tx) -> str:
        agent, suite = "", json.dumps({"visible": VISIBLE, "hidden": HIDDEN})
        for number, role in enumerate(roles):
            agent, told = f"specialist-{number:04}", json.dumps({**spec, "role": role})
            tx.execute(specialist_rows.ADD, (agent, role, "ada", told, 10**12, ""))
            tx.execute(specialist_rows.ADD_VERSION, (agent, 1, told, suite, "created", "", "", 10**12))
            for use in range(number % 30 + 1):
                told_of = (agent, "20261120-100000-abcdefgh", f"use/{number}.{use}", use % 4 != 3, 10**12 + use)
                tx.execute(_USED, told_of)
        return agent

    return store.write_now(settle)
