"""Questions of the conductor and its agents: who asks, who is answered, and what a request does while one is open."""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.conducting import Mind, ask, asked_of, block, material, part, pick, understanding
from tests.fake_gemini import FakeGemini, error, slow
from tests.harness import Daemon, drop_command, environment, inbox, receipts, run_cli, steps

CODE = "print(canary_4711)"


def answered(prompt: str) -> str:
    found = re.search(r"The person answered: (.*)", prompt)
    return found[1] if found else ""


def asking(question: str, then: str) -> Any:
    """An agent that asks once, and answers with what it was told."""

    def speak(prompt: str) -> str:
        told = answered(prompt)
        return (
            block(f"{then} {told}")
            if told
            else block("I cannot tell.", status="needs_clarification", question=question)
        )

    return speak


def two_that_ask() -> Mind:
    return Mind(
        understand=lambda prompt: understanding(part("Plan a video", "video"), part("Write a letter", "text")),
        choose=lambda prompt: [pick(1, "video_planner"), pick(2, "writer")],
        agents={
            "VIDEO_PLANNER": asking("How long may it be?", "A video of"),
            "WRITER": lambda prompt: block("Dear Ann.", output={"draft": "Dear Ann."}),
        },
    )


def test_an_agents_question_is_the_runs_question_and_its_answer_goes_back_to_that_agent_alone(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = two_that_ask()
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, {"type": "ask", "request": "Plan a video, and write a letter."}, "first.json")
        waits = daemon.wait("run_waiting", reason="answer")
        assert "How long may it be?" in waits["error"]
        [page] = (home / "artifacts" / "asks").rglob("*.md")
        assert "How long may it be?" in page.read_text().partition("## Question")[2]
        view = json.loads(run_cli("status", "--json", cwd=home).stdout)
        assert (view["state"], [run["state"] for run in view["runs"]]) == ("WAITING", ["WAITING"])
        daemon.kill()
    asked = len(fake.requests)
    shown = ask(home, env, "two minutes, canary-77")

    assert "A video of two minutes, canary-77" in shown
    assert "Dear Ann." in shown
    assert page.read_text().count("video_planner was given") == 1
    [first, again] = asked_of(fake.requests, "VIDEO_PLANNER")
    assert "canary-77" not in first
    assert "You asked: How long may it be?" in again
    assert all("canary-77" not in prompt for prompt in asked_of(fake.requests, "WRITER"))
    assert len(fake.requests) == asked + 2  # the agent again, and the comparison


