"""Agent manifests: Markdown with front matter in `personas/`, found by scanning.

The original's plain-text seeds (`core_essence_<role>_awakening_seed.txt`, the "awakening seed" of the source document)
are read from a configured folder. README files and dot files are never personas.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from council.errors import PersonaError
from council.settings.model_names import model_chain

MAX_PERSONA_BYTES = 256 << 10  # a persona of 64,000 tokens would crowd out the task
_SEED_NAME = re.compile(r"core_essence_([a-z][a-z0-9_]{1,31})_awakening_seed\.txt", re.IGNORECASE)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)---[ \t]*\n", re.DOTALL)
DEFAULT_TOOLS = ("READ_FILE", "LIST_FILES", "QUERY_CORTEX")  # every tool of this house: they only read

Trust = Literal["builtin", "verified", "unverified", "temporary"]


class ContextNeeds(BaseModel):
    """The parts of the context that an agent must, may and must never receive."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    required: tuple[str, ...] = ("task",)
    optional: tuple[str, ...] = ("memory", "documents", "transcript")
    forbidden: tuple[str, ...] = ()


class AgentManifest(BaseModel):
    """An agent. `instructions` is the persona text (the "DNA rules" of the source document). `model`: the one that
    speaks for it and those that stand in for that one; empty: the council's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
    role: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{1,31}$")]
    purpose: Annotated[str, Field(min_length=1, max_length=300)]
    tools: tuple[str, ...] = DEFAULT_TOOLS
    context: ContextNeeds = ContextNeeds()
    output: Literal["text"] = "text"
    scope: Annotated[str, Field(max_length=300)] = "deliberation"
    trust: Trust = "verified"
    model: Annotated[tuple[str, ...], Field(max_length=8)] = ()
    instructions: Annotated[str, Field(min_length=1)]

    @field_validator("model", mode="before")
    @classmethod
    def _one_or_more(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("model")
    @classmethod
    def _check_model(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return model_chain(value) if value else ()


def load_personas(folder: Path, seeds_folder: Path | None = None) -> dict[str, AgentManifest]:
    """All personas by role. A seed file in `seeds_folder` takes the place of the persona of the same role.

    Raises PersonaError naming the file for one that does not parse, and for two files of one role.
    """
    found: dict[str, AgentManifest] = {}
    for path in _candidates(folder, ".md"):
        manifest = parse_manifest(path.name, _read(path))
        if manifest.role in found:
            raise PersonaError(
                f"personas/{path.name}: the role {manifest.role} is already taken by `{found[manifest.role].id}`.",
                fix="give one of them another role",
            )
        found[manifest.role] = manifest
    for path in _candidates(seeds_folder, ".txt") if seeds_folder else []:
        match = _SEED_NAME.fullmatch(path.name)
        if match:
            role = match.group(1)
            manifest = AgentManifest(
                id=role.lower(),
                role=role.upper(),
                purpose=f"The council's {role.upper()}, from its awakening seed.",
                instructions=_read(path).strip() or role.upper(),
            )
            found[manifest.role] = manifest
    return found


def require_roles(personas: dict[str, AgentManifest], roles: Sequence[str]) -> list[AgentManifest]:
    """The manifests of `roles`, in that order. Raises PersonaError naming what is missing and what there is."""
    missing = [role for role in roles if role not in personas]
    if missing:
        known = ", ".join(sorted(personas)) or "none"
        raise PersonaError(
            f"no persona for {', '.join(missing)} in personas/ (found: {known}).",
            fix=f"add personas/{missing[0].lower()}.md, or run `council init .` to get the built-in ones back",
        )
    return [personas[role] for role in roles]


@lru_cache(maxsize=64)  # every run reads all personas, and they seldom change
def parse_manifest(name: str, text: str) -> AgentManifest:
    """One persona file. Raises PersonaError naming the file, the key and the fix."""
    match = _FRONT_MATTER.match(text)
    if match is None:
        raise PersonaError(
            f"personas/{name}: no front matter.", fix="begin the file with ---, the keys id, role, purpose, and ---"
        )
    try:
        keys = yaml.safe_load(match.group(1))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 2}" if mark else ""
        raise PersonaError(f"personas/{name}{line}: the front matter is not YAML.", fix="correct it there") from None
    except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError, RecursionError):
        # A date that is none, a number without end, deep nesting.
        raise PersonaError(
            f"personas/{name}: the front matter holds a value that YAML cannot read.", fix="put it into quotes"
        ) from None
    if not isinstance(keys, dict):
        raise PersonaError(f"personas/{name}: the front matter holds no keys.", fix="add id, role, purpose")
    try:
        return AgentManifest.model_validate({**keys, "instructions": text[match.end() :].strip()})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        raise PersonaError(
            f"personas/{name}: `{key}`: {said[:1].lower()}{said[1:]}.",
            fix="see personas/README.md for the keys",
        ) from None


def _candidates(folder: Path, suffix: str) -> list[Path]:
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise PersonaError(
            f"cannot read the folder {folder.name}/: {error.strerror}.", fix="run `council init .` to make it"
        ) from None
    return [
        path
        for path in paths
        if path.suffix.lower() == suffix
        and not path.name.startswith(".")
        and not path.stem.upper().startswith("README")
    ]


def _read(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise PersonaError(f"{path.name} is not a regular file.", fix="put the persona's own file there")
        with path.open("rb") as stream:
            data = stream.read(MAX_PERSONA_BYTES + 1)
    except OSError as error:
        raise PersonaError(f"cannot read {path.name}: {error.strerror}.", fix="check the file") from None
    if len(data) > MAX_PERSONA_BYTES:
        raise PersonaError(f"{path.name} is larger than {MAX_PERSONA_BYTES} bytes.", fix="shorten it")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise PersonaError(f"{path.name} is not UTF-8.", fix="save it as UTF-8") from None
