"""Checks before a `deliberate` command becomes a run: its settings, its members, its title and the path of its
page. Needs no model."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

from pydantic import ValidationError

from council.agents.manifest import (
    AgentManifest,
    by_name,
    context_for,
    load_personas,
    meant_agent,
    require_roles,
    seeds_folder,
)
from council.commands.file_formats import invalid, of_field
from council.commands.models import dump
from council.commands.parsing import fault_in_words
from council.commands.types import Admission
from council.deliberation.commands import DeliberateCommand, DeliberateConfig
from council.engine.runs import Premises
from council.errors import CommandInvalid, MissingContextError, PathRefused, PersonaError
from council.ids import STEWARD, distinct_slug
from council.llm.base import is_extract
from council.markup import first_sentence
from council.safety.untrusted import plain_line
from council.settings.model_names import SPEAK_FOR_ALL
from council.storage.paths import OUTPUT_DENIED, ConfinedRoot, PathRules

TRIAD = ("COORDINATOR", "STRATEGIST", "AUDITOR")
_GIVEN = ("task", "memory", "transcript")  # the context fields of a member; `documents` where there are files


def admit_deliberation(command: DeliberateCommand, premises: Premises) -> Admission:
    """Raises CommandInvalid for a path that will not do, or an agent that is not known; of both with both."""
    command, wrong = with_defaults(command, premises), list[CommandInvalid]()
    try:
        if command.config.agents is not None:
            members_of(command, premises.home.personas, seeds_folder(premises.home, premises.settings))
    except CommandInvalid as error:
        wrong.append(error)
    # The path is made of the title, and no path is masked later.
    title = premises.redactor.redact(command.title or title_of(command.task_description))
    path = ""
    try:
        path = output_path(command.output_artifact_path, title, premises.root)
    except CommandInvalid as error:
        wrong.append(error)
    if wrong:
        raise wrong[0] if len(wrong) == 1 else invalid([of_field(one) for one in wrong])
    return Admission(title, path, recorded=dump(command))


def foresee_members(command: DeliberateCommand, premises: Premises) -> None:
    """Raises ConfigError for a model, and as `models_to_ask`. The home's own model is not asked for: without it no daemon
    starts, and another may be named then."""
    for spelling in models_to_ask(command, premises):
        if spelling != premises.settings.model:
            premises.require_model(spelling)


def models_to_ask(command: DeliberateCommand, premises: Premises) -> tuple[str, ...]:
    """The models that may be asked, by spelling. Raises PersonaError or MissingContextError for a persona with which the run
    would fail, and as `admit_deliberation`."""
    whole, settings = with_defaults(command, premises), premises.settings
    members = members_of(whole, premises.home.personas, seeds_folder(premises.home, settings))
    require_context(whole, members)
    chains = [settings.chain(member.role, member.model, whole.config.model) for member in members]
    return tuple(dict.fromkeys(name for chain in chains for name in chain))


def with_defaults(command: DeliberateCommand, premises: Premises) -> DeliberateCommand:
    """The command with the home's protocol, rounds and agents where it names none; an extract takes as few rounds as
    its protocol has. Raises CommandInvalid."""
    settings, named = premises.settings, command.config.model_fields_set
    model = premises.model or settings.model
    if model.partition(":")[0] not in SPEAK_FOR_ALL:
        model = command.config.model or model
    ours = {key: getattr(settings, key) for key in ("protocol", "max_rounds", "agents") if key not in named}
    if "max_rounds" not in named | settings.model_fields_set and is_extract(model):
        protocol = ours.get("protocol", command.config.protocol)
        ours["max_rounds"] = 1 if protocol == "triad" else 2
    values = {key: value for key, value in ours.items() if value}
    try:
        config = DeliberateConfig.model_validate({**command.config.model_dump(exclude_unset=True), **values})
    except ValidationError as error:
        reason, _ = fault_in_words(error.errors()[0])
        told = ", ".join(f"{key} = {value}" for key, value in values.items())
        fix = "name `protocol`, `max_rounds` and `agents` in the command"
        message = f"`config` does not fit the settings of this home ({told}): {reason}."
        raise CommandInvalid(message, fix=fix, field="config") from None
    return command.model_copy(update={"config": config})


def members_of(command: DeliberateCommand, personas: Path, seeds: Path | None) -> list[AgentManifest]:
    """In their order. Raises CommandInvalid for a name without a persona, PersonaError for one that cannot be read or
    is missing."""
    named, user = command.config.agents, command.user or STEWARD.id
    try:
        known = load_personas(personas, seeds)
        if named is None:
            return [_deliberating(member, user) for member in require_roles(known, TRIAD)]
        called, members = by_name(known), []
        for name in named:
            if name.upper() not in called:
                fix = meant_agent(name, known) if known else "add a persona"
                message = f"`config.agents` names {plain_line(name, 60)}, and no persona in personas/ has that role."
                raise CommandInvalid(message, fix=fix, field="config.agents")
            members.append(_deliberating(called[name.upper()], user))
    except PersonaError as error:
        if named is None:
            raise
        raise CommandInvalid(error.message, fix=error.fix, field="config.agents") from error
    twice = next((member.role for member in members if members.count(member) > 1), None)
    if twice is not None:
        raise CommandInvalid(f"`config.agents` names {twice} twice.", fix="name each agent once", field="config.agents")
    return members


def may_sit(agent: AgentManifest, user: str) -> bool:
    """True for an agent that a council of this user may have, in some place of it."""
    try:
        return "task" in context_for(_deliberating(agent, user), dict.fromkeys((*_GIVEN, "documents"), ""))
    except (PersonaError, MissingContextError):
        return False


def context_of(command: DeliberateCommand) -> dict[str, str]:
    given = (*_GIVEN, "documents") if command.input_artifacts else _GIVEN
    return {**dict.fromkeys(given, ""), "task": command.task_description}


def require_context(command: DeliberateCommand, members: Sequence[AgentManifest]) -> None:
    """Raises MissingContextError for a member that cannot be given what it requires, or what its part in the council needs."""
    judges = members if command.config.protocol == "review" else members[:1]
    for member in members:
        given = context_for(member, context_of(command))
        if "task" not in given:
            message = f"{member.role} may not have the context field `task`, but every member needs it."
            fix = "add `task` to `required` in its persona, or leave it out of this council"
            raise MissingContextError(message, fix=fix, role=member.role, field="task")
        if "transcript" not in given and member in judges:
            message = f"{member.role} judges what the others said, but may not have the context field `transcript`."
            fix = "allow it in its persona, or name another agent in `config.agents`, another one first"
            raise MissingContextError(message, fix=fix, role=member.role, field="transcript")


def _deliberating(member: AgentManifest, user: str) -> AgentManifest:
    if member.scope == "user":
        raise PersonaError(
            f"{member.role} has the scope `user`: it works for one person only, and a council for the whole home.",
            fix="give its persona the scope `deliberation`, or leave it out of this council",
        )
    if not member.serves(user):
        owner = plain_line(member.owner, 64)
        raise PersonaError(
            f"{member.role} is an agent of {owner} that is not verified, and this council is for {plain_line(user, 64)}.",
            fix="write `trust: verified` in its persona once you trust it, or leave it out of this council",
        )
    if member.output_schema is not None:
        raise PersonaError(
            f"{member.role} has an output schema, and members of a council answer in prose.",
            fix="take `output_schema` (`context_outputs.produces`) out of its persona, or leave it out of this council",
        )
    return member


_TITLE_CHARS = 120
_GREETING = re.compile(
    r"(?:dear|hello|hi|good (?:morning|day|afternoon|evening)|liebe[rs]?|hallo|guten|sehr geehrte[rs]?|bonjour|ch[eè]re?s?"
    r"|madame|monsieur|mesdames)\b.{0,80}[,!]\s*",
    re.IGNORECASE,
)
_LEAD = re.compile(r".{12,}?:(?=\s)")


def output_path(wanted: str, title: str, root: ConfinedRoot) -> str:
    """Relative to the home; in a folder it gets its name from the title. Raises CommandInvalid."""
    field = "output_artifact_path"
    path = wanted if wanted.startswith("/") or ".." in wanted.split("/") else posixpath.normpath(wanted)
    try:
        path = path.removeprefix("./")
        _output_rules().check(path)
        if wanted.endswith("/") or root.kind(path) == "directory":
            path = f"{path}/{distinct_slug(title)}.md"
        elif root.kind(path) == "other":
            raise PathRefused(f"`{path}` is not a regular file.", reason="special", fix="name another path")
    except PathRefused as error:
        rule = f" (rule `{error.data['rule']}`)" if error.data.get("rule") else ""
        named = error.why or error.message
        reason = f"no decision may be written there{rule}" if error.reason == "denied" else named
        raise CommandInvalid(
            f"`{field}` is `{wanted}`: {reason}", fix="name a .md file below artifacts/", field=field
        ) from error
    if not path.endswith(".md"):
        raise CommandInvalid(
            f"`{field}` is `{path}`: a decision must be a Markdown file.",
            fix=f"end it in .md, or in / to get {distinct_slug(title)}.md in that folder",
            field=field,
        )
    return path


_output_rules = cache(partial(PathRules, deny=OUTPUT_DENIED))


def title_of(task: str) -> str:
    """The first question, sentence or line of a task behind its greeting, short enough for a heading."""
    lines = [line for line in task.splitlines() if line.strip()][:2]
    lines = lines[-1:] if lines and _GREETING.fullmatch(lines[0].strip()) else lines
    first = plain_line(lines[0] if lines else "", 1_000).strip("# ").strip()
    said, lead = first_sentence(first), _LEAD.match(first)
    first = lead[0] if lead and said in ("", first) and not said.endswith("?") else said or first
    first = first.rstrip(".:!")
    if len(first) <= _TITLE_CHARS:
        return first or "Decision"
    return first[:_TITLE_CHARS].rsplit(" ", 1)[0] + " …"
