"""A language model for the conductor's tests that answers from the prompt it got: what did not reach it cannot be in its
answer. `Mind` says how it understands, chooses and answers; each is a function of the prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fake_gemini import FakeReply, RecordedRequest, text
from tests.harness import run_cli

Answer = Callable[[str], str]


def ask(home: Path, env: dict[str, str], *arguments: str, code: int = 0, module: str = "council") -> str:
    """The terminal's words on one request to the conductor."""
    done = run_cli("ask", *arguments, cwd=home, env=env, module=module)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def part(
    task: str, needs: str = "", *, uses: list[int] | None = None, changes: bool = False, **fields: str
) -> dict[str, Any]:
    return {"task": task, "needs": needs, "fields": fields, "uses": uses or [], "changes": changes}


def understanding(*parts: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {"parts": list(parts), **keys}


def pick(number: int, agent: str, confidence: float = 0.95, **keys: Any) -> dict[str, Any]:
    return {"part": number, "agent": agent, "confidence": confidence, **keys}


def block(speech: str, **keys: Any) -> str:
    """An agent's answer with its block."""
    keys = {"status": "completed", "certainty": 0.9} | keys
    return f"{speech}\n\n```council\n{json.dumps(keys)}\n```"


def material(prompt: str, name: str) -> str:
    """A fenced field of a prompt; empty where it is not there."""
    found = re.search(rf"# {re.escape(name)}(?: \([^)]*\))?\n\n<<DATA [^\n]*>>\n(.*?)\n<<END ", prompt, re.DOTALL)
    return found[1] if found else ""


def offered(prompt: str, name: str) -> bool:
    """True where an agent stands in the list that the model chooses from."""
    return f"\n  - {name}: " in prompt


@dataclass
class Mind:
    """`understand` and `choose` return the JSON of their step. `agents` answer by role; the conductor's own answer is that of
    CONDUCTOR. A kind of prompt that is not foreseen fails the test."""

    understand: Callable[[str], dict[str, Any]]
    choose: Callable[[str], list[dict[str, Any]]] = lambda prompt: []
    agents: dict[str, Answer] = field(default_factory=dict)
    profile: Callable[[str], dict[str, str]] = lambda prompt: {}
    compare: Callable[[str], dict[str, Any]] = lambda prompt: {"summary": "Both were asked.", "disagreements": []}
    agrees: Callable[[str], bool] = lambda prompt: "yes" in prompt
    unforeseen: list[str] = field(default_factory=list)

    def __call__(self, request: RecordedRequest) -> FakeReply:
        prompt = "\n\n".join(request.all_texts)
        if "Read the request. Do not answer it." in prompt:
            return text(json.dumps(self.understand(prompt)))
        if "Choose an agent for each part." in prompt:
            return text(json.dumps({"picks": self.choose(prompt)}))
        if "Write the profile of a temporary expert" in prompt:
            return text(json.dumps(self.profile(prompt)))
        if "Compare the answers above" in prompt:
            return text(json.dumps(self.compare(prompt)))
        if "Did the person agree" in prompt:
            return text(json.dumps({"agrees": self.agrees(prompt)}))
        role = re.search(r"You are (\w+), one agent of several", request.system)
        if role is None or role[1] not in self.agents:
            self.unforeseen.append(prompt)
            return text("I do not know what this is.")
        kept = re.search(r'"rules_kept": (\[[^\]]*\])', prompt)
        said = self.agents[role[1]](f"{request.system}\n\n{prompt}")
        if kept is not None and '"rules_kept"' not in said:
            said = said.replace('{"status"', f'{{"rules_kept": {kept[1]}, "status"', 1)
        return text(said)


def asked_of(requests: list[RecordedRequest], role: str) -> list[str]:
    """The whole requests that an agent's model got, system text included. The conductor's are those of its own answers."""
    found = [one for one in requests if f"You are {role}, one agent of several" in one.system]
    return ["\n\n".join([one.system, *one.all_texts]) for one in found]
