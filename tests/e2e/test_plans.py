"""Plans through the real process: nothing is written without a person's yes, and with it everything is, once."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gate import Gate
from tests.fake_gemini import FakeGemini
from tests.faults import STATEMENT_CHARS
from tests.harness import (
    FAULTY,
    Daemon,
    command,
    drop_command,
    environment,
    faulty_environment,
    inbox,
    make_home,
    on_a_terminal,
    receipts,
    rows_of,
    run_cli,
    steps,
)

SAMPLE = "tests.sample_daemon"
PLAN = """\
type: plan
kind: pages
title: Two pages for the spring
rationale: Nobody remembers when to sow.
risks: [The dates differ from year to year.]
operations:
  - tool: putPage
    arguments: {title: Soil, content: Dig in March.}
  - tool: putPage
    arguments: {title: Seeds, content: Sow in April.}
    clientRequestId: seeds-0001
"""
PAGES = [("Seeds", "Sow in April."), ("Soil", "Dig in March.")]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path / "home", settings='model = "offline"\nsettle_s = 0.5\nscan_interval_s = 0.5\n')


@pytest.fixture
def env() -> dict[str, str]:
    return faulty_environment()


def ask(home: Path, *arguments: str, env: dict[str, str], code: int = 0) -> str:
    done = run_cli("--home", str(home), *arguments, cwd=home, env=env, module=SAMPLE)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def pages(home: Path) -> list[tuple[str, str]]:
    """What another process reads."""
    if not rows_of(home, "SELECT 1 FROM sqlite_master WHERE name = 'sample_pages'"):
        return []
    return sorted(tuple(row) for row in rows_of(home, "SELECT title, content FROM sample_pages"))


def state(home: Path) -> str:
    [(found,)] = rows_of(home, "SELECT state FROM plans ORDER BY plan_id DESC LIMIT 1")
    return str(found)


def put(title: str, content: str = "", kind: str = "pages", **keys: Any) -> dict[str, Any]:
    operation = {"tool": "putPage", "arguments": {"title": title, "content": content}}
    return {"type": "plan", "kind": kind, "operations": [operation], **keys}


def test_a_plan_file_of_a_person_is_shown_confirmed_applied_and_undone(home: Path, env: dict[str, str]) -> None:
    with Daemon(home, env=env, module=SAMPLE) as daemon:
        daemon.ready()
        drop_command(home, PLAN.encode(), "spring.yaml")
        assert daemon.wait("control", type="plan")["title"] == "plan Two pages for the spring"
        shown = ask(home, "plans", "show", env=env)
        assert (
            "  1. Puts the page “Soil” on the shelf open.\n     title: + Soil\n     content: + Dig in March." in shown
        )
        assert "Risk: The dates differ from year to year." in shown
        told = ask(home, "status", env=env)
        assert "plans   wait for a decision" in told
        assert "for steward: Two pages for the spring" in told
        assert pages(home) == []
        assert "is confirmed until" in ask(home, "plans", "confirm", env=env)
        assert pages(home) == []
        assert "Put “Soil”." in ask(home, "plans", "apply", env=env)
        assert pages(home) == PAGES
        assert json.loads(ask(home, "status", "--json", env=env))["plans"] == []
        assert "was undone" in ask(home, "plans", "undo", env=env)
        assert pages(home) == []
        assert "error (plan_undone)" in ask(home, "plans", "undo", env=env, code=1)
        assert daemon.stop() == 0
    tail = ask(home, "audit", "tail", env=env)
    found = [action for action in ("plan_drafted", "plan_confirmed", "plan_applied", "plan_undone") if action in tail]
    assert found == ["plan_drafted", "plan_confirmed", "plan_applied", "plan_undone"]
    assert "plan_refused" in tail
    assert {receipt["type"]: receipt["status"] for receipt in receipts(home)[:-1]} == {
        "plan": "succeeded", "confirm": "succeeded", "apply": "succeeded", "undo": "succeeded",
    }  # fmt: skip
    assert list((home / "artifacts").glob("*.md")) == [home / "artifacts" / "README.md"]
    ask(home, "audit", "verify", env=env)


def test_without_a_daemon_the_command_line_decides_and_what_was_typed_is_in_the_row(
    home: Path, env: dict[str, str]
) -> None:
    (home / "council.toml").write_text("")  # no model, and no key of one
    (home / "spring.yaml").write_text(PLAN.replace("Dig in March.", '"Dig in March.\\nThen rest."'))
    ask(home, "submit", "--wait", str(home / "spring.yaml"), env=env)
    shown = ask(home, "plans", "show", env=env)
    assert "     content: + Dig in March.\n              + Then rest.\n" in shown
    edits = ("--edit", "1.content=typed by hand", "--leave-out", "2")
    confirmed = json.loads(ask(home, "plans", "confirm", "--json", *edits, env=env))
    assert [one["arguments"]["content"] for one in confirmed["operations"]] == ["typed by hand"]
    ask(home, "plans", "apply", confirmed["plan_id"], "--token", confirmed["token"], env=env)
    assert pages(home) == [("Soil", "typed by hand")]
    assert b"council-plan-1" not in b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_what_is_shown_is_what_is_written_blank_by_blank_with_each_unseen_character(
    home: Path, env: dict[str, str]
) -> None:
    title, code = "W   one \u202eevil", 'if x == "a    b":\n\treturn "\u200b   \u2764\ufe0f"\x1b[2K'
    drop_command(home, put(title, code), "odd.json")
    ask(home, "run", "--once", env=env)
    shown = ask(home, "plans", "show", env=env)
    assert "  1. Puts the page “W   one \\u202eevil” on the shelf open.\n     title: + W   one \\u202eevil\n" in shown
    assert '     content: + if x == "a    b":\n              + \treturn "\\u200b   \u2764\ufe0f"\\x1b[2K\n' in shown
    ask(home, "plans", "confirm", env=env)
    ask(home, "plans", "apply", env=env)
    assert pages(home) == [(title, code)]


def test_a_decision_names_its_plan_where_several_wait_and_a_refused_one_leaves_no_file(
    home: Path, env: dict[str, str]
) -> None:
    ask(home, "users", "add", "ada", env=env)
    painted = put("Two\u009b31m") | {"title": "\u009b31mTwo\nplans \u202eare here"}
    for name, body in (("a.json", put("One")), ("b.json", painted), ("c.json", put("Hers", user="ada"))):
        drop_command(home, body, name)
        ask(home, "run", "--once", env=env)
    status = ask(home, "status", env=env)
    assert "for steward: Two plans are here\n" in status
    assert "wait for a decision; `council plans`, `council plans --user ada` walk through them\n" in status
    assert "Hers" in ask(home, "plans", "list", "--user", "ada", env=env)
    assert "Two plans" not in ask(home, "plans", "list", "--user", "ada", env=env)
    assert "2 plans wait for steward." in ask(home, "plans", "confirm", env=env, code=2)
    told = ask(home, "plans", "confirm", "last", env=env, code=2)
    assert "error (foreign_plan): The plan" in told
    assert "`--user ada` behind `council plans`" in told
    assert list((home / "commands" / "failed").iterdir()) == []
    hers, judged = rows_of(home, "SELECT plan_id FROM plans ORDER BY plan_id")[-1][0], home / "decision.json"
    judged.write_text(json.dumps({"type": "reject", "plan": hers}))
    assert f"error: The plan {hers} is ada's." in ask(home, "validate", str(judged), env=env, code=2)
    judged.write_text(json.dumps({"type": "confirm", "plan": hers, "user": "ada"}))
    assert "ok (confirm)" in ask(home, "validate", str(judged), env=env)
    ask(home, "plans", "confirm", "--user", "ada", "--edit", "1.title=2027", env=env)
    told = ask(home, "plans", "apply", "last", env=env, code=1)
    assert ("`--user ada` behind `council plans`" in told, "`--token TOKEN`" in told) == (True, True)
    ask(home, "plans", "--user", "ada", "apply", env=env)
    assert pages(home) == [("2027", "")]
    assert "was applied already" in ask(home, "validate", str(judged), env=env, code=2)
    assert "council plans --user ada undo" in ask(home, "plans", "show", env=env)
    assert f"{hers}  applied, for ada" in ask(home, "plans", "show", "--user", "ada", env=env)
    assert "for steward" in ask(home, "plans", "show", "--user", "steward", env=env)
    ask(home, "plans", "undo", "--user", "ada", env=env)
    assert pages(home) == []


def test_a_plan_of_somebody_else_is_at_the_command_line_like_one_that_is_not_there(
    home: Path, env: dict[str, str]
) -> None:
    for name in ("ada", "bert"):
        ask(home, "users", "add", name, env=env)
    ask(home, "users", "add", "boss", "--role", "administrator", env=env)
    drop_command(home, put("Hers", user="ada"), "hers.json")
    ask(home, "run", "--once", env=env)
    [(hers,)], absent = rows_of(home, "SELECT plan_id FROM plans"), "20200101-000000-aaaaaaaa"
    for verb in ("confirm", "reject", "apply", "undo"):
        foreign, unknown = (ask(home, "plans", verb, one, "--user", "bert", env=env, code=2) for one in (hers, absent))
        assert (
            foreign == f"error (plan_not_found): no plan matches '{hers}'.\n  fix: `council plans list` shows yours\n"
        )
        assert foreign.replace(hers, absent) == unknown
        told = ask(home, "plans", verb, "last", "--user", "bert", env=env, code=2)
        assert "error (plan_not_found): no plan matches 'last'." in told
    assert "error (foreign_plan): The plan" in ask(home, "plans", "reject", hers, "--user", "boss", env=env, code=2)
    ask(home, "plans", "--user", "ada", "reject", hers[:-2], env=env)
    assert state(home) == "rejected"


def test_refused_tokens_touch_no_row_and_lie_nowhere_afterwards(home: Path, env: dict[str, str]) -> None:
    ask(home, "users", "add", "ada", env=env)
    with Daemon(home, env=env, module=SAMPLE) as daemon:
        daemon.ready()
        drop_command(home, put("Soil", user="ada"), "hers.json")
        daemon.wait("control", type="plan")
        [plan] = json.loads(ask(home, "plans", "list", "--json", env=env))["plans"]
        assert (plan["principal"], plan["state"]) == ("ada", "draft")
        wanted = {"type": "apply", "plan": plan["plan_id"]}
        drop_command(home, wanted, "early.json")
        assert daemon.wait("run_ended", file="early.json")["error"]["code"] == "not_confirmed"
        drop_command(home, {"type": "confirm", "plan": plan["plan_id"]}, "foreign.json")
        assert "is ada's" in daemon.wait("command_refused", file="foreign.json")["error"]
        token = json.loads(ask(home, "plans", "--user", "ada", "confirm", "--json", env=env))["token"]
        for name, given, code in (
            ("mine.json", {}, "foreign_plan"),
            ("forged.json", {"token": f"{token[:-3]}AAA"}, "token_refused"),
            ("fits.json", {"token": token}, None),
            ("again.json", {"token": token}, "plan_applied"),
        ):
            drop_command(home, {**wanted, **given}, name)
            error = daemon.wait("run_ended", file=name)["error"]
            assert (error and error["code"]) == code
        drop_command(home, {**wanted, "token": token, "wrong": 1}, "unreadable.json")
        daemon.wait("command_refused", file="unreadable.json")
        assert daemon.stop() == 0
        assert token not in json.dumps(daemon.events) + daemon.stderr
    assert pages(home) == [("Soil", "")]
    assert ask(home, "audit", "tail", "-n", "60", env=env).count("plan_refused") == 5
    assert token.encode() not in b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert inbox(home) == []


def test_a_draft_survives_a_restart_and_an_old_one_expires(home: Path, env: dict[str, str]) -> None:
    (home / "council.toml").write_text('model = "offline"\ndraft_ttl_s = 1\n')
    drop_command(home, put("Short"), "short.json")
    ask(home, "run", "--once", env=env)
    (home / "council.toml").write_text('model = "offline"\n')
    drop_command(home, put("Long"), "long.json")
    ask(home, "run", "--once", env=env)
    (home / "clock").write_text("2")
    later = {**env, "COUNCIL_TEST_CLOCK": str(home / "clock"), "COUNCIL_TEST_SAMPLES": "1"}
    told = run_cli("--home", str(home), "plans", "list", "--all", cwd=home, env=later, module=FAULTY).stdout
    assert [line.split()[1] for line in told.splitlines()[1:]] == ["draft", "expired"]
    assert "Long" in ask(home, "status", env=env)


def test_rejected_with_a_comment_the_next_draft_is_shown_beside_the_old_one(home: Path, env: dict[str, str]) -> None:
    (home / "spring.yaml").write_text(PLAN)
    ask(home, "submit", "--wait", str(home / "spring.yaml"), env=env)
    ask(home, "plans", "reject", "--comment", "Seeds come in May.", env=env)
    [(older,)] = rows_of(home, "SELECT plan_id FROM plans")
    (home / "again.yaml").write_text(PLAN.replace("Sow in April.", "Sow in May.") + f"revises: {older}\n")
    ask(home, "submit", "--wait", str(home / "again.yaml"), env=env)
    shown = ask(home, "plans", "show", env=env)
    assert f"In place of {older}, which is rejected: Seeds come in May." in shown
    assert "  2. Puts the page “Seeds” on the shelf open. (new)" in shown
    assert "  1. Puts the page “Soil” on the shelf open.\n" in shown
    assert "–  Puts the page “Seeds” on the shelf open. (no more)" in shown


def test_one_safe_change_takes_one_keystroke_and_more_than_that_a_second_word(home: Path, env: dict[str, str]) -> None:
    for name, body in (("a.json", put("One")), ("b.json", put("Two")), ("c.yaml", PLAN.encode())):
        drop_command(home, body, name)
        ask(home, "run", "--once", env=env)
    prompt = "[q] quit"
    typed = [(prompt, "y"), (prompt, "n"), ("Why", "no\r"), (prompt, "y"), ("Go on with all of it?", "y\r")]
    said = on_a_terminal("plans", cwd=home, env=env, answers=typed, module=SAMPLE)
    assert "Plan 3 of 3" in said
    assert pages(home) == [("One", ""), *PAGES]
    assert [row[0] for row in rows_of(home, "SELECT state FROM plans ORDER BY plan_id")] == [
        "applied", "rejected", "applied",
    ]  # fmt: skip
    assert "No plan waits" in on_a_terminal("plans", cwd=home, env=env, module=SAMPLE)


def test_a_plan_that_is_refused_on_the_way_does_not_keep_the_others_from_being_shown(
    home: Path, env: dict[str, str]
) -> None:
    drop_command(home, put("One"), "one.json")
    ask(home, "run", "--once", env=env)
    ask(home, "plans", "confirm", env=env)
    ask(home, "plans", "apply", env=env)
    [(page,)] = rows_of(home, "SELECT page_id FROM sample_pages")
    for name, text in (("a.json", "first"), ("b.json", "second")):
        edit = {"tool": "editPage", "arguments": {"page": page, "content": text}}
        drop_command(home, {"type": "plan", "kind": "pages", "operations": [edit]}, name)
        ask(home, "run", "--once", env=env)
    drop_command(home, put("Two"), "two.json")
    ask(home, "run", "--once", env=env)
    typed = [("[q] quit", "y")] * 3
    said = on_a_terminal("plans", cwd=home, env=env, answers=typed, module=SAMPLE, ends_with=2)
    assert "error (changed_since_draft): Operation 1" in said
    assert "Plan 3 of 3" in said
    assert pages(home) == [("One", "first"), ("Two", "")]


def test_an_apply_does_not_wait_for_deliberations_that_have_every_slot(
    home: Path, fake: FakeGemini, gate: Gate
) -> None:
    (home / "council.toml").write_text("max_parallel_runs = 1\nsettle_s = 0.5\nscan_interval_s = 0.5\n")
    keyed = faulty_environment(GEMINI_API_KEY="test-key-0123456789abcdef", GOOGLE_GEMINI_BASE_URL=fake.url)
    with Daemon(home, env=keyed, module=SAMPLE) as daemon:
        daemon.ready()
        drop_command(home, command(), "long.json")
        daemon.wait("turn_ended")
        drop_command(home, command(session="other", output_artifact_path="artifacts/b.md"), "behind.json")
        drop_command(home, put("Soil"), "plan.json")
        daemon.wait("control", type="plan")
        [(plan,)] = rows_of(home, "SELECT plan_id FROM plans")
        drop_command(home, {"type": "confirm", "plan": plan}, "confirm.json")
        daemon.wait("control", type="confirm")
        drop_command(home, {"type": "apply", "plan": plan}, "apply.json")
        assert daemon.wait("run_ended")["file"] == "apply.json"
        assert pages(home) == [("Soil", "")]
        assert daemon.all("run_started")[-1]["file"] == "apply.json"
        gate.open()
        daemon.wait("run_ended", file="behind.json")
        assert daemon.stop() == 0


def test_a_run_waits_for_its_plan_and_applies_it_with_its_own_effect(home: Path, env: dict[str, str]) -> None:
    with Daemon(home, env=env, module=SAMPLE) as daemon:
        daemon.ready()
        drop_command(home, {"type": "learn", "words": "Beans"}, "learn.json")
        assert daemon.wait("run_waiting")["reason"] == "answer"
        ask(home, "plans", "confirm", env=env)
        assert "applies the plan" in ask(home, "plans", "apply", env=env)
        ended = daemon.wait("run_ended", file="learn.json")
        assert (ended["status"], pages(home), state(home)) == ("succeeded", [("Beans", "")], "applied")
        assert steps(home, ended["run_id"])["learned"]["plan"]["stored"] == "applied"
        drop_command(home, {"type": "learn", "words": "Peas"}, "other.json")
        other = daemon.wait("run_queued", file="other.json")["run_id"]
        daemon.wait("run_waiting", run_id=other)
        ask(home, "plans", "reject", env=env)
        ended = daemon.wait("run_ended", file="other.json")
        assert (ended["status"], ended["error"]["code"]) == ("failed", "plan_rejected")
        assert daemon.stop() == 0
    assert pages(home) == [("Beans", "")]


def test_a_word_that_is_forgotten_is_in_no_plan_any_more(home: Path, env: dict[str, str]) -> None:
    (home / "spring.yaml").write_text(PLAN)
    ask(home, "submit", "--wait", str(home / "spring.yaml"), env=env)
    ask(home, "plans", "confirm", env=env)
    (home / "spring.yaml").unlink()
    ask(home, "forget", "--yes", "Sow in April.", env=env)
    assert b"Sow in April" not in b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert "error (plan_altered)" in ask(home, "plans", "apply", env=env, code=1)
    assert pages(home) == []


# ── kill -9 ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def lives(home: Path, fault: str = "count") -> int:
    """One life of the daemon; its exit code."""
    env = faulty_environment(COUNCIL_TEST_FAULT=fault, COUNCIL_TEST_FAULT_LOG=f"{home}.log", COUNCIL_TEST_SAMPLES="1")
    return run_cli("--home", str(home), "run", "--once", cwd=home, env=env, module=FAULTY).returncode


def instants_of(home: Path) -> list[str]:
    """A kill before every statement and commit of an apply or undo, and before its file is taken."""
    lines = [line.split(" ", 2) for line in Path(f"{home}.log").read_text().splitlines()]
    begun = next(
        at for at, (_, name, rest) in enumerate(lines) if name == "sql" and rest.startswith("INSERT INTO runs")
    )
    taken = next(at for at, (_, name, _) in enumerate(lines) if name == "unlink")
    seen: Counter[str] = Counter("commit " for line in lines[:begun] if line[1] == "commit")
    found = []
    for _, name, rest in lines[begun : taken + 1]:
        text = {"sql": f"sql {rest[:STATEMENT_CHARS]}", "commit": "commit ", "rename": ".taken"}.get(name, "")
        seen[text] += 1
        found += [f"kill-at:{seen[text]}:{text}"] if text else []
    return found


@pytest.mark.parametrize(("act", "there", "then"), [("apply", [], PAGES), ("undo", PAGES, [])])
def test_a_kill_at_any_step_of_an_apply_or_an_undo_leaves_all_or_nothing(
    tmp_path: Path, act: str, there: list[tuple[str, str]], then: list[tuple[str, str]]
) -> None:
    before = make_home(tmp_path / "before", settings='model = "offline"\n')
    drop_command(before, PLAN.encode(), "plan.yaml")
    assert lives(before) == 0
    [(plan,)] = rows_of(before, "SELECT plan_id FROM plans")
    for type_ in ("confirm", "apply") if act == "undo" else ("confirm",):
        drop_command(before, {"type": type_, "plan": plan}, f"{type_}.json")
        assert lives(before) == 0
    whole = Path(shutil.copytree(before, tmp_path / "whole"))
    drop_command(whole, {"type": act, "plan": plan}, "last.json")
    assert lives(whole) == 0
    assert pages(whole) == then
    instants = instants_of(whole)
    assert len(instants) > 8
    between = set()
    for number, instant in enumerate(instants):
        home = Path(shutil.copytree(before, tmp_path / f"killed-{number}"))
        drop_command(home, {"type": act, "plan": plan}, "last.json")
        assert lives(home, instant) == -9, instant
        between.add(tuple(pages(home)))
        assert lives(home) == 0
        assert (pages(home), state(home)) == (then, "applied" if act == "apply" else "undone")
        assert [(receipt["type"], receipt["status"]) for receipt in receipts(home)][-1] == (act, "succeeded")
        assert inbox(home) == []
    assert between == {tuple(there), tuple(then)}


def test_a_home_without_the_kind_refuses_the_plan_and_says_which_it_knows(home: Path) -> None:
    drop_command(home, put("Soil"), "plan.json")
    run_cli("--home", str(home), "run", "--once", cwd=home, env=environment(COUNCIL_MODEL="offline"))
    note = (home / "commands" / "failed" / "plan.json.error.md").read_text()
    assert "There is no plan kind 'pages'" in note


def test_a_plan_that_is_sent_again_with_its_id_is_drafted_once(home: Path, env: dict[str, str]) -> None:
    (home / "plan.yaml").write_text(f"id: spring-2027\n{PLAN}")
    first, again = (json.loads(ask(home, "submit", "--wait", "--json", "plan.yaml", env=env)) for _ in range(2))
    assert again == first
    assert len(json.loads(ask(home, "plans", "list", "--json", env=env))["plans"]) == 1
    (home / "plan.yaml").write_text(f"id: spring-2027\n{PLAN}".replace("Dig in March", "Dig in May"))
    refused = run_cli("submit", "--wait", "plan.yaml", cwd=home, env=env, module=SAMPLE)
    assert (refused.returncode, "the id 'spring-2027' belongs to run" in refused.stderr) == (2, True)
