"""The files that agents may read, and the tools that they read with."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from council.agents.memory import was_rehearsed
from council.ids import sha256_hex
from council.knowledge.cortex.cortex import Cortex
from council.knowledge.cortex.hybrid_search import Search
from council.knowledge.file_texts import FileTexts
from council.knowledge.library import Library
from council.knowledge.tools import list_files, query_cortex, read_file
from council.redaction import Redactor
from council.settings import Home, Settings, builtin_personas_dir, home_files, left_out
from council.storage.paths import ALWAYS_DENIED, UPLOADS_FOLDER, ConfinedRoot, PathRules
from council.storage.reader import Looking
from council.tools.registry import ToolRegistry


def build_texts(root: ConfinedRoot, settings: Settings) -> FileTexts:
    return FileTexts(root, settings.max_file_bytes, settings.max_document_bytes)


def build_library(texts: FileTexts, settings: Settings) -> Library:
    return Library(texts, read_rules(texts.root.root, settings), max_text_bytes=settings.max_context_bytes_per_request)


def build_tools(library: Library, search: Search) -> ToolRegistry:
    return ToolRegistry([read_file(library), list_files(library), query_cortex(search)])


def build_cortex(texts: FileTexts, rules: PathRules, redactor: Redactor, store: Looking) -> Cortex:
    """The indexes of a home, without the secrets that `redactor` knows; nothing is read or loaded until it is asked."""
    return Cortex(
        texts,
        rules,
        Home(texts.root.root).runtime / "cortex",
        redact=redactor.redact,
        installed=lambda: {path: sha256_hex(data) for path, data in home_files(builtin_personas_dir())},
        was_rehearsed=partial(was_rehearsed, store),
    )


def read_rules(home: Path, settings: Settings) -> PathRules:
    return PathRules(
        deny=(*ALWAYS_DENIED, *left_out(home, settings.read_roots), *settings.deny),
        allow=(*settings.read_roots, f"{UPLOADS_FOLDER}/"),
    )
