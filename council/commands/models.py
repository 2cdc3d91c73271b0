"""The command models of every type (Protocol 95, section 2.3), one union on `type`.

A key is refused until its feature exists, so that no command asks for something it silently does not get.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, Union

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    Tag,
    TypeAdapter,
    field_validator,
    model_validator,
)

from council.ids import canonical_json, sha256_hex
from council.settings.model_names import model_spelling

MAX_TASK_CHARS = 100_000  # about 25,000 tokens: more belongs into an input artifact
MAX_INPUTS = 64
MAX_ROUNDS = 100
MAX_AGENTS = 9
MAX_ANSWERS = 20  # what a session file keeps of tasks; older ones lie in the archive
MIN_FORGOTTEN_CHARS = 4  # shorter ones stand in half of all words
MAX_FORGOTTEN_CHARS = 10_000
MAX_ANSWER_CHARS = 10_000  # a digest shows the first hundreds


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


def _not_reserved(value: str) -> str:
    if value == "archive" or value.startswith("ask-"):
        raise ValueError(f"{value!r} is reserved: `archive` is a folder, `ask-…` are conversations")
    return value


Priority = Annotated[
    StrictInt,
    Field(
        ge=-100,
        le=100,
        description="Which lane goes first when a slot is free: the higher number; within a lane it changes nothing.",
    ),
]

USER_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$"
User = Annotated[
    StrictStr | None,
    Field(
        pattern=USER_PATTERN,
        description="On whose behalf the command acts: a user of this home (`council users`). It can only lower authority.",
    ),
]

Lane = Annotated[
    StrictStr,
    Field(
        pattern=LANE_PATTERN,
        description="The lane: runs of one lane take turns and share a memory, lanes run side by side.",
    ),
    AfterValidator(_not_reserved),
]


class BudgetConfig(_CommandModel):
    """The bounds of one command's spending; a crossed one ends the rounds, and the closing call still takes place."""

    max_calls: Annotated[StrictInt | None, Field(ge=1, le=100_000, description="Calls to the model.")] = None
    max_tokens: Annotated[
        StrictInt | None, Field(ge=1, le=1_000_000_000, description="Tokens, input and output together.")
    ] = None
    max_usd: Annotated[float | None, Field(gt=0, le=100_000, description="US dollars.")] = None
    max_seconds: Annotated[
        float | None, Field(gt=0, le=604_800, description="Seconds spent in calls to the model.")
    ] = None


ProtocolName = Literal["triad", "independent", "review"]


class DeliberateConfig(_CommandModel):
    """Bounds of one deliberation."""

    max_rounds: Annotated[
        StrictInt, Field(ge=1, le=MAX_ROUNDS, description="How many rounds the council deliberates.")
    ] = 3
    protocol: Annotated[
        ProtocolName,
        Field(
            description="`triad`: one after the other, all hear all. `independent`: a blind first round, then critique. "
            "`review`: blind answers, ranked without names."
        ),
    ] = "triad"
    agents: Annotated[
        tuple[StrictStr, ...] | None,
        Field(
            min_length=1,
            max_length=MAX_AGENTS,
            description="Who takes part, by role; the first one writes the decision. Unset: the triad.",
        ),
    ] = None
    early_stop: Annotated[
        StrictBool | None,
        Field(description="End the rounds once another can bring nothing. Unset: on in `independent` only."),
    ] = None
    model: Annotated[
        StrictStr | None,
        Field(
            description="The model that speaks for every agent of this command. Unset: what settings and manifests say."
        ),
        AfterValidator(lambda value: None if value is None else model_spelling(value)),
    ] = None
    budget: Annotated[BudgetConfig, Field(description="What the command may spend.")] = BudgetConfig()

    @field_validator("agents")
    @classmethod
    def _once_each(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        names = [name.upper() for name in value or ()]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"names {twice} twice")
        return value

    @model_validator(mode="after")
    def _fits_its_protocol(self) -> Self:
        if self.protocol != "triad" and self.agents is not None and len(self.agents) < 2:
            raise ValueError(f"`agents` needs at least two members for the protocol {self.protocol}")
        if self.protocol == "review" and self.early_stop:
            raise ValueError("`early_stop` does not go with the protocol review, which has no round to spare")
        return self

    @property
    def stops_early(self) -> bool:
        return self.protocol == "independent" if self.early_stop is None else self.early_stop


