"""`council eval` through the real command line: a scripted model, and the real Gemini client against a fake server."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from council.engine.ledger import Ledger
from council.storage.reader import Reader
from tests import warm
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, text
from tests.harness import (
    FAULTY,
    Daemon,
    command,
    drop_command,
    environment,
    faulty_environment,
    journal,
    receipts,
    run_cli,
    run_ids,
    steps,
    wait_until,
)

QUICK = {"COUNCIL_MODEL_ATTEMPTS": "1", "COUNCIL_MAX_OUTPUT_TOKENS": "100"}
OPTIONS = ("--rounds", "2", "--resamples", "400")


def ask_about(folder: Path, count: int, *, right: str = "A") -> Path:
    """A folder with `count` questions of two choices about one document."""
    (folder / "docs").mkdir(parents=True, exist_ok=True)
    (folder / "docs" / "disk.md").write_text("The disk holds 40 GB.\n")
    entries = [
        {
            "id": f"question-{number}",
            "question": f"Is disk number {number} large enough?",
            "choices": {"A": "it is large enough", "B": "it is too small"},
            "answer": right,
            "documents": ["docs/disk.md"],
        }
        for number in range(count)
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return folder


def stance(position: str, confidence: float = 0.8, words: str = "I looked at it.") -> str:
    block = {"position": position, "confidence": confidence, "evidence": [], "would_change": "a measurement"}
    return f"{words}\n\n```council\n{json.dumps(block)}\n```"


def script(home: Path, replies: list[dict[str, Any]]) -> str:
    """A scripted model that answers every call; the way to spell it."""
    content = {
        "model": "rehearsal",
        "replies": [{"times": 0, **reply} for reply in replies],
        "default": {"text": says("A")},
    }
    (home / "script.yaml").write_text(yaml.safe_dump(content))
    return "scripted:script.yaml"


def says(answer: str, confidence: float = 0.8) -> str:
    return json.dumps({"reasoning": "So it stands there.", "answer": answer, "confidence": confidence})


def decides(answer: str, confidence: float = 0.7) -> str:
    return json.dumps({"answer": answer, "claims": [], "confidence": confidence})


def opinions(*, ballots: str, first: str, later: str, decision: str) -> list[dict[str, Any]]:
    return [
        {"role": "BALLOT", "text": says(ballots)},
        {"purpose": "turn", "round": 1, "text": stance(first)},
        {"purpose": "turn", "round": 2, "text": stance(later)},
        {"purpose": "synthesis", "text": decides(decision)},
    ]


def evaluated(
    home: Path, folder: Path, *options: str, code: int = 0, env: dict[str, str] | None = None
) -> dict[str, Any]:
    done = run_cli("eval", str(folder), *OPTIONS, "--json", *options, cwd=home, env=env)
    assert done.returncode == code, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def results_of(folder: Path) -> Path:
    return sorted((folder / "results").glob("2*"))[-1]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().split("\n") if line]


# ── whether debate helps ─────────────────────────────────────────────────────────────────────────────────────────────


def test_where_debate_hurts_the_vote_is_recommended_and_other_labels_turn_that_round_without_a_call(
    home: Path, tmp_path: Path
) -> None:
    """All are right at first, and then follow one another into the wrong answer."""
    folder = ask_about(tmp_path / "golden", 20)
    model = script(home, opinions(ballots="A", first="A", later="B: it is too small", decision="B"))
    found = evaluated(home, folder, "--model", model, "--out", str(tmp_path / "report.md"))
    arms = found["figures"]["arms"]
    assert [arms[arm]["accuracy"]["value"] for arm in ("single", "vote", "council")] == [1.0, 1.0, 0.0]
    assert found["verdict"]["word"] == "use_the_vote"
    assert found["figures"]["council_less_vote"] == {"value": -1.0, "low": -1.0, "high": -1.0}
    assert found["figures"]["first_round"]["value"] == 1.0
    assert found["figures"]["counts"] == {
        "good_flips": 0,
        "bad_flips": 20,
        "only_council_right": 0,
        "only_vote_right": 20,
        "members_good": 0,
        "members_bad": 60,
        "members_other": 0,
        "members_kept": 0,
    }
    assert arms["council"]["brier"]["value"] == pytest.approx(0.49)
    assert arms["single"]["ece"]["value"] == pytest.approx(0.2)
    assert found["proves"] == "arithmetic only"
    page = (tmp_path / "report.md").read_text()
    assert "**Use the vote: it is right more often than the council" in page
    assert "with scripted models this proves the arithmetic only" in page
    assert page.count("| ✓ A | ✓ A (") == 20
    calls = (results_of(folder) / "calls.jsonl").read_bytes()
    ask_about(folder, 20, right="B")
    other = evaluated(home, folder, "--model", model, "--resume")
    assert other["verdict"]["word"] == "use_the_council"
    assert other["figures"]["counts"]["members_good"] == 60
    assert (results_of(folder) / "calls.jsonl").read_bytes() == calls


def test_each_question_is_a_run_of_its_own_that_can_be_looked_at(home: Path, tmp_path: Path) -> None:
    folder = ask_about(tmp_path / "golden", 2)
    found = evaluated(
        home,
        folder,
        "--model",
        script(home, opinions(ballots="A", first="A", later="A", decision="A")),
        "--protocol",
        "triad",
    )
    own = results_of(folder) / "home"
    for each in found["questions"]:
        shown = run_cli("show", each["run"], cwd=own)
        assert "Is disk number" in shown.stdout
        assert run_cli("replay", each["run"], "--check", cwd=own).returncode == 0
        assert [held["role"] for held in each["held"]] == ["COORDINATOR", "STRATEGIST", "AUDITOR"] * 2
    assert run_ids(home) == []
    assert not (home / "session_states" / "coordinator_session.json").exists()
    assert "question-0" not in json.dumps([path.read_text() for path in own.rglob("*.md")])


def test_an_answer_without_the_form_of_the_question_is_asked_for_again_and_else_unreadable(
    home: Path, tmp_path: Path
) -> None:
    folder = ask_about(tmp_path / "golden", 3)
    replies = [
        {"role": "BALLOT", "task": "number 0 ", "text": "I would say A, as it holds 40 GB."},
        {"role": "BALLOT", "task": "number 1 ", "text": says("It is A")},
        {"role": "READER", "task": "number 1 ", "text": says("A", 0.9)},
        {"role": "READER", "text": says("either")},
        *opinions(ballots="A", first="A", later="probably A", decision="A it is, on balance"),
    ]
    found = evaluated(home, folder, "--model", script(home, replies))
    by_id = {each["id"]: each for each in found["questions"]}
    assert [by_id[f"question-{at}"]["single"]["answer"] for at in range(3)] == [None, None, "A"]
    assert by_id["question-0"]["single"]["calls"] == 3  # the answer, and two repairs
    assert "must be one of the labels A, B" in by_id["question-1"]["single"]["fault"]
    assert [by_id[f"question-{at}"]["council"]["answer"] for at in range(3)] == [None, "A", None]
    assert by_id["question-1"]["council"]["confidence"] == 0.9
    assert [held["answer"] for held in by_id["question-2"]["held"]] == ["A"] * 3 + [None] * 3
    assert (found["figures"]["arms"]["single"]["unreadable"], found["figures"]["arms"]["council"]["unreadable"]) == (
        2,
        2,
    )
    assert found["figures"]["arms"]["council"]["accuracy"]["value"] == pytest.approx(1 / 3)
    assert any("3 of the council's decisions were asked for again" in note for note in found["notes"])


def test_few_questions_do_not_tell(home: Path, tmp_path: Path) -> None:
    folder = ask_about(tmp_path / "golden", 2)
    model = script(home, opinions(ballots="A", first="B", later="B", decision="B"))
    done = run_cli("eval", str(folder), *OPTIONS, "--model", model, cwd=home)
    assert done.returncode == 0, done.stderr
    assert "Not enough questions to tell (d = -1.000, 95 % interval -1.000 to -1.000, 2 questions)." in done.stdout
    assert "question-0: single right, vote of" in done.stderr


# ── the budget ───────────────────────────────────────────────────────────────────────────────────────────────────────


def subject(request: RecordedRequest) -> str:
    found = re.search(r"Is disk number (\d+) large", request.texts[0])
    assert found is not None
    return found[1]


def is_ballot(request: RecordedRequest) -> bool:
    return request.system.startswith("You answer one question")


def answers(request: RecordedRequest, **counts: int) -> FakeReply:
    """What a model says that is always right, at the tokens given."""
    if is_ballot(request):
        return text(says("A"), **counts)
    if "The rounds are over" in request.texts[-1]:
        return text(decides("A"), **counts)
    opening = request.texts[-1].split(".")[0]  # names the round: a turn that repeats itself would end the rounds
    return text(stance("A", words=f"To this I answer: {opening}."), **counts)


@pytest.fixture
def quick(env: dict[str, str]) -> dict[str, str]:
    return {**env, **QUICK}


def test_the_vote_spends_what_the_council_spent_to_within_a_ballot(
    home: Path, tmp_path: Path, fake: FakeGemini, quick: dict[str, str]
) -> None:
    """Calls of the council cost 300 to 500 tokens by the question, ballots between 90 and 110 by turns."""
    folder = ask_about(tmp_path / "golden", 4)
    count = Counter[str]()
    lock = threading.Lock()

    def reply(request: RecordedRequest) -> FakeReply:
        if not is_ballot(request):
            return answers(request, prompt=250 + 50 * int(subject(request)), output=50)
        with lock:
            count[subject(request)] += 1
            return answers(request, prompt=60 + 20 * (count[subject(request)] % 2), output=30)

    fake.reply = reply
    found = evaluated(home, folder, env=quick)
    for each in found["questions"]:
        assert each["council"]["tokens"] == 7 * (300 + 50 * int(each["id"][-1]))
        assert abs(each["vote"]["tokens"] - each["council"]["tokens"]) <= 110
        assert each["vote"]["calls"] == len(each["ballots"]) == count[each["id"][-1]]
        assert each["single"]["calls"] == 1
    assert abs(found["figures"]["vote_to_council_tokens"] - 1) < 0.02
    assert found["spent"]["calls"] == len(fake.requests)
    assert found["spent"]["usd"] == pytest.approx(
        sum(each[arm]["usd"] for each in found["questions"] for arm in ("vote", "council"))
    )
    assert found["proves"] == ""
    assert found["notes"] == []


def test_all_arms_read_the_same_material_and_no_model_sees_a_label(
    home: Path, tmp_path: Path, fake: FakeGemini, quick: dict[str, str]
) -> None:
    folder = ask_about(tmp_path / "golden", 1)
    fake.reply = answers
    evaluated(home, folder, env=quick)
    assert len({request.texts[0] for request in fake.requests}) == 1
    assert "The disk holds 40 GB." in fake.requests[0].texts[0]
    assert any(is_ballot(request) for request in fake.requests)
    everything = json.dumps([request.body for request in fake.requests])
    assert "question-0" not in everything
    assert '"answer": "A"' not in json.dumps([request.texts for request in fake.requests if is_ballot(request)])


def test_a_limit_of_tokens_is_never_crossed_and_a_higher_one_goes_on(
    home: Path, tmp_path: Path, fake: FakeGemini, quick: dict[str, str]
) -> None:
    folder = ask_about(tmp_path / "golden", 4)
    env = {**quick, "COUNCIL_MAX_PARALLEL_RUNS": "1"}
    fake.reply = lambda request: answers(request, prompt=1000, output=20)
    stopped = evaluated(home, folder, "--max-tokens", "50000", code=7, env=env)
    assert stopped["stopped"]["why"] == "budget"
    assert "the evaluation's budget of 50000 tokens does not allow another call" in stopped["stopped"]["message"]
    assert 0 < stopped["answered"] < 4
    assert stopped["spent"]["tokens"] == 1020 * len(fake.requests) <= 50_000
    before = len(fake.requests)
    found = evaluated(home, folder, "--max-tokens", "5000000", "--resume", env=env)
    assert (found["answered"], found["stopped"]["why"]) == (4, "")
    assert len(fake.requests) == found["spent"]["calls"] == 4 * 14
    assert before < 4 * 14


def test_a_day_that_is_spent_stops_an_evaluation_too(
    home: Path, tmp_path: Path, fake: FakeGemini, quick: dict[str, str]
) -> None:
    folder = ask_about(tmp_path / "golden", 3)
    fake.reply = answers
    env = {**quick, "COUNCIL_DAY_MAX_CALLS": "10"}
    found = evaluated(home, folder, code=7, env=env)
    assert found["stopped"]["why"] == "budget"
    assert len(fake.requests) <= 10


def test_what_an_evaluation_spends_is_spent_for_a_daemon_that_runs_beside_it(
    home: Path, tmp_path: Path, fake: FakeGemini, quick: dict[str, str]
) -> None:
    folder = ask_about(tmp_path / "golden", 1)
    fake.reply = answers
    env = {**quick, "COUNCIL_DAY_MAX_CALLS": "20"}
    with Daemon(home, env=env) as daemon:
        drop_command(home, command(rounds=1))
        assert daemon.wait("run_ended")["calls"] == 4
        assert evaluated(home, folder, env=env)["spent"]["calls"] == 14
        drop_command(home, command("Another question.", rounds=1))
        assert daemon.wait("run_waiting")["reason"] == "budget"
    assert len(fake.requests) <= 20


# ── stopping and going on ────────────────────────────────────────────────────────────────────────────────────────────


class Under:
    """`council eval` under way in a process of its own."""

    def __init__(self, home: Path, folder: Path, env: dict[str, str]) -> None:
        self.process = warm.start("council", ("eval", str(folder), *OPTIONS, "--json"), cwd=home, env=env)

    def end(self, number: int) -> tuple[int, str, str]:
        self.process.send_signal(number)
        stdout, stderr = self.process.communicate(timeout=60)
        return self.process.returncode, stdout, stderr


def recorded_answers(folder: Path) -> Counter[str]:
    """How many answers of a model each question has on the disk, ballots and the council's own."""
    place = results_of(folder)
    found = Counter[str]()
    for step in Ledger(Reader(place)).journal(place.name).steps():
        found[step.name.split("/")[0][-1]] += "/ballot/" in step.name
    for run_id in run_ids(place / "home"):
        header = journal(place / "home", run_id)[0]
        asked = re.search(r"Is disk number (\d+)", header["command"]["task_description"])
        assert asked is not None
        names = steps(place / "home", run_id)
        found[asked[1]] += sum(name == "synthesis" or name.startswith("round/") for name in names)
    return found


