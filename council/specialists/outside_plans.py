"""The plan of an outside request: the person sees what is sent, to whom, and with which credential; then it is sent once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from pydantic import Field

from council.engine.runs import Run
from council.errors import CouncilError, CredentialRefused
from council.ids import Principal, readable_json
from council.plans.applying import UNKNOWN
from council.plans.plan import PlanKind
from council.redaction import Secret
from council.safety.untrusted import plain_line
from council.sandbox.job import NoCage
from council.specialists import statements as sql
from council.specialists.outside_requests import CredentialOf, OutsideReply, send
from council.specialists.request_templates import FilledRequest, ParameterRefused, fill
from council.specialists.specialist_registry import Specialist, specialist_of
from council.specialists.specialist_spec import SpecialistSpec
from council.specialists.suites import CaseTrial, schema_fault
from council.specialists.training import cage_of, code_step, told_output
from council.storage.store import Tx
from council.tools.preview import Difference, Preview
from council.tools.tool import Arguments, Tool, ToolResult
from council.turns.run_guardrails import Guard
from council.typed_json import decode_json
from council.vault.contract import Vault
from council.vault.sealing import CredentialPlace

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from council.systems import BareCore

SEND_REQUEST = "sendRequest"
OUTSIDE_REQUEST = PlanKind("outside_request", (SEND_REQUEST,))
_TOLD_CHARS = 4_000  # of a reply, in the plan's result
FAILED = "outside_failed"


class RequestAbsent(CouncilError):
    """A specialist or a request of it that does not serve this person."""

    code = "request_absent"
    http_status = 404


class _Exchange(msgspec.Struct, frozen=True):
    """A request that was answered, between its sending and what is made of the reply."""

    specialist: Specialist
    host: str
    reply: OutsideReply


class OutsideArguments(Arguments):
    """One request of a specialist, by the names in its spec."""

    role: Annotated[str, Field(max_length=64, description="The specialist's role.")]
    request: Annotated[str, Field(max_length=64, description="The name of the request in its spec.")]
    parameters: Annotated[dict[str, Any], Field(description="Its parameters by name.")] = Field(default_factory=dict)
    input: Annotated[
        dict[str, Any] | None, Field(description="Its code's input. Unset: the reply is told as it came.")
    ] = None
    replies: Annotated[dict[str, Any], Field(description="Replies to other requests of the use.")] = Field(
        default_factory=dict
    )
    use: Annotated[str, Field(max_length=200, description="The use that drafted it; empty for none.")] = ""


@dataclass(frozen=True)
class OutsideSender:
    """Fills, shows and sends the requests of specialists, and goes on with the use that drafted one."""

    core: BareCore

    def tool(self) -> Tool:
        description = "Sends a request of a specialist to a host outside, once."
        arguments = OutsideArguments
        return Tool(
            SEND_REQUEST, description, arguments, "write", (), preview=self.preview, send=self.send, digest=self.digest
        )

    def preview(self, connection: Connection, principal: Principal, arguments: OutsideArguments) -> Preview:
        one, filled, state = self._filled(principal, arguments)
        told = [Difference("address", after=f"{filled.method} {filled.url}")]
        told += [Difference(name, after=str(value)) for name, value in filled.values.items()]
        told += [Difference("body", after=readable_json(filled.body))] if filled.body is not None else []
        told += [Difference(header.name, after=f"your credential {header.credential}") for header in filled.headers]
        summary = f"Sends the request {filled.name} of {arguments.role} to {filled.host}."
        if arguments.input is not None:
            told.append(Difference("input", after=readable_json(arguments.input)))
            summary += " Its code gets the reply." if one.spec.kind == "code" else ""
        return Preview(summary, tuple(told), undoable=False, state=state)

    async def send(self, principal: Principal, arguments: OutsideArguments, state: str) -> ToolResult:
        one, filled, now = await asyncio.to_thread(self._filled, principal, arguments)
        if now != state:
            message = f"The request {filled.name} of {one.role} is another one since it was confirmed."
            raise RequestAbsent(message, fix="draft the plan again")
        reply = await send(filled, credential_of(self.core.vault, principal.id, one.role))
        title = f"{filled.method} {filled.host}"
        if not reply.is_ok:
            message = f"{reply.error[:1].upper()}{reply.error[1:]}."
            if reply.is_unknown:
                return ToolResult.refused(UNKNOWN, f"{message} Nobody knows whether the request arrived.", title)
            return ToolResult.refused(FAILED, f"{message} The request was sent to {filled.host}.", title)
        return ToolResult(ok=True, title=title, text=msgspec.json.encode(_Exchange(one, filled.host, reply)).decode())

    async def digest(
        self, run: Run, drafted_by: str, principal: Principal, arguments: OutsideArguments, result: ToolResult
    ) -> ToolResult:
        """See `DigestTool`. The use that drafted the request counts as what came of it."""
        trial, text = CaseTrial(error=result.error), ""
        if result.ok:
            sent = decode_json(result.text, _Exchange)
            one, body = sent.specialist, self.core.redactor.in_texts(sent.reply.body)
            text = f"Sent to {sent.host}, which answered {sent.reply.status}"
            told = f": {plain_line(body if isinstance(body, str) else readable_json(body), _TOLD_CHARS)}"
            trial = CaseTrial()
            if arguments.input is not None and one.spec.kind == "code":
                replies = {**arguments.replies, arguments.request: body}
                try:
                    cage = cage_of(self.core, principal.id)
                    trial = await code_step(run, "output", cage, one.spec, arguments.input, replies)
                    lines, fault = told_output(trial, Guard(self.core.settings.guardrails))
                except NoCage as error:  # its reply is told, and the use stays as it was drafted
                    lines, fault = [], f"its code cannot run here: {error.message}"
                badge = " ".join(one.badge("").replace("*", "").split())
                told = f"{told}. To the use of {one.role}: {fault}" if fault else f". {badge} {'; '.join(lines)}"
            text += told
        if arguments.use and (result.ok or result.error_code in (FAILED, UNKNOWN)):
            why = self.core.redactor.redact(trial.error)
            values = (int(not why), why, trial.level, trial.said, drafted_by, arguments.use)

            def settle(tx: Tx) -> bool:
                tx.execute(sql.SETTLE, values)
                return not why

            await run.effect("use", settle, type=bool)
        return msgspec.structs.replace(result, text=text)

    def _filled(self, principal: Principal, arguments: OutsideArguments) -> tuple[Specialist, FilledRequest, str]:
        """The specialist, its request, and a hash that another version of either changes. Raises RequestAbsent,
        ParameterRefused."""
        found = specialist_of(self.core.store, arguments.role, principal.id)
        template = found.spec.request(arguments.request) if found is not None else None
        if found is None or template is None:
            name = f"{plain_line(arguments.role, 64)}/{plain_line(arguments.request, 64)}"
            fix = f"`council specialists show {plain_line(arguments.role, 64)}` shows its requests"
            raise RequestAbsent(f"There is no request {name} for {principal.id}.", fix=fix)
        if arguments.input is not None and (fault := schema_fault(found.spec.input_schema, arguments.input)):
            fix = f"`council specialists show {found.role}` shows its schema"
            raise ParameterRefused(f"The input of {found.role} does not fit its schema: {fault}.", fix=fix)
        filled = fill(template, arguments.parameters)
        return found, filled, f"{found.id} {found.version} {filled.digest}"


def stored_by(user: str, role: str, credential: str) -> str:
    """The command that stores a credential for a specialist."""
    return f"`council vault set {credential} --role {role} --user {user}`"


async def missing_credentials(
    vault: Callable[[], Vault], user: str, spec: SpecialistSpec, names: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The credentials of a spec, or those of `names`, that the vault does not hold for this person."""
    needed = spec.credentials if names is None else names
    stored = {one.place for one in await asyncio.to_thread(lambda: vault().list())} if needed else set()
    return tuple(name for name in needed if CredentialPlace(user, spec.role, name) not in stored)


def credential_of(vault: Callable[[], Vault], user: str, role: str) -> CredentialOf:
    """Reads the asker's own credentials for a role, each read audited."""

    async def read(name: str) -> Secret:
        place = CredentialPlace(user, role, name)
        try:
            return await asyncio.to_thread(lambda: vault().get(place, actor=user, purpose="an outside request"))
        except CredentialRefused as error:
            if error.reason == "absent":
                error.fix = f"{stored_by(user, role, name)} stores it"
            raise

    return read
