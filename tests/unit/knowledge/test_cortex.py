"""The Cortex over a real folder: what is found, how it is quoted, and how it follows every change on disk."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from council.app.knowledge_tools import read_rules
from council.errors import DaemonRunning
from council.knowledge.cortex.cortex import Cortex, CortexAnswer
from council.knowledge.cortex.index import Hit
from council.knowledge.cortex.selection import GitIgnores
from council.knowledge.cortex.tantivy_index import TantivyIndex
from council.knowledge.file_texts import FileTexts
from council.knowledge.library import Library
from council.settings import Settings
from council.storage.files import FileLock
from council.storage.paths import ALWAYS_DENIED, ConfinedRoot, PathRules

Make = Callable[..., Cortex]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write(tmp_path, "docs/herons.md", "# Herons\n\nHerons nest in March, high in alders.\n")
    write(tmp_path, "docs/storage.md", "# Storage\n\nThe archive grows by 40 GB a month.\n")
    (tmp_path / ".council").mkdir()
    return tmp_path


@pytest.fixture
def make(home: Path) -> Iterator[Make]:
    """Another process's Cortex, as far as state goes: nothing in memory is shared."""
    roots: list[ConfinedRoot] = []

    def make_cortex(*, deny: tuple[str, ...] = (), allow: tuple[str, ...] = ("**",)) -> Cortex:
        roots.append(ConfinedRoot(home))
        rules = PathRules(deny=(*ALWAYS_DENIED, *deny), allow=allow)
        return Cortex(FileTexts(roots[-1], 100_000, 100_000), rules, home / ".council" / "cortex")

    yield make_cortex
    for root in roots:
        root.close()


def write(home: Path, path: str, text: str | bytes) -> Path:
    target = home / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text if isinstance(text, bytes) else text.encode())
    return target


def paths(answer: CortexAnswer) -> list[str]:
    return [hit.path for hit in answer.hits]


def index_bytes(home: Path) -> bytes:
    folder = home / ".council" / "cortex"
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def assert_quoted_from_disk(home: Path, hit: Hit) -> None:
    data = (home / hit.path).read_bytes()
    lines = data.decode().replace("\r\n", "\n").split("\n")
    assert hit.quotation in "\n".join(lines[hit.first_line - 1 : hit.last_line])
    assert hit.quotation
    assert hit.sha256 == hashlib.sha256(data).hexdigest()


def archive(home: Path, lane: str, role: str, run: str, text: str) -> None:
    head = f'---\nrole: {role.upper()}\nlane: {lane}\nrun: {run}\ntask: "The old task"\n---\n'
    write(home, f"session_states/archive/{lane}/{role}/{run}.md", f"{head}\n## {role.upper()}\n\n{text}\n")


# ── finding ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_passage_that_fits_comes_with_path_lines_heading_and_hash(home: Path, make: Make) -> None:
    [hit] = make().query("When do herons nest?").hits
    assert (hit.path, hit.first_line, hit.last_line, hit.heading) == ("docs/herons.md", 1, 3, "Herons")
    assert hit.quotation == "# Herons\n\nHerons nest in March, high in alders."
    assert_quoted_from_disk(home, hit)


def test_a_word_of_the_path_or_of_a_heading_finds_the_passage_below_it(home: Path, make: Make) -> None:
    write(home, "plans/glacier.txt", "Nothing but filler stands here.\n")
    write(home, "b.md", "# Moraine\n\n## Deep\n\nOther filler.\n")
    cortex = make()
    assert paths(cortex.query("glacier")) == ["plans/glacier.txt"]
    [hit] = cortex.query("moraine").hits
    assert hit.quotation == "## Deep\n\nOther filler."


def test_words_are_found_in_other_forms_cases_accents_and_as_parts_of_identifiers(home: Path, make: Make) -> None:
    write(home, "a.py", "class ConfinedRoot:\n    def take_turn(self): ...\n")
    write(home, "b.md", "Das Café liegt am Fluß. 日本語テキスト\n")
    cortex = make()
    for question in ("confined root", "ConfinedRoot", "take_turn", "TURN takes"):
        assert paths(cortex.query(question)) == ["a.py"]
    for question in ("cafe", "CAFÉ", "cafe\u0301", "日本語", "ﬂuß"):
        assert paths(cortex.query(question)) == ["b.md"]


