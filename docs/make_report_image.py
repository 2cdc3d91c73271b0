"""Makes images/report.png anew, the head of a report: `python docs/make_report_image.py`.

A real daemon deliberates with the fake Gemini server of the tests, whose agents read from a script. Needs `pip install
pillow` and a Chromium on the PATH. For whoever changes the report; nothing else imports it, and no test runs it.

`python docs/make_report_image.py --page report.html` also leaves the whole report there.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, text
from tests.harness import command, drop_command, environment, make_home, run_cli

TARGET = Path(__file__).with_name("images") / "report.png"
_SIZE = (1040, 1960)  # CSS pixels: down to the end of the timeline
_SCALE = 1.5
_COLOURS = 128  # text needs no more, and the file stays small
_TAPE = "Move the archive to tape, and keep the last year on disk."
_DISK = "Stay on disk, and buy 20 TB a year."
_CLOUD = "Move the archive to cold storage in the cloud."
_ASK = "[ORCHESTRATOR_REQUEST: READ_FILE("
_FILES = {
    "docs/needs.md": "# The archive\n\nIt grows by 40 GB a month.\nIt is read twice a year, within a day of the request.\n",
    "docs/costs.md": "# Costs\n\nDisk: 18 EUR per TB and year.\nTape: 9 EUR per TB, and 3,900 EUR for the drive.\n",
    "docs/offers.md": "# Offers\n\nCold storage: 12 EUR per TB and year; 90 EUR to read one TB back.\n",
}
# role → round → (seconds, position, confidence, evidence, words); round 0 is the closing call
_SCRIPT = {
    "COORDINATOR": {
        1: (1.6, _DISK, 0.6, ("E1",), f"What does each medium cost?\n\n{_ASK}docs/costs.md)]"),
        2: (2.1, _TAPE, 0.75, ("E1", "E2"), "The drive pays for itself in the ninth year [E2: docs/costs.md:4]."),
        3: (1.8, _TAPE, 0.85, ("E2", "E3"), "Reading back decides: cold storage costs 90 EUR per TB [E3: docs/offers.md:3]."),
    },
    "STRATEGIST": {
        1: (2.3, _CLOUD, 0.7, ("E1",), f"Nobody wants to own a drive.\n\n{_ASK}docs/offers.md)]"),
        2: (1.9, _CLOUD, 0.65, ("E3",), "The offer is lower than disk [E3: docs/offers.md:3]."),
        3: (1.4, _TAPE, 0.6, ("E1",), "I go along with my colleagues."),
    },
    "AUDITOR": {
        1: (1.2, _DISK, 0.5, ("E1",), f"Keys and contracts first.\n\n{_ASK}.env)]"),
        2: (2.6, _DISK, 0.55, ("E2",), "A single drive is a single point of failure."),
        3: (1.7, _DISK, 0.6, ("E2",), "Who restores the tape when the drive is broken?"),
    },
}  # fmt: skip
_RECORD = {
    "answer": "Move everything older than a year to **tape**, and keep the last year on disk [E2: docs/costs.md:4].",
    "claims": [{"text": "Tape costs half of disk per TB [E2: docs/costs.md:3-4].", "evidence": ["E2"]}],
    "dissent": [{"view": "One drive is a single point of failure.", "held_by": "AUDITOR", "evidence": ["E2"]}],
    "confidence": 0.75,
}


class Agents:
    def __init__(self) -> None:
        self._overloaded = False

    def __call__(self, request: RecordedRequest) -> FakeReply:
        role = re.search(r"You are ([A-Z]+)", request.system)
        assert role is not None
        last = request.texts[-1]
        if "The rounds are over" in last:
            return replace(
                text(json.dumps(_RECORD), prompt=9_800, output=640, thoughts=210, cached=6_100), before_s=2.2
            )
        round_no = int((re.search(r"This is round (\d+)", last) or ["", "1"])[1])
        if role[1] == "STRATEGIST" and round_no == 2 and not self._overloaded:
            self._overloaded = True
            return error(503, retry_after=2, message="the model is overloaded")
        seconds, position, confidence, evidence, words = _SCRIPT[role[1]][round_no]
        block = {"position": position, "confidence": confidence, "evidence": evidence, "would_change": "a measurement"}
        said = f"{words}\n\n```council\n{json.dumps(block)}\n```"
        prompt = 1_400 + 2_300 * (round_no - 1)
        reply = text(said, prompt=prompt, output=150 + 60 * len(role[1]), thoughts=90, cached=(round_no - 1) * 1_300)
        return replace(reply, before_s=seconds)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--page", type=Path)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, FakeGemini(reply=Agents()) as fake:
        page = Path(folder) / "report.html"
        _report(Path(folder) / "home", fake, page)
        if asked.page:
            shutil.copy(page, asked.page)
        _picture(page, Path(folder) / "shot.png")


def _report(home: Path, fake: FakeGemini, page: Path) -> None:
    make_home(home)
    for name, words in _FILES.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(words)
    config = {"protocol": "independent", "max_rounds": 3}
    drop_command(home, command("Where should the archive live?", input_artifacts=["docs/needs.md"], config=config))
    env = environment(GEMINI_API_KEY="a-key-for-the-fake-server", GOOGLE_GEMINI_BASE_URL=fake.url)
    for arguments in (("run", "--once"), ("report", "last", "--html", "-o", str(page))):
        done = run_cli(*arguments, cwd=home, env=env)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)


def _picture(page: Path, shot: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("no Chromium on the PATH")
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--force-device-scale-factor={_SCALE}",
    ]
    size = f"--window-size={_SIZE[0]},{_SIZE[1]}"
    data = f"--user-data-dir={shot.parent / 'browser'}"
    command_line = [browser, *flags, data, size, f"--screenshot={shot}", page.as_uri()]
    subprocess.run(command_line, check=True, capture_output=True, timeout=120)
    with Image.open(shot) as image:
        image.convert("RGB").quantize(_COLOURS).save(TARGET, optimize=True)


if __name__ == "__main__":
    main()