class DeliberateCommand(_CommandBase):
    """A task for the council: the four keys of Protocol 95."""

    type: Annotated[Literal["deliberate"], Field(description="What kind of command this is.")] = "deliberate"
    session: Lane = DEFAULT_LANE
    priority: Priority = 0
    user: User = None
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
    config: Annotated[DeliberateConfig, Field(description="Bounds of the deliberation.")] = DeliberateConfig()

    @field_validator("task_description")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must say what the task is, and is blank")
        return value


class _ControlBase(_CommandBase):
    run: Annotated[StrictStr, Field(min_length=1, max_length=64, description="The run's id.")]


class CancelCommand(_ControlBase):
    """Ends a run that is queued, running or waiting; it leaves its partial artifact."""

    type: Annotated[Literal["cancel"], Field(description="What kind of command this is.")]


class ResumeCommand(_ControlBase):
    """Lets a run go on at its first step that is not recorded: one that waits, or one that failed or was cancelled."""

    type: Annotated[Literal["resume"], Field(description="What kind of command this is.")]
    accept_drift: Annotated[
        StrictBool, Field(description="Go on although persona, prompt or model changed since the run began.")
    ] = False


class RetryCommand(_ControlBase):
    """Does an ended run's work again, with a new budget: all of it, or from one recorded step on."""

    type: Annotated[Literal["retry"], Field(description="What kind of command this is.")]
    from_: Annotated[
        StrictStr,
        Field(
            alias="from",
            max_length=200,
            description="The recorded step to begin again at, with all that were recorded after it; unset: the first.",
        ),
    ] = ""


class RememberedAnswer(_CommandModel):
    """One task as an agent is to remember it."""

    run_id: Annotated[
        StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", description="The run that the answer is of.")
    ]
    title: Annotated[StrictStr, Field(max_length=300, description="What the task was; unset: as it was.")] = ""
    answer: Annotated[StrictStr, Field(max_length=MAX_ANSWER_CHARS, description="What the council answered.")]


class MemoryCommand(_CommandBase):
    """Changes what one agent remembers in one lane (Protocol 94); what it remembered before goes to the archive."""

    type: Annotated[Literal["memory"], Field(description="What kind of command this is.")]
    session: Lane = DEFAULT_LANE
    priority: Priority = 0
    user: User = None
    role: Annotated[StrictStr, Field(pattern=r"^[A-Z][A-Z0-9_]{1,31}$", description="The agent's role: AUDITOR.")]
    action: Annotated[
        Literal["reset", "replace"],
        Field(description="`reset`: remember nothing. `replace`: remember `answers`, in this order, oldest first."),
    ]
    answers: Annotated[
        tuple[RememberedAnswer, ...] | None,
        Field(max_length=MAX_ANSWERS, description="With `replace`: everything that is to be remembered."),
    ] = None
    base_sha256: Annotated[
        StrictStr | None,
        Field(
            pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the session file that was edited; refused if it changed."
        ),
    ] = None

    @model_validator(mode="after")
    def _fits_its_action(self) -> Self:
        if (self.action == "replace") != (self.answers is not None):
            raise ValueError("`answers` belongs to the action `replace`, and to no other")
        ids = [answer.run_id for answer in self.answers or ()]
        if len(set(ids)) != len(ids):
            raise ValueError("`answers` holds a run_id twice")
        return self


FORGOTTEN_MARK = "[forgotten {}]"  # what stands in the place of a forgotten text; a path may hold it, too


