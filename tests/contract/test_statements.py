"""Every statement of the product is understood by both databases. A new one is found by itself."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest

import council
from council.app import tables_of
from council.desk.all_systems import house
from council.errors import StorageFailed
from council.storage.store import Store, Tx
from council.storage.tables import metadata, words_of

VERBS = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ")
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(council.__path__, "council.")
    if module.name.endswith(".statements") or module.name == "council.storage.marks"
)
STATEMENTS = {
    f"{module.removeprefix('council.')}.{name}": value
    for module in MODULES
    for name, value in vars(import_module(module)).items()
    if name.isupper() and not name.startswith("_") and isinstance(value, str)
}
ROOT = Path(__file__).parents[2]
REDACTED_BEFORE = {  # tables with words that a statement writes, and who takes the secrets out of them before
    "runs": "the engine and the journal: a header, a title and a receipt",
    "steps": "the journal, each of its records",
    "ids": "admission, which refuses a name with a secret in it",
    "written": "admission, for a path is a name",
    "kept": "nobody: a page or a memory is kept as it was, byte for byte, to be put back",
    "audit_records": "the log of the audit",
    "plans": "plans, as they are drafted, answered and applied",
    "plan_requests": "plans, as they are applied",
    "users": "enrolment",
    "preferences": "the handler of preferences",
    "conversation_agents": "the journal: a profile is what a step returned",
    "dynamic_agents": "plans: a spec is an argument of an operation",
    "dynamic_agent_versions": "plans: so is a suite",
    "specialist_approvals": "the journal: what is proposed is what steps returned",
    "task_telemetry": "the journal, and the directory of specialists for an error",
    "world_actions": "the book of the world",
    "world_players": "the book of the world",
    "world_submissions": "the book of the world, but for code: it runs as it was sent, and is emptied when its round is settled",
    "world_letters": "the book of the world",
    "world_mechanisms": "the book of the world",
}


@pytest.fixture
def postgres_url(empty_postgres_url: str) -> str:
    """The tables are those that a store makes."""
    return empty_postgres_url


@pytest.fixture
def store(tmp_path: Path, database_url: str | None) -> Iterator[Store]:
    with closing(Store.open(tmp_path, database_url)) as store:
        yield store


def prepare(tx: Tx, statement: str) -> None:
    """Understood and planned, and not carried out."""
    count = statement.count("?")
    if tx.is_sqlite:
        tx.execute(f"EXPLAIN {statement}", (None,) * count)
        return
    numbered = statement
    for number in range(1, count + 1):
        numbered = numbered.replace("?", f"${number}", 1)
    tx.execute(f"PREPARE one AS {numbered}")
    tx.execute("DEALLOCATE one")


def test_statements_are_found_in_every_room_that_has_some() -> None:
    rooms = {path.parent.name for path in (ROOT / "council").glob("*/statements.py")}
    assert {module.split(".")[1] for module in MODULES} == rooms | {"storage"}
    assert rooms >= {"engine", "budgets", "audit", "users"}
    assert [name for name, value in STATEMENTS.items() if not value.startswith(VERBS)] == []
    assert len(STATEMENTS) > 60


def test_of_each_table_of_words_that_a_statement_writes_it_is_known_who_redacts_them() -> None:
    for room in tables_of(house()):
        import_module(room)
    written = {name for value in STATEMENTS.values() for name in re.findall(r"^(?:INSERT INTO|UPDATE) (\w+)", value)}
    assert {name for name in written if words_of(metadata.tables[name])} == set(REDACTED_BEFORE)


def test_no_statement_spells_what_one_of_the_drivers_reads_as_a_place_for_a_value() -> None:
    """`?` is rewritten for PostgreSQL as text, also in quotes, and `%` is its driver's own."""
    quoted = {name: re.findall(r"'[^']*'", statement) for name, statement in STATEMENTS.items()}
    assert [name for name, texts in quoted.items() if any("?" in text for text in texts)] == []
    assert [name for name, statement in STATEMENTS.items() if "%" in statement] == []


def test_every_statement_is_prepared_on_both_databases(store: Store) -> None:
    refused = {}
    for name, statement in STATEMENTS.items():
        try:
            store.write_now(lambda tx, statement=statement: prepare(tx, statement))  # type: ignore[misc]
        except StorageFailed as error:
            refused[name] = error.message
    assert refused == {}


def test_a_statement_that_one_of_them_does_not_know_would_be_found(store: Store) -> None:
    for unknown in ("SELECT nothing FROM runs", "SELECT run FROM runs LIMIT ? OFSET ?"):
        with pytest.raises(StorageFailed):
            store.write_now(lambda tx, unknown=unknown: prepare(tx, unknown))  # type: ignore[misc]


def test_the_schema_is_what_the_tables_say() -> None:
    code = "import runpy; print(runpy.run_path('docs/make_schema.py')['text'](), end='')"
    # In a process of its own: in this one other tests may have declared tables of theirs.
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    path = ROOT / "council" / "storage" / "schema.sql"
    assert path.read_text(encoding="utf-8") == made, "stale: python docs/make_schema.py"
