"""Sub-commands that are imported when they are asked for: `council status` loads nothing of `council eval`."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.main import get_command

from council.cli.help import SectionedGroup


@dataclass(frozen=True)
class SubCommand:
    """One sub-command. `where`: `module:name` below council.cli, of a function or of the typer.Typer of a group; `section`:
    the heading in the help; `help`: what it does, its first sentence in the list of all."""

    where: str
    section: str
    help: str


class LazyCommands(MutableMapping[str, Any]):
    """Click's table of sub-commands by name; its order is that of the help. An entry is built when it is looked up."""

    def __init__(self, entries: dict[str, SubCommand]) -> None:
        self._entries: dict[str, Any] = dict(entries)

    def __getitem__(self, name: str) -> Any:
        entry = self._entries[name]
        if not isinstance(entry, SubCommand):
            return entry
        module, _, attribute = entry.where.partition(":")
        found = getattr(import_module(f"council.cli.{module}"), attribute)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        alone.callback()(lambda: None)  # a group, where typer would make a lone command the whole program
        if isinstance(found, typer.Typer):
            alone.add_typer(found, name=name, cls=SectionedGroup, rich_help_panel=entry.section, help=entry.help)
        else:
            alone.command(name, rich_help_panel=entry.section, help=entry.help)(found)
        group: Any = get_command(alone)
        self._entries[name] = group.commands[name]
        return self._entries[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._entries[name] = command

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:  # the inherited one would build it
        return name in self._entries


class LazyGroup(SectionedGroup):
    """A group whose sub-commands are `entries`."""

    entries: ClassVar[dict[str, SubCommand]]

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = LazyCommands(self.entries)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def listed(self, ctx: Any) -> list[tuple[str, str, str]]:
        """The list of all imports none of them."""
        return [(name, entry.section, entry.help) for name, entry in self.entries.items()]
