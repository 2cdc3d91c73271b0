"""`council version`."""

from __future__ import annotations

import json

import typer

from council import __version__
from council.cli.context import AsJson


def version(as_json: AsJson = False) -> None:
    typer.echo(json.dumps({"version": __version__}) if as_json else f"council {__version__}")
