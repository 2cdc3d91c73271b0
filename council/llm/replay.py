"""`ReplayModel`: the replies of a recorded run, in place of a language model (`cassette:<file>`).

A request is answered by its hash. Calls that asked the very same are told apart by role, round and purpose, and
answered in their order, again from the first when all were given. A request that was not recorded fails loudly
(`ReplayMiss`), with what comes nearest to it; nothing is made up. Recorded failures fail again.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import Any, TypeVar, Unpack

import msgspec

from council.errors import ConfigError, ModelError, ReplayMiss
from council.ids import sha256_hex
from council.llm.base import Message, Reply, RequestOptions, TurnInfo, request_hash, tell
from council.llm.cassette import Cassette, CassetteCall, RecordedRun, load
from council.llm.providers import Provider, Setup
from council.markup import equal_at_start

log = logging.getLogger(__name__)
T = TypeVar("T")

PROVIDER = "cassette"
_CHARS_PER_TOKEN = 3  # only to give the window a size; `window_chars` is what counts
_NO_WINDOW_TOKENS = 1_000_000
_COMPARED_LINES = 400
_CONTEXT_LINES = 3
_DIFF_LINES = 15  # of each kind: taken away, added, the same
_LINE_CHARS = 300
_EXCERPT_CHARS = 120
_SEALS = re.compile(r"(?m)^<<(?:DATA (.*) nonce=\w+( path=.*) sha256=.*|END \w+)>>$")  # they differ where the text does
_THOUGHTS = "<think></think>\n"  # in the place of those that were not kept


class ReplayModel:
    """One per process: it remembers what it has given."""

    def __init__(self, cassette: Cassette) -> None:
        self.header = cassette.header
        self.name = _named(cassette.header.model)
        self.context_tokens = cassette.header.runs[0].window_chars // _CHARS_PER_TOKEN or _NO_WINDOW_TOKENS
        self._calls = cassette.calls
        models = (cassette.header.model, *(call.model for call in cassette.calls if call.model))
        self._models = tuple(dict.fromkeys(models))
        self._by_request: dict[str, list[CassetteCall]] = defaultdict(list)
        for call in cassette.calls:
            self._by_request[call.request].append(call)
        self._given: Counter[tuple[object, ...]] = Counter()  # secrets and replies, by what was asked

    def run_of(self, run_secret: str) -> RecordedRun:
        """Returns the record of the run with this secret (hex), else the first."""
        runs = self.header.runs
        return next((run for run in runs if run.run_secret == run_secret), runs[0])

    def opinions_of(self, run_secret: str) -> str:
        """The name that signs the second opinions of that run; empty where it had none."""
        signed = self.run_of(run_secret).opinions
        return _named(signed) if signed else ""

    def run_secret_for(self, task: str) -> bytes:
        """The secret of the recorded run: a run with another one asks in other words. Of several runs, that of the same
        task, in their order; a task that is none of theirs gets the first's, and its calls are missed."""
        digest = sha256_hex(task)
        known = [run for run in self.header.runs if run.task_sha256 == digest] or self.header.runs[:1]
        return bytes.fromhex(self._next_of(known, digest).run_secret)

    def _next_of(self, equal: Sequence[T], *key: object) -> T:
        self._given[key] += 1
        return equal[(self._given[key] - 1) % len(equal)]

    async def generate(self, messages: Sequence[Message], **asked: Unpack[RequestOptions]) -> Reply:
        await asyncio.sleep(0)  # a call like any other: those of one round take turns
        system, info = asked["system"], asked.get("info") or TurnInfo()
        requests = (request_hash(model, system, messages) for model in self._models)  # agents may have had their own
        request = next((request for request in requests if request in self._by_request), "")
        place, equal = (info.role, info.purpose, info.round), self._by_request.get(request, [])
        calls = [call for call in equal if (call.role, call.purpose, call.round) == place] or equal
        if not calls:
            now = prompt_text(system, messages)
            # By what it is for; among equals the one that begins most alike.
            nearest = max(
                (call for call in self._calls if call.messages is not None),
                key=lambda call: (
                    *(call.role == info.role, call.purpose == info.purpose, call.round == info.round),
                    _parting(prompt_text(call.system, call.messages or ()), now),
                ),
                default=None,
            )
            where = _where(info.role, info.round, info.purpose)
            message = f"{self.name} has no reply to what {where} is asked"
            fix = "what the agents are told differs from the recorded run: command, documents, personas, memory or version"
            if nearest is None:
                raise ReplayMiss(f"{message}; no prompt like it is recorded.", fix=fix, model=self.name)
            recorded = prompt_text(nearest.system, nearest.messages or ())
            old, new = recorded.split("\n"), now.split("\n")
            at = _parting(recorded, now)
            titles = (line.strip("= ") for line in reversed(old[: at + 1]) if line.startswith("== "))
            section = next(titles, "the beginning")
            parting = f"in {section}: recorded {_excerpt(old, new, at)}, asked now {_excerpt(new, old, at)}."
            diff = "\n".join(first_difference(recorded, now))
            near = _where(nearest.role, nearest.round, nearest.purpose)
            log.error("%s; the nearest recorded prompt is that of %s:\n%s", message, near, diff)
            raise ReplayMiss(
                f"{message}. The nearest recorded prompt, of {near}, differs from it {parting}",
                fix=f"{fix}; the log shows the difference",
                model=self.name,
                diff=diff,
            )
        call = self._next_of(calls, request, *place)
        if call.failed is not None:
            raise ModelError(call.failed.kind, call.failed.message, fix=call.failed.fix, model=self.name)
        text = f"{_THOUGHTS}{call.text}" if call.thoughts else call.text
        tell(asked, text)
        replaced = tuple(msgspec.structs.replace(model, model=_named(model.model)) for model in call.replaced)
        return Reply(text, call.finish, _named(call.model or self.header.model), call.usage, replaced=replaced)

    async def aclose(self) -> None:
        """Nothing to close."""


