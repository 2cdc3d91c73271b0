"""`council config`: every setting, and the place that each value comes from. Loads nothing that a run needs."""

from __future__ import annotations

import typer

from council.cli.context import AsJson, aligned, state, tell
from council.desk.effective_settings import as_cell, effective_settings
from council.settings import BASE_URL_NAME

app = typer.Typer(no_args_is_help=True)


@app.command()
def show(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List every setting with its value and source, and whether each provider key is set."""
    told = effective_settings(state(ctx).desk())
    rows = [("KEY", "VALUE", "SOURCE")]
    rows += [(key, as_cell(one["value"]), one["source"]) for key, one in told["settings"].items()]
    rows += [(key, "set" if one["set"] else "not set", one["source"] or "-") for key, one in told["keys"].items()]
    base_url = told[BASE_URL_NAME]
    rows.append((BASE_URL_NAME, as_cell(base_url["value"]), base_url["source"] or "-"))
    closed = [f"Agents never read: {', '.join(told['never_read'])}."]
    closed += [f"The default read_roots leave out: {', '.join(told['left_out'])}."] if told["left_out"] else []
    late = [
        f"{name} was edited after the daemon started: restart it to use the change." for name in told["edited_settings"]
    ]
    tell(told, [f"home: {told['home']}", "", *aligned(rows), "", *closed, *late], as_json=as_json)
