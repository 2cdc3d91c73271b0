"""Every way in which a provider fails, met by its real client within the real daemon: what the page, the receipt and the
terminal then say. The rows are those that were measured with the client against a fake server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import fake_gemini, fake_openai
from tests.fake_gemini import FakeGemini, FakeReply, error, text
from tests.fake_openai import FakeOpenAI
from tests.harness import command, drop_command, environment, make_home, receipts, run_cli

KEY = "test-key-0123456789abcdef"
Row = tuple[str, Any, str, str]
HTML = "<html><head><title>503</title></head><body><h1>Service Unavailable</h1></body></html>"

# name, what the service does, the kind it becomes, words that the steward reads
GEMINI_FATAL: list[Row] = [
    ("bad key", error(400, "API_KEY_INVALID", message=f"{KEY} is no API key."), "auth", "check GEMINI_API_KEY"),
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
GEMINI_PASSING: list[Row] = [
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
VLLM_CONTEXT = "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens."
OPENAI_FATAL: list[Row] = [
    ("bad key", fake_openai.error(401, f"Incorrect API key: {KEY}. Or {KEY[:20]}?"), "auth", "OPENAI_API_KEY"),
    ("forbidden", fake_openai.error(403), "auth", "OPENAI_API_KEY"),
    ("no credit", fake_openai.error(402, "Insufficient credits", shape="openrouter"), "billing", "billing page"),
    ("quota spent", fake_openai.error(429, "You exceeded your quota", code="insufficient_quota"), "billing", "billing page"),
    ("no credit in a 200", fake_openai.error_in_200("Insufficient credits", 402), "billing", "billing page"),
    ("no such model", fake_openai.error(404, "model 'x' not found", type="api_error"), "not_found", "council models list"),
    ("no such address", fake_openai.raw("404 page not found", status=404), "not_found", "check base_url in [providers.openai]"),
    ("context", fake_openai.error(400, VLLM_CONTEXT, shape="vllm"), "request", "context_tokens in [providers.openai]"),
    ("bad request", fake_openai.error(400, "Invalid 'messages'"), "request", "check the model's settings"),
]  # fmt: skip
OPENAI_PASSING: list[Row] = [
    ("500", fake_openai.error(500, "internal"), "server", "answered 500: internal"),
    ("502 html", fake_openai.raw("<h1>Bad Gateway</h1>", status=502, content_type="text/html"), "server", "Bad Gateway"),
    ("503", fake_openai.error(503, "Loading model"), "overload", "Loading model"),
    ("an error in a 200", fake_openai.error_in_200("Provider returned error", 502, raw="on fire"), "server", "on fire"),
    ("dropped", fake_openai.drop("Use a sec"), "network", "the connection to openai:gpt-4o-mini failed"),
    ("not JSON", fake_openai.raw('{"choices": ['), "protocol", "not what the API promises"),
    ("HTML with 200", fake_openai.raw("<html>log in</html>"), "protocol", "not what the API promises"),
    ("redirect", fake_openai.redirect("http://127.0.0.1:9/"), "network", "which is not followed because the key"),
    ("filtered", fake_openai.text("Use a sec", finish="content_filter"), "blocked", "content_filter"),
    ("flagged", fake_openai.error(403, "Your input was flagged", shape="openrouter"), "blocked", "To fix it: reword the task"),
    ("limit while thinking", fake_openai.text("<think>and so", finish="length"), "length", "To fix it: raise max_output_tokens"),
    ("no choice", fake_openai.no_choices(), "empty", "answered without a choice"),
    ("no text", fake_openai.text(" \n"), "empty", "answered with no text"),
    ("silence", fake_openai.slow(30), "timeout", "no whole answer within 3 s"),
]  # fmt: skip


ROWS = {"gemini": (GEMINI_FATAL, GEMINI_PASSING), "openai": (OPENAI_FATAL, OPENAI_PASSING)}
MODELS = {"gemini": "gemini:gemini-2.5-flash", "openai": "openai:gpt-4o-mini"}


def slug(name: str) -> str:
    return name.lower().replace(" ", "-")


def met_rows(table: int) -> pytest.MarkDecorator:
    """The rows of one of the two tables, of each provider."""
    rows = [
        pytest.param(provider, row, id=f"{provider}-{slug(row[0])}")
        for provider, tables in ROWS.items()
        for row in tables[table]
    ]
    return pytest.mark.parametrize(("met", "row"), rows, indirect=["met"])


@dataclass(frozen=True)
class Met:
    """One daemon after it met every row of a provider, each in a run of its own."""

    home: Path
    model: str
    terminal: str
    asked: list[str]

    def left_by(self, name: str) -> tuple[dict[str, Any], dict[str, Any], str]:
        """The receipt, the front matter and the page of one row's run."""
        path = f"artifacts/{slug(name)}.md"
        [receipt] = [receipt for receipt in receipts(self.home) if receipt["artifact"]["path"] == path]
        content = (self.home / path).read_text()
        return receipt, yaml.safe_load(content.split("---\n")[1]), content


