"""Documents that people have, and the day, through the real daemon and the real command line."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests import documents
from tests.e2e.gate import is_closing, role_of
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, text
from tests.harness import Daemon, command, drop_command, environment, journal, receipts, run_cli, run_ids, steps

OFFER = documents.pdf(["Offer of the garage", "The Kangoo costs 19,900 EUR."], [], ["Valid until 15 December."])


@pytest.fixture
def docs(home: Path) -> Path:
    folder = home / "docs"
    folder.mkdir()
    (folder / "offer.pdf").write_bytes(OFFER)
    (folder / "minutes.docx").write_bytes(documents.docx("The board meets in March.", headings=["Minutes"]))
    (folder / "rules.html").write_text("<h1>Rules</h1><p>Two <b>signatures</b> are needed.</p>")
    (folder / "costs.csv").write_bytes("Posten;Betrag\r\nMüll;12,50\r\n".encode("cp1252"))
    (folder / "letter.txt").write_bytes("Die Prüfung kostet für größere Straßen 12,50 €.\n".encode("cp1252"))
    return folder


def test_documents_are_given_read_quoted_by_their_page_and_linked(
    home: Path, docs: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    said = (
        "It is cheap: “The Kangoo costs 19,900 EUR.” [E1: docs/offer.pdf:p1]. It says “Valid until 15 December.” "
        "[E1: docs/offer.pdf:p1]. And “The board meets in March.” [E2: docs/minutes.docx:3]. See [E1: docs/offer.pdf, page 3]."
    )
    fake.reply = lambda request: text(said)
    inputs = ["docs/offer.pdf", "docs/minutes.docx", "docs/rules.html", "docs/letter.txt", "docs/costs.csv"]
    drop_command(home, command(input_artifacts=inputs))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    told = fake.requests[0].texts[0]
    assert "E1, `docs/offer.pdf` pages 1-3 of 3 (no text on page 2)" in told
    assert f"path=docs/offer.pdf sha256={hashlib.sha256(OFFER).hexdigest()}" in told
    assert "[page 1]\nOffer of the garage\nThe Kangoo costs 19,900 EUR.\n[page 2]\n[page 3]\nValid until" in told
    assert "   1| # Minutes\n   2|\n   3| The board meets in March." in told
    assert "   3| Two signatures are needed." in told
    assert "E4, `docs/letter.txt` line 1 of 1 (encoding guessed: " in told
    assert "Die Prüfung kostet für größere Straßen 12,50 €." in told
    assert "lines 1-2 of 2 (encoding guessed: Windows-1252)" in told
    assert "   2| Müll;12,50" in told
    page = (home / "artifacts" / "out.md").read_text()
    answer = page.split("## Decision")[1].split("### Quotations")[0]
    assert "[E1 docs/offer.pdf:p1](../docs/offer.pdf#page=1)" in answer
    assert answer.count("[E1 docs/offer.pdf:p3](../docs/offer.pdf#page=3)") == 2, "a wrong page is corrected"
    assert "[E2 docs/minutes.docx:3](../docs/minutes.docx)" in answer
    assert "[^E1]: E1: [docs/offer.pdf](../docs/offer.pdf#page=1), pages 1-3 of 3" in page


def test_an_invented_quotation_and_a_page_that_was_not_read_are_marked(
    home: Path, docs: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: text(
        "It says “The Kangoo costs only 9,900 EUR.” [E1: docs/offer.pdf:p1]. More is on [E1: docs/offer.pdf:p9]."
    )
    drop_command(home, command(input_artifacts=["docs/offer.pdf"]))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    answer = (home / "artifacts" / "out.md").read_text().split("## Decision")[1].split("### ")[0]
    assert "[E1: docs/offer.pdf:p9] __[no such place]__" in answer
    assert answer.count("[unverified]") == 1


def test_agents_ask_for_pages_and_find_them(home: Path, docs: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    asks = ["READ_FILE(docs/offer.pdf:p3)", 'QUERY_CORTEX("what does the Kangoo cost")', "READ_FILE(docs/offer.pdf:p7)"]

    def reply(request: RecordedRequest) -> FakeReply:
        first = role_of(request) == "COORDINATOR" and not is_closing(request)
        return text("\n".join(f"[ORCHESTRATOR_REQUEST: {ask}]" for ask in asks) if first else "I have nothing to add.")

    fake.reply = reply
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    strategist = next(request for request in fake.requests if role_of(request) == "STRATEGIST")
    said = "\n".join(strategist.texts)
    assert "`docs/offer.pdf` page 3 of 3" in said
    assert "[page 3]\nValid until 15 December." in said
    sha256 = hashlib.sha256(OFFER).hexdigest()
    assert f"docs/offer.pdf:p1 sha256 {sha256} (under: page 1)" in said
    assert "`docs/offer.pdf` has 3 pages; 7 is not among them." in said
    page = (home / "artifacts" / "out.md").read_text()
    assert "`docs/offer.pdf:p1`" in page


def test_the_command_line_finds_passages_of_documents(home: Path, docs: Path) -> None:
    assert run_cli("cortex", "index", cwd=home).returncode == 0
    found = run_cli("cortex", "query", "Kangoo", cwd=home)
    assert "docs/offer.pdf:p1  page 1" in found.stdout
    assert "The Kangoo costs 19,900 EUR." in found.stdout


def test_validate_says_what_is_cut_off_and_what_cannot_be_read(home: Path, docs: Path) -> None:
    (docs / "long.pdf").write_bytes(documents.pdf(*[["words " * 15] * 40 for _ in range(60)]))
    (docs / "scan.pdf").write_bytes(documents.pdf([]))
    (docs / "letter.rtf").write_bytes(b"{\\rtf1 Dear all}")
    (docs / "long.md").write_text("a line of text\n" * 10_000)
    (docs / "torn.pdf").write_bytes(documents.damaged_pdf(["one"], ["lost"]))
    names = ("long.pdf", "scan.pdf", "letter.rtf", "long.md", "offer.pdf", "torn.pdf", "minutes.docx")
    inputs = [f"docs/{name}" for name in names]
    (home / "c.json").write_text(json.dumps(command(input_artifacts=inputs)))
    said = " ".join(run_cli("validate", "c.json", cwd=home).stdout.split())
    assert re.search(r"pages 1 to 1\d of `docs/long.pdf` fit; the rest, up to 60, is cut off", said)
    [pages] = re.findall(r"name a part that fits, such as `(docs/long.pdf:p1\d-[23]\d)`, as one more input", said)
    assert re.search(r"lines 1 to 4369 of `docs/long.md` fit; the rest, up to 10000, is cut off", said)
    assert "such as `docs/long.md:4370-8738`" in said
    assert "`docs/scan.pdf` contains no text; it may be a scan" in said
    assert "run text recognition (OCR) over it first" in said
    assert "`docs/letter.rtf` is RTF, which is not read" in said
    assert "save it as DOCX, PDF or plain text" in said
    assert "`docs/offer.pdf`: no text on page 2" in said
    assert "`docs/torn.pdf`: page 2 could not be read in full" in said
    assert "docs/minutes.docx" not in said
    (home / "d.json").write_text(json.dumps(command(input_artifacts=[pages, "docs/long.md:4370-8738"])))
    assert run_cli("validate", "d.json", cwd=home).stdout.startswith("d.json: ok ")


def test_a_line_that_is_cut_off_is_told_by_validate_and_by_the_page(home: Path, docs: Path) -> None:
    (docs / "line.txt").write_text("word " * 30_000 + "\n")
    (docs / "table.json").write_text("[" + "1, " * 30_000 + "1]\nend\n")
    (home / "c.json").write_text(json.dumps(command(input_artifacts=["docs/line.txt", "docs/table.json"])))
    said = " ".join(run_cli("validate", "c.json", cwd=home).stdout.split())
    for path in ("docs/line.txt", "docs/table.json"):
        assert f"line 1 of `{path}` is too long: its rest, and all behind it, is cut off" in said
    assert "fix: break it into lines; or raise max_context_bytes_per_request" in said
    assert run_cli("submit", "--wait", "--model", "offline", "c.json", cwd=home).returncode == 0
    page = (home / "artifacts" / "out.md").read_text()
    assert "> Not all of an input was read: `docs/line.txt` line 1 of 1: the line is too long." in page
    assert "> Not all of an input was read: `docs/table.json` line 1 of 2: the line is too long." in page


def test_validate_warns_of_inputs_that_are_more_than_a_model_holds(home: Path, docs: Path) -> None:
    (docs / "long.md").write_text("a line of text\n" * 2_800)
    (docs / "note.md").write_text("Short.\n")
    told = "the inputs have about 42,007 characters, but the window of ollama:m holds about 10,682"

    def said(**keys: Any) -> str:
        (home / "c.json").write_text(json.dumps(command(**keys)))
        done = run_cli("validate", "c.json", cwd=home, env=environment(COUNCIL_MODEL="ollama:m", **served))
        assert done.returncode == 0, done.stdout + done.stderr
        return " ".join(done.stdout.split())

    served: dict[str, str] = {}
    both = ["docs/long.md", "docs/note.md", "docs/note.md"]
    warned = said(input_artifacts=both)
    assert told in warned
    assert "set context_tokens in [providers.ollama] to what it holds" in warned
    assert "characters" not in said(input_artifacts=["docs/note.md"])
    assert "characters" not in said(input_artifacts=both, config={"model": "offline"})
    served["OLLAMA_CONTEXT_LENGTH"] = "32768"
    assert "characters" not in said(input_artifacts=both)


def test_what_was_extracted_is_kept_in_the_run_and_replayed_without_the_file(
    home: Path, docs: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    drop_command(home, command(input_artifacts=["docs/offer.pdf"]))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    [run_id] = run_ids(home)
    kept = steps(home, run_id)["input/1"]
    assert kept["text"].startswith("[page 1]\nOffer of the garage\n")
    assert (kept["sha256"], kept["last_line"]) == (hashlib.sha256(OFFER).hexdigest(), 3)
    (docs / "offer.pdf").write_bytes(b"no document any more")
    page = (home / "artifacts" / "out.md").read_text()
    assert run_cli("replay", run_id, cwd=home).stdout == page


def test_offline_quotes_a_pdf_by_its_pages(home: Path, docs: Path) -> None:
    drop_command(home, command("What does the Kangoo cost?", input_artifacts=["docs/offer.pdf"]))
    assert run_cli("run", "--once", "--model", "offline", cwd=home).returncode == 0
    page = (home / "artifacts" / "out.md").read_text()
    assert "[E1 docs/offer.pdf:p1](../docs/offer.pdf#page=1)" in page
    assert "[page 1]" not in page


# ── the day ──────────────────────────────────────────────────────────────────────────────────────────────────────────

EAST, WEST = "Pacific/Kiritimati", "Pacific/Pago_Pago"  # 25 hours apart: their days are never the same


def days_there(zone: str, began: datetime) -> set[str]:
    return {moment.astimezone(ZoneInfo(zone)).date().isoformat() for moment in (began, datetime.now().astimezone())}


@pytest.mark.parametrize("zone", [EAST, WEST])
def test_the_day_of_admission_in_the_homes_zone_stands_in_record_0_and_in_each_prompt(
    home: Path, fake: FakeGemini, env: dict[str, str], zone: str
) -> None:
    began = datetime.now().astimezone()
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env={**env, "COUNCIL_TIMEZONE": zone}).returncode == 0
    [run_id] = run_ids(home)
    day = journal(home, run_id)[0]["day"]
    assert day in days_there(zone, began)
    assert len(fake.requests) == 4
    for request in fake.requests:
        assert f"The task was given on {date.fromisoformat(day):%A}, {day}." in "".join(request.texts)


def test_a_resumed_run_keeps_the_day_of_its_admission(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    began = datetime.now().astimezone()
    drop_command(home, command(rounds=2))
    with Daemon(home, env={**env, "COUNCIL_TIMEZONE": EAST}) as daemon:
        daemon.wait("turn_ended", role="COORDINATOR", round=1)
        daemon.kill()
    before = len(fake.requests)
    assert run_cli("run", "--once", cwd=home, env={**env, "COUNCIL_TIMEZONE": WEST}).returncode == 0
    [run_id] = run_ids(home)
    day = journal(home, run_id)[0]["day"]
    assert day in days_there(EAST, began)
    assert len(fake.requests) > before
    assert all(f"{day}. Take that day for today." in "".join(request.texts) for request in fake.requests)
    assert receipts(home)[0]["status"] == "succeeded"


def test_a_cassette_tells_the_day_that_it_was_recorded_on(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env={**env, "COUNCIL_TIMEZONE": EAST}).returncode == 0
    [recorded] = run_ids(home)
    assert run_cli("cassette", recorded, "-o", "c.cassette.jsonl", cwd=home).returncode == 0
    for session in (home / "session_states").glob("*.json"):
        session.unlink()
    drop_command(home, command())
    again = {"COUNCIL_TIMEZONE": WEST, "COUNCIL_MODEL": "cassette:c.cassette.jsonl"}
    assert run_cli("run", "--once", cwd=home, env={**env, **again}).returncode == 0
    days = {journal(home, run_id)[0]["day"] for run_id in run_ids(home)}
    assert len(run_ids(home)) == 2
    assert len(days) == 1


def test_a_zone_that_does_not_exist_is_refused_with_the_one_that_may_be_meant(home: Path) -> None:
    (home / "council.toml").write_text('timezone = "Europe/Berln"\n')
    refused = run_cli("run", "--once", "--model", "offline", cwd=home)
    assert refused.returncode != 0
    assert "did you mean Europe/Berlin?" in refused.stderr
