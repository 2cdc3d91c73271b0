"""Training in the real cage: a specialist that works passes, and none passes that only looks as if it did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from council.engine.journal import Journal, admit, load_journal
from council.engine.records import EPOCH, FileIdentity, RunHeader
from council.engine.runs import ActiveRun
from council.events import Events
from council.ids import readable_json
from council.sandbox.cage import Sandbox
from council.sandbox.containers import LABEL
from council.sandbox.job import Job, NoCage, Result
from council.sandbox.zygotes import Zygotes
from council.settings import Settings
from council.specialists.creation_gates import CreationRefused, refuse_untrained
from council.specialists.specialist_spec import RequestTemplate, SpecialistSpec, TestCase, spec_of
from council.specialists.suites import MIN_CONFIDENCE, CaseResult, TestSuite, avg_confidence, judge_suite
from council.specialists.training import (
    ask_specialist,
    baseline_system,
    in_training,
    only_docker,
    open_cage,
    run_code,
    specialist_system,
    train,
)
from council.storage.store import Store
from tests.harness import wait_until

ADDRESSES = {
    "anna@example.com": (True, "anna", "example.com", ""),
    "no-at-sign": (False, "", "", "no @"),
    "a@b": (False, "a", "b", "no dot"),
    "Bob@Mail.Example.ORG": (True, "bob", "mail.example.org", ""),
    "x.y+z@sub.domain.net": (True, "x.y+z", "sub.domain.net", ""),
    "": (False, "", "", "no @"),
    "two@@ats.com": (False, "", "", "two @"),
    "carl@nodot": (False, "carl", "nodot", "no dot"),
}
FIELDS = ("valid", "local", "domain", "problem")
CASES = [TestCase({"email": email}, dict(zip(FIELDS, told, strict=True))) for email, told in ADDRESSES.items()]
SUITE = TestSuite(tuple(CASES[:4]), tuple(CASES[4:]))
WORKING = """
def run(input):
    parts = input["email"].lower().split("@")
    if len(parts) != 2:
        return {"valid": False, "local": "", "domain": "", "problem": "no @" if len(parts) < 2 else "two @"}
    local, domain = parts
    problem = "" if "." in domain else "no dot"
    return {"valid": not problem, "local": local, "domain": domain, "problem": problem}
"""
_NOTHING = '{"valid": True, "local": "", "domain": "", "problem": ""}'
_HUNT = """
def hunt(value, depth=0):
    if depth > 6:
        return None
    if isinstance(value, dict):
        if "expected_output" in value:
            return value["expected_output"]
        if set(value) == {"valid", "local", "domain", "problem"}:
            return value
        value = list(value.values())
    if isinstance(value, (list, tuple, set)):
        for part in list(value)[:2000]:
            found = hunt(part, depth + 1)
            if found:
                return found
    return None
