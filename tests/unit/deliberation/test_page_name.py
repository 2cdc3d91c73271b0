"""The title of a task that names none."""

from __future__ import annotations

import pytest

from council.deliberation.deliberate_admission import title_of


@pytest.mark.parametrize(
    ("task", "title"),
    [
        ("# Which engine?\n\nLook at both.", "Which engine?"),
        ("Hello. Should we move to SQLite? The board asks.", "Hello. Should we move to SQLite?"),
        ("Choose a storage engine, e.g. SQLite. It has to last.", "Choose a storage engine, e.g. SQLite"),
        ("Decide the following: use SQLite or PostgreSQL.", "Decide the following"),
        ("Decide the following: which one is it?", "Decide the following: which one is it?"),
        ("Dear council,\n\nShould we buy it? Yes or no.", "Should we buy it?"),
        ("Sehr geehrte Räte,", "Sehr geehrte Räte,"),
        (
            "Gibt es Geld für Farbe lt. Protokoll vom 12. Januar 2027? Ja.",
            "Gibt es Geld für Farbe lt. Protokoll vom 12. Januar 2027?",
        ),
        ("Soll Fr. Müller (Vors.) am 3. 5. 2027 kommen?", "Soll Fr. Müller (Vors.) am 3. 5. 2027 kommen?"),
        ("Choose a storage engine.", "Choose a storage engine"),
        ("Dr. Meyer asks: is this o.k.? Really.", "Dr. Meyer asks: is this o.k.?"),
        ('what about "Is it? No"', 'what about "Is it? No"'),
        ("\n\n", "Decision"),
        (f"Choose {'among many ' * 20}", f"Choose{' among many' * 10} …"),
    ],
)
def test_a_title_is_the_first_question_sentence_or_lead_of_a_task(task: str, title: str) -> None:
    assert title_of(task) == title
