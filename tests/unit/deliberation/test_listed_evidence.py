"""The evidence that is listed for a claim or a dissent holds for each of its sentences that cites nothing itself."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from council.citations import NOT_IN_CITED_LINES
from council.deliberation.decision import decide
from council.deliberation.names import Names
from council.deliberation.record import ClosingRecord, DecisionRecord
from council.deliberation.transcript import Transcript, Turn
from council.turns.evidence import Evidence
from council.turns.result import TurnResult

OFFERS = {"E1": "The scaffold costs 8,400 EUR.\nThe work takes 9 weeks.\n", "E2": "The scaffold costs 7,900 EUR.\n"}


def sections(**record: Any) -> dict[str, tuple[str, ...]]:
    read = [Evidence("A", 0, "", id=id, title=id, path=f"{id}.md", text=text) for id, text in OFFERS.items()]
    transcript = Transcript("Which offer?", read, [Turn("AUDITOR", 1, TurnResult("I wait.", "m"))])
    whole = {"answer": "Take it.", "claims": [], "dissent": [], "confidence": 0.5, **record}
    typed = DecisionRecord.model_validate_json(json.dumps(whole))
    names = Names({})
    decided = decide(TurnResult("", "m"), ClosingRecord(typed), transcript, None, ["AUDITOR"], names, "AUDITOR")
    return {section.heading: section.items for section in decided.sections}


def marked(text: str) -> list[str]:
    return re.findall(rf"(\S+) EUR {re.escape(NOT_IN_CITED_LINES)}", text)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Offer A's scaffold costs 8,888 EUR. Offer B asks less.", ["8,888"]),
        ("Offer A's scaffold costs 8,400 EUR. Offer B asks less.", []),
        ("Offer A asks 8,888 EUR. Offer B asks 7,900 EUR [E2:1]. It is dear.", ["8,888"]),
        ("Offer A asks 8,400 EUR. Offer B asks 7,900 EUR [E2:1]. That is 500 EUR less.", []),
        ("Offer A asks 8,400 EUR [E2:1]. Offer B asks 7,900 EUR.", ["8,400"]),
        ("- Offer A: 8,400 EUR\n- Offer B: 7,999 EUR", ["7,999"]),
    ],
)
def test_each_sentence_of_a_claim_and_of_a_dissent_is_looked_up(text: str, wrong: list[str]) -> None:
    evidence = ["E1:1", "E2:1"]
    [claim] = sections(claims=[{"text": text, "evidence": evidence}])["Why"]
    [view] = sections(dissent=[{"view": text, "held_by": "AUDITOR", "evidence": evidence}])["Dissent"]
    assert [marked(claim), marked(view)] == [wrong, wrong]


@pytest.mark.parametrize("ref", ["[the offer](E2.md)", "[the offer](../E2.md#L1)", "E2.md"])
def test_a_document_may_be_listed_as_a_link_or_by_its_name(ref: str) -> None:
    [claim] = sections(claims=[{"text": "Offer B asks 8,888 EUR, not 7,900 EUR.", "evidence": [ref]}])["Why"]
    assert marked(claim) == ["8,888"]
    assert re.search(r"\[E2: E2\.md(?::1)?\]$", claim)


def test_a_sentence_without_listed_evidence_is_not_looked_up() -> None:
    [claim] = sections(claims=[{"text": "It costs 8,888 EUR. It is dear [E1]."}])["Why"]
    assert marked(claim) == []