def test_quotations_from_files_with_windows_line_ends_have_the_line_numbers_of_an_editor(
    home: Path, make: Make
) -> None:
    write(home, "crlf.txt", b"\xef\xbb\xbffirst\r\n\r\nthe walrus line\r\nlast\r\n")
    [hit] = make().query("walrus").hits
    assert (hit.first_line, hit.last_line) == (1, 4)
    assert hit.quotation == "first\n\nthe walrus line\nlast"


def test_the_best_passages_come_first_and_no_more_than_asked_for(home: Path, make: Make) -> None:
    for number in range(8):
        write(home, f"n/{number}.txt", "badger " * (number + 1) + "filler " * (8 - number) + "\n")
    answer = make().query("badger", limit=3)
    assert paths(answer) == ["n/7.txt", "n/6.txt", "n/5.txt"]
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)


SPECIAL = [
    *'+-&|!(){}[]^"~*?:\\/<>=%$#@;,.`´\'',
    "AND", "OR NOT", "body:herons", 'heading:"', "((((", '"unclosed', "herons^99999", "herons~9", "[a TO b]", "her*",
    "\x00", "\ud800", "\u202e", "😀", "é" * 3000, "a " * 5000, "(" * 3000, "*:*", "path:docs", "-herons", "",
]  # fmt: skip


@pytest.mark.parametrize("question", SPECIAL)
def test_no_question_is_special_or_raises(make: Make, question: str) -> None:
    cortex = make()
    alone = cortex.query(question)
    beside = cortex.query(f"nest {question}")
    assert isinstance(alone, CortexAnswer)
    assert "docs/herons.md" in paths(beside)


def test_a_question_without_a_word_is_told_so(make: Make) -> None:
    assert make().query("?!").notes == ("the question holds no word to look for",)


def test_the_councils_own_artifacts_are_marked_put_behind_sources_and_left_out_while_they_grow(
    home: Path, make: Make
) -> None:
    page = "---\nid: x\nstatus: {}\naudit_head: null\n---\n# {}\n\nThe otter plan, otter, otter.\n"
    write(home, "artifacts/old.md", page.format("succeeded", "Old"))
    write(home, "plans/new.md", page.format("succeeded", "Elsewhere"))
    write(home, "artifacts/now.md", page.format("in_progress", "Now"))
    write(home, "docs/otter.md", "One otter was seen near the bridge by a fisherman in the early morning of May.\n")
    answer = make().query("otter")
    assert [(hit.path, hit.own_artifact) for hit in answer.hits] == [
        ("docs/otter.md", False),
        ("artifacts/old.md", True),
        ("plans/new.md", True),
    ]


def test_a_page_whose_title_and_name_are_the_question_stands_behind_the_source_that_answers_it(
    home: Path, make: Make
) -> None:
    says = "## Task\n\nWas kostet die Pumpe?\n\n## Deliberation\n\nDie Pumpe kostet 4001 EUR, sagt das Angebot.\n"
    page = f"---\nid: x\nstatus: succeeded\naudit_head: null\ntitle: Was kostet die Pumpe\n---\n# Was kostet die Pumpe\n\n{says}"
    write(home, "artifacts/was-kostet-die-pumpe.md", page)
    write(home, "docs/angebot.md", "Die Pumpe kostet 4001 EUR, der Einbau 350 EUR, zahlbar in 30 Tagen.\n")
    hits = make().query("Was kostet die Pumpe").hits
    assert [hit.path for hit in hits][:2] == ["docs/angebot.md", "artifacts/was-kostet-die-pumpe.md"]


