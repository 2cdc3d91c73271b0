"""The guardrails and the ministers on a text, without running anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from council.errors import UsageError
from council.markup import front_matter
from council.safety.guardrails import check
from council.safety.ministers import auditor, guardian, guardian_on_code, looks_like_spec, read_spec, validator
from council.safety.verdict import Stage

CheckedKind = Literal["auto", "code", "spec", "task", "tool_result", "decision", "memory"]  # as what a file is judged


@dataclass(frozen=True)
class Ruling:
    """One guardrail's answer: `told` is all of it, `line` the same for a terminal."""

    by: str
    blocks: bool
    line: str
    told: dict[str, Any]


def check_text(
    file: Path, text: str, kind: CheckedKind, scope: tuple[str, ...], tools: Callable[[], tuple[str, ...]]
) -> tuple[CheckedKind, list[Ruling]]:
    """The kind that the text was judged as, and each answer. `file` tells its kind and names it; no `scope` means every
    topic. Only a spec asks for `tools`, those that it may name. Raises UsageError for a text that is not of the kind."""
    if kind == "code" or (kind == "auto" and file.suffix.lower() in (".py", ".pyi")):
        verdict = guardian_on_code(text)
        line = f"guardian: {verdict.verdict} ({verdict.risk_level} risk), {verdict.reason}"
        return "code", [Ruling("guardian", verdict.verdict == "BLOCKED", line, msgspec.to_builtins(verdict))]
    values = _values(file, text) if kind in ("auto", "spec") else None
    if kind == "spec" or (values is not None and looks_like_spec(values)):
        if values is None:
            raise UsageError(f"{file} is not an agent spec.", fix="write it as a mapping in JSON, YAML or front matter")
        spec = read_spec(values)
        safe, made, good = guardian(spec, tools()), validator(spec), auditor(spec)
        line = f"guardian: {safe.verdict} ({safe.risk_level} risk), {safe.reason}"
        issues = [f"{issue} ({suggestion})" for issue, suggestion in zip(made.issues, made.suggestions, strict=True)]
        lacks = "\n    - ".join([f"validator: {made.verdict}", *issues])
        remarks = "\n    - ".join([f"auditor: {good.verdict}", *good.findings])
        return "spec", [
            Ruling("guardian", safe.verdict == "BLOCKED", line, msgspec.to_builtins(safe)),
            Ruling("validator", made.verdict == "INVALID", lacks, msgspec.to_builtins(made)),
            Ruling("auditor", False, remarks, msgspec.to_builtins(good)),
        ]
    if values is not None and isinstance(values.get("task_description"), str):
        return "task", [_guardrails("task", values["task_description"], scope)]
    stage: Stage = "tool_result" if kind == "auto" else kind
    return stage, [_guardrails(stage, text, scope)]


def _values(file: Path, text: str) -> dict[str, Any] | None:
    """The mapping that a file holds; of Markdown its front matter, with the text below as rules or task. None: it holds
    none. Raises UsageError for JSON or YAML that does not parse."""
    suffix = file.suffix.lower()
    front = front_matter(text) if suffix in (".md", ".markdown") else None
    if suffix not in (".json", ".yaml", ".yml") and front is None:
        return None
    source = front.head if front else text
    try:
        values = json.loads(source) if suffix == ".json" else yaml.safe_load(source)
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, AttributeError, TypeError, RecursionError):
        fix = "correct it, or give --as"
        raise UsageError(f"{file} is not {'JSON' if suffix == '.json' else 'YAML'}.", fix=fix) from None
    if not isinstance(values, dict):
        return None
    if front:
        below = front.body.strip()
        values = {"instructions": below, "task_description": below, **values}
        values.pop("instructions" if "output_artifact_path" in values else "task_description")
    return {str(key): value for key, value in values.items()}


def _guardrails(stage: Stage, text: str, scope: tuple[str, ...]) -> Ruling:
    verdict = check(stage, text, scope=scope)
    details = [f"`{verdict.code}`", *([f"posture {verdict.posture}"] if verdict.posture else [])]
    details += [f"law {verdict.law}"] if verdict.law else []
    line = f"guardrails: {verdict.outcome}"
    if not verdict.allows:
        line += f" ({', '.join(details)}), {verdict.reason}"
    return Ruling("guardrails", verdict.blocks, line, msgspec.structs.asdict(verdict))
