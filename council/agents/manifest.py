"""Agent manifests: Markdown with front matter in `personas/`, found by scanning.

The original's plain-text seeds (`core_essence_<role>_awakening_seed.txt`, the "awakening seed" of the source document)
are read from a configured folder. The conductor's keys (section "Context Boundaries") are read as our own.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from council.commands.file_formats import PlainYaml, yaml_fault
from council.commands.parsing import fault_in_words
from council.errors import MissingContextError, PersonaError, UsageError
from council.ids import STEWARD
from council.markup import front_matter
from council.proposals import nearest
from council.safety.untrusted import plain_line
from council.settings import Home, Settings
from council.settings.model_names import model_chain
from council.storage.files import descriptor, read_fd
from council.tools.registry import ToolRegistry

T = TypeVar("T")

MAX_PERSONA_BYTES = 256 << 10  # a persona of 64,000 tokens would crowd out the task
_KEPT = 64  # persona files in memory, and as many that are parsed
_SEED_NAME = re.compile(r"core_essence_([a-z][a-z0-9_]{1,31})_awakening_seed\.txt", re.IGNORECASE)
DEFAULT_TOOLS = ("READ_FILE", "LIST_FILES", "QUERY_CORTEX")  # of a persona that names none

Trust = Literal["builtin", "verified", "unverified", "temporary"]
AgentScope = Literal["deliberation", "task", "user"]
PRIVATE = re.compile(r"(?:^|[_-])(?:personal|financial|finances?)(?:[_-]|$)", re.IGNORECASE)
_TRANSCRIPT = ("transcript", "other_agent_outputs")  # ours, and the source's name of it
# The fields that the conductor cuts a request into; docs/conductor.md has the same table.
REQUEST_FIELDS: Mapping[str, str] = {
    "code": "source code to work on",
    "programming_language": "the programming language of the code",
    "skill": "how experienced the person is",
    "audience": "for whom a text is meant",
    "draft": "a text to work on",
    "constraints": "limits that the person set: length, budget of time, rules to keep",
    "deadline": "a day or time by which something is due",
    "concern": "what the person is worried about",
    "personal": "names, addresses, health, family, and whatever else tells who the person is",
    "financial": "income, debts, prices paid, account numbers, and other money of the person",
}
# What a persona may name beside the outputs of other agents. No agent is ever given `credentials`.
_KNOWN = ("task", "memory", "documents", *_TRANSCRIPT, "project", *REQUEST_FIELDS, "credentials")


class ContextNeeds(BaseModel):
    """The parts of the context that an agent must, may and must never receive. What is named nowhere it is not given. Capitals
    do not count."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    required: tuple[str, ...] = ("task",)
    optional: tuple[str, ...] = ("memory", "documents", "transcript")
    forbidden: tuple[str, ...] = ()

    @field_validator("required", "optional", "forbidden")
    @classmethod
    def _in_lower_case(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(field.strip().lower() for field in value)

    @model_validator(mode="after")
    def _check_contradiction(self) -> Self:
        for field in self.required:
            if field in self.forbidden:
                raise ValueError(f"{field} is both required and forbidden")
        return self


# A key of ours by the way the conductor's document spells it.
_SOURCE_KEYS = {
    "context": "context_requirements",
    "scope": "context_outputs.scope",
    "output_schema": "context_outputs.produces",
}
_ROLE = re.compile(r"[A-Z][A-Z0-9_]{1,31}")
_SPELLINGS = {
    "id": "lower-case letters, digits, - and _, at most 64, beginning with a letter",
    "role": "capital letters, digits and _, 2 to 32, beginning with a letter",
    "aliases": "letters, digits, - and _, at most 64, beginning with a letter",
}
_PLAIN = {
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "tuple_type": "must be a list: `[first, second]`",
    "model_type": "must have the keys `required`, `optional` and `forbidden`, each with a list",
    "dict_type": "must have keys and values",
    "string_type": "must be text",
}


class AgentManifest(BaseModel):
    """An agent. `instructions` is the persona text (the "DNA rules" of the source document). `model`: the one that
    speaks for it and those that stand in for that one; empty: the council's.

    `scope`: an agent of a `task` keeps and gets no memory, one of a `user` works for its `owner` alone. `output_schema` is
    the JSON Schema of an agent that answers with an object. `aliases` are further names by which it may be called. `safety`
    are rules that stand in what a council tells it and in each handoff, where it must say that it kept them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
    role: Annotated[str, Field(pattern=f"^{_ROLE.pattern}$")]
    purpose: Annotated[str, Field(min_length=1, max_length=300)]
    tools: tuple[str, ...] = DEFAULT_TOOLS
    context: ContextNeeds = ContextNeeds()
    output: Literal["text"] = "text"
    scope: AgentScope = "deliberation"
    trust: Trust = "builtin"
    owner: Annotated[str, Field(max_length=64)] = STEWARD.id
    model: Annotated[tuple[str, ...], Field(max_length=8)] = ()
    aliases: tuple[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")], ...] = ()
    output_schema: dict[str, Any] | None = None
    safety: Annotated[tuple[Annotated[str, Field(min_length=3, max_length=300)], ...], Field(max_length=10)] = ()
    instructions: Annotated[str, Field(min_length=1)]

    @property
    def is_trusted(self) -> bool:
        """False for an agent that gets no memory, nothing personal or financial, and no tool that writes."""
        return self.trust in ("builtin", "verified")

    def serves(self, user: str) -> bool:
        """False for an agent of one user, and for one that is not trusted, unless this is its owner."""
        return self.owner == user or (self.is_trusted and self.scope != "user")

    @field_validator("model", mode="before")
    @classmethod
    def _one_or_more(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("model")
    @classmethod
    def _check_model(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return model_chain(value) if value else ()

    @field_validator("output_schema")
    @classmethod
    def _check_output_schema(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if value is not None and (value.get("type") != "object" or not isinstance(value.get("properties"), dict)):
            raise ValueError("must be the JSON Schema of an object, with `type: object` and `properties`")
        return value


def context_for(manifest: AgentManifest, available: Mapping[str, T]) -> dict[str, T]:
    """The fields of `available` that an agent is given: what its manifest requires or allows, less what it forbids and
    what its trust and scope withhold. Raises MissingContextError for a required field."""
    needs = manifest.context
    forbidden = {*needs.forbidden, *(_TRANSCRIPT if set(_TRANSCRIPT) & set(needs.forbidden) else ())}
    if not manifest.is_trusted:
        forbidden |= {field for field in (*needs.required, *needs.optional) if PRIVATE.search(field)}
    if not manifest.is_trusted or manifest.scope == "task":
        forbidden.add("memory")
    allowed = {field for field in (*needs.required, *needs.optional) if field not in forbidden}
    given = {field: value for field, value in available.items() if field in allowed}
    for field in needs.required:
        if field not in given:
            kind = manifest.trust if not manifest.is_trusted else f"{manifest.scope}-scoped"
            withheld = f"which no {kind} agent is given" if field in forbidden else "which nothing here provides"
            near = "" if field in forbidden else nearest(field, available)
            meant = f"did you mean `{near}`? Otherwise, " if near else ""
            raise MissingContextError(
                f"{manifest.role} requires the context field `{field}`, {withheld}.",
                fix=f"{meant}take `{field}` out of `required` in its persona, or use this agent where that field is provided; "
                f"here it is given: {', '.join(given)}",
                role=manifest.role,
                field=field,
            )
    return given


def tools_for(manifest: AgentManifest, tools: ToolRegistry) -> tuple[str, ...]:
    """The tools that an agent may name: those of its manifest, and of these only reading ones where it is not trusted."""
    if manifest.is_trusted:
        return manifest.tools
    return tuple(name for name in manifest.tools if (tool := tools.get(name)) is None or tool.effect == "read")


def seeds_folder(home: Home, settings: Settings) -> Path | None:
    return home.root / settings.seeds_dir if settings.seeds_dir else None


def load_personas(folder: Path, seeds_folder: Path | None = None) -> dict[str, AgentManifest]:
    """By role; a seed file takes the place of the persona of its role. Raises PersonaError, also for two files of one role."""
    found: dict[str, AgentManifest] = {}
    for name in _candidates(folder, ".md"):
        manifest = parse_manifest(name, _read(folder, name))
        if manifest.role in found:
            raise PersonaError(
                f"personas/{name}: the role {manifest.role} is already taken by `{found[manifest.role].id}`.",
                fix="give one of them another role",
            )
        found[manifest.role] = manifest
    for name in _candidates(seeds_folder, ".txt") if seeds_folder else []:
        match = _SEED_NAME.fullmatch(name)
        if match and seeds_folder:
            role = match.group(1)
            manifest = AgentManifest(
                id=role.lower(),
                role=role.upper(),
                purpose=f"The council's {role.upper()}, from its awakening seed.",
                instructions=_read(seeds_folder, name).strip() or role.upper(),
            )
            found[manifest.role] = manifest
    by_name(found)
    return found


def by_name(personas: Mapping[str, AgentManifest]) -> dict[str, AgentManifest]:
    """The agents by role, id and alias, in capitals. Raises PersonaError for an alias that calls two."""
    called = {manifest.id.upper(): manifest for manifest in personas.values()} | dict(personas)
    for manifest in personas.values():
        for alias in manifest.aliases:
            other = called.setdefault(alias.upper(), manifest)
            if other is not manifest:
                raise PersonaError(
                    f"the alias {alias} of {manifest.role} also calls {other.role}.",
                    fix="give one of them another name",
                )
    return called


class AgentNotFound(UsageError):
    """No agent has this role. It is one code on every door."""

    code = "agent_not_found"
    http_status = 404


def agent_not_found(role: str, personas: Mapping[str, AgentManifest]) -> AgentNotFound:
    return AgentNotFound(f"there is no agent {role.upper()} here.", fix=meant_agent(role, personas))


def meant_agent(name: str, personas: Mapping[str, AgentManifest]) -> str:
    """A fix for the name of an agent that is not there."""
    called = by_name(personas)
    near = nearest(name, called)
    return f"did you mean {called[near].role}?" if near else "see `council agents list`"


def require_roles(personas: dict[str, AgentManifest], roles: Sequence[str]) -> list[AgentManifest]:
    missing = [role for role in roles if role not in personas]
    if missing:
        known = ", ".join(sorted(personas)) or "none"
        raise PersonaError(
            f"no persona for {', '.join(missing)} in personas/ (found: {known}).",
            fix=f"add personas/{missing[0].lower()}.md, or run `council init .` to get the built-in ones back",
        )
    return [personas[role] for role in roles]


@lru_cache(maxsize=_KEPT)  # every run reads all personas, and they seldom change
def parse_manifest(name: str, text: str) -> AgentManifest:
    parts = front_matter(text)
    if parts is None:
        raise PersonaError(
            f"personas/{name}: no front matter.", fix="begin the file with ---, the keys id, role, purpose, and ---"
        )
    try:
        keys = yaml.load(parts.head, PlainYaml)  # noqa: S506  a safe loader, with limits
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 2}" if mark else ""
        raise PersonaError(
            f"personas/{name}{line}: the front matter is not YAML ({yaml_fault(error)}).", fix="correct it there"
        ) from None
    except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError, RecursionError):
        # A date that is none, a number without end, deep nesting.
        raise PersonaError(
            f"personas/{name}: the front matter has a value that YAML cannot read.", fix="put it in quotes"
        ) from None
    if not isinstance(keys, dict):
        raise PersonaError(f"personas/{name}: the front matter is empty.", fix="add id, role, purpose")
    instructions = parts.body.strip()
    if not instructions:
        raise PersonaError(
            f"personas/{name}: no text follows the front matter.", fix="write below it what the agent is to do"
        )
    try:
        manifest = AgentManifest.model_validate({**_as_ours(name, keys), "instructions": instructions})
    except ValidationError as error:
        first = error.errors()[0]
        top, *below = map(str, first["loc"])
        key = ".".join([top if top in keys else _SOURCE_KEYS.get(top, top), *below])
        if first["type"] in _PLAIN:
            said = _PLAIN[first["type"]]
        elif first["type"] in ("value_error", "literal_error"):
            said = first["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        else:
            said, _ = fault_in_words(first)
        fix = "see personas/README.md for the keys"
        if first["type"] == "string_pattern_mismatch":
            given = str(first["input"])
            said = f"{plain_line(given, 60)!r} is not a valid {key.partition('.')[0]}; use {_SPELLINGS[str(first['loc'][0])]}"
            role = re.sub(r"[^A-Z0-9]+", "_", given.upper()).strip("_")
            fix = f"write `role: {role}`" if key == "role" and _ROLE.fullmatch(role) else "use that spelling"
        told = (
            f"the key `{key}` {said}" if said.startswith(("is ", "must ")) else f"`{key}`: {said[:1].lower()}{said[1:]}"
        )
        raise PersonaError(f"personas/{name}: {told}.", fix=fix) from None
    if "owner" in keys and manifest.is_trusted and manifest.scope != "user":
        raise PersonaError(
            f"personas/{name}: `owner` has no effect on a trusted agent of the scope `{manifest.scope}`.",
            fix="remove it, or write `scope: user`",
        )
    # Other agents' outputs are given by the conductor alone, and what is required and missing is told where it is.
    named = {"forbidden": manifest.context.forbidden}
    named |= {"optional": manifest.context.optional} if manifest.scope == "deliberation" else {}
    for lists, field in ((lists, field) for lists, fields in named.items() for field in fields):
        if field not in _KNOWN and not PRIVATE.search(field):
            key = "context" if "context" in keys else _SOURCE_KEYS["context"]
            near = nearest(field, _KNOWN)
            raise PersonaError(
                f"personas/{name}: `{key}.{lists}` names {plain_line(field, 60)}, which no agent is given.",
                fix=f"did you mean {near}?" if near else f"the fields are: {', '.join(_KNOWN)}",
            )
    return manifest


def _as_ours(name: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    """The keys with the sources' spellings as our own. Raises PersonaError for what Council does not enforce."""
    ours = dict(keys)

    def put(key: str, value: object) -> None:
        if key in ours:
            raise PersonaError(
                f"personas/{name}: `{key}` and `{_SOURCE_KEYS[key]}` are both given.", fix="keep one of them"
            )
        ours[key] = value

    needs, outputs = ours.pop("context_requirements", None), ours.pop("context_outputs", None) or {}
    if needs is not None:
        if not isinstance(needs, dict):
            raise PersonaError(
                f"personas/{name}: `context_requirements` is empty.",
                fix="write `required`, `optional` and `forbidden` below it, each with a list",
            )
        put("context", {"optional": (), **needs})
    if not isinstance(outputs, dict) or outputs.keys() - {"produces", "scope"}:
        raise PersonaError(
            f"personas/{name}: `context_outputs` may only have `produces` and `scope`.", fix="remove the other keys"
        )
    if "scope" in outputs:
        put("scope", outputs["scope"])
    if (fields := outputs.get("produces")) is not None:
        if not isinstance(fields, list) or not all(isinstance(field, str) for field in fields):
            raise PersonaError(
                f"personas/{name}: `context_outputs.produces` is not a list of names.",
                fix="write it as `[first, second]`",
            )
        if fields:
            properties: dict[str, Any] = {field: {} for field in fields}
            put("output_schema", {"type": "object", "properties": properties, "required": fields})
    if (effects := ours.pop("context_side_effects", None)) not in (None, "none", [], ["none"]):
        raise PersonaError(
            f"personas/{name}: `context_side_effects` is {plain_line(str(effects), 60)}, but agents change nothing themselves.",
            fix="write `context_side_effects: none`; the agent can propose changes in a plan",
        )
    return ours


def _candidates(folder: Path, suffix: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise PersonaError(
            f"cannot read the folder {folder.name}/: {error.strerror}.", fix="run `council init .` to create it"
        ) from None
    return [name for name in names if name.lower().endswith(suffix) and not name.upper().startswith((".", "README"))]


def _read(folder: Path, name: str) -> str:
    try:
        status = os.stat(f"{folder}/{name}")
        if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for
            raise PersonaError(f"{name} is not a regular file.", fix="put the persona's own file there")
        data = _bytes_of(f"{folder}/{name}", (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    except OSError as error:
        raise PersonaError(f"cannot read {name}: {error.strerror}.", fix="check the file") from None
    if len(data) > MAX_PERSONA_BYTES:
        raise PersonaError(f"{name} is larger than {MAX_PERSONA_BYTES} bytes.", fix="shorten it")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise PersonaError(f"{name} is not UTF-8.", fix="save it as UTF-8") from None


@lru_cache(maxsize=_KEPT)
def _bytes_of(path: str, identity: tuple[int, ...]) -> bytes:
    with descriptor(path, os.O_RDONLY | os.O_NONBLOCK) as fd:
        return read_fd(fd, MAX_PERSONA_BYTES + 1)
