"""Replies of models as validated objects: what is read, what is repaired, what is refused, and the repair turns."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Unpack

import pytest
from pydantic import BaseModel, ConfigDict

from council.errors import ModelError
from council.llm.base import Message, ModelAround, Reply, RequestOptions
from council.llm.gemini import GeminiModel
from council.llm.scripted import Script, ScriptedModel
from council.llm.structured import (
    MAX_RESPELLED_CHARS,
    Reading,
    ReplyProblem,
    ask_structured,
    extract_block,
    parse,
    parse_block,
    repair_messages,
    repair_prompt,
    repair_turns,
    validate,
    without_thoughts,
)
from council.redaction import Secret
from tests.fake_gemini import FakeGemini, in_turn
from tests.fake_gemini import text as says
from tests.json_damages import DAMAGES, Opinion, damaged, opinion, spelled


class Claim(BaseModel):
    text: str
    evidence: tuple[str, ...] = ()


class Stance(BaseModel):
    position: str
    confidence: Literal["high", "low"]
    votes: int = 0
    claims: tuple[Claim, ...] = ()


GOOD = '{"position": "ship", "confidence": "high"}'
MEANT = Stance(position="ship", confidence="high")
OTHER = '{"position": "wait", "confidence": "low"}'


CUT = "the reply broke off before its end"


def problem_of(parsed: Reading[Stance]) -> str:
    assert parsed.value is None
    [problem] = parsed.problems
    return problem.told


# ── what is read ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("reply", "repair"),
    [
        (GOOD, "none"),
        (f"\ufeff  {GOOD}\r\n", "none"),
        (f"```json\n{GOOD}\n```", "fences"),
        (f"~~~\n{GOOD}\n~~~", "fences"),
        (f"Sure [1]:\n\n```\n{GOOD}\n```\n\nAnything else?", "fences"),
        (f"  ```JSON\n  {GOOD}\n  ```\nThat is all.", "fences"),
        (f"```json\n{GOOD}```", "fences"),
        (f"  ```JSON\n  {GOOD}```\nThat is all.", "fences"),
        (f"```json\r\n{GOOD}```\r\nThat is all.", "fences"),
        (f"```json {GOOD}\n```", "fences"),
        (f"```json\n{GOOD}", "fences"),
        (f"```json {GOOD} ```", "prose"),
        (f"Here you are: {GOOD} — done.", "prose"),
        (f'```python\nprint({{"x": 1}})\n```\n```json\n{GOOD}\n```', "fences"),
        (f'<think>{{"x": 1}}</think>{GOOD}', "think"),
        (f"<think>\n{OTHER}\n</think>\n```json\n{GOOD}\n```", "think"),
        (f"So {{first}} I think:\n{OTHER}\n</think>\n\n{GOOD}", "think"),
        (f"<THINKING>a</THINKING> <think>b</think> {GOOD}", "think"),
        ("{position: 'ship', confidence: 'high',}", "json_repair"),
        ("```json\n{position: 'ship', confidence: 'high',}\n```", "json_repair"),
    ],
)
def test_an_object_is_found_behind_thoughts_in_a_fence_and_amid_prose_and_how_is_said(reply: str, repair: str) -> None:
    parsed = parse(reply, Stance, complete=True)
    assert (parsed.value, parsed.repair, parsed.problems) == (MEANT, repair, ())


@pytest.mark.parametrize(
    "said",
    [
        "“curly” ‘quotes’ and it's",
        "```json\n{}\n```",
        "a </think> tag\n</think>\nand <think>",
        ' {"position": "inner", "confidence": "low"} ',
        "// no comment, # none either, trailing,",
        "\ufeff zero\u200bwidth \u2028 line",
        'ends with a backslash \\ and a quote "',
    ],
)
@pytest.mark.parametrize("end", ["}", ",}"])
def test_what_stands_inside_a_text_is_never_touched(said: str, end: str) -> None:
    reply = json.dumps({"confidence": "high", "position": said})[:-1] + end
    assert parse(reply, Stance, complete=True).value in (
        Stance(position=said, confidence="high"),
        *([None] if end == ",}" else []),
    )


def test_prose_around_the_object_is_kept_without_the_thoughts() -> None:
    parsed = parse(f"<think>hm</think>Before.\n```json\n{GOOD}\n```\nAfter.", Stance, complete=True)
    assert (parsed.before, parsed.after) == ("Before.", "After.")
    assert without_thoughts("<think>hm</think>\nWords.") == "Words."


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "no JSON object"),
        ("I would rather not say.", "no JSON object"),
        ("<think>It never stopped", "no JSON object"),
        (f"{GOOD}\n{OTHER}", "more than one JSON object"),
        (f"{GOOD} {GOOD}", "more than one JSON object"),
        (f"```json\n{GOOD}\n```\nOr rather:\n```json\n{OTHER}\n```", "more than one JSON object"),
        (f"{OTHER}\n\n```json\n{GOOD}\n```", "more than one JSON object"),
        (f"Mine is {OTHER}, now:\n\n```json\n{GOOD}\n```", "more than one JSON object"),
        (f"[{GOOD}]", "input should be an object"),
        (f"[{GOOD}, {OTHER}]", "input should be an object"),
        (f"[{GOOD},", CUT),
        (f"{GOOD}]", "not JSON at"),
        (f'{GOOD}, "votes": 3', "not JSON at"),
        ('{"position": "a", "position": "b", "confidence": "low"}', "stands twice"),
        ("{position: 'a', \"position\": 'b', confidence: 'low'}", "not JSON at"),
        ('{"position": "a", "confidence": "low", "votes": NaN}', "is no value of JSON"),
        ('{"position": "a", "confidence": "low", "votes": -Infinity}', "is no value of JSON"),
        ('{"position": "a", "confidence": "low", "votes": 1e999}', "out of range"),
        ("{position: 'a', confidence: 'low', votes: 1e999}", "not JSON at"),
        ('{"position": "a", "confidence": "low", "votes": 9223372036854775808}', "out of range"),
        ('{"position": "a", "confidence": "low", "votes": ' + "9" * 10_000 + "}", "out of range"),
        ('{"position": "\\ud800", "confidence": "low"}', "half of a"),
        ('{"a": ' * 65 + "1" + "}" * 65, "nested deeper"),
        ('{"a": ' * 100_000, "nested deeper"),
        ('{"position": "' + "x" * 2_000_000 + '"}', "is longer than"),
        ('{"position": "a", "confidence": high}', "not JSON at"),
        ('{"position": "5" disk", "confidence": "low"}', "not JSON at"),
        ('{"position": "a", ..., "confidence": "low"}', "not JSON at"),
        ('{"position": ("a"), "confidence": "low"}', "not JSON at"),
        ('{"position": "C:\\dir", "confidence": "low"}', "not JSON at"),
    ],
)
def test_what_is_no_single_sound_object_is_refused_by_its_name(reply: str, problem: str) -> None:
    assert problem in problem_of(parse(reply, Stance, complete=True))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"votes": "3"}, '`votes`: input should be a valid integer; it is "3"'),
        ({"votes": 1.0}, "`votes`: input should be a valid integer; it is 1.0"),
        ({"votes": True}, "`votes`: input should be a valid integer; it is true"),
        ({"votes": None}, "`votes`: input should be a valid integer; it is null"),
        ({"position": ["ship"]}, '`position`: input should be a valid string; it is ["ship"]'),
        ({"confidence": "High"}, "`confidence`: input should be 'high' or 'low'; it is \"High\""),
        ({"claims": {"text": "x"}}, '`claims`: input should be a valid array; it is {"text": "x"}'),
        ({"claims": [{"evidence": []}]}, "`claims[0].text`: is missing; add it"),
        (
            {"claims": [{"text": "a"}, {"text": "b", "evidence": [4]}]},
            "`claims[1].evidence[0]`: input should be a valid string; it is 4",
        ),
        ({"claims": [{"text": "a", "why": 1}]}, "`claims[0].why`: is not a key of this object; remove it"),
        (
            {"mood": "calm"},
            "`mood`: is not a key of this object; remove it; the keys are position, confidence, votes, claims",
        ),
    ],
)
def test_nothing_is_converted_and_a_problem_says_where_and_what_was_expected(wrong: dict[str, Any], told: str) -> None:
    parsed = parse(json.dumps(json.loads(GOOD) | wrong), Stance, complete=True)
    assert parsed.value is None
    assert [str(problem) for problem in parsed.problems] == [told]


def test_all_problems_are_told_at_once_and_at_most_twelve_of_them() -> None:
    two = parse('{"position": 1}', Stance, complete=True)
    assert [problem.path for problem in two.problems] == ["position", "confidence"]
    many = parse(
        json.dumps({"position": "a", "confidence": "low", **{f"k{n}": 1 for n in range(40)}}), Stance, complete=True
    )
    assert len(many.problems) == 13
    assert many.problems[-1].message == "and 28 more of the kind"


def test_a_type_may_allow_keys_it_does_not_know_and_a_check_may_refuse_what_a_type_cannot() -> None:
    class Open(Stance):
        model_config = ConfigDict(extra="ignore")

    def known(stance: Stance) -> Iterable[ReplyProblem]:
        return [ReplyProblem("E9 was never issued", "claims[0].evidence[0]")] if stance.claims else []

    reply = '{"position": "a", "confidence": "low", "mood": "calm", "claims": [{"text": "t", "evidence": ["E9"]}]}'
    assert parse(reply, Open, complete=True).value is not None
    checked = parse(reply, Open, complete=True, check=known)
    assert checked.value is None
    assert str(checked.problems[0]) == "`claims[0].evidence[0]`: E9 was never issued"
    assert validate(json.loads(GOOD), Stance, known) == (MEANT, ())


# ── what was cut off ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("damage", [None, *DAMAGES])
@pytest.mark.parametrize("opening", ["", "Here:\n```json\n"])
def test_an_object_cut_off_at_any_place_is_never_completed(damage: str | None, complete: bool, opening: str) -> None:
    rng = random.Random(7)
    text = damaged(damage, 7)[0] if damage else spelled(opinion(rng), rng)
    for at in range(1, text.rindex("}")):
        assert parse(opening + text[:at], Opinion, complete=complete).value is None, text[:at]


def test_a_strict_object_says_that_it_was_cut_off() -> None:
    for at in range(1, len(GOOD)):
        assert problem_of(parse(GOOD[:at], Stance, complete=True)) == CUT, GOOD[:at]


def test_a_reply_that_did_not_end_by_itself_counts_only_if_the_object_ends_it_and_is_never_repaired() -> None:
    assert parse(GOOD, Stance, complete=False).value == MEANT
    assert parse(f"```json\n{GOOD}\n```", Stance, complete=False).value == MEANT
    assert problem_of(parse(f"{GOOD}\nOn second thoughts, I", Stance, complete=False)) == CUT
    assert problem_of(parse("{position: 'ship', confidence: 'high',}", Stance, complete=False)) == CUT
    assert problem_of(parse("Let me think", Stance, complete=False)) == CUT
    assert "`position`" in problem_of(parse('{"position": 1, "confidence": "low"}', Stance, complete=False))


# ── repair of the spelling ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("entries", "meant"),
    [
        ('"E1", "E2",', ["E1", "E2"]),
        ("'E1', 'E2'", ["E1", "E2"]),
        ("'it's ours', 'b'", None),
        ('"first\nsecond",', ["first\nsecond"]),
        ('"é😀",', ["é😀"]),
        ('"E1" "E2"', None),  # two texts without their comma, or one with quotation marks?
        ('"he said "yes" twice"', None),
        ('"he said "yes", "no" and left", "b"', None),
        ('# not a heading", "b"', None),  # a comment, or a text that lost its first mark?
        ('"a", /* so */ "b"', None),
        ("'a [1, 2'}, {'text': 'b'", None),
        ('"a",, "b"', None),
        (', "a"', None),
        ('"a"] ["b"', None),
        ('"a"]', None),
    ],
)
def test_a_guess_that_says_anything_else_than_the_reply_is_left_to_the_model(
    entries: str, meant: list[str] | None
) -> None:
    reply = '{"position": "p", "confidence": "low", "claims": [{"text": "t", "evidence": [' + entries + "]}]}"
    value = parse(reply, Stance, complete=True).value
    assert (list(value.claims[0].evidence) if value else None) == meant


def test_a_long_misspelled_object_is_left_to_the_model() -> None:
    text = "x" * MAX_RESPELLED_CHARS
    reply = f'{{"position": "{text}", "confidence": "high",}}'
    assert "not JSON at" in problem_of(parse(reply, Stance, complete=True))


@pytest.mark.parametrize("period", ['{"', '[{"', "(1", '"a"', "}/*", "}\\", "a:", '"// ', "'},", '",""', "```", "\n]"])
@pytest.mark.parametrize("opening", ['{"position": "', '{"position": [', "{"])
def test_hostile_text_is_refused_without_long_work(period: str, opening: str) -> None:
    reply = opening + period * (64_000 // len(period)) + '"}'
    assert parse(reply, Stance, complete=True).value is None


async def test_damages_are_read_rightly_or_left_to_a_turn() -> None:
    """No wrong object, whatever is done to the spelling. `-n 0 -s` shows how many are read without a call."""
    print()
    total = 0
    for name in DAMAGES:
        read = 0
        for seed in range(100):
            reply, meant = damaged(name, seed)
            value = parse(reply, Opinion, complete=True).value
            assert value in (None, Opinion.model_validate(meant)), (name, seed)
            read += value is not None
        print(f"{name:24} {read:3} of 100 read without a call")
        total += read
    assert total > 250  # or json-repair mends nothing any more


# ── a block at the end of prose ──────────────────────────────────────────────────────────────────────────────────────

PROSE = 'I would ship {x}.\n\n```json\n{"port": 80}\n```\n\nSo much for that.'


@pytest.mark.parametrize(
    "block",
    [
        f"```council\n{GOOD}\n```",
        f"```council\n{GOOD}```",
        f"```council {GOOD}\n```",
        f"```json\n{GOOD}\n```",
        f"```council\n{GOOD}",
        GOOD,
        f"```council\n{OTHER}\n```\n\nNo, rather:\n\n```council\n{GOOD}\n```",
    ],
)
def test_the_last_block_of_the_right_shape_counts_and_the_prose_before_it_is_kept(block: str) -> None:
    parsed = parse_block(f"{PROSE}\n\n{block}", Stance, complete=True)
    assert (parsed.found, parsed.value) == (True, MEANT)
    assert parsed.before.startswith(PROSE)


def test_what_follows_a_block_is_kept_too() -> None:
    parsed = parse_block(
        f"{PROSE}\n```council\n{GOOD}\n```\n[ORCHESTRATOR_REQUEST: READ_FILE(a.md)]", Stance, complete=True
    )
    assert (parsed.value, parsed.before, parsed.after) == (MEANT, PROSE, "[ORCHESTRATOR_REQUEST: READ_FILE(a.md)]")


@pytest.mark.parametrize(
    "shown",
    [
        "```{r}\nplot(x)\n```",
        "```js {1,3}\nconst a = 1;\n```",
        '~~~json {"a": 1}\n~~~',
        '```json\n{"a": 1}  ```',
    ],
)
@pytest.mark.parametrize("block", [f"```council\n{GOOD}\n```", f"```council {GOOD}\n```", f"```council\n{GOOD} ```"])
def test_the_words_around_a_block_stay_byte_for_byte(shown: str, block: str) -> None:
    before, after = f"See:\n\n{shown}\n\nSo much.", f"And:\n\n{shown}"
    found = extract_block(f"{before}\n\n{block}\n\n{after}", ["position", "confidence"])
    assert (found.text, found.before, found.after) == (GOOD, before, after)
    reply = f"{before}\n\n{block.replace('council', 'json')}\n\n{after}"
    assert parse(reply, Stance, complete=True).before == before


@pytest.mark.parametrize(
    "reply",
    [
        PROSE,
        "Only words, and position: undecided; confidence: low.",
        f"> ```council\n> {GOOD}\n> ```\n\nsaid A; I say nothing.",
        f"````\n```council\n{GOOD}\n```\n````\nis how it is written.",
        "",
    ],
)
def test_a_reply_without_a_block_has_none(reply: str) -> None:
    parsed = parse_block(reply, Stance, complete=True)
    assert (parsed.found, parsed.value, parsed.before) == (False, None, reply)


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ("```council\n{position: 'ship'}\n```", "`confidence`: is missing"),
        ("```council\nship it\n```", "not JSON at"),
        ('```json\n{"position": "ship", "confidence": \n```', CUT),
        ('```council\n{"position": "ship", "conf', CUT),
        (f"```council\n{GOOD}\n{OTHER}\n```", "more than one JSON object"),
        ('{"position": "ship", "confidence": "very"}', "`confidence`: input should be"),
    ],
)
def test_a_block_that_does_not_fit_is_found_and_its_problem_told(block: str, problem: str) -> None:
    parsed = parse_block(f"{PROSE}\n\n{block}", Stance, complete=True)
    assert parsed.found
    assert problem in problem_of(parsed)
    assert parsed.before.startswith(PROSE)


def test_a_block_in_a_reply_that_was_cut_off_counts_only_at_its_end() -> None:
    assert parse_block(f"{PROSE}\n```council\n{GOOD}\n```", Stance, complete=False).value == MEANT
    assert problem_of(parse_block(f"{PROSE}\n```council\n{GOOD}\n```\nAlthough", Stance, complete=False)) == CUT
    assert problem_of(parse_block(PROSE, Stance, complete=False)) == CUT


def test_thoughts_are_no_prose() -> None:
    found = extract_block(f"<think>\n```council\n{OTHER}\n```\n</think>Words.\n```council\n{GOOD}\n```", ["position"])
    assert (found.text, found.before, found.wrapping) == (GOOD, "Words.", "think")


# ── repair turns ─────────────────────────────────────────────────────────────────────────────────────────────────────

ASK = (Message("user", "The documents."), Message("user", "What is your stance?"))


class Recorder(ModelAround):
    """The scripted model, its requests kept."""

    def __init__(self, *texts: str, finish: Sequence[bool] = ()) -> None:
        ends = [*finish, *[True] * len(texts)]
        replies = [
            {"text": text, "finish": "stop" if end else "length"} for text, end in zip(texts, ends, strict=False)
        ]
        super().__init__(ScriptedModel(Script.model_validate({"replies": replies})))
        self.requests: list[tuple[Message, ...]] = []
        self.asked: list[RequestOptions] = []

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        self.requests.append(tuple(messages))
        self.asked.append(asked)
        return await self._inner.generate(messages, **asked)


async def test_a_good_reply_takes_one_call_that_names_the_schema() -> None:
    model = Recorder(GOOD)
    settled = await ask_structured(model, ASK, Stance, system="Be brief.", temperature=0.2)
    assert (settled.value, settled.repair, settled.problems) == (MEANT, "none", ())
    assert model.requests == [ASK]
    assert model.asked == [{"system": "Be brief.", "temperature": 0.2, "schema": Stance.model_json_schema()}]


async def test_a_repair_turn_carries_the_reply_its_problems_and_the_schema() -> None:
    wrong = '{"position": "ship", "confidence": "very", "votes": "3"}'
    model = Recorder(f"<think>hm</think>{wrong}", f"```json\n{GOOD}\n```")
    settled = await ask_structured(model, ASK, Stance, system="")
    assert (settled.value, settled.repair) == (MEANT, "turn_1")
    *request, reply, prompt = model.requests[1]
    assert tuple(request) == ASK
    assert reply == Message("model", wrong)
    assert prompt.role == "user"
    assert "- `confidence`: input should be 'high' or 'low'; it is \"very\"" in prompt.text
    assert '- `votes`: input should be a valid integer; it is "3"' in prompt.text
    assert json.loads(prompt.text.splitlines()[-1]) == Stance.model_json_schema()


async def test_there_are_at_most_two_repair_turns_and_each_reply_is_recorded_with_its_problems() -> None:
    model = Recorder("no JSON", "{position: 1,}", '{"position": "a"}', GOOD)
    settled = await ask_structured(model, ASK, Stance, system="")
    assert len(model.requests) == 3
    assert (settled.value, settled.repair) == (None, "turn_2")
    assert [reading.repair for reading in settled.readings] == ["none", "json_repair", "none"]
    assert [[problem.path for problem in reading.problems] for reading in settled.readings] == [
        [""],
        ["position", "confidence"],
        ["confidence"],
    ]
    assert settled.problems == settled.readings[-1].problems
    assert [len(request) for request in model.requests] == [2, 4, 4]  # the last reply only, so that none grows
    assert "`position`" in model.requests[2][-1].text
    assert model.requests[2][-2].text == "{position: 1,}"


async def test_the_second_turn_can_bring_it_and_a_check_is_made_of_every_reply() -> None:
    def no_ship(stance: Stance) -> Iterable[ReplyProblem]:
        return [ReplyProblem("shipping is out of the question", "position")] if stance.position == "ship" else []

    model = Recorder(GOOD, GOOD, OTHER)
    settled = await ask_structured(model, ASK, Stance, check=no_ship, system="")
    assert settled.value == Stance(position="wait", confidence="low")
    assert settled.repair == "turn_2"
    assert all("shipping is out of the question" in request[-1].text for request in model.requests[1:])


async def test_a_cut_off_reply_is_asked_for_again_and_not_completed() -> None:
    model = Recorder('{"position": "ship", "confidence": "high"', GOOD, finish=(False, True))
    settled = await ask_structured(model, ASK, Stance, system="")
    assert (settled.value, settled.repair) == (MEANT, "turn_1")
    assert problem_of(settled.readings[0]) == CUT
    assert "the reply broke off before its end; write it again from the start" in model.requests[1][-1].text


async def test_a_repair_turn_that_is_cut_off_is_not_completed_either() -> None:
    model = Recorder("none", "{position: 'ship', confidence: 'high',}", "none", finish=(True, False, True))
    settled = await ask_structured(model, ASK, Stance, system="")
    assert settled.value is None
    assert problem_of(settled.readings[1]) == CUT


async def test_no_more_than_two_turns_are_taken() -> None:
    model = Recorder("a", "b", "c", "d")
    settled = await ask_structured(model, ASK, Stance, system="")
    assert len(model.requests) == len(settled.readings) == 3
    assert settled.repair == "turn_2"


async def test_a_failing_model_is_not_hidden() -> None:
    with pytest.raises(ModelError, match="has no reply left"):
        await ask_structured(Recorder("no JSON"), ASK, Stance, system="")


async def test_repair_turns_can_be_steps_of_their_own() -> None:
    said = Reply(f"{PROSE}\n```council\n{{}}\n```\nThat is all.", "stop", "m")
    steps: list[int] = []

    async def step(turn: int, messages: Sequence[Message]) -> Reply:
        steps.append(turn)
        return Reply(GOOD if turn == 2 else "hm", "stop", "m")

    first = parse_block(said.text, Stance, complete=True)
    settled = await repair_turns(first, said, ASK, Stance, step)
    assert steps == [1, 2]
    assert (settled.value, settled.repair) == (MEANT, "turn_2")


async def test_a_turn_without_an_answer_ends_them_with_what_there_is() -> None:
    async def no_answer(turn: int, messages: Sequence[Message]) -> None:
        return None

    said = Reply(f"{PROSE}\n```council\n{{}}\n```", "stop", "m")
    settled = await repair_turns(parse_block(said.text, Stance, complete=True), said, ASK, Stance, no_answer)
    assert (settled.value, settled.repair) == (None, "none")
    assert len(settled.readings) == 1


def test_a_long_reply_is_shown_to_its_model_without_its_middle_and_an_empty_one_not_at_all() -> None:
    problems = [ReplyProblem("there is no JSON object in the reply")]
    long = repair_messages(ASK, "a" * 50_000 + "z" * 50_000, problems, Stance)
    assert len(long[-2].text) < 25_000
    assert "[… 76000 characters left out …]" in long[-2].text
    assert (long[-2].text[0], long[-2].text[-1]) == ("a", "z")
    assert repair_messages(ASK, " \n", problems, Stance) == (*ASK, Message("user", repair_prompt(problems, Stance)))


def test_a_prompt_quotes_no_more_of_a_reply_than_a_line() -> None:
    wrong = json.dumps({"position": "a", "confidence": "x\n\n# Obey me\n" * 400, "k\n" * 400: 1})
    prompt = repair_prompt(parse(wrong, Stance, complete=True).problems, Stance)
    assert max(len(line) for line in prompt.splitlines()[:-1]) < 300
    assert not any(line.startswith("# Obey") for line in prompt.splitlines())


async def test_a_real_client_sends_the_repair_turn_as_a_conversation() -> None:
    with FakeGemini(reply=in_turn(says("Ship it."), says(GOOD))) as fake:
        model = GeminiModel(api_key=Secret("test-key-0123456789"), base_url=fake.url)
        settled = await ask_structured(model, ASK, Stance, system="Be brief.")
        await model.aclose()
    assert (settled.value, settled.repair) == (MEANT, "turn_1")
    first, second = fake.requests
    assert first.body["generationConfig"]["responseJsonSchema"] == Stance.model_json_schema()
    assert second.all_texts[-2] == "Ship it."
    assert "there is no JSON object in the reply" in second.texts[-1]
