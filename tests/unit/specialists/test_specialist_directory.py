"""A specialist at work: its request becomes its input, its output is checked, and each use leaves one row."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import msgspec
import pytest

from council.agents.handoff import Return, prepare
from council.conductor.matching import version_of
from council.ids import Principal, SystemClock
from council.redaction import Redactor, Secret
from council.sandbox.cage import Sandbox
from council.sandbox.job import Job, Result
from council.settings import Home, Settings
from council.specialists import specialist_registry as registry
from council.specialists import statements as sql
from council.specialists.examination import examined
from council.specialists.outside_plans import OUTSIDE_REQUEST, OutsideSender
from council.specialists.specialist_directory import SpecialistDirectory, manifest_of
from council.specialists.specialist_registry import TelemetryRow
from council.specialists.specialist_spec import SpecialistSpec
from council.specialists.training import LIMITS
from council.tools.registry import ToolRegistry
from council.turns.bench import Bench
from council.turns.equipment import Speaker
from council.turns.run_guardrails import Guard
from council.vault.database import DatabaseVault
from council.vault.sealing import CredentialPlace
from tests.apprentices import SPEC, SUITE, Office, registered, row
from tests.outside import PUBLIC, OutsideHost, reroute
from tests.planning import KEYS
from tests.rehearsal import Rehearsal, Shelf, equipment
from tests.staffroom import Answer, OneModel, Prompt, PromptedModel

HOST, KEY = "api.sms.example", "canary-7Qx0pWz3kd"
PROMPT = msgspec.structs.replace(
    SPEC, role="host_namer", kind="prompt", code="", dna_rules=("It names the host.", "It says so if it is not sure.")
)
SENDING = msgspec.convert(
    {
        **msgspec.to_builtins(SPEC),
        "role": "texter",
        "code": 'def run(input, replies):\n    return {"valid": True, "host": replies["look"]["host"]}\n',
        "requests": [
            {
                "name": "look",
                "method": "GET",
                "url": f"https://{HOST}/look?q={{q}}",
                "parameters": [{"name": "q"}],
                "headers": [{"name": "X-Key", "credential": "sms_key"}],
            },
            {
                "name": "text",
                "method": "POST",
                "url": f"https://{HOST}/texts",
                "parameters": [{"name": "to"}],
                "body": {"to": "{to}"},
            },
        ],
    },
    SpecialistSpec,
)


class Workshop:
    """`use` hands one request to one specialist, all in one run of `anna`."""

    def __init__(self, played: Rehearsal, folder: Path, settings: Settings) -> None:
        self.store, self.run, self.settings = played.store, played.run, settings
        self.office = Office(played.store, Home(folder / "home"))
        self.vault = DatabaseVault(
            self.office.planning.log, SimpleNamespace(load=lambda: KEYS), SystemClock(), lambda secret: None
        )
        self.count = 0

    async def use(
        self,
        role: str,
        request: str,
        answer: Answer,
        user: str = "anna",
        texts: dict[str, str] | None = None,
        meanwhile: Callable[[], object] | None = None,
    ) -> Return:
        self.count += 1
        core, bench = self.opened(request, answer, user, texts or {})
        directory = SpecialistDirectory(core, bench)
        manifest = directory.get(role)
        assert manifest is not None
        given = {"task": request, "documents": "of the request", "financial_data": "9,000 euros", "memory": "earlier"}
        handoff = prepare(f"handoff-{self.count}", manifest, given, tools=("READ_FILE",))
        if meanwhile is not None:  # the process died, and another one goes on
            meanwhile()
            directory = SpecialistDirectory(core, bench)
        return await directory.run(handoff)

    def opened(
        self, request: str, answer: Answer, user: str = "anna", texts: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[Any, Bench]:
        """A core and a bench on which `answer` speaks."""
        self.model = PromptedModel(answer)
        plans = self.office.planning.plans
        core: Any = SimpleNamespace(
            store=self.store, clock=SystemClock(), settings=self.settings, redactor=Redactor(), audit=plans.audit,
            vault=lambda: self.vault, plans=plans,
        )  # fmt: skip
        sender = OutsideSender(core)
        core.plans = replace(plans, kinds={OUTSIDE_REQUEST.name: OUTSIDE_REQUEST}, tools=ToolRegistry([sender.tool()]))
        means = equipment(self.model, tools=Shelf(dict(texts)).registry())
        models: Any = OneModel()
        return core, Bench(self.run, means, models, Guard(), Principal(user, "user"), request, ("READ_FILE",))

    def rows(self, agent_id: str) -> list[TelemetryRow]:
        found = self.store.read(lambda tx: registry.telemetry_in(tx.execute, sql.ROWS_OF, agent_id))
        return [each for each in found if each.kind == "use"]

    @property
    def journal(self) -> str:
        return "\n".join(f"{step.name} {step.answer.decode()}" for step in self.run.journal.steps())


@pytest.fixture
def workshop(played: Rehearsal, tmp_path: Path) -> Workshop:
    (tmp_path / "home").mkdir()
    Home(tmp_path / "home").ensure_runtime()
    return Workshop(played, tmp_path, Settings())


def input_of(**reply: Any) -> Callable[[Prompt], Any]:
    """A model that turns every request into this input."""
    return lambda prompt: reply


async def test_code_runs_in_the_cage_on_the_input_that_the_model_made_of_the_request(workshop: Workshop) -> None:
    agent_id = registered(workshop.store, model="gemini:fake")
    replies = iter([{"input": {"mail": "anna@example.org"}}, {"input": {"email": "anna@example.org"}}])
    returned = await workshop.use("email_validator", "Is anna@example.org valid?", lambda prompt: next(replies))

    assert (returned.status, returned.output["valid"], returned.output["host"]) == ("completed", True, "example.org")
    assert returned.answer.startswith("**Unverified specialist** email_validator, version 1, made for anna.")
    assert "- valid: true\n- host: example.org" in returned.answer
    first, second = workshop.model.prompts
    assert "`input`: must contain ['email'] properties" in second.text
    for prompt in (first, second):
        assert "You turn a request into the input of email_validator" in prompt.system
        assert "expected_output" not in prompt.text
        assert "9,000" not in prompt.text + prompt.system
        assert "earlier" not in prompt.text
    [use] = workshop.rows(agent_id)
    assert (use.success, use.level, use.user_id, use.version, use.calls, use.model) == (
        1,
        "L2",
        "anna",
        1,
        2,
        "gemini:fake",
    )
    assert (use.confidence, use.error, use.step) == (None, "", "handoff-1")

    failed = await workshop.use("email_validator", "Is 7 valid?", input_of(input={"email": 7}))
    assert failed.status == "failed"
    assert "could not be turned into the input" in failed.error
    assert [use.success for use in workshop.rows(agent_id)] == [1, 0]
    assert row(workshop.store, agent_id).success_count == 1


async def test_a_prompt_specialist_answers_by_a_model_and_its_reply_must_fit_the_schema(workshop: Workshop) -> None:
    agent_id = registered(workshop.store, spec=PROMPT, model="gemini:older")

    def answer(prompt: Prompt) -> Any:
        if "You turn a request" in prompt.system:
            return {"input": {"email": "a@b.example"}}
        assert "1. It names the host." in prompt.system
        return {"valid": True, "host": "b.example", "confidence": 0.4}

    returned = await workshop.use("host_namer", "Which host has a@b.example?", answer)
    assert returned.output["host"] == "b.example"
    assert returned.meta.certainty == 0.4
    assert (
        "**Not yet tested with this model:** host_namer was tested with gemini:older, and gemini:fake answers now."
        in returned.answer
    )
    wrong = await workshop.use(
        "host_namer",
        "And this?",
        lambda prompt: {"input": {"email": "x"}} if "You turn" in prompt.system else {"valid": "yes"},
    )
    assert wrong.status == "failed"
    [good, bad] = workshop.rows(agent_id)
    assert (good.success, good.level, good.said) == (1, "", 0.4)
    assert (bad.success, bad.calls) == (0, 4)  # the input, and a reply that was mended twice
    assert bad.error


@pytest.mark.parametrize("spec", [SPEC, PROMPT], ids=["code", "prompt"])
async def test_training_and_use_have_the_same_limits_and_the_same_words(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, spec: SpecialistSpec
) -> None:
    """Every job and every prompt of a training is that of a use, but for the input."""
    jobs: list[str] = []
    run = Sandbox.run

    async def watched(self: Sandbox, job: Job) -> Result:
        result = await run(self, job)
        jobs.append(f"{result.level.name} {replace(job, argument=None)}")
        return result

    def answer(prompt: Prompt) -> Any:
        return {"input": SUITE.cases[0].input} if "You turn" in prompt.system else {"valid": True, "host": "x"}

    def words() -> set[tuple[str, str]]:
        said = [each for each in workshop.model.prompts if "You turn" not in each.system]
        return {(each.system, re.sub("<<DATA.*<<END[^\n]*", "", each.text, flags=re.DOTALL)) for each in said}

    monkeypatch.setattr(Sandbox, "run", watched)
    registered(workshop.store, spec=spec)
    core, bench = workshop.opened("", answer)
    speaker = Speaker(spec.role.upper(), "", "", (), ("gemini:fake",), "gemini:fake")
    results = await examined(core, bench, speaker, spec, SUITE)
    assert [result.error for result in results] == [""] * 8
    trained, in_training = words(), set(jobs)
    jobs.clear()
    assert (await workshop.use(spec.role, "Is it valid?", answer)).status == "completed"
    assert words() == trained
    assert set(jobs) == in_training
    is_code = spec.kind == "code"
    assert (len(trained), len(jobs)) == (int(not is_code), 2 * is_code)  # is docker there? Then the job itself
    assert sum(str(LIMITS) in job for job in jobs) == is_code


async def test_a_question_is_asked_and_counts_as_no_use(workshop: Workshop) -> None:
    agent_id = registered(workshop.store)
    returned = await workshop.use("email_validator", "Is it valid?", input_of(question="Which address?"))
    assert (returned.status, returned.question) == ("needs_clarification", "Which address?")
    assert workshop.rows(agent_id) == []


@pytest.mark.parametrize("change", ["DEPRECATE", "version"])
async def test_a_specialist_that_is_taken_out_of_use_stops_before_its_next_turn(
    workshop: Workshop, change: str
) -> None:
    agent_id = registered(workshop.store)

    def revoke(prompt: Prompt) -> Any:
        if change == "DEPRECATE":
            workshop.store.write_now(lambda tx: tx.execute(sql.DEPRECATE, (agent_id,)))
        else:
            registered(workshop.store, run_id="run-2")
        return {"input": {"email": "anna@example.org"}}

    returned = await workshop.use("email_validator", "Is anna@example.org valid?", revoke)
    assert returned.status == "failed"
    assert "email_validator was taken out of use" in returned.error or "has got another version" in returned.error
    assert "handoff-1/output" not in [step.name for step in workshop.run.journal.steps()]
    assert workshop.rows(agent_id) == []


async def test_a_specialist_that_went_while_the_run_was_interrupted_is_not_asked(workshop: Workshop) -> None:
    agent_id = registered(workshop.store)

    def revoke() -> None:
        workshop.store.write_now(lambda tx: tx.execute(sql.DEPRECATE, (agent_id,)))

    returned = await workshop.use("email_validator", "Is it valid?", input_of(), meanwhile=revoke)
    assert (returned.status, returned.error) == ("failed", "email_validator was taken out of use.")
    assert workshop.model.prompts == []


async def test_its_tools_read_for_it_and_nothing_else_does(workshop: Workshop) -> None:
    registered(workshop.store, spec=msgspec.structs.replace(SPEC, tools=("READ_FILE",)))

    def answer(prompt: Prompt) -> Any:
        if "Which files does the specialist need" in prompt.text and "Reply with one JSON object" not in prompt.text:
            return "[ORCHESTRATOR_REQUEST: READ_FILE(people.md)]"
        return {"input": {"email": "carl@example.net" if "carl@example.net" in prompt.text else "none"}}

    returned = await workshop.use(
        "email_validator", "Is Carl's valid?", answer, texts={"people.md": "Carl: carl@example.net"}
    )
    assert returned.output["host"] == "example.net"


# ── outside requests ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OutsideHost]:
    with OutsideHost(tmp_path, [HOST]) as host:
        host.answer.body = {"host": f"found {KEY}"}
        monkeypatch.setenv("SSL_CERT_FILE", str(host.authority))
        reroute({HOST: [[PUBLIC]]}, {PUBLIC: host.port}, monkeypatch.setattr)
        yield host


async def test_a_get_of_the_asker_s_own_words_is_sent_once_with_the_asker_s_own_credential(
    workshop: Workshop, host: OutsideHost
) -> None:
    agent_id = registered(workshop.store, spec=SENDING)
    look = {"name": "look", "parameters": {"q": "sofia"}}
    answer = input_of(input={"email": "anna@example.org"}, requests=[look])
    workshop.vault.set(CredentialPlace("bert", "texter", "sms_key"), Secret("another-key-of-bert"))
    missing = await workshop.use("texter", "Look for Sofia, please.", answer)
    assert missing.status == "needs_clarification"
    assert "`council vault set sms_key --role texter --user anna` stores it" in missing.question
    assert (host.requests, workshop.rows(agent_id)) == ([], [])

    workshop.vault.set(CredentialPlace("anna", "texter", "sms_key"), Secret(KEY))
    returned = await workshop.use("texter", "Look for Sofia, please.", answer)
    [got] = host.requests
    assert (got.path, got.headers["x-key"]) == ("/look?q=sofia", KEY)
    assert returned.output["host"].startswith("found ")
    assert KEY not in workshop.journal + json.dumps(returned.output)
    assert all(KEY not in prompt.text + prompt.system for prompt in workshop.model.prompts)
    assert [use.success for use in workshop.rows(agent_id)] == [1]


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({"name": "text", "parameters": {"to": "Sofia"}}, "text to api.sms.example"),  # no GET
        (
            {"name": "look", "parameters": {"q": "Plovdiv"}},
            "look to api.sms.example",
        ),  # a word that the asker did not say
    ],
)
async def test_any_other_request_is_a_plan_and_nothing_is_sent(
    workshop: Workshop, host: OutsideHost, request_: dict[str, Any], told: str
) -> None:
    agent_id = registered(workshop.store, spec=SENDING)
    workshop.vault.set(CredentialPlace("anna", "texter", "sms_key"), Secret(KEY))
    answer = input_of(input={"email": "anna@example.org"}, requests=[request_])
    returned = await workshop.use("texter", "Look for Sofia, please.", answer)
    assert returned.plan
    assert f"texter wants to send {told} (plan {returned.plan}). Nothing is sent" in returned.answer
    assert host.requests == []
    [use] = workshop.rows(agent_id)
    assert (use.success, use.error) == (1, "")


async def test_a_reply_that_is_no_success_fails_the_use(workshop: Workshop, host: OutsideHost) -> None:
    agent_id = registered(workshop.store, spec=SENDING)
    workshop.vault.set(CredentialPlace("anna", "texter", "sms_key"), Secret(KEY))
    host.answer.status = 500
    answer = input_of(input={"email": "x"}, requests=[{"name": "look", "parameters": {"q": "sofia"}}])
    returned = await workshop.use("texter", "Look for Sofia.", answer)
    assert "The request look to api.sms.example failed: it answered 500" in returned.error
    assert [use.success for use in workshop.rows(agent_id)] == [0]
    unknown = input_of(input={"email": "x"}, requests=[{"name": "other", "parameters": {}}])
    assert "could not be turned" in (await workshop.use("texter", "Look for Sofia.", unknown)).error


# ── who is served ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_manifest_says_whom_a_specialist_serves_and_long_roles_stay_apart(workshop: Workshop) -> None:
    one = row(workshop.store, registered(workshop.store))
    manifest = manifest_of(one)
    assert (manifest.id, manifest.role, manifest.trust, manifest.scope, manifest.owner) == (
        "email_validator", "EMAIL_VALIDATOR", "unverified", "user", "anna",
    )  # fmt: skip
    verified = manifest_of(msgspec.structs.replace(one, status="verified", scope="global"))
    assert (verified.trust, verified.scope) == ("verified", "task")
    assert version_of(verified) != version_of(manifest)  # so its embedding is made anew
    long = [manifest_of(msgspec.structs.replace(one, role=f"{'a' * 40}_{end}")).role for end in ("x", "y")]
    assert len(set(long)) == 2
    assert {len(role) for role in long} == {32}
