"""A journal from another home: what it must say to be brought in, and what it may not do here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from council.commands.types import Admission, CommandType, CommandTypes
from council.deliberation.commands import DeliberateCommand
from council.engine.receipts import ArtifactRef, Receipts
from council.engine.records import Commit, CommitFile, Record, StepResult
from council.engine.reopening import require_resumable, require_retryable
from council.engine.run_import import import_journal
from council.errors import CommandInvalid, UsageError
from council.storage.store import Store
from tests.rows import header, receipt

RUN = "20261120-120000-abcdefgh"
NOW_NS = 1_800_000_000_000_000_000
TYPES = CommandTypes([CommandType(DeliberateCommand, lambda command, premises: Admission("Choose"))])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(tmp_path)) as store:
        yield store


def lines(
    head: dict[str, object] | None = None, told: dict[str, object] | None = None, final: str = "artifacts/a.md"
) -> bytes:
    """A journal as `council journal --jsonl` prints it, with some values of its own."""
    sealed = receipt(RUN, status="failed", audit_head=f"900:{'0' * 64}")
    committed = Commit(
        "failed",
        (CommitFile("artifacts/.a.md.tmp", final, "0" * 64),),
        msgspec.Raw(msgspec.json.encode(msgspec.structs.replace(sealed, **told or {}))),
    )
    records: list[Record] = [
        header(RUN, **{"order": 5, **(head or {})}),
        StepResult("one", "", msgspec.Raw(b"1")),
        committed,
    ]
    return b"\n".join(map(msgspec.json.encode, records))


def test_a_run_of_another_home_is_looked_at_and_never_goes_on(store: Store) -> None:
    import_journal(store, TYPES, lines(), NOW_NS)
    found = Receipts(store).read(RUN)
    assert found is not None
    assert (found.imported, found.audit_head) == (True, "")  # that is a head of another chain
    with pytest.raises(CommandInvalid, match="imported from another home"):
        require_resumable(store, RUN, accept_drift=False)
    with pytest.raises(CommandInvalid, match="imported from another home"):
        require_retryable(store, RUN, "one")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"head": {"secret": "zz"}}, "its secret"),
        ({"head": {"secret": "00"}}, "its secret"),
        ({"head": {"order": NOW_NS + 1}}, "its order"),
        ({"head": {"lane": "../main"}}, "its lane"),
        ({"head": {"created": "2026-11-20"}}, "not a time in UTC"),
        ({"head": {"output_path": "/etc/passwd"}}, "/etc/passwd"),
        ({"told": {"finished": "notatime"}}, "notatime"),
        ({"told": {"lane": "other"}}, "its lane"),
        ({"told": {"artifact": ArtifactRef("../../etc/passwd", "0" * 64)}}, "etc/passwd"),
        ({"final": "../../etc/passwd"}, "etc/passwd"),
    ],
)
def test_what_no_run_says_is_refused(store: Store, changed: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match="it is not the journal of a run") as refused:
        import_journal(store, TYPES, lines(**changed), NOW_NS)  # type: ignore[arg-type]
    assert said in refused.value.message
    assert Receipts(store).read(RUN) is None
