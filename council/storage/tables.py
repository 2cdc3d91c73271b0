"""The metadata for all tables, and SQLAlchemy's view of a transaction of the store. Loads SQLAlchemy: import it late.

Every room declares its tables on `metadata`. A new database is made from `schema.sql`, which is generated from them
(`python docs/make_schema.py`) in the words of PostgreSQL; an older one gets the tables that it lacks.
No mapped classes, no sessions.

The type of a column says that it holds the words of a person or an agent: `Words`, or `JsonWords` for a text of JSON. `forget`
and retention walk the metadata by that. `Tx.core` redacts such a column as it is written; who writes by SQL text
redacts before. Any other column of text says NO_WORDS. A view is SQL text common to both databases, kept with `add_view`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
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
from sqlalchemy.types import TypeEngine

from council.redaction import Redactor
from council.storage.versions import NOW_MS, VERSIONS

_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}

NO_WORDS = {"words": False}  # of a column of text
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


class Words(TypeDecorator[Any]):
    """Words of somebody, as a text or as what `kept_as` says; redacted by a connection of the store that writes."""

    impl = Text
    cache_ok = True

    def __init__(self, kept_as: TypeEngine[Any] | None = None) -> None:
        super().__init__()
        self.kept_as = kept_as

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return self.kept_as or self.impl_instance

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        redactor: Redactor | None = getattr(dialect, _REDACTOR, None)
        return value if value is None or redactor is None else self.redacted(value, redactor)

    def redacted(self, value: Any, redactor: Redactor) -> Any:
        """The value of a row without the secrets that `redactor` knows."""
        if isinstance(value, bytes):
            return redactor.redact(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        return redactor.in_texts(value)


class JsonWords(Words):
    """Words that stand in the values of a text of JSON, which stays one."""

    cache_ok = True

    def redacted(self, value: Any, redactor: Redactor) -> Any:
        told = json.loads(value)
        after = redactor.in_texts(told)
        return value if after is told else json.dumps(after, ensure_ascii=False)


_REDACTOR = "council_redactor"  # an attribute of the dialect, which each connection of the store has for itself


def connection_over(raw: Any, *, is_sqlite: bool, redactor: Redactor | None = None) -> Connection:
    """A Core connection over a driver's connection in which others begin and end the transactions. `redactor` takes secrets
    out of what is written into columns of words."""
    url = "sqlite+pysqlite://" if is_sqlite else "postgresql+psycopg://"
    engine = create_engine(url, creator=lambda: raw, poolclass=StaticPool, hide_parameters=True)
    setattr(engine.dialect, _REDACTOR, redactor)
    return engine.connect()


def add_view(name: str, select: str) -> None:
    """Declares a view beside the tables. `{now_ms}` in `select` stands for the present moment."""
    metadata.info.setdefault("views", {})[name] = select.strip().replace("{now_ms}", NOW_MS)


def words_of(table: Table) -> list[Column[Any]]:
    """The columns of a table that hold somebody's words."""
    return [column for column in table.columns if isinstance(column.type, Words)]


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
