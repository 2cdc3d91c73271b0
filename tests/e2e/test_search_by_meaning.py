"""QUERY_CORTEX with an embedding model: what is found, what it costs, and what is said when it fails; through the daemon."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import fake_openai
from tests.e2e.gate import is_closing, role_of
from tests.fake_collector import FakeCollector
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, text
from tests.fake_openai import FakeOpenAI
from tests.harness import command, drop_command, environment, make_home, receipts, run_cli, settled

QUESTION = "Which automobile do we lease?"
ASK = f'[ORCHESTRATOR_REQUEST: QUERY_CORTEX("{QUESTION}")]'
VEHICLES = "# Fleet\n\nEvery sedan and motor belongs to the depot.\n"
KEY = "sk-meanings-0123456789abcdef"


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as running:
        yield running


@pytest.fixture
def hybrid(home: Path, server: FakeOpenAI) -> Path:
    """A home whose questions are embedded by a server of its own, with two documents."""
    configure(home, server.url)
    (home / "docs").mkdir()
    (home / "docs" / "fleet.md").write_text(VEHICLES)
    (home / "docs" / "kitchen.md").write_text("# Kitchen\n\nThe broth is served at noon.\n")
    return home


def configure(home: Path, url: str, more: str = "") -> None:
    with (home / "council.toml").open("a") as settings:
        settings.write('embedding_model = "meanings:e-1"\nmodel_attempts = 1\nread_roots = ["docs/**"]\n')
        settings.write(f'{more}[providers.meanings]\nbase_url = "{url}"\nkey_env = "MEANINGS_KEY"\n')
    (home / ".env").write_text(f"MEANINGS_KEY={KEY}\n")


def asking(reply: str) -> Any:
    """The coordinator says this; the others have nothing to add."""

    def answer(request: RecordedRequest) -> FakeReply:
        asks = role_of(request) == "COORDINATOR" and not is_closing(request)
        return text(f"I look it up.\n\n{reply}" if asks else "I have nothing to add.")

    return answer


def run_once(home: Path, fake: FakeGemini, env: dict[str, str], reply: str = ASK, **keys: Any) -> str:
    """Runs a command whose coordinator asks; the page."""
    fake.reply = asking(reply)
    drop_command(home, command(**({"rounds": 1} | keys)))
    done = run_cli("run", "--once", cwd=home, env=env)
    assert done.returncode in (0, 7), done.stderr
    return (home / "artifacts" / "out.md").read_text()


def told_to_the_strategist(fake: FakeGemini) -> str:
    return "\n".join("\n".join(request.texts) for request in fake.requests if "You are STRATEGIST" in request.system)


def texts_sent(server: FakeOpenAI) -> list[str]:
    return [each for request in server.embeddings for each in request.body["input"]]


# ── what is found ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_question_whose_words_do_not_occur_in_a_file_finds_it_by_what_it_means(
    hybrid: Path, server: FakeOpenAI, fake: FakeGemini, env: dict[str, str]
) -> None:
    page = run_once(hybrid, fake, env)
    assert not set(re.findall(r"[a-z]+", QUESTION.lower())) & set(re.findall(r"[a-z]+", VEHICLES.lower()))
    told = told_to_the_strategist(fake)
    assert "Every sedan and motor belongs to the depot." in told
    assert re.search(r"passages? for “Which automobile do we lease\?”: `docs/fleet\.md:\d-\d`", page)
    assert sorted(texts_sent(server)) == sorted(
        [QUESTION, f"Fleet\n{VEHICLES}", "Kitchen\n# Kitchen\n\nThe broth is served at noon.\n"]
    )
    assert {request.authorization for request in server.embeddings} == {f"Bearer {KEY}"}
    assert all("It matches words and meanings" in request.system for request in fake.requests[:1])


def test_without_an_embedding_model_the_same_question_finds_nothing_and_no_agent_is_told_otherwise(
    hybrid: Path, server: FakeOpenAI, fake: FakeGemini, env: dict[str, str]
) -> None:
    toml = (hybrid / "council.toml").read_text()
    (hybrid / "council.toml").write_text(toml.replace('embedding_model = "meanings:e-1"\n', ""))
    page = run_once(hybrid, fake, env)
    assert "no passage fits “Which automobile do we lease?”" in page
    assert ("**ORCHESTRATOR (Nothing Found):**" in page, "Refused Request" in page) == (True, False)
    assert "It matches words, not meanings" in fake.requests[0].system
    assert server.embeddings == []


def test_what_was_embedded_once_is_not_sent_again_until_it_changes(
    hybrid: Path, server: FakeOpenAI, fake: FakeGemini, env: dict[str, str]
) -> None:
    run_once(hybrid, fake, env)
    first = len(server.embeddings)
    run_once(hybrid, fake, env)
    assert len(server.embeddings) == first == 2
    (hybrid / "docs" / "kitchen.md").write_text("# Kitchen\n\nThe soup is served at one.\n")
    run_once(hybrid, fake, env)
    assert texts_sent(server)[3:] == ["Kitchen\n# Kitchen\n\nThe soup is served at one.\n"]


def test_a_resumed_run_reads_what_the_search_brought_and_asks_nobody_again(
    hybrid: Path, server: FakeOpenAI, fake: FakeGemini, env: dict[str, str]
) -> None:
    """The provider stays away behind the search; what is resumed finds the step recorded, though the file changed."""
    fake.reply = lambda request: (
        asking(ASK)(request) if "You are COORDINATOR" in request.system else FakeReply(status=401, body=b"{}")
    )
    drop_command(hybrid, command(rounds=1))
    assert run_cli("run", "--once", cwd=hybrid, env=env).returncode != 0
    asked = len(server.embeddings)
    (hybrid / "docs" / "fleet.md").write_text("# Fleet\n\nNothing is here any more.\n")
    run_id = receipts(hybrid)[-1]["run_id"]
    fake.reply = asking(ASK)
    assert run_cli("resume", run_id, cwd=hybrid, env=env).returncode == 0
    run_cli("run", "--once", cwd=hybrid, env=env)
    assert "Every sedan and motor belongs to the depot." in told_to_the_strategist(fake)
    assert len(server.embeddings) == asked


# ── what it costs ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_its_spans_stand_under_the_search_and_hold_the_rest_of_the_receipts_tokens(
    hybrid: Path, server: FakeOpenAI, fake: FakeGemini, env: dict[str, str]
) -> None:
    with FakeCollector() as collector:
        run_once(hybrid, fake, {**env, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})
    chats, embeddings = collector.named("chat"), collector.named("embeddings")
    [search] = collector.named("execute_tool QUERY_CORTEX")
    assert [span.parent_id for span in embeddings] == [search.span_id] * len(server.embeddings) != []
    assert {span.attributes["gen_ai.request.model"] for span in embeddings} == {"e-1"}
    assert {span.attributes["gen_ai.operation.name"] for span in embeddings} == {"embeddings"}
    counted = sum(span.attributes["gen_ai.usage.input_tokens"] for span in [*chats, *embeddings])
    assert counted == receipts(hybrid)[-1]["tokens"]["input"]


def test_its_tokens_and_its_price_are_the_runs(
    hybrid: Path, server: FakeOpenAI, fake: FakeGemini, env: dict[str, str]
) -> None:
    with (hybrid / "council.toml").open("a") as settings:
        settings.write(
            '[prices."meanings:e-1"]\ninput = 1000.0\noutput = 0.0\n[prices.gemini]\ninput = 0\noutput = 0\n'
        )
    server.embed_reply = lambda request: fake_openai.vectors(
        [[1.0, 0.5]] * len(request.body["input"]), counted=100 * len(request.body["input"])
    )
    run_once(hybrid, fake, env)
    [receipt] = receipts(hybrid)
    chat = 12 * len(fake.requests)
    assert receipt["tokens"]["input"] == chat + 300
    assert receipt["calls"] == len(fake.requests) + 2
    assert receipt["cost_usd"] == pytest.approx(0.3)
    tokens = [call["tokens"] for call in settled(hybrid, receipt["run_id"])]
    assert sorted(count for count in tokens if count in (100, 200)) == [100, 200]


def test_a_spent_budget_leaves_the_search_to_the_words_and_the_run_goes_on(
    hybrid: Path, server: FakeOpenAI, fake: FakeGemini, env: dict[str, str]
) -> None:
    server.embed_reply = lambda request: fake_openai.vectors([[1.0, 0.5]] * len(request.body["input"]), counted=60_000)
    limits = {"max_rounds": 1, "budget": {"max_tokens": 60_000}}
    page = run_once(hybrid, fake, env, '[ORCHESTRATOR_REQUEST: QUERY_CORTEX("broth at noon")]', config=limits)
    assert "found only by words, not by meaning: the command's budget of 60000 tokens" in page
    assert re.search(r"passages? for “broth at noon”: `docs/kitchen\.md:\d-\d`", page)


def test_a_call_whose_vectors_cannot_be_kept_counts_and_the_answer_is_by_words(
    hybrid: Path, server: FakeOpenAI, fake: FakeGemini, env: dict[str, str]
) -> None:
    vectors = hybrid / ".council" / "cortex" / "files" / "vectors"

    def in_the_way(request: fake_openai.RecordedRequest) -> fake_openai.FakeReply:
        vectors.mkdir(exist_ok=True)
        return fake_openai.default_vectors(request)

    server.embed_reply = in_the_way
    page = run_once(hybrid, fake, env, '[ORCHESTRATOR_REQUEST: QUERY_CORTEX("broth at noon")]')
    [receipt] = receipts(hybrid)
    assert receipt["calls"] == len(fake.requests) + len(server.embeddings) == len(fake.requests) + 1
    assert receipt["tokens"]["input"] == 12 * len(fake.requests) + 5
    assert "found only by words, not by meaning: " in page
    assert str(vectors.relative_to(hybrid)) in page
    assert re.search(r"passages? for “broth at noon”: `docs/kitchen\.md:\d-\d`", page)


# ── on a cassette ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_in_its_own_home_a_cassette_finds_by_the_vectors_that_are_kept_and_elsewhere_a_changed_prompt_is_missed(
    hybrid: Path, server: FakeOpenAI, fake: FakeGemini, env: dict[str, str], tmp_path: Path
) -> None:
    page = run_once(hybrid, fake, env)
    asked = (len(server.embeddings), len(fake.requests))
    tape = recorded(hybrid)
    (hybrid / "artifacts" / "out.md").unlink()
    drop_command(hybrid, command(rounds=1, session="b"))
    done = run_cli("run", "--once", "--model", f"cassette:{tape.name}", cwd=hybrid, env=environment())
    assert done.returncode == 0, done.stderr
    again = (hybrid / "artifacts" / "out.md").read_text()
    assert "docs/fleet.md:" in below(again)
    assert below(again) == below(page)
    assert (len(server.embeddings), len(fake.requests)) == asked
    page, said = replayed_elsewhere(hybrid, tape, tmp_path / "copy")
    assert "replay_miss" in page
    assert "found only by words, not by meaning: this model asks no embedding model" in said


def test_a_run_by_words_is_the_same_on_its_cassette_in_a_home_that_has_an_embedding_model(
    hybrid: Path, server: FakeOpenAI, fake: FakeGemini, env: dict[str, str], tmp_path: Path
) -> None:
    toml = hybrid / "council.toml"
    toml.write_text(toml.read_text().replace('embedding_model = "meanings:e-1"\n', ""))
    page = run_once(hybrid, fake, env, '[ORCHESTRATOR_REQUEST: QUERY_CORTEX("broth at noon")]')
    own = f'embedding_model = "other:e-2"\n[providers.other]\nbase_url = "{server.url}"\n'
    again, _ = replayed_elsewhere(hybrid, recorded(hybrid), tmp_path / "copy", own)
    assert below(again) == below(page)
    assert server.embeddings == []


def recorded(home: Path) -> Path:
    """The cassette of the last run."""
    done = run_cli("cassette", "last", "-o", "x.cassette.jsonl", cwd=home)
    assert done.returncode == 0, done.stderr
    return home / "x.cassette.jsonl"


def replayed_elsewhere(hybrid: Path, tape: Path, folder: Path, settings: str = "") -> tuple[str, str]:
    """The page of a cassette's run in a home that holds the same documents and nothing else, and what it said."""
    copy = make_home(folder, settings=f'read_roots = ["docs/**"]\n{settings}')
    shutil.copytree(hybrid / "docs", copy / "docs")
    shutil.copy(tape, copy)
    drop_command(copy, command(rounds=1))
    done = run_cli("run", "--once", "--model", f"cassette:{tape.name}", cwd=copy, env=environment())
    return (copy / "artifacts" / "out.md").read_text(), done.stderr


