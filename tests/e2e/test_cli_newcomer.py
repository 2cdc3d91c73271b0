"""What somebody meets in the first days: reused paths, mistyped commands, forms left out, and what the terminal then says."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from tests import warm
from tests.harness import (
    Daemon,
    command,
    drop_command,
    environment,
    make_home,
    on_a_terminal,
    receipts,
    run_cli,
    wait_until,
)

OFFLINE = 'model = "offline"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = make_home(tmp_path / "home", settings=OFFLINE)
    (made / "docs").mkdir()
    (made / "docs" / "needs.md").write_text("# Needs\n\nThe archive grows by 40 GB a month.\n")
    return made


def decide(home: Path, task: str, **keys: object) -> str:
    """Runs one command and returns its run's id."""
    known = {receipt["run_id"] for receipt in receipts(home)}
    drop_command(home, command(task, **keys))
    assert run_cli("run", "--once", cwd=home).returncode in (0, 1)
    return next(receipt["run_id"] for receipt in receipts(home) if receipt["run_id"] not in known)


# ── the first minute ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_init_names_both_ways_on_and_says_nothing_of_keys_to_a_home_that_is_there(tmp_path: Path) -> None:
    first = run_cli("init", "mine", cwd=tmp_path).stdout
    assert "GEMINI_API_KEY=… into its .env" in first
    assert "`council run --model offline`\nwithout a key" in first
    again = run_cli("--home", "mine", "init", cwd=tmp_path).stdout
    assert "mine is already a home.\nNext: run `council doctor`" in again


