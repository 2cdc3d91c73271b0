"""The chain: whatever is done to a record, verifying finds it, and where."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from council.audit.chain import (
    FORGOT,
    GENESIS,
    ChainHead,
    Checker,
    NamedFile,
    Record,
    detail_hash,
    detail_text,
    export_line,
    mac_of,
    note_files,
    read_line,
    verify,
    verify_lines,
)

KEY = bytes(range(32))
CHAIN = "c" * 32
RECORDS = 200


def known(kid: str) -> bytes | None:
    return KEY if kid == "k1" else None


def chained(count: int) -> list[Record]:
    records: list[Record] = []
    previous = GENESIS
    for seq in range(1, count + 1):
        detail, salt = detail_text({"number": seq, "path": f"artifacts/{seq}.md", "wort": "grün"}), f"{seq:032x}"
        record = Record(
            seq, "2026-11-21T12:00:00Z", "effect", "run_ended", "steward", f"run-{seq}", "commit", detail, salt,
            detail_hash(detail, salt), "k1", "",
        )  # fmt: skip
        record = msgspec.structs.replace(record, mac=mac_of(record, CHAIN, previous, KEY))
        previous = record.mac
        records.append(record)
    return records


def head_of(records: list[Record]) -> ChainHead:
    return ChainHead(CHAIN, len(records), records[-1].mac if records else GENESIS)


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return chained(RECORDS)


def test_a_record_whose_files_are_none_of_a_commit_names_none() -> None:
    def named(detail: dict[str, object]) -> list[str]:
        text, salt = detail_text(detail), "00"
        record = Record(
            1, "", "refusal", "spec_refused", "steward", "", "", text, salt, detail_hash(text, salt), "k1", ""
        )
        files: dict[str, NamedFile] = {}
        note_files(files, record)
        return list(files)

    assert named({"files": ["a.md"]}) == []
    assert named({"arguments": {"files": ["a.md"]}}) == []
    assert named({"files": [{"path": "a.md", "sha256": "0"}]}) == ["a.md"]


def found(records: list[Record], head: ChainHead) -> list[tuple[str, int]]:
    return [(finding.code, finding.seq) for finding in verify(records, head, (), known).findings]


def test_an_untouched_chain_holds(records: list[Record]) -> None:
    verdict = verify(records, head_of(records), [("the file", head_of(records[:7]))], known)
    assert (verdict.records, verdict.findings) == (RECORDS, ())


def test_every_flipped_byte_of_every_record_is_found_at_that_record(records: list[Record]) -> None:
    """Each record by itself, from the state that the records before it leave: a chain is checked as a fold over them."""
    checker = Checker(CHAIN, known)
    flips = missed = 0
    for record in records:
        line = export_line(record)
        for place in range(len(line)):
            for bit in (0x01, 0x20, 0x80):
                changed = line[:place] + bytes([line[place] ^ bit]) + line[place + 1 :]
                read = read_line(changed, Record)
                fresh = Checker(CHAIN, known, checker.seq, checker.mac)
                flips += 1
                missed += read is not None and fresh.take(read)
        assert checker.take(record)
    assert flips > RECORDS * 750
    assert missed == 0


def test_a_flipped_byte_in_an_export_is_named_by_its_record(records: list[Record]) -> None:
    lines = [export_line(head_of(records)), *map(export_line, records)]
    for seq in (1, 57, RECORDS):
        line = lines[seq]
        place = line.index(b"artifacts") + 2
        changed = [*lines[:seq], line[:place] + b"X" + line[place + 1 :], *lines[seq + 1 :]]
        [first, *_] = verify_lines(changed, (), known).findings
        assert (first.code, first.seq) == ("bad_record", seq)


def test_every_truncation_is_found_where_it_begins(records: list[Record]) -> None:
    for kept in range(RECORDS):
        assert found(records[:kept], head_of(records)) == [("truncated", kept + 1)]


def test_a_truncation_with_a_head_to_fit_is_found_by_what_an_artifact_shows(records: list[Record]) -> None:
    for kept in range(0, RECORDS, 13):
        anchors = [("the artifact", head_of(records[: kept + 1]))]
        [finding] = verify(records[:kept], head_of(records[:kept]), anchors, known).findings
        assert (finding.code, finding.seq) == ("truncated", kept + 1)


def test_every_swap_of_neighbours_and_every_record_taken_out_is_found_there(records: list[Record]) -> None:
    for place in range(RECORDS - 1):
        swapped = [*records[:place], records[place + 1], records[place], *records[place + 2 :]]
        renumbered = [msgspec.structs.replace(record, seq=index) for index, record in enumerate(swapped, start=1)]
        without = [*records[:place], *records[place + 1 :]]
        for changed in (swapped, renumbered, without):
            assert found(changed, head_of(records))[0] == ("bad_record", place + 1)


def test_a_record_twice_is_found(records: list[Record]) -> None:
    assert found([*records[:5], records[4], *records[5:]], head_of(records))[0] == ("bad_record", 6)


def test_records_beyond_the_head_are_a_torn_tail(records: list[Record]) -> None:
    assert found(records, head_of(records[:190])) == [("torn_tail", 191)]


def test_a_torn_last_line_is_told_as_such(records: list[Record]) -> None:
    lines = [export_line(head_of(records)), *map(export_line, records)]
    lines[-1] = lines[-1][:-30]
    codes = [(finding.code, finding.seq) for finding in verify_lines(lines, (), known).findings]
    assert codes == [("torn_tail", RECORDS), ("truncated", RECORDS)]


def test_another_key_signs_nothing(records: list[Record]) -> None:
    verdict = verify(records, head_of(records), (), lambda kid: bytes(32))
    assert [(finding.code, finding.seq) for finding in verdict.findings] == [("bad_record", 1)]


def forgotten(records: list[Record], seq: int, named: list[int]) -> Iterator[Record]:
    """The chain with the words of `seq` gone, and a last record that says which were forgotten."""
    for record in records:
        gone = record.seq == seq
        yield msgspec.structs.replace(record, detail=None, salt=None) if gone else record
    detail, salt = detail_text({"records": named}), "0" * 32
    last = Record(
        len(records) + 1, "2026-11-21T12:00:00Z", "effect", FORGOT, "steward", "", "", detail, salt,
        detail_hash(detail, salt), "k1", "",
    )  # fmt: skip
    yield msgspec.structs.replace(last, mac=mac_of(last, CHAIN, records[-1].mac, KEY))


@pytest.mark.parametrize(("named", "codes"), [([3], []), ([4], ["forgotten_unrecorded"])])
def test_words_may_go_only_where_a_record_says_that_they_were_forgotten(named: list[int], codes: list[str]) -> None:
    changed = list(forgotten(chained(9), 3, named))
    verdict = verify(changed, head_of(changed), (), known)
    assert [finding.code for finding in verdict.findings] == codes
    assert verdict.records == 10


def test_a_detail_holds_whatever_a_path_may_be() -> None:
    paths = [f"{number}/" + "ü" * 1020 for number in range(64)]
    assert "ü" in detail_text({"files": [{"path": path, "sha256": "0" * 64} for path in paths]})
    assert detail_text({"request": "half \ud800 of a pair"}) == '{"request":"half \\ud800 of a pair"}'
    with pytest.raises(ValueError, match="larger"):
        detail_text({"request": "x" * (1 << 20)})
