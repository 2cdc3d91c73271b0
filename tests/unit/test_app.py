"""What is put together fits: each command type has who does its work."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from council.app import build_app
from council.commands.models import MODELS, AnyCommand, RunCommand
from council.settings import Home, ProviderKeys, Settings
from council.upkeep.forget import install
from tests.harness import make_home


def test_every_command_type_that_becomes_a_run_has_a_handler(tmp_path: Path) -> None:
    app = build_app(Home(make_home(tmp_path / "home")), Settings(model="offline"), ProviderKeys())
    install(app)
    kinds = {type_ for type_, model in MODELS.items() if model in get_args(RunCommand)}
    assert app.handlers.keys() == kinds
    app.root.close()
    app.ledger.close()


def test_every_command_type_can_be_told_from_the_others() -> None:
    assert set(MODELS.values()) == set(get_args(AnyCommand))
