"""Where artifacts go, what they never overwrite, and how they stand up to hostile words from a model."""

from __future__ import annotations

import hashlib
import itertools
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from council.ids import sha256_hex
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, slow, text
from tests.harness import (
    Daemon,
    command,
    drop_command,
    environment,
    front_matter,
    kept_pages,
    make_home,
    opened,
    receipts,
    run_cli,
    take_back_commit,
    wait_until,
)

TASK = "Choose a storage engine for the archive."
SLUG = "choose-a-storage-engine-for-the-archive.md"
MINE = "# My own words\n\nNobody asked a council.\n"
LEFT_ALONE = "`artifacts/out.md` is not in Council's records, so Council left it as it is."
EDITED = "`artifacts/out.md` was edited by hand, so Council left it as it is."


def run_once(home: Path, body: dict[str, Any], env: dict[str, str] | None = None) -> dict[str, Any]:
    """Runs one command to its end; its receipt."""
    known = {receipt["run_id"] for receipt in receipts(home)}
    drop_command(home, body)
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    [receipt] = [receipt for receipt in receipts(home) if receipt["run_id"] not in known]
    return receipt


def without_front_matter(page: str) -> str:
    return page.split("\n---\n", 1)[1]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def kept(home: Path, run_id: str) -> bytes:
    return kept_pages(home, run_id)["artifact.md"]


def beside(home: Path, run_id: str) -> Path:
    return home / "artifacts" / f"out.{run_id}.md"


def say(by_role: dict[str, str], synthesis: str = "The decision.") -> Callable[[RecordedRequest], FakeReply]:
    def reply(request: RecordedRequest) -> FakeReply:
        if "The rounds are over" in request.texts[-1]:
            return text(synthesis)
        role = re.search(r"You are ([A-Z]+), a member", request.system)
        assert role is not None
        return text(by_role.get(role[1], "Nothing to add."))

    return reply


# ── where it goes ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wanted", ["artifacts/", "artifacts", "artifacts/new/deep/", "./artifacts//"])
def test_a_folder_as_output_path_gets_a_file_named_after_the_task(quick: Path, wanted: str) -> None:
    receipt = run_once(quick, command(TASK, output_artifact_path=wanted))
    assert receipt["artifact"]["path"] == str(Path(wanted) / SLUG)
    assert receipt["artifact"]["sha256"] == sha256(quick / wanted / SLUG)


def test_the_same_folder_twice_keeps_the_earlier_artifact_with_its_run(quick: Path) -> None:
    first = run_once(quick, command(TASK, output_artifact_path="artifacts/"))
    (quick / "script.yaml").write_text('default: {text: "On second thought, everything."}\n')
    second = run_once(quick, command(TASK, output_artifact_path="artifacts/"))
    assert first["artifact"]["path"] == second["artifact"]["path"] == f"artifacts/{SLUG}"
    assert sha256_hex(kept(quick, first["run_id"])) == first["artifact"]["sha256"]
    assert sha256(quick / "artifacts" / SLUG) == second["artifact"]["sha256"]
    assert "On second thought" in (quick / "artifacts" / SLUG).read_text()
    assert [path.name for path in (quick / "artifacts").glob("choose*")] == [SLUG]


def test_a_page_that_was_done_again_is_kept_too_when_another_takes_its_place(quick: Path) -> None:
    pages = []
    for number in range(3):
        drop_command(quick, command(f"Task {number}."))
        assert run_cli("run", "--once", cwd=quick).returncode == 0
        pages.append((quick / "artifacts" / "out.md").read_text())
        if number == 1:
            [first] = [receipt["run_id"] for receipt in receipts(quick) if receipt["title"] == "Task 0"]
            (quick / "script.yaml").write_text('default: {text: "On second thought."}\n')
            assert run_cli("retry", first, cwd=quick).returncode == 0
            assert run_cli("run", "--once", cwd=quick).returncode == 0
            again = (quick / "artifacts" / "out.md").read_text()
    assert "On second thought." in again
    assert kept_pages(quick, first) == {"artifact.md": pages[0].encode(), "artifact-1.md": again.encode()}
    assert run_cli("replay", first, "--check", cwd=quick).returncode == 0
    assert run_cli("forget", "second thought", "--yes", cwd=quick).returncode == 0
    assert b"second thought" not in kept_pages(quick, first)["artifact-1.md"]
    assert run_cli("replay", first, "--check", cwd=quick).returncode == 0


