"""How a council deliberates: protocols, stances, early stops, the chair's stand-ins, through the real daemon."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from council.deliberation.commands import MAX_AGENTS
from tests.e2e.gate import is_closing, role_of
from tests.fake_gemini import FakeGemini, FakeReply, RecordedRequest, error, slow, text
from tests.harness import Daemon, command, drop_command, front_matter, receipts, run_cli, steps

ROLES = ("COORDINATOR", "STRATEGIST", "AUDITOR")
CLOSING = "The rounds are over"
Say = Callable[[str, RecordedRequest], str | FakeReply]


def round_of(request: RecordedRequest) -> int:
    """The round that a turn's instruction names; 1 for the blind one."""
    return int((re.search(r"This is round (\d+)", request.texts[-1]) or ["", "1"])[1])


def stance(position: str, *evidence: str, confidence: float = 0.8, words: str = "I looked at it.") -> str:
    block = {"position": position, "confidence": confidence, "evidence": evidence, "would_change": "a new measurement"}
    return f"{words}\n\n```council\n{json.dumps(block)}\n```"


def council_says(say: Say, *, closing: str = "The decision.") -> Callable[[RecordedRequest], FakeReply]:
    def reply(request: RecordedRequest) -> FakeReply:
        if is_closing(request):
            return text(closing)
        said = say(role_of(request), request)
        return text(said) if isinstance(said, str) else said

    return reply


def run_once(home: Path, env: dict[str, str], *, code: int = 0, **config: Any) -> str:
    """Runs one command over `a.md` to its end; its page, which a replay must give byte for byte."""
    (home / "a.md").write_text("The disk holds 40 GB.\nThe archive grows by 40 GB a month.\n")
    drop_command(home, command(input_artifacts=["a.md"], config=config))
    done = run_cli("run", "--once", cwd=home, env={**env, "COUNCIL_MODEL_ATTEMPTS": "1"})
    assert done.returncode == code, done.stderr
    check = run_cli("replay", "last", "--check", cwd=home)
    assert check.returncode == 0, check.stdout + check.stderr
    return (home / "artifacts" / "out.md").read_text()


def section(page: str, heading: str) -> str:
    """The text under one heading of the page."""
    return page.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]


def dissent_of(page: str) -> str:
    return page.split("### Dissent\n", 1)[1].split("\n### ", 1)[0]


# ── stances ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_stance_stands_in_a_table_and_not_in_the_speech(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = council_says(lambda role, request: stance("Buy a disk.", "E1", words=f"The {role} has read."))
    page = run_once(home, env, max_rounds=1)
    assert len(fake.requests) == 4
    assert "| Buy a disk. | COORDINATOR, STRATEGIST, AUDITOR | 0.80, 0.80, 0.80 | [[E1 a.md:1-2](../a.md#L1)] |" in page
    assert "Stances, round by round" not in page  # one round: it would say the same again
    assert "| a new measurement |" in section(page, "Positions")
    assert "The STRATEGIST has read." in page
    assert "would_change" not in page
    strategist = next(request for request in fake.requests if role_of(request) == "STRATEGIST")
    assert "Position: Buy a disk. (confidence 0.80; evidence: E1)" in strategist.texts[1]
    assert "would_change" not in strategist.texts[1]


