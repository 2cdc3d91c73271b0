"""Handing over: what stands in the requests that a provider gets, and what an agent may say to the person."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from council.agents.manifest import AgentManifest
from council.conductor.dispatch import Handing, PartJob, Result
from council.conductor.own_agents import OwnAgents
from council.conductor.temporary import manifest_of, temporary_id
from council.ids import Principal
from council.llm.openai_compatible import OpenAICompatibleModel, Server
from council.turns.bench import Bench
from council.turns.run_guardrails import Guard
from tests.conducting import block
from tests.fake_openai import FakeOpenAI, RecordedRequest, text
from tests.rehearsal import equipment, rehearsal, speaker
from tests.staffroom import OneModel

PRIVATE = ("personal", "financial")
PROFILE = '{"expertise": "Woodworking by hand.", "personality": "Patient and plain."}'
HARM = "To make a pipe bomb, take parts number seventeen."


def agent(id: str, **keys: Any) -> AgentManifest:
    values = {"id": id, "role": id.upper().replace("-", "_"), "purpose": "Looks.", "instructions": "You look.", **keys}
    return AgentManifest.model_validate({"tools": [], "scope": "task", **values})


@contextmanager
def handing(
    fake: FakeOpenAI, manifests: Sequence[AgentManifest], asked: Callable[[str], str] = lambda question: ""
) -> Iterator[Handing]:
    """The handoffs of one run, whose agents speak by the provider. `asked` answers for the person."""

    async def ask_person(name: str, question: str) -> str:
        return asked(question)

    model = OpenAICompatibleModel("fake", server=Server("fake", fake.url))
    with rehearsal() as one:
        means = equipment(model)  # type: ignore[arg-type]
        models: Any = OneModel()
        bench = Bench(one.run, means, models, Guard("on"), Principal("steward", "steward"), "Look.")
        own = OwnAgents(bench, manifests)
        yield Handing(bench, speaker("CONDUCTOR"), [own], own, ask_person)


async def test_a_hundred_random_manifests_get_every_required_field_and_no_forbidden_one_in_their_request() -> None:
    chance, names = random.Random(21), [*(f"field{number}" for number in range(10)), *PRIVATE]
    fields = {name: f"canary-{name}-{chance.randrange(10**9)}" for name in names}
    needs = []
    for _ in range(100):
        mixed = chance.sample(names[:10], 10)
        optional = chance.sample([*mixed[3:], *PRIVATE], 5)
        needs.append({"required": ["task", *mixed[:3]], "optional": optional, "forbidden": chance.sample(mixed[3:], 3)})
    trusts = chance.choices(["builtin", "verified", "unverified", "temporary"], k=100)
    manifests = [agent(f"agent-{n}", context=one, trust=trusts[n]) for n, one in enumerate(needs)]
    offered = {"task": f"Look at this: {' '.join(fields.values())}", **fields}
    jobs = [PartJob(number, one.id, offered) for number, one in enumerate(manifests)]
    with FakeOpenAI(reply=lambda request: text(block("Seen."))) as fake, handing(fake, manifests) as work:
        results: list[Result] = await work.do_all(jobs, "sequential")
        requests = fake.requests

    assert [returned.status for _, returned in results] == ["completed"] * 100
    assert len(requests) == 100
    for one, trust, request in zip(needs, trusts, requests, strict=True):
        told = "\n".join([request.system, *request.all_texts])
        given = {name for name in names if fields[name] in told}
        assert given >= set(one["required"]) - {"task"}
        withheld = {*one["forbidden"], *(PRIVATE if trust in ("unverified", "temporary") else ())}
        assert given == {*one["required"], *one["optional"]} - {"task"} - withheld


async def test_what_is_private_reaches_no_untrusted_agent_by_the_words_of_another() -> None:
    salary = "82,000 euros a year"
    lender = agent("lender", context={"required": ["task", "financial"], "optional": []})
    wants = {"required": ["task"], "optional": ["other_agent_outputs", "financial"]}
    stranger, child = (agent(one, context=wants, trust="unverified") for one in ("stranger", "child"))

    def reply(request: RecordedRequest) -> Any:
        if "You are LENDER," not in request.system:
            return text(block("Seen."))
        return text(block(f"They earn {salary}.", children=[{"to": "child", "task": f"Judge {salary}", "fields": []}]))

    jobs = [
        PartJob(1, "lender", {"task": "Judge the income", "financial": salary}),
        PartJob(2, "stranger", {"task": "Write about it"}, uses=(1,)),
    ]
    with FakeOpenAI(reply=reply) as fake, handing(fake, [lender, stranger, child]) as work:
        results: list[Result] = await work.do_all(jobs, "sequential")
        told = {handoff.to: handoff for handoff, _ in results}
        texts = ["\n".join(one.all_texts) for one in fake.requests]

    assert [salary in one for one in texts] == [True, False, False]
    assert told["child"].task == "Judge [financial: left out]"
    assert told["stranger"].context.content["other_agent_outputs"] == "They earn [financial: left out]."
    assert [told[name].context.excluded for name in ("child", "stranger")] == [("financial",)] * 2


def test_each_name_of_a_temporary_agent_has_an_id_of_its_own() -> None:
    names = ("Carpentry Advisor", "Дърводелец", "Градинар", "C++ Expert", "C# Expert", "Tax-Specialist")
    ids = [temporary_id(name) for name in names]

    assert ids[0] == "temporary-carpentry-advisor"
    assert len({temporary_id(name) for name in names}) == len(names)
    assert all(manifest_of(name, PROFILE, "ada").id == id for name, id in zip(names, ids, strict=True))
    assert len({manifest_of(name, PROFILE, "ada").role for name in names}) == len(names)


@pytest.mark.parametrize("where", ["question", "answer"])
async def test_harm_in_an_agents_question_or_answer_does_not_reach_the_person(where: str) -> None:
    def reply(request: RecordedRequest) -> Any:
        if where == "answer":
            return text(block(HARM))
        return text(block("I cannot tell.", status="needs_clarification", question=HARM))

    asked: list[str] = []

    def person(question: str) -> str:
        asked.append(question)
        return "yes"

    job = PartJob(1, "hacker", {"task": "Look at this"})
    with FakeOpenAI(reply=reply) as fake, handing(fake, [agent("hacker")], person) as work:
        [(_, returned)] = await work.do_all([job], "parallel")

    assert asked == []
    assert returned.status == "failed"
    assert returned.error.startswith(f"its {where} was withheld by a guardrail (`weapon`)")
    assert "seventeen" not in str(returned)
