"""A run in which everything happens that an explanation has to tell: tries that fail, a parked wait, a refused read, minds
that change with and without evidence, a stance that is repaired, a chair that fails, and a process that is killed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.e2e.gate import role_of
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, slow, text
from tests.harness import Daemon, command, drop_command, receipts, run_cli

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>[click](javascript:alert(3))![p](http://evil.test/p.png)"
)
SETTINGS = """\
settle_s = 0.5
scan_interval_s = 0.5
max_inline_wait_s = 1.5
[prices."gemini:gemini-2.5-flash"]
input = 0.30
output = 2.50
cached = 0.03
"""
_FILES = {
    "docs/needs.md": "The archive grows by 40 GB a month.\nIt is read twice a year.\n",
    "docs/costs.md": "A disk costs 18 EUR per TB.\nTape costs 9 EUR per TB, and a drive 3,900 EUR.\n",
}


def stance(words: str, position: str, *evidence: str, confidence: float = 0.8) -> str:
    block = {"position": position, "confidence": confidence, "evidence": evidence, "would_change": "a new measurement"}
    return f"{words}\n\n```council\n{json.dumps(block)}\n```"


class Script:
    """What the fake provider says; each misfortune happens once."""

    def __init__(self) -> None:
        self._once: set[str] = set()

    def __call__(self, request: RecordedRequest) -> FakeReply:
        role, last = role_of(request), request.texts[-1]
        if "The rounds are over" in last:
            return self._closing(role)
        if "cannot be used as it stands" in last:
            return said(
                '{"position": "Tape.", "confidence": 0.6, "evidence": ["E1"], "would_change": "a price"}', 300, 40
            )
        round_no = int((re.search(r"This is round (\d+)", last) or ["", "1"])[1])
        return getattr(self, f"_{role.lower()}")(round_no)

    def _first(self, what: str) -> bool:
        is_first = what not in self._once
        self._once.add(what)
        return is_first

    def _coordinator(self, round_no: int) -> FakeReply:
        if round_no == 1:
            ask = "[ORCHESTRATOR_REQUEST: READ_FILE(docs/costs.md)]\n\n[ORCHESTRATOR_REQUEST: READ_FILE(.env)]"
            return said(stance(f"The archive grows steadily. {HOSTILE}\n\n{ask}", "Disk.", "E1"), 1200, 180)
        return said(
            stance("Tape is cheaper at this growth [E2: docs/costs.md:2].", "Tape.", "E2", confidence=0.9), 2400, 150
        )

    def _strategist(self, round_no: int) -> FakeReply:
        if round_no == 1:
            if self._first("overload"):
                return error(503, retry_after=1, message="the model `flash` is overloaded")
            return said(stance("Disks are simple.", "Disk.", "E1"), 1600, 120)
        return said(stance("My colleagues are right, all of them.", "Tape.", "E1", confidence=0.7), 2700, 90)

    def _auditor(self, round_no: int) -> FakeReply:
        if round_no == 1:
            if self._first("quota"):
                return error(429, retry_after=2, message="quota exceeded for this minute")
            return said(stance("Nobody named the drive.", "Tape.", "E9"), 1900, 160)
        if self._first("killed"):
            return slow(60)
        return said(stance("It stays.", "Tape.", "E1", confidence=0.6), 3000, 80)

    def _closing(self, role: str) -> FakeReply:
        if role == "COORDINATOR":
            return error(500, message="internal failure of the fake")
        record = {
            "answer": f"Use **tape** [E2: docs/costs.md:2]. {HOSTILE}",
            "claims": [{"text": "Tape costs 9 EUR per TB.", "evidence": ["E2"]}],
            "confidence": 0.7,
        }
        return said(json.dumps(record), 4200, 260)


def said(words: str, prompt: int, output: int) -> FakeReply:
    return text(words, prompt=prompt, output=output, thoughts=output // 4, cached=prompt // 3)


def make_eventful_run(home: Path, fake: FakeGemini, env: dict[str, str]) -> dict[str, Any]:
    """Its receipt."""
    for name, words in _FILES.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(words)
    fake.reply = Script()
    few = {**env, "COUNCIL_MODEL_ATTEMPTS": "2"}
    task = f"Which medium should the archive use? {HOSTILE}"
    drop_command(home, command(task, input_artifacts=["docs/needs.md"], rounds=2))
    with Daemon(home, env=few) as daemon:
        daemon.wait("run_waiting", reason="provider")
        daemon.wait("turn_started", role="AUDITOR", round=2)
        fake.wait_for_requests(9, timeout_s=30)
        daemon.kill()
    done = run_cli("run", "--once", cwd=home, env=few)
    assert done.returncode == 7, done.stderr
    [receipt] = receipts(home)
    return receipt
