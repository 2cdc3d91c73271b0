from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from council.settings import DEFAULT_MODEL, Settings, allowed_values
from council.settings.table import PriceSetting, ProviderSetting

BOUNDS = [
    ("request_timeout_s", 1, 3600),
    ("temperature", 0, 2),
    ("model_attempts", 1, 10),
    ("max_parallel_runs", 1, 64),
    ("settle_s", 0.1, 3600),
    ("max_command_bytes", 1, 1_048_576),
]


@pytest.mark.parametrize(("key", "least", "most"), BOUNDS)
def test_both_ends_of_a_range_are_allowed_and_beyond_them_nothing(key: str, least: float, most: float) -> None:
    assert [getattr(Settings.model_validate({key: value}), key) for value in (least, most)] == [least, most]
    for outside in (least - 0.1 if key in ("settle_s", "temperature") else least - 1, most + 1):
        with pytest.raises(ValidationError):
            Settings.model_validate({key: outside})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("gemini", DEFAULT_MODEL),
        ("gemini:gemini-2.5-pro", "gemini:gemini-2.5-pro"),
        ("scripted:talk.json", "scripted:talk.json"),
        ("offline", "offline"),
        ("kairos", "kairos"),
        ("ollama:qwen2.5:7b", "ollama:qwen2.5:7b"),
        ("my-server_2:org/name", "my-server_2:org/name"),
    ],
)
def test_a_model_has_one_of_these_forms(given: str, meant: str) -> None:
    assert Settings(model=given).model == meant


@pytest.mark.parametrize(
    "given", ["", "gemini:", "scripted", "scripted: ", "gpt-9", "offline:x", "Gemini", "ollama", "a b:x", "x:\x1b[0m"]
)
def test_any_other_form_of_a_model_is_refused(given: str) -> None:
    with pytest.raises(ValidationError):
        Settings(model=given)


def test_a_name_that_no_model_has_is_not_suggested() -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(model="gpt4")
    assert "did you mean" not in str(refused.value)


@pytest.mark.parametrize("glob", ["/etc/**", "../other/**", "docs/../../x", "~/x", ""])
@pytest.mark.parametrize("key", ["read_roots", "deny"])
def test_a_glob_that_leaves_the_home_is_refused(key: str, glob: str) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({key: [glob]})


@pytest.mark.parametrize("key", ["read_roots", "deny"])
def test_a_glob_longer_than_any_path_is_refused(key: str) -> None:
    with pytest.raises(ValidationError, match="at most 1024 characters"):
        Settings.model_validate({key: ["a" * 1025]})


def test_true_is_no_value_for_a_setting_that_is_no_switch() -> None:
    others = {key: True for key, field in Settings.model_fields.items() if field.annotation is not bool}
    with pytest.raises(ValidationError) as refused:
        Settings.model_validate(others)
    assert {error["loc"][0] for error in refused.value.errors()} == others.keys()


def test_every_setting_says_what_it_means_and_what_it_takes() -> None:
    for key, field in Settings.model_fields.items():
        assert str(field.description).endswith("."), key
        assert allowed_values(key)
    for table in (ProviderSetting, PriceSetting):
        assert all(allowed_values(key, table) for key in table.model_fields)


PROVIDERS_THAT_DO_NOT_FIT: list[dict[str, object]] = [
    {"Ollama": {}},
    {"a b": {}},
    {"x" * 33: {}},
    {"offline": {}},
    {"scripted": {"context_tokens": 1000}},
    {"mine": {"base_url": "ftp://host"}},
    {"mine": {"base_url": "gpu-box:8000/v1"}},
    {"mine": {"base_url": "http://me:hunter2@gpu-box/v1"}},
    {"mine": {"key_env": "two words"}},
    {"mine": {"api_key": "x"}},
    {"mine": {"token": "x"}},
    {"mine": {"headers": {"Authorization": "Bearer x"}}},
    {"mine": {"headers": {"X-Api-Key": "x"}}},
    {"mine": {"headers": {"X-Team": "a\r\nX-Other: b"}}},
    {"mine": {"context_tokens": 1}},
    {"mine": {"max_output_tokens": True}},
    {"mine": {"temperature": 3}},
    {"mine": {"json_mode": "xml"}},
    {"mine": "http://gpu-box/v1"},
]


@pytest.mark.parametrize("tables", PROVIDERS_THAT_DO_NOT_FIT, ids=str)
def test_a_providers_table_that_cannot_be_is_refused(tables: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"providers": tables})


def test_a_providers_table_holds_what_is_set_and_what_an_installed_provider_may_want() -> None:
    table = {"base_url": "http://gpu-box:8000/v1", "key_env": "", "region": "north"}
    assert Settings.model_validate({"providers": {"mine": table}}).providers["mine"].options() == table


def test_settings_cannot_be_changed_after_loading() -> None:
    settings = Settings()
    with pytest.raises(ValidationError):
        settings.model = "offline"


def test_the_level_may_be_written_in_capitals() -> None:
    assert Settings.model_validate({"log_level": "INFO"}).log_level == "info"


def test_importing_settings_loads_no_heavy_library() -> None:
    heavy = ["google.genai", "docker", "fastapi", "sqlalchemy", "numpy", "typer", "rich", "httpx2"]
    script = f"import sys, council.settings; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hunter2hunter2@host/db", "postgresql://u:pa/ss@host/db", "postgresql://u:pa?ss@host/db",
        "postgresql://u:pa#ss@host/db", "postgresql://u:p@ss@host/db", "postgresql://host/db?password=hunter2hunter2",
        "postgresql://host/db?passwor%64=hunter2hunter2",
    ],
)  # fmt: skip
def test_a_database_url_with_a_password_is_refused_however_it_is_spelled(url: str) -> None:
    with pytest.raises(ValidationError, match="password does not belong"):
        Settings(database_url=url)


def test_a_database_url_without_a_password_is_taken() -> None:
    url = "postgresql://council@db-host:5432/council?sslmode=require"
    assert Settings(database_url=url).database_url == url
