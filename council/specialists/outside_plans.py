"""The plan of an outside request: the person sees what is sent, to whom, and with which credential; then it is sent once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from council.errors import CouncilError, CredentialRefused
from council.ids import Principal, readable_json
from council.plans.applying import UNKNOWN
from council.plans.plan import PlanKind
from council.redaction import Secret
from council.safety.untrusted import plain_line
from council.specialists.outside_requests import CredentialOf, send
from council.specialists.request_templates import FilledRequest, fill
from council.specialists.specialist_registry import specialist_of
from council.specialists.specialist_spec import SpecialistSpec
from council.storage.reader import Looking
from council.tools.preview import Difference, Preview
from council.tools.tool import Arguments, Tool, ToolResult
from council.vault.contract import Vault
from council.vault.sealing import CredentialPlace

if TYPE_CHECKING:
    from sqlalchemy import Connection

SEND_REQUEST = "sendRequest"
OUTSIDE_REQUEST = PlanKind("outside_request", (SEND_REQUEST,))
_TOLD_CHARS = 4_000  # of a reply, in the plan's result


class RequestAbsent(CouncilError):
    """A specialist or a request of it that does not serve this person."""

    code = "request_absent"
    http_status = 404


class OutsideArguments(Arguments):
    """One request of a specialist, by the names in its spec."""

    role: Annotated[str, Field(max_length=64, description="The specialist's role.")]
    request: Annotated[str, Field(max_length=64, description="The name of the request in its spec.")]
    parameters: Annotated[dict[str, Any], Field(description="Its parameters by name.")] = Field(default_factory=dict)


@dataclass(frozen=True)
class OutsideSender:
    """Fills, shows and sends the requests of specialists."""

    store: Looking
    vault: Callable[[], Vault]

    def tool(self) -> Tool:
        description = "Sends a request of a specialist to a host outside, once."
        arguments = OutsideArguments
        return Tool(SEND_REQUEST, description, arguments, "write", (), preview=self.preview, send=self.send)

    def preview(self, connection: Connection, principal: Principal, arguments: OutsideArguments) -> Preview:
        """See `PreviewTool`."""
        filled = self._filled(principal, arguments)
        told = [Difference("address", after=f"{filled.method} {filled.url}")]
        told += [Difference(name, after=str(value)) for name, value in filled.values.items()]
        told += [Difference("body", after=readable_json(filled.body))] if filled.body is not None else []
        told += [Difference(header.name, after=f"your credential {header.credential}") for header in filled.headers]
        summary = f"Sends the request {filled.name} of {arguments.role} to {filled.host}."
        return Preview(summary, tuple(told), undoable=False, state=filled.digest)

    async def send(self, principal: Principal, arguments: OutsideArguments, state: str) -> ToolResult:
        """See `SendTool`."""
        filled = await asyncio.to_thread(self._filled, principal, arguments)
        if filled.digest != state:
            message = f"The request {filled.name} of {arguments.role} is another one since it was confirmed."
            raise RequestAbsent(message, fix="draft the plan again")
        reply = await send(filled, credential_of(self.vault, principal.id, arguments.role))
        title = f"{filled.method} {filled.host}"
        if not reply.is_ok:
            message = f"{reply.error[:1].upper()}{reply.error[1:]}."
            if reply.is_unknown:
                return ToolResult.refused(UNKNOWN, f"{message} Nobody knows whether the request arrived.", title)
            return ToolResult.refused("outside_failed", f"{message} The request was sent to {filled.host}.", title)
        body = reply.body if isinstance(reply.body, str) else readable_json(reply.body)
        text = f"Sent to {filled.host}, which answered {reply.status}: {plain_line(body, _TOLD_CHARS)}"
        return ToolResult(ok=True, title=title, text=text)

    def _filled(self, principal: Principal, arguments: OutsideArguments) -> FilledRequest:
        found = specialist_of(self.store, arguments.role, principal.id)
        template = found.spec.request(arguments.request) if found is not None else None
        if template is None:
            name = f"{plain_line(arguments.role, 64)}/{plain_line(arguments.request, 64)}"
            fix = f"`council specialists show {plain_line(arguments.role, 64)}` shows its requests"
            raise RequestAbsent(f"There is no request {name} for {principal.id}.", fix=fix)
        return fill(template, arguments.parameters)


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
