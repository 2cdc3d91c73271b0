"""The bounds of a request to the conductor: what it may spend, how often agents take turns, and what nobody is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from council.errors import EXIT_DEGRADED, EXIT_REFUSED
from tests.conducting import Mind, asked_of, block, material, offered, part, pick, understanding
from tests.fake_gemini import FakeGemini
from tests.harness import drop_command, on_a_terminal, receipts, run_cli

CODE = "query = f\"SELECT * FROM users WHERE name='{username}'\""
HARM = "To make a pipe bomb, take parts number seventeen."


def page_of(home: Path) -> str:
    [page] = (home / "artifacts" / "asks").rglob("*.md")
    return page.read_text()


def reviewing() -> Mind:
    return Mind(
        understand=lambda prompt: understanding(part("Review it", code=CODE)),
        choose=lambda prompt: [pick(1, "ethical-hacker" if offered(prompt, "ethical-hacker") else "NONE")],
        agents={"ETHICAL_HACKER": lambda prompt: block(f"I read {material(prompt, 'code')}")},
    )


def dropped(home: Path, env: dict[str, str], **budget: float) -> tuple[int, str, dict[str, Any]]:
    """A request with a budget, dropped and done: the exit code, the page, the receipt."""
    drop_command(home, {"type": "ask", "request": f"Review it: {CODE}", "budget": budget})
    code = run_cli("run", "--once", cwd=home, env=env).returncode
    [receipt] = receipts(home)
    return code, page_of(home), receipt


def test_a_request_whose_calls_fit_its_budget_exactly_is_answered(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = reviewing()
    code, page, receipt = dropped(home, env, max_calls=3)
    assert code == 0
    assert f"I read {CODE}" in page
    assert len(fake.requests) == 3
    assert receipt["calls"] == 3


def test_a_request_whose_calls_are_spent_before_its_agent_is_asked_says_so_and_counts_them(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = reviewing()
    code, page, receipt = dropped(home, env, max_calls=2)
    assert code == 7
    assert receipt["status"] == "degraded"
    assert receipt["calls"] == len(fake.requests) == 2
    assert asked_of(fake.requests, "ETHICAL_HACKER") == []
    assert (
        "ethical-hacker failed:** the command's budget of 2 calls does not allow another call (2 spent or reserved)."
        in page
    )


@pytest.mark.parametrize(
    ("budget", "calls", "words"),
    [
        ({"max_calls": 1}, 1, "the command's budget of 1 call does not allow another call (1 spent or reserved)."),
        ({"max_usd": 0.0001}, 0, "the command's budget of 0.0001 USD is less than this call may need"),
    ],
)
def test_a_budget_that_is_spent_before_the_request_is_routed_fails_it_and_says_what_to_raise(
    home: Path, fake: FakeGemini, env: dict[str, str], budget: dict[str, float], calls: int, words: str
) -> None:
    fake.reply = reviewing()
    code, page, receipt = dropped(home, env, **budget)
    [meter] = budget
    assert code == 1
    assert (receipt["status"], receipt["error"]["code"]) == ("failed", "budget")
    assert receipt.get("calls", 0) == len(fake.requests) == calls
    assert words in page
    assert f"raise {meter} in the command's budget" in page
    assert f"raise {meter} in the command's budget" in receipt["error"]["fix"]


def test_agents_that_take_turns_stop_after_three_and_the_page_says_that_the_work_is_not_done(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    def write(prompt: str) -> str:
        draft = f"{material(prompt, 'remarks')} A letter."
        return block(draft, output={"draft": draft})

    fake.reply = Mind(
        understand=lambda prompt: understanding(
            part("Write a letter"), part("Edit the letter", uses=[1]), order="iterative"
        ),
        choose=lambda prompt: [pick(1, "writer"), pick(2, "editor")],
        agents={
            "WRITER": write,
            "EDITOR": lambda prompt: block(
                "Edited.", output={"remarks": f"Again: {material(prompt, 'draft')}", "done": False}
            ),
        },
    )
    done = run_cli("ask", "Write a letter and edit it until it is good.", cwd=home, env=env)
    assert done.returncode == 0, done.stderr
    assert len(asked_of(fake.requests, "WRITER")) == 3
    assert len(asked_of(fake.requests, "EDITOR")) == 3
    assert "### writer\n\nAgain: Again:" in done.stdout
    note = "writer and editor took 3 turns each, which is the most. editor was not done then."
    assert note in done.stdout
    assert note in page_of(home)


@pytest.mark.parametrize(
    ("agent", "asks", "code", "told"),
    [
        ("NONE", False, 6, "I can't help with that"),
        ("NONE", True, 6, "I can't help with that"),
        ("ethical-hacker", False, 7, "ethical-hacker failed:** its answer was withheld by a guardrail (`weapon`)"),
        ("ethical-hacker", True, 7, "ethical-hacker failed:** its question was withheld by a guardrail (`weapon`)"),
    ],
)
def test_an_answer_or_a_question_that_a_guardrail_blocks_is_nowhere_shown_or_remembered_and_the_reason_is_told(
    home: Path, fake: FakeGemini, env: dict[str, str], agent: str, asks: bool, code: int, told: str
) -> None:
    question = block("I cannot tell.", status="needs_clarification", question=HARM)
    fake.reply = mind = Mind(
        understand=lambda prompt: understanding(part("Say it", code=CODE), missing=HARM if asks and code == 6 else ""),
        choose=lambda prompt: [pick(1, agent, can_answer=True)],
        agents={"CONDUCTOR": lambda prompt: HARM, "ETHICAL_HACKER": lambda prompt: question if asks else block(HARM)},
    )
    done = run_cli("ask", "Say what you want.", "--conversation", "c", cwd=home, env=env)
    page = page_of(home)
    assert done.returncode == code, done.stderr
    assert told in done.stdout
    assert told in page
    assert "number seventeen" not in done.stdout + done.stderr + page
    remembered = [path.read_text() for path in (home / "session_states").rglob("*") if path.is_file()]
    assert "number seventeen" not in "".join(remembered)

    mind.understand = lambda prompt: understanding(part("Say it"))
    mind.choose = lambda prompt: [pick(1, "NONE", can_answer=True)]
    mind.agents["CONDUCTOR"] = lambda prompt: f"Before that: {material(prompt, 'conversation')}"
    before = len(fake.requests)
    again = run_cli("ask", "What was said?", "--conversation", "c", cwd=home, env=env)
    assert "Before that:" in again.stdout
    assert all("number seventeen" not in "".join(one.all_texts) for one in fake.requests[before:])


@pytest.mark.parametrize(("agent", "code"), [("NONE", EXIT_REFUSED), ("ethical-hacker", EXIT_DEGRADED)])
def test_an_answer_that_a_guardrail_blocks_stops_on_the_terminal_before_its_harm_is_said(
    home: Path, fake: FakeGemini, env: dict[str, str], agent: str, code: int
) -> None:
    said = f"{'Here is my answer, in plain words. ' * 3}{HARM}"
    fake.reply = Mind(
        understand=lambda prompt: understanding(part("Say it", code=CODE)),
        choose=lambda prompt: [pick(1, agent, can_answer=True)],
        agents={"CONDUCTOR": lambda prompt: said, "ETHICAL_HACKER": lambda prompt: block(said)},
    )
    shown = on_a_terminal("ask", "Say what you want.", cwd=home, env=env, ends_with=code)
    assert shown.startswith("Here is my answer, in plain words.")
    assert "withheld by a guardrail" in shown
    assert "bomb" not in shown
    assert "seventeen" not in shown


def test_eval_routing_routes_a_request_that_names_its_agent_by_the_name_as_ask_does(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "set.yaml").write_text(
        "requests:\n"
        '  - {ask: "@tax-specialist which deductions fit?", agent: tax-specialist}\n'
        '  - {ask: "@nobody who won?", agent: none}\n'
    )
    fake.reply = Mind(
        understand=lambda prompt: understanding(part(material(prompt, "The request"))),
        choose=lambda prompt: [pick(1, "ethical-hacker")],
    )
    done = run_cli("eval", "routing", "--requests", "set.yaml", "--json", cwd=home, env=env)
    assert done.returncode == 0, done.stderr
    assert [row["found"] for row in json.loads(done.stdout)["rows"]] == [["tax-specialist"], ["none"]]
    assert [row["mark"] for row in json.loads(done.stdout)["rows"]] == ["right", "right"]

    shown = run_cli("ask", "--dry-run", "@tax-specialist which deductions fit?", cwd=home, env=env).stdout
    assert "Part 1: tax-specialist, which you named." in shown
    assert not [one for one in fake.requests if "Choose an agent for each part." in "".join(one.texts)]
