"""A language model for the creation council: it interviews, designs, writes cases, answers alone, and turns requests into input.

Each answer is a value that a test replaces. Whatever the creation council does not ask goes to a `conducting.Mind`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.conducting import Mind, material, part, understanding
from tests.fake_gemini import FakeReply, RecordedRequest, text

EMAIL_CODE = """\
import re

def run(input):
    address = input["address"].strip()
    if not address:
        return {"valid": False, "reason": "empty"}
    if address.count("@") != 1:
        return {"valid": False, "reason": "at"}
    name, host = address.split("@")
    good = re.fullmatch(r"[A-Za-z0-9._+-]+", name) and re.fullmatch(r"[A-Za-z0-9-]+([.][A-Za-z0-9-]+)+", host)
    return {"valid": bool(good), "reason": "ok" if good else "form"}
"""
EMAIL: dict[str, Any] = {
    "role": "email_validator",
    "purpose": "Says whether an e-mail address is well formed, and what is wrong with it.",
    "dna_rules": ["Judge the form of the address alone.", "Say `form` where you do not know what is wrong."],
    "input_schema": {"type": "object", "properties": {"address": {"type": "string"}}, "required": ["address"]},
    "output_schema": {
        "type": "object",
        "properties": {"valid": {"type": "boolean"}, "reason": {"type": "string"}},
        "required": ["valid", "reason"],
    },
    "kind": "code",
    "code": EMAIL_CODE,
}


def case(address: str, reason: str) -> dict[str, Any]:
    return {"input": {"address": address}, "expected_output": {"valid": reason == "ok", "reason": reason}}


VISIBLE = [case("ada@example.org", "ok"), case("", "empty"), case("ada.example.org", "at"), case("ada@host", "form")]
HIDDEN = [
    case("bob@mail.example.com", "ok"),
    case("   ", "empty"),
    case("a@b@c.org", "at"),
    case("x y@host.org", "form"),
]
WISH = "I check e-mail addresses every day. Make me a specialist that says whether one is well formed."


@dataclass
class CreationMind:
    """`interview`, `design` and `cases` get the whole prompt. `alone` is the model without the specialist."""

    interview: Callable[[str], dict[str, Any]] = lambda prompt: {"frequency": "frequent", "question": ""}
    design: Callable[[str], dict[str, Any]] = lambda prompt: EMAIL
    cases: Callable[[str, bool], list[dict[str, Any]]] = lambda prompt, hidden: HIDDEN if hidden else VISIBLE
    kinds: tuple[str, ...] = ("edge", "refusal")  # of the first cases of each half; the others are plain
    alone: Callable[[str], dict[str, Any]] = lambda prompt: {"valid": True, "reason": "it looks fine"}
    answer: Callable[[str], dict[str, Any]] = lambda prompt: {}
    input: Callable[[str], dict[str, Any]] = lambda prompt: {"input": {"address": address_in(prompt)}}
    heard: list[list[str]] = field(default_factory=list)
    otherwise: Mind = field(
        default_factory=lambda: Mind(lambda prompt: understanding(part(material(prompt, "The request"))))
    )

    def __call__(self, request: RecordedRequest) -> FakeReply:
        prompt = "\n\n".join(request.all_texts)
        self.heard.append([request.system, *request.all_texts])
        if "Read the request for a specialist." in prompt:
            return told(self.interview(prompt))
        if "Design the specialist for the request." in prompt:
            return told(self.design(prompt))
        if found := re.search(r"Write \d+ (visible|hidden) test cases", prompt):
            cases = self.cases(prompt, found[1] == "hidden")
            kinds = [*self.kinds, *("plain" for _ in cases)]
            return told({"cases": [{**one, "kind": kind} for one, kind in zip(cases, kinds, strict=False)]})
        if "You turn a request into the input of" in request.system:
            return told(self.input(prompt))
        if "Answer for the input above." in prompt:
            return told((self.answer if ", a specialist." in request.system else self.alone)(prompt))
        return self.otherwise(request)


def told(value: Any) -> FakeReply:
    return text(json.dumps(value))


def address_in(prompt: str) -> str:
    found = re.search(r"[\w.+-]+@[\w.-]*\w", material(prompt, "task"))
    return found[0] if found else ""
