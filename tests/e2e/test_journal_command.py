"""`council journal`: what a run recorded, for programs and for eyes, of ended runs and of one under way."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from council.engine.records import Record
from tests.e2e.gate import Gate
from tests.fake_gemini import FakeGemini, text
from tests.harness import Daemon, command, drop_command, environment, execute, journal, make_home, run_cli, run_ids

LARGE = "All of it counts. " * 10_000


def printed(home: Path, run: str = "last") -> list[str]:
    done = run_cli("journal", run, "--jsonl", cwd=home)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.removesuffix("\n").split("\n")


def test_each_record_is_a_line_as_it_was_recorded_and_a_large_result_stands_in_it(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: text(LARGE if request.index == 0 else "So be it: évident.")
    drop_command(home, command())
    run_cli("run", "--once", cwd=home, env=env)
    [run_id] = run_ids(home)
    lines = printed(home)
    records = [msgspec.json.decode(line, type=Record) for line in lines]
    assert [msgspec.json.encode(record).decode() for record in records] == lines
    told = [json.loads(line) for line in lines]
    assert (told[0]["t"], told[0]["run_id"], told[-1]["t"]) == ("run", run_id, "commit")
    answers = {record["name"]: record["out"] for record in told if record["t"] == "done"}
    assert answers["round/1/COORDINATOR"]["text"] == LARGE.strip()
    assert printed(home, run_id[:-1]) == lines
    assert journal(home, run_id) == told


def test_the_journal_of_a_run_under_way_ends_at_the_step_that_it_does(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command())
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        fake.wait_for_requests(2)
        last = json.loads(printed(home, run_id)[-1])
        assert (last["t"], last["name"]) == ("begin", "round/1/STRATEGIST")
        gate.open()
        daemon.wait("run_ended")
    last = json.loads(printed(home, run_id)[-1])
    assert (last["t"], last["status"]) == ("commit", "succeeded")


def test_for_eyes_each_record_is_a_row_with_its_time_its_size_and_how_it_begins(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: text("Copper, because of its price.")
    drop_command(home, command("Which metal?"))
    run_cli("run", "--once", cwd=home, env=env)
    lines = printed(home)
    shown = run_cli("journal", cwd=home, env=environment(COLUMNS="90")).stdout.splitlines()
    assert shown[0].split() == ["no", "at", "kind", "name", "bytes", "begins"]
    assert max(map(len, shown)) == 90  # the rule under the headings
    rows = [re.split(r"\s{2,}", row.strip()) for row in shown[2:]]
    assert [row[0] for row in rows] == [str(number) for number in range(len(lines))]
    assert rows[0][2:] == ["run", run_ids(home)[0], f"{len(lines[0]):,}", "Which metal?"]
    [turn] = [row for row in rows if row[2:4] == ["done", "round/1/AUDITOR"]]
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d", turn[1])
    assert turn[5].startswith('{"text":"Copper')
    assert rows[-1][:4] == [str(len(lines) - 1), "–", "commit", "succeeded"]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (
            "UPDATE steps SET out = substr(out, 1, 20) WHERE kind = 'done' AND name = 'round/1/STRATEGIST'",
            "the step round/1/STRATEGIST",
        ),
        ("UPDATE steps SET out = '{}' WHERE kind = 'done' AND name = 'finish'", "the step finish of run"),
        ("UPDATE runs SET receipt = substr(receipt, 1, 20)", "the receipt of run"),
        ("UPDATE steps SET out = CAST(x'ff' AS TEXT) WHERE name = 'round/1/STRATEGIST'", "storage_failed"),
    ],
    ids=["cut off", "of another kind", "the receipt", "no text"],
)
def test_a_damaged_row_is_named_with_the_way_to_mend_it_by_whatever_reads_it(
    tmp_path: Path, damage: str, told: str
) -> None:
    home = make_home(tmp_path / "home", settings='model = "offline"\n')
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home).returncode == 0
    execute(home, damage)
    for words in ("explain", "report", "replay"):
        done = run_cli(words, "last", cwd=home)
        assert done.returncode == 1
        assert told in done.stderr
        assert "`council restore`" in done.stderr
    for words in ("show", "journal"):
        done = run_cli(words, "last", cwd=home)
        assert "Traceback" not in done.stderr


def test_a_run_that_is_not_there_is_an_error_with_a_fix(home: Path) -> None:
    done = run_cli("journal", "20200101", cwd=home)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no run matches '20200101'" in done.stderr


def test_a_journal_is_brought_into_another_home_and_replayed_there(
    home: Path, tmp_path: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: text("Copper.")
    drop_command(home, command())
    run_cli("run", "--once", cwd=home, env=env)
    [run_id] = run_ids(home)
    (tmp_path / "run.jsonl").write_text("\n".join(printed(home)) + "\n")
    other = make_home(tmp_path / "other")
    for given, told in (
        (["last", "--import", str(tmp_path / "run.jsonl")], "--import goes with neither RUN nor --jsonl"),
        (["--import", str(tmp_path / "run.jsonl"), "--jsonl"], "--import goes with neither RUN nor --jsonl"),
        (["--import", "-"], "--import cannot read standard input"),
        (["--import", "nowhere"], "nowhere does not exist"),
    ):
        refused = run_cli("journal", *given, cwd=other)
        assert (refused.returncode, told in refused.stderr) == (2, True), refused.stderr
    brought = run_cli("journal", "--import", str(tmp_path / "run.jsonl"), cwd=other)
    assert (brought.returncode, f"Run {run_id} is imported" in brought.stdout) == (0, True), brought.stderr
    assert run_cli("replay", run_id, cwd=other).stdout == (home / "artifacts" / "out.md").read_text()
    checked = run_cli("replay", run_id, "--check", cwd=other)
    assert (checked.returncode, checked.stdout) == (
        1,
        "artifacts/out.md of this run is not here; only its journal is.\n",
    )
    (other / "artifacts" / "out.md").write_text("A person's own.\n")
    assert run_cli("replay", run_id, "--check", cwd=other).stdout == checked.stdout


def test_a_run_from_elsewhere_does_not_go_on_and_is_no_part_of_this_homes_audit(
    home: Path, tmp_path: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: text("Copper.")
    for number in range(2):
        drop_command(home, command(output_artifact_path=f"artifacts/{number}.md"), f"{number}.json")
    run_cli("run", "--once", cwd=home, env=env)
    run_id = run_ids(home)[-1]
    (tmp_path / "run.jsonl").write_text("\n".join(printed(home, run_id)) + "\n")
    other = make_home(tmp_path / "other")
    drop_command(other, command())
    run_cli("run", "--once", cwd=other, env=env)
    run_cli("journal", "--import", str(tmp_path / "run.jsonl"), cwd=other)
    verified = run_cli("audit", "verify", cwd=other, env=env)
    assert (verified.returncode, "cut off" in verified.stdout) == (0, False), verified.stdout
    for asked in ("retry", "resume"):
        refused = run_cli(asked, run_id, cwd=other, env=env)
        assert (refused.returncode, "imported from another home" in refused.stderr) == (2, True), refused.stderr


def test_a_journal_that_somebody_changed_is_refused_before_it_is_a_run_of_this_home(
    home: Path, tmp_path: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: text("Copper.")
    (home / "needs.md").write_text("The archive grows by 40 GB a month.\n")
    drop_command(home, command(input_artifacts=["needs.md"]))
    run_cli("run", "--once", cwd=home, env=env)
    records = [json.loads(line) for line in printed(home)]
    place = {record.get("name"): number for number, record in enumerate(records) if record["t"] == "done"}
    other = make_home(tmp_path / "other")
    changes: list[tuple[int, str, Any]] = [
        (0, "command", records[0]["command"] | {"config": {"max_rounds": "many"}}),
        (place["input/1"], "out", records[place["input/1"]]["out"] | {"id": "first"}),
        (place["round/1/AUDITOR"], "out", ["not", "an", "answer"]),
        (place["round/1/AUDITOR"], "at", 2**63),
    ]
    for number, key, value in changes:
        changed = [*records[:number], records[number] | {key: value}, *records[number + 1 :]]
        (tmp_path / "run.jsonl").write_text("\n".join(map(json.dumps, changed)) + "\n")
        done = run_cli("journal", "--import", str(tmp_path / "run.jsonl"), cwd=other)
        assert done.returncode == 2, (key, done.stderr)
        assert done.stderr.startswith("error (usage): it is not the journal of a run"), done.stderr
        assert len(done.stderr.splitlines()) == 2
    assert json.loads(run_cli("runs", "--json", cwd=other).stdout)["runs"] == []
