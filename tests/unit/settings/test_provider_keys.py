from __future__ import annotations

import os
from pathlib import Path

import pytest

from council.redaction import MASK
from council.settings import KEY_NAMES, Home, load_provider_keys


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_the_environment_wins_over_dotenv(home: Home) -> None:
    (home.root / ".env").write_text("GEMINI_API_KEY=from-dotenv\nHF_TOKEN='quoted one'\n")
    keys = load_provider_keys(home, {"GEMINI_API_KEY": "from-environment"})
    found = {name: secret.reveal() for name in KEY_NAMES if (secret := keys.get(name))}
    assert found == {"GEMINI_API_KEY": "from-environment", "HF_TOKEN": "quoted one"}
    assert keys.sources == {"GEMINI_API_KEY": "environment", "HF_TOKEN": ".env"}


def test_an_empty_value_is_absent_and_dotenv_is_asked_next(home: Home) -> None:
    (home.root / ".env").write_text("OPENAI_API_KEY=second\nHF_TOKEN=\n")
    keys = load_provider_keys(home, {"OPENAI_API_KEY": " ", "HF_TOKEN": ""})
    assert keys.sources == {"OPENAI_API_KEY": ".env"}
    assert keys.get("HF_TOKEN") is None


def test_a_key_does_not_show_in_any_representation(home: Home) -> None:
    keys = load_provider_keys(home, {"GEMINI_API_KEY": "very-secret-value"})
    assert "very-secret-value" not in f"{keys} {keys!r} {keys.get('GEMINI_API_KEY')!r}"


def test_the_base_url_is_read_but_is_no_secret(home: Home) -> None:
    keys = load_provider_keys(home, {"GOOGLE_GEMINI_BASE_URL": "http://localhost:1", "HF_TOKEN": "Zk2LmN0pR7tQa81z"})
    assert keys.gemini_base_url == "http://localhost:1"
    assert keys.redactor.redact("http://localhost:1 Zk2LmN0pR7tQa81z") == f"http://localhost:1 {MASK}"


def test_reading_keys_neither_interpolates_nor_touches_the_process_environment(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER", "expanded")
    (home.root / ".env").write_text("GEMINI_API_KEY=a${OTHER}b\n")
    before = dict(os.environ)
    secret = load_provider_keys(home, {}).get("GEMINI_API_KEY")
    assert secret is not None
    assert secret.reveal() == "a${OTHER}b"
    assert dict(os.environ) == before


def test_any_name_can_be_asked_for_and_is_a_secret_from_then_on(home: Home) -> None:
    (home.root / ".env").write_text("ACME_KEY=Dot9env4Zk2LmN0p\n")
    keys = load_provider_keys(home, {"OTHER_KEY": "Env7Zk2LmN0pR7tQ", "UNASKED": "x" * 20})
    found = [keys.get(name) for name in ("ACME_KEY", "OTHER_KEY", "NOWHERE")]
    assert [secret and secret.reveal() for secret in found] == ["Dot9env4Zk2LmN0p", "Env7Zk2LmN0pR7tQ", None]
    assert [keys.source(name) for name in ("ACME_KEY", "OTHER_KEY", "NOWHERE")] == [".env", "environment", None]
    assert keys.redactor.redact("Dot9env4Zk2LmN0p Env7Zk2LmN0pR7tQ") == f"{MASK} {MASK}"
    assert "Dot9env4Zk2LmN0p" not in f"{keys!r}"


def test_a_variable_that_is_no_secret_is_not_made_one(home: Home) -> None:
    keys = load_provider_keys(home, {"OLLAMA_HOST": " gpu-box:11434 "})
    assert keys.variable("OLLAMA_HOST") == "gpu-box:11434"
    assert keys.variable("NOWHERE") is None
    assert keys.redactor.redact("gpu-box:11434") == "gpu-box:11434"


def test_every_value_of_dotenv_but_settings_and_addresses_is_taken_out_of_texts(home: Home) -> None:
    (home.root / ".env").write_text(
        "STAFF_PORTAL=portal-9/pass\nCOUNCIL_MODEL=gemini:gemini-2.5-pro\nHOOK=https://example.org/a\n"
    )
    told = "portal-9/pass gemini:gemini-2.5-pro https://example.org/a"
    left = load_provider_keys(home, {}).redactor.redact(told)
    assert left == "[secret] gemini:gemini-2.5-pro https://example.org/a"
