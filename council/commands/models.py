"""The command models of every type (Protocol 95, section 2.3), one union on `type`.

A key is refused until its feature exists, so that no command asks for something it silently does not get.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictInt,
    StrictStr,
    Tag,
    TypeAdapter,
    field_validator,
)

from council.ids import canonical_json, sha256_hex

MAX_TASK_CHARS = 100_000  # about 25,000 tokens: more belongs into an input artifact
MAX_INPUTS = 64
MAX_ROUNDS = 100


class _CommandModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=False)


class _CommandBase(_CommandModel):
    schema_: Annotated[StrictStr | None, Field(alias="$schema", description="Where an editor finds the schema.")] = None
    id: Annotated[
        StrictStr | None,
        Field(
            min_length=1,
            max_length=200,
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@/+ -]*$",
            description="Idempotency key: the same id with the same content is answered by its receipt, never run twice.",
        ),
    ] = None


LANE_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,63}$"
DEFAULT_LANE = "main"


class DeliberateConfig(_CommandModel):
    """Bounds of one deliberation."""

    max_rounds: Annotated[
        StrictInt, Field(ge=1, le=MAX_ROUNDS, description="How many rounds the council deliberates.")
    ] = 3


class DeliberateCommand(_CommandBase):
    """A task for the council: the four keys of Protocol 95."""

    type: Annotated[Literal["deliberate"], Field(description="What kind of command this is.")] = "deliberate"
    session: Annotated[
        StrictStr,
        Field(
            pattern=LANE_PATTERN,
            description="The lane: runs of one lane take turns and share a memory, lanes run side by side.",
        ),
    ] = DEFAULT_LANE
    task_description: Annotated[
        StrictStr, Field(min_length=1, max_length=MAX_TASK_CHARS, description="The goal, in words.")
    ]
    input_artifacts: Annotated[
        tuple[StrictStr, ...],
        Field(max_length=MAX_INPUTS, description="Files given to all agents at the start, relative to the home."),
    ] = ()
    output_artifact_path: Annotated[
        StrictStr,
        Field(
            min_length=1, max_length=1024, description="Where the decision goes: a .md file, or a folder ending in /."
        ),
    ]
    config: DeliberateConfig = DeliberateConfig()

    @field_validator("session")
    @classmethod
    def _not_reserved(cls, value: str) -> str:
        if value == "archive" or value.startswith("ask-"):
            raise ValueError(f"{value!r} is reserved: `archive` is a folder, `ask-…` are conversations")
        return value

    @field_validator("task_description")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must say what the task is, and is blank")
        return value


class CancelCommand(_CommandBase):
    """Ends a run that is queued, running or waiting; it leaves its partial artifact."""

    type: Annotated[Literal["cancel"], Field(description="What kind of command this is.")]
    run: Annotated[StrictStr, Field(min_length=1, max_length=64, description="The run's id.")]


MODELS: dict[str, type[BaseModel]] = {"deliberate": DeliberateCommand, "cancel": CancelCommand}
COMMAND_TYPES: tuple[str, ...] = tuple(MODELS)
DEFAULT_TYPE = "deliberate"


def command_type(value: Any) -> str:
    """The tag of the union: `type`, else `deliberate`. Anything that is not text becomes its repr, hence unknown."""
    given = value.get("type", DEFAULT_TYPE) if isinstance(value, dict) else getattr(value, "type", DEFAULT_TYPE)
    return given if isinstance(given, str) else repr(given)


Command = Annotated[
    Annotated[DeliberateCommand, Tag("deliberate")] | Annotated[CancelCommand, Tag("cancel")],
    Discriminator(command_type),
]
COMMANDS: TypeAdapter[DeliberateCommand | CancelCommand] = TypeAdapter(Command)


def dump(command: DeliberateCommand | CancelCommand) -> dict[str, Any]:
    """The command as plain JSON values, defaults filled in, under the names that a file uses."""
    return command.model_dump(mode="json", by_alias=True)


def canonical_hash(command: DeliberateCommand | CancelCommand) -> str:
    """SHA-256 over what the command asks for: `$schema` and `id` do not count, order and spelling of JSON neither."""
    return sha256_hex(canonical_json(command.model_dump(mode="json", exclude={"schema_", "id"})))
