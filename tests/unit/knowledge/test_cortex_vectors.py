"""The file of vectors: what it keeps, what it forgets, and what damage costs. And the fusion of two lists."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import pytest

from council.errors import ModelError
from council.knowledge.cortex.cortex import Cortex
from council.knowledge.cortex.hybrid_search import Search
from council.knowledge.cortex.index import fused
from council.knowledge.cortex.vectors import MAX_QUESTIONS, DimensionsChanged, VectorKey, Vectors
from council.knowledge.file_texts import FileTexts
from council.llm.embeddings import Embeddings, Purpose, unit_vectors
from council.storage.paths import ALWAYS_DENIED, ConfinedRoot, PathRules
from tests.meanings import DIMENSIONS, vector_of

ONE, TWO = VectorKey.of("one"), VectorKey.of("two")


def vector(*values: float) -> Any:
    return array("f", values)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors"


def test_what_is_kept_is_found_by_another_process_and_only_under_its_model(path: Path) -> None:
    reader = Vectors(path)
    assert reader.of("m") == {}
    writer = Vectors(path)
    writer.add("m", {ONE: vector(1, 0)})
    writer.add("m", {TWO: vector(0, 1)})
    assert reader.of("m") == {ONE: vector(1, 0), TWO: vector(0, 1)}
    assert reader.of("other") == {}
    reader.add("other", {ONE: vector(0, 0, 1)})
    assert (writer.of("m"), dict(writer.of("other"))) == ({}, {ONE: vector(0, 0, 1)})


@pytest.mark.parametrize("damage", [lambda data: data[:-3], lambda data: data[:-10] + b"X" + data[-9:]])
def test_a_torn_or_damaged_record_counts_for_nothing_and_what_is_added_behind_it_is_found(
    path: Path, damage: Any
) -> None:
    Vectors(path).add("m", {ONE: vector(1, 0), TWO: vector(0, 1)})
    path.write_bytes(damage(path.read_bytes()))
    later = Vectors(path)
    assert later.of("m") == {ONE: vector(1, 0)}
    later.add("m", {TWO: vector(0, 1)})
    assert Vectors(path).of("m") == {ONE: vector(1, 0), TWO: vector(0, 1)}


@pytest.mark.parametrize("data", [b"", b"no json\n", b'{"vectors":99,"model":"m","dimensions":2}\n', b"\xff\xfe\n"])
def test_a_file_of_another_kind_is_begun_anew(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    vectors = Vectors(path)
    assert vectors.of("m") == {}
    vectors.add("m", {ONE: vector(1, 0)})
    assert Vectors(path).of("m") == {ONE: vector(1, 0)}


def test_vectors_of_another_size_clear_the_file(path: Path) -> None:
    vectors = Vectors(path)
    vectors.add("m", {ONE: vector(1, 0)})
    with pytest.raises(DimensionsChanged):
        vectors.add("m", {TWO: vector(1, 0, 0)})
    assert not path.exists()
    vectors.add("m", {TWO: vector(1, 0, 0)})
    assert vectors.of("m") == {TWO: vector(1, 0, 0)}


def test_passages_that_are_gone_and_the_oldest_questions_go(path: Path) -> None:
    vectors = Vectors(path)
    questions = [VectorKey.of(str(number), question=True) for number in range(MAX_QUESTIONS + 2)]
    vectors.add("m", {ONE: vector(1, 0), TWO: vector(0, 1), **dict.fromkeys(questions, vector(1, 0))})
    vectors.retain({TWO})
    assert set(Vectors(path).of("m")) == {TWO, *questions[2:]}
    vectors.retain({TWO}, questions=0)
    assert set(Vectors(path).of("m")) == {TWO}
    vectors.retain(set())
    assert not path.exists()


def test_a_question_and_a_passage_of_the_same_words_are_two_things() -> None:
    assert VectorKey.of("same") != VectorKey.of("same", question=True)


def test_fusion_prefers_what_both_lists_hold_and_goes_by_places_alone() -> None:
    scores = fused(["a", "b", "c"], ["c", "b"])
    assert sorted(scores, key=lambda item: -scores[item]) == ["c", "b", "a"]
    assert scores["a"] == pytest.approx(1 / 61)
    assert scores["c"] == pytest.approx(1 / 63 + 1 / 61)
    assert fused([], []) == {}


# ── a search over real files ─────────────────────────────────────────────────────────────────────────────────────────


class Embedder:
    """Places texts by their topics; fails from its call number `fails_at` on."""

    name = "test:meanings"
    dimensions = DIMENSIONS
    max_texts = 2
    max_text_bytes = 100

    def __init__(self, fails_at: int = 1_000) -> None:
        self.calls: list[tuple[Purpose, list[str]]] = []
        self._fails_at = fails_at

    async def embed(self, texts: Any, *, purpose: Purpose = "passage") -> Embeddings:
        self.calls.append((purpose, list(texts)))
        if len(self.calls) >= self._fails_at:
            raise ModelError("server", "it broke.", fix="wait")
        return Embeddings(unit_vectors([vector_of(text) for text in texts], count=len(texts), dimensions=DIMENSIONS))

    async def aclose(self) -> None:
        """Nothing to close."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name, body in {
        "fleet": "A sedan.",
        "kitchen": "The broth.",
        "zoo": "A walrus.",
        "long": "Motor. " * 100,
    }.items():
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\n{body}\n")
    return tmp_path


