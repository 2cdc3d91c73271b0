"""The scripted model and its file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from council.errors import ConfigError, ModelError
from council.llm.base import Message, Reply, TurnInfo, Usage
from council.llm.scripted import ScriptedModel

ASK = [Message("user", "What now?")]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.yaml"


def model_of(script: Path, text: str) -> ScriptedModel:
    script.write_text(text, encoding="utf-8")
    return ScriptedModel.from_file(script)


async def say(model: ScriptedModel, role: str = "", round: int = 0, purpose: str = "turn") -> Reply:
    return await model.generate(ASK, system="", info=TurnInfo(role=role, round=round, purpose=purpose))  # type: ignore[arg-type]


async def test_an_entry_is_taken_only_by_the_role_round_and_purpose_it_names(script: Path) -> None:
    model = model_of(
        script,
        """
        replies:
          - {role: AUDITOR, text: auditor}
          - {round: 2, text: second round}
          - {purpose: synthesis, text: the synthesis}
          - {role: STRATEGIST, round: 1, purpose: turn, text: exact}
        """,
    )
    assert (await say(model, "STRATEGIST", 1)).text == "exact"
    assert (await say(model, "STRATEGIST", 1, "synthesis")).text == "the synthesis"
    assert (await say(model, "STRATEGIST", 2)).text == "second round"
    assert (await say(model, "AUDITOR", 2)).text == "auditor"


async def test_entries_without_conditions_are_taken_in_their_order(script: Path) -> None:
    model = model_of(script, "replies: [{text: a}, {text: b}]")
    assert [(await say(model)).text, (await say(model)).text] == ["a", "b"]


async def test_times_says_how_many_calls_an_entry_serves_and_zero_means_all(script: Path) -> None:
    model = model_of(script, "replies: [{text: twice, times: 2}, {text: for ever, times: 0}, {text: never}]")
    assert [(await say(model)).text for _ in range(5)] == ["twice", "twice", "for ever", "for ever", "for ever"]


async def test_the_default_serves_what_no_entry_does(script: Path) -> None:
    model = model_of(script, "replies: [{role: A, text: a}]\ndefault: {text: other}")
    assert [(await say(model, role)).text for role in "BAAB"] == ["other", "a", "other", "other"]


async def test_with_nothing_left_the_error_names_role_round_and_purpose(script: Path) -> None:
    model = model_of(script, "replies: [{text: a}]")
    await say(model)
    with pytest.raises(ModelError, match="role AUDITOR, round 3, purpose synthesis") as caught:
        await say(model, "AUDITOR", 3, "synthesis")
    assert (caught.value.kind, caught.value.fatal) == ("request", True)
    assert "`default`" in caught.value.fix


async def test_a_new_process_gives_the_same_reply_for_the_same_turn(script: Path) -> None:
    text = """
        replies:
          - {role: A, round: 1, purpose: turn, text: a1}
          - {role: B, round: 1, purpose: turn, text: b1}
          - {role: A, round: 2, purpose: turn, text: a2}
        """
    first = model_of(script, text)
    said = [(await say(first, "A", 1)).text, (await say(first, "B", 1)).text]
    restarted = ScriptedModel.from_file(script)
    assert (await say(restarted, "A", 2)).text == "a2"
    assert [(await say(restarted, "A", 1)).text, (await say(restarted, "B", 1)).text] == said


async def test_an_error_entry_raises_that_error(script: Path) -> None:
    model = model_of(script, "replies: [{error: {kind: rate, message: too many, retry_after_s: 1.5}}]")
    with pytest.raises(ModelError, match="too many") as caught:
        await say(model)
    assert (caught.value.kind, caught.value.retry_after_s, caught.value.model) == ("rate", 1.5, "scripted:script")


async def test_usage_finish_and_name_come_from_the_script(script: Path) -> None:
    model = model_of(
        script,
        "model: rehearsal\ncontext_tokens: 900\n"
        "replies: [{text: cut, finish: length, usage: {input_tokens: 3, output_tokens: 2}}, {text: whole}]",
    )
    assert (model.name, model.context_tokens) == ("scripted:rehearsal", 900)
    assert await say(model) == Reply("cut", "length", "scripted:rehearsal", Usage(3, 2))
    assert await say(model) == Reply("whole", "stop", "scripted:rehearsal", None)


async def test_text_is_literal(script: Path) -> None:
    model = model_of(script, "replies: [{text: '{task} ${HOME} %s'}]")
    assert (await say(model)).text == "{task} ${HOME} %s"


async def test_a_delayed_reply_can_be_cancelled(script: Path) -> None:
    model = model_of(script, "replies: [{text: late, delay_s: 3600}]")
    call = asyncio.create_task(say(model))
    await asyncio.sleep(0)  # one turn of the loop: the call has begun to wait
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


BAD_SCRIPTS = {
    "unknown field": ("replies: [{text: a, txt: b}]", "replies[0].txt: is not a known key"),
    "unknown top field": ("reply: []", "reply: is not a known key"),
    "unknown kind": (
        "replies: [{text: a}, {error: {kind: nope}}]",
        'replies[1].error.kind: is the text "nope"; known: auth, billing, ',
    ),
    "text and error": ("replies: [{text: a, error: {kind: rate}}]", "replies[0]: give either `text` or `error`"),
    "neither": ("replies: [{role: A}]", "replies[0]: give either `text` or `error`"),
    "empty text": ("replies: [{text: ' '}]", "replies[0]: `text` is empty"),
    "a round in quotes": ("replies: [{round: '2', text: a}]", "replies[0].round: must be a whole number"),
    "negative delay": ("replies: [{text: a, delay_s: -1}]", "replies[0].delay_s: is -1, but must be at least 0"),
    "endless delay": ("replies: [{text: a, delay_s: .inf}]", "replies[0].delay_s: must be a finite number"),
    "default with conditions": ("default: {text: a, role: B}", "default.role: is not a known key"),
    "nothing to say": ("model: m", "script: give `replies` or `default`"),
    "a list": ("- {text: a}", "must be a mapping"),
    "not YAML": ("replies: [", "not YAML"),
    "empty": ("", "must be a mapping"),
}


@pytest.mark.parametrize(("text", "words"), BAD_SCRIPTS.values(), ids=BAD_SCRIPTS)
def test_a_script_that_does_not_fit_is_refused_by_file_and_field(script: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        model_of(script, text)
    assert caught.value.message.startswith(f"{script}: ")
    assert words in caught.value.message
    assert "docs/scripted-model.md" in caught.value.fix
    assert "\n" not in caught.value.message


def test_a_script_that_is_not_there_is_a_config_error(script: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        ScriptedModel.from_file(script)


def test_a_script_that_is_not_utf8_is_a_config_error(script: Path) -> None:
    script.write_bytes(b"replies: [{text: \xff}]")
    with pytest.raises(ConfigError, match="not YAML"):
        ScriptedModel.from_file(script)


def test_the_example_of_the_documentation_loads(script: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "scripted-model.md"
    example = page.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    assert model_of(script, example).name == "scripted:rehearsal"