def _named(recorded: str) -> str:
    """The name that signs a reply: never the bare name of the model, which did not answer now."""
    return f"{PROVIDER}:{recorded.removeprefix(f'{PROVIDER}:')}"


def prompt_text(system: str, messages: Sequence[Any]) -> str:
    """A request as one text: the system text, then each message under a line that names it."""
    parts = [f"== system ==\n{system}"]
    parts += [f"== message {number} ({message.role}) ==\n{message.text}" for number, message in enumerate(messages, 1)]
    return "\n".join(parts)


def first_difference(before: str, after: str) -> Iterator[str]:
    """The first difference of two texts as a unified diff, bounded in lines and in their length."""
    # NOTE: only what follows the equal beginning is compared line by line: difflib is quadratic.
    equal = max(0, _parting(before, after) - _CONTEXT_LINES)
    old, new = (text.split("\n")[equal : equal + _COMPARED_LINES] for text in (before, after))
    diff = difflib.unified_diff(old, new, n=_CONTEXT_LINES, lineterm="")
    hunk = islice(diff, 3, None)  # behind two headers and its place
    yield from ("--- recorded", "+++ asked now", f"@@ line {equal + 1} @@")
    told: Counter[str] = Counter()
    for line in takewhile(lambda line: not line.startswith("@@"), hunk):
        told[line[0]] += 1
        if told[line[0]] <= _DIFF_LINES:
            yield line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}…"
        elif told[line[0]] == _DIFF_LINES + 1:
            yield f"{line[0]}…"


def _parting(one: str, other: str) -> int:
    """The first line in which two texts differ. What a fence's marks tell of its text counts only where nothing else differs."""
    bare_one, bare_other = (_SEALS.sub(r"\1\2", text) for text in (one, other))
    if bare_one == bare_other:
        bare_one, bare_other = one, other
    return equal_at_start(bare_one.split("\n"), bare_other.split("\n"))


def _excerpt(lines: list[str], others: list[str], at: int) -> str:
    if at >= len(lines):
        return "nothing more"
    line = lines[at]
    same = equal_at_start(line, others[at]) if at < len(others) else 0
    start = max(0, same - _EXCERPT_CHARS // 2)
    shown = " ".join(line[start : start + _EXCERPT_CHARS].replace("`", "'").split())
    return f"`{'…' if start else ''}{shown}{'…' if start + _EXCERPT_CHARS < len(line) else ''}`"


def _where(role: str, round_no: int, purpose: str) -> str:
    return f"{role or 'no role'}, round {round_no} ({purpose})"


def _build(setup: Setup) -> ReplayModel:
    if not setup.model_id:
        raise ConfigError("cassette: names no file.", fix="write cassette:<file>")
    setup.require_known_options(())
    return ReplayModel(load(setup.home / setup.model_id))


provider = Provider(_build, local=True, summary="the replies of a recorded run, from a file")
