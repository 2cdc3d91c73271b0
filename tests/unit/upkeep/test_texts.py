"""What `forget` makes of the files of a home, kind by kind."""

from __future__ import annotations

import json

from council.upkeep.texts import changed_file, without_command_hash


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


def test_only_the_front_matter_of_a_page_tells_its_command_s_hash() -> None:
    page = b'---\nid: "a"\ncommand_sha256: "12ab"\ncalls: 4\n---\n\ncommand_sha256: "12ab"\n'
    expected = page.replace(b'"12ab"', b"forgotten", 1)
    assert without_command_hash(page) == expected
    assert without_command_hash(b"# No front matter\ncommand_sha256: 1\n") == b"# No front matter\ncommand_sha256: 1\n"
