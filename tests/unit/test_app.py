"""What is put together fits: each command type has who does its work."""

from __future__ import annotations

from pathlib import Path

from council.agents.manifest import DEFAULT_TOOLS
from council.app import build_app
from council.app.reading import build_cortex, build_texts, build_tools
from council.knowledge.cortex.meaning import Search
from council.redaction import Redactor
from council.settings import Home, ProviderKeys, Settings
from council.storage.paths import ConfinedRoot
from council.upkeep.house import ALL_SYSTEMS, COMMANDS
from tests.harness import make_home, opened


def test_every_command_type_that_becomes_a_run_has_a_handler(tmp_path: Path) -> None:
    home, settings = Home(make_home(tmp_path / "home")), Settings(model="offline")
    app = build_app(home, settings, ProviderKeys(), systems=ALL_SYSTEMS)
    assert app.handlers.keys() == {type_.name for type_ in COMMANDS if not type_.is_control}
    assert {type_.name for type_ in COMMANDS if type_.is_control} == {"cancel", "resume", "retry"}
    app.root.close()
    app.store.close()


def test_a_persona_that_names_no_tools_may_use_all_there_are(tmp_path: Path) -> None:
    settings = Settings(model="offline")
    home = make_home(tmp_path / "home")
    with ConfinedRoot(home) as root, opened(home) as store:
        texts = build_texts(root, settings)
        tools = build_tools(texts, settings, Search(build_cortex(texts, settings, Redactor(), store), ""))
    assert tools.names == DEFAULT_TOOLS
