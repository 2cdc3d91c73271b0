"""The files that agents may read, and the tools that they read with."""

from __future__ import annotations

from functools import partial

from council.agents.memory import was_rehearsed
from council.ids import sha256_hex
from council.knowledge.cortex.cortex import Cortex
from council.knowledge.cortex.meaning import Search
from council.knowledge.library import Library
from council.knowledge.tools import list_files, query_cortex, read_file
from council.redaction import Redactor
from council.settings import Home, Settings, builtin_personas_dir, home_files
from council.storage.paths import ALWAYS_DENIED, ConfinedRoot, PathRules
from council.storage.reader import Looking
from council.tools.registry import ToolRegistry


def build_library(root: ConfinedRoot, settings: Settings) -> Library:
    """The files that agents read, by rule."""
    return Library(
        root,
        read_rules(settings),
        max_file_bytes=settings.max_file_bytes,
        max_text_bytes=settings.max_context_bytes_per_request,
    )


def build_tools(root: ConfinedRoot, settings: Settings, search: Search) -> ToolRegistry:
    """The tools of every council: reading, inside the allowed roots."""
    library = build_library(root, settings)
    return ToolRegistry([read_file(library), list_files(library), query_cortex(search)])


def build_cortex(root: ConfinedRoot, settings: Settings, redactor: Redactor, store: Looking) -> Cortex:
    """The indexes of a home, without the secrets that `redactor` knows; nothing is read or loaded until it is asked."""

    def installed() -> dict[str, str]:
        return {path: sha256_hex(data) for path, data in home_files(builtin_personas_dir())}

    return Cortex(
        root,
        read_rules(settings),
        Home(root.root).runtime / "cortex",
        max_file_bytes=settings.max_file_bytes,
        redact=redactor.redact,
        installed=installed,
        was_rehearsed=partial(was_rehearsed, store),
    )


def read_rules(settings: Settings) -> PathRules:
    """The rules of what agents may read."""
    return PathRules(deny=(*ALWAYS_DENIED, *settings.deny), allow=settings.read_roots)
