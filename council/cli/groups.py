"""Sub-commands in the help under headings, in plain text; those of `council` are imported when they are asked for.

`council status` loads nothing of `council eval`, and the list of all commands none of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_command

START = "Start"
WORK = "Work"
LOOK = "Look"
KNOW = "Agents and knowledge"
MEND = "Settings and repair"
DEVELOP = "For developers"
ELSE = "Commands"  # of a group, and one that names no section
_MIN_WORD_CHARS = 4  # of a word that is looked up in the help: a shorter one stands in any
SECTIONS = (START, WORK, LOOK, KNOW, MEND, DEVELOP, ELSE)


@dataclass(frozen=True)
class SubCommand:
    """`where` is `module:name` below council.cli, of a function or of a group's typer.Typer; `section` is the heading."""

    where: str
    section: str
    help: str


class SectionedGroup(TyperGroup):
    """A group whose help is in sections; a command names its own as `rich_help_panel`."""

    def listed(self, ctx: Any) -> list[tuple[str, str, str]]:
        """Each sub-command's name, its section and its help."""
        known = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        found = {name: command for name, command in known.items() if command is not None and not command.hidden}
        return [(name, str(getattr(each, "rich_help_panel", None)), each.help or "") for name, each in found.items()]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Takes `help COMMAND` for `COMMAND --help`. Names the commands whose help has an unknown word, where none is spelled
        almost like it: typer's guess is far off."""
        from council.proposals import nearest  # not at the top: the list of all commands needs none

        if args[0] == "help" and not ctx.resilient_parsing:
            words = [word for word in args[1:] if not word.startswith("-")]
            if words:
                return self.resolve_command(ctx, [*words, "--help"])
            typer.echo(ctx.get_help())
            ctx.exit()
        word, listed = args[0], self.listed(ctx)
        if word[:1].isalpha() and not ctx.resilient_parsing and not nearest(word, (name for name, _, _ in listed)):
            told = re.compile(rf"\b{re.escape(word)}\w*(?![\w/])", re.IGNORECASE)  # not the name of a folder
            meant = [name for name, _, text in listed if len(word) >= _MIN_WORD_CHARS and told.search(text)]
            guess = f" Did you mean {' or '.join(map(repr, meant))}?" if meant else ""
            ctx.fail(f"No such command {word!r}.{guess}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        listed = self.listed(ctx)
        width = max(len(name) for name, _, _ in listed)
        sections: dict[str, list[tuple[str, str]]] = {heading: [] for heading in SECTIONS}
        for name, section, text in listed:
            first, end, _ = " ".join(text.split("\n\n")[0].split()).partition(". ")
            rows = sections[section if section in sections else ELSE]
            rows.append((name.ljust(width), first + end.strip()))
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class LazyGroup(SectionedGroup):
    """A group whose sub-commands are `entries`, in the order of the help."""

    entries: ClassVar[dict[str, SubCommand]]

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        placeholders: dict[str, Any] = dict.fromkeys(self.entries)  # each is built when it is looked up
        self.commands = placeholders

    def invoke(self, ctx: Any) -> Any:
        """Says what is wrong with an option in the words of a command's key; typer leaves it to pydantic."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            if faults := getattr(error.__cause__, "errors", None):
                from council.commands.parsing import fault_in_words  # not at the top: a wrong option is rare

                error.message = fault_in_words(faults()[0])[0]
            raise

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.entries)

    def listed(self, ctx: Any) -> list[tuple[str, str, str]]:
        return [(name, entry.section, entry.help) for name, entry in self.entries.items()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.entries and self.commands[cmd_name] is None:
            entry = self.entries[cmd_name]
            module, _, attribute = entry.where.partition(":")
            found = getattr(import_module(f"council.cli.{module}"), attribute)
            alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
            alone.callback()(lambda: None)  # a group, where typer would make a lone command the whole program
            if isinstance(found, typer.Typer):
                panel = entry.section
                alone.add_typer(found, name=cmd_name, cls=SectionedGroup, rich_help_panel=panel, help=entry.help)
            else:
                alone.command(cmd_name, rich_help_panel=entry.section, help=entry.help)(found)
            group: Any = get_command(alone)
            self.commands[cmd_name] = group.commands[cmd_name]
            _spell_types(group.commands[cmd_name])
        return self.commands.get(cmd_name)

    def all_commands(self) -> dict[str, Any]:
        return {name: self.get_command(None, name) for name in self.entries}


def _spell_types(command: Any) -> None:
    """In the help of a command and of those below it, `<number>` stands for `<int range>`, `<str>` for `<list[str]>`."""
    for parameter in filter(lambda each: hasattr(each, "display_type"), command.params):  # not of a typer before 0.20

        def spelled(ctx: Any, shown: Callable[[Any], str] = parameter.display_type) -> str:
            each = re.sub(r"list\[(.*)\]", r"\1", shown(ctx))
            return re.sub(r"<(?:int|float)(?: range)?>", "<number>", each)

        parameter.display_type = spelled
    for below in getattr(command, "commands", {}).values():
        _spell_types(below)