def test_the_finished_artifact_is_kept_also_when_its_successor_was_queued_while_it_was_being_written(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    opened = threading.Event()

    def reply(request: RecordedRequest) -> FakeReply:
        if "You are STRATEGIST" in request.system:
            opened.wait(100)
        return text("The final words." if "The rounds are over" in request.texts[-1] else "So be it.")

    fake.reply = reply
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command(TASK), "first.json")
        first = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        assert "status: in_progress" in (home / "artifacts" / "out.md").read_text()
        drop_command(home, command(TASK), "second.json")
        daemon.wait("run_queued", file="second.json")
        opened.set()
        daemon.wait("run_ended", file="second.json", status="succeeded")
    [receipt] = [receipt for receipt in receipts(home) if receipt["run_id"] == first]
    assert front_matter(kept(home, first).decode())["status"] == "succeeded"
    assert sha256_hex(kept(home, first)) == receipt["artifact"]["sha256"]
    assert front_matter((home / "artifacts" / "out.md").read_text())["id"] != first


def test_cancelling_a_queued_run_does_not_touch_the_artifact_of_the_run_that_holds_its_path(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    opened = threading.Event()

    def reply(request: RecordedRequest) -> FakeReply:
        if "You are STRATEGIST" in request.system:
            opened.wait(100)
        return text("So be it.")

    fake.reply = reply
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command(TASK), "first.json")
        first = daemon.wait("turn_started", role="STRATEGIST")["run_id"]
        drop_command(home, command("Another task, soon cancelled."), "second.json")
        second = daemon.wait("run_queued", file="second.json")["run_id"]
        drop_command(home, {"type": "cancel", "run": second}, "stop.json")
        daemon.wait("control")
        opened.set()
        daemon.wait("run_ended", run_id=first, status="succeeded")
        daemon.wait("run_ended", run_id=second, status="cancelled")
        drop_command(home, command("A third task."), "third.json")
        third = daemon.wait("run_ended", file="third.json", status="succeeded")["run_id"]
    by_run = {receipt["run_id"]: receipt for receipt in receipts(home)}
    assert front_matter((home / "artifacts" / "out.md").read_text())["id"] == third
    for run_id in (first, second):
        path = home / by_run[run_id]["artifact"]["path"]
        pages = [*([path.read_bytes()] if path.exists() else []), *kept_pages(home, run_id).values()]
        assert by_run[run_id]["artifact"]["sha256"] in map(sha256_hex, pages)