def test_a_killed_evaluation_goes_on_and_asks_nothing_again_that_was_answered(
    home: Path, tmp_path: Path, fake: FakeGemini, quick: dict[str, str]
) -> None:
    folder = ask_about(tmp_path / "golden", 6)
    held = threading.Event()
    count = Counter[str]()
    lock = threading.Lock()

    def reply(request: RecordedRequest) -> FakeReply:
        with lock:
            count["all"] += 1
            late = count["all"] > 40
        if late:  # the kill meets calls in flight, of both kinds by then
            held.wait(30)
        return answers(request)

    fake.reply = reply
    under = Under(home, folder, {**quick, "COUNCIL_MAX_PARALLEL_RUNS": "2"})
    fake.wait_for_requests(42, timeout_s=60)
    assert under.end(signal.SIGKILL)[0] == -signal.SIGKILL
    held.set()
    known = recorded_answers(folder)
    assert sum(known.values()) >= 30
    before = len(fake.requests)
    fake.reply = answers
    found = evaluated(home, folder, "--resume", env=quick)
    assert found["answered"] == 6
    after = recorded_answers(folder)
    asked = Counter(subject(request) for request in fake.requests[before:])
    assert asked == after - known
    assert len(receipts(results_of(folder) / "home")) == 6
    whole = [(each["single"]["right"], each["vote"]["right"], each["council"]["right"]) for each in found["questions"]]
    assert whole == [(True, True, True)] * 6