def search_in(home: Path) -> Search:
    return Search(
        Cortex(
            FileTexts(ConfinedRoot(home), 10_000, 10_000), PathRules(deny=ALWAYS_DENIED), home / ".council" / "cortex"
        ),
        "m",
    )


async def test_texts_go_in_calls_of_bounded_size_and_a_call_that_fails_loses_none_of_those_before(home: Path) -> None:
    (home / ".council").mkdir()
    broken = Embedder(fails_at=2)
    answer = await search_in(home).query("automobile", embedder=broken)
    assert answer.hits == ()
    assert "found only by words, not by meaning: it broke" in answer.notes[0]
    whole = Embedder()
    answer = await search_in(home).query("automobile", embedder=whole)
    assert {hit.path for hit in answer.hits[:2]} == {"fleet.md", "long.md"}
    assert [purpose for purpose, _ in whole.calls] == ["passage", "question"]  # two of four were kept
    texts = [text for _, some in (*broken.calls[:1], *whole.calls) for text in some]
    assert max(len(text.encode()) for text in texts) == 100
    assert len(texts) == len(set(texts)) == 5


async def test_memory_is_searched_by_meaning_within_its_lane_and_role_alone(home: Path) -> None:
    for lane, role in (("main", "auditor"), ("main", "strategist"), ("side", "auditor")):
        page = home / "session_states" / "archive" / lane / role / "r1.md"
        page.parent.mkdir(parents=True)
        page.write_text(f"---\nrole: {role.upper()}\nlane: {lane}\n---\n\n## {role.upper()}\n\nA sedan for {lane}.\n")
    (home / ".council").mkdir()
    answer = await search_in(home).query("automobile", scope="memory", group="main/auditor", embedder=Embedder())
    assert {hit.path for hit in answer.hits} == {"session_states/archive/main/auditor/r1.md"}
    assert any("A sedan for main." in hit.quotation for hit in answer.hits)


async def test_without_an_embedder_what_is_kept_answers_and_else_the_words_which_is_said(home: Path) -> None:
    (home / ".council").mkdir()
    search = search_in(home)
    live = await search.query("automobile", embedder=Embedder())
    assert await search.query("automobile") == live
    other = await search.query("walrus")
    assert [hit.path for hit in other.hits] == ["zoo.md"]
    assert "found only by words, not by meaning" in other.notes[-1]