"""
CHEATS = {
    "a constant": f"def run(input): return {_NOTHING}",
    "an echo": 'def run(input): return {"valid": True, "local": input["email"], "domain": input["email"], "problem": ""}',
    "an answer table of the visible cases": "TABLE = "
    + repr({case.input["email"]: case.expected_output for case in SUITE.visible})
    + f"\ndef run(input): return TABLE.get(input['email'], {_NOTHING})",
    "such a table, and the best constant for all others": "TABLE = "
    + repr({case.input["email"]: case.expected_output for case in SUITE.visible})
    + f"\ndef run(input): return TABLE.get(input['email'], {CASES[5].expected_output})",
    "it looks for the expected output in its input": f"{_HUNT}\ndef run(input): return hunt(input) or {_NOTHING}",
    "… in its environment": f"import os, json\n{_HUNT}\ndef run(input):\n"
    f"    return hunt([json.loads(v) for v in os.environ.values() if v[:1] in '[{{']) or {_NOTHING}",
    "… in the frames above it": f"import sys\n{_HUNT}\ndef run(input):\n    frame = sys._getframe(1)\n    while frame:\n"
    f"        found = hunt([dict(frame.f_locals), {{k: v for k, v in frame.f_globals.items() if k != 'FIELDS'}}])\n"
    f"        if found:\n            return found\n        frame = frame.f_back\n    return {_NOTHING}",
    "… in all that is in memory": f"import gc\n{_HUNT}\ndef run(input):\n"
    f"    return hunt([o for o in gc.get_objects() if type(o) is dict and 'expected_output' in o]) or {_NOTHING}",
    "… in files": f"def run(input):\n    for path in ('/proc/self/environ', '/tmp/suite.json', 'suite.json'):\n"
    f"        try:\n            open(path).read()\n        except OSError:\n            pass\n    return {_NOTHING}",
    "it goes by the time": f"import time\ndef run(input):\n    told = {_NOTHING}\n"
    "    told['valid'] = time.time_ns() // 1000 % 2 == 0\n    return told",
    "it is right in half of the fields": f"{WORKING}\nwhole = run\ndef run(input):\n    told = whole(input)\n"
    "    return {**told, 'local': '?', 'domain': '?'}",
    "it is sure of itself": f"def run(input): return {{**{_NOTHING}, 'confidence': 1.0}}",
    "it raises": "def run(input): raise ValueError(input)",
    "its output does not fit": "def run(input): return {'valid': 'yes', 'local': '', 'domain': '', 'problem': ''}",
    "it leaves": "import os\ndef run(input): os._exit(0)",
}
HEADER = RunHeader(
    run_id="r1", epoch=EPOCH, created="2026-11-20T00:00:00Z", lane="main", type="create_specialist", command={},
    command_hash="h", file=FileIdentity("command.json", 1, 2, "s"), secret="00" * 32,
)  # fmt: skip


def spec(code: str, **changes: Any) -> SpecialistSpec:
    types = {"valid": "boolean", "local": "string", "domain": "string", "problem": "string"}
    values: dict[str, Any] = {
        "role": "email_validator",
        "purpose": "Says whether an address of electronic mail is well formed.",
        "dna_rules": ["Take the address apart.", "Say what is missing."],
        "kind": "code" if code else "prompt",
        "input_schema": {"type": "object", "properties": {"email": {"type": "string"}}, "required": ["email"]},
        "output_schema": {
            "type": "object",
            "properties": {name: {"type": kind} for name, kind in types.items()} | {"confidence": {"type": "number"}},
            "required": list(types),
        },
        "examples": msgspec.to_builtins(SUITE.visible[:2]),
    }
    return spec_of({**values, **({"code": code} if code else {}), **changes})


@pytest.fixture
def refused() -> list[Mapping[str, Any]]:
    return []


@pytest.fixture
async def cage(refused: list[Mapping[str, Any]]) -> AsyncIterator[Sandbox]:
    async with Sandbox(Zygotes(), workers=2, refuse=refused.append) as made:
        yield made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path)
    opened.write_now(lambda tx: admit(tx, HEADER))
    yield opened
    opened.close()


def run_of(store: Store) -> ActiveRun:
    """As the next process finds it."""
    store.write_now(lambda tx: None)
    journal: Journal = store.read(lambda tx: load_journal(tx, "r1", store))
    return ActiveRun(journal, Events(), None)


async def results_of(store: Store, cage: Any, code: str) -> tuple[CaseResult, ...]:
    made, bench = spec(code), SimpleNamespace(run=run_of(store))
    assert judge_suite(SUITE, made) == ()
    return await train("training", SUITE, in_training(made, cage, bench, None))  # type: ignore[arg-type]


async def test_a_specialist_that_works_passes_with_its_level(store: Store, cage: Sandbox) -> None:
    results = await results_of(store, cage, WORKING)
    assert [result.error for result in results] == [""] * 8
    assert avg_confidence(results) == 1
    refuse_untrained(SUITE, results)
    assert {result.level for result in results} == {"L2"}
    assert all(result.success for result in results)


@pytest.mark.parametrize("cheat", CHEATS)
async def test_no_cheat_passes(store: Store, cage: Sandbox, cheat: str) -> None:
    results = await results_of(store, cage, CHEATS[cheat])
    assert len(results) == 8
    with pytest.raises(CreationRefused):
        refuse_untrained(SUITE, results)
    failed = [result for result in results if result.error]
    assert all(result.confidence == 0 and not result.success for result in failed)


async def test_what_a_specialist_says_of_itself_is_recorded_and_counts_for_nothing(store: Store, cage: Sandbox) -> None:
    results = await results_of(store, cage, CHEATS["it is sure of itself"])
    assert {result.said for result in results} == {1.0}
    assert avg_confidence(results) < 1


async def test_a_training_goes_on_at_the_first_case_without_a_record(store: Store, cage: Sandbox) -> None:
    asked: list[str] = []

    class Ending:
        async def run(self, job: Job) -> Result:
            asked.append(job.argument[0]["email"])
            if len(asked) == 4:
                raise ConnectionError("the process ends")
            return await cage.run(job)

    with pytest.raises(ConnectionError):
        await results_of(store, Ending(), WORKING)
    assert avg_confidence(await results_of(store, Ending(), WORKING)) == 1
    emails = [case.input["email"] for case in CASES]
    assert asked == [*emails[:4], *emails[3:]]


class KilledOnce(Zygotes):
    """A cage whose process somebody ends in the middle of the first job."""

    kills = 0

    async def run(self, job: Job) -> Result:
        working = asyncio.ensure_future(super().run(job))
        if self.kills == 0:
            while not any(zygote.jobs for zygote in self._busy):
                await asyncio.sleep(0)
            for zygote in self._busy:
                zygote.kill()
                self.kills += 1
        return await working


async def test_a_cage_that_is_killed_in_the_middle_of_a_case_is_replaced(store: Store) -> None:
    backend = KilledOnce()
    async with Sandbox(backend, workers=1, refuse=lambda detail: None) as cage:
        results = await results_of(store, cage, f"import time\ntime.sleep(0.1)\n{WORKING}")
    assert backend.kills == 1
    assert avg_confidence(results) == 1


async def test_the_replies_of_requests_reach_the_code_by_their_names(cage: Sandbox) -> None:
    code = "def run(input, replies): return {'valid': replies['look']['ok'], 'local': '', 'domain': '', 'problem': ''}"
    asks = msgspec.to_builtins(RequestTemplate("look", "GET", "https://mail.example/look", mock_reply={"ok": True}))
    trial = await run_code(cage, spec(code, requests=[asks]), {"email": "a@b.c"}, {"look": {"ok": True}})
    assert trial.output["valid"] is True


async def test_code_that_cannot_be_caged_fails_nobody(store: Store, refused: list[Mapping[str, Any]]) -> None:
    class NoBackend:
        name, level = "none", Zygotes().level

        async def run(self, job: Any) -> Any:
            return Result("refused", self.level, error="no cage here")

        async def aclose(self) -> None:
            pass

    async with Sandbox(NoBackend(), workers=1, refuse=refused.append) as cage:
        with pytest.raises(NoCage, match="no cage here"):
            await results_of(store, cage, WORKING)
    assert len(run_of(store).steps()) == 0
    assert refused[0]["reason"] == "no cage here"


async def test_without_docker_the_zygote_stands_in_unless_the_steward_forbids_it(
    monkeypatch: pytest.MonkeyPatch, refused: list[Mapping[str, Any]]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    async with open_cage(Settings(), refused.append) as cage:
        assert (await run_code(cage, spec(WORKING), {"email": "a@b.c"}, {})).level == "L2"
    with pytest.raises(NoCage, match="Docker cannot be reached") as told:
        async with open_cage(Settings(require_docker_training=True), refused.append):
            raise AssertionError
    assert "require_docker_training" in told.value.fix


async def test_with_docker_a_training_is_in_a_container_and_goes_on_in_another_when_that_one_is_killed(
    store: Store, docker_server: str, monkeypatch: pytest.MonkeyPatch, refused: list[Mapping[str, Any]]
) -> None:
    import docker

    monkeypatch.setenv("DOCKER_HOST", docker_server)
    engine = await asyncio.to_thread(docker.from_env)

    def kill() -> str:
        """Kills the container in which a job sleeps."""

        def working() -> Any:
            mine = engine.containers.list(filters={"label": LABEL})
            return next((one for one in mine if len(one.top()["Processes"]) > 1), None)

        container = wait_until(working, "a job works in a container")
        container.kill()
        return str(container.id)

    async with open_cage(Settings(require_docker_training=True), refused.append) as cage:
        killing = asyncio.create_task(asyncio.to_thread(kill))
        slow = "import time\ndef run(input):\n    time.sleep(1.5 if input['email'] == 'anna@example.com' else 0)\n"
        results = await results_of(store, cage, f"{WORKING}\nwhole = run\n{slow}    return whole(input)")
        assert await killing
        hunting = await run_code(cage, spec(CHEATS["… in files"]), {"email": "carl@nodot"}, {})
    await asyncio.to_thread(engine.close)
    assert avg_confidence(results) == 1
    assert {result.level for result in results} == {"L3"}
    assert hunting.judged(CASES[-1].expected_output).confidence < MIN_CONFIDENCE
    assert refused == []


def test_a_spec_that_only_a_container_can_run_is_recognised() -> None:
    assert only_docker(spec(f"import json, sqlite3\nfrom html import escape\n{WORKING}")) == ("html", "sqlite3")
    assert only_docker(spec(f"import re, datetime, sys\nfrom collections.abc import Mapping\n{WORKING}")) == ()
    assert only_docker(spec("def run(")) == ()


async def test_a_model_is_told_everything_but_what_is_expected() -> None:
    """A prompt specialist's request holds its rules, the input and the schema; no case, no example, no expected output."""
    asked: list[str] = []

    class Listening:
        calls: tuple[()] = ()
        prices: Mapping[str, Any] = {}

        def fenced(self, text: str, label: str) -> str:
            return f"<<DATA {label}>>\n{text}\n<<END>>"

        async def ask_object(self, step: str, speaker: Any, messages: Any, type: Any, check: Any) -> Any:
            asked.extend(message.text for message in messages)
            value = type.model_validate(SUITE.cases[0].expected_output)
            assert not check(value)
            assert check(type.model_validate({"valid": "yes"}))
            assert type.model_json_schema() == made.output_schema
            return value, ""

    made = spec("")
    bench: Any = Listening()
    for number, case in enumerate(SUITE.cases):
        trial = await ask_specialist(bench, f"training/{number}", None, made, case.input, {})  # type: ignore[arg-type]
        assert trial.judged(SUITE.cases[0].expected_output).success
    told = "\n".join([specialist_system(made), baseline_system(made.purpose), *asked])
    assert readable_json({"email": "carl@nodot"}) in told
    for secret in ('"domain": "sub.domain.net"', "no dot", "two @", "expected_output", "mail.example.org"):
        assert secret not in told
