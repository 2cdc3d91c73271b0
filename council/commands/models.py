"""The keys that all commands have, and those of runs and of control commands (Protocol 95, section 2.3).

A key is refused until its feature exists, so that no command asks for something it silently does not get.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr

from council.ids import canonical_json, sha256_hex

LANE_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,63}$"
DEFAULT_LANE = "main"
PLANS_LANE: Literal["plans"] = "plans"  # of runs that ask no model: they need no slot
USER_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$"
ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:@/+ -]*$"
TITLE_PATTERN = r"^[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$"
CONVERSATION_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,59}$"
ROLE_PATTERN = r"^[a-z][a-z0-9_]{1,63}$"  # of a specialist
ROW_PATTERN = r"^[0-9a-z-]{1,64}$"
LINE_PATTERN = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"
TEXT_PATTERN = r"^[^\x00]*$"  # PostgreSQL keeps no NUL
PATTERNS_IN_WORDS = {  # as a person reads them behind the name of a field
    LANE_PATTERN: "must be 1 to 64 small letters, digits, `-` and `_`, and begin with a letter or digit",
    USER_PATTERN: "must be 1 to 64 letters, digits, `.`, `_`, `@` and `-`, and begin with a letter or digit",
    ID_PATTERN: "must be letters, digits, blanks and `. _ : @ / + -`, and begin with a letter or digit",
    TITLE_PATTERN: "must be one line of text, without tabs or other control characters, and not blank",
    CONVERSATION_PATTERN: "must be 1 to 60 small letters, digits, `-` and `_`, and begin with a letter or digit",
    ROLE_PATTERN: "must be 2 to 64 small letters, digits and `_`, and begin with a letter",
    ROW_PATTERN: "must be an id: 1 to 64 small letters, digits and `-`, as lists show it",
    LINE_PATTERN: "must be one line of text, without tabs or other control characters",
    TEXT_PATTERN: "must be text without NUL characters",
    r"\S": "is blank",
}


def _not_reserved(value: str) -> str:
    if value in ("archive", PLANS_LANE) or value.startswith("ask-"):
        raise ValueError(
            f"{value!r} is reserved: `archive` is a folder, `plans` is for changes of plans, `ask-…` are conversations",
            "choose another name",
        )
    return value


User = Annotated[
    StrictStr | None,
    Field(
        pattern=USER_PATTERN,
        description=(
            "On whose behalf the command acts: a user of this home (`council users`). "
            "The command can only get fewer rights, never more."
        ),
    ),
]


class CommandModel(BaseModel):
    """A command, or an object in one: without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=False)


class CommandBase(CommandModel):
    """The keys of every command. Each type narrows `type` to its own word."""

    schema_: Annotated[StrictStr | None, Field(alias="$schema", description="Where an editor finds the schema.")] = None
    id: Annotated[
        StrictStr | None,
        Field(
            min_length=1,
            max_length=200,
            pattern=ID_PATTERN,
            description="Idempotency key: a command with a known id and the same content is not run again, but gets the "
            "receipt. After a failed or cancelled run it is run again.",
        ),
    ] = None
    type: StrictStr
    user: User = None


class RunBase(CommandBase):
    """The keys of a command that becomes a run."""

    session: Annotated[
        StrictStr,
        Field(
            pattern=LANE_PATTERN,
            description="The lane: runs of one lane take turns and share a memory, lanes run side by side.",
        ),
        AfterValidator(_not_reserved),
    ] = DEFAULT_LANE
    priority: Annotated[
        StrictInt,
        Field(
            ge=-100,
            le=100,
            description="When a slot is free, the lane with the highest number goes first. Order within a lane stays.",
        ),
    ] = 0
    title: Annotated[
        StrictStr | None,
        Field(
            max_length=120,
            pattern=TITLE_PATTERN,
            description="The heading of the page, and the run's name in lists. Unset: the task's first question or sentence.",
        ),
    ] = None

    @property
    def asked_model(self) -> str | None:
        """The model that the command names for all who speak; None leaves it to the home."""
        return None

    @property
    def task(self) -> str:
        """The words that a model is asked; empty where none is."""
        return ""


class ControlBase(CommandBase):
    """A command that is obeyed at once, outside the order of lanes, and leaves a receipt only."""


class RunControl(ControlBase):
    """The key of a command that acts on one run."""

    run: Annotated[StrictStr, Field(min_length=1, max_length=64, pattern=LINE_PATTERN, description="The run's id.")]


class BudgetConfig(CommandModel):
    """The bounds of one command's spending; a crossed one ends the rounds, and the closing call still takes place."""

    max_calls: Annotated[StrictInt | None, Field(ge=1, le=100_000, description="Calls to the model.")] = None
    max_tokens: Annotated[
        StrictInt | None, Field(ge=1, le=1_000_000_000, description="Tokens, input and output together.")
    ] = None
    max_usd: Annotated[float | None, Field(gt=0, le=100_000, description="US dollars.")] = None
    max_seconds: Annotated[
        float | None, Field(gt=0, le=604_800, description="Seconds spent in calls to the model.")
    ] = None


def dump(command: CommandBase) -> dict[str, Any]:
    """The command as plain JSON values, defaults filled in, under the names that a file uses."""
    return command.model_dump(mode="json", by_alias=True)


def canonical_hash(command: CommandBase) -> str:
    """SHA-256 over what the command asks for: `$schema`, `id` and `priority` do not count, nor how the JSON is spelt."""
    asked = {key: value for key, value in dump(command).items() if key not in ("$schema", "id", "priority")}
    for key in ("user", "title"):
        if asked.get(key) is None:  # as it was before the key existed: ids that were bound then still answer
            asked.pop(key, None)
    return sha256_hex(canonical_json(asked))
