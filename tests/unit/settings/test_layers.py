from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from council.errors import ConfigError
from council.settings import DEFAULT_MODEL, Home, LoadedSettings, Settings, load_settings

FLAGS = {"model": "scripted:flag.json"}
ENVIRON = {"COUNCIL_MODEL": "scripted:environ.json"}
DOTENV = "COUNCIL_MODEL=scripted:dotenv.json\n"
TOML = 'model = "scripted:toml.json"\n'


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def write(home: Home, *, dotenv: str = "", toml: str = "") -> None:
    (home.root / ".env").write_text(dotenv)
    (home.root / "council.toml").write_text(toml)


def load(
    home: Home, *, flags: dict[str, object] | None = None, environ: dict[str, str] | None = None
) -> LoadedSettings:
    return load_settings(home, flags=flags or {}, environ=environ or {})


def refusal(home: Home, *, flags: dict[str, object] | None = None, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(home, flags=flags, environ=environ)
    return str(caught.value)


def test_without_anything_every_setting_is_its_default(home: Home) -> None:
    loaded = load(home)
    assert loaded.settings == Settings()
    assert loaded.settings.model == DEFAULT_MODEL
    assert set(loaded.sources.values()) == {"default"}
    assert set(loaded.sources) == set(Settings.model_fields)


@pytest.mark.parametrize(
    ("flags", "environ", "dotenv", "toml", "model", "source"),
    [
        (FLAGS, ENVIRON, DOTENV, TOML, "scripted:flag.json", "flag"),
        ({}, ENVIRON, DOTENV, TOML, "scripted:environ.json", "COUNCIL_MODEL (environment)"),
        ({}, {}, DOTENV, TOML, "scripted:dotenv.json", ".env"),
        ({}, {}, "", TOML, "scripted:toml.json", "council.toml"),
        ({}, {}, "", "", DEFAULT_MODEL, "default"),
    ],
)
def test_each_layer_wins_over_those_below_it_and_is_named_as_the_source(
    home: Home, flags: dict[str, object], environ: dict[str, str], dotenv: str, toml: str, model: str, source: str
) -> None:
    write(home, dotenv=dotenv, toml=toml)
    loaded = load(home, flags=flags, environ=environ)
    assert (loaded.settings.model, loaded.sources["model"]) == (model, source)


def test_layers_are_merged_key_by_key(home: Home) -> None:
    write(home, dotenv="COUNCIL_QUIET_S=2\n", toml="max_attempts = 7\nquiet_s = 9\n")
    loaded = load(home, flags={"watch": "poll"}, environ={"COUNCIL_TEMPERATURE": "0.5"})
    settings = loaded.settings
    assert (settings.watch, settings.temperature, settings.quiet_s, settings.max_attempts) == ("poll", 0.5, 2.0, 7)


def test_a_flag_that_is_none_was_not_given(home: Home) -> None:
    loaded = load(home, flags={"model": None}, environ=ENVIRON)
    assert loaded.sources["model"] == "COUNCIL_MODEL (environment)"


def test_an_empty_variable_is_an_absent_one(home: Home) -> None:
    assert load(home, environ={"COUNCIL_MODEL": ""}).sources["model"] == "default"


def test_only_the_given_environment_counts(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNCIL_MODEL", "offline")
    assert load(home).settings.model == DEFAULT_MODEL
    assert Settings().model == DEFAULT_MODEL


def test_loading_leaves_the_process_environment_as_it_was(home: Home) -> None:
    write(home, dotenv="COUNCIL_MODEL=offline\nGEMINI_API_KEY=abc\n")
    before = dict(os.environ)
    load(home)
    assert dict(os.environ) == before


@pytest.mark.parametrize("text", ["docs/**,notes/*.md", " docs/** , notes/*.md ,", '["docs/**", "notes/*.md"]'])
def test_a_list_from_the_environment_is_json_or_separated_by_commas(home: Home, text: str) -> None:
    assert load(home, environ={"COUNCIL_READ_ROOTS": text}).settings.read_roots == ("docs/**", "notes/*.md")


def test_an_empty_list_can_be_said(home: Home) -> None:
    assert load(home, environ={"COUNCIL_READ_ROOTS": "[]"}).settings.read_roots == ()


def test_an_unknown_key_in_council_toml_names_the_file_and_the_nearest_key(home: Home) -> None:
    write(home, toml="max_paralel_runs = 2\n")
    assert refusal(home) == (
        "`max_paralel_runs` in council.toml is not a setting. Fix: did you mean max_parallel_runs?"
    )


def test_an_unknown_variable_is_named_with_the_nearest_variable(home: Home) -> None:
    assert refusal(home, environ={"COUNCIL_MODLE": "offline"}) == (
        "COUNCIL_MODLE (environment) is not a setting. Fix: did you mean COUNCIL_MODEL?"
    )


def test_an_unknown_flag_is_named_with_the_nearest_flag(home: Home) -> None:
    assert refusal(home, flags={"log_levle": "debug"}) == (
        "--log-levle is not a setting. Fix: did you mean --log-level?"
    )


def test_a_key_of_commands_is_not_taken_for_a_setting_that_sounds_a_little_like_it(home: Home) -> None:
    write(home, toml="early_stop = true\n")
    assert refusal(home) == (
        "`early_stop` in council.toml is not a setting. Fix: `council config show` lists every setting."
    )


def test_a_key_unlike_any_other_is_answered_with_where_to_look(home: Home) -> None:
    assert "`council config show` lists every setting" in refusal(home, environ={"COUNCIL_ZZZZ": "1"})


def test_a_provider_key_in_council_toml_is_sent_to_its_place_and_not_shown(home: Home) -> None:
    write(home, toml='GEMINI_API_KEY = "AIzaVerySecretValue"\n')
    text = refusal(home)
    assert "put it into the environment or .env under that name" in text
    assert "AIzaVerySecretValue" not in text


@pytest.mark.parametrize("name", ["COUNCIL_HOME", "COUNCIL_TEST_NO_SKIP", "COUNCIL_TEST_ANYTHING"])
def test_reserved_names_are_neither_settings_nor_errors(home: Home, name: str) -> None:
    write(home, dotenv=f"{name}=1\n")
    loaded = load(home, environ={name: "1"})
    assert (loaded.settings, loaded.warnings) == (Settings(), ())


def test_variables_of_other_programs_are_none_of_our_business(home: Home) -> None:
    write(home, dotenv="FOO=1\nMODEL=x\n")
    loaded = load(home, environ={"PATH": "/bin", "MODEL": "x"})
    assert (loaded.settings, loaded.warnings) == (Settings(), ())


def test_an_unknown_name_in_dotenv_is_a_warning(home: Home) -> None:
    write(home, dotenv="COUNCIL_MODLE=offline\n")
    loaded = load(home)
    assert loaded.settings == Settings()
    assert loaded.warnings == ("skipped: COUNCIL_MODLE in .env is not a setting. Fix: did you mean COUNCIL_MODEL?",)


def test_a_wrong_value_in_dotenv_is_an_error_that_names_the_place(home: Home) -> None:
    write(home, dotenv="COUNCIL_MAX_PARALLEL_RUNS=many\n", toml="max_parallel_runs = 2\n")
    with pytest.raises(ConfigError, match=r'max_parallel_runs cannot be "many", as \.env has it\.'):
        load(home)


def test_what_is_to_be_done_about_a_wrong_value_is_its_fix(home: Home) -> None:
    write(home, toml='fallback_models = ["offline"]\n')
    assert refusal(home).endswith(": offline cannot be a fallback model. Fix: remove it from the list")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00broken", b"=\n'''\n\"unclosed\n", b"export\n====\nCOUNCIL_MODEL"])
def test_a_dotenv_that_makes_no_sense_is_no_error(home: Home, content: bytes) -> None:
    (home.root / ".env").write_bytes(content)
    assert load(home).settings == Settings()


@pytest.mark.parametrize("name", [".env", "council.toml"])
def test_a_file_too_large_for_settings_is_an_error_that_names_it_and_its_size(home: Home, name: str) -> None:
    (home.root / name).write_bytes(b"# a line\n" * 20_000)
    said = refusal(home)
    assert f"{home.root / name} has 180,000 bytes, and at most 131,072 are read. Fix: keep the " in said


def test_a_folder_called_dotenv_is_no_error(home: Home) -> None:
    (home.root / ".env").mkdir()
    assert load(home).settings == Settings()


def test_a_dotenv_saved_with_a_byte_order_mark_is_read_from_its_first_line(home: Home) -> None:
    (home.root / ".env").write_bytes(b"\xef\xbb\xbfCOUNCIL_MODEL=offline\n")
    assert load(home).settings.model == "offline"


def test_dotenv_values_are_taken_as_they_stand(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHO", "outside")
    write(home, dotenv="COUNCIL_MODEL=scripted:${WHO}.json\n")
    assert load(home).settings.model == "scripted:${WHO}.json"


@pytest.mark.parametrize(
    ("toml", "line", "column"),
    [('model = "offline"\nquiet_s = = 1\n', 2, 11), ("model = offline\n", 1, 9), ('model = """a\nb', 2, 2)],
)
def test_a_toml_syntax_error_says_line_and_column(home: Home, toml: str, line: int, column: int) -> None:
    write(home, toml=toml)
    with pytest.raises(ConfigError) as caught:
        load(home)
    assert f"at line {line}, column {column}." in caught.value.message
    assert str(home.root / "council.toml") in caught.value.message
    assert (caught.value.data["line"], caught.value.data["column"]) == (line, column)


def test_a_council_toml_that_is_not_text_is_a_config_error(home: Home) -> None:
    (home.root / "council.toml").write_bytes(b"model = '\xff'")
    assert "cannot be read (UnicodeDecodeError)" in refusal(home)


def test_a_wrong_value_is_told_with_key_source_value_and_range(home: Home) -> None:
    text = refusal(home, environ={"COUNCIL_MAX_PARALLEL_RUNS": "900"})
    assert text == (
        'max_parallel_runs cannot be "900", as COUNCIL_MAX_PARALLEL_RUNS (environment) has it. '
        "Fix: max_parallel_runs takes a whole number from 1 to 64."
    )


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ('http = "8420"', 'http cannot be "8420"@. Fix: http takes host:port; empty: no server.'),
        ('temperature = "warm"', 'temperature cannot be "warm"@. Fix: temperature takes a number from 0 to 2.'),
        ("max_rounds = 2.5", "max_rounds cannot be 2.5@. Fix: max_rounds takes a whole number from 1 to 100."),
        ("agents = [1]", "agents.0 cannot be 1@. Fix: agents takes a list of at most 9 roles."),
        ("http = 2026-01-01", 'http cannot be "2026-01-01"@. Fix: http takes host:port; empty: no server.'),
        ("http = {a = 1}", "http does not fit@. Fix: http takes host:port; empty: no server."),
        ('timezone = "berlin"', 'timezone cannot be "berlin"@: not a time zone. Fix: did you mean Europe/Berlin?'),
        (
            'timezone = "Mars/X"',
            'timezone cannot be "Mars/X"@: not a time zone. '
            "Fix: timezone takes an IANA name such as Europe/Berlin; empty: the zone of the machine.",
        ),
        (
            "prices = {m = {input = -1, output = 1}}",
            "prices.m.input cannot be -1@. Fix: input takes a number of at least 0.",
        ),
        (
            "prices = {m = {output = 1}}",
            "prices.m does not fit@: it lacks input. "
            "Fix: prices takes a table per model with input, output and, if it differs, cached.",
        ),
        (
            "prices = {m = {input = 1, output = 1, cache = 1}}",
            "prices.m does not fit@: cache is not among its keys. "
            "Fix: prices takes a table per model with input, output and, if it differs, cached.",
        ),
        (
            'providers = {mine = {key_env = "a b"}}',
            'providers.mine.key_env cannot be "a b"@. Fix: key_env takes the name of a variable; empty: no key.',
        ),
        (
            'providers = {mine = {json_mode = "xml"}}',
            'providers.mine.json_mode cannot be "xml"@. Fix: json_mode takes schema, object or none.',
        ),
    ],
)
def test_a_wrong_value_is_told_in_the_words_of_its_setting(home: Home, toml: str, told: str) -> None:
    write(home, toml=f"{toml}\n")
    assert refusal(home) == told.replace("@", ", as council.toml has it")


def test_no_setting_tells_of_a_wrong_value_in_pydantics_words(home: Home) -> None:
    for key in Settings.model_fields:
        write(home, toml=f"{key} = {{ a = [[]] }}\n")
        assert not re.search("Input|String|Tuple|valid|pattern", refusal(home)), key


def test_a_wrong_value_names_the_file_it_came_from_and_no_flag_which_is_before_the_eyes(home: Home) -> None:
    assert refusal(home, flags={"watch": "never"}).startswith('watch cannot be "never". ')
    write(home, toml="quiet_s = -1\n")
    assert ", as council.toml has it." in refusal(home)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model", "AIzaSyA1234567890"),
        ("model", "sk-abcdefghijklmnop"),
        ("gemini_base_url", "ftp://steward:hunter2@example.org"),
        ("log_format", "0123456789abcdef0123456789abcdef"),
    ],
)
def test_a_wrong_value_that_looks_like_a_secret_is_not_repeated(home: Home, key: str, value: str) -> None:
    text = refusal(home, environ={f"COUNCIL_{key.upper()}": value})
    assert f"{key} cannot be [secret]" in text
    assert value not in text


def test_a_fault_in_a_providers_table_is_told_with_its_place(home: Home) -> None:
    write(home, toml='[providers.mine]\nbase_url = "ftp://gpu-box"\n')
    text = refusal(home)
    assert text.startswith('providers.mine.base_url cannot be "ftp://gpu-box", as council.toml has it: not an http or ')
    write(home, toml="[providers.mine]\ncontext_tokens = 7\n")
    assert refusal(home) == (
        "providers.mine.context_tokens cannot be 7, as council.toml has it. "
        "Fix: context_tokens takes a whole number from 512 to 1000000000."
    )


@pytest.mark.parametrize(
    "line", ['api_key = "hunter2"', 'headers = { Authorization = "hunter2" }', 'base_url = "http://me:hunter2@box/v1"']
)
def test_a_key_in_a_providers_table_is_sent_to_its_place_and_not_shown(home: Home, line: str) -> None:
    write(home, toml=f"[providers.mine]\n{line}\n")
    text = refusal(home)
    assert "name the key's variable with key_env" in text
    assert "hunter2" not in text


def test_providers_can_come_from_the_environment(home: Home) -> None:
    loaded = load(home, environ={"COUNCIL_PROVIDERS": '{"mine": {"base_url": "http://gpu-box/v1"}}'})
    assert loaded.settings.providers["mine"].base_url == "http://gpu-box/v1"