def below(page: str) -> str:
    """A page without its front matter and the name of its model."""
    return page.split("---\n", 2)[2].replace("cassette:gemini:", "gemini:")


# ── what is said when it fails ───────────────────────────────────────────────────────────────────────────────────────


def test_a_failing_server_leaves_the_answer_to_the_words_and_that_is_said_to_agents_in_the_page_and_in_the_log(
    hybrid: Path, server: FakeOpenAI, fake: FakeGemini, env: dict[str, str]
) -> None:
    server.embed_reply = lambda request: fake_openai.error(503, "the model is loading")
    fake.reply = asking('[ORCHESTRATOR_REQUEST: QUERY_CORTEX("broth at noon")]')
    drop_command(hybrid, command(rounds=1))
    done = run_cli("run", "--once", cwd=hybrid, env=env)
    said = "found only by words, not by meaning: meanings:e-1 answered 503: the model is loading"
    told = told_to_the_strategist(fake)
    assert "The broth is served at noon." in told
    assert said in told
    assert said in (hybrid / "artifacts" / "out.md").read_text()
    assert said in done.stderr
    assert receipts(hybrid)[-1]["status"] == "succeeded"


def test_a_key_that_is_not_there_is_said_before_anything_starts(
    hybrid: Path, server: FakeOpenAI, env: dict[str, str]
) -> None:
    (hybrid / ".env").unlink()
    drop_command(hybrid, command())
    done = run_cli("run", "--once", cwd=hybrid, env=env)
    assert done.returncode != 0
    assert "MEANINGS_KEY is not set" in done.stderr