@pytest.mark.parametrize(
    "ending", ["failed", "cancelled", "failed before it began", "failed at its inputs", "failed after a kill"]
)
def test_a_decision_stays_where_it_is_when_a_later_run_has_none(
    home: Path, fake: FakeGemini, env: dict[str, str], ending: str
) -> None:
    """The growing page takes its place meanwhile."""
    page, reached, opened = home / "artifacts" / "out.md", threading.Event(), threading.Event()
    first = run_once(home, command(), env)
    decision = page.read_bytes()

    def reply(request: RecordedRequest) -> FakeReply:
        if "You are STRATEGIST" not in request.system:
            return text("So be it.")
        reached.set()
        opened.wait(100)
        return text("So be it.") if ending == "cancelled" else error(401)

    fake.reply = reply
    body = command(config={"model": "bogus:x"}) if ending == "failed before it began" else command()
    body |= {"input_artifacts": ["gone.md"]} if ending == "failed at its inputs" else {}
    at_once = ending in ("failed before it began", "failed at its inputs")
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, body)
        if not at_once:
            assert reached.wait(60)
            wait_until(lambda: "status: in_progress" in page.read_text(), "the page grows")
        if ending == "cancelled":
            drop_command(home, {"type": "cancel", "run": daemon.wait("run_queued")["run_id"]}, "stop.json")
        if ending == "failed after a kill":
            daemon.process.kill()
        else:
            if ending != "cancelled":
                opened.set()
            daemon.wait("run_ended")
            opened.set()
            assert daemon.stop() == 0
    if ending == "failed after a kill":
        opened.set()
        assert run_cli("run", "--once", cwd=home, env=env).returncode == 1
    [receipt] = [each for each in receipts(home) if each["type"] == "deliberate" and each["run_id"] != first["run_id"]]
    assert page.read_bytes() == decision
    assert receipt["status"] == ending.split()[0]
    assert receipt["artifact"]["path"] == f"artifacts/out.{receipt['run_id']}.md"
    assert receipt["artifact"]["sha256"] == sha256(beside(home, receipt["run_id"]))
    because = "was cancelled" if ending == "cancelled" else "failed"
    told = f"`artifacts/out.md` keeps the decision of run {first['run_id']}, because this run {because}."
    assert told in receipt["notes"]
    assert told in beside(home, receipt["run_id"]).read_text()
    assert told in run_cli("show", "last", cwd=home, env=env).stdout
    assert f"artifacts/out.{receipt['run_id']}.md" in run_cli("status", cwd=home, env=env).stdout
    assert run_cli("audit", "verify", cwd=home, env=env).returncode == 0
    assert run_cli("replay", "--check", receipt["run_id"], cwd=home, env=env).returncode == 0
    fake.reply = lambda request: text("Now at last.")
    run_once(home, command(), env)
    assert "Now at last." in page.read_text(), "the path is used again"
    assert sha256_hex(kept(home, first["run_id"])) == first["artifact"]["sha256"]


def answers_once(request: RecordedRequest) -> FakeReply:
    """The first turn is answered, so that the page grows; then the run fails."""
    return text("So be it.") if "You are COORDINATOR" in request.system else error(401)


