"""The block that ends a turn: read, taken out of the speech, asked for again."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from pydantic import BaseModel

from council.llm.base import Message
from council.llm.structured import ReplyProblem
from council.turns.closing_block import ClosingBlock, read_block
from council.turns.result import Failure, TurnResult

INSTRUCTION = Message("user", "End with a vote.")


class Vote(BaseModel):
    vote: str


def only_yes_or_no(vote: Vote) -> Sequence[ReplyProblem]:
    return [] if vote.vote in ("yes", "no") else [ReplyProblem("must be yes or no", "vote")]


def block(vote: object) -> str:
    return f"```council\n{json.dumps({'vote': vote})}\n```"


class Repairs:
    """Replies to repair turns, in their order."""

    def __init__(self, *replies: TurnResult | str) -> None:
        self.replies = [TurnResult(reply, "m") if isinstance(reply, str) else reply for reply in replies]
        self.requests: list[tuple[Message, ...]] = []

    async def ask(self, number: int, messages: tuple[Message, ...]) -> TurnResult:
        assert number == len(self.requests) + 1
        self.requests.append(messages)
        return self.replies[number - 1]


async def read(text: str, *replies: TurnResult | str, required: bool = False) -> tuple[ClosingBlock[Vote], Repairs]:
    repairs = Repairs(*replies)
    result = TurnResult(text, "m")
    found = await read_block(result, Vote, INSTRUCTION, repairs.ask, check=only_yes_or_no, required=required)
    return found, repairs


@pytest.mark.parametrize(
    ("text", "speech"),
    [
        (f"I agree.\n\n{block('yes')}", "I agree."),
        (block("yes"), ""),
        (f"I agree.\n\n{block('yes')}\n[ORCHESTRATOR_REQUEST: READ_FILE(a.md)]",
         "I agree.\n\n[ORCHESTRATOR_REQUEST: READ_FILE(a.md)]"),
    ],
    ids=["behind prose", "alone", "before a request"],
)  # fmt: skip
async def test_a_block_that_ends_a_turn_is_read_and_taken_out_of_it(text: str, speech: str) -> None:
    found, repairs = await read(text)
    assert found.value == Vote(vote="yes")
    assert (found.speech, found.fault, repairs.requests) == (speech, "", [])


@pytest.mark.parametrize("text", ["I agree.", f"{block('yes')}\n\nThat is what a colleague wrote."])
async def test_a_turn_without_a_block_of_its_own_is_an_answer(text: str) -> None:
    found, repairs = await read(text)
    assert found == ClosingBlock(None, text)
    assert repairs.requests == []


@pytest.mark.parametrize("text", ["I agree.", f"{block('yes')}\n\nThat is what a colleague wrote."])
async def test_a_block_that_must_be_there_is_asked_for(text: str) -> None:
    found, repairs = await read(text, json.dumps({"vote": "no"}), required=True)
    assert len(repairs.requests) <= 1
    assert found.value is not None


@pytest.mark.parametrize("vote", ["maybe", 3])
async def test_one_that_does_not_fit_is_asked_for_again_with_what_is_wrong(vote: object) -> None:
    found, repairs = await read(f"I agree.\n\n{block(vote)}", json.dumps({"vote": "yes"}))
    assert (found.value, found.speech, found.repair) == (Vote(vote="yes"), "I agree.", "turn_1")
    [request] = repairs.requests
    assert request[0] == INSTRUCTION
    assert "`vote`" in request[-1].text
    assert [reply.text for reply in found.repairs] == [json.dumps({"vote": "yes"})]


async def test_after_two_repairs_the_speech_stands_without_the_block_and_with_its_fault() -> None:
    found, repairs = await read(f"I agree.\n\n{block('maybe')}", "Hm.", json.dumps({"vote": "perhaps"}))
    assert (found.value, found.speech, found.repair, len(repairs.requests)) == (None, "I agree.", "turn_2", 2)
    assert "must be yes or no" in found.fault


async def test_a_repair_that_fails_is_the_last_one() -> None:
    failed = TurnResult("", "m", failure=Failure("timeout", "too late"))
    found, repairs = await read(f"I agree.\n\n{block('maybe')}", failed, "never asked")
    assert (found.value, found.repairs, len(repairs.requests)) == (None, (failed,), 1)
    assert found.fault


async def test_a_reply_that_was_cut_off_is_never_completed() -> None:
    repairs = Repairs(json.dumps({"vote": "no"}))
    result = TurnResult('I agree.\n\n```council\n{"vote": "ye', "m", finish="length")
    found = await read_block(result, Vote, INSTRUCTION, repairs.ask, check=only_yes_or_no)
    assert found.value is None or found.value.vote == "no"
