"""The tools that there are, their part of a prompt, and the allowlist that code enforces on every call.

Every turn has seen text from outside (its task is), so the Rule of Two needs no taint here. No turn may do more than read.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema

from council.deadline import within
from council.errors import InputUnreadable, PathRefused, TookTooLong, ToolRefused
from council.llm.base import ToolCall, ToolSpec
from council.proposals import nearest
from council.tools.tokens import MAX_ACTION_CHARS, MAX_ARGUMENT_CHARS, MAX_REQUESTS, Request, parse
from council.tools.tool import Arguments, Tool, ToolContext, ToolResult

DEADLINE_S = 300.0  # of one call: five documents that each take all the time they may
_HOW_TO_ASK = """\
## How to ask

You cannot open files yourself. Write a request exactly as shown, on a line of its own, outside quotation marks and
code. The answer reaches the next speaker and everyone after. At most {max_requests} requests per reply."""


class ToolRegistry:
    """The tools of this installation."""

    def __init__(self, tools: Iterable[Tool], *, deadline_s: float = DEADLINE_S) -> None:
        self._deadline_s = deadline_s
        # In capitals: agents mix up the case, and mean the tool.
        self._tools: Mapping[str, Tool] = {tool.name.upper(): tool for tool in tools}
        self.names = tuple(tool.name for tool in self._tools.values())

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def get(self, name: str) -> Tool | None:
        """The tool of that name, in whatever case it is written."""
        return self._tools.get(name.upper())

    def named(self, request: Request) -> Request:
        """The request with its action in the tool's own case."""
        tool = self.get(request.action)
        return request if tool is None else msgspec.structs.replace(request, action=tool.name)

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
            ToolSpec(tool.name, tool.description, schema_of(tool.arguments)) for tool in self._callable(allowed)
        )

    def spell(self, call: ToolCall) -> str:
        """Spells a native function call as the request token that asks for the same. A call that no token can spell becomes
        a token that is refused, with the reason. Its argument is then no text, too long, or of several lines."""
        tool = self.get(call.name)
        fields = tuple(tool.arguments.model_fields) if tool else ()
        if len(fields) > 1:
            text = json.dumps(dict(call.arguments), ensure_ascii=False)
        else:
            argument = call.arguments.get(fields[0]) if fields else None
            if argument is None:
                argument = next((value for value in call.arguments.values() if isinstance(value, str)), "")
            text = " ".join(str(argument).split())
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        name = re.sub(r"[^A-Za-z_]", "_", call.name)[:MAX_ACTION_CHARS]
        for spelled in (f"[ORCHESTRATOR_REQUEST: {name}({text})]", f'[ORCHESTRATOR_REQUEST: {name}("{quoted}")]'):
            found = parse(spelled)
            if len(found) == 1 and found[0].honoured and (found[0].action, found[0].argument) == (name, text):
                return spelled
        return f'[ORCHESTRATOR_REQUEST: {name}("{quoted[:MAX_ARGUMENT_CHARS]}'

    async def call(self, request: Request, *, allowed: Sequence[str], context: ToolContext | None = None) -> ToolResult:
        """Fulfils a request. Raises ToolRefused for one that is not honoured, unknown or not allowed, or that would change
        something. Arguments that do not fit, and what the tool itself refuses, are a result with `ok` false."""
        offered = ", ".join(tool.name for tool in self._callable(allowed)) or "none"
        data: dict[str, Any] = {"action": request.action, "argument": request.argument, "allowed": list(allowed)}
        if not request.honoured:
            raise ToolRefused(f"Request not honoured: {request.reason}.", **data)
        tool = self.get(request.action)
        if tool is None:
            near = nearest(request.action, (tool.name for tool in self._callable(allowed)))
            meant = f"did you mean {near}? " if near else ""
            raise ToolRefused(f"There is no tool {request.action}.", fix=f"{meant}allowed here: {offered}", **data)
        if tool.name not in allowed:
            raise ToolRefused(f"{tool.name} is not allowed for this agent.", fix=f"allowed here: {offered}", **data)
        if tool.run is None:
            fix = f"propose it in a plan; allowed here: {offered}"
            raise ToolRefused(f"{tool.name} changes something: it can only be proposed in a plan.", fix=fix, **data)
        title = f"{tool.name}({request.argument})"
        arguments = parsed(tool, request.argument)
        if isinstance(arguments, str):
            return ToolResult.refused("bad_arguments", arguments, title)
        try:
            return await within(self._deadline_s, title, tool.run(arguments, context=context or ToolContext()))
        except (PathRefused, InputUnreadable, TookTooLong) as error:
            return ToolResult.refused(error.code, str(error), title)

    def _callable(self, allowed: Sequence[str]) -> list[Tool]:
        return [tool for tool in self._tools.values() if tool.name in allowed and tool.run is not None]


def parsed(tool: Tool, argument: str) -> Arguments | str:
    """The arguments of a request, or one line for the agent: what does not fit, and the right form."""
    fields = tuple(tool.arguments.model_fields)
    try:
        if not argument and not any(field.is_required() for field in tool.arguments.model_fields.values()):
            return tool.arguments()
        if len(fields) == 1:
            return tool.arguments.model_validate({fields[0]: argument})
        return tool.arguments.model_validate_json(argument, strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
    shown = tool.spellings[0] if tool.spellings else f'{tool.name}({{"{fields[0] if fields else "name"}": …}})'
    form = shown.removeprefix("[ORCHESTRATOR_REQUEST: ").removesuffix("]")  # a whole one would be inert in a prompt
    reason = f"{where}: {said[:1].lower()}{said[1:]}" if where else f"it takes one JSON object: {said}"
    return f"these arguments do not fit {tool.name}: {reason}. Fix: Write {form} in a request."


class _UntitledSchema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: object) -> bool:
        return False


@functools.cache
def schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, as native function calls declare it."""
    schema = arguments.model_json_schema(schema_generator=_UntitledSchema)
    return {key: schema[key] for key in ("type", "properties", "required", "$defs") if key in schema}
