"""The audit against the ends of its chain that stand elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from council.app.home_store import Safe
from council.audit.head_file import HEAD_FILE
from council.desk.audit_verification import audited_files, renew, renewable, report_of_export, verdict_of_home
from council.desk.desk import Desk
from council.errors import UsageError
from council.users.enrolment import add_user
from tests.rows import ended


@pytest.fixture
def desk(desk: Desk, tmp_path: Path) -> Desk:
    return Desk(desk.home, {"XDG_CONFIG_HOME": str(tmp_path / "config")})


@pytest.fixture
def safe(desk: Desk) -> Iterator[Safe]:
    """A chain of one record."""
    with desk.safe() as safe:
        add_user(safe.trail.log(), "anna", "", ["user"])
        yield safe


def codes(desk: Desk, safe: Safe, *heads: str) -> set[str]:
    return {finding.code for finding in verdict_of_home(desk, list(heads), safe.trail.log()).findings}


def test_a_chain_with_its_own_head_holds(desk: Desk, safe: Safe) -> None:
    head = verdict_of_home(desk, [], safe.trail.log()).head
    assert codes(desk, safe, str(head)) == set()


def test_a_receipt_that_knows_another_end_is_a_finding(desk: Desk, safe: Safe) -> None:
    ended(safe.store, "20261120-000001-aaaaaaaa", 1, audit_head=f"1:{'0' * 64}")
    assert codes(desk, safe) != set()


def test_a_page_of_a_run_that_the_database_does_not_know_is_a_finding(desk: Desk, safe: Safe) -> None:
    (desk.home.artifacts / "a.md").write_text('---\nid: "20261120-000001-aaaaaaaa"\n---\nText.\n')
    assert codes(desk, safe) == {"page_unknown"}
    ended(safe.store, "20261120-000001-aaaaaaaa", 1)
    assert codes(desk, safe) == set()


def test_a_database_that_was_taken_away_is_told_by_the_head_file(desk: Desk, safe: Safe) -> None:
    assert (desk.home.runtime / HEAD_FILE).exists()
    assert verdict_of_home(desk, [], None).findings


def test_what_is_no_head_is_a_usage_error(desk: Desk, safe: Safe) -> None:
    with pytest.raises(UsageError, match="is not a head"):
        codes(desk, safe, "12:abc")


def test_an_accepted_end_is_a_finding_no_more(desk: Desk, safe: Safe) -> None:
    ended(safe.store, "20261120-000001-aaaaaaaa", 1, audit_head=f"1:{'0' * 64}")
    chain, findings = renewable(desk, safe.trail.log())
    assert findings
    renew(desk, chain)
    assert codes(desk, safe) == set()


def test_nothing_is_renewed_without_an_audit_or_without_a_finding(desk: Desk, safe: Safe) -> None:
    with pytest.raises(UsageError, match="there is no audit"):
        renewable(desk, None)
    with pytest.raises(UsageError, match="there is nothing to accept"):
        renewable(desk, safe.trail.log())


def test_an_export_is_checked_with_the_keys_of_the_home(desk: Desk, safe: Safe, tmp_path: Path) -> None:
    file = tmp_path / "export.jsonl"
    file.write_bytes(b"".join(safe.trail.log().export()))
    assert report_of_export(desk, file, []).ok
    file.write_bytes(file.read_bytes().replace(b"anna", b"emma"))
    assert report_of_export(desk, file, []).findings
    with pytest.raises(UsageError, match="cannot read"):
        report_of_export(desk, tmp_path / "gone.jsonl", [])


def test_what_an_import_moved_from_files_into_rows_is_not_missing(desk: Desk, safe: Safe) -> None:
    paths = ("session_states/auditor_session.json", ".council/memory/auditor_session.json")
    log = safe.trail.log()
    with log.transaction() as transaction:
        named = [{"path": path, "sha256": "0" * 64} for path in paths]
        transaction.record("effect", "deliberate", "steward", {"files": named})
    told = [(file.path, file.state) for file in audited_files(desk, log.files().values())]
    assert told == [("session_states/auditor_session.json", "missing")]