def test_the_decision_of_a_pruned_run_stays_where_it_is_too(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    page = home / "artifacts" / "out.md"
    first = run_once(home, command(), env)
    decision = page.read_bytes()
    run_once(home, command(output_artifact_path="artifacts/other.md"), env)
    (home / "council.toml").write_text("keep_runs = 1\n")
    assert run_cli("prune", cwd=home, env=env).returncode == 0
    fake.reply = answers_once
    drop_command(home, command("Another task."))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 1
    failed = receipts(home)[-1]
    assert page.read_bytes() == decision
    assert beside(home, failed["run_id"]).exists()
    assert f"`artifacts/out.md` keeps the decision of run {first['run_id']}" in failed["notes"][-1]


def again(home: Path, env: dict[str, str], run_id: str) -> dict[str, Any]:
    """Does a run again to its end; its receipt."""
    assert run_cli("retry", run_id, cwd=home, env=env).returncode == 0
    run_cli("run", "--once", cwd=home, env=env)
    [receipt] = [each for each in receipts(home) if each["run_id"] == run_id]
    return receipt


def test_a_decision_stays_when_its_own_run_is_done_again_and_fails(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    page = home / "artifacts" / "out.md"
    first = run_once(home, command(), env)
    decision = page.read_bytes()
    fake.reply = answers_once
    for _ in range(2):
        failed = again(home, env, first["run_id"])
        assert page.read_bytes() == decision
        assert failed["status"] == "failed"
        assert failed["artifact"]["path"] == f"artifacts/out.{first['run_id']}.md"
        told = "`artifacts/out.md` keeps the earlier decision of this run, because this attempt failed."
        assert told in failed["notes"]
    drop_command(home, command("Another task."))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 1
    assert page.read_bytes() == decision, "also from another run that fails"
    assert run_cli("audit", "verify", cwd=home, env=env).returncode == 0
    assert run_cli("replay", "--check", first["run_id"], cwd=home, env=env).returncode == 0


def test_a_run_that_failed_beside_a_decision_and_then_has_its_own_leaves_one_page(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    page = home / "artifacts" / "out.md"
    run_once(home, command(), env)
    for _ in range(2):
        fake.reply = answers_once
        drop_command(home, command("Another task."))
        assert run_cli("run", "--once", cwd=home, env=env).returncode == 1
        run_id = receipts(home)[-1]["run_id"]
        failed = beside(home, run_id).read_bytes()
        fake.reply = lambda request: text("Now at last.")
        assert again(home, env, run_id)["artifact"]["path"] == "artifacts/out.md"
        assert front_matter(page.read_text())["id"] == run_id
        assert not beside(home, run_id).exists()
        assert failed in kept_pages(home, run_id).values()
        assert run_cli("audit", "verify", cwd=home, env=env).returncode == 0


def test_a_page_beside_a_decision_that_a_person_edited_is_left(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    run_once(home, command(), env)
    fake.reply = answers_once
    drop_command(home, command("Another task."))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 1
    run_id = receipts(home)[-1]["run_id"]
    beside(home, run_id).write_text(MINE)
    fake.reply = lambda request: text("Now at last.")
    assert again(home, env, run_id)["artifact"]["path"] == "artifacts/out.md"
    assert beside(home, run_id).read_text() == MINE


def test_a_page_without_a_decision_is_replaced_by_the_next_and_an_edited_growing_one_is_left(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    page = home / "artifacts" / "out.md"
    fake.reply = lambda request: error(401)
    for number in range(2):
        drop_command(home, command(f"Task {number}."))
        assert run_cli("run", "--once", cwd=home, env=env).returncode == 1
    assert front_matter(page.read_text())["title"] == "Task 1"
    fake.reply = lambda request: text("So be it.")
    run_once(home, command(), env)

    def edits(request: RecordedRequest) -> FakeReply:
        page.write_text(MINE)
        return error(401)

    fake.reply = edits
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 1
    assert page.read_text() == MINE
    assert EDITED in beside(home, receipts(home)[-1]["run_id"]).read_text()


# ── what belongs to a person ─────────────────────────────────────────────────────────────────────────────────────────


def assert_left_alone(home: Path, receipt: dict[str, Any], event: dict[str, Any], told: str = LEFT_ALONE) -> None:
    """The person's file stands; the run's stands beside it; artifact, receipt and event say so."""
    assert (home / "artifacts" / "out.md").read_text() == MINE
    page = beside(home, receipt["run_id"]).read_text()
    assert front_matter(page)["status"] == receipt["status"] == "succeeded"
    assert told in page
    assert page.index(told) < page.index("## Decision")
    assert receipt["artifact"]["path"] == f"artifacts/out.{receipt['run_id']}.md"
    assert receipt["artifact"]["sha256"] == sha256(beside(home, receipt["run_id"]))
    assert told in receipt["notes"]
    assert event["artifact"] == receipt["artifact"]["path"]
    assert told in event["notes"]


def test_an_artifact_that_a_person_edited_is_left_and_the_new_one_stands_beside_it(quick: Path) -> None:
    first = run_once(quick, command())
    (quick / "artifacts" / "out.md").write_text(MINE)
    with Daemon(quick) as daemon:
        daemon.ready()
        drop_command(quick, command())
        event = daemon.wait("run_ended")
    [receipt] = [receipt for receipt in receipts(quick) if receipt["run_id"] != first["run_id"]]
    assert_left_alone(quick, receipt, event, EDITED)


def test_a_file_of_the_persons_own_at_the_output_path_is_left(quick: Path) -> None:
    (quick / "artifacts" / "out.md").write_text(MINE)
    with Daemon(quick) as daemon:
        daemon.ready()
        drop_command(quick, command())
        event = daemon.wait("run_ended")
    [receipt] = receipts(quick)
    assert_left_alone(quick, receipt, event)


def test_the_output_path_is_used_again_once_the_persons_file_is_gone(quick: Path) -> None:
    (quick / "artifacts" / "out.md").write_text(MINE)
    first = run_once(quick, command())
    (quick / "artifacts" / "out.md").unlink()
    second = run_once(quick, command())
    assert first["artifact"]["path"] == f"artifacts/out.{first['run_id']}.md"
    assert second["artifact"]["path"] == "artifacts/out.md"
    assert "notes" not in second


@pytest.mark.parametrize("during", ["The rounds are over", "You are STRATEGIST"])
def test_a_person_who_edits_the_growing_artifact_keeps_the_edit(
    home: Path, fake: FakeGemini, env: dict[str, str], during: str
) -> None:
    """The edit happens while a model call is under way: an early one, or the last before the commit."""

    def reply(request: RecordedRequest) -> FakeReply:
        if during in request.system or during in request.texts[-1]:
            (home / "artifacts" / "out.md").write_text(MINE)
        return text("So be it.")

    fake.reply = reply
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command())
        event = daemon.wait("run_ended")
    [receipt] = receipts(home)
    assert_left_alone(home, receipt, event, EDITED)


def test_the_decision_takes_the_place_of_a_growing_page_whose_note_was_lost_with_the_power(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    page = home / "artifacts" / "out.md"
    fake.reply = lambda request: slow(60) if "You are AUDITOR" in request.system else text("So be it.")
    drop_command(home, command())
    with Daemon(home, env=env) as daemon:
        daemon.wait("turn_started", role="AUDITOR")
        wait_until(lambda: page.exists() and "status: in_progress" in page.read_text(), "the page grows")
        daemon.kill()
    with opened(home) as store:
        store.write_now(lambda tx: tx.execute("DELETE FROM written"))
    fake.reply = lambda request: text("So be it.")
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert front_matter(page.read_text())["status"] == "succeeded"
    assert [path.name for path in (home / "artifacts").glob("out*")] == ["out.md"]


def test_a_command_that_names_a_folder_in_which_the_person_edits_leaves_that_file_too(quick: Path) -> None:
    run_once(quick, command(TASK, output_artifact_path="artifacts/"))
    (quick / "artifacts" / SLUG).write_text(MINE)
    second = run_once(quick, command(TASK, output_artifact_path="artifacts/"))
    assert (quick / "artifacts" / SLUG).read_text() == MINE
    assert second["artifact"]["path"] == f"artifacts/{SLUG.removesuffix('.md')}.{second['run_id']}.md"


def links(home: Path) -> bool:
    return (home / "decisions").is_symlink()


@pytest.mark.parametrize("instead", ["nothing", "a file", "a link to elsewhere"])
def test_a_run_whose_output_folder_vanishes_ends_and_the_next_command_is_served(
    home: Path, fake: FakeGemini, env: dict[str, str], instead: str
) -> None:
    outside = home.parent / "outside"
    outside.mkdir()
    (home / "decisions").mkdir()

    def reply(request: RecordedRequest) -> FakeReply:
        if "The rounds are over" in request.texts[-1] and not links(home) and (home / "decisions").is_dir():
            shutil.rmtree(home / "decisions")
            if instead == "a file":
                (home / "decisions").write_text(MINE)
            elif instead == "a link to elsewhere":
                (home / "decisions").symlink_to(outside)
        return text("So be it.")

    fake.reply = reply
    with Daemon(home, env=env) as daemon:
        daemon.ready()
        drop_command(home, command(output_artifact_path="decisions/out.md"), "first.json")
        ended = daemon.wait("run_ended", file="first.json")
        drop_command(home, command(), "second.json")
        assert daemon.wait("run_ended", file="second.json")["status"] == "succeeded"
    assert [receipt["run_id"] for receipt in receipts(home)].count(ended["run_id"]) == 1
    assert len(receipts(home)) == 2
    assert list(outside.iterdir()) == []


# ── what it looks like ───────────────────────────────────────────────────────────────────────────────────────────────

KEYS = [
    "id", "title", "status", "created", "finished", "agents", "rounds", "model", "cost", "audit_head",
]  # fmt: skip


def test_the_front_matter_is_flat_yaml_with_ten_keys_and_the_receipt_says_the_rest(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    body = command('Is it "true": yes? [a, b] # no, & *never*: 100%', rounds=2)
    path = drop_command(home, body)
    command_sha256 = sha256(path)
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    [receipt] = receipts(home)
    keys = front_matter((home / "artifacts" / "out.md").read_text())
    assert list(keys) == KEYS
    assert not any(isinstance(value, dict) for value in keys.values())
    assert keys["id"] == receipt["run_id"]
    assert keys["title"] == receipt["title"]
    assert keys["title"].startswith('Is it "true"')
    assert keys["status"] == "succeeded"
    assert receipt["details"] == {
        "mode": "language-model",
        "protocol": "triad",
        "agents": ["COORDINATOR", "STRATEGIST", "AUDITOR"],
    }
    assert keys["agents"] == ["COORDINATOR", "STRATEGIST", "AUDITOR"]
    assert keys["rounds"] == 2
    assert receipt["calls"] == 7
    assert receipt["command_sha256"] == command_sha256
    assert receipt["tokens"]["input"] > 0
    assert receipt["tokens"]["output"] > 0
    assert re.fullmatch(r"0\.\d+ USD", str(keys["cost"]))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(keys["created"]))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(keys["finished"]))


def test_tokens_that_no_provider_counted_are_unknown_and_never_zero(quick: Path) -> None:
    receipt = run_once(quick, command())
    keys = front_matter((quick / "artifacts" / "out.md").read_text())
    assert keys["cost"] == "none"
    assert receipt["tokens"]["unknown_calls"] == receipt["calls"] == 4
    assert receipt["details"]["mode"] == "scripted"


HOSTILE = """\
---
status: failed
title: forged
---

# A heading of my own

## Decision

The real decision is another one
================================

</details>

<details open><summary>trust me</summary>
<script>alert(1)</script> <img src="http://evil.example/a.png"> <b onclick="x()">bold</b>

![tracker](http://evil.example/b.png) ![ref][pic] ![obsidian](//evil.example/c.png) ![[http://evil.example/d.png]]

[pic]: http://evil.example/e.png

[^E1]: [docs/needs.md](http://evil.example/), forged evidence
[^1]: another

> # quoted heading
> </details>

- </details>
- # listed heading

[click](javascript:alert(1)) <javascript:alert(2)> http://ok.example/

```mermaid
sequenceDiagram
    A->>B: forged
```

~~~
</details>
"""


def inline_tokens(page: str) -> list[Any]:
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(without_front_matter(page))
    return [*tokens, *(child for token in tokens for child in token.children or [])]


def headings(page: str) -> list[tuple[str, str]]:
    tokens = MarkdownIt("commonmark", {"html": True}).parse(without_front_matter(page))
    return [
        (token.tag, following.content)
        for token, following in itertools.pairwise(tokens)
        if token.type == "heading_open"
    ]


def test_hostile_words_of_an_agent_change_nothing_of_the_page_around_them(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "docs").mkdir()
    (home / "docs" / "needs.md").write_text("# Needs\nThe archive grows.\n")
    fake.reply = say(dict.fromkeys(("COORDINATOR", "STRATEGIST", "AUDITOR"), HOSTILE), HOSTILE)
    receipt = run_once(home, command(f"Judge this.\n\n{HOSTILE}", input_artifacts=["docs/needs.md"]), env)
    page = (home / "artifacts" / "out.md").read_text()
    keys = front_matter(page)
    assert list(keys) == KEYS
    assert (keys["status"], keys["title"]) == ("succeeded", "Judge this")
    tokens = inline_tokens(page)
    html = "".join(token.content for token in tokens if token.type in ("html_block", "html_inline"))
    assert re.findall(r"</?\w+[^>]*>", html) == ["<details>", "<summary>", "</summary>", "</details>"]
    assert [token.type for token in tokens if token.type == "image"] == []
    assert "<img" not in page
    assert "![" not in re.sub(r"\\.", "", page)
    links = [str(token.attrGet("href")) for token in tokens if token.type == "link_open"]
    assert [link for link in links if link.startswith("javascript:")] == []
    assert [tag_and_text for tag_and_text in headings(page) if tag_and_text[0] in ("h1", "h2", "h3")] == [
        ("h1", "Judge this"),
        ("h2", "Decision"),
        ("h2", "Task"),
        ("h2", "Deliberation"),
        ("h3", "ROUND 1"),
    ]
    definitions = [line for line in page.splitlines() if re.match(r"[ >]*\[\^[^\]]+\]:", line)]
    assert len(definitions) == 1
    assert definitions[0].startswith("[^E1]: E1: [docs/needs.md](../docs/needs.md#L1)")
    assert re.search(r"(?m)^[ >]*\[pic\]:", page) is None
    drawn = [token for token in tokens if token.type == "fence" and token.info.strip().startswith("mermaid")]
    assert drawn == []
    assert receipt["status"] == "succeeded"


LEFT_OPEN = [
    "```\nnever closed",
    "> ```\n> never closed",
    "- item\n\n      deep code\n\n```",
    "<!-- never closed",
    "<details><details>",
    "text\n---",
    "| a | b |\n|---|---|\n| </details> | ![x](http://evil.example/x.png) |",
    "`</details>` and ``` </details>",
    "$$\n</details>\n$$",
    "\\</details> &lt;/details> &#60;/details&#62;",
    "<details\nopen\n>",
    "<![CDATA[ x",
    "<?php",
    "\u2028---\u2028# x\r\r# y\x0b# z\x00\x1b[31m",
]


@pytest.fixture(scope="module")
def left_open(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """One page per text of LEFT_OPEN, said in a turn and as the decision; one daemon makes them all."""
    home = make_home(tmp_path_factory.mktemp("open") / "home", settings="settle_s = 0.5\nscan_interval_s = 0.5\n")

    def reply(request: RecordedRequest) -> FakeReply:
        # Memory of earlier tasks stands before the task.
        number = re.search(r"Judge text ([0-9]+)", request.texts[0].split("# The task")[-1])
        assert number is not None
        return text(LEFT_OPEN[int(number[1])])

    with FakeGemini(reply=reply) as fake:
        for number in range(len(LEFT_OPEN)):
            drop_command(home, command(f"Judge text {number}.", output_artifact_path=f"artifacts/{number}/out.md"))
        env = environment(GEMINI_API_KEY="test-key-0123456789abcdef", GOOGLE_GEMINI_BASE_URL=fake.url)
        assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    return [(home / "artifacts" / f"{number}" / "out.md").read_text() for number in range(len(LEFT_OPEN))]


@pytest.mark.parametrize("number", range(len(LEFT_OPEN)))
def test_no_construct_that_stays_open_swallows_what_follows(left_open: list[str], number: int) -> None:
    page = left_open[number]
    assert [heading for heading in headings(page) if heading[0] in ("h1", "h2", "h3")] == [
        ("h1", f"Judge text {number}"),
        ("h2", "Decision"),
        ("h2", "Task"),
        ("h2", "Deliberation"),
        ("h3", "ROUND 1"),
    ]
    tokens = inline_tokens(page)
    html = "".join(token.content for token in tokens if token.type in ("html_block", "html_inline"))
    assert re.findall(r"</?\w+[^>]*>", html) == ["<details>", "<summary>", "</summary>", "</details>"]
    assert [token.type for token in tokens if token.type == "image"] == []
    assert "\x1b" not in page
    assert "\x00" not in page


def test_hostile_names_and_requests_change_nothing_of_the_page_around_them(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "docs").mkdir()
    odd = "docs/a [x](http:evil) <b> `c` | ](.md"
    (home / odd).write_text("odd but readable\n")
    ask = "[ORCHESTRATOR_REQUEST: READ_FILE(</details>`![x](http://evil.example/x.png)`.md)]"
    fake.reply = say({"COORDINATOR": f"I ask.\n\n{ask}"})
    run_once(home, command("Judge this.", input_artifacts=[odd]), env)
    page = (home / "artifacts" / "out.md").read_text()
    tokens = inline_tokens(page)
    html = "".join(token.content for token in tokens if token.type in ("html_block", "html_inline"))
    assert re.findall(r"</?\w+[^>]*>", html) == ["<details>", "<summary>", "</summary>", "</details>"]
    assert [token.type for token in tokens if token.type == "image"] == []
    links = [str(token.attrGet("href")) for token in tokens if token.type == "link_open"]
    assert [link for link in links if "evil.example" in link or link.startswith("http:evil")] == []
    assert "**ORCHESTRATOR (Refused Request):**" in page


@pytest.mark.parametrize("output", ["artifacts/out.md", "out.md", "artifacts/a b/c/out.md"])
def test_a_citation_becomes_a_relative_link_to_the_line_of_a_file_that_is_there(
    home: Path, fake: FakeGemini, env: dict[str, str], output: str
) -> None:
    from urllib.parse import unquote, urlsplit

    (home / "docs").mkdir()
    (home / "docs" / "the needs.md").write_text("# Needs\n\nThe archive grows by 40 GB a month.\n")
    said = "It grows [E1: docs/the needs.md:3], see [E1: docs/the needs.md:1-3] and [E1]. Not [E2: docs/other.md:1]."
    fake.reply = say({"AUDITOR": said}, said)
    run_once(home, command(output_artifact_path=output, input_artifacts=["docs/the needs.md"]), env)
    page = (home / output).read_text()
    links = [str(token.attrGet("href")) for token in inline_tokens(page) if token.type == "link_open"]
    assert [urlsplit(link).fragment for link in links].count("L3") == 2  # in the decision and in the turn
    assert len(links) >= 4
    for link in links:
        assert not link.startswith(("/", "http"))
        target = (home / output).parent / unquote(urlsplit(link).path)
        assert target.resolve() == home / "docs" / "the needs.md"
        assert target.is_file()
    assert "[E2: docs/other.md:1]" in page
    assert page.count("[^E1]: ") == 1


def test_a_page_has_one_diagram_where_somebody_asked_for_something_and_none_else(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    drawn = "```mermaid\ngraph TD; A-->B\n```"
    fake.reply = say({"STRATEGIST": drawn})
    run_once(home, command(rounds=3), env)
    assert "mermaid" not in (home / "artifacts" / "out.md").read_text()
    asking = "[ORCHESTRATOR_REQUEST: READ_FILE(none.md)]\n[ORCHESTRATOR_REQUEST: READ_FILE(gone.md)]"
    fake.reply = say({"STRATEGIST": f"{drawn}\n\n{asking}"})
    run_once(home, command(rounds=3), env)
    page = (home / "artifacts" / "out.md").read_text()
    assert "\n> - [request: READ_FILE(none.md)]\n> - [request: READ_FILE(gone.md)]\n" in page
    assert page.count("```mermaid") == 1
    assert page.count("Note over O: round") == 3
    assert page.count("graph TD; A-->B") == 3  # as code, not as a picture


def test_two_runs_of_one_journal_render_the_same_bytes(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    """A kill between the last answer and the commit: the page that is rendered then says when the work ended."""
    receipt = run_once(home, command(), env)
    first = (home / "artifacts" / "out.md").read_bytes()
    take_back_commit(home, receipt["run_id"])
    calls = len(fake.requests)
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert (home / "artifacts" / "out.md").read_bytes() == first
    assert len(fake.requests) == calls
    assert receipts(home)[0]["artifact"] == receipt["artifact"]
