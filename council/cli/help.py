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
_MAX_HELP_CHARS = 300  # all of a first sentence: it may take two lines


class SectionedGroup(TyperGroup):
    """A group whose help is in sections; a command names its own as `rich_help_panel`."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        shown = [(name, command) for name, command in found if command is not None and not command.hidden]
        width = max(len(name) for name, _ in shown)
        sections: dict[str, list[tuple[str, str]]] = {heading: [] for heading in SECTIONS}
        for name, command in shown:
            heading = getattr(command, "rich_help_panel", None)
            rows = sections[heading if heading in sections else ELSE]
            rows.append((name.ljust(width), command.get_short_help_str(_MAX_HELP_CHARS)))
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
