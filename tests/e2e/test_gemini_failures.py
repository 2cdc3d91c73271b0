"""Every way in which the Gemini API fails, met by the real client within the real daemon: what the page, the receipt and the
terminal then say. The rows are those that were measured with the client against a fake server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import fake_gemini
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, text
from tests.harness import command, drop_command, environment, make_home, receipts, run_cli

KEY = "test-key-0123456789abcdef"
MODEL = "gemini:gemini-2.5-flash"
Row = tuple[str, FakeReply, str, str]
HTML = "<html><head><title>503</title></head><body><h1>Service Unavailable</h1></body></html>"
LATER = "type.googleapis.com/google.rpc.RetryInfo"

# name, what the service does, the kind it becomes, words that the steward reads
FATAL: list[Row] = [
    ("bad key", error(400, "API_KEY_INVALID", message="API key not valid."), "auth", "check GEMINI_API_KEY"),
    ("forbidden", error(403, state="PERMISSION_DENIED", message="Permission denied"), "auth", "check GEMINI_API_KEY"),
    ("no credit", error(429, message="Your prepayment credits are depleted."), "billing", "billing page"),
    (
        "no such model",
        error(404, state="NOT_FOUND", message="models/x is not found"),
        "not_found",
        "council models list",
    ),
    ("malformed", error(400, message="Unable to submit request"), "request", "shorten the inputs"),
]
PASSING: list[Row] = [
    ("500", error(500, "INTERNAL", message="An internal error"), "server", "An internal error"),
    ("503 html", fake_gemini.raw(HTML, status=503, content_type="text/html"), "overload", "Service Unavailable"),
    ("503", error(503, message="The model is overloaded."), "overload", "The model is overloaded."),
    ("silence", fake_gemini.slow(30), "timeout", "within 3 s"),
    ("dropped", fake_gemini.drop("Use a sec"), "network", "failed"),
    ("dropped at once", fake_gemini.drop(), "network", "To fix it: check the connection"),
    ("not JSON", fake_gemini.raw('{"candidates": ['), "protocol", "not what the API promises"),
    ("prompt blocked", fake_gemini.blocked("SAFETY"), "blocked", "To fix it: reword the task or leave out the input"),
    ("answer blocked", fake_gemini.safety("SAFETY", "Use a sec"), "blocked", "SAFETY"),
    ("recitation", fake_gemini.safety("RECITATION"), "blocked", "RECITATION"),
    ("empty", fake_gemini.empty(), "empty", "answered with no"),
    ("limit while thinking", fake_gemini.max_tokens(), "length", "To fix it: raise max_output_tokens"),
    ("unknown finish", text("Use a sec", finish="WAS_TIRED"), "blocked", "WAS_TIRED"),
    ("cut stream", fake_gemini.unfinished("Use a sec"), "protocol", "broke off"),
    ("error in a stream", fake_gemini.error_in_stream(503, message="overloaded"), "overload", "overloaded"),
    ("redirect", fake_gemini.redirect("http://127.0.0.1:9/"), "network", "redirect"),
]


def slug(name: str) -> str:
    return name.lower().replace(" ", "-")


@dataclass(frozen=True)
class Met:
    """One daemon after it met every row, each in a run of its own."""

    home: Path
    terminal: str
    requests: list[RecordedRequest]

    def left_by(self, name: str) -> tuple[dict[str, Any], dict[str, Any], str]:
        """The receipt, the front matter and the page of one row's run."""
        path = f"artifacts/{slug(name)}.md"
        [receipt] = [receipt for receipt in receipts(self.home) if receipt["artifact"]["path"] == path]
        content = (self.home / path).read_text()
        return receipt, yaml.safe_load(content.split("---\n")[1]), content

    def said_of(self, name: str) -> str:
        """What the terminal said from the end of that row's run on."""
        return next(part for part in self.terminal.split("Run ")[1:] if f"Row {slug(name)}." in part)


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> Met:
    home = make_home(tmp_path_factory.mktemp("failures") / "home", settings="request_timeout_s = 3\n")
    rows = {slug(row[0]): row for row in (*FATAL, *PASSING)}

    def reply(request: RecordedRequest) -> FakeReply:
        row = next(row for name, row in rows.items() if f"Row {name}." in json.dumps(request.body))
        concerned = row in FATAL or "You are STRATEGIST" in request.system
        return row[1] if concerned else text("Use a second disk.")

    with FakeGemini() as fake:
        fake.reply = reply
        for name in rows:
            body = command(f"Row {name}. Which disk?", session=name, output_artifact_path=f"artifacts/{name}.md")
            drop_command(home, body, f"{name}.json")
        env = environment(GEMINI_API_KEY=KEY, GOOGLE_GEMINI_BASE_URL=fake.url, COUNCIL_MODEL_ATTEMPTS="1")
        done = run_cli("run", "--once", "--log-format", "human", cwd=home, env=env)
        return Met(home, done.stdout + done.stderr, list(fake.requests))