def test_a_provider_without_embeddings_is_refused_by_name(hybrid: Path, env: dict[str, str]) -> None:
    done = run_cli("cortex", "query", "x", cwd=hybrid, env={**env, "COUNCIL_EMBEDDING_MODEL": "scripted:x.yaml"})
    assert done.returncode != 0
    assert "COUNCIL_EMBEDDING_MODEL" in done.stderr


def test_the_offline_engine_asks_no_server_and_says_that_it_went_by_words(
    hybrid: Path, server: FakeOpenAI, env: dict[str, str]
) -> None:
    done = run_cli("cortex", "index", cwd=hybrid, env=env)
    assert re.search(r"^files +2 added.*; 2 embedded now$", done.stdout, re.MULTILINE), done.stdout
    asked = len(server.embeddings)
    drop_command(hybrid, command(rounds=1))
    run_cli("run", "--once", "--model", "offline", cwd=hybrid, env=env)
    assert len(server.embeddings) == asked == 1


# ── the command line ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_command_line_finds_by_meaning_too_and_gemini_serves_as_well(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "docs").mkdir()
    (home / "docs" / "fleet.md").write_text(VEHICLES)
    with (home / "council.toml").open("a") as settings:
        settings.write('embedding_model = "gemini"\nembedding_dimensions = 8\nread_roots = ["docs/**"]\n')
    done = run_cli("cortex", "query", QUESTION, "--json", cwd=home, env=env)
    answer = json.loads(done.stdout)
    assert [hit["path"] for hit in answer["hits"]] == ["docs/fleet.md"]
    assert {request.model for request in fake.embeddings} == {"gemini-embedding-001"}
    assert [
        (each["taskType"], each["outputDimensionality"])
        for request in fake.embeddings
        for each in request.body["requests"]
    ] == [("RETRIEVAL_DOCUMENT", 8), ("RETRIEVAL_QUERY", 8)]


