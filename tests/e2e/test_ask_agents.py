"""Agents that work together over the conductor: chains, children, changes for others, and those that are found by meaning."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from council.engine.records import Record, StepResult
from tests.conducting import Mind, ask, asked_of, block, material, offered, part, pick, understanding
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, embedded_texts, usage, vectors
from tests.harness import opened, receipts, rewrite_journal, rows_of, run_cli, take_back_commit
from tests.space import Space

REVIEWER = """\
---
id: reviewer
role: REVIEWER
purpose: Reviews code before it is deployed.
tools: []
context: {required: [task, code], optional: []}
output_schema: {type: object, properties: {approved: {type: string}}, required: [approved]}
scope: task
---
You review code.
"""
DEPLOYER = """\
---
id: deployer
role: DEPLOYER
purpose: Says how approved code is deployed.
tools: []
context: {required: [task, approved], optional: []}
scope: task
---
You tell how to deploy.
"""
ARCHITECT = """\
---
id: architect
role: ARCHITECT
purpose: Divides a building task among other agents.
tools: []
context: {required: [task], optional: [constraints]}
scope: task
---
You divide work.
"""


def test_code_review_and_deploy_follow_one_another_and_each_gets_what_the_one_before_shared(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "personas" / "reviewer.md").write_text(REVIEWER)
    (home / "personas" / "deployer.md").write_text(DEPLOYER)
    fake.reply = Mind(
        understand=lambda prompt: understanding(
            part("Write a greeting"), part("Review it", uses=[1]), part("Deploy it", uses=[2]), order="sequential"
        ),
        choose=lambda prompt: [pick(1, "code_writer"), pick(2, "reviewer"), pick(3, "deployer")],
        agents={
            "CODE_WRITER": lambda prompt: block("Written.", output={"code": "print('hello-4711')"}),
            "REVIEWER": lambda prompt: block("Read.", output={"approved": material(prompt, "code") + "  # ok"}),
            "DEPLOYER": lambda prompt: block(f"Copy this: {material(prompt, 'approved')}"),
        },
    )
    shown = ask(home, env, "Write, review and deploy a greeting.")

    roles = [
        role
        for one in fake.requests
        for role in ("CODE_WRITER", "REVIEWER", "DEPLOYER")
        if f"You are {role}," in one.system
    ]
    assert roles == ["CODE_WRITER", "REVIEWER", "DEPLOYER"]
    assert "Copy this: print('hello-4711')  # ok" in shown
    assert (
        "deployer was given approved, task; left out: other_agent_outputs. Shared from other agents: approved."
        in run_cli("show", cwd=home).stdout
    )


def test_children_of_an_agent_get_nothing_that_it_had_not(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    (home / "personas" / "architect.md").write_text(ARCHITECT)
    children = [
        {"to": "writer", "task": "Describe the kitchen", "fields": ["constraints", "draft"]},
        {"to": "video_planner", "task": "Film the kitchen", "fields": []},
    ]
    fake.reply = Mind(
        understand=lambda prompt: understanding(
            part("Plan a kitchen", constraints="six square metres", draft="canary-draft", financial="9,000 euros")
        ),
        choose=lambda prompt: [pick(1, "architect")],
        agents={
            "ARCHITECT": lambda prompt: block("Divided.", children=children),
            "WRITER": lambda prompt: block(
                "Small and bright.", output={"draft": f"In {material(prompt, 'constraints')}"}
            ),
            "VIDEO_PLANNER": lambda prompt: block("One shot."),
        },
    )
    shown = ask(home, env, "Plan a kitchen of six square metres for 9,000 euros.")

    [writer], [planner] = asked_of(fake.requests, "WRITER"), asked_of(fake.requests, "VIDEO_PLANNER")
    assert "six square metres" in writer
    assert "six square metres" not in planner
    for request in (writer, planner):
        assert "canary-draft" not in request
        assert "9,000" not in request
    assert "Small and bright." in shown
    assert "One shot." in shown


def test_changes_that_a_reading_agent_asks_for_are_made_by_others_and_one_that_fails_stops_none(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = Mind(
        understand=lambda prompt: understanding(part("Which beds are free, and plant something there?")),
        choose=lambda prompt: [pick(1, "garden_planter" if offered(prompt, "garden_planter") else "NONE")],
    )
    with opened(home) as store:
        space = Space(store, home / ".council")
        space.do("ada", "createProject", orgId=space.do("ada", "createOrganization", name="Garden"), name="bed 3")
    shown = ask(home, env, "Which beds are free?", "--project", "bed 3", code=7, module="tests.sample_agents")

    assert "garden_reader did “Which beds are free, and plant something there?” in bed 3." in shown
    assert "garden_planter did “plant leeks\nplant figs” in bed 7." in shown
    assert "garden_noter failed:** the notes are locked." in shown
    assert "`council plans show 20260101-000000-garden00` shows it" in shown


def test_an_output_that_misses_its_schema_after_two_repairs_is_a_failure(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = Mind(
        understand=lambda prompt: understanding(part("Write a greeting")),
        choose=lambda prompt: [pick(1, "code_writer")],
        agents={
            "CODE_WRITER": lambda prompt: block(
                "**Succeeded.** It is written, in one line.\n\nAsk for more.", output={"program": "x"}
            )
        },
    )
    shown = ask(home, env, "Write a greeting.", code=7)

    assert "code_writer failed:** its answer does not have the form asked for: `output`: must contain ['code']" in shown
    assert "\n\\> **Succeeded.** It is written, in one line.\n>\n> Ask for more.\n" in shown
    assert "```council" not in shown
    why = json.loads(run_cli("explain", "last", "--json", cwd=home, env=env).stdout)["why"]
    assert (why["code"], "Nobody could answer the request" in why["sentence"]) == ("unanswered", True)
    assert len(asked_of(fake.requests, "CODE_WRITER")) == 3
    before = len(fake.requests)
    ask(home, env, "And now?", code=7)
    later = ["\n".join(request.texts) for request in fake.requests[before:]]
    assert any("code_writer failed:** its answer does not have the form asked for" in text for text in later)
    assert [text for text in later if "It is written" in text] == []


def test_an_agent_that_did_not_keep_a_rule_of_its_handoff_has_failed(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    def ran_it(prompt: str) -> str:
        rules = prompt.partition("Rules of this handoff:")[2].partition("\n\n")[0].strip().splitlines()
        return block("I ran it.", rules_kept=[False] * len(rules))

    fake.reply = Mind(
        understand=lambda prompt: understanding(part("Review it", code="eval(input())")),
        choose=lambda prompt: [pick(1, "ethical-hacker")],
        agents={"ETHICAL_HACKER": ran_it},
    )
    shown = ask(home, env, "Review it.", code=7)

    assert "ethical-hacker failed:** it did not keep a rule of its handoff: Do not execute the code." in shown
    assert "I ran it." not in shown
    fake.reply = replace(fake.reply, agents={"ETHICAL_HACKER": lambda prompt: "I ran it, and say nothing of rules."})
    shown = ask(home, env, "Review it.", "--new", code=7)
    assert "ethical-hacker failed:** its answer does not have the form asked for" in shown
    assert "I ran it" not in shown


def test_a_missing_field_is_a_named_error_before_the_agent_is_asked(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = Mind(
        understand=lambda prompt: understanding(part("Review it")), choose=lambda prompt: [pick(1, "ethical-hacker")]
    )
    shown = ask(home, env, "Review it.", code=7)

    assert "ETHICAL_HACKER requires the context field `code`, which nothing here provides." in shown
    assert asked_of(fake.requests, "ETHICAL_HACKER") == []
    assert "Part 1: nobody, since ethical-hacker requires what it cannot be given." in run_cli("show", cwd=home).stdout
    [route] = receipts(home)[0]["details"]["routes"]
    assert (route["agent"], route["cause"]) == ("ethical-hacker", "boundary")


def test_a_near_embedding_routes_without_the_models_choice_and_is_made_anew_for_another_purpose(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    def embed(request: RecordedRequest) -> Any:
        near = ["cake" in text or "pastry" in text for text in embedded_texts(request)]
        return vectors([[float(is_near), float(not is_near), *([0.0] * 766)] for is_near in near])

    fake.embed_reply = embed
    settings = (home / "council.toml").read_text()
    (home / "council.toml").write_text(f'{settings}embedding_model = "gemini:gemini-embedding-001"\n')
    (home / "personas" / "baker.md").write_text(
        "---\nid: baker\nrole: BAKER\npurpose: Bakes pastry.\ntools: []\nscope: task\n---\nYou bake."
    )
    fake.reply = Mind(
        understand=lambda prompt: understanding(part("Make a cake")),
        choose=lambda prompt: [pick(1, "NONE", can_answer=True)],
        agents={"BAKER": lambda prompt: block("Mix it."), "CONDUCTOR": lambda prompt: "I try."},
    )
    assert "Mix it." in ask(home, env, "Make a cake.")
    assert receipts(home)[0]["details"]["routes"][0]["how"] == "embedding"
    before = rows_of(home, "SELECT version FROM agent_embeddings WHERE agent = ?", "baker")

    text = (home / "personas" / "baker.md").read_text().replace("Bakes pastry.", "Bakes bread.")
    (home / "personas" / "baker.md").write_text(text)
    assert "I try." in ask(home, env, "Make a cake.")
    assert rows_of(home, "SELECT version FROM agent_embeddings WHERE agent = ?", "baker") != before


def test_a_request_costs_at_most_a_tenth_more_with_a_thousand_agents_than_with_ten(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    mind = Mind(
        understand=lambda prompt: understanding(part("Review this code for security issues", code="eval(input())")),
        choose=lambda prompt: [pick(1, "ethical-hacker" if offered(prompt, "ethical-hacker") else "NONE")],
        agents={"ETHICAL_HACKER": lambda prompt: block("Do not evaluate what was typed.")},
    )

    def counted(request: RecordedRequest) -> FakeReply:
        reply, words = mind(request), re.findall(r"\w+|[^\w\s]", " ".join([request.system, *request.all_texts]))
        return replace(reply, chunks=(*reply.chunks[:-1], {**reply.chunks[-1], "usageMetadata": usage(len(words))}))

    def agents(first: int, last: int) -> None:
        for number in range(first, last):
            (home / "personas" / f"expert-{number}.md").write_text(
                f"---\nid: expert-{number}\nrole: EXPERT_{number}\npurpose: Plans, builds and mends the machine of kind"
                f" {number}, and explains its care.\ntools: []\nscope: task\n---\nYou know machine {number}."
            )

    def tokens() -> int:
        assert "Do not evaluate" in ask(home, env, "--new", "Review this code for security issues: eval(input())")
        spent = receipts(home)[-1]["tokens"]
        return int(spent["input"] + spent["output"])

    fake.reply = counted
    for name in ("editor", "video_planner", "writer"):  # ten of the thirteen that every home has are left
        (home / "personas" / f"{name}.md").unlink()
    few = tokens()
    agents(0, 990)

    assert tokens() <= 1.1 * few


def test_eval_routing_counts_what_a_model_routes_right_wrong_and_admits(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "set.yaml").write_text(
        "agents: {gardener: Plans beds and plants.}\n"
        "requests:\n"
        '  - {ask: "Which beds are free?", agent: gardener}\n'
        '  - {ask: "What do I owe in tax?", agent: tax-specialist}\n'
        '  - {ask: "Who won?", agent: none}\n'
        "  - {ask: Tell me more., agent: none}\n"
    )

    def understand(prompt: str) -> dict[str, Any]:
        asked = material(prompt, "The request")
        return understanding(part(asked), missing="More of what?" if "more" in asked else "")

    fake.reply = Mind(
        understand=understand,
        choose=lambda prompt: [
            pick(1, "gardener" if "beds are free" in prompt else "gardener" if "tax?" in prompt else "NONE")
        ],
    )
    done = run_cli("eval", "routing", "--requests", "set.yaml", "--json", cwd=home, env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"] == {"right": 2, "wrong": 1, "asked": 1, "admitted": 0, "unread": 0}


def test_a_run_goes_on_with_a_recorded_agent_that_no_file_may_spell_so_any_more(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    persona = home / "personas" / "deployer.md"
    persona.write_text(DEPLOYER.replace("approved], optional: []", "code], optional: [], forbidden: [transcript]"))
    fake.reply = Mind(
        understand=lambda prompt: understanding(part("Deploy it", code="print(1)")),
        choose=lambda prompt: [pick(1, "deployer")],
        agents={"DEPLOYER": lambda prompt: block(f"Copy this: {material(prompt, 'code')}")},
    )
    assert "Copy this: print(1)" in ask(home, env, "Deploy print(1).")
    [receipt] = receipts(home)

    def as_it_was_spelt(record: Record) -> Record:
        is_manifest = isinstance(record, StepResult) and record.name.endswith("/manifest")
        if not is_manifest:
            return record
        out = msgspec.Raw(bytes(record.out).replace(b"transcript", b"transcipt"))
        return msgspec.structs.replace(record, out=out)

    rewrite_journal(home, receipt["run_id"], lambda records: map(as_it_was_spelt, records))
    take_back_commit(home, receipt["run_id"])
    page = home / receipt["artifact"]["path"]
    page.unlink()
    done = run_cli("run", "--once", cwd=home, env=env)
    assert done.returncode == 0, done.stderr
    assert "Copy this: print(1)" in page.read_text()
    assert "transcipt" in "".join(
        str(row[0]) for row in rows_of(home, "SELECT out FROM steps WHERE name LIKE '%/manifest'")
    )
    persona.write_text(persona.read_text().replace("transcript", "transcipt"))
    assert (
        "`context.forbidden` names transcipt, which no agent is given"
        in run_cli("agents", "list", cwd=home, env=env).stderr
    )