def test_equal_passages_of_one_file_are_given_once(home: Path, make: Make) -> None:
    archive(home, "main", "auditor", "r1", "## AUDITOR\n\nThe quokka costs 4001 EUR.\n\n" * 3)
    archive(home, "main", "editor", "r1", "## AUDITOR\n\nThe quokka costs 4001 EUR.\n")
    found = [hit.path for hit in make().query("quokka costs", scope="memory").hits]
    assert sorted(found) == [f"session_states/archive/main/{role}/r1.md" for role in ("auditor", "editor")]


# ── what is never in it ──────────────────────────────────────────────────────────────────────────────────────────────

CANARY = "xylocanary77"


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".env.local",
        "docs/.env",
        "secrets.md",
        "docs/credentials.txt",
        "key.pem",
        ".git/config",
        ".council/lock.md",
        "commands/c.json",
        "session_states/coordinator_session.json",
        "session_states/archive/main/auditor/r1.md",
        "private/plan.md",
        "node_modules/x/readme.md",
        ".venv/readme.md",
        "ignored.md",
        "image.md",
        "huge.md",
    ],
)
def test_nothing_of_a_file_that_may_not_be_read_or_is_no_text_is_in_the_index(
    home: Path, make: Make, path: str
) -> None:
    content = f"the {CANARY} stands here\n".encode()
    special = {
        "image.md": b"\0" + content,
        "huge.md": content * 5000,
    }
    write(home, ".gitignore", "/ignored.md\n")
    write(home, path, special.get(path, content))
    control = write(home, "control.md", f"the {CANARY}control stands here\n")
    cortex = make(deny=("private/**",))
    assert cortex.query(CANARY).hits == ()
    assert paths(cortex.query(f"{CANARY}control")) == [control.name]
    engine = TantivyIndex(home / ".council" / "cortex" / "files" / "index")
    assert engine.search(engine.terms(CANARY), group="", limit=10) == []
    assert len(engine.search(engine.terms(f"{CANARY}control"), group="", limit=10)) == 1
    assert f"the {CANARY} stands".encode() not in index_bytes(home)


def test_links_and_pipes_are_never_followed(home: Path, make: Make, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = write(tmp_path_factory.mktemp("outside"), "secret.md", f"{CANARY}\n")
    (home / "link.md").symlink_to(outside)
    (home / "folder").symlink_to(outside.parent)
    os.link(outside, home / "hard.md")
    os.mkfifo(home / "pipe.md")
    assert make().query(CANARY).hits == ()


def test_with_narrow_read_roots_only_files_below_them_are_found(home: Path, make: Make) -> None:
    write(home, "other.md", "Herons elsewhere.\n")
    assert paths(make(allow=("docs/**",)).query("herons")) == ["docs/herons.md"]


def test_the_library_lists_files_below_narrow_read_roots(home: Path) -> None:
    with ConfinedRoot(home) as root:
        library = Library(FileTexts(root, 1000, 1000), PathRules(deny=(), allow=("docs/**",)), max_text_bytes=1000)
        assert library.list("**") == (["docs/herons.md", "docs/storage.md"], False)


def test_a_document_that_came_with_a_request_is_read_by_its_name_and_found_by_nobody(home: Path, make: Make) -> None:
    path = "artifacts/uploads/talk/0f0f.md"
    write(home, path, "The soil has a canary-99.\n")
    rules = read_rules(home, Settings(read_roots=("docs/**",)))
    with ConfinedRoot(home) as root:
        library = Library(FileTexts(root, 1000, 1000), rules, max_text_bytes=1000)
        assert "canary-99" in library.read(path).text
        assert path not in library.list("**")[0]
        assert library.list("artifacts/**") == ([], False)
    assert make().query("canary-99").hits == ()


def test_when_a_rule_denies_an_indexed_file_the_index_is_built_anew_and_says_so(home: Path, make: Make) -> None:
    make().refresh()
    before = {path.name for path in (home / ".council/cortex/files/index").glob("*.term")}
    cortex = make(deny=("docs/herons.md",))
    answer = cortex.query("herons")
    assert answer.hits == ()
    assert answer.notes == ("the index of files was rebuilt: a rule denies files that it held",)
    assert before
    assert before.isdisjoint(path.name for path in (home / ".council/cortex/files/index").glob("*.term"))
    assert b"herons" not in (home / ".council/cortex/files/catalog.json").read_bytes()


def test_only_the_owner_can_look_into_the_index(home: Path, make: Make) -> None:
    make().refresh()
    folder = home / ".council" / "cortex"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "files" / "catalog.json").stat().st_mode) == 0o600


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_archived_memory_is_found_in_its_scope_only_and_by_its_task(home: Path, make: Make) -> None:
    archive(home, "main", "auditor", "r1", "We chose the walrus engine.")
    cortex = make()
    assert paths(cortex.query("walrus", scope="memory")) == ["session_states/archive/main/auditor/r1.md"]
    assert cortex.query("old task", scope="memory").hits[0].heading.startswith("The old task")
    assert cortex.query("walrus").hits == ()
    assert cortex.query("herons", scope="memory").hits == ()