@pytest.mark.parametrize("row", FATAL, ids=[slug(row[0]) for row in FATAL])
def test_what_every_call_would_meet_ends_the_run_and_says_what_to_mend(met: Met, row: Row) -> None:
    name, _, kind, words = row
    receipt, front, content = met.left_by(name)
    assert (receipt["status"], receipt["error"]["code"], front["status"]) == ("failed", f"model_{kind}", "failed")
    assert sum(f"Row {slug(name)}." in json.dumps(request.body) for request in met.requests) == 1 == receipt["calls"]
    assert f"**Failed** (`model_{kind}`): {MODEL}" in content
    assert words in content
    assert words in met.terminal
    assert list((met.home / "commands" / "failed").glob(f"{slug(name)}.*.json"))


@pytest.mark.parametrize("row", PASSING, ids=[slug(row[0]) for row in PASSING])
def test_what_one_agent_met_is_named_and_the_council_goes_on(met: Met, row: Row) -> None:
    name, _, kind, words = row
    receipt, front, content = met.left_by(name)
    assert (receipt["status"], front["status"], receipt["calls"]) == ("degraded", "degraded", 4)
    [note] = [line for line in content.splitlines() if f"STRATEGIST did not answer in round 1 ({kind})" in line]
    assert words in note
    assert "## Decision" in content
    assert "Use a sec\n" not in content  # what had come of it before it broke off
    assert f"({kind})" in met.terminal


def test_no_terminal_and_no_file_holds_the_key(met: Met) -> None:
    everything = [path.read_bytes() for path in met.home.rglob("*") if path.is_file()]
    assert len(everything) > 60
    assert not [data for data in everything if KEY.encode() in data]
    assert KEY not in met.terminal


def test_an_unknown_field_of_a_newer_service_and_a_limit_in_mid_sentence_are_answers(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: (
        text("Use a second", finish="MAX_TOKENS") if "You are STRATEGIST" in request.system else text("Use a disk.")
    )
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 7
    content = (home / "artifacts" / "out.md").read_text()
    assert "A reply reached its token limit and is cut off; raise `max_output_tokens`." in content
    assert "Use a second" in content


def test_without_a_key_nothing_starts_and_the_variable_is_named(home: Path) -> None:
    drop_command(home, command())
    done = run_cli("run", "--once", cwd=home, env=environment())
    assert (done.returncode, "GEMINI_API_KEY" in done.stderr) == (3, True)
    assert (home / "commands" / "command.json").exists()


@pytest.mark.parametrize(
    "busy",
    [error(429, retry_after=0.2), error(429, retry_delay="0.2s"), error(503), fake_gemini.drop("Use a")],
    ids=["retry-after", "retry-info", "503", "dropped"],
)
def test_what_passes_by_itself_is_tried_again_and_the_run_is_whole(
    home: Path, fake: FakeGemini, env: dict[str, str], busy: FakeReply
) -> None:
    fake.reply = fake_gemini.in_turn(busy, text("Use a second disk."))
    drop_command(home, command())
    done = run_cli("run", "--once", "--log-format", "human", cwd=home, env=env)
    assert done.returncode == 0, done.stderr
    assert (receipts(home)[0]["status"], receipts(home)[0]["calls"], len(fake.requests)) == ("succeeded", 4, 5)
    assert "tries again" in done.stdout + done.stderr or "again in" in done.stdout + done.stderr
