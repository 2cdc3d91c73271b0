"""A run's whole model traffic as a file that answers in the model's place, through real processes."""

from __future__ import annotations

import json
import re
import shutil
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from council.agents.session_file import RememberedTask, Session, encode_session
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, slow, text
from tests.harness import Daemon, command, drop_command, environment, front_matter, make_home, receipts, run_cli

KEY = "test-key-0123456789abcdef"
LIVE = "gemini:gemini-2.5-flash"
TAPE = "x.cassette.jsonl"
STANCE = '```council\n{"position": "Wait.", "confidence": 0.5, "evidence": ["E9"], "would_change": "a test"}\n```'
RECORD = (
    '{"answer": "Wait until Monday.", "claims": [{"text": "The disk is full.", "evidence": ["E1"]}], "confidence": 0.7}'
)


def council_says(request: RecordedRequest) -> FakeReply:
    """A file is asked for, a stance names evidence that does not exist, one agent fails, the decision is typed."""
    if "The rounds are over" in request.texts[-1]:
        return text(RECORD)
    if "cannot be used as it stands" in request.texts[-1]:
        return text(STANCE.replace("E9", "E1"))
    if "You are STRATEGIST" in request.system:
        return text("I want the figures.\n\n[ORCHESTRATOR_REQUEST: READ_FILE(b.md)]")
    if "You are AUDITOR" in request.system and "round 2" in request.texts[-1].lower():
        return error(500, "INTERNAL")
    return text(f"We had better wait.\n\n{STANCE}")


def prepared(folder: Path) -> Path:
    home = make_home(folder, settings="settle_s = 0.5\nscan_interval_s = 0.5\n")
    (home / "a.md").write_text("The disk is full.\n")
    (home / "b.md").write_text("It grows by 40 GB a month.\n")
    return home


def run_once(home: Path, env: dict[str, str], *arguments: str, code: int = 0, **keys: Any) -> str:
    """Runs one command over `a.md` to its end; its page, which lies beside that of an earlier run where it failed."""
    known = {receipt["run_id"] for receipt in receipts(home)}
    drop_command(home, command(**({"input_artifacts": ["a.md"], "rounds": 2} | keys)))
    done = run_cli("run", "--once", *arguments, cwd=home, env=env)
    assert done.returncode == code, done.stderr
    [page] = [each["artifact"]["path"] for each in receipts(home) if each["run_id"] not in known]
    return (home / page).read_text()


def recorded(home: Path, name: str = TAPE) -> Path:
    """The last run's cassette."""
    done = run_cli("cassette", "last", "-o", name, cwd=home)
    assert done.returncode == 0, done.stderr
    return home / name


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def body(page: str) -> str:
    """What a page says but for its front matter, and for whose page stood at its place before."""
    return re.sub(r" It replaces the page of run [^ ]+\.", "", page.split("---\n", 2)[2])


