from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from council.cli.config import app as config
from council.cli.context import CliState
from council.errors import HomeNotFound

app = typer.Typer()
app.add_typer(config, name="config")
KEY = "AIza-not-a-real-key-0001"


@pytest.fixture
def state(tmp_path: Path) -> CliState:
    for name in ("commands", "personas"):
        (tmp_path / name).mkdir()
    (tmp_path / ".env").write_text(f"GEMINI_API_KEY={KEY}\nCOUNCIL_QUIET_S=0.5\n")
    (tmp_path / "council.toml").write_text('deny = ["private/**", "x/*"]\n')
    environ = {"HF_TOKEN": "hf_another_secret_0002", "COUNCIL_MAX_ATTEMPTS": "7"}
    return CliState(home_flag=tmp_path, environ=environ)


def show(state: CliState, *options: str) -> str:
    state.desk(model="offline", watch=None)
    result = CliRunner().invoke(app, ["config", "show", *options], obj=state, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_the_table_shows_each_key_with_value_and_source(state: CliState) -> None:
    rows = [line.split() for line in show(state).splitlines()]
    for row in (
        ["model", "offline", "flag"],
        ["max_attempts", "7", "COUNCIL_MAX_ATTEMPTS", "(environment)"],
        ["quiet_s", "0.5", ".env"],
        ["deny", "private/**,", "x/*", "council.toml"],
        ["temperature", "not", "set", "default"],
        ["GEMINI_API_KEY", "set", ".env"],
        ["HF_TOKEN", "set", "environment"],
        ["OPENAI_API_KEY", "not", "set", "-"],
    ):
        assert row in rows


def test_the_json_form_says_the_same(state: CliState) -> None:
    shown = json.loads(show(state, "--json"))
    assert shown["home"] == str(state.home_flag)
    assert shown["settings"]["model"] == {"value": "offline", "source": "flag"}
    assert shown["settings"]["deny"] == {"value": ["private/**", "x/*"], "source": "council.toml"}
    assert shown["keys"]["GEMINI_API_KEY"] == {"set": True, "source": ".env"}
    assert shown["keys"]["OPENAI_API_KEY"] == {"set": False, "source": None}


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_no_secret_is_ever_printed_not_even_one_that_was_pasted_into_a_setting(
    state: CliState, options: tuple[str, ...]
) -> None:
    state.environ = {
        **state.environ,
        "COUNCIL_SEEDS_DIR": KEY,
        "COUNCIL_GEMINI_BASE_URL": "https://steward:hunter2@example.org",
        "GOOGLE_GEMINI_BASE_URL": "https://steward:hunter2@example.org",
    }
    text = show(state, *options)
    assert "[secret]" in text
    assert [secret for secret in (KEY, "hf_another_secret_0002", "hunter2") if secret in text] == []


def test_what_is_odd_in_dotenv_is_said_once_on_stderr(state: CliState, capsys: pytest.CaptureFixture[str]) -> None:
    (state.desk().home.root / ".env").write_text("COUNCIL_MODLE=offline\n")
    assert state.desk().settings == state.desk().settings
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "warning: skipped: COUNCIL_MODLE in .env is not a setting. Fix: did you mean COUNCIL_MODEL?"
    ]


def test_a_missing_home_is_an_error_for_the_top_command_to_print(tmp_path: Path) -> None:
    with pytest.raises(HomeNotFound):
        CliRunner().invoke(app, ["config", "show"], obj=CliState(home_flag=tmp_path / "no"), catch_exceptions=False)


def test_what_agents_never_read_is_listed_and_what_the_default_leaves_out(state: CliState) -> None:
    told, value = show(state), json.loads(show(state, "--json"))
    assert "Agents never read: .env*, " in told
    assert "*credentials*" in told
    assert "The default read_roots leave out: .*" in told
    assert {"*.pem", "council.toml", ".kube", "*.kdbx"} <= {*value["never_read"]}
    assert value["left_out"][0] == ".*"
