"""Which answers are read, and as what; which folders are refused, and where in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from council.evaluation import questions
from council.evaluation.questions import Question, QuestionsInvalid, load_folder
from council.knowledge.file_texts import FileTexts
from council.knowledge.library import Library
from council.storage.paths import ALWAYS_DENIED, ConfinedRoot, PathRules

CHOICE = Question(id="q", question="Which?", choices={"A": "Nightly", "B": "Once a week", "yes": "It is"}, answer="B")
TEXT = Question(id="q", question="Where?", accept=["Rotterdam", "The Hague"])
NUMBER = Question(id="q", question="How many?", accept=[1200], match="number")
EXAMPLE = Path(questions.__file__).parents[1] / "resources"


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("B", "B"),
        (" b. ", "B"),
        ("(B)", "B"),
        ("**B**", "B"),
        ("B: Once a week", "B"),
        ("b) once  a week.", "B"),
        ("Once a week", "B"),
        ('"nightly"', "A"),
        ("Yes", "yes"),
        ("The answer is B", None),
        ("A or B", None),
        ("B, because A is wrong", None),
        ("C", None),
        ("", None),
    ],
)
def test_a_choice_is_named_by_the_whole_answer_or_not_at_all(said: str, read: str | None) -> None:
    assert CHOICE.read(said) == read


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("1200", "1200"),
        ("1,200", "1200"),
        ("1200.0", "1200"),
        ("+1200.", "1200"),
        ("-3.50", "-3.5"),
        ("1200 EUR", None),
        ("12,00", None),
        ("about 1200", None),
        ("1e3", None),
        ("NaN", None),
        ("٣", None),
    ],
)
def test_a_number_stands_alone(said: str, read: str | None) -> None:
    assert NUMBER.read(said) == read


def test_a_text_is_compared_without_case_and_spacing_an_exact_one_with() -> None:
    assert TEXT.read(" The  Hague. ") == "the hague"
    assert TEXT.is_right("the hague")
    assert not TEXT.is_right("hague")
    exact = Question(id="q", question="Which?", accept=["aB"], match="exact")
    assert (exact.read(" `aB` "), exact.is_right("aB"), exact.is_right("ab")) == ("aB", True, False)


def test_a_number_may_be_off_by_its_tolerance() -> None:
    near = Question(id="q", question="How much?", accept=[2.5], match="number", tolerance=0.1)
    assert near.is_right(near.read("2.6"))
    assert not near.is_right(near.read("2.61"))


def test_nothing_that_is_asked_names_the_right_answer_or_the_id() -> None:
    def asked(question: str = "Which?", answer: str = "B") -> Question:
        choices = {"A": "one", "B": "two"}
        why = "two it is, for a reason"
        return Question(id="answer-is-beta", question=question, choices=choices, answer=answer, why=why)

    assert "answer-is-beta" not in asked().task
    assert "reason" not in asked().task.replace("Reasons", "")
    assert asked().task == asked(answer="A").task
    assert asked().asked != asked("What?").asked


# ── folders ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Some text.\n")
    return tmp_path


@pytest.fixture
def library(folder: Path) -> Iterator[Library]:
    with ConfinedRoot(folder) as root:
        yield Library(FileTexts(root, 1 << 20, 1 << 20), PathRules(deny=ALWAYS_DENIED), max_text_bytes=1 << 16)


FINE = {"id": "q1", "question": "Which?", "choices": {"A": "one", "B": "two"}, "answer": "A"}


def refusal(folder: Path, library: Library) -> str:
    with pytest.raises(QuestionsInvalid) as caught:
        load_folder(folder, library)
    return caught.value.message


def test_yaml_and_json_lines_are_read_in_the_order_of_their_files(folder: Path, library: Library) -> None:
    (folder / "questions-b.jsonl").write_text(json.dumps(FINE) + "\n\n" + json.dumps({**FINE, "id": "q2"}) + "\n")
    (folder / "questions-a.yaml").write_text(
        "- id: q0\n  question: Where?\n  accept: [Here, 7]\n  documents: [docs/a.md, ./docs/a.md]\n  split: dev\n"
    )
    found = load_folder(folder, library)
    assert [each.id for each in found] == ["q0", "q1", "q2"]
    assert (found[0].right, found[0].documents, found[0].split) == (("here", "7"), ["docs/a.md"], "dev")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"answer": "C"}, "`answer` is 'C', which is none of the labels A, B"),
        ({"answer": None}, "`answer` is missing"),
        ({"id": "two words"}, "`id` must"),
        ({"question": " "}, "`question` is blank"),
        ({"choices": {"A": "one"}}, "`choices` has 1 choices; 2 to 26 are allowed"),
        ({"choices": {"A": "b", "B": "c"}}, "cannot be told apart: 'b' names both A and B"),
        ({"accept": ["x"]}, "has either `choices` with an `answer`, or `accept`"),
        ({"anser": "A"}, "`anser` is not a known key; did you mean 'answer'?"),
        ({"documents": ["docs/b.md"]}, "`documents[0]` is 'docs/b.md'"),
        ({"documents": ["../secret.md"]}, "`documents[0]` is '../secret.md'"),
        ({"documents": [".env"]}, "`documents[0]` is '.env'"),
        ({"match": "number"}, "`match` goes with `accept`"),
    ],
)
def test_a_mistake_is_told_with_its_file_question_and_field(
    folder: Path, library: Library, changed: dict[str, object], told: str
) -> None:
    (folder / "questions.jsonl").write_text(json.dumps({**FINE, "id": "q0"}) + "\n" + json.dumps({**FINE, **changed}))
    message = refusal(folder, library)
    assert message.startswith("questions.jsonl: line 2 (")
    assert told in message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- id: q1\n  question: Which?\n  choices: {yes: one, no: two}\n  answer: yes\n", "put it in quotes"),
        ("- id: q1\n  question: Which?\n  question: What?\n", "line 3, column 3: `question` stands twice"),
        ("- id: q1\n  question: [\n", "line 3"),
        ("a: 1\n", "line 1: the file must be a list of questions"),
        ("- 3\n", "question 1: must be an object with keys, not the number 3"),
        ("- &a {id: q1}\n- *a\n", "an alias (*name) is not allowed"),
        (
            "- id: q1\n  question: How many?\n  accept: [three]\n  match: number\n",
            "`accept[0]` is 'three', which is not a number",
        ),
        ("", "line 1, column 1: the text is empty"),
        ("[]\n", "has no question"),
        ("\ufeff- id: q1\n  question: Which?\n", "question 1 (q1): has either"),
    ],
)
def test_yaml_that_does_not_fit_is_told_with_its_place(folder: Path, library: Library, text: str, told: str) -> None:
    (folder / "questions.yaml").write_text(text)
    assert told in refusal(folder, library)


def test_all_mistakes_are_told_at_once_and_an_id_may_not_come_twice(folder: Path, library: Library) -> None:
    (folder / "questions.jsonl").write_text(f"{json.dumps(FINE)}\n{json.dumps(FINE)}\n{{nonsense\n")
    message = refusal(folder, library)
    assert "2 problems" in message
    assert "questions.jsonl: line 2 (q1): `id` is 'q1', which is also the id of another question" in message
    assert "questions.jsonl: line 3, column 2: not JSON" in message


def test_sizes_are_limited(folder: Path, library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "questions.yaml").write_text("# " + "x" * questions.MAX_YAML_BYTES)
    assert "larger than 1048576 bytes" in refusal(folder, library)
    assert "one question a line" in refusal(folder, library)
    (folder / "questions.yaml").unlink()
    lines = (json.dumps({**FINE, "id": f"q{number}"}) for number in range(questions.MAX_QUESTIONS + 1))
    (folder / "questions.jsonl").write_text("\n".join(lines))
    assert "more than 2000 questions" in refusal(folder, library)


def test_a_folder_without_questions_says_how_to_make_one(folder: Path, library: Library) -> None:
    with pytest.raises(QuestionsInvalid) as caught:
        load_folder(folder, library)
    assert "council eval --init" in caught.value.fix


def test_the_example_that_is_shipped_is_in_order(tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(EXAMPLE / "demo" / "docs")
    for path in (EXAMPLE / "evaluation").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    with ConfinedRoot(EXAMPLE / "demo") as root:
        library = Library(FileTexts(root, 1 << 20, 1 << 20), PathRules(deny=ALWAYS_DENIED), max_text_bytes=1 << 16)
        found = load_folder(tmp_path, library)
    assert len(found) == 24
    assert all(each.right and each.documents for each in found)
