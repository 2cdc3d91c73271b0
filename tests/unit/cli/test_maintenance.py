"""What `council restore` says of what a copy lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from council.cli import maintenance
from council.cli.context import CliState
from council.upkeep.copies import CopyLoss
from tests.harness import make_home


@pytest.mark.parametrize(("count", "more"), [(10, "r9."), (43, "r9 … and 33 more.")])
def test_the_runs_that_a_copy_lacks_are_named_and_the_others_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, more: str
) -> None:
    home = make_home(tmp_path / "home")
    lost = CopyLoss(runs=tuple(f"r{number}" for number in range(count)))
    monkeypatch.setattr(maintenance, "chosen_copy", lambda desk, copy: (home / "copy.db", []))
    monkeypatch.setattr(maintenance, "take_back", lambda desk, copy: (desk.home.root / "aside.db", lost))
    app = typer.Typer()
    app.command()(maintenance.restore)
    done = CliRunner().invoke(app, ["--yes"], obj=CliState(home_flag=home, environ={}), catch_exceptions=False)
    assert f"The copy lacks {count} runs: r0, r1," in done.stdout
    assert more in done.stdout