@pytest.fixture(scope="module")
def met(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Met:
    home = make_home(tmp_path_factory.mktemp("failures") / "home", settings="request_timeout_s = 3\n")
    fatal, passing = ROWS[request.param]
    rows = {slug(row[0]): row for row in (*fatal, *passing)}
    replies: Any = fake_gemini if request.param == "gemini" else fake_openai

    def reply(asked: Any) -> Any:
        row = next(row for name, row in rows.items() if f"Row {name}." in json.dumps(asked.body))
        concerned = row in fatal or "You are STRATEGIST" in asked.system
        return row[1] if concerned else replies.text("Use a second disk.")

    for name in rows:
        body = command(f"Row {name}. Which disk?", session=name, output_artifact_path=f"artifacts/{name}.md")
        drop_command(home, body, f"{name}.json")
    with FakeGemini(reply=reply) if request.param == "gemini" else FakeOpenAI(reply=reply) as fake:
        names = {
            "GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": fake.url, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": fake.url,
            "COUNCIL_MODEL": MODELS[request.param], "COUNCIL_MODEL_ATTEMPTS": "1", "COUNCIL_LOG_LEVEL": "debug",
        }  # fmt: skip
        done = run_cli("run", "--once", "--log-format", "human", cwd=home, env=environment(**names))
        asked = [json.dumps(each.body) for each in fake.requests]
        return Met(home, MODELS[request.param], done.stdout + done.stderr, asked)


@met_rows(0)
def test_what_every_call_would_meet_ends_the_run_and_says_what_to_mend(met: Met, row: Row) -> None:
    name, _, kind, words = row
    receipt, front, content = met.left_by(name)
    assert (receipt["status"], receipt["error"]["code"], front["status"]) == ("failed", f"model_{kind}", "failed")
    assert sum(f"Row {slug(name)}." in body for body in met.asked) == 1 == receipt["calls"]
    assert f"**Failed** (`model_{kind}`): {met.model}" in content
    assert words in content
    assert words in met.terminal
    assert list((met.home / "commands" / "failed").glob(f"{slug(name)}.*.json"))


@met_rows(1)
def test_what_one_agent_met_is_named_and_the_council_goes_on(met: Met, row: Row) -> None:
    name, _, kind, words = row
    receipt, front, content = met.left_by(name)
    assert (receipt["status"], front["status"], receipt["calls"]) == ("degraded", "degraded", 4)
    [note] = [line for line in content.splitlines() if f"STRATEGIST did not answer in round 1 ({kind})" in line]
    assert words in note
    assert "## Decision" in content
    assert "Use a sec\n" not in content  # what had come of it before it broke off
    assert f"({kind})" in met.terminal


@pytest.mark.parametrize("met", ROWS, indirect=True)
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
