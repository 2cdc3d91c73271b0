"""How a cassette answers: by what is asked, repeats in their order, and what comes nearest where nothing fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from council.errors import ConfigError, ModelError, ReplayMiss
from council.llm.base import Message, TurnInfo, Usage, request_hash
from council.llm.cassette import (
    FORMAT,
    Cassette,
    CassetteCall,
    CassetteFailure,
    Header,
    RecordedRun,
    decode,
    encode,
    load,
)
from council.llm.replay import ReplayModel, first_difference
from council.safety.untrusted import fence

RUN = RecordedRun("20260101-000000-aaaaaaaa", "5e" * 32, "0" * 64, 9_000, "succeeded")
HEAD = Header(FORMAT, "0.1.0", 3, "gemini:g", (RUN,))
AUDITOR = TurnInfo("AUDITOR", "turn", 2)


def call(text: str, said: str, info: TurnInfo = AUDITOR, **keys: object) -> CassetteCall:
    request = request_hash("gemini:g", "s", [Message("user", said)])
    return CassetteCall("x", request, info.role, info.purpose, info.round, "s", (Message("user", said),), text, **keys)  # type: ignore[arg-type]


def model_of(*calls: CassetteCall) -> ReplayModel:
    return ReplayModel(Cassette(HEAD, calls))


async def ask(model: ReplayModel, said: str, info: TurnInfo | None = AUDITOR, system: str = "s") -> str:
    return (await model.generate([Message("user", said)], system=system, info=info)).text


async def test_equal_requests_are_answered_in_their_order_and_then_from_the_first() -> None:
    model = model_of(call("one", "a"), call("two", "a"), call("other", "b"))
    assert [await ask(model, "a") for _ in range(5)] == ["one", "two", "one", "two", "one"]


async def test_equal_requests_of_several_turns_are_told_apart_by_their_turn() -> None:
    later = TurnInfo("AUDITOR", "turn", 3)
    model = model_of(call("second", "a"), call("third", "a", later))
    assert [await ask(model, "a", later), await ask(model, "a"), await ask(model, "a", later)] == [
        "third",
        "second",
        "third",
    ]
    assert await ask(model, "a", None) == "second"


async def test_a_reply_carries_its_tokens_and_a_name_that_is_not_the_models() -> None:
    model = model_of(call("one", "a", usage=Usage(10, 2), finish="length", model="gemini:fallback"))
    reply = await model.generate([Message("user", "a")], system="s")
    assert (reply.model, reply.finish, reply.usage) == ("cassette:gemini:fallback", "length", Usage(10, 2))
    assert (model.name, model.run_of("").window_chars, model.context_tokens) == ("cassette:gemini:g", 9_000, 3_000)


async def test_a_recorded_failure_fails_again() -> None:
    model = model_of(call("", "a", failed=CassetteFailure("blocked", "the provider refused.", "ask otherwise")))
    with pytest.raises(ModelError) as caught:
        await ask(model, "a")
    assert (caught.value.kind, caught.value.message, caught.value.fix) == (
        "blocked",
        "the provider refused.",
        "ask otherwise",
    )


@pytest.mark.parametrize("system", ["s", "t"])
async def test_another_system_text_or_message_is_a_miss_that_ends_the_run(system: str) -> None:
    model = model_of(call("one", "a"))
    with pytest.raises(ReplayMiss) as caught:
        await ask(model, "A" if system == "s" else "a", system=system)
    assert (caught.value.fatal, caught.value.retryable, caught.value.code) == (True, False, "replay_miss")


async def test_a_miss_shows_the_turn_of_the_same_agent_and_round() -> None:
    strategist = TurnInfo("STRATEGIST", "turn", 2)
    model = model_of(
        call("1", "begin\nthree\nend"), call("2", "begin\nfour\nend", strategist), call("3", "else", TurnInfo())
    )
    with pytest.raises(ReplayMiss) as caught:
        await ask(model, "begin\nfive\nend", strategist)
    assert "what STRATEGIST, round 2 (turn) is asked" in caught.value.message
    assert "in message 1 (user): recorded `four`, asked now `five`." in caught.value.message
    assert caught.value.data["diff"] == "\n".join([
        "--- recorded",
        "+++ asked now",
        "@@ line 2 @@",
        " s",
        " == message 1 (user) ==",
        " begin",
        "-four",
        "+five",
        " end",
    ])  # fmt: skip


OFFERS = "# Angebote\nA 1\nB 2\nC 3\nD 4\nE 5\nF 6\nG 7\nH 8"


@pytest.mark.parametrize(
    ("text", "path", "sha256", "told", "shown"),
    [
        (OFFERS.replace("H 8", "H 9"), "a.md", "2", "recorded `9| H 8`, asked now `9| H 9`.", "   9| H 9"),
        (OFFERS, "b.md", "1", "path=a.md sha256=1>>`, asked now `", "<<DATA E1"),
        (OFFERS, "a.md", "2", "sha256=1>>`, asked now `", "<<DATA E1"),
    ],
    ids=["another line", "another name", "the same text of another file"],
)
async def test_a_miss_names_the_line_of_a_document_that_differs(
    text: str, path: str, sha256: str, told: str, shown: str
) -> None:
    def fenced(text: str, path: str, sha256: str) -> str:
        return fence(text, secret=b"x", source_id="E1", path=path, sha256=sha256, ordinal=1)

    model = model_of(call("one", fenced(OFFERS, "a.md", "1")))
    with pytest.raises(ReplayMiss) as caught:
        await ask(model, fenced(text, path, sha256))
    assert told in caught.value.message
    assert f"\n+{shown}" in caught.value.data["diff"]


async def test_without_any_prompt_a_miss_says_so() -> None:
    model = model_of(CassetteCall("memory/summary", "0" * 64, text="short"))
    with pytest.raises(ReplayMiss, match="no prompt like it is recorded"):
        await ask(model, "a")


def test_a_difference_is_bounded_in_lines_and_in_their_length() -> None:
    before, after = ("\n".join(f"{word} {n} {'x' * 1_000}" for n in range(50_000)) for word in ("old", "new"))
    shown = list(first_difference(before, after))
    assert len(shown) < 45
    assert max(len(line) for line in shown) < 310


def test_what_is_written_is_read(tmp_path: Path) -> None:
    calls = (
        call("größe \ud7ff", "a"),
        call("two", "b", usage=Usage(1, 2)),
        CassetteCall("memory/summary", "0" * 64, text="x"),
    )
    (tmp_path / "x").write_bytes(encode(HEAD, calls))
    cassette = load(tmp_path / "x")
    assert cassette.calls == calls
    assert (cassette.header.calls, cassette.header.runs) == (3, HEAD.runs)


def test_no_byte_can_be_changed_unseen() -> None:
    data = encode(HEAD, [call("a reply", "a")])
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises(ConfigError, match=r"line [123]: "):
            decode(bytes(changed), "x")


def test_a_folder_is_no_cassette(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a regular file"):
        load(tmp_path)
