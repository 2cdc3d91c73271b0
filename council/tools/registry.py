"""The tools that there are, their part of a prompt, and the allowlist that code enforces on every call.

Every turn has seen text from outside (its task is), so the Rule of Two needs no taint here: no turn may do more than read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from council.errors import ConfigError, InputUnreadable, PathRefused, ToolRefused
from council.llm.base import ToolCall, ToolSpec
from council.tools.base import Tool, ToolContext, ToolResult
from council.tools.tokens import MAX_ARGUMENT_CHARS, MAX_REQUESTS, Request, parse

_HOW_TO_ASK = """\
## How to ask

You cannot open files yourself. Write a request exactly as shown, on a line of its own, outside quotation marks and
code. The answer reaches the next speaker and everyone after. At most {max_requests} requests per reply."""


class ToolRegistry:
    """The tools of this installation by name. ConfigError for a duplicate name or a spelling that does not parse."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        by_name: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in by_name:
                raise ConfigError(f"Two tools are named {tool.name}.", fix="Rename one of them.", tool=tool.name)
            for spelling in tool.spellings:
                requests = parse(spelling)
                if [(r.action, r.honoured) for r in requests] != [(tool.name, True)]:
                    raise ConfigError(
                        f"Tool {tool.name} shows a spelling that is not a request for it: {spelling}",
                        fix="Write it as [ORCHESTRATOR_REQUEST: NAME(argument)].",
                        tool=tool.name,
                    )
            by_name[tool.name] = tool
        self._tools: Mapping[str, Tool] = by_name

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def absent(self, names: Sequence[str]) -> list[str]:
        """Those of `names` that no tool here has."""
        return [name for name in names if name not in self._tools]

    def spec_for_prompt(self, allowed: Sequence[str]) -> str:
        """The section of a prompt that tells an agent how to ask; empty when nothing may be asked for."""
        tools = self._callable(allowed)
        if not tools:
            return ""
        entries = [
            "\n".join([f"**{tool.name}**: {tool.description}", "", *(f"    {spelling}" for spelling in tool.spellings)])
            for tool in tools
        ]
        return "\n\n".join([_HOW_TO_ASK.format(max_requests=MAX_REQUESTS), *entries])

    def specs(self, allowed: Sequence[str]) -> tuple[ToolSpec, ...]:
        """The same tools for a model that calls functions natively."""
        return tuple(
            ToolSpec(
                tool.name,
                tool.description,
                {"type": "object", "properties": {tool.parameter: dict(tool.schema)}, "required": [tool.parameter]},
            )
            for tool in self._callable(allowed)
        )

    def spell(self, call: ToolCall) -> str:
        """A native function call as the request token that asks for the same. A call that no token can spell becomes a
        token that is refused, with the reason: its argument is no text, too long, or of several lines."""
        tool = self._tools.get(call.name)
        argument = call.arguments.get(tool.parameter) if tool else None
        if argument is None:
            argument = next((value for value in call.arguments.values() if isinstance(value, str)), "")
        text = " ".join(str(argument).split())
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        name = re.sub(r"[^A-Z_]", "_", call.name.upper())[:32]
        for spelled in (f"[ORCHESTRATOR_REQUEST: {name}({text})]", f'[ORCHESTRATOR_REQUEST: {name}("{quoted}")]'):
            found = parse(spelled)
            if len(found) == 1 and found[0].honoured and (found[0].action, found[0].argument) == (name, text):
                return spelled
        return f'[ORCHESTRATOR_REQUEST: {name}("{quoted[:MAX_ARGUMENT_CHARS]}'

    async def call(self, request: Request, *, allowed: Sequence[str], context: ToolContext | None = None) -> ToolResult:
        """Fulfil a request. Raises ToolRefused for one that is not honoured, unknown, not allowed, or that would change
        something; a path or an input that the tool itself refuses is a result with `ok` false."""
        offered = ", ".join(tool.name for tool in self._callable(allowed)) or "none"
        data: dict[str, Any] = {"action": request.action, "argument": request.argument, "allowed": list(allowed)}
        if not request.honoured:
            raise ToolRefused(f"Request not honoured: {request.reason}.", **data)
        tool = self._tools.get(request.action)
        if tool is None:
            raise ToolRefused(f"There is no tool {request.action}.", fix=f"Allowed here: {offered}.", **data)
        if tool.name not in allowed:
            raise ToolRefused(f"{tool.name} is not allowed for this agent.", fix=f"Allowed here: {offered}.", **data)
        if tool.effect != "read":
            raise ToolRefused(
                f"{tool.name} changes something: it can only be proposed in a plan.",
                fix=f"Propose it in a plan. Allowed here: {offered}.",
                **data,
            )
        try:
            return await tool.run(request.argument, context=context or ToolContext())
        except (PathRefused, InputUnreadable) as error:
            title = f"{tool.name}({request.argument})"
            return ToolResult(ok=False, title=title, error_code=error.code, error=str(error))

    def _callable(self, allowed: Sequence[str]) -> list[Tool]:
        return [tool for tool in self._tools.values() if tool.name in allowed and tool.effect == "read"]
