"""The gates of a creation, with values on both sides of each bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from council.llm.embeddings import Embeddings, Purpose
from council.specialists.creation_gates import (
    CreationRefused,
    KnownAgent,
    Likeness,
    alike_in_meaning,
    alike_in_words,
    refuse_known,
    refuse_one_time,
    refuse_unhealthy,
    refuse_untrained,
)
from council.specialists.creation_prompts import Assignment
from council.specialists.specialist_spec import SpecialistSpec, spec_of
from council.specialists.suites import CaseResult
from tests.apprentices import SUITE
from tests.creating import EMAIL

SPEC = spec_of(EMAIL)
HACKER = KnownAgent("ethical-hacker", "Looks for holes in programs.", ("ethical-hacker", "ETHICAL_HACKER", "Hacker"))
OTHER = KnownAgent("email_validator", EMAIL["purpose"], ("email_validator", "EMAIL_VALIDATOR"), is_trusted=False)


def code_of(refused: pytest.ExceptionInfo[CreationRefused]) -> str:
    return refused.value.code


def test_a_one_time_task_alone_is_refused_and_a_temporary_agent_named() -> None:
    for frequency in ("occasional", "frequent"):
        refuse_one_time(frequency)
    with pytest.raises(CreationRefused, match="only once") as refused:
        refuse_one_time("one_time")
    assert code_of(refused) == "one_time"
    assert "temporary agent" in refused.value.fix


@pytest.mark.parametrize("role", ["ethical_hacker", "hacker", "email_validator"])
def test_a_name_that_calls_another_agent_is_a_duplicate_in_any_spelling(role: str) -> None:
    spec = spec_of({**EMAIL, "role": role})
    with pytest.raises(CreationRefused, match=f"There is an agent {role} already") as refused:
        refuse_known(spec, "", [HACKER, OTHER], Likeness())
    assert code_of(refused) == "duplicate"
    assert "`--changes` (in a file or a request: `changes`) gives your own one a new version" in refused.value.fix
    refuse_known(spec_of({**EMAIL, "role": "other"}), "", [HACKER, OTHER], Likeness())


def test_a_new_version_keeps_its_name_and_may_do_what_the_last_one_did() -> None:
    refuse_known(SPEC, "email_validator", [HACKER], Likeness("email_validator", 1.0, 0.8))
    with pytest.raises(CreationRefused, match="was designed as email_validator"):
        refuse_known(SPEC, "post_code_teller", [HACKER], Likeness())


class Fixed:
    """An embedder that knows the cosine of each purpose with the design's."""

    name, dimensions, max_texts, max_text_bytes = "fixed:1", None, 2, 1_000

    def __init__(self, cosines: Mapping[str, float]) -> None:
        self._cosines = cosines

    async def embed(self, texts: Sequence[str], *, purpose: Purpose = "passage") -> Embeddings:
        return Embeddings(tuple([cosine := self._cosines.get(text, 1.0), 1 - cosine] for text in texts))

    async def aclose(self) -> None: ...


@pytest.mark.parametrize(
    ("trusted", "cosine", "is_duplicate"),
    [(True, 0.85, False), (True, 0.851, True), (False, 0.80, False), (False, 0.801, True)],
)
async def test_likeness_has_the_bounds_of_routing(trusted: bool, cosine: float, is_duplicate: bool) -> None:
    agents = [KnownAgent("one", "one purpose", ("one",), trusted), KnownAgent("far", "far away", ("far",))]
    embedder = Fixed({"one purpose": cosine, "far away": 0.1})
    likeness = await alike_in_meaning("the design", agents, embedder, {True: 0.85, False: 0.80})
    assert (likeness.agent, likeness.score, likeness.is_duplicate) == ("one", cosine, is_duplicate)
    assert len(likeness.calls) == 2
    assert not (await alike_in_meaning("the design", [], embedder, {True: 0.85, False: 0.80})).is_duplicate


def test_without_meanings_four_of_five_words_in_common_are_not_yet_the_same() -> None:
    agents = [KnownAgent("one", "alpha beta gamma delta epsilon", ("one",))]
    assert alike_in_words("alpha beta gamma delta", agents).score == 0.8
    assert not alike_in_words("alpha beta gamma delta", agents).is_duplicate
    assert alike_in_words("Epsilon, delta; gamma beta alpha!", agents).is_duplicate
    assert not alike_in_words("", []).is_duplicate


def results_of(*shares: float) -> list[CaseResult]:
    return [CaseResult(success=share == 1, confidence=share) for share in shares]


def test_a_training_passes_from_three_quarters_on() -> None:
    refuse_untrained(SUITE, results_of(*[1.0] * 6, 0.0, 0.0))
    with pytest.raises(
        CreationRefused, match=r"reached 0\.749, .* Failed: case 6 \(0\.99\), case 7 \(0\.00\)"
    ) as refused:
        refuse_untrained(SUITE, results_of(*[1.0] * 5, 0.992, 0.0, 0.0))
    assert code_of(refused) == "training_failed"


def test_an_agent_or_a_tool_that_is_gone_makes_it_unhealthy() -> None:
    spec: SpecialistSpec = spec_of({**EMAIL, "depends_on": ["ethical-hacker"], "tools": ["READ_FILE"]})
    refuse_unhealthy(spec, [HACKER], ["read_file"])
    with pytest.raises(CreationRefused, match="depends on READ_FILE") as refused:
        refuse_unhealthy(spec, [HACKER], [])
    assert code_of(refused) == "unhealthy"
    with pytest.raises(CreationRefused, match="depends on ethical-hacker"):
        refuse_unhealthy(spec, [], ["READ_FILE"])


def test_every_step_sees_the_request_and_the_hidden_half_sees_nothing_of_the_design() -> None:
    assignment = Assignment("WISH", "ANSWERED", "EXAMPLES", "MATERIAL", "DOCUMENTS", "ANALYSIS")
    prompts = {
        "interview": assignment.interview(),
        "design": assignment.design(["READ_FILE"], ["ethical-hacker"], "", ""),
        "correction": assignment.design([], [], "email_validator", "SENT BACK"),
        "visible": assignment.cases(SPEC, 4, hidden=False, faults=""),
        "hidden": assignment.cases(SPEC, 4, hidden=True, faults="FAULTS"),
    }
    said = {name: "\n".join(message.text for message in messages) for name, messages in prompts.items()}
    assert all("WISH" in text and "ANSWERED" in text for text in said.values())
    assert all("MATERIAL" in said[name] and "DOCUMENTS" in said[name] for name in ("interview", "design", "correction"))
    assert "SENT BACK" in said["correction"]
    assert "keep that role" in said["correction"]
    assert EMAIL["dna_rules"][0] in said["visible"]
    assert '"address"' in said["hidden"]
    assert not any(part in said["hidden"] for part in (EMAIL["dna_rules"][0], EMAIL["purpose"], "def run", "MATERIAL"))