@pytest.mark.parametrize("words", [("init", ""), ("demo", ""), ("--home", "", "init")])
def test_an_unset_variable_makes_no_home_of_the_working_folder(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run_cli(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error (usage): the folder's name is empty.\n  fix: name a folder; `.` is this one\n"
    assert list(tmp_path.iterdir()) == []


def test_the_command_that_the_readme_of_a_new_home_has_to_copy_is_one_that_runs(tmp_path: Path) -> None:
    assert "commands/ (its README.md has one to copy)" in run_cli("init", "mine", cwd=tmp_path).stdout
    commands = tmp_path / "mine" / "commands"
    [(example, name)] = re.findall(
        r"```json\n(.*?)```\n\nSave that as `commands/(.*?)`", (commands / "README.md").read_text(), re.S
    )
    (commands / name).write_text(example)
    assert run_cli("run", "--once", "--model", "offline", cwd=tmp_path / "mine").returncode == 0
    assert (tmp_path / "mine" / json.loads(example)["output_artifact_path"]).exists()


def test_a_command_that_names_its_own_model_needs_no_key_of_the_homes(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", settings='model = "gemini"\n')
    drop_command(home, command("What grows?", output_artifact_path="artifacts/own.md", config={"model": "offline"}))
    drop_command(home, command("What grows?", output_artifact_path="artifacts/homes.md"), name="homes.json")
    done = run_cli("submit", "--wait", "command.json", cwd=home / "commands")
    assert (done.returncode, (home / "artifacts" / "own.md").exists()) == (0, True)
    refused = run_cli("submit", "--wait", "homes.json", cwd=home / "commands")
    assert refused.returncode == 3
    assert "needs a key, and GEMINI_API_KEY is not set" in refused.stderr


@pytest.mark.parametrize(("settings", "flags"), [(OFFLINE, ()), ('model = "gemini"\n', ("--model", "offline"))])
def test_a_home_that_works_offline_asks_no_model_that_a_command_names_and_says_so(
    tmp_path: Path, settings: str, flags: tuple[str, ...]
) -> None:
    home = make_home(tmp_path / "home", settings=settings)
    drop_command(home, command("What grows?", config={"model": "gemini:gemini-2.5-flash"}))
    done = run_cli("submit", "--wait", *flags, "command.json", cwd=home / "commands")
    assert (done.returncode, done.stderr.count("needs a key")) == (0, 0)
    [receipt] = receipts(home)
    assert receipt["model"] == "offline"
    said = "The command asks for gemini:gemini-2.5-flash, but offline speaks for every agent in this home"
    assert said in done.stderr
    assert f"> {said}." in (home / receipt["artifact"]["path"]).read_text()


def test_a_second_demo_says_that_the_home_was_there_and_one_that_waits_tells_no_earlier_answer(tmp_path: Path) -> None:
    assert run_cli("demo", cwd=tmp_path).stdout.startswith("Made a home in council-demo/ and dropped council-demo/")
    again = run_cli("demo", cwd=tmp_path).stdout
    assert again.startswith("Dropped council-demo/commands/command.json.")
    assert again.endswith("As a page with charts: council --home council-demo report --open\n")
    keys = (tmp_path / "council-demo" / ".council" / "key-id").read_text()
    (Path(os.environ["XDG_CONFIG_HOME"]) / "council" / "keys" / f"{keys}.json").unlink()
    third = run_cli("demo", cwd=tmp_path)
    assert (third.returncode, "Status: succeeded" in again, "Status: succeeded" in third.stdout) == (75, True, False)
    assert "[WAITING]" in third.stdout


@pytest.mark.parametrize("words", [("show",), ("replay",), ("explain",), ("report",), ("journal",), ("cassette",)])
def test_before_the_first_run_it_is_said_that_there_is_none(home: Path, words: tuple[str, ...]) -> None:
    done = run_cli(*words, cwd=home)
    assert done.returncode == 2
    assert "yet." in done.stderr
    asks = '`council submit --wait --task "…" DOCUMENT` asks the council'
    assert asks in done.stderr
    assert run_cli("status", cwd=home).stdout.endswith(f"no run yet: {asks}\n")


# ── show ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_show_prints_the_run_that_was_asked_for_though_a_later_one_wrote_over_its_page(home: Path) -> None:
    first = decide(home, "Which engine suits the archive?")
    second = decide(home, "Which colour suits the archive?")
    shown = run_cli("show", first, cwd=home)
    assert shown.stdout.startswith("# Which engine suits the archive?\n")
    assert f"artifacts/out.md now holds the page of run {second}; this is from the journal" in shown.stdout
    assert "The whole record: artifacts/out.md" in run_cli("show", second, cwd=home).stdout


def test_show_prints_from_the_journal_what_somebody_moved_away_and_the_edited_page_as_it_is(home: Path) -> None:
    run = decide(home, "Which engine suits the archive?")
    page = home / "artifacts" / "out.md"
    page.write_text(page.read_text().replace("## Extract", "## Extract, as Ines reads it"))
    assert "## Extract, as Ines reads it\n" in run_cli("show", run, cwd=home).stdout
    page.unlink()
    shown = run_cli("show", run, cwd=home)
    assert shown.returncode == 0
    assert shown.stdout.startswith("# Which engine suits the archive?\n")
    assert "artifacts/out.md cannot be read (No such file or directory); this is from the journal" in shown.stdout


def test_show_of_a_run_of_which_neither_page_nor_journal_is_left_says_so(home: Path) -> None:
    run = decide(home, "Which engine suits the archive?")
    decide(home, "Which colour suits the archive?", output_artifact_path="artifacts/colour.md")
    assert run_cli("prune", cwd=home, env=environment(COUNCIL_KEEP_RUNS="1")).returncode == 0
    (home / "artifacts" / "out.md").unlink()
    done = run_cli("show", run, cwd=home)
    assert done.returncode == 2
    assert f"artifacts/out.md cannot be read (No such file or directory), and the run {run} was pruned" in done.stderr


def test_show_says_how_much_was_read_of_an_input_that_was_cut(home: Path) -> None:
    (home / "docs" / "long.md").write_text("".join(f"Line {number} tells of rain.\n" for number in range(1, 5_001)))
    decide(home, "What does it tell of?", input_artifacts=["docs/long.md"])
    shown = run_cli("show", cwd=home).stdout
    assert re.search(r"> Not all of an input was read: `docs/long\.md` lines 1-[0-9]+ of 5000\.\n", shown)


def test_on_a_terminal_a_citation_opens_its_line_and_nothing_else_is_a_link(home: Path) -> None:
    decide(home, "How fast does the archive grow?", input_artifacts=["docs/needs.md"])
    page = home / "artifacts" / "out.md"
    cited = "[[E1 docs/needs.md:3](../docs/needs.md#L3)]"
    strange = "[out](../../secret.md) [web](https://example.com/x) [gone](../docs/gone.md) [up](/etc/passwd)"
    page.write_text(page.read_text().replace("## Task\n", f"{cited} {strange}\n\n## Task\n", 1))
    shown = on_a_terminal("show", cwd=home, env=environment(TERM="xterm-256color"))
    address = f"{(home / 'docs' / 'needs.md').as_uri()}#L3"
    assert set(re.findall(r"\x1b\]8;id=\d+;([^\x1b]*)\x1b\\(?:\x1b\[[0-9;]*m)*\[E1 docs/needs.md:3\]", shown)) == {
        address
    }
    assert shown.count("\x1b]8;id=") == shown.count("file://")
    assert "[out] [web] [gone] [up]" in shown
    assert "\x1b" not in on_a_terminal("show", cwd=home, env=environment(TERM="dumb"))
    assert "[E1 docs/needs.md:3]" in run_cli("show", cwd=home).stdout


# ── submit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_problem_of_a_refused_command_is_one_json_object_for_programs(home: Path) -> None:
    done = run_cli("submit", "-", "--json", cwd=home, stdin=b'{"task_description": "Which?", "output": "x.md"}')
    assert done.returncode == 2
    told = json.loads(done.stdout)
    assert (told["file"], told["dropped"]) == ("standard input", False)
    assert [problem["field"] for problem in told["problems"]] == ["output", "output_artifact_path"]
    assert sorted(os.listdir(home / "commands")) == ["README.md"]


def test_what_may_still_change_until_the_run_is_a_warning_and_the_command_is_dropped(home: Path) -> None:
    (home / "early.json").write_text(json.dumps(command("Which?", input_artifacts=["docs/later.md"])))
    done = run_cli("submit", "early.json", cwd=home)
    assert done.returncode == 0
    assert "early.json:1:" in done.stderr
    assert (
        "warning: `input_artifacts.0`: There is no file `docs/later.md`. Without any input, the run would"
        in done.stderr
    )
    assert (home / "commands" / "early.json").exists()


def test_whoever_stops_waiting_is_told_that_the_daemon_goes_on(home: Path) -> None:
    (home / "slow.yaml").write_text("model: slow\ndefault: {text: I have nothing to add., delay_s: 30}\n")
    (home / "slow.json").write_text(json.dumps(command("Which?")))
    with Daemon(home, "--model", "scripted:slow.yaml") as daemon:
        daemon.ready()
        with warm.start("council", ("submit", "--wait", "slow.json"), cwd=home, env=environment()) as process:
            run = daemon.wait("turn_started")["run_id"]
            wait_until(lambda: run in (home / ".council" / "state.json").read_text(), "the state names the run")
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)[1]
        assert process.returncode == 130
        assert f"The daemon continues with slow.json: `council cancel {run}` ends it" in said
        assert run_cli("cancel", run, cwd=home).returncode == 0


def test_a_daemon_whose_home_is_moved_ends_and_says_so(home: Path) -> None:
    with Daemon(home, "--model", "offline", env=environment(COUNCIL_SCAN_INTERVAL_S="0.5")) as daemon:
        daemon.ready()
        moved = home.rename(home.with_name("moved"))
        assert daemon.process.wait(60) == 1
    assert f"{home} was moved or replaced while it was served" in daemon.stderr
    assert "Traceback" not in daemon.stderr
    assert "not running" in run_cli("status", cwd=moved).stdout


def test_an_input_that_cannot_be_read_brings_the_names_that_were_probably_meant(home: Path) -> None:
    for name in ("options", "plan", "risks"):
        (home / "docs" / f"{name}.md").write_text("text\n")
    (home / "docs" / "huge.md").write_text("x" * 2_000_000)
    (home / ".env").write_text("GEMINI_API_KEY=never-named\n")
    wanted = ["docs", "docs/", "docs/*s.md", "doc/needs.md", "docs/optoins.md", "docs/huge.md", ".enw", "far/away.txt"]
    (home / "many.json").write_text(json.dumps(command("Which?", input_artifacts=wanted)))
    done = run_cli("validate", "many.json", "--json", cwd=home)
    fixes = {wanted[int(each["field"].rpartition(".")[2])]: each["fix"] for each in json.loads(done.stdout)["warnings"]}
    listed = "name the files in it: `docs/huge.md`, `docs/needs.md`, `docs/options.md` and 2 more"
    assert fixes == {
        "docs": listed,
        "docs/": listed,
        "docs/*s.md": "each path names one file: name those that fit: `docs/needs.md`, `docs/options.md`, `docs/risks.md`",
        "doc/needs.md": "did you mean `docs/needs.md`?",
        "docs/optoins.md": "did you mean `docs/options.md`?",
        "docs/huge.md": "split the file, or raise max_file_bytes",
        ".enw": "choose a path that the rules allow",
        "far/away.txt": "check the spelling and the folder",
    }


def test_a_page_of_ones_own_in_the_way_and_an_unknown_user_are_known_before_the_run(home: Path) -> None:
    (home / "artifacts" / "mine.md").write_text("Mine.\n")
    (home / "page.json").write_text(json.dumps(command("Which?", output_artifact_path="artifacts/mine.md")))
    told = json.loads(run_cli("validate", "page.json", "--json", cwd=home).stdout)
    assert [each["message"] for each in told["warnings"]] == [
        "artifacts/mine.md already exists, but not as a run wrote it"
    ]
    decide(home, "Which?")
    (home / "again.json").write_text(json.dumps(command("Which?")))
    assert json.loads(run_cli("validate", "again.json", "--json", cwd=home).stdout)["warnings"] == []
    (home / "for.json").write_text(json.dumps(command("Which?", user="ines")))
    refused = run_cli("submit", "for.json", cwd=home)
    assert refused.returncode == 2
    assert "error: `user` is 'ines', but there is no such user here." in refused.stderr
    assert run_cli("users", "add", "ines", cwd=home).returncode == 0
    assert run_cli("submit", "for.json", cwd=home).returncode == 0


def test_a_file_that_lies_in_the_inbox_already_is_run_once_and_not_copied(home: Path) -> None:
    drop_command(home, command("Which?"), "mine.json")
    told = run_cli("submit", "commands/mine.json", cwd=home)
    assert told.stdout.startswith("commands/mine.json is already in the inbox.\n")
    done = run_cli("submit", "--wait", "mine.json", cwd=home / "commands")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "# Which?")
    assert [receipt["command_file"]["name"] for receipt in receipts(home)] == ["mine.json"]
    assert sorted(os.listdir(home / "commands")) == ["README.md"]
    drop_command(home, command("Which?"), "mine.json")
    assert run_cli("submit", "--name", "copy.json", "commands/mine.json", cwd=home).stdout.startswith(
        "Dropped commands/copy"
    )


# ── a question without a file ────────────────────────────────────────────────────────────────────────────────────────


def test_a_question_and_documents_as_the_shell_names_them_are_a_command(home: Path) -> None:
    asked = ("submit", "--wait", "--json", "--rounds", "1", "--task", "How fast does the archive grow?", "needs.md")
    done = run_cli(*asked, cwd=home / "docs")
    told = json.loads(done.stdout)
    assert (done.returncode, told["status"]) == (0, "succeeded")
    page = home / told["artifact"]["path"]
    assert page == home / "artifacts" / "how-fast-does-the-archive-grow.md"
    assert "- `docs/needs.md` lines 1-3 of 3" in page.read_text()
    assert "\nrounds: 1\n" in page.read_text()


def test_a_question_is_dropped_as_the_file_that_a_person_would_have_written(home: Path) -> None:
    asked = ("submit", "--task", "Wie schnell wächst es?", "docs/needs.md", "-o", "artifacts/so.md")
    assert run_cli(*asked, cwd=home).returncode == 0
    assert json.loads((home / "commands" / "task.json").read_bytes()) == {
        "task_description": "Wie schnell wächst es?",
        "input_artifacts": ["docs/needs.md"],
        "output_artifact_path": "artifacts/so.md",
    }


def test_a_question_about_a_long_document_is_put_with_a_warning_of_what_is_cut_off(home: Path) -> None:
    (home / "docs" / "long.md").write_text("a line of text\n" * 10_000)
    done = run_cli("submit", "--task", "Which?", "docs/needs.md", "docs/long.md", cwd=home)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "Dropped commands/task.json.")
    assert done.stderr.startswith("warning: lines 1 to 4369 of `docs/long.md` fit; the rest, up to 10000")
    refused = run_cli("submit", "--task", "Which?", "docs/long.md", "docs/neds.md", cwd=home)
    assert refused.returncode == 2
    assert refused.stderr.startswith(
        "error: There is no file `docs/neds.md`.\n    fix: did you mean `docs/needs.md`?\n"
    )
    assert "\nwarning: lines 1 to 4369" in refused.stderr


