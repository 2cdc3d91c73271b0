"""The choices of the top command for every command below it, and the printing of results."""

from __future__ import annotations

import gc
import inspect
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from council.desk.all_systems import house
from council.errors import CouncilError, UsageError
from council.ids import readable_json

if TYPE_CHECKING:
    from council.commands.types import CommandTypes
    from council.desk.desk import Desk
    from council.systems import System

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
User = Annotated[str, typer.Option(help="The user on whose behalf you act. Default: the steward.", show_default=False)]
Timeout = Annotated[float, typer.Option(min=0.1, help="How long to wait, in seconds.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Run = Annotated[str, typer.Argument(help="A run's id, its first characters, the path of its page, or `last`.")]
USUAL_COLLECTION = gc.get_threshold()  # what goes on for days collects as usual, and not as seldom as a start
_MIN_COLUMNS, _USUAL_COLUMNS, _MAX_COLUMNS = 40, 110, 160
_SHOWN_NAMES = 10
_MAX_WIDTH = 64  # of a column of a list, in characters


@dataclass
class CliState:
    """Stored on `ctx.obj`, for all commands of one call. `systems` loads those of this council."""

    home_flag: Path | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    systems: Callable[[], Sequence[System]] = house
    _desk: Desk | None = field(default=None, repr=False)

    def desk(self, **flags: object) -> Desk:
        """The home's desk, looked for when asked. `flags`: settings given to the sub-command. Raises HomeNotFound."""
        from council.desk.desk import Desk  # not at the top: `council --help` waits for no database
        from council.settings.home import find_home

        if self._desk is None or flags:
            home = find_home(self.home_flag, self.environ, Path.cwd())

            def warn(warning: str) -> None:
                typer.echo(f"warning: {warning}", err=True)

            self._desk = Desk(home, self.environ, flags, warn, systems=self.systems)
        return self._desk

    @property
    def commands(self) -> CommandTypes:
        """The types of command of this council, also where there is no home. Raises ConfigError."""
        from council.app import commands_of  # not at the top, as in `desk`

        return commands_of(self.systems())

    def redact(self, text: str) -> str:
        """`text` without the keys that were looked at, those of the environment, and what looks like one."""
        from council.settings.provider_keys import keys_of_environment  # not at the top, as in `desk`

        looked_at = None if self._desk is None else vars(self._desk).get("keys")
        return (looked_at or keys_of_environment(self.environ)).redactor.redact(text)

    def styled(self, text: str, *, fg: str) -> str:
        """`text` in a colour on a terminal, as it is elsewhere and when NO_COLOR is set (no-color.org)."""
        return typer.style(text, fg=fg) if self.coloured else text

    def complain(self, error: CouncilError) -> None:
        """Says an error on stderr, without any secret."""
        told = f"error ({error.code}): {error.message}" + (f"\n  fix: {error.fix}" if error.fix else "")
        print(self.redact(told), file=sys.stderr)  # noqa: T201

    def difference(self, line: str, told: str) -> str:
        """A line of a unified diff, in the words `told`: red where it goes, green where it comes."""
        if line.startswith("@@"):
            return "…"
        colour = {"-": "red", "+": "green"}.get(line[0])
        return told if colour is None else self.styled(told, fg=colour)

    @property
    def coloured(self) -> bool:
        return sys.stdout.isatty() and not self.environ.get("NO_COLOR")


def state(ctx: typer.Context) -> CliState:
    """The state that the top command stored, or an empty one where a sub-command runs by itself."""
    return ctx.ensure_object(CliState)


def named_folder(given: str | None) -> Path | None:
    """Raises UsageError for an empty name, as of an unset variable: it would mean the working folder."""
    if given is not None and not str(given).strip():
        raise UsageError("the folder's name is empty.", fix="name a folder; `.` is this one")
    return None if given is None else Path(given)


def columns() -> int:
    """The width of tables: COLUMNS, else the terminal's, else 110; never less than 40."""
    return min(_MAX_COLUMNS, max(_MIN_COLUMNS, shutil.get_terminal_size((_USUAL_COLUMNS, 40)).columns))


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row, its cells in columns. A cell beyond `_MAX_WIDTH` moves the rest of its own line alone."""
    widths = [min(_MAX_WIDTH, max(map(len, column))) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> list[str]:
    """A line for each row below the heads; `nothing` where there is no row."""
    return aligned([heads, *rows]) if rows else [nothing]


def first_of(names: Sequence[str]) -> str:
    """The first names of many, and how many more there are."""
    shown = ", ".join(names[:_SHOWN_NAMES])
    return shown if len(names) <= _SHOWN_NAMES else f"{shown} … and {len(names) - _SHOWN_NAMES} more"


def tell(told: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """Prints a result: as JSON for a program, or as lines for a person."""
    if as_json:
        print_json(told)
    elif text := "\n".join(lines):
        typer.echo(text)


def require_yes(question: str, *, given: bool) -> None:
    """Asks at the terminal, unless the person said so before (`given`). Raises UsageError where nobody answers."""
    if given:
        return
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        typer.echo(err=True)
        raise UsageError("nobody is there to answer that.", fix="add --yes if you are sure") from None
    if not agreed:
        raise typer.Abort


def print_json(value: Any) -> None:
    import msgspec  # not at the top: `council --help` prints none

    typer.echo(readable_json(msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value, indent=2))


def print_notes(*notes: str) -> None:
    """Prints what goes beside a result, on stderr."""
    for note in notes:
        typer.echo(f"note: {note}", err=True)


REQUIRED: Any = inspect.Parameter.empty


def with_parameters(run: Callable[..., None], parameters: Mapping[str, tuple[Any, Any]]) -> Callable[..., None]:
    """The function with the signature that typer reads: of each parameter its type and its default, after `ctx`."""
    made = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind, default=default)
        for name, (kind, default) in {"ctx": (typer.Context, REQUIRED), **parameters}.items()
    ]
    run.__signature__ = inspect.Signature(made)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in made}
    return run