def test_a_gitignore_does_not_hide_memory_from_its_own_scope(home: Path, make: Make) -> None:
    write(home, ".gitignore", "session_states/\n")
    archive(home, "main", "auditor", "r1", "We chose the walrus engine.")
    assert len(make().query("walrus", scope="memory").hits) == 1


def test_session_files_and_damaged_memory_are_not_in_the_scope_of_memory(home: Path, make: Make) -> None:
    write(home, "session_states/auditor_session.json", "walrus")
    write(home, "session_states/archive/loose.md", "walrus\n")
    write(home, "session_states/archive/main/auditor/r1.md.damaged", "walrus\n")
    assert make().query("walrus", scope="memory").hits == ()


def test_memory_can_be_narrowed_to_a_lane_and_a_role(home: Path, make: Make) -> None:
    archive(home, "main", "auditor", "r1", "walrus one")
    archive(home, "main", "strategist", "r1", "walrus two")
    archive(home, "budget", "auditor", "r2", "walrus three")
    cortex = make()
    assert len(cortex.query("walrus", scope="memory").hits) == 3
    lane = cortex.query("walrus", scope="memory", group="main")
    assert sorted(paths(lane)) == [
        "session_states/archive/main/auditor/r1.md",
        "session_states/archive/main/strategist/r1.md",
    ]
    role = cortex.query("walrus", scope="memory", group="budget/auditor")
    assert paths(role) == ["session_states/archive/budget/auditor/r2.md"]
    assert cortex.query("walrus", scope="memory", group="budg").hits == ()


def test_of_forgotten_memory_nothing_stays_in_the_index(home: Path, make: Make) -> None:
    archive(home, "main", "auditor", "r1", "walrus one")
    archive(home, "main", "auditor", "r2", "puffin two")
    cortex = make()
    cortex.query("walrus", scope="memory")
    before = {path.name for path in (home / ".council/cortex/memory/index").glob("*.term")}
    (home / "session_states/archive/main/auditor/r1.md").unlink()
    answer = cortex.query("walrus", scope="memory")
    assert answer.hits == ()
    assert answer.notes == (
        "the index of memory was rebuilt: a page was changed or removed, and nothing of it may stay",
    )
    assert before
    assert before.isdisjoint(path.name for path in (home / ".council/cortex/memory/index").glob("*.term"))


# ── following the disk ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_restart_reads_no_unchanged_file_again(home: Path, make: Make) -> None:
    write(home, "image.bin", b"\0\1")
    write(home, "huge.txt", "x" * 200_000)
    first = make().refresh()
    second = make().refresh()
    assert (first.read, first.added) == (3, 4)
    assert (second.read, second.added, second.changed, second.removed, second.notes) == (0, 0, 0, 0, ())


def test_an_edit_shows_in_the_next_question_and_only_that_file_is_read(home: Path, make: Make) -> None:
    cortex = make()
    cortex.refresh()
    write(home, "docs/herons.md", "# Egrets\n\nNow about egrets.\n")
    assert paths(cortex.query("egrets")) == ["docs/herons.md"]
    assert cortex.query("alders").hits == ()
    write(home, "docs/herons.md", "# Egrets\n\nNow about ospreys.\n")
    done = cortex.refresh()
    assert (done.read, done.changed) == (1, 1)


