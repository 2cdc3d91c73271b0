"""`council completion`: the script that a shell sources to complete `council`.

Written out because typer's own `--show-completion` prints the script of the shell it runs in, whatever it is asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

VARIABLE = "_COUNCIL_COMPLETE"
Shell = Literal["bash", "zsh", "fish"]

# typer answers `council` with completions when the variable is set, in the words that each shell's script expects.
_SCRIPTS = Path(__file__).parents[1] / "resources" / "completion"


def prepare() -> None:
    """Teaches typer the shells: with `add_completion=False`, which keeps its own two options away, it knows none."""
    from typer import completion as typers

    vars(typers)["completion_init"]()


def completion(shell: Annotated[Shell, typer.Argument(help="Which shell.")]) -> None:
    typer.echo((_SCRIPTS / f"council.{shell}").read_text(encoding="utf-8"), nl=False)