def test_figures_rest_on_no_answer_that_never_got_to_the_disk(home: Path, tmp_path: Path) -> None:
    folder = ask_about(tmp_path / "golden", 1)
    env = {"COUNCIL_MODEL": script(home, [])}
    faulty = faulty_environment(**env, COUNCIL_TEST_FAULT="fail-at:1-2:EIO: done question-0/ballot/7 ")
    refused = run_cli("eval", str(folder), *OPTIONS, "--json", cwd=home, env=faulty, module=FAULTY)
    assert refused.returncode == 1, refused.stderr
    told = json.loads(refused.stdout)
    assert told["answered"] == 0
    said = f"the database {results_of(folder).name}/council.db failed: Input/output error."
    assert said in told["stopped"]["message"]
    assert evaluated(home, folder, "--resume", env=environment(**env))["answered"] == 1


def test_ctrl_c_leaves_what_there_is(home: Path, tmp_path: Path, fake: FakeGemini, quick: dict[str, str]) -> None:
    folder = ask_about(tmp_path / "golden", 3)
    held = threading.Event()
    done = Counter[str]()
    lock = threading.Lock()

    def reply(request: RecordedRequest) -> FakeReply:
        with lock:
            done[subject(request)] += 1
            beyond = len(done) > 1
        if beyond and is_ballot(request):
            held.wait(30)
        return answers(request)

    fake.reply = reply
    under = Under(home, folder, {**quick, "COUNCIL_MAX_PARALLEL_RUNS": "1"})
    wait_until(lambda: len(done) > 1 and sum(done.values()) > 14 + 7, "the second question's ballots")
    code, stdout, stderr = under.end(signal.SIGINT)
    held.set()
    assert code == 130, stderr
    found = json.loads(stdout)
    assert (found["answered"], found["stopped"]["why"]) == (1, "interrupted")
    assert found["questions"][0]["vote"]["right"] is True
    fake.reply = answers
    assert evaluated(home, folder, "--resume", env=quick)["answered"] == 3