def test_an_answer_to_a_run_that_asks_nothing_is_refused_before_a_key_is_asked_for(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    def refused(run_id: str) -> str:
        done = run_cli("answer", run_id, "two minutes", cwd=home, env=environment())
        assert done.returncode == 2, done.stderr
        assert inbox(home) == [*waiting]
        return done.stderr

    fake.reply = lambda request: slow(60)
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        file = drop_command(home, {"type": "ask", "request": "Plan a video."}, "first.json")
        run_id = daemon.wait("run_started")["run_id"]
        daemon.kill()
    waiting = [file.name]
    assert f"the run '{run_id}' asks nothing now." in refused(run_id)
    assert run_cli("cancel", run_id, cwd=home, env=environment()).returncode == 0
    waiting = []
    assert f"the run '{run_id}' is not active." in refused(run_id)


def test_of_two_agents_that_ask_one_is_answered_and_the_other_ones_question_is_shown(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = mind = two_that_ask()
    second_first = threading.Event()
    slow = mind.agents["VIDEO_PLANNER"]

    def planner(prompt: str) -> str:
        assert second_first.wait(30)
        return str(slow(prompt))

    def writer(prompt: str) -> str:
        second_first.set()
        return block("I cannot tell.", status="needs_clarification", question="To whom?", output={"draft": "?"})

    mind.agents |= {"VIDEO_PLANNER": planner, "WRITER": writer}
    assert ask(home, env, "Plan a video, and write a letter.", code=75).strip() == "How long may it be?"
    shown = ask(home, env, "two minutes", code=7)

    assert "A video of two minutes" in shown
    assert "**writer asks:** To whom?" in shown


def test_an_agents_question_that_nobody_answers_stands_on_the_page(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "council.toml").write_text("settle_s = 0.5\nscan_interval_s = 0.2\nanswer_timeout_s = 1\n")
    fake.reply = two_that_ask()
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, {"type": "ask", "request": "Plan a video, and write a letter."}, "first.json")
        daemon.wait("run_ended", status="degraded")
        assert daemon.stop() == 0
    [page] = (home / "artifacts" / "asks").rglob("*.md")
    assert "Nobody answered the question in time." in page.read_text()
    assert "How long may it be?" in page.read_text().partition("## Question")[2]


def test_a_request_that_stood_in_line_shows_the_question_before_it_and_goes_on_after_the_answer(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    opened = threading.Event()

    def understand(prompt: str) -> dict[str, Any]:
        if "second" in material(prompt, "The request"):
            return understanding(part("Do the second thing"))
        assert opened.wait(30)
        return understanding(part("Do it"), missing="" if CODE in prompt else "Which code?")

    fake.reply = Mind(
        understand=understand,
        choose=lambda prompt: [pick(1, "NONE", can_answer=True)],
        agents={"CONDUCTOR": lambda prompt: f"I did: {material(prompt, 'task')}"},
    )
    with Daemon(home, env=env) as daemon, ThreadPoolExecutor() as beside:
        daemon.ready()
        drop_command(home, {"type": "ask", "request": "Do it.", "conversation": "c"}, "first.json")
        daemon.wait("run_started", file="first.json")
        drop = beside.submit(run_cli, "ask", "--conversation", "c", "Do the second thing.", cwd=home, env=env)
        daemon.wait("run_queued", count=2)
        opened.set()
        behind = drop.result()
        assert behind.returncode == 75, behind.stderr
        assert behind.stdout.strip() == "Which code?"
        assert "I did: Do it" in ask(home, env, "--conversation", "c", CODE)
        daemon.wait("run_ended", count=2, status="succeeded")
        assert "I did: Do the second thing" in run_cli("show", "last", cwd=home, env=env).stdout
        assert daemon.stop() == 0


@pytest.mark.parametrize(
    ("arguments", "field"),
    [(["--end"], "end"), (["--dry-run", "this one"], "dry_run"), (["--file", "app.py", "this one"], "input_artifacts")],
)
def test_while_a_question_is_open_only_words_answer_it_and_the_rest_is_refused_with_the_way_out(
    home: Path, fake: FakeGemini, env: dict[str, str], arguments: list[str], field: str
) -> None:
    (home / "app.py").write_text(CODE)
    fake.reply = Mind(
        understand=lambda prompt: understanding(part("Do it"), missing="" if CODE in prompt else "Which code?"),
        choose=lambda prompt: [pick(1, "NONE", can_answer=True)],
        agents={"CONDUCTOR": lambda prompt: "I did it."},
    )
    assert "Which code?" in ask(home, env, "Do it.", code=75)
    done = run_cli("ask", *arguments, cwd=home, env=env)
    assert done.returncode == 2
    assert "waits for your answer, and an answer is only text" in done.stderr
    assert "council cancel" in done.stderr
    assert "`--new` (in a file or a request: `new`) begins another conversation" in done.stderr
    assert list((home / "commands").rglob("failed/*")) == []
    assert "I did it." in ask(home, env, CODE)
    ask(home, env, "--end")


def test_without_a_daemon_a_request_that_waits_for_its_model_says_so_and_the_next_daemon_does_it(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "notes.txt").write_text("The shelf holds 40 kilograms.\n")
    fake.reply = lambda request: error(429, "RESOURCE_EXHAUSTED", retry_after=3600)
    done = run_cli("ask", "--new", "--file", "notes.txt", "Sum it up.", cwd=home, env=env)
    assert done.returncode == 75
    assert "There is no answer yet:" in done.stderr
    assert "`council run` continues it" in done.stderr
    assert inbox(home) == ["ask.json"]


def test_an_answer_brings_no_second_question_for_the_same_thing(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = Mind(
        understand=lambda prompt: understanding(part("Do it"), missing="Which code?"),
        choose=lambda prompt: [pick(1, "NONE", can_answer=True)],
        agents={"CONDUCTOR": lambda prompt: "I did it."},
    )
    assert "Which code?" in ask(home, env, "Do it.", code=75)
    assert "I did it." in ask(home, env, CODE)
    [run_id] = [one["run_id"] for one in receipts(home) if one.get("artifact")]
    assert [name for name in steps(home, run_id) if name.endswith("/question")] == ["missing/question"]


def test_a_question_to_one_person_is_answered_by_that_person_alone(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    for name in ("ann", "bob"):
        assert run_cli("users", "add", name, cwd=home, env=env).returncode == 0
    fake.reply = Mind(
        understand=lambda prompt: understanding(part("Do it"), missing="" if CODE in prompt else "Which code?"),
        choose=lambda prompt: [pick(1, "NONE", can_answer=True)],
        agents={"CONDUCTOR": lambda prompt: "I did it."},
    )
    asked = json.loads(ask(home, env, "Do it.", "--user", "ann", "--json", code=75))
    assert asked["question"] == "Which code?"
    refused = run_cli("answer", asked["run_id"], CODE, "--user", "bob", cwd=home, env=env)
    assert refused.returncode == 2
    assert f"bob has no run '{asked['run_id']}'" in refused.stderr
    file = home / "answer.json"
    file.write_text(json.dumps({"type": "answer", "run": asked["run_id"], "answer": CODE, "user": "ann"}))
    assert "ok (answer)" in run_cli("validate", str(file), cwd=home, env=env).stdout
    done = run_cli("answer", asked["run_id"], CODE, "--user", "ann", cwd=home, env=env)
    assert "I did it." in done.stdout
