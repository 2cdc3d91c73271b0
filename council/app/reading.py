"""What agents may read, and the tools they read with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from council.knowledge.cortex.cortex import Cortex
from council.knowledge.cortex.meaning import Search
from council.knowledge.library import Library
from council.knowledge.tools import list_files, query_cortex, read_file
from council.redaction import Redactor
from council.settings import Home, Settings
from council.storage.paths import ALWAYS_DENIED, ConfinedRoot, PathRules
from council.tools.base import Tool
from council.tools.registry import ToolRegistry


def seeds_folder(home: Home, settings: Settings) -> Path | None:
    """Where original awakening seeds are read from, if anywhere."""
    return home.root / settings.seeds_dir if settings.seeds_dir else None


def build_library(root: ConfinedRoot, settings: Settings) -> Library:
    """What agents read, by rule."""
    return Library(
        root,
        read_rules(settings),
        max_file_bytes=settings.max_file_bytes,
        max_text_bytes=settings.max_context_bytes_per_request,
    )


def build_tools(
    root: ConfinedRoot, settings: Settings, search: Search, around: Callable[[Tool], Tool] | None = None
) -> ToolRegistry:
    """The tools of deliberations: reading, inside the allowed roots; `around` goes around each."""
    library = build_library(root, settings)
    tools = [read_file(library), list_files(library), query_cortex(search)]
    return ToolRegistry(map(around, tools) if around else tools)


def build_cortex(root: ConfinedRoot, settings: Settings, redactor: Redactor) -> Cortex:
    """The indexes of a home, without the secrets that `redactor` knows; nothing is read or loaded until it is asked."""
    folder = Home(root.root).runtime / "cortex"
    rules = read_rules(settings)
    return Cortex(root, rules, folder, max_file_bytes=settings.max_file_bytes, redact=redactor.redact)


def build_search(cortex: Cortex, meanings: str) -> Search:
    """The indexes with the vectors that lie under that name (`Spending.meanings`); empty: by words alone."""
    return Search(cortex, meanings)


def read_rules(settings: Settings) -> PathRules:
    """What agents may read."""
    return PathRules(deny=(*ALWAYS_DENIED, *settings.deny), allow=settings.read_roots)
