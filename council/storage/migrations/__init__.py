"""The steps that bring a database of an older version forward, run by Alembic. Loaded only when one is needed."""

from __future__ import annotations

from pathlib import Path

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from council.storage.versions import VERSIONS


def upgrade(connection: Connection, to: str = VERSIONS[-1], *, empty: bool = False) -> None:
    """Inside the caller's transaction. `empty`: from nothing, with every step there ever was."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    scripts = ScriptDirectory.from_config(config)

    def steps(revision: object, _: object) -> object:
        return scripts._upgrade_revs(to, revision)  # type: ignore[arg-type]  # what alembic.command.upgrade itself calls

    with EnvironmentContext(config, scripts, fn=steps) as context:
        context.configure(connection=connection, transactional_ddl=True, render_as_batch=True)
        context.run_migrations()
