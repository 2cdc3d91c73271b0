"""The metadata for all tables, and SQLAlchemy's view of a transaction of the store. Loads SQLAlchemy: import it late.

Every room declares its tables on `metadata`. A new database is made from `schema.sql`, which is generated from them
(`python docs/make_schema.py`) in the words of PostgreSQL; an older one gets the tables that it lacks.
No mapped classes, no sessions.

A text column says whether it holds the words of a person or an agent: `Column("note", Words, info=WORDS)`. JSON_WORDS says that
they stand in JSON values. `forget` and retention walk the metadata by that. A column of the type `Words`
is redacted as it is written through `Tx.core`. A view is SQL text common to both databases, kept with `add_view`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Dialect,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    TypeDecorator,
    create_engine,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.pool import StaticPool
from sqlalchemy.schema import CreateIndex, CreateTable

from council.storage.versions import NOW_MS, VERSIONS

_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}

WORDS, NO_WORDS = {"words": True}, {"words": False}  # of a column
JSON_WORDS = {"words": True, "json": True}  # of a column whose words stand in JSON values
SEALED = "sealed"  # of a table: hashes stand on its words, and its own room changes them
GOES_WITH_RUN = "goes_with_run"  # of a table with a column `run_id`: retention deletes its rows with the run's journal

metadata = MetaData(naming_convention=_NAMES)
_version = Table(  # as Alembic made it, which brought older versions forward
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
marks = Table(  # see `marks.py`
    "marks",
    metadata,
    Column("name", Text, primary_key=True, info=NO_WORDS),
    Column("value", Text, nullable=False, info=NO_WORDS),
)


class Words(TypeDecorator[str]):
    """A text that is redacted when it is written through a connection of the store."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        redact = getattr(dialect, _REDACT, None)
        return value if value is None or redact is None else redact(value)


_REDACT = "council_redact"  # an attribute of the dialect, which each connection of the store has for itself


def connection_over(raw: Any, *, is_sqlite: bool, redact: Callable[[str], str] | None = None) -> Connection:
    """A Core connection over a driver's connection in which others begin and end the transactions. `redact` takes secrets
    out of what is written into columns of the type `Words`."""
    url = "sqlite+pysqlite://" if is_sqlite else "postgresql+psycopg://"
    engine = create_engine(url, creator=lambda: raw, poolclass=StaticPool, hide_parameters=True)
    setattr(engine.dialect, _REDACT, redact)
    return engine.connect()


def add_view(name: str, select: str) -> None:
    """Declares a view beside the tables. `{now_ms}` in `select` stands for the present moment."""
    metadata.info.setdefault("views", {})[name] = select.strip().replace("{now_ms}", NOW_MS)


def words_of(table: Table) -> list[Column[Any]]:
    """The columns of a table that hold somebody's words."""
    return [column for column in table.columns if column.info.get("words")]


def schema() -> Iterator[str]:
    """The statements that make a new database of the newest version on PostgreSQL, in their order."""
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    for table in [*metadata.sorted_tables, _version]:
        yield str(CreateTable(table).compile(dialect=dialect)).strip()
        for index in sorted(table.indexes, key=lambda found: str(found.name)):
            yield str(CreateIndex(index).compile(dialect=dialect)).strip()
    for name, select in sorted(metadata.info.get("views", {}).items()):
        yield f"CREATE VIEW {name} AS\n{select}"
    yield f"INSERT INTO alembic_version (version_num) VALUES ('{VERSIONS[-1]}')"  # noqa: S608  our own constant
