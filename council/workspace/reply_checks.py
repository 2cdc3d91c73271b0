"""The checks of a reply of the workspace's agents that no schema can make, against the pack that the agent was shown.

Each fault goes back to the model in a repair turn. A reply that keeps one is refused whole.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from council.llm.structured import ReplyProblem
from council.workspace.agent_replies import AgentReply, ConciergeReply, DraftReply, NotesReply, TaskCreate, TaskRisk
from council.workspace.context_pack import ContextPack, Row
from council.workspace.drafting import changes_of

# The fields that outcomes need.
_NAMED = {"answer": "answer", "clarify": "question", "decline": "answer", "read": "reads", "handoff": "handoff"}
_SCOPED = {"projectId": "project", "orgId": "organization"}


@dataclass(frozen=True)
class Ground:
    """The ground on which a reply is judged. `request` are the person's own words. `scope` is the server's: ids of a project
    or an organization. `must_ask`: no change can be drafted before the person has said which project. `day` is today's."""

    request: str
    pack: ContextPack
    scope: Mapping[str, str]
    day: str
    drafts: frozenset[str] = frozenset()
    must_ask: bool = False
    may_read: bool = True

    def check(self, reply: AgentReply) -> Iterator[ReplyProblem]:
        """The problems of a reply that fits its schema."""
        needed = _NAMED.get(reply.outcome, "")
        if needed and not getattr(reply, needed):
            yield ReplyProblem(f"is empty, and the outcome `{reply.outcome}` needs it", needed)
        if reply.outcome == "read" and not self.may_read:
            yield ReplyProblem("nothing more can be read; reply with what there is", "outcome")
        if self.must_ask and reply.outcome in ("draft", "confirm", "read"):
            told = "no project is known; ask which of the listed projects is meant, with the outcome `clarify`"
            yield ReplyProblem(told, "outcome")
        if reply.outcome == "confirm" and not self.drafts:
            yield ReplyProblem("there is no open draft to agree to; draft the changes", "outcome")
        for number, cited in enumerate(reply.citations):
            if not quotes(cited.label, self.pack.row_of(cited.ref)):
                told = "cites words that do not stand in the row of that id; quote what was read"
                yield ReplyProblem(told, f"citations[{number}]")
        if isinstance(reply, ConciergeReply):
            rows = [*self.pack.rows("listTasks"), *self.pack.rows("getTaskDetail")]
            tasks = {row["taskId"]: row for row in rows}
            for number, risk in enumerate(reply.risks):
                row = tasks.get(risk.taskId)
                if row is None:
                    yield _unknown("taskId", risk.taskId, f"risks[{number}].taskId")
                elif not self._holds(risk, row):
                    told = f"the task is not {risk.kind}, as its row says"
                    yield ReplyProblem(told, f"risks[{number}].kind")
            for number, wish in enumerate(reply.handoff):
                if wish.projectId and wish.projectId not in self.pack.ids.get("projectId", ()):
                    yield _unknown("projectId", wish.projectId, f"handoff[{number}].projectId")
        if isinstance(reply, DraftReply) and reply.outcome == "draft":
            yield from self._draft(reply)

    def _draft(self, reply: DraftReply) -> Iterator[ReplyProblem]:
        changes = list(changes_of(reply))
        if not changes and not (isinstance(reply, NotesReply) and reply.blocked):
            yield ReplyProblem("a draft needs at least one operation", "outcome")
        if reply.revises and reply.revises not in self.drafts:
            yield ReplyProblem("names no open draft of this conversation", "revises")
        for change in changes:
            for key, value in change.arguments.items():
                kind = "userId" if key == "assignedToId" else key
                if not kind.endswith("Id") or value is None:
                    continue
                if key in _SCOPED and key in self.scope and value != self.scope[key]:
                    told = f"is another {_SCOPED[key]} than the one in scope, {self.scope[key]}; leave it out"
                    yield ReplyProblem(told, f"{change.path}.{key}")
                elif key not in self.scope and value not in self.pack.ids.get(kind, ()):
                    whole_word = rf"(?<![\w.@-]){re.escape(value)}(?![\w@-])"
                    if kind == "userId" and re.search(whole_word, self.request) is not None:
                        continue  # the request itself names the person by their id
                    yield _unknown(kind, value, f"{change.path}.{key}")
            if change.asked is not None and not quotes(change.asked, self.request):
                told = "must quote the words of the request that ask for this; without them, leave the operation out"
                yield ReplyProblem(told, f"{change.path}.asked")
        there = {plain(row["title"]): row for row in self.pack.rows("listTasks", all_of_them=True)}
        for number, create in enumerate(getattr(reply, "creates", ())):
            if not isinstance(create, TaskCreate) or create.exception:
                continue
            known = there.setdefault(plain(create.title), {"taskId": f"creates[{number}]"})
            if known["taskId"] != f"creates[{number}]":
                told = f"stands there already as {known['taskId']}: update that one, or say why in `exception`"
                yield ReplyProblem(told, f"creates[{number}].title")

    def _holds(self, risk: TaskRisk, row: Row) -> bool:
        if risk.kind == "overdue":
            return bool(row["dueDate"]) and row["dueDate"][:10] < self.day and row["status"] != "done"
        if risk.kind == "unassigned":
            return not row["assignedToId"]
        return risk.kind == "unclear" or row["status"] == "blocked"


def plain(text: str) -> str:
    """The words of a text, for a comparison: without case, quotation marks and the width of spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[\"'`“”„‘’«»\\]", "", folded).split())


def quotes(words: str, text: str) -> bool:
    """True where `text` has these words. A lone letter, digit or sign quotes nothing; one sign of Chinese is a word."""
    said = plain(words)
    letters = [sign for sign in said if sign.isalnum()]
    is_word = len(letters) > 1 or any(unicodedata.category(letter) == "Lo" for letter in letters)
    return is_word and said in plain(text)


def _unknown(kind: str, value: object, path: str) -> ReplyProblem:
    return ReplyProblem(f"{str(value)[:60]!r} is no {kind} that was read; use the ids as they stand there", path)