def test_a_provider_in_trouble_stops_it_and_nothing_counts_as_wrong(
    home: Path, tmp_path: Path, fake: FakeGemini, quick: dict[str, str]
) -> None:
    folder = ask_about(tmp_path / "golden", 2)
    env = {**quick, "COUNCIL_MAX_PARALLEL_RUNS": "1"}
    fake.reply = lambda request: error(500) if is_ballot(request) else answers(request)
    stopped = evaluated(home, folder, code=1, env=env)
    assert (stopped["answered"], stopped["stopped"]["why"]) == (0, "failed")
    assert "500" in stopped["stopped"]["message"]
    fake.reply = lambda request: error(400, "API_KEY_INVALID", message="API key not valid")
    stopped = evaluated(home, folder, "--resume", code=1, env=env)
    assert "key" in stopped["stopped"]["message"]
    fake.reply = answers
    found = evaluated(home, folder, "--resume", env=env)
    assert (found["answered"], found["figures"]["arms"]["council"]["accuracy"]["value"]) == (2, 1.0)


def test_a_council_that_fails_is_drawn_again_on_resume(
    home: Path, tmp_path: Path, fake: FakeGemini, quick: dict[str, str]
) -> None:
    folder = ask_about(tmp_path / "golden", 1)
    fake.reply = lambda request: error(500)
    stopped = evaluated(home, folder, code=1, env=quick)
    assert "council_silent" in stopped["stopped"]["message"]
    fake.reply = answers
    assert evaluated(home, folder, "--resume", env=quick)["answered"] == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda folder: ("--protocol", "triad"), "protocol was independent and is triad"),
        (lambda folder: (folder / "docs" / "disk.md").write_text("It holds 1 GB.\n") and (), "docs/disk.md changed"),
        (
            lambda folder: (
                (folder / "questions.jsonl").write_text(
                    (folder / "questions.jsonl").read_text().replace("large", "big")
                )
                and ()
            ),
            "question-0 had other content when answered",
        ),
    ],
)
def test_an_evaluation_of_something_else_does_not_go_on(
    home: Path, tmp_path: Path, change: Callable[[Path], tuple[str, ...]], told: str
) -> None:
    folder = ask_about(tmp_path / "golden", 1)
    model = script(home, opinions(ballots="A", first="A", later="A", decision="A"))
    evaluated(home, folder, "--model", model)
    options = change(folder) or ()
    refused = run_cli("eval", str(folder), *OPTIONS, "--model", model, "--resume", *options, cwd=home)
    assert refused.returncode == 1
    assert "error (evaluation_changed)" in refused.stderr
    assert told in refused.stderr


