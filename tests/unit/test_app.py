"""What is put together fits: each command type has who does its work."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from council.agents.manifest import DEFAULT_TOOLS
from council.app import build_app
from council.app.knowledge_tools import build_cortex, build_library, build_texts, build_tools
from council.desk.all_systems import house
from council.engine.control_commands import CONTROLS
from council.engine.runs import Handler
from council.knowledge.cortex.hybrid_search import Search
from council.plans.commands import PLAN_TYPES
from council.redaction import Redactor
from council.settings import Home, ProviderKeys, Settings
from council.storage.paths import ConfinedRoot
from council.systems import BareCore, Core, LateHandler
from council.tools.registry import parsed
from council.tools.tokens import parse
from council.tools.tool import Tool
from tests.harness import make_home, opened
from tests.sample_system import SAMPLE, count_notes


async def test_every_command_has_a_name_of_its_own_keys_that_it_names_and_a_worker(tmp_path: Path) -> None:
    systems = (*house(), SAMPLE)
    own = [type_ for system in systems for type_ in system.commands]
    assert len({type_.name for type_ in own}) == len(own)
    assert not {type_.name for type_ in own} & {type_.name for type_ in (*CONTROLS, *PLAN_TYPES)}
    for type_ in own:
        assert type_.names <= {field.alias or name for name, field in type_.model.model_fields.items()}, type_.name
    app = build_app(Home(make_home(tmp_path / "home")), Settings(model="offline"), ProviderKeys(), systems=systems)
    assert app.handlers.keys() == {type_.name for type_ in app.commands if not type_.is_control}
    assert app.controls.keys() >= {type_.name for type_ in own if type_.is_control}
    await app.aclose()


async def test_every_kind_of_plan_and_every_tool_has_a_name_of_its_own_and_a_tool_what_its_effect_needs(
    tmp_path: Path,
) -> None:
    systems = (*house(), SAMPLE)
    kinds = [kind.name for system in systems for kind in system.plan_kinds]
    assert len(set(kinds)) == len(kinds)
    app = build_app(Home(make_home(tmp_path / "home")), Settings(model="offline"), ProviderKeys(), systems=systems)
    tools = [tool for system in systems for tool in system.tools(app)]
    assert len(app.tools.names) == len(tools) + len(DEFAULT_TOOLS)
    for tool in app.tools:
        changes = [tool.apply is not None, tool.send is not None].count(True)
        reads = tool.effect == "read"
        assert (tool.run is not None, tool.preview is not None, changes) == (reads, not reads, int(not reads)), (
            tool.name
        )
        for spelling in tool.spellings:
            [request] = parse(spelling)
            assert (request.action, request.honoured) == (tool.name, True)
            assert isinstance(parsed(tool, request.argument), tool.arguments), spelling
    await app.aclose()


async def test_whoever_is_given_a_core_can_keep_it_for_its_tools_are_those_of_all_systems(tmp_path: Path) -> None:
    given: dict[str, Any] = {}

    def tools(core: BareCore) -> list[Tool]:
        given["tools"] = core
        return [count_notes(core.store)]

    def handlers(core: Core) -> Mapping[str, Handler]:
        given["handlers"] = core
        return SAMPLE.handlers(core)

    sample = replace(SAMPLE, tools=tools, handlers=handlers)
    app = build_app(
        Home(make_home(tmp_path / "home")), Settings(model="offline"), ProviderKeys(), systems=(*house(), sample)
    )
    assert not hasattr(given["tools"], "tools")
    assert given["handlers"].tools is given["handlers"].plans.tools is app.tools
    assert "COUNT_NOTES" in app.tools.names
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