def test_a_reply_without_a_stance_is_no_failure_and_costs_no_call(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = council_says(lambda role, request: "I agree." if role != "AUDITOR" else stance("Wait.", "E1"))
    page = run_once(home, env, max_rounds=1)
    assert len(fake.requests) == 4
    assert front_matter(page)["status"] == "succeeded"
    assert "| position not stated | COORDINATOR, STRATEGIST |" in section(page, "Positions")


def test_an_evidence_id_that_was_never_issued_is_asked_for_again(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    def say(role: str, request: RecordedRequest) -> str:
        if "cannot be used as it stands" in request.texts[-1]:
            return json.dumps({"position": "Wait.", "confidence": 0.5, "evidence": ["E1"], "would_change": "E2"})
        return stance("Wait.", "E7") if role == "AUDITOR" else "Nothing to add."

    fake.reply = council_says(say)
    page = run_once(home, env, max_rounds=1)
    [repair] = [request for request in fake.requests if "cannot be used as it stands" in request.texts[-1]]
    assert "'E7' was never issued in this run; the ids are E1" in repair.texts[-1]
    assert len(repair.texts) <= 3
    assert len(fake.requests) == 5
    assert "| Wait. | AUDITOR | 0.50 | [[E1 a.md:1-2](../a.md#L1)] |" in page
    assert receipts(home)[-1]["calls"] == 5
    assert front_matter(page)["status"] == "succeeded"


def test_a_stance_that_stays_unreadable_is_said_after_two_tries_and_the_turn_is_shown_whole(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    def say(role: str, request: RecordedRequest) -> str:
        return stance("Wait.", "E7", words="My reasons.") if role == "AUDITOR" else "Nothing to add."

    fake.reply = council_says(say)
    page = run_once(home, env, max_rounds=1)
    assert len(fake.requests) == 6
    assert "the stance could not be read, though the agent was asked twice to correct it" in page
    assert "was never issued in this run" in page
    assert "My reasons." in page
    assert "| position not stated | COORDINATOR, STRATEGIST, AUDITOR |" in page


def test_a_change_of_mind_names_new_evidence_or_is_unexplained(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "b.md").write_text("The disk was replaced in May.\n")

    def say(role: str, request: RecordedRequest) -> str:
        second = round_of(request) == 2
        if role == "COORDINATOR":
            words = "I ask.\n\n[ORCHESTRATOR_REQUEST: READ_FILE(b.md)]"
            return stance("Do nothing.", "E2") if second else stance("Buy a disk.", "E1", words=words)
        if role == "STRATEGIST":
            return stance("Do nothing.", "E1") if second else stance("Buy a disk.", "E1")
        return stance("Buy a disk!", "E1") if second else stance("buy a  disk", "E1")

    fake.reply = council_says(say)
    page = run_once(home, env, max_rounds=2)
    changes = section(page, "Changes of mind")
    assert "COORDINATOR, round 2: from “Buy a disk.” to “Do nothing.”, on new evidence: E2." in changes
    assert "STRATEGIST, round 2: from “Buy a disk.” to “Do nothing.”. **Unexplained:**" in changes
    assert "AUDITOR" not in changes


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_unanimous_triad_ends_after_its_auditor_and_says_what_it_saved(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = council_says(lambda role, request: stance("Buy a disk.", "E1", words=f"{role} agrees."))
    page = run_once(home, env, max_rounds=3, early_stop=True)
    assert [role_of(request) for request in fake.requests] == [*ROLES, "COORDINATOR"]
    assert receipts(home)[-1]["details"]["stopped"] == "unanimity"
    assert receipts(home)[-1]["details"]["calls_saved"] == 6
    assert front_matter(page)["status"] == "succeeded"
    assert "> **Succeeded.** COORDINATOR, STRATEGIST and AUDITOR each answered once." in page
    assert "Calls saved: 6." in section(page, "How the rounds ended")


@pytest.mark.parametrize("agents", [["COORDINATOR", "STRATEGIST"], ["STRATEGIST", "AUDITOR", "COORDINATOR"]])
def test_a_triad_without_an_auditor_asks_its_last_member_to_speak_for_the_other_side(
    home: Path, fake: FakeGemini, env: dict[str, str], agents: list[str]
) -> None:
    fake.reply = council_says(lambda role, request: stance("Buy a disk.", "E1", words=f"{role} agrees."))
    run_once(home, env, max_rounds=2, early_stop=True, agents=agents)
    told = [role_of(request) for request in fake.requests if "the devil's advocate here" in request.texts[-1]]
    assert told == ([] if "AUDITOR" in agents else ["STRATEGIST"])
    assert len(fake.requests) == len(agents) + 1
    assert receipts(home)[-1]["details"]["stopped"] == "unanimity"


@pytest.mark.parametrize("evidence", [(), ("E1",)], ids=["without evidence", "auditor silent"])
def test_agreement_does_not_end_the_rounds_without_evidence_or_before_the_auditor_spoke(
    home: Path, fake: FakeGemini, env: dict[str, str], evidence: tuple[str, ...]
) -> None:
    def say(role: str, request: RecordedRequest) -> str | FakeReply:
        if evidence and role == "AUDITOR":
            return error(500, "INTERNAL")
        return stance("Buy a disk.", *evidence, words=f"{role} {round_of(request)}")

    fake.reply = council_says(say)
    page = run_once(home, env, code=7 if evidence else 0, max_rounds=2, early_stop=True)
    assert len(fake.requests) == 7
    assert receipts(home)[-1]["details"]["stopped"] == "cap"
    assert receipts(home)[-1]["details"]["calls_saved"] == 0
    assert "Both rounds took place." in section(page, "How the rounds ended")


@pytest.mark.parametrize("repeats", [("COORDINATOR",), ROLES], ids=["one", "all"])
def test_turns_that_are_repeated_end_the_rounds_where_nobody_says_anything_else(
    home: Path, fake: FakeGemini, env: dict[str, str], repeats: tuple[str, ...]
) -> None:
    def say(role: str, request: RecordedRequest) -> str:
        return "As I said:  buy a disk" if role in repeats else f"{role} in round {round_of(request)}"

    fake.reply = council_says(say)
    page = run_once(home, env, max_rounds=3, early_stop=True)
    assert receipts(home)[-1]["details"]["stopped"] == ("repeated_turn" if repeats == ROLES else "cap")
    assert receipts(home)[-1]["details"]["calls_saved"] == (3 if repeats == ROLES else 0)
    assert len(fake.requests) == (7 if repeats == ROLES else 10)
    assert ("in round 2 every member said what it had said before" in page) == (repeats == ROLES)


def test_a_round_that_brings_nothing_new_ends_a_dispute_and_says_that_it_is_open(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = council_says(
        lambda role, request: stance(f"The {role[:4].lower()} way.", "E1", words=f"{role} {round_of(request)}")
    )
    page = run_once(home, env, max_rounds=4, early_stop=True)
    assert len(fake.requests) == 7
    assert receipts(home)[-1]["details"]["stopped"] == "no_new_information"
    assert receipts(home)[-1]["details"]["calls_saved"] == 6
    assert (
        "- no new information: round 2 brought no new evidence and moved no position; 3 positions are still open. "
        "Calls saved: 6." in section(page, "How the rounds ended")
    )


def test_a_dispute_in_which_nobody_moves_ends_after_its_evidence_round(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = council_says(lambda role, request: stance(f"The {role[:4].lower()} way.", "E1", words="As ever."))
    page = run_once(home, env, max_rounds=5, protocol="independent")
    asked = [round_of(request) for request in fake.requests if "You disagree" in request.texts[-1]]
    assert asked == [3, 3, 3]
    assert receipts(home)[-1]["details"]["stopped"] == "repeated_turn"
    assert front_matter(page)["rounds"] == 3
    assert receipts(home)[-1]["details"]["calls_saved"] == 6
    assert section(page, "Stances, round by round").count("| as before | 0.80 |  |  |") == 6


def test_a_position_that_is_not_stated_again_stays_and_stands_as_dissent_with_its_source(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    def say(role: str, request: RecordedRequest) -> str:
        words = f"{role} {round_of(request)}"
        if role == "AUDITOR":
            return stance("The disk is full in a month.", "E1", words=words) if round_of(request) == 1 else words
        return stance("The disk is large enough.", confidence=0.97, words=words)

    record = {"answer": "Keep the disk.", "claims": [], "confidence": 0.9}
    fake.reply = council_says(say, closing=json.dumps(record))
    page = run_once(home, env, max_rounds=2)
    positions = section(page, "Positions")
    assert "| The disk is full in a month. | AUDITOR (in round 1) | 0.80 | [[E1 a.md:1-2](../a.md#L1)] |" in positions
    dissent = dissent_of(page)
    assert "AUDITOR (in round 1), left out by the writer: The disk is full in a month." in dissent
    assert "[[E1 a.md:1-2](../a.md#L1)]" in dissent
    assert "None was recorded" not in page


@pytest.mark.parametrize("held_by", ["AUDITOR", "the Auditor", "member {letter}"])
def test_a_dissent_that_the_writer_names_with_its_source_is_not_added_again(
    home: Path, fake: FakeGemini, env: dict[str, str], held_by: str
) -> None:
    def say(role: str, request: RecordedRequest) -> str:
        return stance("Full in a month." if role == "AUDITOR" else "Large enough.", "E1", words=f"{role} speaks.")

    def reply(request: RecordedRequest) -> FakeReply:
        if not is_closing(request):
            return text(say(role_of(request), request))
        letter = re.search(r"\*\*Member ([ABC]):\*\*\n<<DATA[^\n]*>>\n[^<]*Full in a month", request.texts[1])
        assert letter is not None
        part = {"view": "It fills up.", "held_by": held_by.format(letter=letter[1]), "evidence": ["E1"]}
        return text(json.dumps({"answer": "Keep it.", "claims": [], "dissent": [part], "confidence": 0.9}))

    fake.reply = reply
    page = run_once(home, env, max_rounds=1, protocol="independent")
    assert "It fills up." in dissent_of(page)
    assert "left out by the writer" not in page


@pytest.mark.parametrize(
    ("agrees_with", "left_out"),
    [
        (["the Auditor"], "COORDINATOR, STRATEGIST, left out by the writer: Large enough. Evidence: none named."),
        (list(ROLES), "AUDITOR, left out by the writer: Full in a month. Evidence: [[E1"),
        (["Nobody"], "AUDITOR, left out by the writer: Full in a month. Evidence: [[E1"),
        (["everybody but the Auditor"], "AUDITOR, left out by the writer: Full in a month. Evidence: [[E1"),
    ],
)
def test_a_decision_that_takes_the_minoritys_position_has_the_majority_as_its_dissent(
    home: Path, fake: FakeGemini, env: dict[str, str], agrees_with: list[str], left_out: str
) -> None:
    def say(role: str, request: RecordedRequest) -> str:
        return stance("Full in a month.", "E1") if role == "AUDITOR" else stance("Large enough.")

    record = {"answer": "Replace it, it fills up.", "agrees_with": agrees_with, "claims": [], "confidence": 0.9}
    fake.reply = council_says(say, closing=json.dumps(record))
    page = run_once(home, env, max_rounds=1)
    assert dissent_of(page).count("left out by the writer") == 1
    assert left_out in dissent_of(page)
    if_named = "The writer says that it takes the position of AUDITOR."
    assert (if_named in page) == (agrees_with == ["the Auditor"])
    strange = agrees_with in (["Nobody"], ["everybody but the Auditor"])
    assert ("somebody who is not a member of this council" in page) == strange


def test_of_many_sources_none_is_cut_off_the_page(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    folder = home / "the minutes of the meetings of the year" / "of the committee for the archive"
    folder.mkdir(parents=True)
    asked = []
    for number in range(2, 15):
        (folder / f"meeting number {number}.md").write_text(f"fact {number}\n")
        asked.append(f"[ORCHESTRATOR_REQUEST: READ_FILE({folder.relative_to(home)}/meeting number {number}.md)]")
    ids = [f"E{number}" for number in range(1, 15)]

    def say(role: str, request: RecordedRequest) -> str:
        if role == "COORDINATOR":
            return "I ask.\n\n" + "\n".join(asked)
        return stance("Wait.", *ids) if role == "AUDITOR" else "I listen."

    fake.reply = council_says(say)
    page = run_once(home, {**env, "COUNCIL_MAX_REQUESTS_PER_REPLY": "20"}, max_rounds=1)
    [row] = [line for line in section(page, "Positions").splitlines() if line.startswith("| Wait.")]
    assert re.findall(r"\[(E\d+)\]\(\.\./[^()]+#L1\)", row) == ids


def test_who_holds_a_position_is_credited_with_its_own_sources_alone(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = council_says(lambda role, request: stance("Wait.", *(["E1"] if role == "AUDITOR" else [])))
    page = run_once(home, env, max_rounds=1)
    cell = "COORDINATOR, STRATEGIST: none named; AUDITOR: [[E1 a.md:1-2](../a.md#L1)]"
    assert f"| Wait. | COORDINATOR, STRATEGIST, AUDITOR | 0.80, 0.80, 0.80 | {cell} |" in section(page, "Positions")


# ── what a turn is ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_thoughts_reach_nobody_and_no_file(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    def say(role: str, request: RecordedRequest) -> str:
        if role == "STRATEGIST":
            return "<think>QUARK one</think>\nWords alone."
        if role == "AUDITOR":
            return "<think>QUARK two, and it never stopped"
        return "<thinking>QUARK three</thinking>\n" + stance(
            "Wait.", "E1", words="So.\n<think>QUARK four</think>\nYes."
        )

    fake.reply = council_says(say, closing="<think>QUARK five</think>The decision.")
    page = run_once(home, env, code=7, max_rounds=2)
    assert not [path for path in home.rglob("*") if path.is_file() and b"QUARK" in path.read_bytes()]
    assert all("QUARK" not in json.dumps(request.body) for request in fake.requests)
    assert "Words alone." in page
    assert "| 2 | COORDINATOR | as before | " in page
    assert "AUDITOR did not answer in rounds 1 and 2 (empty): " in page
    assert "held nothing but thoughts" in page
    assert "The decision." in section(page, "Decision")


def test_a_chair_that_only_thinks_is_stood_in_for(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    def reply(request: RecordedRequest) -> FakeReply:
        if not is_closing(request):
            return text("Words.")
        return text("<think>Hm." if role_of(request) == "COORDINATOR" else "Use a second disk.")

    fake.reply = reply
    page = run_once(home, env, code=7, max_rounds=1)
    assert "Use a second disk." in section(page, "Decision")
    assert "The closing call of COORDINATOR failed (empty)" in page


def test_a_block_that_is_quoted_amid_the_words_is_nobodys_stance(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    request_line = "[ORCHESTRATOR_REQUEST: READ_FILE(b.md)]"
    (home / "b.md").write_text("what more there is\n")

    def say(role: str, request: RecordedRequest) -> str:
        block = stance("Buy a disk.", "E7" if role == "AUDITOR" else "E1", words="I looked.")
        if role == "COORDINATOR":
            return f"{block}\n\n{request_line}"
        return f"It says:\n{block}\nI disagree, and state nothing."

    fake.reply = council_says(say)
    page = run_once(home, env, max_rounds=1)
    assert len(fake.requests) == 4
    assert "| Buy a disk. | COORDINATOR |" in section(page, "Positions")
    assert "| position not stated | STRATEGIST, AUDITOR |" in section(page, "Positions")
    assert "Provided `b.md` line 1 of 1 to the council" in page


def test_a_repair_turn_that_fails_is_said_above_the_text_with_the_real_error(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    def say(role: str, request: RecordedRequest) -> str | FakeReply:
        if "cannot be used as it stands" in request.texts[-1]:
            return error(500, "INTERNAL", message="the machine room is on fire")
        return stance("Wait.", "E7" if role == "AUDITOR" else "E1")

    fake.reply = council_says(say)
    page = run_once(home, env, code=7, max_rounds=1)
    above = page.split("\n## ", 1)[0]
    assert "The stance of AUDITOR in round 1 could not be read, and asking again failed (server)" in above
    assert "the machine room is on fire" in above
    assert front_matter(page)["status"] == "degraded"
    assert receipts(home)[-1]["tokens"] == {"input": 48, "output": 28, "cached": 0, "unknown_calls": 1}
    assert receipts(home)[-1]["calls"] == 5


def test_a_contested_task_runs_to_its_cap(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    for number in range(1, 4):
        (home / f"n{number}.md").write_text(f"fact number {number}\n")

    def say(role: str, request: RecordedRequest) -> str:
        number = round_of(request)
        words = f"{role}, {number}.\n\n[ORCHESTRATOR_REQUEST: READ_FILE(n{number}.md)]"
        return stance(f"The {role.lower()} way.", "E1", words=words)

    fake.reply = council_says(say)
    run_once(home, env, max_rounds=3, protocol="independent")
    assert len(fake.requests) == 10
    assert receipts(home)[-1]["details"]["stopped"] == "cap"
    assert receipts(home)[-1]["details"]["calls_saved"] == 0
    assert any("You disagree" in request.texts[-1] for request in fake.requests)
    assert "fact number 3" in fake.requests[-1].texts[1]


# ── independent ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_blind_round_is_asked_at_once_and_nobody_hears_another(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    together = threading.Barrier(3, timeout=30)

    def say(role: str, request: RecordedRequest) -> str:
        if len(request.texts) == 2:
            together.wait()
        return stance(f"The {role.lower()} way.", "E1", words=f"Spoken blind by the {role}.")

    fake.reply = council_says(say)
    page = run_once(home, env, max_rounds=2, protocol="independent")
    assert front_matter(page)["status"] == "succeeded"
    blind = fake.requests[:3]
    assert {role_of(request) for request in blind} == set(ROLES)
    assert all("Spoken blind" not in json.dumps(request.body) for request in blind)
    assert all(len(request.texts) <= 3 for request in fake.requests)
    places = [page.index(f"Spoken blind by the {role}.") for role in ROLES]
    assert places == sorted(places)


def test_the_largest_council_is_asked_at_once(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    agents = [f"MEMBER{letter}" for letter in "ABCDEFGHI"]
    persona = (home / "personas" / "strategist.md").read_text()
    for role in agents:
        mine = persona.replace("STRATEGIST", role).replace("id: strategist", f"id: {role.lower()}")
        (home / "personas" / f"{role.lower()}.md").write_text(mine)
    together = threading.Barrier(MAX_AGENTS, timeout=30)

    def say(role: str, request: RecordedRequest) -> str:
        together.wait()
        return f"{role} has waited for all others."

    fake.reply = council_says(say)
    page = run_once(home, env, max_rounds=1, protocol="independent", agents=agents)
    assert front_matter(page)["status"] == "succeeded"
    assert len(fake.requests) == MAX_AGENTS + 1


def test_what_was_said_at_once_is_heard_in_an_order_by_lot_the_same_for_all(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    agents = [f"MEMBER{letter}" for letter in "ABCDEFGHI"]
    persona = (home / "personas" / "strategist.md").read_text()
    for role in agents:
        mine = persona.replace("STRATEGIST", role).replace("id: strategist", f"id: {role.lower()}")
        (home / "personas" / f"{role.lower()}.md").write_text(mine)
    numbers = {role: f"number {at}" for at, role in enumerate(agents)}
    fake.reply = council_says(lambda role, request: f"I am {numbers[role]}.")
    run_once(home, env, max_rounds=2, protocol="independent", agents=agents)
    heard = {
        tuple(re.findall(r"number (\d)", request.texts[1])[:9]) for request in fake.requests if len(request.texts) == 3
    }
    [order] = heard
    assert sorted(order) == [str(at) for at in range(9)]
    assert order != tuple(sorted(order))  # once in 362,880 lots it is


def test_peers_are_letters_and_no_role_is_told(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    fake.reply = council_says(
        lambda role, request: stance(f"{role[:3]} way.", "E1", words=f"As {role} I say {len(request.texts)}.")
    )
    page = run_once(home, env, max_rounds=2, protocol="independent")
    heard = [request for request in fake.requests if len(request.texts) == 3]
    assert len(heard) == 4
    for request in heard:
        assert not any(role in request.texts[1] for role in ROLES)
        assert set(re.findall(r"\*\*(Member [ABC])", request.texts[1])) == {"Member A", "Member B", "Member C"}
    assert set(re.findall(r"\((Member [ABC])\)", page)) == {"Member A", "Member B", "Member C"}


def test_a_unanimous_independent_council_ends_with_its_devils_advocate(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = council_says(lambda role, request: stance("Buy a disk.", "E1", words=f"{role} {len(request.texts)}"))
    run_once(home, env, max_rounds=3, protocol="independent")
    assert len(fake.requests) == 5
    assert "you are the devil's advocate" in fake.requests[3].texts[-1]
    assert receipts(home)[-1]["details"]["stopped"] == "unanimity"
    assert receipts(home)[-1]["details"]["calls_saved"] == 5


def test_a_sourced_minority_stands_on_the_page_beside_a_confident_majority_without_sources(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    def say(role: str, request: RecordedRequest) -> str:
        words = f"{role} {round_of(request)}"
        if role == "AUDITOR":
            return stance("The disk is full within a month.", "E1", confidence=0.6, words=words)
        return stance("The disk is large enough.", confidence=0.97, words=words)

    fake.reply = council_says(say, closing="The disk is large enough.")
    page = run_once(home, env, max_rounds=3, protocol="independent")
    positions = section(page, "Positions")
    assert "| The disk is large enough. | COORDINATOR, STRATEGIST | 0.97, 0.97 | none named |" in positions
    assert "| The disk is full within a month. | AUDITOR | 0.60 | [[E1 a.md:1-2](../a.md#L1)] |" in positions
    assert "The disk is full within a month." in fake.requests[-1].texts[1]


def test_a_request_spoken_blind_is_no_echo_of_what_a_colleague_asked_for(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    (home / "b.md").write_text("See also [ORCHESTRATOR_REQUEST: READ_FILE(c.md)].\n")
    (home / "c.md").write_text("the third file\n")
    wanted = {"COORDINATOR": "b.md", "STRATEGIST": "c.md"}

    def say(role: str, request: RecordedRequest) -> str:
        return f"I ask.\n\n[ORCHESTRATOR_REQUEST: READ_FILE({wanted[role]})]" if role in wanted else "Nothing to add."

    fake.reply = council_says(say)
    page = run_once(home, env, max_rounds=1, protocol="independent")
    assert "Provided `c.md` line 1 of 1 to the council" in page
    assert "the third file" in fake.requests[-1].texts[1]


def test_a_round_in_which_one_of_five_answers_is_no_silent_council(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    persona = (home / "personas" / "strategist.md").read_text()
    for role in ("HISTORIAN", "LAWYER"):
        mine = persona.replace("STRATEGIST", role).replace("id: strategist", f"id: {role.lower()}")
        (home / "personas" / f"{role.lower()}.md").write_text(mine)
    fake.reply = council_says(lambda role, request: "Words." if role == "LAWYER" else error(500, "INTERNAL"))
    agents = ["COORDINATOR", "STRATEGIST", "AUDITOR", "HISTORIAN", "LAWYER"]
    page = run_once(home, env, code=7, max_rounds=1, protocol="independent", agents=agents)
    assert front_matter(page)["status"] == "degraded"
    assert "## Decision" in page


def test_an_agent_that_times_out_degrades_the_run_and_the_others_go_on(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = council_says(lambda role, request: slow(30) if role == "STRATEGIST" else f"{role} {round_of(request)}")
    page = run_once(home, {**env, "COUNCIL_REQUEST_TIMEOUT_S": "1"}, code=7, max_rounds=2, protocol="independent")
    assert front_matter(page)["status"] == "degraded"
    above = page.split("\n## ", 1)[0]
    assert "Answered: COORDINATOR in 2 turns; STRATEGIST in none of 2 turns; AUDITOR in 2 turns." in above
    assert above.count("timeout") == 1
    assert "STRATEGIST did not answer in rounds 1 and 2 (timeout): " in above
    assert "COORDINATOR 2" in page
    assert "## Decision" in page


def test_a_kill_in_a_blind_round_repeats_only_the_call_in_flight(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    released = threading.Event()

    def say(role: str, request: RecordedRequest) -> str:
        if role == "AUDITOR":
            released.wait(30)
        return f"{role} {round_of(request)}"

    fake.reply = council_says(say)
    drop_command(home, command(config={"max_rounds": 1, "protocol": "independent"}))
    with Daemon(home, env=env) as daemon:
        daemon.wait("turn_ended", role="COORDINATOR")
        daemon.wait("turn_ended", role="STRATEGIST")
        fake.wait_for_requests(3)
        daemon.kill()
    released.set()
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 0
    turns = Counter(role_of(request) for request in fake.requests if not is_closing(request))
    assert turns == {"COORDINATOR": 1, "STRATEGIST": 1, "AUDITOR": 2}
    assert run_cli("replay", "last", "--check", cwd=home).returncode == 0


def test_a_run_cancelled_in_a_blind_round_shows_who_had_answered(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    released = threading.Event()

    def say(role: str, request: RecordedRequest) -> str:
        if role == "COORDINATOR":
            released.wait(30)
        return f"the words of the {role}"

    fake.reply = council_says(say)
    drop_command(home, command(config={"protocol": "independent"}))
    with Daemon(home, env=env) as daemon:
        run_id = daemon.wait("turn_ended", role="AUDITOR")["run_id"]
        daemon.wait("turn_ended", role="STRATEGIST")
        drop_command(home, {"type": "cancel", "run": run_id}, "cancel.json")
        daemon.wait("run_ended", status="cancelled")
        released.set()
        daemon.stop()
    page = (home / "artifacts" / "out.md").read_text()
    assert "the words of the AUDITOR" in page
    assert "the words of the STRATEGIST" in page
    assert run_cli("replay", "last", "--check", cwd=home).returncode == 0


def test_a_budget_spent_in_a_blind_round_still_yields_an_answer(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = council_says(lambda role, request: f"{role} {round_of(request)}")
    page = run_once(home, env, code=7, protocol="independent", budget={"max_calls": 3})
    assert len(fake.requests) == 3
    assert "## Decision" in page
    assert receipts(home)[-1]["details"]["stopped"] == "budget"
    assert "The rounds ended early: the command's budget of 3 calls" in page


# ── review ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def letters_of(request: RecordedRequest) -> dict[str, str]:
    """Who stands behind each letter, by the name backwards that each one says: a role would be hidden."""
    return {
        role: letter
        for letter, role in re.findall(r"\*\*Member ([ABC]):\*\*\n<<DATA[^\n]*>>\nanswer of (\w+)", request.texts[1])
    }


def ranking(order: Sequence[str]) -> str:
    return f"My judgement.\n\n```council\n{json.dumps({'ranking': list(order)})}\n```"


def test_answers_are_ranked_without_names_and_counted_by_code(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    ballots = {
        "COORDINATOR": ("strategist", "coordinator", "auditor"),
        "STRATEGIST": ("strategist", "auditor", "coordinator"),
        "AUDITOR": ("auditor", "strategist", "coordinator"),
    }

    def say(role: str, request: RecordedRequest) -> str:
        if len(request.texts) == 2:
            return stance(f"The {role.lower()} way.", "E1", words=f"answer of {role.lower()[::-1]}")
        letters = letters_of(request)
        return ranking([letters[name[::-1]] for name in ballots[role]])

    fake.reply = council_says(say)
    page = run_once(home, env, protocol="review")
    assert len(fake.requests) == 7
    counted = section(page, "Ranking of the answers (Borda count)")
    rows = re.findall(r"^\| ([A-Z]+) \(Member [ABC]\) \| (\d) \| (\d) \|$", counted, re.MULTILINE)
    assert rows == [("STRATEGIST", "5", "2"), ("AUDITOR", "3", "1"), ("COORDINATOR", "1", "0")]
    closing = fake.requests[-1]
    assert role_of(closing) == "COORDINATOR"
    assert re.search(r"Borda count over 3 ballots: Member [ABC] 5 points, Member [ABC] 3 points", closing.texts[-1])
    assert "| The auditor way. | AUDITOR |" in page


def test_a_ballot_that_misses_an_answer_is_asked_for_again(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    def say(role: str, request: RecordedRequest) -> str:
        if "cannot be used as it stands" in request.texts[-1]:
            return json.dumps({"ranking": ["C", "B", "A"]})
        if len(request.texts) == 2:
            return f"answer of {role.lower()}"
        return "I would rather not." if role == "AUDITOR" else ranking("ABC" if role == "STRATEGIST" else "AB")

    fake.reply = council_says(say)
    page = run_once(home, env, protocol="review")
    assert len(fake.requests) == 9
    counted = section(page, "Ranking of the answers (Borda count)")
    assert re.findall(r"\(Member ([ABC])\) \| (\d) \|", counted) == [("C", "4"), ("B", "3"), ("A", "2")]


def test_a_review_in_which_no_ballot_can_be_read_counts_nothing_and_says_so(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = council_says(lambda role, request: f"{role} would rather not.")
    page = run_once(home, env, code=7, protocol="review")
    assert front_matter(page)["status"] == "degraded"
    assert "No member's ranking could be read" in page.split("\n## ", 1)[0]
    counted = section(page, "Ranking of the answers (Borda count)")
    assert "Points" not in counted
    assert counted.count("could not be read, though the agent was asked twice to correct it") == 3
    assert "no ranking could be read" in fake.requests[-1].texts[-1]


def test_a_review_offline_says_that_nothing_was_ranked_and_asks_for_no_ballot_twice(home: Path) -> None:
    (home / "a.md").write_text("The disk holds 40 GB.\n")
    drop_command(home, command(input_artifacts=["a.md"], config={"protocol": "review"}))
    assert run_cli("run", "--once", "--model", "offline", cwd=home).returncode == 7
    page = (home / "artifacts" / "out.md").read_text()
    assert "> **Degraded.** The answers are not ranked: the offline engine ranks nothing." in page.split("\n## ", 1)[0]
    counted = section(page, "Ranking of the answers (Borda count)")
    assert counted.strip() == "- No ballot from COORDINATOR, STRATEGIST and AUDITOR: the offline engine ranks nothing."
    assert receipts(home)[-1]["calls"] == 7


def test_ballots_that_a_budget_cut_short_are_counted_for_the_chair_and_ties_are_said(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    def say(role: str, request: RecordedRequest) -> str:
        return f"{role} answers." if len(request.texts) == 2 else ranking("ABC" if role == "COORDINATOR" else "BAC")

    fake.reply = council_says(say)
    page = run_once(home, env, code=7, protocol="review", budget={"max_calls": 6})
    assert (
        "Borda count over 2 ballots: Member A 3 points, Member B 3 points, Member C 0 points."
        in (fake.requests[-1].texts[-1])
    )
    assert "Members A and B are equal." in fake.requests[-1].texts[-1]
    assert "Equal, with 3 points each: " in section(page, "Ranking of the answers (Borda count)")
    assert receipts(home)[-1]["details"]["calls_saved"] == 1
    assert "Turns not taken: 1." in section(page, "How the rounds ended")


# ── who takes part ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_other_agents_take_part_by_name(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    persona = (home / "personas" / "strategist.md").read_text()
    persona = persona.replace("id: strategist", "id: historian").replace("role: STRATEGIST", "role: HISTORIAN")
    (home / "personas" / "historian.md").write_text(persona)
    page = run_once(home, env, max_rounds=1, agents=["historian", "AUDITOR"])
    assert [role_of(request) for request in fake.requests] == ["HISTORIAN", "AUDITOR", "HISTORIAN"]
    assert front_matter(page)["agents"] == ["HISTORIAN", "AUDITOR"]
    assert (home / "session_states" / "historian_session.json").exists()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"agents": ["AUDITOR", "STRATEGYST"]}, "Fix: did you mean STRATEGIST?\n"),
        ({"agents": ["AUDITOR", "NOBODY"]}, "Fix: see `council agents list`."),
        ({"agents": ["AUDITOR", "auditor"]}, "names AUDITOR twice"),
        ({"agents": ["AUDITOR"], "protocol": "review"}, "at least two members"),
        ({"protocol": "review", "early_stop": True}, "needs all its rounds"),
        ({"protocol": "debate"}, "triad"),
    ],
)
def test_a_council_that_cannot_be_is_refused_before_any_call(
    home: Path, fake: FakeGemini, env: dict[str, str], config: dict[str, Any], said: str
) -> None:
    drop_command(home, command(config=config))
    assert run_cli("run", "--once", cwd=home, env=env).returncode == 2
    assert said in (home / "commands" / "failed" / "command.json.error.md").read_text()
    assert fake.requests == []


# ── the chair's stand-ins ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_chair_that_fails_is_stood_in_for_and_the_page_says_so(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    def reply(request: RecordedRequest) -> FakeReply:
        if not is_closing(request):
            return text(f"{role_of(request)} speaks.")
        return error(500, "INTERNAL") if role_of(request) == "COORDINATOR" else text("Use a second disk.")

    fake.reply = reply
    page = run_once(home, env, code=7, max_rounds=1)
    assert front_matter(page)["status"] == "degraded"
    assert "The closing call of COORDINATOR failed (server)" in page
    assert "Use a second disk." in section(page, "Decision")
    assert "Synthesis by STRATEGIST" in page
    assert "instead of COORDINATOR" in page
    assert receipts(home)[-1]["calls"] == 5
    session = json.loads((home / "session_states" / "strategist_session.json").read_bytes())
    assert session["tasks"][-1]["messages"][-1]["text"] == "Use a second disk."


def test_when_every_closing_call_fails_nothing_claims_a_synthesis(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    fake.reply = lambda request: error(500, "INTERNAL") if is_closing(request) else text("Words.")
    page = run_once(home, env, code=7, max_rounds=1)
    assert [role_of(request) for request in fake.requests if is_closing(request)] == list(ROLES)
    assert front_matter(page)["status"] == "degraded"
    assert "## No decision" in page
    assert page.count("fake failure 500") == 1
    assert "The closing calls of COORDINATOR, STRATEGIST and AUDITOR failed (server): " in page
    assert "Synthesis" not in page
    assert "## Decision" not in page
    [receipt] = receipts(home)
    assert receipt["status"] == "degraded"


def test_two_runs_that_differ_only_in_who_answered_first_do_not_part(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    env = {**env, "COUNCIL_TEST_RUN_SECRET": "5e" * 32}
    for first, last in (("COORDINATOR", "AUDITOR"), ("AUDITOR", "COORDINATOR")):
        answered = threading.Event()

        def say(
            role: str, request: RecordedRequest, first: str = first, last: str = last, go: threading.Event = answered
        ) -> str:
            if role == last:
                assert go.wait(30)
            return f"{role} {round_of(request)}"

        fake.reply = council_says(say)
        with Daemon(home, "--once", env=env) as daemon:
            lane = first.lower()  # each with a memory of its own
            config = {"max_rounds": 1, "protocol": "independent"}
            drop_command(home, command(config=config, session=lane, output_artifact_path=f"artifacts/{lane}.md"))
            for role in (first, "STRATEGIST"):
                daemon.wait("turn_ended", role=role)
            answered.set()
            daemon.process.wait(60)
    one, other = [receipt["run_id"] for receipt in receipts(home)]
    first, second = ([name for name in steps(home, run) if name.startswith("round/1/")][-1] for run in (one, other))
    assert (first, second) == ("round/1/AUDITOR", "round/1/COORDINATOR")
    assert "The runs do not differ" in run_cli("diff", one, other, cwd=home).stdout
