"""QUERY_CORTEX through the real daemon and the real command line."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.e2e.gate import is_closing, role_of
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, text
from tests.harness import command, drop_command, environment, run_cli

PROTOCOL = "# Protocols\n\n## Safety\n\nAgents ask, tools act; nothing agentic writes by itself.\n\n## Food\n\nSoup.\n"


def first_words_of(role: str, reply: str) -> object:
    def answer(request: RecordedRequest) -> FakeReply:
        return text(reply if role_of(request) == role and not is_closing(request) else "I have nothing to add.")

    return answer


def write(home: Path, path: str, content: str) -> Path:
    target = home / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)
    return target


def archive(home: Path) -> None:
    head = '---\nrole: COORDINATOR\nlane: main\nrun: r1\ntask: "Choose backups"\nstatus: succeeded\n---\n'
    write(
        home,
        "session_states/archive/main/coordinator/r1.md",
        f"{head}\n## COORDINATOR\n\nWalrus backups were chosen.\n",
    )


def test_an_agents_question_brings_the_passage_to_the_next_speaker_and_the_artifact_logs_it(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    path = write(home, "docs/protocols.md", PROTOCOL)
    ask = '[ORCHESTRATOR_REQUEST: QUERY_CORTEX("Find all protocols related to agentic safety")]'
    fake.reply = first_words_of("COORDINATOR", f"I need the rules.\n\n{ask}")
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    strategist = next(request for request in fake.requests if role_of(request) == "STRATEGIST")
    said = "\n".join(strategist.texts)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert f"docs/protocols.md:3-5 sha256 {sha256} (under: Protocols > Safety)" in said
    assert "Agents ask, tools act; nothing agentic writes by itself." in said
    assert "CONTEXT_PROVIDED for COORDINATOR: E1" in said
    artifact = (home / "artifacts" / "out.md").read_text()
    assert re.search(
        r"\*\*ORCHESTRATOR \(Fulfilled Request\):\*\* Gave the council \d passages? for “Find all protocols", artifact
    )
    assert "`docs/protocols.md:3-5`" in artifact


def test_archived_memory_is_reached_by_its_scope_and_by_no_other_way(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    archive(home)
    asks = [
        'QUERY_CORTEX("walrus backups")',
        "READ_FILE(session_states/archive/main/coordinator/r1.md)",
        "LIST_FILES(session_states/**)",
    ]
    fake.reply = first_words_of("COORDINATOR", "\n".join(f"[ORCHESTRATOR_REQUEST: {ask}]" for ask in asks))
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    assert all("Walrus backups were chosen." not in json.dumps(request.body) for request in fake.requests)
    asked_before = len(fake.requests)
    fake.reply = first_words_of("COORDINATOR", '[ORCHESTRATOR_REQUEST: QUERY_CORTEX("walrus backups", scope=memory)]')
    drop_command(home, command())
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    strategist = next(request for request in fake.requests[asked_before:] if role_of(request) == "STRATEGIST")
    said = "\n".join(strategist.texts)
    assert "Walrus backups were chosen." in said
    assert "session_states/archive/main/coordinator/r1.md:" in said


def test_the_command_line_indexes_asks_and_tells(home: Path) -> None:
    write(home, "docs/protocols.md", PROTOCOL)
    archive(home)
    first = json.loads(run_cli("cortex", "index", "--json", cwd=home).stdout)
    second = json.loads(run_cli("cortex", "index", "--json", cwd=home).stdout)
    assert first["files"]["added"] == first["files"]["read"] >= 1
    assert (first["memory"]["added"], second["files"]["read"], second["memory"]["read"]) == (1, 0, 0)
    answer = json.loads(run_cli("cortex", "query", "agentic safety", "--json", cwd=home).stdout)
    hit = answer["hits"][0]
    assert (hit["path"], hit["first_line"], hit["last_line"]) == ("docs/protocols.md", 3, 5)
    assert hit["quotation"] in PROTOCOL
    assert hit["sha256"] == hashlib.sha256(PROTOCOL.encode()).hexdigest()
    memory = json.loads(run_cli("cortex", "query", "walrus", "--scope", "memory", "--json", cwd=home).stdout)
    assert [hit["path"] for hit in memory["hits"]] == ["session_states/archive/main/coordinator/r1.md"]
    status = json.loads(run_cli("cortex", "status", "--json", cwd=home).stdout)
    assert (status["writer"], status["files"]["pending"], status["memory"]["files"]) == (None, 0, 1)


def test_the_command_line_shows_a_person_place_hash_and_quotation(home: Path) -> None:
    write(home, "docs/protocols.md", PROTOCOL.replace("Soup.", "Soup \x1b[31mred."))
    shown = run_cli("cortex", "query", "soup", cwd=home)
    assert shown.returncode == 0
    assert "docs/protocols.md:7-9  Protocols > Food" in shown.stdout
    assert "    Soup" in shown.stdout
    assert "\x1b" not in shown.stdout
    nothing = run_cli("cortex", "query", "zebra", cwd=home)
    assert (nothing.returncode, nothing.stdout) == (0, "No passage matches.\n")
    assert "holds" in run_cli("cortex", "status", cwd=home).stdout
    rebuilt = run_cli("cortex", "index", "--rebuild", cwd=home)
    assert "note: the index of files was rebuilt: that was asked for" in rebuilt.stderr


def test_a_kill_in_the_middle_of_indexing_is_repaired_by_the_next_question(home: Path) -> None:
    for number in range(3000):
        write(home, f"many/{number}.md", f"# File {number}\n\nwalrus number{number}\n" + "filler words\n" * 50)
    indexing = subprocess.Popen([sys.executable, "-m", "council", "cortex", "index"], cwd=home, env=environment())
    folder = home / ".council" / "cortex" / "files" / "index"
    while not list(folder.glob("*.store")) and indexing.poll() is None:
        os.sched_yield()
    indexing.send_signal(signal.SIGKILL)
    indexing.wait()
    found = run_cli("cortex", "query", "number2999", "--json", cwd=home)
    assert [hit["path"] for hit in json.loads(found.stdout)["hits"]] == ["many/2999.md"]
    again = json.loads(run_cli("cortex", "index", "--json", cwd=home).stdout)
    assert (again["files"]["read"], again["files"]["files"] >= 3000) == (0, True)


def test_status_and_config_load_no_engine(home: Path) -> None:
    code = (
        "import sys\nfrom council.cli.main import app\n"
        "try:\n    app(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('tantivy', 'council.knowledge') if name in sys.modules])"
    )
    for arguments in (["status", "--json"], ["config", "show"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=home,
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == "[]"
    looked = subprocess.run(
        [sys.executable, "-c", code, "cortex", "status"],
        cwd=home, env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "tantivy" not in looked.stdout.splitlines()[-1]


def test_a_new_home_is_asked_about_its_documents_and_not_about_the_program(home: Path) -> None:
    question = "Which evidence does the auditor of a council quote?"

    def found() -> list[str]:
        done = run_cli("cortex", "query", question, "--json", cwd=home, env=environment())
        return sorted(hit["path"] for hit in json.loads(done.stdout)["hits"])

    assert found() == []
    write(home, "docs/audit.md", "# Audit\n\nThe auditor of the council quotes the evidence of the bank.\n")
    assert found() == ["docs/audit.md"]
    persona = home / "personas" / "auditor.md"
    persona.write_text(f"{persona.read_text()}\nThe auditor quotes the evidence of each council meeting.\n")
    assert found() == ["docs/audit.md", "personas/auditor.md"]


def test_agent_and_person_are_told_how_many_passages_were_too_weak(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    for number in range(8):
        write(home, f"notes/{number}.md", f"Nothing else stands in the report of week {number}.\n")
    write(home, "docs/flour.md", "The cheapest rye flour came from the mill at the weir, says the report.\n")
    ask = '[ORCHESTRATOR_REQUEST: QUERY_CORTEX("Which supplier offered the cheapest rye flour in the report?")]'
    fake.reply = first_words_of("COORDINATOR", ask)
    drop_command(home, command())
    typed = run_cli("cortex", "query", "Which supplier offered the cheapest rye flour in the report?", cwd=home)
    assert "8 weaker passages were left out" in typed.stderr
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    said = "\n".join(next(request for request in fake.requests if role_of(request) == "STRATEGIST").texts)
    assert "1 passage for “Which supplier" in said
    assert "; 8 weaker passages were left out" in said