def test_an_edit_of_the_same_size_whose_time_was_set_back_shows(home: Path, make: Make) -> None:
    cortex = make()
    path = home / "docs" / "herons.md"
    before = path.stat()
    cortex.refresh()
    path.write_text(path.read_text().replace("alders", "willow"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    [hit] = cortex.query("willow").hits
    assert_quoted_from_disk(home, hit)


def test_edits_in_quick_succession_each_show(home: Path, make: Make) -> None:
    cortex = make()
    path = home / "quick.txt"
    for number in range(100, 130):
        path.write_text(f"state{number}\n")
        assert [hit.quotation for hit in cortex.query(f"state{number}").hits] == [f"state{number}"]


def test_a_file_that_changed_without_its_status_showing_it_is_still_quoted_as_it_is(
    home: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    cortex = make()
    cortex.refresh()
    listing = cortex._shelves["files"]._selection.listing()
    write(home, "docs/herons.md", "# Herons\n\nAll other words.\n\nThe nest is empty.\n")
    monkeypatch.setattr(cortex._shelves["files"]._selection, "listing", lambda: listing)
    [hit] = cortex.query("herons nest").hits
    assert hit.quotation == "# Herons\n\nAll other words.\n\nThe nest is empty."
    assert_quoted_from_disk(home, hit)


def test_a_deleted_file_is_gone_from_the_next_answer(home: Path, make: Make) -> None:
    cortex = make()
    cortex.refresh()
    (home / "docs/herons.md").unlink()
    assert cortex.query("herons").hits == ()


def test_a_renamed_file_or_folder_is_found_under_its_new_name_only(home: Path, make: Make) -> None:
    cortex = make()
    cortex.refresh()
    (home / "docs/herons.md").rename(home / "docs/birds.md")
    assert paths(cortex.query("alders")) == ["docs/birds.md"]
    (home / "docs").rename(home / "papers")
    assert paths(cortex.query("alders")) == ["papers/birds.md"]


def test_a_change_of_gitignore_shows_in_the_next_answer_both_ways(home: Path, make: Make) -> None:
    cortex = make()
    assert paths(cortex.query("alders")) == ["docs/herons.md"]
    ignore = write(home, ".gitignore", "docs/h*\n")
    assert cortex.query("alders").hits == ()
    write(home, ".gitignore", "docs/s*\n")
    assert paths(cortex.query("alders")) == ["docs/herons.md"]
    ignore.unlink()
    assert paths(cortex.query("archive")) == ["docs/storage.md"]


def test_a_gitignore_that_cannot_be_read_is_named_in_the_answer(home: Path, make: Make) -> None:
    write(home, "docs/.gitignore", "herons.md\n")
    cortex = make()
    assert paths(cortex.query("herons")) == []
    os.truncate(home / "docs" / ".gitignore", 2 << 20)
    answer = cortex.query("herons")
    assert paths(answer) == ["docs/herons.md"]
    assert "what `docs/.gitignore` would leave out is indexed: it cannot be read, or is too large" in answer.notes


def test_nested_gitignores_count_and_the_deeper_one_decides(home: Path, make: Make) -> None:
    write(home, ".gitignore", "*.log\n!\nbuild/\n")
    write(home, "a/.gitignore", "!keep.log\n/drafts/\n")
    write(home, "other.log", "walrus\n")
    write(home, "a/keep.log", "walrus\n")
    write(home, "a/b/keep.log", "walrus\n")
    write(home, "a/drafts/x.md", "walrus\n")
    write(home, "a/b/drafts/x.md", "walrus\n")
    write(home, "build/keep.md", "walrus\n")
    assert sorted(paths(make().query("walrus"))) == ["a/b/drafts/x.md", "a/b/keep.log", "a/keep.log"]


@pytest.mark.parametrize(
    ("lines", "path", "ignored"),
    [
        ("*.log", "a/b.log", True),
        ("docs/*.log", "docs/b.log", True),
        ("docs/*.log", "x/docs/b.log", False),
        ("/b.log", "a/b.log", False),
        ("build/", "a/build/", True),
        ("build/", "a/build", False),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**", "a/x/y", True),
        ("a/**", "a/", False),
        ("**/b", "x/y/b", True),
        ("a**b", "a/b", False),
        ("[a-c]?.md", "b1.md", True),
        ("[!a-c]?.md", "b1.md", False),
        ("[]x].md", "].md", True),
        ("[x.md", "[x.md", False),
        (r"\*.md", "*.md", True),
        (r"\*.md", "a.md", False),
        (r"\#a", "#a", True),
        ("#a", "#a", False),
        ("a  ", "a", True),
        (r"a\ ", "a ", True),
        ("*.md\n!b.md", "b.md", False),
        ("!b.md\n*.md", "b.md", True),
        ("*a" * 200 + "x", "a" * 255, False),
        ("**/a/" * 200 + "x", "a/" * 500 + "b", False),
        ("[" * 200_000, "a", False),
    ],
)
def test_a_gitignore_says_what_git_says(home: Path, lines: str, path: str, ignored: bool) -> None:
    write(home, ".gitignore", lines)
    with ConfinedRoot(home) as root:
        assert GitIgnores(root).ignore(path) is ignored


def test_another_process_sees_what_this_one_indexed(home: Path, make: Make) -> None:
    one, two = make(), make()
    one.refresh()
    assert two.refresh().read == 0
    write(home, "new.md", "walrus\n")
    assert paths(two.query("walrus")) == ["new.md"]
    assert one.refresh().read == 0
    assert paths(one.query("walrus")) == ["new.md"]


def test_passages_that_were_edited_often_do_not_pile_up(home: Path, make: Make) -> None:
    cortex = make()
    pages = "".join(f"# Page {number}\n\nText.\n\n" for number in range(300))
    notes: list[str] = []
    for number in range(4):
        write(home, "pages.md", f"{pages}\nEdition {number}\n")
        notes += cortex.refresh().notes
    assert notes == ["the index of files was rebuilt: more than half of it was out of date"]


def test_two_thousand_files_are_indexed_once_and_then_only_looked_at(home: Path, make: Make) -> None:
    for number in range(2000):
        write(home, f"many/{number % 40}/{number}.md", f"# File {number}\n\nSubject number{number} and text.\n")
    cortex = make()
    assert cortex.refresh().read == 2002
    assert make().refresh().read == 0
    assert paths(cortex.query("number1234")) == ["many/34/1234.md"]
    assert cortex.status().files == 2002


def test_status_tells_what_is_held_and_what_changed_without_changing_anything(home: Path, make: Make) -> None:
    write(home, "image.png", b"\0")
    write(home, ".env", "X=1\n")
    cortex = make()
    assert (cortex.status().files, cortex.status().pending, cortex.status().refreshed) == (0, 3, "")
    cortex.refresh()
    write(home, "docs/herons.md", "changed\n")
    before = index_bytes(home)
    status = make().status()
    assert (status.files, status.passages, status.pending) == (2, 2, 1)
    assert status.skipped["binary"] == 1
    assert status.skipped["denied"] >= 2
    assert index_bytes(home) == before


# ── damage, kills, company ───────────────────────────────────────────────────────────────────────────────────────────


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:10])


@pytest.mark.parametrize("spoil", [flip, cut_short, Path.unlink])
@pytest.mark.parametrize("pattern", ["catalog.json", "index/meta.json", "index/*.term", "index/*.idx", "index/*.store"])
def test_a_damaged_index_is_built_anew_and_says_so(
    home: Path, make: Make, pattern: str, spoil: Callable[[Path], None]
) -> None:
    make().refresh()
    [target] = (home / ".council" / "cortex" / "files").glob(pattern)
    spoil(target)
    answer = make().query("herons")
    assert paths(answer) == ["docs/herons.md"]
    [note] = answer.notes
    assert note.startswith("the index of files was rebuilt: ")
    assert make().query("herons").notes == ()


def test_a_catalog_of_another_version_means_building_anew(
    home: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make().refresh()
    monkeypatch.setattr("council.knowledge.cortex.catalog.SCHEMA", "council.cortex/0")
    assert make().query("herons").notes == ("the index of files was rebuilt: its catalog is of another version",)


@pytest.mark.parametrize("what", ["cortex", "cortex/files", "cortex/files/index"])
def test_an_index_that_is_deleted_while_in_use_comes_back(home: Path, make: Make, what: str) -> None:
    cortex = make()
    cortex.refresh()
    subprocess.run(["rm", "-r", str(home / ".council" / what)], check=True)
    write(home, "new.md", "walrus\n")
    assert paths(cortex.query("walrus")) == ["new.md"]
    assert paths(make().query("herons")) == ["docs/herons.md"]


KILLED = """
import os, signal, sys
from pathlib import Path
from council.knowledge.cortex import catalog, index, tantivy_index
from council.knowledge.cortex.cortex import Cortex
from council.knowledge.file_texts import FileTexts
from council.storage.paths import ALWAYS_DENIED, ConfinedRoot, PathRules

def die(*_args, **_keys):
    os.kill(os.getpid(), signal.SIGKILL)

where = sys.argv[2]
if where == "while adding":
    real, calls = tantivy_index.Batch.add, []
    def add(*args, **options):
        calls.append(1)
        return die() if len(calls) == 30 else real(*args, **options)
    tantivy_index.Batch.add = add
elif where == "after the commit":
    index.checksums = die
elif where == "before the catalog":
    catalog.store = die
elif where == "while writing the catalog":
    catalog.write_atomic = lambda path, data: (path.with_name(".catalog.json.1.tmp").write_bytes(data[:50]), die())
home = Path(sys.argv[1])
rules = PathRules(deny=ALWAYS_DENIED)
Cortex(FileTexts(ConfinedRoot(home), 100_000, 100_000), rules, home / ".council" / "cortex").refresh()
"""


@pytest.mark.parametrize("indexed_before", [False, True])
@pytest.mark.parametrize(
    "where", ["while adding", "after the commit", "before the catalog", "while writing the catalog"]
)
def test_after_a_kill_at_any_moment_the_next_refresh_repairs(
    home: Path, make: Make, where: str, indexed_before: bool
) -> None:
    if indexed_before:
        make().refresh()
    for number in range(50):
        write(home, f"many/{number}.md", f"walrus number{number}\n")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(home), where], check=False)
    assert killed.returncode == -signal.SIGKILL
    (home / "many" / "7.md").unlink()
    write(home, "many/8.md", "puffin\n")
    cortex = make()
    assert cortex.query("number7").hits == ()
    assert cortex.query("number8").hits == ()
    assert paths(cortex.query("number9")) == ["many/9.md"]
    assert paths(cortex.query("puffin")) == ["many/8.md"]
    assert len(cortex.query("walrus", limit=50).hits) == 48
    assert paths(make().query("herons")) == ["docs/herons.md"]
    assert make().refresh().read == 0


