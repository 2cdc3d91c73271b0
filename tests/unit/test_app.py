"""What is put together fits: each command type has who does its work."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path

import pytest

from council.agents.manifest import DEFAULT_TOOLS
from council.app import build_app
from council.app.knowledge_tools import build_cortex, build_library, build_texts, build_tools
from council.deliberation.system import DELIBERATION
from council.desk.all_systems import house
from council.errors import ConfigError
from council.knowledge.cortex.hybrid_search import Search
from council.redaction import Redactor
from council.settings import Home, ProviderKeys, Settings
from council.storage.paths import ConfinedRoot
from council.systems import LateHandler, System
from tests.harness import make_home, opened
from tests.sample_system import SAMPLE

NOTE, RING = SAMPLE.commands


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (replace(SAMPLE, handlers=lambda core: {}), "'note' has no handler"),
        (replace(SAMPLE, controls=lambda core: {}), "'ring' has no handler"),
        (replace(DELIBERATION, name="again"), "two command types 'deliberate'"),
        (replace(SAMPLE, commands=(replace(NOTE, names=frozenset({"abuot"})), RING)), "'abuot', which is not a key"),
    ],
)
def test_a_system_that_does_not_fit_is_refused_before_anything_begins(tmp_path: Path, wrong: System, told: str) -> None:
    home, settings = Home(make_home(tmp_path / "home")), Settings(model="offline")
    with pytest.raises(ConfigError, match=told):
        build_app(home, settings, ProviderKeys(), systems=(*house(), wrong))


async def test_systems_that_fit_are_one_council(tmp_path: Path) -> None:
    home, settings = Home(make_home(tmp_path / "home")), Settings(model="offline")
    app = build_app(home, settings, ProviderKeys(), systems=(*house(), SAMPLE))
    assert app.handlers.keys() == {type_.name for type_ in app.commands if not type_.is_control}
    assert "ring" in app.controls
    await app.aclose()


async def test_each_work_that_is_loaded_when_it_begins_is_there(tmp_path: Path) -> None:
    app = build_app(
        Home(make_home(tmp_path / "home")), Settings(model="offline"), ProviderKeys(), systems=house(), environ={}
    )
    late = {name: handler.load() for name, handler in app.handlers.items() if isinstance(handler, LateHandler)}
    assert late.keys() == {"deliberate", "ask", "forget", "create_specialist", "train_specialist"}
    assert all(inspect.isclass(work) and inspect.iscoroutinefunction(work.work) for work in late.values())
    await app.aclose()


def test_a_persona_that_names_no_tools_gets_those_of_every_council(tmp_path: Path) -> None:
    settings = Settings(model="offline")
    home = make_home(tmp_path / "home")
    with ConfinedRoot(home) as root, opened(home) as store:
        texts = build_texts(root, settings)
        library = build_library(texts, settings)
        tools = build_tools(library, Search(build_cortex(texts, library.rules, Redactor(), store), ""))
    assert tools.names == DEFAULT_TOOLS
