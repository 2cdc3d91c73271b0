"""The artifact again from the journal, byte for byte, and where two runs part."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from council.engine.records import Record, StepResult
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, slow, text
from tests.harness import Daemon, command, drop_command, execute, lose_journal, receipts, rewrite_journal, run_cli


def finished(home: Path, env: dict[str, str], **keys: object) -> dict[str, object]:
    """A run to its end; its receipt."""
    before = {receipt["run_id"] for receipt in receipts(home)}
    drop_command(home, command(**keys))
    run_cli("run", "--once", cwd=home, env=env)
    [receipt] = [receipt for receipt in receipts(home) if receipt["run_id"] not in before]
    return receipt


def asks_and_fails(request: RecordedRequest) -> FakeReply:
    if "You are STRATEGIST" in request.system:
        return error(500, "INTERNAL")
    return text("I need a file.\n\n[ORCHESTRATOR_REQUEST: READ_FILE(notes.md)]")


@pytest.mark.parametrize("case", ["plain", "with a failed agent", "edited by a person", "failed"])
def test_a_replay_is_the_artifact_byte_for_byte_and_makes_no_call(
    home: Path, fake: FakeGemini, env: dict[str, str], case: str
) -> None:
    (home / "notes.md").write_text("a line to read\n")
    keys: dict[str, object] = {"rounds": 2, "input_artifacts": ["notes.md"]}
    if case == "with a failed agent":
        fake.reply = asks_and_fails
    elif case == "edited by a person":
        (home / "artifacts" / "out.md").write_text("mine")
    elif case == "failed":
        keys["input_artifacts"] = ["gone.md"]
    receipt = finished(home, {**env, "COUNCIL_MODEL_ATTEMPTS": "1"}, **keys)
    artifact = home / str(receipt["artifact"]["path"])  # type: ignore[index]
    calls = len(fake.requests)
    for path in (home / "notes.md", home / "personas" / "auditor.md"):
        path.unlink()
    (home / ".council" / "council.db.lock").unlink()  # who writes makes it
    kept = {path.name: path.read_bytes() for path in (home / ".council").iterdir() if path.is_file()}
    done = run_cli("replay", "last", cwd=home)
    assert done.stdout == artifact.read_text()
    assert run_cli("replay", str(receipt["run_id"]), "--check", cwd=home).returncode == 0
    assert run_cli("explain", "last", cwd=home).returncode == 0
    assert {path.name: path.read_bytes() for path in (home / ".council").iterdir() if path.is_file()} == kept
    told = json.loads(run_cli("replay", "--json", cwd=home).stdout)
    assert (told["run_id"], told["same"], told["page"]) == (receipt["run_id"], True, done.stdout)
    assert len(fake.requests) == calls


def test_the_page_of_a_run_that_was_cancelled_before_its_turn_names_no_model_and_is_replayed(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: slow(600)
    with Daemon(home, env=env) as daemon:
        drop_command(home, command("The first."))
        fake.wait_for_requests(1)
        drop_command(home, command("The second.", output_artifact_path="artifacts/second.md"), "second.json")
        second = daemon.wait("run_queued", title="The second")["run_id"]
        assert run_cli("cancel", second, cwd=home, env=env).returncode == 0
        page = (home / "artifacts" / "second.md").read_text()
        daemon.kill()
    assert "\nstatus: cancelled\n" in page
    assert "\nmodel: none\n" in page
    assert run_cli("replay", second, cwd=home).stdout == page
    assert len(fake.requests) == 1


def test_a_check_says_when_the_artifact_was_changed(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    finished(home, env)
    with (home / "artifacts" / "out.md").open("a") as stream:
        stream.write("an afterthought\n")
    done = run_cli("replay", "--check", cwd=home)
    assert done.returncode == 1
    assert "differs from the journal" in done.stdout


def test_a_check_finds_the_page_of_a_run_whose_place_a_later_one_took(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    run_id = str(finished(home, env)["run_id"])
    finished(home, env, task="Something else.")
    done = run_cli("replay", run_id, "--check", cwd=home)
    said = "artifacts/out.md belongs to a later run now; artifact.md, kept from before, matches the journal.\n"
    assert done.stdout == said
    assert done.returncode == 0
    told = json.loads(run_cli("replay", run_id, "--json", cwd=home).stdout)
    assert (told["artifact"], told["same"]) == ("artifact.md", True)
    execute(home, "UPDATE kept SET data = ? WHERE owner = ?", b"mine", run_id)
    assert run_cli("replay", run_id, "--check", cwd=home).returncode == 1


def test_two_runs_part_where_the_first_answer_differs(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    env = {**env, "COUNCIL_TEST_RUN_SECRET": "5e" * 32}
    first = finished(home, env, session="a")
    fake.reply = lambda request: text("something else" if "You are STRATEGIST" in request.system else "same")
    second = finished(home, env, session="b")
    fake.reply = lambda request: text("same")
    third = finished(home, env, session="c")
    found = json.loads(run_cli("diff", second["run_id"], third["run_id"], "--json", cwd=home).stdout)
    assert (found["kind"], found["first_step"]) == ("answer", "round/1/STRATEGIST")
    assert "something else" in found["first_answer"]
    shown = run_cli("diff", second["run_id"], third["run_id"], cwd=home).stdout
    assert shown.startswith("They differ after 1 equal step: ")
    assert "something else" in shown
    assert '{"text"' not in shown
    assert [line for line in shown.splitlines() if line != line.rstrip()] == []
    assert {"-something else", "+same"} <= set(shown.splitlines())
    said = run_cli("diff", first["run_id"], first["run_id"], cwd=home).stdout
    assert "do not differ" in said


def test_answers_that_differ_beside_their_words_are_shown_as_json(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    env = {**env, "COUNCIL_TEST_RUN_SECRET": "5e" * 32}
    runs = []
    for lane, tokens in (("a", 10), ("b", 20)):
        fake.reply = lambda request, tokens=tokens: text("same", output=tokens)
        runs.append(finished(home, env, session=lane)["run_id"])
    shown = run_cli("diff", *runs, cwd=home).stdout
    assert "answered differently" in shown
    assert '-    "output_tokens": 10' in shown.splitlines()


def test_two_runs_of_one_lane_part_in_what_their_agents_remember(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    runs = [finished(home, env)["run_id"] for _ in range(2)]
    found = json.loads(run_cli("diff", *runs, "--json", cwd=home).stdout)
    assert (found["kind"], found["first_step"]) == ("question", "round/1/COORDINATOR")
    shown = run_cli("diff", *runs, cwd=home).stdout
    assert "What you remember of earlier" in shown  # the first task has nothing to remember
    assert ("Both got the same answer." in shown) == (found["first_answer"] == found["second_answer"])
    assert '{"text"' not in shown


def test_a_run_whose_journal_is_gone_says_so(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    receipt = finished(home, env)
    lose_journal(home, str(receipt["run_id"]))
    done = run_cli("replay", cwd=home)
    assert done.returncode == 2
    assert "has no journal here" in done.stderr


def test_two_runs_of_one_command_do_not_part_for_the_marks_in_their_prompts(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "notes.md").write_text("a line to read\n")
    fake.reply = lambda request: text("So be it.")
    first = finished(home, env, session="a", input_artifacts=["notes.md"], rounds=2)
    second = finished(home, env, session="b", input_artifacts=["notes.md"], rounds=2)
    assert len({call.texts[0] for call in fake.requests}) == 2
    found = json.loads(run_cli("diff", first["run_id"], second["run_id"], "--json", cwd=home).stdout)
    assert found["kind"] == "same"
    assert found["same_steps"] > 7


def test_where_the_question_differs_what_differs_in_the_prompts_is_shown(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    long = "\n".join(f"Line {number} of the plan." for number in range(200))
    first = finished(home, env, session="a", task=f"{long}\nChoose red.\n{long}")
    second = finished(home, env, session="b", task=f"{long}\nChoose \x1b[2Jblue, or nothing at all.\n{long}")
    told = json.loads(run_cli("diff", first["run_id"], second["run_id"], "--json", cwd=home).stdout)
    assert (told["kind"], told["first_step"], told["why_not"]) == ("question", "round/1/COORDINATOR", "")
    asked = fake.requests[0]
    assert told["first_prompt"]["system"] == asked.system
    assert [message["text"] for message in told["first_prompt"]["messages"]] == asked.all_texts
    assert "Choose red." in told["first_prompt"]["messages"][0]["text"]
    assert "blue, or nothing" in told["second_prompt"]["messages"][0]["text"]
    shown = run_cli("diff", first["run_id"], second["run_id"], cwd=home).stdout
    assert "-Choose red." in shown.splitlines()
    assert "+Choose [2Jblue, or nothing at all." in shown.splitlines()
    assert " Line 199 of the plan." in shown.splitlines()  # a few lines around
    assert "Line 150 of the plan." not in shown
    assert "\x1b" not in shown


def test_a_run_that_cannot_be_rendered_again_is_compared_all_the_same_and_says_why(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    first = finished(home, env, session="a", task="Choose red.")
    second = finished(home, env, session="b", task="Choose blue.")
    rewrite_journal(
        home, str(second["run_id"]), lambda records: [msgspec.structs.replace(records[0], epoch=1), *records[1:]]
    )
    done = run_cli("diff", first["run_id"], second["run_id"], cwd=home)
    assert done.returncode == 0
    assert "round/1/COORDINATOR was asked something else" in done.stdout
    assert "The prompts cannot be shown: " in done.stdout
    assert "was begun by a version of Council with journal epoch 1" in done.stdout
    told = json.loads(run_cli("diff", first["run_id"], second["run_id"], "--json", cwd=home).stdout)
    assert "Choose red." in told["first_prompt"]["messages"][0]["text"]
    assert told["second_prompt"] is None
    assert "journal epoch 1" in told["why_not"]
    refused = run_cli("cassette", str(second["run_id"]), cwd=home)
    assert (refused.returncode, "journal epoch 1" in refused.stderr) == (1, True)


def test_prompts_that_another_version_worded_are_not_passed_off_as_sent(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    receipt = finished(home, env)

    def asked_in_other_words(record: Record) -> Record:
        is_turn = isinstance(record, StepResult) and record.name == "round/1/STRATEGIST"
        return msgspec.structs.replace(record, request="0" * 64) if is_turn else record

    rewrite_journal(home, str(receipt["run_id"]), lambda records: map(asked_in_other_words, records))
    done = run_cli("cassette", "-o", "x.cassette.jsonl", cwd=home)
    assert (done.returncode, (home / "x.cassette.jsonl").exists()) == (1, False)
    assert "step round/1/STRATEGIST" in done.stderr
    assert "words that this version of Council does not use" in done.stderr
