"""`council version`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from council import __version__


def version(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Print the version."""
    typer.echo(json.dumps({"version": __version__}) if as_json else f"council {__version__}")