def test_a_question_about_a_damaged_document_is_refused_in_words_of_the_document(home: Path) -> None:
    (home / "no.pdf").write_bytes(b"no PDF")
    done = run_cli("submit", "--task", "Which?", "no.pdf", cwd=home)
    assert (done.returncode, done.stderr.splitlines()[0].startswith("error: `no.pdf` is damaged, or")) == (2, True)
    [problem] = json.loads(run_cli("submit", "--json", "--task", "Which?", "no.pdf", cwd=home).stdout)["problems"]
    assert (problem["message"].startswith("`no.pdf` is damaged"), problem["field"], problem["line"]) == (True, "", None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--task", "x", "docs/neds.md"), "did you mean `docs/needs.md`?"),
        (("--task", "x", "docs"), "name the files in it: `docs/needs.md`"),
        (("--task", "x", "../outside.md"), "is outside the home"),
        (("--task", "x", "/etc/hosts"), "is outside the home"),
        (("--task", "x", "https://example.org/a"), "it is a web address, and none is read"),
        (("--task", " "), "error: `--task` must say what the task is"),
        (("--task", "x", "-o", "so.txt"), "error: `--output` is `so.txt`: a decision must be a Markdown file"),
        (("mine.json", "-o", "artifacts/so.md"), "--output and --rounds go with --task"),
        ((), "no command file is named"),
        (("a.json", "b.json"), "more than one command file"),
    ],
)
def test_a_question_that_cannot_be_put_says_why_and_drops_nothing(
    home: Path, words: tuple[str, ...], said: str
) -> None:
    done = run_cli("submit", *words, cwd=home)
    assert done.returncode == 2
    assert said in done.stderr
    assert sorted(os.listdir(home / "commands")) == ["README.md"]


