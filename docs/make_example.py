"""Writes docs/example-decision.md from a real run: `python docs/make_example.py`. A test fails when it is stale.

The agents read their lines from a script, as a language model might write them; all else is the program's own work. The
documents are those of docs/example, at the same path in the run's home, so that the links of the page hold in docs/ too.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).parent
TARGET = DOCS / "example-decision.md"
COMMAND = {
    "task_description": "Should the society buy a new pump (offer A) or have the old one overhauled (offer B)?",
    "input_artifacts": ["docs/example/pump.md", "docs/example/offers.md"],
    "output_artifact_path": "artifacts/pump.md",
    "config": {"max_rounds": 2},
}

_NEW, _OLD = "Buy the new pump, offer A.", "Overhaul the present pump, offer B."
_WATER = "Measure the well before any money is spent."
# role → round → (position, confidence, evidence, what would change it, words)
_TURNS: dict[str, dict[int, tuple[str, float, list[str], str, str]]] = {
    "COORDINATOR": {
        1: (_OLD, 0.55, ["E1", "E2"], "a sign that the pump wears out faster",
            "The need is 3,200 litres per hour in July and August [E1: docs/example/pump.md:12]. Both offers promise more than "
            "that. Offer B costs 1,280 EUR against 3,450 EUR [E2: docs/example/offers.md:5-6], so I lean towards the overhaul."),
        2: (_NEW, 0.75, ["E1", "E3"], "an offer of three years' warranty on the overhaul",
            "The treasurer's figures settle the question of money: 6,200 EUR are in the reserve, and 2,500 EUR must stay "
            "[E3: docs/example/minutes.md:3]. Offer A fits. I change my mind."),
    },
    "STRATEGIST": {
        1: (_NEW, 0.7, ["E1", "E2"], "a second year without repairs",
            "The pump lost 1,200 litres per hour in two summers, and repairs went from 180 EUR to 960 EUR "
            "[E1: docs/example/pump.md:7-9]. An overhaul with one year of warranty buys one summer. Is there money for a new "
            "one?\n\n[ORCHESTRATOR_REQUEST: READ_FILE(docs/example/minutes.md)]"),
        2: (_NEW, 0.8, ["E1", "E2", "E3"], "a longer warranty on the overhaul",
            "Five years of warranty against one [E2: docs/example/offers.md:5-6], and the members do not want “another July "
            "without water” [E3: docs/example/minutes.md:4]. Both offers end on 15 January, so the board must decide before."),
    },
    "AUDITOR": {
        1: (_WATER, 0.6, ["E1"], "a measurement of the well",
            "Everybody assumes that the pump is the problem. Falling output would look the same if the well gave less. "
            "No document measures it. What is known about the well?"),
        2: (_WATER, 0.65, ["E3"], "a measurement of the well",
            "Nobody has measured the well since 2017 [E3: docs/example/minutes.md:5]. If the well is the limit, both offers are "
            "wasted. A measurement is possible before 15 January."),
    },
}  # fmt: skip
_RECORD = {
    "answer": "Buy the new pump (**offer A**), and have the well measured before the order is signed. The pump gave 2,900 "
    "litres per hour in 2026, and the plots need 3,200 [E1: docs/example/pump.md:9-12]. Offer A costs 3,450 EUR "
    "[E2: docs/example/offers.md:5]. The reserve of 6,200 EUR allows it, since 2,500 EUR must stay "
    "[E3: docs/example/minutes.md:3]. Order by 31 January [E2: docs/example/offers.md:3].",
    "claims": [
        {
            "text": "Repairs rose from 180 EUR to 960 EUR in two years [E1: docs/example/pump.md:7-9].",
            "evidence": ["E1"],
        },
        {
            "text": "Offer B has one year of warranty, offer A has five [E2: docs/example/offers.md:5-6].",
            "evidence": ["E2"],
        },
    ],
    "dissent": [{"view": _WATER, "held_by": "AUDITOR", "evidence": ["E3"]}],
    "confidence": 0.75,
}
_INTRO = """\
*This page is the output of a real run; `docs/make_example.py` makes it anew. The agents read their lines from a script
instead of asking a language model. One date in the decision is wrong on purpose, so that you see how Council marks it.*

"""
_VARIES = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-z]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]+Z|[0-9]+:[0-9a-f]{64}")


def page() -> str:
    """The page that a fresh run leaves, with the introduction below its front matter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _council("init", "home", cwd=folder)
        home = folder / "home"
        shutil.copytree(DOCS / "example", home / "docs" / "example")
        (home / "script.yaml").write_text(yaml.safe_dump(_script()), encoding="utf-8")
        (home / "commands" / "pump.json").write_text(json.dumps(COMMAND), encoding="utf-8")
        _council("run", "--once", "--model", "scripted:script.yaml", cwd=home)
        _, front, body = (home / "artifacts" / "pump.md").read_text(encoding="utf-8").split("---\n", 2)
    return f"---\n{front}---\n\n{_INTRO}{body.lstrip()}"


def without_what_varies(text: str) -> str:
    """With the same ids, times and hashes as every other run."""
    return _VARIES.sub("…", text)


def _script() -> dict[str, Any]:
    replies = []
    for role, turns in _TURNS.items():
        for number, (position, confidence, evidence, change, words) in turns.items():
            block = {"position": position, "confidence": confidence, "evidence": evidence, "would_change": change}
            said = f"{words}\n\n```council\n{json.dumps(block)}\n```"
            replies.append({"role": role, "round": number, "purpose": "turn", "text": said})
    return {"model": "example", "replies": [*replies, {"purpose": "synthesis", "text": json.dumps(_RECORD)}]}


def _council(*arguments: str, cwd: Path) -> None:
    subprocess.run([sys.executable, "-m", "council", *arguments], cwd=cwd, stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
