"""`council stats` on a terminal and in a pipe: the newest runs agent by agent, drawn for eyes and plain for programs."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, blocked, text
from tests.harness import command, drop_command, environment, lose_journal, on_a_terminal, run_cli, run_ids

_BLOCKS = "▁▂▃▄▅▆▇█"


def three_runs(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    """Each costs the auditor more tokens than the one before; the strategist stays away from the second."""
    for number in (1, 2, 3):

        def reply(request: RecordedRequest, number: int = number) -> FakeReply:
            if "You are STRATEGIST" in request.system and number == 2:
                return blocked()
            if "You are AUDITOR" in request.system:
                return text("words", prompt=1000 * number, output=10)
            return text("words", prompt=100, output=10)

        fake.reply = reply
        drop_command(home, command(rounds=1, session=f"lane-{number}", output_artifact_path=f"artifacts/{number}.md"))
        run_cli("run", "--once", cwd=home, env={**env, "COUNCIL_MODEL_ATTEMPTS": "1"})


def test_stats_tell_the_newest_runs_by_agent_and_draw_them_on_a_terminal_alone(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    three_runs(home, fake, env)
    last = json.loads(run_cli("stats", "--json", cwd=home).stdout)["recent"]
    shares = {share["name"]: share for share in last["agents"]}
    assert (len(last["runs"]), last["left_out"]) == (3, 0)
    assert list(shares) == ["AUDITOR", "COORDINATOR", "STRATEGIST"]
    assert shares["AUDITOR"]["tokens"] == [1010, 2010, 3010]
    assert shares["AUDITOR"]["tokens_per_run"] == 2010
    assert shares["STRATEGIST"]["tokens"][1] is None
    assert (shares["COORDINATOR"]["calls"], shares["COORDINATOR"]["p50_s"] is not None) == (6, True)
    assert [share["name"] for share in last["models"]] == ["gemini:gemini-2.5-flash"]
    plain = run_cli("stats", cwd=home).stdout
    assert not set(plain) & {*_BLOCKS, "\x1b"}
    assert re.search(r"AUDITOR +3 +2,010 ", plain)
    drawn = on_a_terminal("stats", cwd=home, env=environment(COLUMNS="130", TERM="xterm"))
    line = next(line for line in drawn.splitlines() if "AUDITOR" in line)
    marks = [mark for mark in re.sub(r"\x1b\[[0-9;]*m", "", line) if mark in _BLOCKS]
    assert marks[:3] == ["▃", "▆", "█"]
    assert "oldest to newest" in drawn


def test_a_journal_that_is_gone_is_counted_and_the_sums_stay(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    three_runs(home, fake, env)
    lose_journal(home, run_ids(home)[-1])
    sums = json.loads(run_cli("stats", "--json", cwd=home).stdout)
    assert (len(sums["recent"]["runs"]), sums["recent"]["left_out"], sums["spent"]["runs"]) == (2, 1, 3)
    assert "1 of the newest runs is left out: its journal is gone" in run_cli("stats", cwd=home).stdout
