"""The files that agents may read, and the tools that they read with."""

from __future__ import annotations

from pathlib import Path

from council.knowledge.cortex.cortex import Cortex
from council.knowledge.cortex.meaning import Search
from council.knowledge.file_texts import FileTexts
from council.knowledge.library import Library
from council.knowledge.tools import list_files, query_cortex, read_file
from council.redaction import Redactor
from council.settings import Home, Settings, builtin_personas_dir, untouched_files
from council.storage.paths import ALWAYS_DENIED, ConfinedRoot, PathRules
from council.tools.registry import ToolRegistry


def build_texts(root: ConfinedRoot, settings: Settings) -> FileTexts:
    """The files of a home as text; what took a while to read is remembered."""
    return FileTexts(root, settings.max_file_bytes, settings.max_document_bytes)


def build_library(texts: FileTexts, settings: Settings) -> Library:
    """The files that agents read, by rule."""
    return Library(texts, read_rules(texts.root.root, settings), max_text_bytes=settings.max_context_bytes_per_request)


def build_tools(texts: FileTexts, settings: Settings, search: Search) -> ToolRegistry:
    """The tools of every council: reading, inside the allowed roots."""
    library = build_library(texts, settings)
    return ToolRegistry([read_file(library), list_files(library), query_cortex(search)])


def build_cortex(texts: FileTexts, settings: Settings, redactor: Redactor) -> Cortex:
    """The indexes of a home, without the secrets that `redactor` knows; nothing is read or loaded until it is asked."""
    folder = Home(texts.root.root).runtime / "cortex"
    return Cortex(texts, read_rules(texts.root.root, settings), folder, redact=redactor.redact)


def read_rules(home: Path, settings: Settings) -> PathRules:
    """The rules of what agents may read."""
    return PathRules(deny=(*ALWAYS_DENIED, *left_out(home, settings), *settings.deny), allow=settings.read_roots)


def left_out(home: Path, settings: Settings) -> tuple[str, ...]:
    """The files that the default `read_roots` leave out, and other roots may open: those with a dot before their name, and
    what `council init` wrote and nobody changed."""
    if settings.read_roots != Settings.model_fields["read_roots"].default:
        return ()
    return (".*", *untouched_files(home, personas_from=builtin_personas_dir()))
