"""The commands of specialists: `create_specialist` makes one, `train_specialist` examines one again."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictStr

from council.commands.models import ROLE_PATTERN, BudgetConfig, CommandModel, RunBase, dump
from council.commands.types import Admission, CommandType
from council.engine.runs import Premises
from council.errors import ConfigError
from council.ids import STEWARD, SystemClock, new_run_id, slugify
from council.llm.base import is_extract
from council.markup import first_sentence
from council.safety.untrusted import plain_line
from council.specialists.lifecycle import examinable
from council.storage.paths import ASKS_FOLDER
from council.users.people import principal_in

MAX_REQUEST_CHARS = 20_000
_TITLE_CHARS = 100


class ExampleCase(CommandModel):
    """A case of the person: an input, and what is right for it."""

    input: Annotated[dict[StrictStr, Any], Field(description="The input, field by field.")]
    expected_output: Annotated[
        dict[StrictStr, Any], Field(description='The right output. `{"any": true}` in a field matches everything.')
    ]


class RequestAnalysis(CommandModel):
    """The conductor's analysis of the request, with the source's keys."""

    complexity: Annotated[Literal["low", "medium", "high"], Field(description="How hard the request is.")] = "low"
    frequency: Annotated[
        Literal["one_time", "occasional", "frequent"], Field(description="How often it is likely to come.")
    ] = "occasional"
    required_capabilities: Annotated[
        tuple[StrictStr, ...], Field(description="What an agent for it must be able to do.")
    ] = ()
    should_create_specialist: Annotated[
        StrictBool, Field(description="Whether a specialist is worth having for it.")
    ] = True


class SpecialistRunCommand(RunBase):
    """The keys of both commands."""

    session: Annotated[Literal["main"], Field(description="Not used: each of these runs has a lane of its own.")] = (
        "main"
    )
    budget: Annotated[BudgetConfig, Field(description="What the run may spend.")] = BudgetConfig()


class CreateSpecialistCommand(SpecialistRunCommand):
    """Has a specialist designed, reviewed and tested. Its person confirms a plan before it is trained and registered."""

    type: Annotated[Literal["create_specialist"], Field(description="What kind of command this is.")]
    request: Annotated[
        StrictStr,
        Field(
            min_length=1, max_length=MAX_REQUEST_CHARS, pattern=r"\S", description="What it is to do, in your words."
        ),
    ]
    examples: Annotated[
        tuple[ExampleCase, ...], Field(max_length=16, description="Test cases of your own, which come first.")
    ] = ()
    changes: Annotated[
        StrictStr | None,
        Field(pattern=ROLE_PATTERN, description="Your specialist that gets a new version. Unset: a new one is made."),
    ] = None
    material: Annotated[
        StrictStr,
        Field(
            max_length=MAX_REQUEST_CHARS, description="Material for its designer, such as a temporary agent's profile."
        ),
    ] = ""
    analysis: Annotated[RequestAnalysis | None, Field(description="The conductor's analysis of the request.")] = None

    @property
    def task(self) -> str:
        return self.request

    @property
    def topic(self) -> str:
        """Its title where the person gave none."""
        return first_sentence(self.request) or self.request


class TrainSpecialistCommand(SpecialistRunCommand):
    """Tests a specialist with its whole suite again, and records the results."""

    type: Annotated[Literal["train_specialist"], Field(description="What kind of command this is.")]
    role: Annotated[StrictStr, Field(min_length=2, max_length=64, description="The specialist's role, or its id.")]

    @property
    def topic(self) -> str:
        return f"Train {self.role}"


def require_language_model(name: str) -> None:
    """Raises ConfigError for the offline engine."""
    if is_extract(name):
        fix = "set another `model`, with its key"
        raise ConfigError("The offline engine is no language model: it can neither design nor examine.", fix=fix)


def foresee(command: SpecialistRunCommand, premises: Premises) -> None:
    """Raises ConfigError for the offline engine, SpecialistRefused for what may not be examined."""
    require_language_model(premises.settings.model)
    if isinstance(command, TrainSpecialistCommand):
        user, role = command.user or STEWARD.id, command.role
        premises.store.read(lambda tx: examinable(tx, role, principal_in(tx, user)))


def admit(command: CreateSpecialistCommand | TrainSpecialistCommand, premises: Premises) -> Admission:
    """The run has a lane of its own, since it may wait long, and a page that is its person's alone."""
    # The path is made of the title, and no path is masked later.
    title = premises.redactor.redact(command.title or plain_line(command.topic, _TITLE_CHARS))
    lane = f"{command.type.partition('_')[0]}-{new_run_id(SystemClock().now())}"
    return Admission(title, f"{ASKS_FOLDER}/{lane}/{slugify(title)}.md", recorded=dump(command), lane=lane)


_CREATED, _TRAINED = frozenset({"changes", "budget"}), frozenset({"role", "budget"})
COMMANDS = (
    CommandType(CreateSpecialistCommand, admit, names=_CREATED, audited_as="specialist_asked", foresee=foresee),
    CommandType(TrainSpecialistCommand, admit, names=_TRAINED, audited_as="specialist_trained", foresee=foresee),
)