def test_nothing_of_a_passage_that_is_forgotten_stays_among_the_vectors(
    hybrid: Path, server: FakeOpenAI, env: dict[str, str]
) -> None:
    run_cli("cortex", "query", QUESTION, cwd=hybrid, env=env)
    vectors = hybrid / ".council" / "cortex" / "files" / "vectors"
    before = vectors.stat().st_size
    (hybrid / "docs" / "fleet.md").unlink()
    assert run_cli("cortex", "index", "--rebuild", cwd=hybrid, env=env).returncode == 0
    assert 0 < vectors.stat().st_size < before / 2
    assert len(server.embeddings) == 2


def test_explain_counts_the_calls_of_a_search_under_the_agent_that_asked(
    hybrid: Path, server: FakeOpenAI, fake: FakeGemini, env: dict[str, str]
) -> None:
    run_once(hybrid, fake, env)
    told = json.loads(run_cli("explain", "last", "--json", cwd=hybrid, env=env).stdout)
    embedding = [
        (call["role"], call["model"], call["tokens"]["input"])
        for call in told["calls"]
        if call["purpose"] == "embedding"
    ]
    assert embedding == [("COORDINATOR", "meanings:e-1", 5)] * 2
    assert told["missing"] == []
    assert told["calls_counted"] == receipts(hybrid)[-1]["calls"] == len(fake.requests) + 2
