"""`council check`: the guardrails and the ministers on a file, without running anything."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import typer
import yaml

from council.agents.manifest import DEFAULT_TOOLS
from council.cli.context import AsJson, print_json, state
from council.errors import EXIT_REFUSED, HomeNotFound, UsageError
from council.safety.guardrails import check as judge
from council.safety.ministers import auditor, guardian, guardian_on_code, validator
from council.safety.scope import ScopeGuard
from council.safety.spec import looks_like_spec, read_spec
from council.safety.untrusted import plain_line
from council.safety.verdict import Stage

_MAX_BYTES = 1 << 20
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)---[ \t]*\n?", re.DOTALL)


class Kind(StrEnum):
    """As what a file is judged."""

    auto = "auto"
    code = "code"
    spec = "spec"
    task = "task"
    tool_result = "tool_result"
    decision = "decision"
    memory = "memory"


@dataclass(frozen=True)
class _Finding:
    """One guardrail's answer: `told` is all of it, `line` the same for a terminal."""

    by: str
    blocks: bool
    line: str
    told: dict[str, Any]


def check(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Python code, a persona or agent spec, a command, or any text.")],
    kind: Annotated[Kind, typer.Option("--as", help="Judge it as that; auto goes by the file.")] = Kind.auto,
    as_json: AsJson = False,
) -> None:
    try:
        if file.exists() and not file.is_file():
            raise UsageError(f"{file} is not a regular file.", fix="name a text file")
        with file.open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise UsageError(f"{file} is larger than {_MAX_BYTES} bytes.", fix="split it")
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}.", fix="name a text file") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 (byte {error.start}).", fix="save it as UTF-8") from None
    cli = state(ctx)
    try:
        scope = tuple(cli.desk().settings.scope_topics)
    except HomeNotFound:
        if cli.home_flag is not None:
            raise
        scope = ()  # outside of any home everything is in scope
    judged_as, findings = _judge(file, text, kind, scope)
    blocked = any(finding.blocks for finding in findings)
    if as_json:
        told = {finding.by: finding.told for finding in findings}
        print_json({"file": str(file), "as": judged_as.value, "passed": not blocked, **told})
    else:
        typer.echo(
            "\n".join(
                [
                    f"{plain_line(str(file), 300)}: {'refused' if blocked else 'ok'} (as {judged_as.value})",
                    *(f"  {finding.line}" for finding in findings),
                ]
            )
        )
    if blocked:
        raise typer.Exit(EXIT_REFUSED)


def _judge(file: Path, text: str, kind: Kind, scope: tuple[str, ...]) -> tuple[Kind, list[_Finding]]:
    if kind is Kind.code or (kind is Kind.auto and file.suffix.lower() in (".py", ".pyi")):
        verdict = guardian_on_code(text)
        line = f"guardian: {verdict.verdict} ({verdict.risk_level} risk), {verdict.reason}"
        return Kind.code, [_Finding("guardian", verdict.verdict == "BLOCKED", line, _told(verdict))]
    values = _values(file, text) if kind in (Kind.auto, Kind.spec) else None
    if kind is Kind.spec or (values is not None and looks_like_spec(values)):
        if values is None:
            raise UsageError(f"{file} holds no agent spec.", fix="write it as a mapping in JSON, YAML or front matter")
        spec = read_spec(values)
        safe, made, good = guardian(spec, DEFAULT_TOOLS), validator(spec), auditor(spec)
        line = f"guardian: {safe.verdict} ({safe.risk_level} risk), {safe.reason}"
        issues = [f"{issue} ({suggestion})" for issue, suggestion in zip(made.issues, made.suggestions, strict=True)]
        lacks = "\n    - ".join([f"validator: {made.verdict}", *issues])
        remarks = "\n    - ".join([f"auditor: {good.verdict}", *good.findings])
        return Kind.spec, [
            _Finding("guardian", safe.verdict == "BLOCKED", line, _told(safe)),
            _Finding("validator", made.verdict == "INVALID", lacks, _told(made)),
            _Finding("auditor", False, remarks, _told(good)),
        ]
    if values is not None and isinstance(values.get("task_description"), str):
        return Kind.task, [_guardrails("task", values["task_description"], scope)]
    stage = cast("Stage", "tool_result" if kind in (Kind.auto, Kind.spec, Kind.code) else kind.value)
    return Kind(stage), [_guardrails(stage, text, scope)]


def _values(file: Path, text: str) -> dict[str, Any] | None:
    """The mapping that a file holds; of Markdown its front matter, with the text below as rules or task. None: it holds
    none. Raises UsageError for JSON or YAML that does not parse."""
    suffix = file.suffix.lower()
    front = _FRONT_MATTER.match(text) if suffix in (".md", ".markdown") else None
    if suffix not in (".json", ".yaml", ".yml") and front is None:
        return None
    source = front.group(1) if front else text
    try:
        values = json.loads(source) if suffix == ".json" else yaml.safe_load(source)
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, AttributeError, TypeError, RecursionError):
        raise UsageError(
            f"{file} is not {'JSON' if suffix == '.json' else 'YAML'}.", fix="correct it, or give --as"
        ) from None
    if not isinstance(values, dict):
        return None
    if front:
        below = text[front.end() :].strip()
        values = {"instructions": below, "task_description": below, **values}
        values.pop("instructions" if "output_artifact_path" in values else "task_description")
    return {str(key): value for key, value in values.items()}


def _guardrails(stage: Stage, text: str, scope: tuple[str, ...]) -> _Finding:
    verdict = judge(stage, text, scope=ScopeGuard(scope))
    details = [
        f"`{verdict.code}`",
        f"posture {verdict.posture}" if verdict.posture else "",
        f"law {verdict.law}" if verdict.law else "",
    ]
    line = f"guardrails: {verdict.outcome}"
    if not verdict.allows:
        line += f" ({', '.join(filter(None, details))}), {verdict.reason}"
    told = {
        "outcome": verdict.outcome,
        "code": verdict.code,
        "reason": verdict.reason,
        "posture": verdict.posture,
        "law": verdict.law,
    }
    return _Finding("guardrails", verdict.blocks, line, told)


def _told(verdict: Any) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(verdict)
    return told
