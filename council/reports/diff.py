"""The place where two runs part: the first step whose question or answer differs. Pure.

Reads recorded steps, and what they asked where that could be rendered again (`council.reports.past_run`). The marks
around material differ from run to run and say nothing: two prompts that differ in them alone are the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from council.engine.run_records import ENDING, RecordedStep, RunRecords
from council.ids import readable_json
from council.llm.cassette import CassetteCall
from council.llm.replay import prompt_text
from council.safety.untrusted import NONCE_CHARS

Kind = Literal["same", "question", "answer", "order", "longer"]
# What it began with, an agent as it was then, what was known of the model; what follows from that shows in what was asked.
_KINDS_NOT_COMPARED = frozenset({"start", "agent", "window"})
_FROM_CASSETTE = b'"model":"cassette:', b'"model":"'  # a replayed answer is the recorded one
# A second opinion's hash of what was asked is of the marks, too; that of the decision follows from what was said before.
_ASKED = re.compile(rb'(?<="asked":")[0-9a-f]{64}(?=")')
_NONCE = re.compile(rf"(?<=nonce=)[0-9a-f]{{{NONCE_CHARS}}}(?= path=)|(?<=<<END )[0-9a-f]{{{NONCE_CHARS}}}(?=>>)")
_NO_STEP = RecordedStep("", "", b"")  # where one run has ended
Alike = Callable[[str], bool]  # whether both runs asked the same at this step, but for the marks


@dataclass(frozen=True)
class Divergence:
    """The first difference. Of the `kind` `question` the same step was asked something else, of `answer` it was asked the same
    and answered differently. Of `order` another step stands there, of `longer` one run goes on where the other ends. `same`:
    there is none. The answers are the recorded JSON, empty where there is none."""

    kind: Kind
    same_steps: int
    first_step: str = ""
    second_step: str = ""
    first_answer: str = ""
    second_answer: str = ""

    @property
    def sentence(self) -> str:
        equal = f"{self.same_steps} equal step{'s' if self.same_steps != 1 else ''}"
        where = f"after {equal}"
        return {
            "same": f"The runs do not differ: {equal}.",
            "question": f"They differ {where}: {self.first_step} was asked something else.",
            "answer": f"They differ {where}: {self.first_step} was asked the same and answered differently.",
            "order": f"They differ {where}: one continues with {self.first_step}, the other with {self.second_step}.",
            "longer": f"They differ {where}: only one continues, with {self.first_step or self.second_step}.",
        }[self.kind]


@dataclass(frozen=True)
class Questions:
    """The questions of two runs, by step; `why_not` says why those of either are not known, empty when both are."""

    first: Mapping[str, CassetteCall]
    second: Mapping[str, CassetteCall]
    why_not: str = ""

    def alike(self, step: str) -> bool:
        if step not in self.first or step not in self.second:
            return False
        return text_of(self.first[step]) == text_of(self.second[step])


def text_of(call: CassetteCall) -> str:
    """A request as one text, with the same mark around all material, whatever the run's secret."""
    return _NONCE.sub("-" * NONCE_CHARS, prompt_text(call.system, call.messages or ()))


def diff(first: RunRecords, second: RunRecords, alike: Alike = lambda step: False) -> Divergence:
    """The first divergence of two runs' steps, of which some may have run at once. `alike`: asked where hashes differ."""
    left, right = (
        {
            step.name: step
            for step in journal.steps()
            if step.part.kind not in _KINDS_NOT_COMPARED and step.name not in ENDING
        }
        for journal in (first, second)
    )
    same = 0
    while left or right:
        one, other = next(iter(left.values()), _NO_STEP), next(iter(right.values()), _NO_STEP)
        if other.name in left:
            other = right.get(one.name, other)
        kind: Kind = "same" if _said(one) == _said(other) else "answer"
        if not one.name or not other.name:
            kind = "longer"
        elif one.name != other.name:
            kind = "order"
        elif one.request != other.request and not alike(one.name):
            kind = "question"
        if kind != "same":
            answers = (step.answer.decode("utf-8", "replace") for step in (one, other))
            return Divergence(kind, same, one.name, other.name, *answers)
        del left[one.name], right[one.name]
        same += 1
    return Divergence("same", same)


def _said(step: RecordedStep) -> bytes:
    return _ASKED.sub(b"", step.answer.replace(*_FROM_CASSETTE))


def words_of(answer: str) -> str:
    """A recorded answer as it is read: what was said, or why nothing was; other results as JSON."""
    try:
        result = json.loads(answer)
    except ValueError:
        return answer
    failure = result.get("failure") if isinstance(result, dict) else None
    if failure:
        return f"no answer ({failure.get('kind')}): {failure.get('message')}"
    return str(result["text"]) if isinstance(result, dict) and result.get("text") else readable_json(result, indent=2)
