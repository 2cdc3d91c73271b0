"""An explanation for the terminal. Every text of agents, files and providers is one plain line without control characters
before it is shown, and never read as markup."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from council.reports.explain import AgentShare, CallMade, Explanation, Tokens
from council.reports.words import (
    clock,
    cost,
    duration,
    ended_how,
    kind_of_step,
    plain,
    places,
    span_of_lines,
    status_words,
    timeline,
)

_MIN_COLUMNS, _MAX_COLUMNS = 80, 140
_STATUS_STYLES = {
    "succeeded": "bold green",
    "degraded": "bold yellow",
    "failed": "bold red",
    "cancelled": "bold magenta",
    "waiting": "bold yellow",
}
_MARKS = {"done": ("●", "green"), "failed": ("✗", "red"), "wait": ("◌", "yellow"), "retry": ("↻", "yellow")}
_MAX_CHARS = 400


def show(explanation: Explanation, stream: TextIO, *, coloured: bool) -> None:
    """Prints the whole explanation, as wide as the terminal is."""
    columns = int(os.environ.get("COLUMNS") or 0) or shutil.get_terminal_size((110, 40)).columns
    console = Console(
        file=stream,
        width=min(_MAX_COLUMNS, max(_MIN_COLUMNS, columns)),
        color_system="standard" if coloured else None,
        force_terminal=coloured,
        markup=False,
        emoji=False,
        highlight=False,
    )
    for part in _parts(explanation):
        console.print(part)
