"""What is put together fits: each command type has who does its work."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from council.agents.manifest import DEFAULT_TOOLS
from council.app import build_app
from council.app.reading import build_cortex, build_search, build_tools
from council.commands.models import MODELS, AnyCommand, RunCommand
from council.redaction import Redactor
from council.settings import Home, ProviderKeys, Settings
from council.storage.paths import ConfinedRoot
from council.upkeep.forget import install
from tests.harness import make_home


def test_every_command_type_that_becomes_a_run_has_a_handler(tmp_path: Path) -> None:
    app = build_app(Home(make_home(tmp_path / "home")), Settings(model="offline"), ProviderKeys())
    install(app)
    kinds = {type_ for type_, model in MODELS.items() if model in get_args(RunCommand)}
    assert app.handlers.keys() == kinds
    app.root.close()
    app.store.close()


def test_a_persona_that_names_no_tools_may_use_all_there_are(tmp_path: Path) -> None:
    settings = Settings(model="offline")
    with ConfinedRoot(make_home(tmp_path / "home")) as root:
        tools = build_tools(root, settings, build_search(build_cortex(root, settings, Redactor()), ""))
    assert tools.names == DEFAULT_TOOLS


def test_every_command_type_can_be_told_from_the_others() -> None:
    assert set(MODELS.values()) == set(get_args(AnyCommand))
