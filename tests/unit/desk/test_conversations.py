"""Conversations as a window lists them."""

from __future__ import annotations

import pytest

from council.conductor.commands import AskCommand
from council.conductor.conversation import LANE, admit_ask
from council.desk import conversations as listing
from council.desk.conversations import ask_in, keep_upload
from council.desk.desk import Desk
from council.errors import CommandInvalid, RunNotFound, UsageError
from council.storage.paths import check_relative
from council.storage.store import Store
from tests.rows import begun


def asked(store: Store, number: int, user: str | None, lane: str) -> None:
    command = {"type": "ask", "user": user, "request": "What is due?"}
    begun(store, f"20261122-120000-{number:08}", type="ask", lane=f"{LANE}{lane}", command=command)


def test_a_person_finds_their_own_conversations_however_much_others_have_asked_since(desk: Desk, store: Store) -> None:
    asked(store, 1, "ada", "of-ada")
    asked(store, 2, None, "of-the-steward")
    for number in range(3, 300):
        asked(store, number, "otto", f"of-otto-{number % 2}")

    found = {
        user: [one.conversation for one in listing.conversations(desk, user)] for user in ("ada", "steward", "a_a")
    }
    assert found == {"ada": ["of-ada"], "steward": ["of-the-steward"], "a_a": []}
    assert [one.requests for one in listing.conversations(desk, "otto")] == [149, 148]
    assert len(listing.requests_of(desk, "of-otto-1", "otto")) == 149, "however many there are"
    with pytest.raises(RunNotFound):
        listing.requests_of(desk, "of-otto-1", "ada")
    with desk.premises() as premises:
        goes_on = {
            user: admit_ask(AskCommand(type="ask", request="And then?", user=user), premises).lane
            for user in ("ada", None)
        }
    assert goes_on == {"ada": f"{LANE}of-ada", None: f"{LANE}of-the-steward"}


def test_a_person_and_all_people_together_keep_so_many_documents_and_none_of_a_refused_request(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_MOST_OF_PERSON", 2)
    monkeypatch.setattr(listing, "_MOST_IN_ALL", 3)
    kept = [keep_upload(desk, user, user, b"%PDF-1") for user in ("ada", "ada", "ada-b")]
    assert all(path.is_relative_to(desk.home.root) for path in kept)
    for user, reason in (("ada", "you have uploaded 2 PDFs"), ("otto", "people here have uploaded 3 PDFs")):
        with pytest.raises(UsageError, match=reason):
            keep_upload(desk, user, "new", b"%PDF-1")
    kept.pop().unlink()
    with pytest.raises(CommandInvalid, match="request"):
        ask_in(desk, None, {"request": "x" * 20_001, "conversation": "talk"}, b"%PDF-1")
    assert sorted((desk.home.root / "artifacts/uploads").rglob("*.pdf")) == sorted(kept)


@pytest.mark.parametrize(
    ("named", "kept"),
    [
        ("contract.pdf", "contract"),
        ("../../Offer of May (2).PDF", "Offer-of-May-2"),
        ("\u202efdp.\u00dcbersicht\u3000\uff11.pdf", "fdp-\u00dcbersicht-1"),
        ("x" * 300, "x" * 40),
        ("\n\\.pdf", "document"),
        ("", "document"),
    ],
)
def test_a_document_keeps_its_own_name_as_far_as_a_path_may_have_it(desk: Desk, named: str, kept: str) -> None:
    place = keep_upload(desk, "ada", "talk", b"%PDF-1", named).relative_to(desk.home.root)
    assert (place.parent.as_posix(), place.name[49:]) == ("artifacts/uploads/talk", f"-{kept}.pdf")
    assert check_relative(place.as_posix()) == place.parts
