"""`ScriptedModel`: replies read from a YAML file, in place of a language model (docs/scripted-model.md has the format).

What is used up is remembered by the process, not on disk: a script whose entries all give `role`, `round` and `purpose` is
therefore restart-proof. No streaming of its own; schema, tools and limits are not looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Unpack

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from council.commands.parsing import fault_in_words
from council.errors import ConfigError, ModelError, ModelErrorKind
from council.llm.base import Message, Reply, RequestOptions, TurnInfo, Usage, tell
from council.llm.providers import Provider

_MAX_SCRIPT_BYTES = 16 * 1024 * 1024
_FORMAT = "see docs/scripted-model.md for the format."


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ScriptedUsage(_Strict):
    input_tokens: Annotated[int, Field(ge=0)] = 0
    output_tokens: Annotated[int, Field(ge=0)] = 0
    cached_tokens: Annotated[int, Field(ge=0)] = 0
    thought_tokens: Annotated[int, Field(ge=0)] = 0


class ScriptedError(_Strict):
    kind: ModelErrorKind
    message: str = "scripted failure"
    retry_after_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


class ScriptedAnswer(_Strict):
    """The answer to a call: a text or an error, never both."""

    text: str | None = None
    error: ScriptedError | None = None
    usage: ScriptedUsage | None = None
    delay_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 0.0
    finish: Literal["stop", "length"] = "stop"

    @model_validator(mode="after")
    def _text_or_error(self) -> ScriptedAnswer:
        if (self.text is None) == (self.error is None):
            raise ValueError("give either `text` or `error`")
        if self.text is not None and not self.text.strip():
            raise ValueError("`text` is empty; a model that says nothing is `error: {kind: empty}`")
        return self


class ScriptedReply(ScriptedAnswer):
    """An entry of `replies`: an answer, for which calls, and for how many (`times` 0: without end)."""

    role: str | None = None
    round: Annotated[int, Field(ge=0)] | None = None
    purpose: Literal["turn", "synthesis", "other"] | None = None
    task: Annotated[str, Field(min_length=1)] | None = None
    times: Annotated[int, Field(ge=0)] = 1

    def fits(self, info: TurnInfo) -> bool:
        return (
            self.role in (None, info.role)
            and self.round in (None, info.round)
            and self.purpose in (None, info.purpose)
            and (self.task is None or self.task in info.task)
        )


class Script(_Strict):
    model: Annotated[str, Field(min_length=1)] = "script"
    context_tokens: Annotated[int, Field(gt=0)] = 1_000_000
    replies: tuple[ScriptedReply, ...] = Field(default=(), strict=False)
    default: ScriptedAnswer | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Script:
        if not self.replies and self.default is None:
            raise ValueError("give `replies` or `default`")
        return self


class ScriptedModel:
    """A model that says what its script says (module docstring). One per process: it remembers what is used up."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.name = f"scripted:{script.model}"
        self.context_tokens = script.context_tokens
        self._served = [0] * len(script.replies)

    @classmethod
    def from_file(cls, path: Path) -> ScriptedModel:
        """Raises ConfigError naming the file and the field for a script that cannot be read or does not fit."""
        try:
            with path.open("rb") as stream:
                data = stream.read(_MAX_SCRIPT_BYTES + 1)
        except OSError as exc:
            raise ConfigError(
                f"{path}: the script cannot be read ({exc.strerror or type(exc).__name__}).", fix="check the path."
            ) from exc
        if len(data) > _MAX_SCRIPT_BYTES:
            raise ConfigError(f"{path}: the script is larger than {_MAX_SCRIPT_BYTES} bytes.", fix="split it.")
        try:
            content = yaml.safe_load(data.decode("utf-8-sig"))
        except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as exc:
            said = " ".join(str(exc).split()).rstrip(".") or type(exc).__name__
            raise ConfigError(f"{path}: the script is not YAML: {said}.", fix=_FORMAT) from exc
        if not isinstance(content, dict):
            raise ConfigError(f"{path}: the script must be a mapping with `replies`.", fix=_FORMAT)
        try:
            return cls(Script.model_validate(content))
        except ValidationError as exc:
            faults = []
            for fault in exc.errors():
                field = ""  # as `replies[2].error.kind`
                for part in fault["loc"]:
                    field += f"[{part}]" if isinstance(part, int) else f".{part}" if field else part
                faults.append(f"{field or 'script'}: {fault_in_words(fault)[0]}")
            raise ConfigError(f"{path}: {'; '.join(faults)}.", fix=_FORMAT, fields=faults) from exc

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        info = asked.get("info") or TurnInfo()
        answer = self._script.default
        for at, entry in enumerate(self._script.replies):
            if entry.fits(info) and (entry.times == 0 or self._served[at] < entry.times):
                self._served[at] += 1
                answer = entry
                break
        if answer is None:
            raise ModelError(
                "request",
                f"{self.name} has no reply left for role {info.role or '-'}, round {info.round}, purpose {info.purpose}.",
                fix="add an entry under `replies`, raise its `times`, or give a `default`.",
                model=self.name,
                role=info.role,
                round=info.round,
                purpose=info.purpose,
            )
        if answer.delay_s:
            await asyncio.sleep(answer.delay_s)
        if answer.error is not None:
            raise ModelError(
                answer.error.kind,
                f"{self.name}: {answer.error.message}",
                fix="the script of this model asks for the failure; change the script to get a reply",
                retry_after_s=answer.error.retry_after_s,
                model=self.name,
            )
        text = answer.text or ""
        tell(asked, text)
        usage = Usage(**answer.usage.model_dump()) if answer.usage is not None else None
        return Reply(text, answer.finish, self.name, usage)

    async def aclose(self) -> None:
        """Nothing to close."""


provider = Provider(
    lambda setup: ScriptedModel.from_file(setup.home / setup.model_id),
    local=True,
    summary="replies from a file, for tests and demonstrations",
)
