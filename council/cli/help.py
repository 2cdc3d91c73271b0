"""Lists sub-commands for `--help`: under headings, each with its whole first sentence. Plain text only."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

START = "Start"
WORK = "Work"
LOOK = "Look"
KNOW = "Agents and knowledge"
MEND = "Settings and repair"
ELSE = "Commands"  # of a group, and one that names no section
SECTIONS = (START, WORK, LOOK, KNOW, MEND, ELSE)


class SectionedGroup(TyperGroup):
    """A group whose help is in sections; a command names its own as `rich_help_panel`."""

    def listed(self, ctx: Any) -> list[tuple[str, str, str]]:
        """Each sub-command's name, its section and its help."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        return [
            (name, str(getattr(command, "rich_help_panel", None)), command.help or "")
            for name, command in found
            if command is not None and not command.hidden
        ]

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
