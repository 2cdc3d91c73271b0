"""The metadata for all tables, and SQLAlchemy's view of a transaction of the store. Loads SQLAlchemy: import it late.

Every room declares its tables on `metadata`. A new database is made from `schema/<dialect>.sql`, which is generated from
them (`python docs/make_schema.py`); an older one gets the tables that it lacks. No mapped classes, no sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, Text, create_engine
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.pool import StaticPool
from sqlalchemy.schema import CreateIndex, CreateTable

from council.storage.versions import VERSIONS

_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}

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
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)


def connection_over(raw: Any, *, is_sqlite: bool) -> Connection:
    """A Core connection over a driver's connection in which others begin and end the transactions."""
    url = "sqlite+pysqlite://" if is_sqlite else "postgresql+psycopg://"
    engine = create_engine(url, creator=lambda: raw, poolclass=StaticPool, hide_parameters=True)
    return engine.connect()


def schema(dialect: str) -> Iterator[str]:
    """The statements that make a new database of the newest version, in their order."""
    compiled = postgresql.dialect() if dialect == "postgresql" else sqlite.dialect()  # type: ignore[no-untyped-call]
    for table in [*metadata.sorted_tables, _version]:
        yield str(CreateTable(table).compile(dialect=compiled)).strip()
        for index in sorted(table.indexes, key=lambda found: str(found.name)):
            yield str(CreateIndex(index).compile(dialect=compiled)).strip()
    yield f"INSERT INTO alembic_version (version_num) VALUES ('{VERSIONS[-1]}')"  # noqa: S608  our own constant
