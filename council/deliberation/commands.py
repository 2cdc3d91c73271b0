"""The commands of deliberations: `deliberate` (the four keys of Protocol 95) and `memory` (Protocol 94)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr, field_validator, model_validator

from council.commands.models import BudgetConfig, CommandModel, RunBase
from council.settings.model_names import model_spelling
from council.settings.table import MAX_AGENTS, MAX_ROUNDS, ProtocolName

MAX_TASK_CHARS = 100_000  # about 25,000 tokens: more belongs into an input artifact
MAX_INPUTS = 64
MAX_ANSWERS = 40  # what a session file keeps of tasks, rehearsed and not; older ones lie in the archive
MAX_ANSWER_CHARS = 10_000  # a digest shows the first hundreds


class DeliberateConfig(CommandModel):
    """Bounds of one deliberation."""

    max_rounds: StrictInt = Field(
        default=3, ge=1, le=MAX_ROUNDS, description="Rounds of the deliberation. Unset: the setting `max_rounds`."
    )
    protocol: ProtocolName = Field(
        default="triad",
        description="`triad`: one agent after the other; each hears those before. `independent`: a blind round, then critique. "
        "`review`: blind answers, ranked without names. Unset: the setting `protocol`.",
    )
    agents: tuple[StrictStr, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_AGENTS,
        description="Who takes part, by role; the first one writes the decision. Unset: the setting `agents`, or the triad.",
    )
    early_stop: StrictBool | None = Field(
        default=None,
        description="End the rounds once another would bring nothing new. Unset: on in `independent` only.",
    )
    model: Annotated[
        StrictStr | None, AfterValidator(lambda value: None if value is None else model_spelling(value))
    ] = Field(
        default=None,
        description="The model for every agent of this command. Unset: what settings and manifests say. "
        "Where the home's model is `offline` or a cassette, that one speaks instead.",
    )
    budget: BudgetConfig = Field(default=BudgetConfig(), description="What the command may spend.")

    @field_validator("agents")
    @classmethod
    def _once_each(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        names = [name.upper() for name in value or ()]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"names {twice} twice", "name each agent once")
        return value

    @model_validator(mode="after")
    def _fits_its_protocol(self) -> Self:
        if self.protocol != "triad" and self.agents is not None and len(self.agents) < 2:
            message = f"`agents` needs at least two members for the protocol {self.protocol}"
            raise ValueError(message, "name one more, or leave `agents` out")
        if self.protocol == "review" and self.early_stop:
            message = "`early_stop` cannot be used with the protocol review, which needs all its rounds"
            raise ValueError(message, "leave `early_stop` out")
        return self

    @property
    def stops_early(self) -> bool:
        return self.protocol == "independent" if self.early_stop is None else self.early_stop


class DeliberateCommand(RunBase):
    """A task for the council: the four keys of Protocol 95."""

    type: Literal["deliberate"] = Field(default="deliberate", description="What kind of command this is.")
    task_description: StrictStr = Field(min_length=1, max_length=MAX_TASK_CHARS, description="The goal, in words.")
    input_artifacts: tuple[StrictStr, ...] = Field(
        default=(), max_length=MAX_INPUTS, description="Files given to all agents at the start, relative to the home."
    )
    output_artifact_path: StrictStr = Field(
        min_length=1, max_length=1024, description="Where the decision goes: a .md file, or a folder ending in /."
    )
    config: DeliberateConfig = Field(
        default=DeliberateConfig(), description="Limits of the deliberation, and how it works."
    )

    @field_validator("task_description")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must say what the task is, but is blank", "write the task")
        return value

    @property
    def asked_model(self) -> str | None:
        return self.config.model

    @property
    def task(self) -> str:
        return self.task_description


class RememberedAnswer(CommandModel):
    """One task as an agent is to remember it."""

    run_id: StrictStr = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", description="The run that gave the answer.")
    title: StrictStr = Field(default="", max_length=300, description="The title of its task. Unset: unchanged.")
    answer: StrictStr = Field(max_length=MAX_ANSWER_CHARS, description="What the council answered.")


class MemoryCommand(RunBase):
    """Changes what one agent remembers in one lane (Protocol 94). The earlier memory goes to the archive."""

    type: Literal["memory"] = Field(description="What kind of command this is.")
    role: StrictStr = Field(pattern=r"^[A-Z][A-Z0-9_]{1,31}$", description="The agent's role: AUDITOR.")
    action: Literal["reset", "replace"] = Field(
        description="`reset`: remember nothing. `replace`: remember `answers`, in this order, oldest first."
    )
    answers: tuple[RememberedAnswer, ...] | None = Field(
        default=None, max_length=MAX_ANSWERS, description="With `replace`: all that the agent is to remember."
    )
    base_sha256: StrictStr | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{64}$",
        description="SHA-256 of the session file that was edited. Refused if the file has changed.",
    )

    @model_validator(mode="after")
    def _fits_its_action(self) -> Self:
        if self.action == "replace" and self.answers is None:
            raise ValueError("`replace` needs `answers`", "add `answers`, or use the action `reset`")
        if self.action == "reset" and self.answers is not None:
            raise ValueError("only the action `replace` takes `answers`", "leave `answers` out, or use `replace`")
        ids = [answer.run_id for answer in self.answers or ()]
        if len(set(ids)) != len(ids):
            raise ValueError("`answers` holds a run_id twice", "leave one of them out")
        return self
