"""The digest of an agent's memory that a prompt carries, within a bound of tokens, and which tasks a summary takes in. Pure."""

from __future__ import annotations

import math
import re
from functools import lru_cache

import msgspec

from council.agents.session_file import RememberedTask, Session
from council.safety.untrusted import clean, inert, plain_line, whole_marks

# What was asked once is no example to follow.
_REQUEST = re.compile(r"\[quoted-request(?:[^\[\]\n]|\[[^\[\]\n]{0,600}\]?){0,600}\]?", re.IGNORECASE)
EXCERPT_CHARS = 600
DIGEST_TOKENS = 1_000
SUMMARISE_TASKS = 4  # at once, no fewer: a summary is a call
_UNSUMMARISED_TASKS = 2  # the newest ones stand for themselves
SUMMARY_TOKENS = 300
_TITLE_TOKENS, _ANSWER_TOKENS, _BEGINNING_TOKENS = 41, 200, 25  # so that all tasks of no summary fit beside it


def without_rehearsals(session: Session) -> Session:
    """The memory as a language model may be told of it."""
    return msgspec.structs.replace(session, tasks=tuple(task for task in session.tasks if not task.rehearsed))


def _without_requests(text: str) -> str:
    return _REQUEST.sub("(a request)", inert(clean(text)))


def excerpt(answer: str) -> str:
    if len(answer) <= EXCERPT_CHARS:
        return answer
    return f"{whole_marks(answer[: EXCERPT_CHARS - 2].rsplit(' ', 1)[0])} …"


def estimated_tokens(text: str) -> int:
    """At least as many as a model counts: three ASCII characters make one, any other makes one, rare ones three."""
    if text.isascii():
        return -(-len(text) // 3)
    plain = len(text.encode("ascii", "ignore"))
    rare = len(text.encode("utf-16-le", "surrogatepass")) // 2 - len(text)  # such a character is a pair there
    return math.ceil(plain / 3) + (len(text) - plain) + 2 * rare


def digest(session: Session) -> str:
    """The memory as a prompt carries it, within DIGEST_TOKENS: the summary, then every task that is not in it, oldest
    first. The newest stand with the beginning of their answers, the others at least with their titles. It holds no
    request."""
    tasks = tuple((task.title, task.status, task.answer) for task in _fresh(session))
    return _digest(session.summary.text, tasks)


@lru_cache(maxsize=1)  # the members of a council remember the same
def _digest(summary: str, tasks: tuple[tuple[str, str, str], ...]) -> str:
    summary = short_summary(summary)
    head = f"- Older tasks, in short: {summary}\n" if summary else ""
    newest_first = [_entries(*task) for task in reversed(tasks)]
    left = DIGEST_TOKENS - estimated_tokens(head)
    chosen: list[str] = []
    for size in range(_SIZES):  # all with their titles before any with more
        for at, entries in enumerate(newest_first):
            before = chosen[at] if at < len(chosen) else ""
            cost = estimated_tokens(entries[size]) - estimated_tokens(before)
            if cost > left or at > len(chosen):
                break
            left -= cost
            chosen[at : at + 1] = [entries[size]]
    return head + "".join(reversed(chosen))


_SIZES = 3


def _entries(title: str, status: str, answer: str) -> tuple[str, ...]:
    """A task with its title; with the first words of its answer; with all that is remembered. Each is the beginning of
    the next, so that `forget` finds all three."""
    answer = _cut(_without_requests(answer)[:EXCERPT_CHARS].strip(), _ANSWER_TOKENS)
    title = _cut(plain_line(_without_requests(title), 200), _TITLE_TOKENS)
    head = f"- Task: {title} ({status})\n"
    said = [cut.replace("\n", "\n  ") for cut in (_cut(answer, _BEGINNING_TOKENS), answer)]
    return head, *(f"{head}  The council answered: {each}\n" for each in said)


def _cut(text: str, max_tokens: int) -> str:
    """The text, or its beginning with the cut marked, between words where there is a space to cut at."""
    if estimated_tokens(text) <= max_tokens:
        return text
    kept = max_tokens * 3  # characters, if all are ASCII
    while estimated_tokens(text[:kept]) >= max_tokens:  # one is for the mark
        kept -= max(1, (estimated_tokens(text[:kept]) - max_tokens) // 3)
    words = text[:kept].rsplit(None, 1)[0]
    return f"{whole_marks(words if len(words) > kept // 2 else text[:kept])} …"


def short_summary(text: str) -> str:
    """A summary as it is kept and shown: one paragraph without requests, cut after a sentence where it is too long."""
    line = " ".join(_without_requests(text).split())
    cut = _cut(line, SUMMARY_TOKENS)
    if cut == line:
        return line
    end = max(cut.rfind(mark) for mark in (". ", "! ", "? ", "。", "！", "？"))
    return cut[: end + 1] if end > len(cut) // 2 else cut


def tasks_to_summarise(session: Session) -> tuple[RememberedTask, ...]:
    """Oldest first; none unless there are enough, and enough tasks have passed since the last try."""
    fresh = _fresh(session)
    since = tasks_after(session.tasks, session.summary.tried)
    if len(fresh) < SUMMARISE_TASKS + _UNSUMMARISED_TASKS or len(since) < SUMMARISE_TASKS:
        return ()
    return fresh[:-_UNSUMMARISED_TASKS]


def _fresh(session: Session) -> tuple[RememberedTask, ...]:
    """The tasks that no summary holds: summaries hold no rehearsal."""
    begin = len(session.tasks) - len(tasks_after(session.tasks, session.summary.through))
    return tuple(task for at, task in enumerate(session.tasks) if at >= begin or task.rehearsed)


def tasks_after(tasks: tuple[RememberedTask, ...], run_id: str) -> tuple[RememberedTask, ...]:
    ids = [task.run_id for task in tasks]
    return tasks[ids.index(run_id) + 1 :] if run_id in ids else tasks