class ForgetCommand(_CommandBase):
    """Takes a text, or everything of one run, out of all that Council keeps: memory, archive, index, journals, receipts,
    logs, its artifacts. It cannot be undone."""

    type: Annotated[Literal["forget"], Field(description="What kind of command this is.")]
    session: Lane = DEFAULT_LANE
    priority: Priority = 0
    user: User = None
    text: Annotated[
        StrictStr | None,
        Field(
            min_length=MIN_FORGOTTEN_CHARS,
            max_length=MAX_FORGOTTEN_CHARS,
            description="The text in its exact words; white space does not count. It is recorded nowhere.",
        ),
    ] = None
    run: Annotated[
        StrictStr | None,
        Field(min_length=1, max_length=64, description="The id of an ended run of which everything is to go."),
    ] = None
    salt: Annotated[
        StrictStr | None,
        Field(
            min_length=16,
            max_length=200,
            description="Random characters, so that nobody can guess a short text from the hashes in the receipt; without "
            "them the receipt has no hashes.",
        ),
    ] = None

    @field_validator("text")
    @classmethod
    def _can_be_forgotten(cls, value: str | None) -> str | None:
        if value is not None and len(value.strip()) < MIN_FORGOTTEN_CHARS:
            raise ValueError(f"must be at least {MIN_FORGOTTEN_CHARS} characters beside white space")
        if value is not None and value.strip() in FORGOTTEN_MARK:
            raise ValueError("is a part of the mark that would take its place")
        return value

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.text is None and self.run is None:
            raise ValueError("must name a `text` or a `run`")
        if self.id is not None and self.text is not None and self.salt is None:
            raise ValueError("needs a `salt` beside its `id`: a hash is kept with the id")
        return self


MODELS: dict[str, type[BaseModel]] = {
    "deliberate": DeliberateCommand,
    "cancel": CancelCommand,
    "resume": ResumeCommand,
    "retry": RetryCommand,
    "memory": MemoryCommand,
    "forget": ForgetCommand,
}
COMMAND_TYPES: tuple[str, ...] = tuple(MODELS)
DEFAULT_TYPE = "deliberate"


def command_type(value: Any) -> str:
    """The tag of the union: `type`, else `deliberate`. Anything that is not text becomes its repr, hence unknown."""
    given = value.get("type", DEFAULT_TYPE) if isinstance(value, dict) else getattr(value, "type", DEFAULT_TYPE)
    return given if isinstance(given, str) else repr(given)


RunCommand = DeliberateCommand | MemoryCommand | ForgetCommand  # these become runs and take their lane's turn
# These act on a run at once, outside lane order, and leave a receipt only.
ControlCommand = CancelCommand | ResumeCommand | RetryCommand
AnyCommand = RunCommand | ControlCommand
_TAGGED: Any = Union[tuple(Annotated[model, Tag(type_)] for type_, model in MODELS.items())]  # noqa: UP007 known when it runs
COMMANDS: TypeAdapter[AnyCommand] = TypeAdapter(Annotated[_TAGGED, Discriminator(command_type)])


def dump(command: AnyCommand) -> dict[str, Any]:
    """The command as plain JSON values, defaults filled in, under the names that a file uses."""
    return command.model_dump(mode="json", by_alias=True)


def canonical_hash(command: AnyCommand) -> str:
    """SHA-256 over what the command asks for: `$schema`, `id` and `priority` do not count, nor how the JSON is spelt."""
    return hash_of_dump(dump(command))


def hash_of_dump(dumped: dict[str, Any]) -> str:
    """`canonical_hash` of the command that was dumped."""
    asked = {key: value for key, value in dumped.items() if key not in ("$schema", "id", "priority")}
    if asked.get("user") is None:  # as it was before the key existed: ids that were bound then still answer
        asked.pop("user", None)
    return sha256_hex(canonical_json(asked))
