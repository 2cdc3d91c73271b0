"""`council explain`, `council report` and `council stats`: what a run says of itself afterwards, and while it goes on."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element
from zoneinfo import ZoneInfo

import html5lib
import msgspec
import pytest

from council.engine.records import Record, Retry, StepResult, StepStart
from tests.e2e.eventful import HOSTILE, SETTINGS, make_eventful_run, said, stance
from tests.e2e.gate import role_of
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, slow, text
from tests.harness import (
    Daemon,
    command,
    drop_command,
    environment,
    execute,
    journal,
    make_home,
    on_a_terminal,
    receipts,
    rewrite_journal,
    run_cli,
    wait_until,
)

X = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Told:
    """The eventful run, explained once for all tests that only look."""

    home: Path
    receipt: dict[str, Any]
    json: dict[str, Any]
    text: str
    html: str

    @property
    def run_id(self) -> str:
        return str(self.receipt["run_id"])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    home = make_home(tmp_path_factory.mktemp("eventful") / "home", settings=SETTINGS)
    with FakeGemini() as fake:
        env = environment(GEMINI_API_KEY="test-key-0123456789abcdef", GOOGLE_GEMINI_BASE_URL=fake.url)
        receipt = make_eventful_run(home, fake, env)
        asked = len(fake.requests)
        shown = run_cli("explain", receipt["run_id"][:18], cwd=home, env=environment(COLUMNS="160"))
        page = run_cli("report", "--html", "-o", "-", cwd=home)
        explanation = explain(home)
        assert len(fake.requests) == asked
    assert (shown.returncode, page.returncode) == (0, 0), shown.stderr + page.stderr
    return Told(home, receipt, explanation, shown.stdout, page.stdout)


def explain(home: Path, run: str = "last") -> dict[str, Any]:
    done = run_cli("explain", run, "--json", cwd=home)
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert isinstance(value, dict)
    return value


def run_once(home: Path, env: dict[str, str], body: dict[str, Any], *, code: int = 0) -> dict[str, Any]:
    drop_command(home, body)
    done = run_cli("run", "--once", cwd=home, env={**env, "COUNCIL_MODEL_ATTEMPTS": "1"})
    assert done.returncode == code, done.stderr
    return receipts(home)[-1]


# ── what the eventful run says ───────────────────────────────────────────────────────────────────────────────────────


def test_the_sums_are_those_of_the_receipt(told: Told) -> None:
    counted = told.receipt["tokens"]
    tokens = told.json["tokens"]
    assert {key: tokens[key] for key in ("input", "output", "cached", "unknown_calls")} == counted
    assert told.json["calls_counted"] == told.receipt["calls"] == 9
    for key in ("input", "output", "cached", "thought", "unknown_calls"):
        assert sum(agent["tokens"][key] for agent in told.json["agents"]) == tokens[key]
    assert tokens["thought"] == sum(call["tokens"]["thought"] for call in told.json["calls"] if call["tokens"]) > 0
    assert told.json["cost_usd"] is None  # one call was not counted
    assert "9 calls; 17,300 tokens in (5,766 cached)" in told.text


def test_an_agent_costs_what_its_tokens_cost(told: Told) -> None:
    agents = {agent["role"]: agent for agent in told.json["agents"]}
    tokens = agents["AUDITOR"]["tokens"]
    fresh = tokens["input"] - tokens["cached"]
    usd = (fresh * 0.30 + tokens["cached"] * 0.03 + tokens["output"] * 2.50) / 1e6
    assert agents["AUDITOR"]["cost_usd"] == pytest.approx(usd)
    assert (agents["COORDINATOR"]["cost_usd"], agents["COORDINATOR"]["failed"]) == (None, 1)


def test_what_was_tried_again_or_cut_off_is_charged_but_not_counted(told: Told) -> None:
    assert told.json["charged"]["calls"] == 13  # nine, two tries again, one parked, one killed
    assert told.json["charged"]["tokens"] > told.json["tokens"]["input"] + told.json["tokens"]["output"]
    assert "charged to the budget: 13 calls" in told.text


def test_retries_and_waits_survive_the_kill(told: Told) -> None:
    retries = [(retry["step"], retry["attempt"], retry["kind"], retry["wait_s"]) for retry in told.json["retries"]]
    assert retries == [("round/1/STRATEGIST", 1, "overload", 1.0), ("synthesis", 1, "server", 1.0)]
    [wait] = told.json["waits"]
    assert (wait["reason"], wait["asked_s"]) == ("provider", 2.0)
    assert wait["until_ms"] - wait["since_ms"] >= 1900
    assert "STRATEGIST, round 1: try 1 failed (overload)" in told.text
    assert "the model `flash` is overloaded" in told.text
    assert "quota exceeded for this minute" in told.text
    strategist = next(agent for agent in told.json["agents"] if agent["role"] == "STRATEGIST")
    assert (strategist["retries"], strategist["retries_s"]) == (1, 1.0)


def test_the_attempts_say_how_each_began_and_ended(told: Told) -> None:
    assert [(attempt["because"], attempt["ended"]) for attempt in told.json["attempts"]] == [
        ("start", "waiting"),
        ("wait over", "cut off"),
        ("restart", "finished"),
    ]
    assert "attempt 3 begins, after a restart" in told.text


def test_each_step_has_its_times_and_what_became_of_it(told: Told) -> None:
    auditor = [(step["name"], step["outcome"]) for step in told.json["steps"] if step["name"].endswith("AUDITOR")]
    assert auditor == [
        ("round/1/AUDITOR", "parked"),
        ("round/1/AUDITOR", "done"),
        ("round/2/AUDITOR", "cut off"),
        ("round/2/AUDITOR", "done"),
    ]
    done = [step for step in told.json["steps"] if step["outcome"] == "done"]
    assert all(0 < step["began_ms"] <= step["ended_ms"] for step in done)
    strategist = next(call for call in told.json["calls"] if call["step"] == "round/1/STRATEGIST")
    assert strategist["seconds"] >= 1.0  # the wait between its two tries


def test_who_read_what_and_what_was_refused(told: Told) -> None:
    reads = [(read["id"], read["path"], read["asked_by"], read["error_code"]) for read in told.json["reads"]]
    assert reads == [
        ("E1", "docs/needs.md", "STEWARD", ""),
        ("E2", "docs/costs.md", "COORDINATOR", ""),
        ("", "", "COORDINATOR", "denied"),
    ]
    assert "docs/costs.md:1-2" in told.text
    assert "READ_FILE(.env)" in told.text
    assert "refused (denied): Path '.env' is refused" in told.text


def test_the_lines_that_were_read_are_all_of_them_blank_ones_at_the_end_too(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    (home / "a.md").write_text("alpha\n\n\n")
    (home / "b.md").write_text("beta\nand no newline")
    drop_command(home, command(input_artifacts=["a.md", "b.md"], rounds=1))
    assert run_cli("run", "--once", "--model", "offline", cwd=home).returncode == 0
    found = [(read["path"], read["first_line"], read["last_line"]) for read in explain(home)["reads"]]
    assert found == [("a.md", 1, 3), ("b.md", 1, 2)]


def test_changes_of_mind_name_their_evidence_or_are_unexplained(told: Told) -> None:
    changes = [(change["role"], change["round"], change["evidence"]) for change in told.json["changes"]]
    assert changes == [("COORDINATOR", 2, ["E2"]), ("STRATEGIST", 2, [])]
    assert "COORDINATOR, round 2: from “Disk.” to “Tape.”, on new evidence: E2" in told.text
    assert "STRATEGIST, round 2: from “Disk.” to “Tape.”, unexplained" in told.text


def test_the_repaired_stance_and_the_stand_in_are_named(told: Told) -> None:
    [mended] = told.json["mended"]
    assert (mended["step"], mended["what"], mended["how"], mended["calls"]) == (
        "round/1/AUDITOR",
        "stance",
        "turn_1",
        1,
    )
    assert told.json["decision"]["written_by"] == "STRATEGIST"
    assert told.json["decision"]["instead_of"] == ["COORDINATOR"]
    assert "written by STRATEGIST instead of COORDINATOR, whose closing call failed" in told.text
    assert told.json["why"]["code"] == "cap"
    assert (told.json["status"], told.json["missing"]) == ("degraded", [])


@pytest.mark.parametrize("columns", [80, 120])
def test_names_and_figures_stand_unbroken_on_their_lines(told: Told, columns: int) -> None:
    said = run_cli("explain", "last", cwd=told.home, env=environment(COLUMNS=str(columns))).stdout
    lines = said.splitlines()
    [spent] = [line for line in lines if line.startswith("  COORDINATOR  3 (1 failed)  3,600   1,200")]
    assert spent.endswith(" s") if columns == 80 else spent.endswith("▇")
    assert max(map(len, lines)) <= columns
    assert [line for line in lines if line != line.rstrip()] == []
    assert "audit_head" not in said


def test_a_run_was_queued_since_its_admission_to_the_millisecond(told: Told) -> None:
    header = journal(told.home, told.run_id)[0]
    times = told.json["times"]
    assert times["admitted_ms"] == header["order"] // 1_000_000
    assert times["queued_s"] == pytest.approx((told.json["attempts"][0]["began_ms"] - times["admitted_ms"]) / 1000)
    finish = next(step for step in told.json["steps"] if step["name"] == "finish")
    assert told.receipt["took_ms"] == finish["ended_ms"] - times["admitted_ms"]


def test_the_json_is_one_line_with_a_format(told: Told) -> None:
    assert told.json["format"] == 1
    documented = (Path(__file__).parents[2] / "docs" / "explain.md").read_text()
    assert [key for key in told.json if f"`{key}`" not in documented] == []


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def page(told: Told) -> Element:
    tree: Element = html5lib.parse(told.html)
    return tree


def test_nothing_in_the_page_can_run_or_load(page: Element, told: Told) -> None:
    assert HOSTILE in "".join(page.itertext())  # it is there, as text
    tags = {element.tag.rpartition("}")[2] for element in page.iter() if isinstance(element.tag, str)}
    assert tags.isdisjoint(
        {"script", "img", "iframe", "object", "embed", "link", "base", "form", "input", "foreignObject"}
    )
    assert tags.isdisjoint({"animate", "set", "use", "image", "audio", "video", "source", "style"} - {"style"})
    names = {name for element in page.iter() for name in element.attrib}
    assert not [name for name in names if name.lower().startswith("on")]
    assert names.isdisjoint({"src", "srcset", "style", "action", "formaction", "ping", "background", "data"})
    targets = {value for element in page.iter() for name, value in element.attrib.items() if name.endswith("href")}
    assert targets == {"#E1", "#E2"}
    assert "http://evil.test" not in "".join(value for element in page.iter() for value in element.attrib.values())


def test_the_policy_of_the_page_forbids_all_but_its_own_style(page: Element) -> None:
    [policy] = [meta.attrib["content"] for meta in page.iter(f"{X}meta") if "http-equiv" in meta.attrib]
    [style] = list(page.iter(f"{X}style"))
    digest = base64.b64encode(hashlib.sha256((style.text or "").encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_the_charts_are_named_for_screen_readers_and_have_tables(page: Element) -> None:
    charts = {svg.attrib["aria-labelledby"]: svg for svg in page.iter(f"{SVG}svg")}
    assert [name.split("-")[0] for name in charts] == ["stances", "timeline", "tokens", "latency"]
    ids = {element.attrib["id"] for element in page.iter() if "id" in element.attrib}
    for name, svg in charts.items():
        assert svg.attrib["role"] == "img"
        assert set(name.split()) <= ids
    described = charts["stances-title stances-desc"].findtext(f"{SVG}desc")
    assert described is not None
    assert "STRATEGIST in round 2: position 2, confidence 0.70" in described
    assert len(list(page.iter(f"{X}table"))) == 5


def test_the_page_says_what_the_terminal_says(page: Element) -> None:
    shown = " ".join("".join(page.itertext()).split())
    for words in (
        "instead of COORDINATOR, whose closing call failed",
        "from “Disk.” to “Tape.”, on new evidence: E2",
        "unexplained: it names no evidence that was new to it",
        "refused (denied): Path '.env' is refused",
        "STRATEGIST, round 1: try 1 failed (overload)",
        "quota exceeded for this minute",
        "the stance was repaired: its writer was asked once to correct it",
        "attempt 3 begins, after a restart",
        "Tape costs 9 EUR per TB.",
        "My colleagues are right, all of them.",
    ):
        assert words in shown
    assert "`" not in shown  # it is code in a provider's message, too
    assert "ORCHESTRATOR_REQUEST" not in shown  # a page in the home may be read by an agent


def test_the_transcript_is_folded(page: Element) -> None:
    folded = [element for element in page.iter(f"{X}details") if element.attrib.get("class") == "turns"]
    assert ["".join(details[0].itertext()) for details in folded] == ["Round 1", "Round 2"]
    assert not any("open" in details.attrib for details in folded)


def test_the_page_goes_where_it_is_wanted(told: Told, tmp_path: Path) -> None:
    target = tmp_path / "why.html"
    done = run_cli("report", told.run_id, "--html", "-o", str(target), cwd=told.home)
    assert (done.returncode, target.read_text()) == (0, told.html)
    (tmp_path / "link.html").symlink_to(target)
    run_cli("report", told.run_id, "--html", "-o", str(tmp_path / "link.html"), cwd=told.home)
    assert (tmp_path / "link.html").is_symlink()
    os.mkfifo(tmp_path / "pipe")
    for arguments, said_so in (
        (("report", "last", "--html", "-o", str(tmp_path / "pipe")), "is not a regular file"),
        (("report", "last", "-o", "-", "--open"), "leave --open out"),
        (("report", "last", "--html", "-o", str(tmp_path)), "is a folder"),
        (("report", "last", "--html", "-o", str(tmp_path / "none" / "a.html")), "there is no folder"),
    ):
        refused = run_cli(*arguments, cwd=told.home)
        assert refused.returncode == 2
        assert said_so in refused.stderr
    assert (tmp_path / "pipe").is_fifo()


def test_a_citation_in_the_report_shows_the_line_that_it_names(home: Path) -> None:
    (home / "docs").mkdir()
    filling = "".join(f"Line {number} tells of the weather.\n" for number in range(1, 50))
    (home / "docs" / "offer.md").write_text(f"{filling}The slate roof costs 12,400 EUR.\n")
    drop_command(home, command("What does the slate roof cost?", input_artifacts=["docs/offer.md"]))
    assert run_cli("run", "--once", "--model", "offline", cwd=home).returncode == 0
    page = run_cli("report", "--html", "-o", "-", cwd=home).stdout
    assert '<span class="lines" role="tooltip">docs/offer.md:50\nThe slate roof costs 12,400 EUR.</span>' in page
    assert "<p>The planned round took place.</p>" in page


def test_a_report_needs_no_option_is_named_after_its_run_and_opens_in_the_browser_when_told_to(
    told: Told, tmp_path: Path
) -> None:
    plain = run_cli("--home", str(told.home), "report", cwd=tmp_path)
    page = tmp_path / f"{told.run_id}.report.html"
    assert (plain.returncode, page.read_text()) == (0, told.html)
    assert plain.stdout.endswith(f"Open it in a browser: {page.as_uri()}\n")
    browser = tmp_path / "browser"
    browser.write_text('#!/bin/sh\necho "$1" > opened\n')
    browser.chmod(0o755)
    env = environment(BROWSER=f"{browser} %s")
    opened = run_cli("--home", str(told.home), "report", "--open", cwd=tmp_path, env=env)
    assert (opened.returncode, opened.stderr) == (0, "")
    assert (tmp_path / "opened").read_text() == f"{page.as_uri()}\n"
    bare = environment(BROWSER="/nowhere %s", PATH="/nowhere")  # nor does the machine have one
    without = run_cli("--home", str(told.home), "report", "--open", cwd=tmp_path, env=bare)
    assert without.returncode == 0
    assert f"no browser could be started; open {page.as_uri()}" in without.stderr


def test_agents_do_not_read_the_report_of_a_run_as_evidence(told: Told) -> None:
    named = run_cli("report", "-o", "why.html", cwd=told.home)
    assert "agents of this home can read this file, unless its name ends in .report.html" in named.stderr
    (told.home / "why.html").unlink()
    assert run_cli("report", cwd=told.home).stderr == ""
    assert (told.home / f"{told.run_id}.report.html").exists()
    found = run_cli("cortex", "query", "latency of each call", "--json", cwd=told.home)
    assert found.returncode == 0
    assert "report.html" not in found.stdout


# ── runs that did not come to a good end ─────────────────────────────────────────────────────────────────────────────


def test_a_run_that_goes_on_is_explained_as_far_as_it_is(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: slow(30) if role_of(request) == "STRATEGIST" else said(stance("So.", "Yes."), 100, 10)
    drop_command(home, command())
    with Daemon(home, env=env) as daemon:
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        wait_until(lambda: explain(home, run_id)["status"] == "running", "the state on the disk says so, too")
        now = explain(home, run_id)
        assert (now["status"], now["live"], now["why"]["code"]) == ("running", True, "running")
        assert now["missing"] == []
        assert now["tokens"]["input"] == 100
        assert [step["name"] for step in now["steps"] if step["outcome"] == "under way"] == ["round/1/STRATEGIST"]
        assert "It is being worked on." in (told := run_cli("explain", run_id, cwd=home).stdout)
        assert ("Where it stands" in told, "Why it stopped" in told, "╳" in told) == (True, False, False)
        daemon.kill()
    later = explain(home, run_id)
    assert (later["status"], later["why"]["fix"]) == ("queued", "no daemon runs: `council run` continues it")
    assert later["missing"] == []
    assert [step["name"] for step in later["steps"] if step["outcome"] == "cut off"] == ["round/1/STRATEGIST"]
    assert run_cli("report", run_id, "--html", "-o", "-", cwd=home).returncode == 0


def test_a_waiting_run_says_what_for_and_until_when(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: error(429, retry_after=600, message="come back later")
    drop_command(home, command())
    with Daemon(home, env=env) as daemon:
        run_id = daemon.wait("run_waiting")["run_id"]
        now = wait_until(
            lambda: explain(home, run_id) if explain(home, run_id)["status"] == "waiting" else None, "waits"
        )
    assert now["why"]["sentence"].startswith("It waits for the provider until ")
    assert "come back later" in now["why"]["sentence"]
    assert [wait["until_ms"] for wait in now["waits"]] == [None]
    times = now["times"]
    assert times["total_s"] >= times["queued_s"] + times["working_s"] + times["waiting_s"] > times["working_s"]


def test_a_failed_run_says_why_and_how_to_mend_it(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: error(403, reason="BILLING_DISABLED", message="billing is off")
    receipt = run_once(home, env, command(), code=1)
    failed = explain(home)
    assert failed["why"]["code"] == receipt["error"]["code"]
    assert receipt["error"]["message"] in failed["why"]["sentence"]
    assert failed["why"]["fix"] == receipt["error"]["fix"] != ""
    assert failed["calls_counted"] == receipt["calls"] == len(fake.requests) == 1
    assert [step["name"] for step in failed["steps"] if step["outcome"] == "refused"] == ["round/1/COORDINATOR"]


def test_tokens_of_a_reply_that_is_no_answer_are_counted_as_in_the_receipt(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: text("<think>Hm.</think>" if role_of(request) == "AUDITOR" else "Words.")
    run_once(home, env, command(), code=7)
    [receipt] = receipts(home)
    told = explain(home)
    assert receipt["tokens"] == {"input": 48, "output": 28, "cached": 0, "unknown_calls": 0}
    assert {key: told["tokens"][key] for key in receipt["tokens"]} == receipt["tokens"]
    assert told["cost_usd"] == pytest.approx(receipt["cost_usd"])


def test_a_silent_council_gives_each_reason_once(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    def refuse(request: RecordedRequest) -> FakeReply:
        return error(503, message="the lamp is out" if role_of(request) == "AUDITOR" else "the well is dry")

    fake.reply = refuse
    drop_command(home, command(rounds=1))
    assert run_cli("run", "--once", cwd=home, env={**env, "COUNCIL_MODEL_ATTEMPTS": "2"}).returncode == 1
    page = (home / "artifacts" / "out.md").read_text()
    shown, told = (
        run_cli(verb, "last", cwd=home, env=environment(COLUMNS="240")).stdout for verb in ("show", "explain")
    )
    html = run_cli("report", "-o", "-", cwd=home).stdout
    for each in (page, shown, told, html):
        assert (each.count("the lamp is out"), each.count("the well is dry")) == (1, 1)
    assert page.count("*did not answer (overload)*") == html.count("did not answer (overload)") == 3
    assert told.count("as above") == 3
    assert [line.split()[4:8] for line in told.splitlines() if "(1 failed)" in line] == [["–"] * 4] * 3
    assert "nothing was asked for" in html
    assert "try 1 failed (overload)" in told


def test_a_cancelled_run_says_by_whom(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = lambda request: slow(30) if role_of(request) == "AUDITOR" else said(stance("So.", "Yes."), 100, 10)
    drop_command(home, command())
    with Daemon(home, env=env) as daemon:
        run_id = daemon.wait("turn_started", role="AUDITOR")["run_id"]
        assert run_cli("cancel", run_id, cwd=home, env=env).returncode == 0
    cancelled = explain(home, run_id)
    assert (cancelled["status"], cancelled["why"]["code"]) == ("cancelled", "cancelled")
    assert cancelled["why"]["sentence"] == "It was cancelled (by the steward)."
    assert cancelled["notes"][0].startswith("Answered: COORDINATOR in 1 turn")
    assert run_cli("explain", run_id, cwd=home).stdout.count("(by the steward)") == 1
    assert "> **Cancelled** (by the steward). " in (home / "artifacts" / "out.md").read_text()
    assert cancelled["tokens"]["input"] == 200


def test_a_call_that_was_cut_off_by_a_cancellation_is_counted_and_its_cost_unknown_not_zero(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: slow(30) if role_of(request) == "STRATEGIST" else text("Words.", prompt=100, output=10)
    drop_command(home, command())
    with Daemon(home, env=env) as daemon:
        fake.wait_for_requests(2)
        run_id = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        assert run_cli("cancel", run_id, cwd=home, env=env).returncode == 0
        daemon.wait("run_ended", run_id=run_id)
    [receipt] = [receipt for receipt in receipts(home) if receipt["run_id"] == run_id]
    assert receipt["status"] == "cancelled"
    assert (receipt["calls"], receipt["tokens"]) == (2, {"input": 100, "output": 10, "cached": 0, "unknown_calls": 1})
    assert "cost_usd" not in receipt
    told = explain(home, run_id)
    assert (told["calls_counted"], told["tokens"]["unknown_calls"]) == (2, 1)
    assert [(call["role"], call["failure"]) for call in told["calls"]] == [
        ("COORDINATOR", ""),
        ("STRATEGIST", "cancelled"),
    ]
    page = (home / "artifacts" / "out.md").read_text()
    assert "It ended with" not in page
    assert run_cli("replay", run_id, cwd=home, env=env).returncode == 0


def test_a_retry_counts_what_counts_and_shows_what_was_before(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: text("first", prompt=100, output=10)
    run_id = run_once(home, env, command())["run_id"]
    fake.reply = lambda request: text("second", prompt=1000, output=20)
    assert run_cli("retry", run_id, "--from", "round/1/AUDITOR", cwd=home, env=env).returncode == 0
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    after = explain(home, run_id)
    [receipt] = [receipt for receipt in receipts(home) if receipt["run_id"] == run_id]
    assert after["tokens"]["input"] == receipt["tokens"]["input"] == 2200
    assert after["charged"]["tokens"] == 4 * 110 + 2 * 1020
    auditor = [step["again"] for step in after["steps"] if step["name"] == "round/1/AUDITOR"]
    assert auditor == [True, False]
    assert [(attempt["because"], attempt["retry_from"]) for attempt in after["attempts"]] == [
        ("start", ""),
        ("retry", "round/1/AUDITOR"),
    ]


def test_an_early_stop_says_which_and_what_it_saved(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    (home / "a.md").write_text("It grows.\n")

    def reply(request: RecordedRequest) -> FakeReply:
        closing = "The rounds are over" in request.texts[-1]
        return text("Tape it is.") if closing else text(stance(f"I am {role_of(request)}.", "Tape.", "E1"))

    fake.reply = reply
    body = command(input_artifacts=["a.md"], config={"protocol": "independent", "max_rounds": 3})
    run_once(home, env, body)
    told = explain(home)
    assert (told["why"]["code"], told["why"]["calls_saved"]) == ("unanimity", 5)
    assert sorted(agent["letter"] for agent in told["agents"]) == ["A", "B", "C"]
    shown = run_cli("explain", cwd=home).stdout
    assert "Calls saved: 5." in " ".join(shown.split())
    assert "unanimity" not in shown  # a word of the JSON, which says nothing to a person


def test_a_command_without_agents_has_a_timeline_and_no_account(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    run_once(home, env, {"type": "memory", "role": "AUDITOR", "action": "reset"})
    run_id = receipts(home)[-1]["run_id"]
    told = explain(home, run_id)
    assert (told["type"], told["agents"], told["tokens"]["input"]) == ("memory", [], 0)
    assert [step["name"] for step in told["steps"]][-2:] == ["finish", "audit_head"]
    assert run_cli("report", run_id, "--html", "-o", "-", cwd=home).returncode == 0


# ── journals that are damaged or gone ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def copied(told: Told, tmp_path: Path) -> Path:
    """A copy of the eventful home, to be damaged."""
    shutil.copytree(told.home, tmp_path / "copy")
    return tmp_path / "copy"


def test_a_journal_whose_first_record_says_nothing_is_an_error_with_a_fix(copied: Path, told: Told) -> None:
    execute(copied, "UPDATE runs SET header = '{' WHERE run_id = ?", told.run_id)
    done = run_cli("explain", told.run_id, cwd=copied)
    assert done.returncode == 1
    assert f"record 0 of run {told.run_id} cannot be read" in done.stderr
    assert "`council doctor`" in done.stderr


def test_a_journal_without_times_is_explained_without_them(copied: Path, told: Told) -> None:
    assert sum(record["t"] == "retry" for record in journal(copied, told.run_id)) == 2
    rewrite_journal(copied, told.run_id, as_an_older_version_wrote_it)
    explained = explain(copied, told.run_id)
    assert explained["missing"] == ["Steps that an older version recorded have no times."]
    assert explained["tokens"] == told.json["tokens"]
    assert run_cli("explain", told.run_id, cwd=copied).returncode == 0
    assert "<svg" in run_cli("report", told.run_id, "--html", "-o", "-", cwd=copied).stdout


def as_an_older_version_wrote_it(records: list[Record]) -> Iterator[Record]:
    """Without tries, and without times."""
    for record in records:
        if isinstance(record, StepStart | StepResult):
            yield msgspec.structs.replace(record, at=0)
        elif not isinstance(record, Retry):
            yield record


def test_a_pruned_run_says_what_became_of_it(copied: Path, told: Told) -> None:
    toml = copied / "council.toml"
    toml.write_text("keep_runs = 1\n" + toml.read_text())
    drop_command(copied, {"type": "memory", "role": "AUDITOR", "action": "reset"})
    assert run_cli("run", "--once", "--model", "offline", cwd=copied).returncode == 0
    assert run_cli("prune", cwd=copied).returncode == 0
    done = run_cli("explain", told.run_id, cwd=copied)
    assert done.returncode == 2
    assert "was pruned on" in done.stderr
    assert f"`council show {told.run_id}` prints what stays" in done.stderr


def test_an_unknown_run_is_said(told: Told) -> None:
    done = run_cli("explain", "20200101", cwd=told.home)
    assert done.returncode == 2
    assert "no run matches '20200101'" in done.stderr


# ── all runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_sums_over_all_runs_are_those_of_the_receipts(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    (home / "council.toml").write_text(SETTINGS)
    fake.reply = lambda request: text("words", prompt=100, output=10, cached=40)
    run_once(home, env, command())
    run_once(home, env, command(output_artifact_path="artifacts/two.md", session="side"))
    fake.reply = lambda request: error(403, reason="BILLING_DISABLED")
    run_once(home, env, command(output_artifact_path="artifacts/three.md"), code=1)
    run_cli("cancel", "20200101-000000-nowhere0", cwd=home, env=env)  # leaves a receipt that is no run's
    done = run_cli("stats", "--json", cwd=home)
    assert done.returncode == 0, done.stderr
    sums = json.loads(done.stdout)
    ended = [receipt for receipt in receipts(home) if receipt["type"] == "deliberate"]
    assert sums["by_status"] == {"succeeded": 2, "failed": 1}
    assert sums["spent"]["input"] == sum(receipt["tokens"]["input"] for receipt in ended if "tokens" in receipt) == 800
    assert (sums["spent"]["cached"], sums["spent"]["calls"], sums["spent"]["cost_unknown_runs"]) == (320, 9, 1)
    known = [receipt["cost_usd"] for receipt in ended if receipt.get("cost_usd") is not None]
    assert (len(known), sums["spent"]["cost_usd"]) == (2, pytest.approx(sum(known)))
    assert [(model["model"], model["spent"]["runs"]) for model in sums["models"]] == [("gemini:gemini-2.5-flash", 3)]
    assert [day["spent"]["runs"] for day in sums["days"]] == [3]
    assert sums["durations"]["runs"] == 3
    shown = run_cli("stats", cwd=home).stdout
    assert "2 succeeded, 1 failed" in shown
    assert "9 calls, 800 tokens in (320 cached), 80 out" in shown
    drawn = on_a_terminal("stats", cwd=home, env=environment(COLUMNS="130", TERM="xterm"))
    assert ("▇" in drawn, "▇" in shown, "\x1b" in shown) == (True, False, False)


def test_a_person_reads_times_in_the_zone_of_the_home(told: Told) -> None:
    [run] = json.loads(run_cli("runs", "--json", cwd=told.home).stdout)["runs"]
    at = datetime.fromisoformat(run["created"]).astimezone(ZoneInfo("Pacific/Kiritimati"))
    env = environment(COUNCIL_TIMEZONE="Pacific/Kiritimati", COLUMNS="160")
    said = {name: run_cli(name, cwd=told.home, env=env).stdout for name in ("explain", "stats", "journal", "logs")}
    assert f"\n{at:%Y-%m-%d %H:%M}, " in said["explain"]
    assert f", from {at:%Y-%m-%d %H:%M} to {at:%Y-%m-%d %H:%M}\n" in said["stats"]
    assert f"\n  {at:%Y-%m-%d} " in said["stats"]
    assert f" {at:%H:%M:%S}." in said["journal"]
    assert re.match(r"[0-9-]{10} \d\d:\d\d:\d\d  ", said["logs"])
    assert not re.search(r"\(UTC\)|\d:\d\dZ", said["explain"] + said["stats"] + said["logs"])
    for name in ("explain", "stats"):
        assert run_cli(name, "--json", cwd=told.home, env=env).stdout == run_cli(name, "--json", cwd=told.home).stdout


def test_stats_since_a_time(told: Told, tmp_path: Path) -> None:
    assert json.loads(run_cli("stats", "--since", "1h", "--json", cwd=told.home).stdout)["spent"]["runs"] == 1
    assert "No runs since 2999-01-01 00:00." in run_cli("stats", "--since", "2999-01-01", cwd=told.home).stdout
    refused = run_cli("stats", "--since", "yesterday", cwd=told.home)
    assert (refused.returncode, "24h, 7d, 4w" in refused.stderr) == (2, True)
    unknown = run_cli("stats", cwd=told.home).stdout
    assert "cost unknown (1 run)" in unknown
    assert run_cli("stats", cwd=make_home(tmp_path / "empty")).stdout == "No runs.\n"
