"""`council models`: what is there, whether it works from here, and what is said when it does not; through the real program."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import fake_gemini, fake_openai
from tests.fake_gemini import FakeGemini
from tests.fake_openai import FakeOpenAI, FakeReply, Manners, RecordedRequest, error, text
from tests.harness import environment, run_cli

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(reply=able) as fake:
        yield fake


def able(request: RecordedRequest) -> FakeReply:
    """A model that does what it is told."""
    if "tools" in request.body:
        return fake_openai.tool_call("report", '{"ready": true}')
    if "response_format" in request.body:
        return text('{"ready": true}')
    return text("ready", prompt=20, output=3)


def models(home: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    done = run_cli("models", *arguments, cwd=home, env=environment(**env))
    assert KEY not in done.stdout + done.stderr
    return done


def answered(home: Path, *arguments: str, **env: str) -> dict[str, Any]:
    done = models(home, *arguments, "--json", **env)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(done.stdout)
    return content


# --- list -------------------------------------------------------------------------------------------------------------


def test_the_list_tells_the_model_in_use_every_provider_and_which_keys_are_there(
    home: Path, server: FakeOpenAI
) -> None:
    with (home / "council.toml").open("a") as settings:
        settings.write(f'[providers.gpu-box]\nbase_url = "{server.url}"\nkey_env = "GPU_BOX_KEY"\n')
    (home / ".env").write_text(f"HF_TOKEN={KEY}\n")
    env = {"COUNCIL_MODEL": "kairos", "OPENAI_API_KEY": KEY, "OLLAMA_HOST": "127.0.0.1:9"}
    content = answered(home, "list", **env)
    chosen = {name: content["chosen"][name] for name in ("name", "source", "context_tokens", "price")}
    assert chosen == {
        "name": "kairos:Qwen/Qwen2.5-7B-Instruct",
        "source": "COUNCIL_MODEL (environment)",
        "context_tokens": 131_072,
        "price": None,
    }
    keys = {known["name"]: known["key"]["source"] for known in content["providers"]}
    assert (keys["openai"], keys["kairos"], keys["gemini"], keys["gpu-box"]) == ("environment", ".env", None, None)
    assert content["ollama"]["error"] != ""
    shown = models(home, "list", **env).stdout
    assert "kairos:Qwen/Qwen2.5-7B-Instruct, from COUNCIL_MODEL (environment)" in shown
    assert "set (.env)" in shown
    assert "GPU_BOX_KEY not set" in shown
    assert "price    unknown" in shown


def test_a_local_ollama_is_found_by_itself_with_its_models(home: Path, server: FakeOpenAI) -> None:
    server.listed = [{"id": "qwen2.5:7b"}, {"id": "gemma3:4b"}]
    shown = models(home, "list", OLLAMA_HOST=server.root).stdout
    assert "Ollama is here:\n  ollama:gemma3:4b\n  ollama:qwen2.5:7b\n" in shown
    assert "needs a key, and GEMINI_API_KEY is not set" in shown  # of the model in use


def test_a_provider_that_is_not_configured_is_asked_for_its_models(home: Path, server: FakeOpenAI) -> None:
    server.manners = Manners(key=KEY)
    server.listed = [{"id": "gpt-4o-mini", "context_length": 128_000}]
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
    assert models(home, "list", "openai", **env).stdout == "  openai:gpt-4o-mini  128000 tokens\n"
    refused = models(home, "list", "openai", **{**env, "OPENAI_API_KEY": "wrong-key-0123456789"})
    assert refused.returncode == 1
    assert "check OPENAI_API_KEY in .env" in refused.stdout
    unknown = models(home, "list", "olama")
    assert (unknown.returncode, "did you mean ollama?" in unknown.stderr) == (3, True)
    unasked = models(home, "list", "offline")
    assert (unasked.returncode, "cannot be asked" in unasked.stdout) == (1, True)


def test_gemini_is_asked_for_the_models_that_its_key_can_use(home: Path) -> None:
    with FakeGemini() as google:
        google.listed = [
            {
                "name": "models/gemini-2.5-flash",
                "inputTokenLimit": 1_048_576,
                "supportedGenerationMethods": ["generateContent"],
            },
            {
                "name": "models/gemini-embedding-001",
                "inputTokenLimit": 2_048,
                "supportedGenerationMethods": ["embedContent"],
            },
            {"name": "models/veo-9", "supportedGenerationMethods": ["predictLongRunning"]},
        ]
        shown = models(home, "list", "gemini", GEMINI_API_KEY=KEY, GOOGLE_GEMINI_BASE_URL=google.url)
    assert shown.stdout == "  gemini:gemini-2.5-flash      1048576 tokens\n  gemini:gemini-embedding-001  2048 tokens\n"
    none = models(home, "list", "gemini", GEMINI_API_KEY=KEY, GOOGLE_GEMINI_BASE_URL="http://127.0.0.1:9")
    assert (none.returncode, "connection refused" in none.stdout) == (1, True)


def test_a_gemini_key_under_another_name_is_named_so_and_none_is_refused(home: Path) -> None:
    with FakeGemini() as google:
        google.reply = lambda request: fake_gemini.error(400, "API_KEY_INVALID", message="API key not valid.")
        (home / "council.toml").write_text('[providers.gemini]\nkey_env = "MY_GOOGLE_KEY"\n')
        refused = models(home, "test", "gemini", MY_GOOGLE_KEY=KEY, GOOGLE_GEMINI_BASE_URL=google.url)
    assert "check MY_GOOGLE_KEY in .env" in refused.stderr
    (home / "council.toml").write_text('[providers.gemini]\nkey_env = ""\n')
    none = models(home, "test", "gemini", GEMINI_API_KEY=KEY)
    assert (none.returncode, "key_env in [providers.gemini] names none" in none.stderr) == (3, True)


# --- test -------------------------------------------------------------------------------------------------------------


def test_a_misspelled_model_is_refused_without_a_word_of_a_flag_that_nobody_gave(home: Path) -> None:
    done = models(home, "test", "gemni")
    assert done.returncode == 3
    assert done.stderr.startswith('error (config_invalid): model cannot be "gemni": ')


def test_a_trial_tells_latency_tokens_and_what_works(home: Path, server: FakeOpenAI) -> None:
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
    content = answered(home, "test", "openai:gpt-4o-mini", **env)
    assert (content["answers"], content["model"], content["words"]) == (True, "openai:gpt-4o-mini", "ready")
    assert (content["usage"]["input_tokens"], content["usage"]["output_tokens"]) == (20, 3)
    assert content["latency_s"] > 0
    assert content["price"]["input"] == 0.15
    assert {feature["name"]: feature["works"] for feature in content["features"]} == {
        "streaming": "yes",
        "JSON mode": "yes",
        "native tools": "yes",
    }
    assert len(server.requests) == 4
    shown = models(home, "test", "--quick", "openai:gpt-4o-mini", **env).stdout
    assert "s: ready (20 + 3 tokens)" in shown
    assert len(server.requests) == 5


def test_a_trial_tells_what_a_server_does_not_have(home: Path, server: FakeOpenAI) -> None:
    server.manners = Manners(response_format="none", tools=False)
    server.reply = lambda request: text("ready", streams=False, counted=False)
    server.loaded = [{"name": "qwen2.5:latest", "context_length": 2048}]
    done = models(home, "test", "ollama:qwen2.5", OLLAMA_HOST=server.root)
    assert done.returncode == 0
    assert "ready (tokens not counted)" in done.stdout
    assert "streaming     no: the answer came in one piece" in done.stdout
    assert "JSON mode     no: the server does not support it" in done.stdout
    assert "native tools  no: the server refused them" in done.stdout
    assert "4096 tokens, but the server holds only 2048 and cuts the rest off" in done.stdout
    assert "price         unknown" in done.stdout


def test_a_failure_that_passes_does_not_say_that_a_server_lacks_a_thing(home: Path, server: FakeOpenAI) -> None:
    cut = '{"choices":[{"message":{"content":"ready \\ud83d"},"finish_reason":"stop"}]}'
    server.reply = fake_openai.in_turn(fake_openai.raw(cut), error(503, "Loading model"))
    done = models(home, "test", "openai:gpt-4o-mini", OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url)
    assert done.returncode == 0, done.stderr
    assert "ready \ufffd (tokens not counted)" in done.stdout
    assert done.stdout.count("  unclear: openai:gpt-4o-mini answered 503: Loading model.") == 3


def test_a_model_that_is_reached_and_only_thinks_has_been_reached(home: Path, server: FakeOpenAI) -> None:
    server.reply = lambda request: text("<think>Hm", finish="length")
    content = answered(home, "test", "ollama:r1", OLLAMA_HOST=server.root)
    assert (content["answers"], content["words"]) == (True, "no text (length)")
    assert {feature["works"] for feature in content["features"]} == {"unclear"}


@pytest.mark.parametrize(
    ("reply", "code", "fix"),
    [
        (error(401, f"Incorrect API key provided: {KEY}"), "model_auth", "check OPENAI_API_KEY"),
        (error(404, "The model does not exist", code="model_not_found"), "model_not_found", "council models list"),
    ],
    ids=["key", "model"],
)
def test_a_trial_that_fails_says_why_how_to_mend_it_and_with_its_exit_code(
    home: Path, server: FakeOpenAI, reply: FakeReply, code: str, fix: str
) -> None:
    server.reply = lambda request: reply
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
    done = models(home, "test", "openai:x", **env)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"error ({code})" in done.stderr
    assert fix in done.stderr
    told = models(home, "test", "openai:x", "--json", **env)
    assert told.returncode == 1
    failure = json.loads(told.stdout)
    assert (failure["answers"], failure["error"]["code"]) == (False, code)
    assert len(server.requests) == 2


def test_a_model_without_its_key_or_its_provider_is_a_setting_to_mend(home: Path) -> None:
    for model, said in (
        ("kairos", "HF_TOKEN is not set"),
        ("olama:x", "did you mean ollama?"),
        ("openai", "it needs a provider and a model"),
    ):
        done = models(home, "test", model)
        assert done.returncode == 3
        assert said in done.stderr


# --- all that is named ------------------------------------------------------------------------------------------------


def test_the_list_tells_every_model_that_is_named_and_who_asks_it(home: Path, server: FakeOpenAI) -> None:
    with (home / "council.toml").open("a") as settings:
        settings.write('fallback_models = ["openai:gpt-4o-mini", "gemini:gemini-2.5-flash-lite"]\n')
        settings.write('embedding_model = "openai:text-embedding-3-small"\n')
        settings.write('agent_models = { AUDITOR = ["openai:gpt-4o", "ollama:qwen3"] }\n')
    persona = home / "personas" / "strategist.md"
    persona.write_text(persona.read_text().replace("role: STRATEGIST\n", "role: STRATEGIST\nmodel: kairos:reasoning\n"))
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url, "HF_TOKEN": KEY, "OLLAMA_HOST": "127.0.0.1:9"}
    content = answered(home, "list", **env)
    assert [(used["name"], used["by"], used["source"], used["error"] != "") for used in content["also"]] == [
        ("openai:gpt-4o", "AUDITOR", "agent_models", False),
        ("ollama:qwen3", "AUDITOR instead of openai:gpt-4o", "agent_models", False),
        ("kairos:deepseek-ai/DeepSeek-R1", "STRATEGIST", "its persona", False),
        ("openai:gpt-4o-mini", "any agent, as a fallback", "fallback_models", False),
        ("gemini:gemini-2.5-flash-lite", "any agent, as a fallback", "fallback_models", True),
        ("openai:text-embedding-3-small", "QUERY_CORTEX", "embedding_model", False),
    ]
    assert content["also"][3]["price"]["input"] == 0.15
    shown = models(home, "list", **env).stdout
    assert "ollama:qwen3" in shown
    assert "GEMINI_API_KEY is not set" in shown
    assert [line.split()[0] for line in shown.splitlines() if line.endswith("0.02 in, 0 out")] == [
        "openai:text-embedding-3-small"
    ]


def test_the_embedding_model_is_tried_with_the_model_in_use_and_by_its_own_name(home: Path, server: FakeOpenAI) -> None:
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url, "COUNCIL_MODEL": "openai:gpt-4o-mini"}
    env["COUNCIL_EMBEDDING_MODEL"] = "openai:text-embedding-3-small"
    content = answered(home, "test", "--quick", **env)
    embedding = content["embedding"]
    assert (content["model"], embedding["model"]) == ("openai:gpt-4o-mini", "openai:text-embedding-3-small")
    assert (embedding["answers"], embedding["dimensions"], embedding["usage"]["input_tokens"]) == (True, 8, 5)
    assert embedding["related"] > 0.9 > 0.2 > embedding["unrelated"]
    shown = models(home, "test", "openai:text-embedding-3-small", **env).stdout
    assert "tells apart   yes" in shown
    assert len(server.requests) == 1
    server.embed_reply = lambda request: error(404, "The model does not exist", code="model_not_found")
    failed = models(home, "test", "--quick", **env)
    assert (failed.returncode, "error (model_not_found)" in failed.stderr) == (1, True)
    assert "ready (20 + 3 tokens)" in failed.stdout