def test_a_file_where_one_stands_is_not_taken_for_one_of_the_home(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "docs").mkdir(parents=True)
    (elsewhere / "docs" / "needs.md").write_text("Other needs.\n")
    done = run_cli("--home", str(home), "submit", "--task", "x", "docs/needs.md", cwd=elsewhere)
    assert (done.returncode, "docs/needs.md is outside the home" in done.stderr) == (2, True)
    assert run_cli("--home", str(home), "submit", "--task", "x", "docs/needs.md", cwd=tmp_path).returncode == 0


# ── schedules ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_list_of_schedules_says_that_nobody_is_there_to_keep_them(home: Path) -> None:
    recurring = home / "commands" / "recurring"
    recurring.mkdir()
    (recurring / "costs.json").write_text(json.dumps(command("Which?", schedule="0 7 * * 1-5")))
    assert "No daemon is running in this home" in run_cli("schedule", "list", cwd=home).stdout
    with Daemon(home) as daemon:
        daemon.ready()
        listed = run_cli("schedule", "list", cwd=home).stdout
    assert "costs.json  0 7 * * 1-5 UTC" in listed
    assert "No daemon" not in listed


# ── the index ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_endless_word_in_a_file_does_not_keep_the_index_from_the_others(home: Path) -> None:
    (home / "docs" / "picture.svg").write_text(f"<image href='data:image/png;base64,{'iVBORw0KGgo' * 40_000}'/>")
    found = run_cli("cortex", "query", "how fast does the archive grow", cwd=home)
    assert found.returncode == 0
    assert "docs/needs.md:" in found.stdout
