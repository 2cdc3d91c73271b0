"""What `forget` makes of the files of a home, kind by kind."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from council.storage.marks import set_mark
from council.storage.store import Store
from council.upkeep.text_files import changed_file, is_database, rewritten, without_command_hash


def forget_grete(text: str) -> str:
    return text.replace("Grete", "[forgotten]")


def test_json_is_changed_in_its_texts_and_stays_json() -> None:
    data = json.dumps({"title": "Grete's", "run_id": "Grete", "n": [1, "of Grete"]}, indent=2).encode() + b"\n"
    after = changed_file("view.json", data, forget_grete)
    assert json.loads(after) == {"title": "[forgotten]'s", "run_id": "Grete", "n": [1, "of [forgotten]"]}
    assert after.endswith(b"}\n")


def test_lines_of_json_are_changed_one_by_one_and_a_torn_one_as_text() -> None:
    data = b'{"message": "Grete"}\n{"message": "Gre\nGrete'
    assert changed_file("council.jsonl.1", data, forget_grete) == (
        b'{"message": "[forgotten]"}\n{"message": "Gre\n[forgotten]'
    )


def test_bytes_that_are_no_text_stay() -> None:
    assert changed_file("note.md", b"\xff Grete \xfe", forget_grete) == b"\xff [forgotten] \xfe"


def test_what_is_appended_while_a_file_is_looked_into_stays_and_another_file_is_left(tmp_path: Path) -> None:
    log = tmp_path / "council.jsonl"
    log.write_bytes(b"Grete\nlater\n")
    assert rewritten(log, b"Grete\n", b"[forgotten]\n")
    assert log.read_bytes() == b"[forgotten]\nlater\n"
    assert rewritten(log, b"Grete\n", b"[forgotten]\n")
    assert log.read_bytes() == b"[forgotten]\nlater\n"
    assert not rewritten(log, b"x", b"x")


def test_only_the_front_matter_of_a_page_tells_its_command_s_hash() -> None:
    page = b'---\nid: "a"\ncommand_sha256: "12ab"\ncalls: 4\n---\n\ncommand_sha256: "12ab"\n'
    expected = page.replace(b'"12ab"', b"forgotten", 1)
    assert without_command_hash(page) == expected
    assert without_command_hash(b"# No front matter\ncommand_sha256: 1\n") == b"# No front matter\ncommand_sha256: 1\n"


def locks_on(folder: Path) -> list[tuple[str, int]]:
    """Of whatever process, on the files of a database, as the kernel tells them."""
    held = [line.split() for line in Path("/proc/locks").read_text().splitlines() if " POSIX " in line]
    inodes = {path.stat().st_ino: path.name for path in folder.iterdir()}
    counted = [inodes[inode] for lock in held if (inode := int(lock[-3].split(":")[-1])) in inodes]
    return sorted((name, counted.count(name)) for name in set(counted))


def test_the_locks_of_a_database_in_use_are_kept_whoever_looks_for_databases_or_opens_it_again(tmp_path: Path) -> None:
    with closing(Store.open(tmp_path)) as store:
        set_mark(store, "a", "1")
        before = locks_on(tmp_path)
        assert {name for name, _ in before} == {"council.db", "council.db-shm"}
        (tmp_path / "mine.db").write_bytes((b"SQLite format 3\0").ljust(100, b"x"))
        assert [path.name for path in sorted(tmp_path.iterdir()) if is_database(path)] == ["mine.db"]
        assert locks_on(tmp_path) == before
        Store.open(tmp_path).close()
        assert locks_on(tmp_path) == before
