"""Routing as a policy: names, embeddings, bands, and what the model is shown."""

from __future__ import annotations

from typing import Any

import pytest

from council.agents.directory import AgentListing, Directories
from council.agents.manifest import AgentManifest
from council.conductor.matching import NEAREST_BY_WORDS, Candidate, by_words, version_of
from council.conductor.routing import (
    AgentPick,
    Routing,
    by_embedding,
    by_model,
    by_name,
    pick_instruction,
    usable,
)
from council.conductor.understanding import RequestPart, Understanding, checked
from council.settings import Settings

SETTINGS = Settings()


def agent(id: str, purpose: str = "Looks at code for security issues.", **keys: Any) -> AgentManifest:
    values = {
        "id": id,
        "role": id.upper().replace("-", "_"),
        "purpose": purpose,
        "instructions": purpose,
        "scope": "task",
    }
    return AgentManifest.model_validate(values | keys)


class Offer(AgentListing):
    """Agents that are never run here."""

    async def run(self, handoff: Any) -> Any:
        raise AssertionError(handoff)


def directories(*agents: AgentManifest) -> Directories:
    return Directories([Offer(agents)])


HACKER = agent("ethical-hacker", aliases=["security"])


@pytest.mark.parametrize("words", ["@ethical-hacker look", "Please @Security look", "security: look at this"])
def test_a_name_with_an_at_sign_or_at_the_beginning_decides(words: str) -> None:
    [route] = by_name(words, directories(HACKER), "steward").routes
    assert (route.agent, route.how) == ("ethical-hacker", "name")


@pytest.mark.parametrize("words", ["I work in security and have a question", "mail me@security.org", "Note: nothing"])
def test_a_word_that_looks_like_a_name_decides_nothing(words: str) -> None:
    assert by_name(words, directories(HACKER), "steward") == Routing()


def test_nobody_of_that_name_and_agents_that_may_not_be_used_are_refused_with_the_cause() -> None:
    mine, theirs = agent("mine", trust="unverified", owner="ann"), agent("theirs", trust="unverified", owner="bob")
    council, private = agent("council", scope="deliberation"), agent("private", scope="user", owner="bob")
    known = directories(mine, theirs, council, private)

    assert by_name("@mine help", known, "ann").routes[0].agent == "mine"
    for name, cause in (("nobody", "none"), ("theirs", "unverified"), ("council", "scope"), ("private", "scope")):
        refused = by_name(f"@{name} help", known, "ann")
        assert (refused.routes[0].how, refused.routes[0].cause) == ("none", cause)
        assert name in refused.refused
    assert usable(known.list(), "ann") == (mine,)


def test_a_name_of_two_agents_calls_the_first_and_none_besides() -> None:
    first, second = agent("tax-1", aliases=["tax"]), agent("tax-2", aliases=["tax"])
    two = Directories([Offer([first]), Offer([second, HACKER])])

    [route] = by_name("@tax go", two, "steward").routes
    assert (route.agent, route.unasked) == ("tax-1", ())
    [route] = by_name("@tax go with @security, @tax-2 and @nobody", two, "steward").routes
    assert (route.agent, route.unasked) == ("tax-1", ("ethical-hacker", "tax-2"))


def near(id: str, score: float | None, *, trusted: bool = True) -> Candidate:
    return Candidate(id, id.upper(), "Does it.", trusted, score)


@pytest.mark.parametrize(
    ("candidates", "chosen"),
    [
        ([near("a", 0.86)], "a"),
        ([near("a", 0.85)], ""),
        ([near("a", 0.86), near("b", 0.99)], "b"),
        ([near("mine", 0.95, trusted=False), near("a", 0.86)], "a"),
        ([near("mine", 0.81, trusted=False), near("a", 0.80)], "mine"),
        ([near("mine", 0.80, trusted=False)], ""),
        ([near("a", None)], ""),
    ],
)
def test_a_verified_agent_above_its_constant_comes_before_the_askers_own(
    candidates: list[Candidate], chosen: str
) -> None:
    route = by_embedding(1, candidates, SETTINGS)

    assert (route.agent if route else "") == chosen
    assert (route.scope if route else "") == ("user" if chosen == "mine" else "")


@pytest.mark.parametrize(
    ("pick", "how", "cause", "asks"),
    [
        ({"agent": "a", "confidence": 0.9}, "model", "", False),
        ({"agent": "A", "confidence": 0.8999}, "model", "", True),
        ({"agent": "a", "confidence": 0.7}, "model", "", True),
        ({"agent": "a", "confidence": 0.6999, "can_answer": True, "temporary": "Expert"}, "general", "band", False),
        ({"agent": "NONE", "confidence": 1.0, "can_answer": True}, "general", "none", False),
        ({"agent": "NONE", "confidence": 1.0, "temporary": "Expert"}, "temporary", "none", False),
        ({"agent": "not-in-the-list", "confidence": 1.0}, "none", "none", False),
    ],
)
def test_the_models_choice_is_judged_by_bands_and_then_by_the_chain(
    pick: dict[str, Any], how: str, cause: str, asks: bool
) -> None:
    route = by_model(1, AgentPick(part=1, **pick), [near("a", None)], SETTINGS)

    assert (route.how, route.cause, route.asks_first) == (how, cause, asks)


def test_whatever_is_asked_a_model_that_always_says_one_agent_gets_that_agent() -> None:
    for task in ("write a note", "what events are coming up?", "delete my tasks", "Guten Tag"):
        candidates = by_words([agent("writer", "Writes."), HACKER], [task]).parts[0]
        route = by_model(1, AgentPick(part=1, agent="writer", confidence=0.95), candidates, SETTINGS)
        assert route.agent == "writer"


def test_a_model_is_shown_as_many_of_a_thousand_agents_as_of_a_few_and_the_nearest_is_among_them() -> None:
    crowd = [agent(f"agent-{number}", f"Paints wall number {number}.") for number in range(1_000)]
    few, many = [HACKER, *crowd[:15]], [*crowd, HACKER]
    part = RequestPart(task="Check this for security holes")

    shown = [by_words(agents, [part.task]).parts[0] for agents in (few, many)]
    sizes = [len(pick_instruction([(1, part, candidates)])) for candidates in shown]

    assert [len(candidates) for candidates in shown] == [NEAREST_BY_WORDS, NEAREST_BY_WORDS]
    assert all(candidates[0].agent == "ethical-hacker" for candidates in shown)
    assert sizes[1] <= 1.1 * sizes[0]


def test_a_vector_is_out_of_date_when_purpose_or_trust_changes() -> None:
    versions = {
        version_of(agent("ab", purpose, trust=trust)) for purpose in "XY" for trust in ("verified", "unverified")
    }

    assert len(versions) == 4


def test_an_understanding_names_known_fields_and_earlier_parts() -> None:
    read = Understanding.model_validate(
        {"parts": [{"task": "a", "fields": {"shoe_size": "42"}, "uses": [1]}, {"task": "b", "uses": [1]}]}
    )

    assert [problem.path for problem in checked(read)] == ["parts[0].fields.shoe_size", "parts[0].uses"]