def test_while_another_process_indexes_the_answer_is_what_was_there_and_says_so(home: Path, make: Make) -> None:
    cortex = make()
    cortex.refresh()
    write(home, "new.md", "herons too\n")
    lock = FileLock(home / ".council" / "cortex" / "lock")
    lock.acquire()
    try:
        answer = cortex.query("herons")
        stranger = make().query("herons")
        with pytest.raises(DaemonRunning):
            make().refresh()
    finally:
        lock.release()
    for one in (answer, stranger):
        assert paths(one) == ["docs/herons.md"]
        assert one.notes == (
            f"another process is indexing (process {os.getpid()}): this is what the index held before",
        )
    assert len(cortex.query("herons").hits) == 2


def test_with_nothing_to_change_no_lock_is_needed(home: Path, make: Make) -> None:
    cortex = make()
    cortex.refresh()
    lock = FileLock(home / ".council" / "cortex" / "lock")
    lock.acquire()
    try:
        assert cortex.query("herons").notes == ()
    finally:
        lock.release()


def test_a_passage_whose_file_changed_is_not_quoted_while_it_cannot_be_indexed(home: Path, make: Make) -> None:
    cortex = make()
    cortex.refresh()
    write(home, "docs/herons.md", "Herons, but otherwise.\n")
    lock = FileLock(home / ".council" / "cortex" / "lock")
    lock.acquire()
    try:
        answer = cortex.query("herons")
    finally:
        lock.release()
    assert answer.hits == ()
    assert "passages of 1 file that is changing were left out" in answer.notes


