"""The commands of the conductor: `ask` and `prefs`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictStr, model_validator

from council.commands.models import CONVERSATION_PATTERN, LINE_PATTERN, BudgetConfig, ControlBase, RunBase

MAX_REQUEST_CHARS = 20_000
MAX_INPUTS = 16
MAX_VALUE_CHARS = 200  # of a preference

PrefName = Literal["language", "verbosity", "tone", "style", "humor", "long_term_memory"]


class AskCommand(RunBase):
    """A request to the conductor, in a conversation."""

    type: Annotated[Literal["ask"], Field(description="What kind of command this is.")]
    session: Annotated[Literal["main"], Field(description="Not used: each conversation has a lane of its own.")] = (
        "main"
    )
    request: Annotated[
        StrictStr, Field(max_length=MAX_REQUEST_CHARS, description="The request, in your own words.")
    ] = ""
    project: Annotated[
        StrictStr | None,
        Field(
            min_length=1, max_length=200, description="The project that the request is about. Unset: none is chosen."
        ),
    ] = None
    conversation: Annotated[
        StrictStr | None,
        Field(
            pattern=CONVERSATION_PATTERN,
            description="The conversation. Unset: the last one that has not ended, else a new one.",
        ),
    ] = None
    new: Annotated[StrictBool, Field(description="Begin a new conversation.")] = False
    dry_run: Annotated[StrictBool, Field(description="Show how the request would be routed, and stop.")] = False
    end: Annotated[StrictBool, Field(description="End the conversation. What it remembers is deleted.")] = False
    input_artifacts: Annotated[
        tuple[StrictStr, ...], Field(max_length=MAX_INPUTS, description="Files for the request, relative to the home.")
    ] = ()
    budget: Annotated[BudgetConfig, Field(description="What the request may spend.")] = BudgetConfig()

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        if self.end and self.request.strip():
            raise ValueError("`end` ends a conversation, so `request` must be empty", "leave one of them out")
        if not self.end and not self.request.strip():
            fault = "must say what you want, but is blank" if "request" in self.model_fields_set else "is missing"
            raise ValueError(f"`request` {fault}", "say in `request` what you want")
        if self.new and (self.conversation is not None or self.end):
            raise ValueError(
                "`new` begins a conversation, so it goes with neither `conversation` nor `end`", "leave `new` out"
            )
        return self

    @property
    def task(self) -> str:
        return self.request


class PrefsCommand(ControlBase):
    """Changes a preference of the person who gives the command."""

    type: Annotated[Literal["prefs"], Field(description="What kind of command this is.")]
    action: Annotated[
        Literal["set", "forget"],
        Field(description="`set`: set a preference. `forget`: remove one, or everything kept."),
    ]
    name: Annotated[
        Literal[PrefName, "facts"] | None,
        Field(description="The preference; `facts` are what agents may remember. Unset with `forget`: all of them."),
    ] = None
    value: Annotated[
        StrictStr | None,
        Field(
            min_length=1,
            max_length=MAX_VALUE_CHARS,
            pattern=LINE_PATTERN,
            description="With `set`: its value, one line.",
        ),
    ] = None

    @model_validator(mode="after")
    def _fits_its_action(self) -> Self:
        if self.action == "set" and (self.name in (None, "facts") or self.value is None):
            raise ValueError("`set` needs a `name` and a `value`; facts are kept by a plan", "add both")
        if self.name == "long_term_memory" and self.value not in (None, "on", "off"):
            raise ValueError("`long_term_memory` is `on` or `off`", "write one of them")
        if self.action == "forget" and self.value is not None:
            raise ValueError("only the action `set` takes a `value`", "leave `value` out")
        return self