# ── input ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_mistakes_in_questions_are_told_before_anything_is_asked(home: Path, tmp_path: Path) -> None:
    folder = ask_about(tmp_path / "golden", 1)
    with (folder / "questions.jsonl").open("a") as stream:
        stream.write('{"id": "second", "question": "Which?", "accept": ["x"], "documents": ["docs/none.md"]}\n{"id"\n')
    done = run_cli("eval", str(folder), "--model", "scripted:none.yaml", cwd=home)
    assert done.returncode == 2
    assert "error (questions_invalid): 2 problems:" in done.stderr
    assert "questions.jsonl: line 2 (second): `documents[0]` is 'docs/none.md'" in done.stderr
    assert "questions.jsonl: line 3, column 6: not JSON" in done.stderr
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (("--model", "offline"), 2, "answers no question"),
        (("--split", "dev"), 2, "the splits are: test"),
        (("--resume",), 2, "has no evaluation to continue"),
        (("--output", "nowhere/report.md"), 2, "there is no folder nowhere"),
        (("-o", "nowhere/report.md"), 2, "there is no folder nowhere"),
        (("--out", "."), 2, "is a folder"),
        (("--model", "scripted:none.yaml"), 3, "the script cannot be read"),
        (("--max-usd", "1", "--model", "gemini:unheard-of"), 3, "the price of gemini:unheard-of is not known"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_with_the_way_out(
    home: Path, tmp_path: Path, options: tuple[str, ...], code: int, told: str
) -> None:
    folder = ask_about(tmp_path / "golden", 1)
    done = run_cli("eval", str(folder), *options, cwd=home, env=environment(GEMINI_API_KEY="test-key-0123456789abcdef"))
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "  fix: " in done.stderr
    assert not list(folder.glob("results/2*"))


def test_the_example_is_made_once_and_can_be_asked(home: Path) -> None:
    made = run_cli("eval", "--init", "golden", cwd=home)
    assert made.returncode == 0, made.stderr
    assert run_cli("eval", "--init", "golden", cwd=home).returncode == 2
    (home / "golden" / "docs" / "situation.md").stat()
    model = script(home, opinions(ballots="A", first="A", later="A", decision="A"))
    found = evaluated(home, home / "golden", "--model", model, "--limit", "3", "--seed", "4")
    assert found["asked"] == found["answered"] == 3
    again = evaluated(home, home / "golden", "--model", model, "--limit", "3", "--seed", "4")
    assert [each["id"] for each in found["questions"]] == [each["id"] for each in again["questions"]]
    assert os.path.exists(home / "golden" / "results" / ".gitignore")


# ── on a cassette ────────────────────────────────────────────────────────────────────────────────────────────────────


def disagreeing(request: RecordedRequest) -> FakeReply:
    """Members and ballots answer by what they read, some of them in a form that has to be asked for again."""
    words = "".join(request.all_texts)
    letter = "A" if sum(words.encode()) % 3 else "B"
    if "cannot be used as it stands" in request.texts[-1] or "what its decision answers" in request.texts[-1]:
        return text(says(letter))
    if "The rounds are over" in request.texts[-1]:
        return text(decides(f"Perhaps {letter}" if "number 1 " in words else letter))
    if "You answer one question" in request.system:
        return text(says("neither" if "number 2 " in words else letter))
    return text(stance(letter))


def test_an_evaluation_on_the_cassette_of_another_gives_the_same_figures_and_asks_nobody(
    home: Path, tmp_path: Path, fake: FakeGemini, quick: dict[str, str]
) -> None:
    folder = ask_about(tmp_path / "golden", 4)
    fake.reply = disagreeing
    tape = home / "golden.cassette.jsonl"
    live = evaluated(home, folder, "--record", str(tape), env=quick)
    asked = len(fake.requests)
    head = lines(tape)[0]
    assert (head["cassette"], len(head["runs"]), len({run["run_secret"] for run in head["runs"]})) == (5, 4, 4)
    again = evaluated(home, ask_about(tmp_path / "other", 4), "--model", f"cassette:{tape.name}", env=environment())
    assert len(fake.requests) == asked
    for name in ("single", "vote", "council"):
        assert again["figures"]["arms"][name]["accuracy"] == live["figures"]["arms"][name]["accuracy"]
        assert again["figures"]["arms"][name]["tokens"] == live["figures"]["arms"][name]["tokens"]
    assert again["figures"]["council_less_vote"] == live["figures"]["council_less_vote"]
    assert again["proves"] == "arithmetic only"
    words = run_cli("eval", str(tmp_path / "other"), *OPTIONS, "--resume", "--model", f"cassette:{tape.name}", cwd=home)
    assert "arithmetic" in words.stdout


def test_an_evaluation_with_a_guardrail_model_in_a_home_with_roots_of_its_own_is_the_same_on_its_cassette(
    home: Path, tmp_path: Path, fake: FakeGemini, quick: dict[str, str]
) -> None:
    (home / "guard.yaml").write_text(yaml.safe_dump({"default": {"text": '{"outcome": "warn", "law": 2}'}}))
    with (home / "council.toml").open("a") as settings:
        settings.write('read_roots = ["docs/**"]\nguardrail_model = "scripted:guard.yaml"\n')
    fake.reply = disagreeing
    live = evaluated(home, ask_about(tmp_path / "golden", 2), "--record", str(home / "x.cassette.jsonl"), env=quick)
    assert any("40 GB" in "".join(request.all_texts) for request in fake.requests)
    head, *calls = lines(home / "x.cassette.jsonl")
    assert (head["cassette"], [call.get("role") for call in calls].count("GUARDIAN")) == (5, 4)
    asked = len(fake.requests)
    again = evaluated(home, ask_about(tmp_path / "other", 2), "--model", "cassette:x.cassette.jsonl", env=environment())
    assert len(fake.requests) == asked
    for name in ("single", "vote", "council"):
        assert again["figures"]["arms"][name]["accuracy"] == live["figures"]["arms"][name]["accuracy"]


def test_a_key_that_a_model_repeats_is_in_no_file_of_an_evaluation(
    home: Path, tmp_path: Path, fake: FakeGemini, quick: dict[str, str]
) -> None:
    key = quick["GEMINI_API_KEY"]
    said = json.dumps({"reasoning": f"The key is {key}.", "answer": "A", "confidence": 0.8})
    fake.reply = lambda request: text(said) if "You answer one question" in request.system else disagreeing(request)
    folder = ask_about(tmp_path / "golden", 2)
    evaluated(home, folder, "--record", str(home / "x.cassette.jsonl"), env=quick)
    traffic = (results_of(folder) / "traffic.jsonl").read_text()
    assert "The key is [secret]." in traffic
    written = [path for root in (home, tmp_path) for path in root.rglob("*") if path.is_file()]
    assert [str(path) for path in written if key.encode() in path.read_bytes()] == []


def test_on_a_cassette_other_labels_turn_the_verdict_round(home: Path, tmp_path: Path) -> None:
    folder = ask_about(tmp_path / "golden", 20)
    model = script(home, opinions(ballots="A", first="A", later="B: it is too small", decision="B"))
    found = evaluated(home, folder, "--model", model)
    assert found["verdict"]["word"] == "use_the_vote"
    evaluated(home, folder, "--model", model, "--resume", "--record", str(home / "x.cassette.jsonl"))
    turned = ask_about(tmp_path / "turned", 20, right="B")
    again = evaluated(home, turned, "--model", "cassette:x.cassette.jsonl")
    assert again["verdict"]["word"] == "use_the_council"
    assert again["figures"]["council_less_vote"] == {"value": 1.0, "low": 1.0, "high": 1.0}


def test_a_question_that_was_not_recorded_is_missed_loudly_and_a_cassette_is_never_written_over(
    home: Path, tmp_path: Path
) -> None:
    folder = ask_about(tmp_path / "golden", 2)
    model = script(home, opinions(ballots="A", first="A", later="A", decision="A"))
    tape = home / "x.cassette.jsonl"
    evaluated(home, folder, "--model", model, "--record", str(tape))
    before = tape.read_bytes()
    refused = run_cli("eval", str(folder), "--resume", "--model", model, "--record", str(tape), cwd=home)
    assert (refused.returncode, "already exists" in refused.stderr) == (2, True)
    assert tape.read_bytes() == before
    missed = evaluated(home, ask_about(tmp_path / "more", 3), "--model", "cassette:x.cassette.jsonl", code=1)
    assert missed["stopped"]["why"] == "failed"
    assert "has no reply to what" in missed["stopped"]["message"]
