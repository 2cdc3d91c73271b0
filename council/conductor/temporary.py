"""Temporary agents: made from the source's template for one conversation, and gone after it.

A profile passes the Guardian and the laws before its first turn. One that does not is never written down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from pydantic import BaseModel, Field

from council.agents.manifest import REQUEST_FIELDS, AgentManifest, ContextNeeds
from council.conductor import statements as sql
from council.engine.records import Part
from council.ids import sha256_hex, slugify
from council.llm.base import Message, TurnInfo, request_hash
from council.llm.structured import parse
from council.safety.boundary_table import DECLINED, crossed
from council.safety.ministers import guardian, read_spec
from council.storage.reader import Looking
from council.storage.store import Tx
from council.turns.asker import attempt
from council.turns.bench import Bench
from council.turns.closing_block import mend
from council.turns.equipment import Speaker
from council.turns.result import CallPurpose, Failure, ModelCall, TurnResult

_PREFIX = "temporary-"


class BaseProfile(BaseModel):
    """The source's `base_profile`."""

    expertise: Annotated[str, Field(max_length=1_500, pattern=r"\S")]
    personality: Annotated[str, Field(max_length=1_500, pattern=r"\S")]
    safety_notes: Annotated[str, Field(max_length=1_500)] = ""


class ProfileTry(msgspec.Struct, frozen=True):
    """One reply to the request for a profile, as it is recorded. `refused` says why it makes no agent; its text is then empty."""

    result: TurnResult
    refused: str = ""


async def make_profile(
    bench: Bench, conductor: Speaker, name: str, task: str, tools: Sequence[str]
) -> tuple[BaseProfile | None, str]:
    """The recorded profile, or one made now; None and the reason. Every reply is judged before it is recorded, whatever its
    form. A malformed one is mended with at most two more calls. Raises ReplayMiss, and RunPause without a network."""
    step = f"temporary/{temporary_id(name)}"
    fields = {"name": bench.fencer.line(name), "task": bench.fenced(task, step)}
    messages = (Message("user", _TEMPLATE.format(**fields)),)

    async def ask(number: int, sent: tuple[Message, ...]) -> TurnResult:
        purpose: CallPurpose = "repair" if number else "turn"
        at = f"{step}/repair/{number}" if number else step

        async def judged() -> ProfileTry:
            info = TurnInfo(conductor.role, "other", task=bench.task)
            model, schema = bench.equipment.model_of(conductor), BaseProfile.model_json_schema()
            result = await attempt(
                model, system=conductor.system, messages=sent, info=info, schema=schema, waits=bench.run
            )
            if result.failure is not None:
                return ProfileTry(result, result.failure.message)
            profile = parse(result.text, BaseProfile, complete=result.finish == "stop").value
            words = [result.text]
            if profile is not None:
                words = [text for text in (profile.expertise, profile.personality, profile.safety_notes) if text]
            safe = guardian(read_spec({"role": name, "purpose": words[0], "rules": words[1:]}), tools)
            lawful = crossed("\n".join(words), DECLINED)
            why = safe.reason if safe.verdict == "BLOCKED" else lawful.reason if lawful.blocks else ""
            return ProfileTry(msgspec.structs.replace(result, text="") if why else result, why)

        asked = request_hash(conductor.model, conductor.system, sent)
        part = Part(purpose, conductor.role, 1)
        made = await bench.run.step(at, judged, type=ProfileTry, request=asked, part=part)
        bench.calls.append(ModelCall(at, conductor.role, 1, made.result, purpose))
        refused = Failure("refused", made.refused) if made.refused else None
        return msgspec.structs.replace(made.result, failure=refused)

    first = await ask(0, messages)
    if first.failure is not None:
        return None, first.failure.message
    reading = parse(first.text, BaseProfile, complete=first.finish == "stop")
    settled, repairs = await mend(reading, first, messages, BaseProfile, ask, lambda profile: ())
    failures = [one.failure.message for one in repairs if one.failure is not None]
    if failures or settled.value is None:
        return None, failures[-1] if failures else "its profile does not have the form asked for"
    return settled.value, ""


def temporary_id(name: str) -> str:
    """The id of a temporary agent: that of no other agent, and of no other name."""
    slug = slugify(name, max_chars=40)
    is_exact = slug.split("-") == name.lower().split()
    rest = f"-{slug}" if name.isascii() else ""
    return f"{_PREFIX}{slug if is_exact else f'{sha256_hex(name)[:6]}{rest}'}"


def manifest_of(name: str, profile: str, owner: str) -> AgentManifest:
    """The temporary agent of a profile. It may get no personal or financial field, no memory, and no tool."""
    base = BaseProfile.model_validate_json(profile)
    id = temporary_id(name)
    words = [f"You are the {name}, made for this conversation.", f"Your expertise: {base.expertise}", base.personality]
    words += [f"Always keep these safety notes, and name those that matter in your answer: {base.safety_notes}"]
    return AgentManifest(
        id=id,
        role=id.replace(_PREFIX, "T_", 1).upper().replace("-", "_")[:32],
        purpose=" ".join(base.expertise.split())[:300],
        tools=(),
        context=ContextNeeds(required=("task",), optional=(*REQUEST_FIELDS, "documents")),
        scope="user",
        trust="temporary",
        owner=owner,
        instructions="\n\n".join(words if base.safety_notes else words[:-1]),
    )


def profiles_of(store: Looking, lane: str) -> dict[str, str]:
    """The temporary agents of a conversation by name. Raises StorageFailed."""
    rows = store.read(lambda tx: tx.execute(sql.PROFILES, (lane,)).fetchall())
    return dict(map(tuple, rows))


def keep_profile(lane: str, name: str, profile: str, tx: Tx) -> int:
    """Keeps a temporary agent until its conversation ends."""
    tx.execute(sql.KEEP_PROFILE, (lane, name, profile))
    return 1


_TEMPLATE = """\
No agent is made for this task. Write the profile of a temporary expert, the {name}, who answers in words and has no tools.

{task}

Reply with one JSON object and nothing else:

{{"expertise": "…", "personality": "…", "safety_notes": "…"}}

expertise: the fields that it knows. personality: how it speaks and explains. safety_notes: dangers of such work that it must \
always mention; "" if there are none. The conductor's laws bind it, and it has no authority over anybody."""
