"""What a model, a file, a file's name and a provider's error say reaches no terminal and no page as anything but text: no
escape sequence, no turned direction, nothing invisible, no markup that acts."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, text
from tests.harness import command, drop_command, receipts, run_cli, run_ids, steps

STEERING = "\x1b]0;owned\x07\x1b[31mred\x1b[0m \x9b31m \u202egnp.exe\u202c zero\u200bwidth \U000e0041\U000e0042"
MARKUP = (
    "<script>alert(1)</script><img src=x onerror=alert(2)><svg/onload=alert(3)> [c](javascript:alert(4)) "
    "![i](https://evil.test/?q=1) </title></style> \" onmouseover=\"alert(5) <a href='data:text/html,x'>x</a>"
)
EVIL = f"{STEERING} {MARKUP}"
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
SETTINGS = 'guardrails = "off"\n'  # a file with a hidden message would be withheld whole


def speak(request: RecordedRequest) -> FakeReply:
    if "The rounds are over." in "".join(request.texts):
        return text(json.dumps({"answer": EVIL, "claims": [], "dissent": [], "open_questions": [EVIL], "next_steps": [EVIL],
                                "confidence": 0.5, "would_change": [EVIL]}))  # fmt: skip
    stance = json.dumps({"position": EVIL, "confidence": 0.5, "because": [], "changed_because": ""})
    asked = ["READ_FILE(docs/evil.md)", "LIST_FILES(docs/**)", "READ_FILE(docs/\x1b[31m\u202e<b>.md)"]
    tokens = "\n".join(f"[ORCHESTRATOR_REQUEST: {each}]" for each in asked)
    return text(f"{EVIL}\n{tokens}\n```json\n{stance}\n```")


class Active(HTMLParser):
    """What a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "img", "iframe", "object", "embed", "form", "base", "link"):
            self.found.append((tag, ""))
        self.found += [(tag, name) for name, value in attrs if name.startswith("on") or _acts(value or "")]


def _acts(value: str) -> bool:
    return value.lower().startswith(("javascript:", "data:", "vbscript:")) or "evil.test" in value


def test_hostile_text_is_shown_as_text_in_every_output(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    with (home / "council.toml").open("a") as settings:
        settings.write(SETTINGS)
    (home / "docs").mkdir()
    (home / "docs" / "evil.md").write_text(f"{EVIL}\nThe figure is 7.\n")
    (home / "docs" / "n\x1b[31m\u202e<b>.md").write_text(EVIL)
    (home / "commands" / "e\x1b[31m\u202e<script>`.json").write_text('{"\\u001b[31m\u202e<script>": 1}')
    fake.reply = lambda request: error(500, EVIL) if len(fake.requests) == 2 else speak(request)
    drop_command(home, command(f"{EVIL} Choose a storage engine."), "good.json")
    outputs = {"run": run_cli("run", "--once", cwd=home, env=env)}
    drop_command(home, command(input_artifacts=["docs/evil.md"], rounds=2), "second.json")
    outputs["run again"] = run_cli("run", "--once", cwd=home, env=env)
    first, second = (receipt["run_id"] for receipt in receipts(home))
    for arguments in (
        ["status"], ["status", "--json"], ["show", first], ["show", first, "--json"], ["explain", first],
        ["explain", first, "--json"], ["replay", first], ["diff", first, second], ["diff", first, second, "--json"],
        ["journal", first], ["stats"], ["stats", "--json"], ["logs"], ["logs", "--json"], ["audit", "tail"], ["audit", "export"],
        ["memory", "show", "COORDINATOR"], ["memory", "show", "COORDINATOR", "--json"], ["cortex", "query", "figure"],
        ["cortex", "query", "figure", "--json"], ["report", first, "--html", "--output", "report.html"],
    ):  # fmt: skip
        outputs[" ".join(arguments)] = run_cli(*arguments, cwd=home, env=env)
    raw = {name: UNSEEN.search(done.stdout + done.stderr) for name, done in outputs.items()}
    assert {name: (found.string[max(0, found.start() - 60) :][:120]) for name, found in raw.items() if found} == {}
    assert {name: done.returncode for name, done in outputs.items() if done.returncode not in (0, 2, 7)} == {}
    notes = [*(home / "artifacts").rglob("*.md"), *(home / "commands" / "failed").glob("*.error.md")]
    pages = [*notes, *(home / "session_states").glob("*.json"), home / "report.html"]
    assert len(notes) >= 2
    assert [page.name for page in pages if UNSEEN.search(page.read_text())] == []
    browser = Active()
    browser.feed((home / "report.html").read_text())
    assert browser.found == []
    assert "alert(1)" in (home / "report.html").read_text(), "it is shown, as text"


def test_no_prompt_and_no_recorded_step_holds_what_nobody_sees(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    with (home / "council.toml").open("a") as settings:
        settings.write(SETTINGS)
    (home / "docs").mkdir()
    (home / "docs" / "evil.md").write_text(f"{EVIL}\nThe figure is 7.\n")
    fake.reply = speak
    drop_command(home, command(f"{EVIL} Choose a storage engine."))
    assert run_cli("run", "--once", cwd=home, env=env).returncode in (0, 7)
    assert [found for request in fake.requests for found in UNSEEN.findall("".join(request.texts))] == []
    [run_id] = run_ids(home)
    rounds = [out for name, out in steps(home, run_id).items() if name.startswith("round/")]
    said = [json.dumps(out, ensure_ascii=False) for out in rounds]
    assert len(said) >= 3
    assert [found for each in said for found in UNSEEN.findall(each)] == []
