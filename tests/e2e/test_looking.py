"""Looking at a home: its runs, what was refused, a run under way, through the real command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.e2e.gate import Gate
from tests.fake_gemini import FakeGemini
from tests.harness import (
    FAULTY,
    Daemon,
    command,
    drop_command,
    environment,
    faulty_environment,
    ledger,
    on_a_terminal,
    receipts,
    run_cli,
    wait_until,
)

# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_runs_are_listed_newest_first_and_found_by_words_and_lane(quick: Path) -> None:
    assert run_cli("runs", cwd=quick).stdout == "No run yet.\n"
    drop_command(quick, command("Which roof is cheaper?", output_artifact_path="artifacts/roof.md"), "a.json")
    drop_command(
        quick,
        command("Dr. Meyer asks: are the keys o.k.? Really.", output_artifact_path="artifacts/keys.md", session="b"),
        "b.json",
    )
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    assert run_cli("retry", "last", cwd=quick).returncode == 0
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    of_page = {receipt["artifact"]["path"]: receipt["run_id"] for receipt in receipts(quick) if "artifact" in receipt}
    roof, keys = of_page["artifacts/roof.md"], of_page["artifacts/keys.md"]
    header, *lines = run_cli("runs", cwd=quick).stdout.splitlines()
    assert header.split() == ["RUN", "ADMITTED", "STATUS", "COST", "PAGE", "TITLE"]
    assert {line.split()[0] for line in lines} == {roof, keys}  # the retry is no run
    assert any("artifacts/roof.md" in line and "Which roof is cheaper" in line for line in lines)
    on_80_columns = on_a_terminal("runs", cwd=quick, env=environment(COLUMNS="80")).splitlines()
    assert [line[:80] for line in on_80_columns] == on_80_columns
    assert [line[:30] for line in on_80_columns] == [line[:30] for line in (header, *lines)]
    assert any(line.endswith("…") for line in on_80_columns)
    told = json.loads(run_cli("runs", "ROOF", "cheaper", "--json", cwd=quick).stdout)
    assert ([run["artifact"] for run in told["runs"]], told["all"]) == (["artifacts/roof.md"], 1)
    [of_lane] = json.loads(run_cli("runs", "--lane", "b", "--json", cwd=quick).stdout)["runs"]
    assert (of_lane["run_id"], of_lane["title"]) == (keys, "Dr. Meyer asks: are the keys o.k.?")
    assert run_cli("runs", "--since", "2099-01-01", cwd=quick).stdout == "No run matches; `council runs` lists all.\n"
    assert run_cli("forget", "words that nobody said", "--yes", cwd=quick).returncode == 0
    [_, forgetting] = run_cli("runs", "forget", cwd=quick).stdout.splitlines()
    assert forgetting.split()[4] == "none"  # it asked no model
    hours = []
    for zone in ("UTC", "Pacific/Honolulu"):  # there is no summer time in either
        listed = run_cli("runs", "roof", "--lane", "main", cwd=quick, env=environment(COUNCIL_TIMEZONE=zone))
        hours.append(int(listed.stdout.splitlines()[1].split()[2].partition(":")[0]))
    assert hours[1] == (hours[0] - 10) % 24
    wrong = environment(COUNCIL_TIMEZONE="Mars/Olympus")
    assert run_cli("runs", "roof", cwd=quick, env=wrong).returncode == 0  # a look at runs needs no settings
    newest = run_cli("runs", "-n", "1", cwd=quick)
    assert (len(newest.stdout.splitlines()), newest.stderr) == (
        2,
        "note: 2 older runs are not shown; `-n 3` shows all\n",
    )


# ── show ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_show_of_a_run_under_way_prints_its_growing_page(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        (home / "docs").mkdir(exist_ok=True)
        (home / "docs" / "roof.md").write_text("Slate costs 40,000 EUR.\n")
        drop_command(home, command("Which roof is cheaper?", rounds=2, input_artifacts=["docs/roof.md"]))
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        shown = wait_until(
            lambda: "The words of the first speaker." in (told := run_cli("show", cwd=home).stdout) and told,
            "the page grows",
        )
        assert shown.startswith("# Which roof is cheaper?\n")
        assert "\n\nE1: [docs/roof.md], line 1 of 1, sha256 `" in shown
        assert "<!--" not in shown
        drawn = on_a_terminal("show", run_id, cwd=home, env=env | {"TERM": "dumb"})
        assert "\nE1: [docs/roof.md], line 1 of 1, sha256 " in drawn
        wait_until(
            lambda: run_cli("show", run_id, cwd=home).stdout.endswith(
                "\nStatus: running, round 1 of 2, STRATEGIST. The page grows: artifacts/out.md\n"
            ),
            "the speaker is published",
        )
        assert json.loads(run_cli("show", run_id, "--json", cwd=home).stdout)["output"] == "artifacts/out.md"
        [_, listed] = run_cli("runs", cwd=home).stdout.splitlines()
        assert listed.split()[3:5] == ["running", "artifacts/out.md"]
        [told] = json.loads(run_cli("runs", "--json", cwd=home).stdout)["runs"]
        assert (told["status"], told["artifact"]) == ("running", "artifacts/out.md")


def test_show_of_the_last_answer_says_that_a_newer_run_has_not_ended_and_how_to_see_it(
    home: Path, env: dict[str, str], gate: Gate
) -> None:
    drop_command(home, command("Which roof is cheaper?", output_artifact_path="artifacts/roof.md"))
    assert run_cli("run", "--once", "--model", "offline", cwd=home, env=env).returncode == 0
    ended = run_cli("show", cwd=home).stdout
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command("Who keeps the keys?"))
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        daemon.kill()
    assert run_cli("show", cwd=home).stdout == (
        f"{ended}A newer run has not ended: “Who keeps the keys?” (begun, waits for a daemon). "
        f"`council show {run_id}` shows how far it is.\n"
    )


def test_show_of_a_run_that_has_not_begun_says_that_there_is_no_page(quick: Path) -> None:
    drop_command(quick, command("Which roof is cheaper?"))
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    [done] = receipts(quick)
    run_id = done["run_id"]
    assert run_cli("retry", run_id, cwd=quick).returncode == 0
    (quick / "artifacts" / "out.md").unlink()
    told = run_cli("show", run_id, cwd=quick).stdout
    assert told == "# Which roof is cheaper?\n\nStatus: queued. There is no page yet.\n"


def test_show_says_which_documents_changed_since_the_council_read_them(quick: Path) -> None:
    (quick / "docs").mkdir()
    for name in ("same", "other", "gone"):
        (quick / "docs" / f"{name}.md").write_text("Offer A costs 100 EUR.\n")
    drop_command(quick, command(input_artifacts=["docs/same.md", "docs/other.md", "docs/gone.md"]))
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    assert "Changed since" not in run_cli("show", cwd=quick).stdout
    (quick / "docs" / "other.md").write_text("Offer A costs 120 EUR.\n")
    (quick / "docs" / "gone.md").unlink()
    told = run_cli("show", cwd=quick).stdout
    assert told.endswith("Changed since the council read them: docs/other.md, docs/gone.md (it is gone).\n")


def test_on_a_terminal_a_page_is_rendered_and_wrapped(quick: Path) -> None:
    (quick / "script.yaml").write_text(
        f'default: {{text: "| a | b |\\n|---|---|\\n| 1 | **two** |\\n\\n{"word " * 40}"}}\n'
    )
    drop_command(quick, command())
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    shown = on_a_terminal("show", cwd=quick, env=environment(TERM="dumb", COLUMNS="80"))
    assert "**" not in shown
    assert "|---|" not in shown
    assert " 1  two \n" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "| 1 | **two** |" in run_cli("show", cwd=quick).stdout


def test_a_command_that_is_waited_for_on_a_terminal_ends_with_its_rendered_page_and_a_mark_stands_out(
    quick: Path,
) -> None:
    (quick / "docs").mkdir()
    (quick / "docs" / "offer.md").write_text("The Kangoo costs 19,900 EUR.\n")
    said = f"The **Kangoo** costs 21,900 EUR [E1: docs/offer.md:1]. {'word ' * 40}"
    (quick / "script.yaml").write_text(f"default: {{text: '{said}'}}\n")
    asked = ("submit", "--wait", "--task", "Which van?", "docs/offer.md")
    env = environment(TERM="xterm-256color", COLUMNS="80")
    shown = on_a_terminal(*asked, cwd=quick, env=env).partition("[SUCCESS]")[2]
    assert re.search(r"\x1b\[[0-9;]+m\[not in the cited lines\]", shown)
    assert "**" not in shown
    wrapped = [line for line in shown.splitlines() if "word word" in line]
    assert (len(wrapped) > 2, max(map(len, wrapped)) <= 80) == (True, True)


# ── status ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_status_counts_refused_files_and_says_why_the_newest_was(quick: Path) -> None:
    assert json.loads(run_cli("status", "--json", cwd=quick).stdout)["refused"] == {"count": 0, "newest": None}
    drop_command(quick, b"[]", "old.json")
    assert run_cli("run", "--once", cwd=quick).returncode == 2
    drop_command(quick, {"task_description": "x"}, "new.json")
    assert run_cli("run", "--once", cwd=quick).returncode == 2
    told = run_cli("status", cwd=quick).stdout
    assert "refused 2 files in commands/failed/; the newest, new.json: " in told
    assert "`output_artifact_path` is missing\n        fix: add " in told
    newest = json.loads(run_cli("status", "--json", cwd=quick).stdout)["refused"]["newest"]
    assert (newest["file"], newest["fix"]) == ("new.json", 'add "output_artifact_path"')


def test_status_lists_no_control_command_among_the_decisions(quick: Path) -> None:
    drop_command(quick, command())
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    run_id = receipts(quick)[0]["run_id"]
    assert run_cli("retry", run_id, cwd=quick).returncode == 0
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    recent = json.loads(run_cli("status", "--json", cwd=quick).stdout)["recent"]
    assert [run["run_id"] for run in recent] == [run_id]


# ── commands/failed/ ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_note_on_a_file_goes_once_the_file_is_mended_and_put_back(quick: Path) -> None:
    drop_command(quick, {"task_description": "Is <b>this</b> right?", "<i>": 1}, "mine.json")
    drop_command(quick, b"[]", "other.json")
    assert run_cli("run", "--once", cwd=quick).returncode == 2
    failed = quick / "commands" / "failed"
    note = (failed / "mine.json.error.md").read_text()
    assert "`<i>` is not a known key" in note
    (failed / "mine.json").unlink()
    drop_command(quick, command("Is <b>this</b> right?"), "mine.json")
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    assert sorted(path.name for path in failed.iterdir()) == ["other.json", "other.json.error.md"]
    assert json.loads(run_cli("status", "--json", cwd=quick).stdout)["refused"]["count"] == 1


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("COUNCIL_TIMEZONE", "Europe/Nowhere", 'timezone cannot be "Europe/Nowhere", as COUNCIL_TIMEZONE'),
        ("COUNCIL_TIMEZOEN", "Europe/Berlin", "COUNCIL_TIMEZOEN (environment) is not a setting."),
    ],
)
def test_a_wrong_setting_hides_no_run_and_is_warned_of_once(quick: Path, variable: str, value: str, told: str) -> None:
    ended = run_cli("submit", "--wait", "--task", "Which roof is cheaper?", cwd=quick)
    assert ended.returncode == 0
    for command_line in (("runs",), ("runs", "--since", "7d"), ("stats",)):
        seen = run_cli(*command_line, cwd=quick, env={**environment(), variable: value})
        assert (seen.returncode, seen.stderr.count("warning: ")) == (0, 1)
        assert told in seen.stderr
        assert "Times are in the machine's zone." in seen.stderr
        assert seen.stdout == run_cli(*command_line, cwd=quick).stdout


# ── state.json ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_state_file_tells_that_an_artifact_is_produced(quick: Path) -> None:
    drop_command(quick, command())
    fault = faulty_environment(COUNCIL_TEST_FAULT=f"kill-at:1:.staged {quick}/artifacts/out.md")
    assert run_cli("run", "--once", cwd=quick, env=fault, module=FAULTY).returncode == -9
    told = json.loads((quick / ".council" / "state.json").read_bytes())
    assert (told["state"], told["runs"][0]["state"]) == ("PRODUCING_ARTIFACT", "PRODUCING_ARTIFACT")


# ── what was meant ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_beginning_of_several_runs_lists_them_and_no_control_command(quick: Path) -> None:
    for number in (1, 2):
        drop_command(quick, command(f"Question {number}.", output_artifact_path=f"artifacts/{number}.md"), "a.json")
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    first, second = (receipt["run_id"] for receipt in receipts(quick))
    assert run_cli("retry", second, cwd=quick).returncode == 0
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    asked = run_cli("show", "2", cwd=quick)
    assert asked.returncode == 2
    assert asked.stderr.splitlines() == [
        "error (run_not_found): '2' matches 2 runs:",
        f"  {second}  succeeded  Question 2",
        f"  {first}  succeeded  Question 1",
        "  fix: give more of the id; `council runs WORDS` finds a run by its title",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "meant"),
    [
        (("run", "--once", "--model", "gpt-4o"), 3, "(did you mean openai:gpt-4o?)"),
        (("run", "--once", "--model", "gpt-4.1-mini"), 3, "(did you mean openai:gpt-4.1-mini?)"),
        (("run", "--once", "--model", "llama3:8b"), 3, "did you mean ollama:llama3? "),
        (("submit", "What is open?"), 2, "did you mean `council submit --wait --task 'What is open?'`?"),
        (("submit", "What?"), 2, "did you mean `council submit --wait --task 'What?'`?"),
        (("validate", "What is open?"), 2, "did you mean `council submit --wait --task 'What is open?'`?"),
        (("submit", "--wait", "What", "is", "open"), 2, "council submit --wait --task 'What is open'"),
        (("submit", "docs"), 2, '`council submit --task "…" docs/*`'),
        (("validate", "docs"), 2, "docs is a folder."),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(quick: Path, arguments: tuple[str, ...], code: int, meant: str) -> None:
    (quick / "docs").mkdir()
    done = run_cli(*arguments, cwd=quick)
    assert (done.returncode, meant in done.stderr) == (code, True), done.stderr


def test_version_and_help_have_their_usual_spellings(tmp_path: Path) -> None:
    assert run_cli("--version", cwd=tmp_path).stdout == run_cli("version", cwd=tmp_path).stdout
    told = run_cli("-h", cwd=tmp_path).stdout
    assert told == run_cli("--help", cwd=tmp_path).stdout
    assert "Usage: " in run_cli("show", "-h", cwd=tmp_path).stdout
    for developers in ("cassette", "eval", "schema", "completion", "journal"):
        assert told.index("For developers:") < told.index(f"\n  {developers} ")


def test_validate_ends_with_1_when_an_input_is_missing(quick: Path) -> None:
    (quick / "there.md").write_text("Here.")
    (quick / "a.json").write_text(json.dumps(command(input_artifacts=["there.md", "gone.md"])))
    done = run_cli("validate", "a.json", cwd=quick)
    assert done.returncode == 1
    assert done.stdout.endswith(
        "a.json: not ready (deliberate, writes artifacts/out.md): an input cannot be read now\n"
    )
    assert json.loads(run_cli("validate", "a.json", "--json", cwd=quick).stdout)["missing"] == ["gone.md"]
    (quick / "gone.md").write_text("Here, too.")
    assert run_cli("validate", "a.json", cwd=quick).returncode == 0


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_command_may_name_its_title(quick: Path) -> None:
    body = command("Read it all. Then decide.", title="The roof", output_artifact_path="artifacts/")
    drop_command(quick, body)
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    page = (quick / "artifacts" / "the-roof.md").read_text()
    assert "\ntitle: The roof\n" in page
    assert "\n# The roof\n" in page
    assert json.loads(run_cli("runs", "roof", "--json", cwd=quick).stdout)["runs"][0]["title"] == "The roof"


def test_a_title_ends_at_the_question_mark(quick: Path) -> None:
    for number, task in enumerate(
        ("Which roof? Say why: cost counts.", "Look at the offers: which is cheaper? Decide.")
    ):
        drop_command(quick, command(task, output_artifact_path=f"artifacts/{number}.md"), f"{number}.json")
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    assert [receipt["title"] for receipt in receipts(quick)] == ["Which roof?", "Look at the offers: which is cheaper?"]


def test_a_home_says_how_a_council_deliberates_where_its_command_does_not(quick: Path) -> None:
    with (quick / "council.toml").open("a") as settings:
        settings.write('protocol = "independent"\nmax_rounds = 2\nagents = ["COORDINATOR", "AUDITOR"]\n')
    body = command()
    del body["config"]
    drop_command(quick, body, "plain.json")
    drop_command(quick, command(config={"protocol": "triad", "max_rounds": 1, "agents": ["STRATEGIST"]}), "own.json")
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    ran = {
        receipt["command_file"]["name"]: ledger(quick).journal(receipt["run_id"]).header.command["config"]
        for receipt in receipts(quick)
    }
    told = {name: (config["protocol"], config["max_rounds"], config["agents"]) for name, config in ran.items()}
    assert told == {
        "plain.json": ("independent", 2, ["COORDINATOR", "AUDITOR"]),
        "own.json": ("triad", 1, ["STRATEGIST"]),
    }
    drop_command(quick, command(config={"agents": ["STRATEGIST"]}), "alone.json")
    refused = run_cli("validate", "commands/alone.json", cwd=quick)
    assert "does not fit the settings of this home (protocol = independent, max_rounds = 2)" in refused.stdout


def test_the_highest_priority_of_all_that_waits_at_a_start_goes_first(quick: Path) -> None:
    with (quick / "council.toml").open("a") as settings:
        settings.write("max_parallel_runs = 1\n")
    for name, priority in (("a", 0), ("b", 5), ("c", 9)):
        body = command(session=name, priority=priority, output_artifact_path=f"artifacts/{name}.md")
        drop_command(quick, body, f"{name}.json")
    with Daemon(quick, "--once") as daemon:
        daemon.wait("run_ended", count=3)
        started = [event["file"] for event in daemon.all("run_started")]
    assert started == ["c.json", "b.json", "a.json"]


# ── pages ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_long_path_moves_no_other_run_to_the_right(quick: Path) -> None:
    for name, page in (("a", "out"), ("b", "deep" * 40)):
        drop_command(quick, command("Choose.", output_artifact_path=f"artifacts/{page}.md"), f"{name}.json")
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    lines = run_cli("runs", cwd=quick).stdout.splitlines()
    assert sorted(len(line) > 150 for line in lines) == [False, False, True]


def test_a_page_that_replaces_another_names_its_run(quick: Path) -> None:
    drop_command(quick, command())
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    assert "It replaces" not in (quick / "artifacts" / "out.md").read_text()
    drop_command(quick, command("Choose once more."))
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    first, second = (receipt["run_id"] for receipt in receipts(quick))
    page = (quick / "artifacts" / "out.md").read_text()
    assert f"It replaces the page of run {first}." in page
    assert run_cli("replay", second, cwd=quick).stdout == page
    assert "It replaces" not in run_cli("replay", first, cwd=quick).stdout


def test_a_growing_page_that_a_person_wrote_into_shows_the_way_to_the_finished_one_at_both_ends(
    home: Path, fake: FakeGemini, env: dict[str, str], gate: Gate
) -> None:
    page = home / "artifacts" / "out.md"
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command())
        daemon.wait("turn_started", role="STRATEGIST")
        wait_until(lambda: page.exists() and "first speaker" in page.read_text(), "the page grows")
        with page.open("a") as stream:
            stream.write("\nInes: the roof leaks.\n")
        gate.open()
        ended = daemon.wait("run_ended")
    beside = ended["artifact"]
    assert beside == f"artifacts/out.{ended['run_id']}.md"
    text = page.read_text()
    pointer = f"*The run has ended. Its page is [{beside}]({Path(beside).name}).*"
    assert f"\n## Superseded\n\n{pointer}\n\n## Task\n" in text
    assert (text.count("\nstatus: superseded\n"), text.count("in_progress"), text.count(pointer)) == (1, 0, 2)
    assert "<!--" not in text
    assert text.endswith(f"\nInes: the roof leaks.\n\n{pointer}\n")


def test_a_council_without_stances_and_a_damaged_memory_are_told_on_the_page(quick: Path) -> None:
    (quick / "session_states" / "auditor_session.json").write_text("{")
    drop_command(quick, command())
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    page = (quick / "artifacts" / "out.md").read_text()
    assert " No agent stated its position, so none is listed." in page
    assert "> Memory: auditor_session.json was damaged (" in page


def test_a_role_that_is_none_is_told_in_words(quick: Path) -> None:
    (quick / "personas" / "critic.md").write_text(
        "---\nid: critic\nrole: Chief critic\npurpose: Doubts.\n---\nDoubt it.\n"
    )
    told = run_cli("agents", "list", cwd=quick)
    assert told.stderr == (
        "error (persona_invalid): personas/critic.md: `role`: 'Chief critic' is not a valid role; use capital letters, "
        "digits and _, 2 to 32, beginning with a letter.\n  fix: write `role: CHIEF_CRITIC`\n"
    )


def test_report_tells_a_program_where_the_page_is_which_leads_with_the_decision(quick: Path) -> None:
    (quick / "script.yaml").write_text('default: {text: "Slate is cheaper."}\n')
    drop_command(quick, command())
    assert run_cli("run", "--once", cwd=quick).returncode == 0
    told = json.loads(run_cli("report", "--json", cwd=quick).stdout)
    page = quick / told["file"]
    assert (told["run_id"], told["bytes"]) == (receipts(quick)[0]["run_id"], page.stat().st_size)
    assert told["address"] == page.as_uri()
    shown = page.read_text()
    assert shown.index("Slate is cheaper.") < shown.index('<dl class="tiles">')


def test_the_report_of_a_failed_run_gives_its_reason_once(quick: Path) -> None:
    drop_command(quick, command(input_artifacts=["docs/gone.md"]))
    assert run_cli("run", "--once", cwd=quick).returncode == 1
    told = json.loads(run_cli("explain", "--json", cwd=quick).stdout)
    assert "docs/gone.md" in told["why"]["sentence"]
    reason = told["why"]["sentence"].removeprefix("It failed: ").rstrip(".")
    assert [note for note in told["notes"] if reason in note] == []
    page = run_cli("report", "-o", "-", cwd=quick).stdout
    assert (
        page.count("could not be read: There is no file <code>docs/gone.md</code>."),
        page.count("To fix it: "),
    ) == (1, 1)


def test_a_report_says_that_tokens_are_unknown_where_nobody_counted_them(quick: Path) -> None:
    drop_command(quick, command())
    assert run_cli("run", "--once", "--model", "offline", cwd=quick).returncode == 0
    page = run_cli("report", "-o", "-", cwd=quick).stdout
    assert '<dt>tokens</dt><dd>unknown</dd><dd class="note">unknown for ' in page
    assert "<dt>cost</dt><dd>none</dd>" in page
    assert '<dd class="note">nobody changed their mind</dd>' in page


def test_the_name_of_a_file_writes_nothing_else_into_the_terminal(quick: Path) -> None:
    (quick / "commands" / "a\x1b]0;title\x07b\nrefused: c.txt").write_text("no command")
    shown = run_cli("status", cwd=quick).stdout
    assert (shown.count("\x1b"), shown.count("\x07")) == (0, 0)
    [line] = [line for line in shown.splitlines() if "c.txt" in line]
    assert line.startswith("skipped ")
