"""One value for each type of command: all that other rooms have to know of it. Pure.

Each system brings its types. Who builds the house hands the list to whatever reads, records or takes commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Any, Literal, Union, get_args

from pydantic import Discriminator, Tag, TypeAdapter

from council.commands.models import PLANS_LANE, CommandBase, ControlBase, dump
from council.redaction import Redactor

DEFAULT_TYPE = "deliberate"
_NAMES_OF_ALL = frozenset({"type", "id", "session", "user"})


@dataclass(frozen=True)
class Admission:
    """The terms on which a command is accepted.

    `run_id` is the run that a control command acts on, if it does on one.
    `output_path` is relative to the home, and empty for a run that leaves no artifact. `recorded` is the command as
    record 0 keeps it; None keeps it whole. `keeps_hashes` is False when what record 0 leaves out could be guessed from
    the hashes of command and file: then they are not kept either. `lane` is the lane that the type chooses; empty: the
    command's own. `answers`: the command is no run, but these words answer the question of the run `run_id`.
    """

    title: str
    output_path: str = ""
    recorded: dict[str, Any] | None = None
    keeps_hashes: bool = True
    run_id: str = ""
    lane: str = ""
    answers: str = ""


@dataclass(frozen=True)
class CommandType:
    """A type of command.

    `admit` gets a command and the `Premises` of the engine, and raises CommandInvalid or PathRefused. It needs no model
    and no key. `names` are the keys that hold names and paths: a run with a secret in one is refused, and every other
    string, nested ones too, is redacted before it is recorded. `audited_as` is what the audit calls the end of such a run.
    A file that is not kept when it fails may hold what nobody wants to lie there. A run that writes anywhere may leave
    temporary files in every folder of a home.

    `inputs` is the key that lists the files that the run reads, `output` the one with the file that it writes; empty for
    none. `readers` tells the models, by spelling, whose windows the inputs have to fit. `foresee` raises what a handler would
    refuse, or a run fail with, as the home stands now. Both get the same as `admit`, once that admits. Only a judgement asks
    them, and `council answer`: any other command that is dropped is refused by its handler, and the audit tells.
    """

    model: type[CommandBase]
    admit: Callable[[Any, Any], Admission]
    names: frozenset[str] = frozenset()
    given_by: Literal["anyone", "administrator"] = "anyone"
    audited_as: str = "run_ended"
    keeps_failed_file: bool = True
    writes_anywhere: bool = False
    inputs: str = ""
    output: str = ""
    readers: Callable[[Any, Any], Sequence[str]] = lambda command, premises: ()
    foresee: Callable[[Any, Any], object] = lambda command, premises: None

    @cached_property
    def name(self) -> str:
        """The word of the key `type`."""
        return str(get_args(self.model.model_fields["type"].annotation)[0])

    @property
    def is_control(self) -> bool:
        """True for a command that is obeyed at once and never becomes a run."""
        return issubclass(self.model, ControlBase)

    @property
    def asks_no_model(self) -> bool:
        """True for a control command, and for a run in the lane of plans: a home without a model's key can obey it."""
        session = self.model.model_fields.get("session")
        return self.is_control or (session is not None and session.default == PLANS_LANE)

    @property
    def keys_of_names(self) -> frozenset[str]:
        """`names`, and those that all commands have."""
        return self.names | _NAMES_OF_ALL

    def recorded(self, command: CommandBase, admission: Admission, redactor: Redactor) -> dict[str, Any]:
        """The command for record 0: names as they are, without the secrets in all other strings."""
        kept = dump(command) if admission.recorded is None else admission.recorded
        return {key: value if key in self.keys_of_names else redactor.in_texts(value) for key, value in kept.items()}


class CommandTypes:
    """The types of one house: a union on `type`."""

    def __init__(self, types: Iterable[CommandType]) -> None:
        self._types = {type_.name: type_ for type_ in types}
        self.union = _union(tuple((name, type_.model) for name, type_ in self._types.items()))
        # A file without any of these is no control command, and need not be parsed to know it.
        self.control_words = tuple(name.encode() for name, type_ in self._types.items() if type_.is_control)

    def __iter__(self) -> Iterator[CommandType]:
        return iter(self._types.values())

    def __contains__(self, name: str) -> bool:
        return name in self._types

    def __getitem__(self, name: str) -> CommandType:
        return self._types[name]

    def get(self, name: str) -> CommandType | None:
        """The type of that name. None for one that this house does not know, as of a run from elsewhere."""
        return self._types.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._types)

    def audited_as(self, name: str) -> str:
        """The audit's word for the end of a run of this type, an unknown one too."""
        type_ = self._types.get(name)
        return CommandType.audited_as if type_ is None else type_.audited_as

    def keys_of_names(self, name: str) -> frozenset[str]:
        """The keys of a command of this type that hold names and paths; of an unknown type those that all have."""
        type_ = self._types.get(name)
        return _NAMES_OF_ALL if type_ is None else type_.keys_of_names


@cache
def _union(models: tuple[tuple[str, type[CommandBase]], ...]) -> TypeAdapter[CommandBase]:
    """Of these models by their names; pydantic takes 7 ms for it, and the programs that build several houses need one."""
    tagged: Any = Union[tuple(Annotated[model, Tag(name)] for name, model in models)]  # noqa: UP007
    return TypeAdapter(Annotated[tagged, Discriminator(tag_of)])


def tag_of(value: Any) -> str:
    """The tag of the union: `type`, else the default. Anything that is not text becomes its repr, hence unknown."""
    given = value.get("type", DEFAULT_TYPE) if isinstance(value, dict) else getattr(value, "type", DEFAULT_TYPE)
    return given if isinstance(given, str) else repr(given)