def test_several_threads_and_processes_may_ask_at_once(home: Path, make: Make) -> None:
    one, two = make(), make()
    found: list[list[str]] = []

    def ask(cortex: Cortex, number: int) -> None:
        write(home, f"t/{number}.md", f"walrus{number}\n")
        found.append(paths(cortex.query(f"walrus{number}", patience_s=30)))

    threads = [threading.Thread(target=ask, args=((one, two)[number % 2], number)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted([f"t/{number}.md"] for number in range(8))


def test_every_quotation_stands_word_for_word_in_the_lines_it_cites(home: Path, make: Make) -> None:
    for number in range(30):
        body = "".join(f"Line {line} of the heron report, number {line * number}.\n" for line in range(number * 5))
        write(
            home, f"r/{number}.{'md' if number % 2 else 'txt'}", f"# Report {number}\n\n{body}{'long heron. ' * 200}\n"
        )
    hits = make().query("heron report number 35", limit=50).hits
    assert len(hits) == 50
    for hit in hits:
        assert_quoted_from_disk(home, hit)


# ── what helps nobody ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def reports(home: Path) -> Path:
    """Eight passages that share one common word with the question, and one that answers it."""
    for number in range(8):
        write(home, f"notes/{number}.md", f"Nothing else stands in the report of week {number}.\n")
    write(home, "docs/flour.md", "The cheapest rye flour came from the mill at the weir, says the report.\n")
    return home


def test_a_passage_that_met_the_question_in_one_common_word_is_left_out_and_counted(reports: Path, make: Make) -> None:
    answer = make().query("Which supplier offered the cheapest rye flour in the report?")
    assert paths(answer) == ["docs/flour.md"]
    assert answer.notes == ("8 weaker passages were left out",)
    assert answer.upkeep == ()


def test_a_question_that_nothing_answers_brings_nothing(reports: Path, make: Make) -> None:
    answer = make().query("Who signed the minutes of the general report?")
    assert (answer.hits, answer.notes) == ((), ("9 weaker passages were left out",))


def test_a_rare_word_is_enough(reports: Path, make: Make) -> None:
    write(reports, "docs/cars.md", "Kangoo: 19,900 EUR.\n")
    answer = make().query("How much would insuring a Kangoo cost per month in 2027?")
    assert paths(answer)[0] == "docs/cars.md"


def test_a_question_of_few_words_brings_whatever_holds_one(reports: Path, make: Make) -> None:
    assert len(make().query("the weekly report").hits) == 5


def test_settings_and_what_a_new_home_holds_are_no_passages(home: Path) -> None:
    write(home, "council.toml", '# herons = "none"\n')
    persona = write(home, "personas/heron.md", "You watch herons nest.\n")
    installed = {"personas/heron.md": hashlib.sha256(persona.read_bytes()).hexdigest()}
    with ConfinedRoot(home) as root:
        cortex = Cortex(
            FileTexts(root, 100_000, 100_000),
            PathRules(deny=ALWAYS_DENIED),
            home / ".council" / "cortex",
            installed=lambda: installed,
        )
        assert paths(cortex.query("Where do herons nest?")) == ["docs/herons.md"]
        skipped = cortex.status().skipped
        assert skipped["as_installed"] == 1
        write(home, "personas/heron.md", "You watch herons nest, and count them.\n")
        assert sorted(paths(cortex.query("Where do herons nest?"))) == ["docs/herons.md", "personas/heron.md"]