@pytest.fixture(scope="module")
def taped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[RecordedRequest]]:
    """A home that had one run, with its cassette, and what its provider was asked."""
    home = prepared(tmp_path_factory.mktemp("taped") / "home")
    with FakeGemini() as provider:
        provider.reply = council_says
        keys = {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": provider.url, "COUNCIL_MODEL_ATTEMPTS": "1"}
        run_once(home, environment(**keys), code=7)
    recorded(home)
    return home, provider.requests


@pytest.fixture
def live(tmp_path: Path, taped: tuple[Path, list[RecordedRequest]]) -> Path:
    """A copy of that home."""
    return shutil.copytree(taped[0], tmp_path / "live")


# ── what it holds, and what a run on it says ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("protocol", ["triad", "independent"])
def test_the_same_command_on_a_cassette_gives_the_same_page_and_asks_nobody(
    tmp_path: Path, fake: FakeGemini, env: dict[str, str], protocol: str
) -> None:
    fake.reply = council_says
    config = {"max_rounds": 2, "protocol": protocol}
    home, elsewhere = prepared(tmp_path / "live"), prepared(tmp_path / "elsewhere")
    page = run_once(home, {**env, "COUNCIL_MODEL_ATTEMPTS": "1"}, code=7, config=config)
    cassette = recorded(home)
    asked = len(fake.requests)
    shutil.copy(cassette, elsewhere)
    again = run_once(elsewhere, environment(), "--model", f"cassette:{cassette.name}", code=7, config=config)
    assert len(fake.requests) == asked == receipts(home)[0]["calls"]
    assert LIVE in body(page)
    assert body(again) == body(page).replace(f"({LIVE})", f"(cassette:{LIVE})")
    one, other = front_matter(page), front_matter(again)
    changed = {key for key in one if one[key] != other.get(key)} - {"id", "created", "finished"}
    assert changed == {"model", "cost"}
    assert (other["model"], other["cost"]) == (f"cassette:{LIVE}", "none")
    assert receipts(elsewhere)[0]["details"]["mode"] == "replay"
    assert [receipt["tokens"] for receipt in receipts(elsewhere)] == [receipt["tokens"] for receipt in receipts(home)]
    assert [receipt["cost_usd"] for receipt in receipts(elsewhere)] == [0.0]


def test_a_model_that_stood_in_and_thoughts_that_were_taken_off_are_told_again(
    tmp_path: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: (
        error(503, message="overloaded")
        if "You are AUDITOR" in request.system and request.model == "gemini-2.5-flash"
        else text("<think>Which one?</think>Use the disk.")
    )
    home = prepared(tmp_path / "live")
    page = run_once(
        home, {**env, "COUNCIL_MODEL_ATTEMPTS": "1", "COUNCIL_FALLBACK_MODELS": "gemini:gemini-2.5-pro"}, code=7
    )
    tape = recorded(home)
    keys = {"session": "again", "output_artifact_path": "artifacts/again.md"}
    run_once(home, environment(), "--model", f"cassette:{tape.name}", code=7, **keys)
    again = (home / "artifacts" / "again.md").read_text()
    assert (
        "AUDITOR in rounds 1 and 2: gemini:gemini-2.5-pro answered instead of gemini:gemini-2.5-flash (overload)"
        in page
    )
    assert "Which one?" not in page
    assert (front_matter(again)["status"], front_matter(again)["cost"]) == ("degraded", "none")
    assert body(again).replace("cassette:gemini:", "gemini:") == body(page)
    runs = [receipt["run_id"] for receipt in receipts(home)]
    assert "The runs do not differ" in run_cli("diff", *runs, cwd=home).stdout


def test_it_holds_every_request_as_it_was_sent(taped: tuple[Path, list[RecordedRequest]]) -> None:
    home, requests = taped
    head, *calls = lines_of(home / TAPE)
    sent = sorted((request.system, *request.all_texts) for request in requests)
    assert sorted((call["system"], *(message["text"] for message in call["messages"])) for call in calls) == sent
    assert (head["cassette"], head["model"], head["calls"]) == (5, LIVE, len(calls))
    assert [run["status"] for run in head["runs"]] == ["degraded"]
    assert [call["step"] for call in calls if "failed" in call] == ["round/2/AUDITOR"]
    turn = next(call for call in calls if call["step"] == "round/1/STRATEGIST")
    assert (turn["role"], turn["purpose"], turn["round"]) == ("STRATEGIST", "turn", 1)
    assert turn["usage"]["input_tokens"] > 0
    assert any("/repair/" in call["step"] for call in calls)


def test_a_run_and_its_replay_do_not_part(live: Path) -> None:
    run_once(live, environment(), "--model", f"cassette:{TAPE}", code=7, session="b")
    first, second = (receipt["run_id"] for receipt in receipts(live))
    found = json.loads(run_cli("diff", first, second, "--json", cwd=live).stdout)
    assert found["kind"] == "same"
    assert found["same_steps"] > 8


def test_a_cassette_of_a_replay_says_the_same_as_the_first(live: Path) -> None:
    first = lines_of(live / TAPE)
    run_once(live, environment(), "--model", f"cassette:{TAPE}", code=7, session="b")
    second = lines_of(recorded(live, "y.cassette.jsonl"))
    assert [call["messages"] for call in second[1:]] == [call["messages"] for call in first[1:]]
    page = run_once(live, environment(), "--model", "cassette:y.cassette.jsonl", code=7, session="c")
    assert front_matter(page)["model"] == f"cassette:{LIVE}"


def test_a_run_that_the_provider_ended_ends_the_same_way_again(
    tmp_path: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    def reply(request: RecordedRequest) -> FakeReply:
        return error(403, "PERMISSION_DENIED") if "You are AUDITOR" in request.system else text("So be it.")

    fake.reply = reply
    home = prepared(tmp_path / "live")
    run_once(home, env, code=1)
    assert lines_of(recorded(home))[-1]["failed"]["kind"] == "auth"
    run_once(home, environment(), "--model", "cassette:x.cassette.jsonl", code=1, session="b")
    first, second = receipts(home)
    assert first["error"]["code"] == "model_auth"
    assert second["error"] == first["error"]


def test_a_run_that_was_killed_is_on_its_cassette_whole_and_a_killed_replay_goes_on(
    tmp_path: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: slow(60) if "You are AUDITOR" in request.system else text("So be it.")
    home = prepared(tmp_path / "live")
    drop_command(home, command(rounds=1))
    with Daemon(home, env=env) as daemon:
        daemon.wait("turn_started", role="AUDITOR")
        daemon.kill()
    fake.reply = lambda request: text("So be it.")
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    calls = lines_of(recorded(home))[1:]
    assert [call["step"] for call in calls] == [f"round/1/{r}" for r in ("COORDINATOR", "STRATEGIST", "AUDITOR")] + [
        "synthesis"
    ]
    drop_command(home, command(rounds=1, session="b"))
    with Daemon(home, "--model", "cassette:x.cassette.jsonl") as daemon:
        daemon.wait("turn_ended")
        daemon.signal(signal.SIGKILL)
        daemon.process.wait()
    assert run_cli("run", "--once", "--model", "cassette:x.cassette.jsonl", cwd=home).returncode == 0
    assert [receipt["status"] for receipt in receipts(home)] == ["succeeded", "succeeded"]


def test_a_summary_of_older_tasks_is_answered_too_though_its_prompt_is_not_kept(
    tmp_path: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    home = prepared(tmp_path / "live")
    for role in ("COORDINATOR", "STRATEGIST", "AUDITOR"):
        tasks = tuple(
            RememberedTask(f"20260101-0000{n:02}-aaaaaaaa", f"Engine {n}", "succeeded", "2026-01-01T00:00:00Z", "No.")
            for n in range(10)
        )
        (home / "session_states" / f"{role.lower()}_session.json").write_bytes(
            encode_session(Session(role, tasks=tasks))
        )
    shutil.copytree(home, tmp_path / "elsewhere")
    fake.reply = lambda request: text("The seventh was chosen.")
    page = run_once(home, env, rounds=1)
    done = run_cli("cassette", "-o", str(tmp_path / "elsewhere" / "x.cassette.jsonl"), cwd=home)
    assert "for memory/summary only the reply is kept" in done.stderr
    asked = len(fake.requests)
    again = run_once(tmp_path / "elsewhere", environment(), "--model", "cassette:x.cassette.jsonl", rounds=1)
    assert body(again) == body(page).replace(LIVE, f"cassette:{LIVE}")
    assert (len(fake.requests), receipts(tmp_path / "elsewhere")[0]["calls"]) == (asked, 5)
    memory = json.loads((tmp_path / "elsewhere" / "session_states" / "auditor_session.json").read_bytes())
    assert memory["summary"]["text"] == "The seventh was chosen."


@pytest.mark.parametrize("config", [{"max_rounds": 2}, {}], ids=["rounds named", "rounds unnamed"])
def test_an_offline_run_stays_an_extract_on_its_cassette(tmp_path: Path, config: dict[str, int]) -> None:
    home = prepared(tmp_path / "home")
    page = run_once(home, environment(), "--model", "offline", session="a", config=config)
    again = run_once(home, environment(), "--model", f"cassette:{recorded(home).name}", session="b", config=config)
    assert body(again) == body(page)
    assert "## Extract" in again
    assert "no language model took part" in again
    assert receipts(home)[-1]["details"]["mode"] == "replay"


# ── a miss ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_miss_ends_the_run_and_names_the_turn_and_the_first_difference(live: Path) -> None:
    (live / "b.md").write_text("It grows by 50 GB a month.\n")
    drop_command(live, command(input_artifacts=["a.md"], rounds=2, session="b"))
    done = run_cli("run", "--once", "--model", f"cassette:{TAPE}", "--log-format", "human", cwd=live)
    assert done.returncode == 1
    missed = receipts(live)[1]
    assert (missed["status"], missed["error"]["code"]) == ("failed", "replay_miss")
    page = (live / missed["artifact"]["path"]).read_text()
    assert f"cassette:{LIVE} has no reply to what AUDITOR, round 1 (turn) is asked" in page
    assert "differs from it in message 2 (user)" in page
    assert "-   1| It grows by 40 GB a month.\n" in done.stderr
    assert "+   1| It grows by 50 GB a month.\n" in done.stderr
    logged = run_cli("logs", "--run", "last", cwd=live).stdout
    assert "(AUDITOR, round 1)" in logged
    assert "+++ asked now" in logged


def test_another_task_finds_nothing_and_invents_nothing(live: Path) -> None:
    drop_command(live, command("Something else.", input_artifacts=["a.md"], rounds=2, session="b"))
    assert run_cli("run", "--once", "--model", f"cassette:{TAPE}", cwd=live).returncode == 1
    said = receipts(live)[1]["error"]["message"]
    assert "recorded `Choose a storage engine for the archive.`, asked now `Something else.`" in said
    assert "rounds" not in receipts(live)[1]


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_cassette_is_its_owners_alone_says_what_it_holds_and_replaces_nothing(live: Path) -> None:
    done = run_cli("cassette", "-o", "tape.jsonl", cwd=live)
    assert re.search(r"tape\.jsonl holds the \d+ calls that run \S+ made to gemini:gemini-2\.5-flash\.", done.stdout)
    assert "it contains every full prompt" in done.stderr
    assert "agents of this home can read this file" in done.stderr
    assert stat.S_IMODE((live / "tape.jsonl").stat().st_mode) == 0o600
    before = (live / "tape.jsonl").read_bytes()
    again = run_cli("cassette", "-o", "tape.jsonl", cwd=live)
    assert (again.returncode, (live / "tape.jsonl").read_bytes()) == (2, before)
    assert "already exists" in again.stderr
    told = json.loads(run_cli("cassette", "last", "--json", cwd=live).stdout)
    assert told["file"] == f"{told['run_id']}.cassette.jsonl"
    assert (live / told["file"]).read_bytes() == before


def test_a_cassette_goes_to_standard_output_alone(live: Path) -> None:
    piped = run_cli("cassette", "-o", "-", cwd=live)
    assert run_cli("cassette", "-o", "kept.cassette.jsonl", cwd=live).returncode == 0
    assert piped.stdout == (live / "kept.cassette.jsonl").read_text()
    assert "it contains every full prompt" in piped.stderr
    assert not (live / "-").exists()
    assert run_cli("cassette", "-o", "-", "--json", cwd=live).returncode == 2


def test_a_key_that_stood_in_a_document_does_not_leave_the_home(
    tmp_path: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    home = prepared(tmp_path / "live")
    later = "known-only-later-9876543210"
    (home / "a.md").write_text(f"The key is {KEY}, keep it; so is {later}.\n")
    run_once(home, env, rounds=1)
    assert KEY not in "".join("".join(request.texts) for request in fake.requests)
    done = run_cli("cassette", "-o", "x.cassette.jsonl", cwd=home, env={**env, "OPENAI_API_KEY": later})
    assert "a key was removed from 4 of the calls" in done.stderr
    assert KEY not in (home / "x.cassette.jsonl").read_text()
    assert later not in (home / "x.cassette.jsonl").read_text()
    page = run_once(home, env, "--model", "cassette:x.cassette.jsonl", rounds=1, session="b")
    assert front_matter(page)["status"] == "succeeded"


def test_agents_never_read_a_cassette(tmp_path: Path) -> None:
    home = prepared(tmp_path / "home")
    run_once(home, environment(), "--model", "offline")
    cassette = recorded(home)
    run_once(home, environment(), "--model", "offline", input_artifacts=["a.md", cassette.name], code=7)
    assert "could not be read" in (home / "artifacts" / "out.md").read_text()


@pytest.mark.parametrize(
    ("damage", "line", "said"),
    [
        (lambda data: b"# A page\n", 1, "this is not a cassette"),
        (lambda data: data.replace(b'"cassette":5', b'"cassette":6', 1), 1, "this is not a cassette of this version"),
        (lambda data: data[:-20], 9, "the file was cut off"),
        (lambda data: b"\n".join(data.split(b"\n")[:4]) + b"\n", 4, "the file ends here, after 3 of"),
        (lambda data: data.replace(b'"step"', b'"stop"', 3), 2, "missing required field `step`"),
        (
            lambda data: data.replace(b"We had better wait", b"We had better leap", 1),
            1,
            "its sha256 is not that of the file",
        ),
    ],
    ids=["foreign", "too new", "torn", "cut", "misspelled", "changed"],
)
def test_a_file_that_is_no_whole_cassette_is_refused_by_its_line(live: Path, damage: Any, line: int, said: str) -> None:
    cassette = live / TAPE
    data = cassette.read_bytes()
    count = data.count(b"\n")
    cassette.write_bytes(damage(data))
    done = run_cli("run", "--once", "--model", f"cassette:{cassette.name}", cwd=live)
    assert done.returncode == 3
    assert f"{cassette}: line {count if said.endswith('cut off') else line}: " in done.stderr
    assert said in done.stderr
    checked = run_cli("doctor", "--model", f"cassette:{cassette.name}", cwd=live)
    assert said in checked.stdout


def test_a_run_without_a_call_has_no_cassette(tmp_path: Path) -> None:
    home = prepared(tmp_path / "home")
    run_once(home, environment(), "--model", "offline", input_artifacts=["gone.md"], code=1)
    done = run_cli("cassette", "-o", "x.jsonl", cwd=home)
    assert (done.returncode, (home / "x.jsonl").exists()) == (2, False)
    assert "asked no model" in done.stderr


def test_several_runs_in_one_cassette_each_get_their_own_replies_and_their_own_secret(
    tmp_path: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = council_says
    home, elsewhere = prepared(tmp_path / "live"), prepared(tmp_path / "elsewhere")
    env = {**env, "COUNCIL_MODEL_ATTEMPTS": "1"}
    tasks = {"one": "Choose a storage engine.", "two": "Choose a backup plan."}
    pages = {name: run_once(home, env, code=7, task=task, session=name) for name, task in tasks.items()}
    ids = [receipt["run_id"] for receipt in receipts(home)]
    done = run_cli("cassette", *ids, "-o", "both.cassette.jsonl", cwd=home)
    assert "that 2 runs made to" in done.stdout
    head, *calls = lines_of(home / "both.cassette.jsonl")
    assert (head["cassette"], [run["run_id"] for run in head["runs"]]) == (5, ids)
    asked = len(fake.requests)
    assert len(calls) == asked
    shutil.copy(home / "both.cassette.jsonl", elsewhere)
    for name in ("two", "one"):  # whatever order they come in
        again = run_once(
            elsewhere, environment(), "--model", "cassette:both.cassette.jsonl", code=7, task=tasks[name], session=name
        )
        assert body(again) == body(pages[name]).replace(f"({LIVE})", f"(cassette:{LIVE})")
    assert len(fake.requests) == asked
    page = run_once(elsewhere, environment(), "--model", "cassette:both.cassette.jsonl", code=1, task="Choose a third.")
    assert front_matter(page)["status"] == "failed"
    assert "has no reply to what" in page


# ── second opinions ──────────────────────────────────────────────────────────────────────────────────────────────────


def opined(fake: FakeGemini, env: dict[str, str], opinions: dict[str, str]) -> dict[str, str]:
    """An environment in which a model gives these opinions, by what they are of: an outcome, `fails`, or `babbles`."""

    def reply(request: RecordedRequest) -> FakeReply:
        if "safety minister" not in request.system:
            return council_says(request)
        outcome = opinions["decision" if "the council's decision" in request.texts[-1] else "task"]
        if outcome == "fails":
            return error(503, "overloaded")
        if outcome == "babbles":
            return text("<think>I wonder.</think>Well, the word is hunter2.")
        return text(f'{{"outcome": "{outcome}", "law": 1, "posture": "warn_proceed", "why": "the word is hunter2"}}')

    fake.reply = reply
    return {**env, "COUNCIL_MODEL_ATTEMPTS": "1", "COUNCIL_GUARDRAIL_MODEL": "gemini:gemini-2.5-flash-lite"}


@pytest.mark.parametrize(
    ("task", "decision", "code", "calls"),
    [
        ("warn", "allow", 7, None),
        ("block", "allow", 6, 1),
        ("allow", "block", 6, None),
        ("fails", "babbles", 7, None),
    ],
)
def test_second_opinions_are_given_again_as_they_were(
    tmp_path: Path, fake: FakeGemini, env: dict[str, str], task: str, decision: str, code: int, calls: int | None
) -> None:
    guarded = opined(fake, env, {"task": task, "decision": decision})
    home, elsewhere = prepared(tmp_path / "live"), prepared(tmp_path / "elsewhere")
    page = run_once(home, guarded, code=code)
    tape = recorded(home)
    asked = len(fake.requests)
    head, *held = lines_of(tape)
    assert (head["runs"][0]["opinions"], head["calls"]) == ("gemini:gemini-2.5-flash-lite", asked)
    assert len(held) == (calls or asked)
    assert "hunter2" not in tape.read_text()
    assert (
        "the memory in the prompt has changed"
        not in run_cli("cassette", "last", "-o", "z.cassette.jsonl", cwd=home).stderr
    )
    shutil.copy(tape, elsewhere)
    again = run_once(elsewhere, environment(), "--model", f"cassette:{tape.name}", code=code)
    assert len(fake.requests) == asked
    assert body(again).replace("cassette:gemini:", "gemini:") == body(page)
    assert [receipt["tokens"] for receipt in receipts(elsewhere)] == [receipt["tokens"] for receipt in receipts(home)]
    second = lines_of(recorded(elsewhere, "y.cassette.jsonl"))
    assert [call["text"] for call in second[1:] if "text" in call] == [call["text"] for call in held if "text" in call]
    run_once(home, environment(), "--model", f"cassette:{tape.name}", code=code, session="b")
    first, last = (receipt["run_id"] for receipt in receipts(home))
    assert json.loads(run_cli("diff", first, last, "--json", cwd=home).stdout)["kind"] == "same"


def test_a_budget_that_second_opinions_shared_ends_at_the_same_call(
    tmp_path: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    guarded = opined(fake, env, {"task": "allow", "decision": "allow"})
    home, elsewhere = prepared(tmp_path / "live"), prepared(tmp_path / "elsewhere")
    config = {"max_rounds": 2, "budget": {"max_calls": 4}}
    page = run_once(home, guarded, code=7, config=config)
    shutil.copy(recorded(home), elsewhere)
    again = run_once(elsewhere, environment(), "--model", "cassette:x.cassette.jsonl", code=7, config=config)
    assert "The rounds ended early" in page
    assert body(again).replace("cassette:gemini:", "gemini:") == body(page)


def test_of_several_runs_only_those_that_had_second_opinions_get_them(
    tmp_path: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    guarded = opined(fake, env, {"task": "warn", "decision": "allow"})
    home, elsewhere = prepared(tmp_path / "live"), prepared(tmp_path / "elsewhere")
    tasks = {
        "one": ("Choose a storage engine.", {**env, "COUNCIL_MODEL_ATTEMPTS": "1"}),
        "two": ("Choose a plan.", guarded),
    }
    pages = {name: run_once(home, given, code=7, task=task, session=name) for name, (task, given) in tasks.items()}
    ids = [receipt["run_id"] for receipt in receipts(home)]
    assert run_cli("cassette", *ids, "-o", "both.cassette.jsonl", cwd=home).returncode == 0
    shutil.copy(home / "both.cassette.jsonl", elsewhere)
    assert lines_of(elsewhere / "both.cassette.jsonl")[0]["cassette"] == 5
    model = ("--model", "cassette:both.cassette.jsonl")
    for name, (task, _) in tasks.items():
        again = run_once(elsewhere, environment(), *model, code=7, task=task, session=name)
        assert body(again).replace("cassette:gemini:", "gemini:") == body(pages[name])
        assert ("**Guardrail warns**" in again) == (name == "two")


def test_a_task_of_which_there_is_no_recorded_opinion_is_missed_loudly(
    tmp_path: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    home = prepared(tmp_path / "live")
    run_once(home, opined(fake, env, {"task": "allow", "decision": "allow"}), code=7)
    tape = recorded(home)
    page = run_once(home, environment(), "--model", f"cassette:{tape.name}", code=1, task="Another one.", session="b")
    assert front_matter(page)["status"] == "failed"
    assert "has no reply to what GUARDIAN, round 0 (other) is asked. The nearest recorded prompt, of GUARDIAN" in page
    assert "recorded `Choose a storage engine for the archive.`, asked now `Another one.`" in page
