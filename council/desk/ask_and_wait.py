"""A request or an answer that a person waits with: until there is an answer, or a question back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from council.commands.file_formats import Document
from council.commands.parsing import validate
from council.conductor.conversation import LANE
from council.desk.desk import Desk
from council.desk.drop_and_wait import Drain, Errand
from council.desk.run_lookup import answer_in, words_of
from council.engine.admission import admission, refusing
from council.engine.open_questions import open_questions, run_to_answer
from council.engine.receipts import Receipt
from council.engine.runs import ANSWER
from council.storage.files import FileLock


@dataclass(frozen=True)
class AskReply:
    """The end of waiting: the receipt of a run, or the question that it asks. `run_id` is that run. A run in line behind
    another one ends its waiting with the question of that one. `waits` says what a run waits for that nobody works on now;
    `awaits_person`: it is a person's word on a plan. `answer` is Markdown, or the words with which the request was declined; of
    a run that failed it is empty. `agents` were to answer. `conversation` is empty for a run that belongs to none."""

    run_id: str
    receipt: Receipt | None = None
    question: str = ""
    waits: str = ""
    awaits_person: bool = False
    answer: str = ""
    conversation: str = ""
    agents: tuple[str, ...] = ()


class Asking:
    """A request or an answer that was dropped. `run_id`: the run that works on it, empty while there is none."""

    def __init__(self, desk: Desk, errand: Errand, command: Mapping[str, Any]) -> None:
        self.errand = errand
        self.run_id = str(command.get("run", ""))
        self._desk = desk
        self._is_request = command["type"] != "answer"

    def reply(self) -> AskReply | None:
        """The answer or the question, once there is one. Raises CommandInvalid (set aside)."""
        desk, receipt = self._desk, self.errand.answer()
        if receipt is not None and self._is_request and "answered" not in receipt.details:
            return reply_of(desk, receipt)
        if receipt is not None:  # an answer: its run goes on
            self.run_id = receipt.details.get("answered", self.run_id)
        elif self._is_request:
            drop = (self.errand.dropped.inode, self.errand.dropped.mtime_ns)
            files = ((run_id, desk.ledger.journal(run_id).header.file) for run_id in reversed(desk.ledger.unfinished()))
            self.run_id = next((run_id for run_id, file in files if (file.inode, file.mtime_ns) == drop), "")
        if not self.run_id or (receipt is None and not self._is_request):
            return None
        ended = desk.receipts.read(self.run_id)
        if ended is not None:
            return reply_of(desk, ended)
        journal = desk.ledger.journal(self.run_id)
        lane = journal.header.lane
        conversation = lane.removeprefix(LANE) if lane.startswith(LANE) else ""
        for asking in filter(None, (self.run_id, run_to_answer(desk.store, lane, ""))):
            if question := next(iter(open_questions(desk.ledger.journal(asking)).values()), ""):
                return AskReply(asking, question=question, conversation=conversation)
        if journal.waits and journal.waits[-1].reason == ANSWER:
            waits = journal.waits[-1].error
            return AskReply(self.run_id, waits=waits, awaits_person=True, conversation=conversation)
        return None


def ask_and_wait(
    desk: Desk,
    command: Mapping[str, Any],
    timeout_s: float,
    drain: Drain,
    watch: Callable[[str], None] = lambda text: None,
) -> AskReply:
    """Drops the command and waits. Without a daemon `drain` works on it here. `watch` is shown the growing answer of a
    daemon's run. Raises CommandInvalid (not dropped, or set aside), WaitTimeout, or what `drain` raises."""
    data = json.dumps(command, ensure_ascii=False).encode()
    asked = validate(desk.commands, Document(dict(command), lambda loc: (None, None)))
    with desk.premises() as premises, refusing():  # a refusal needs no daemon, and no model's key
        admission(desk.commands, premises, asked)
        if (type_ := desk.commands[asked.type]).is_control:
            type_.foresee(asked, premises)
    asking = Asking(desk, Errand(desk, f"{command['type']}.json", data, is_typed=True), command)

    def look() -> AskReply | None:
        reply, run_id = asking.reply(), asking.run_id
        if reply is None and asking.errand.drains and FileLock.holder(desk.home.lock_file) is None:
            waits = desk.ledger.journal(run_id).waits if run_id else ()
            return AskReply(run_id, waits=waits[-1].error if waits else "it was not taken up.")
        return reply

    def show(_: object) -> None:
        if not asking.run_id:
            return
        path = desk.home.root / desk.ledger.journal(asking.run_id).header.output_path
        try:
            page = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            page = ""
        watch(answer_in(page, "In progress") if asking.run_id in page[:200] else "")

    return asking.errand.until(look, timeout_s, drain, lambda: nullcontext(show))


def reply_of(desk: Desk, receipt: Receipt) -> AskReply:
    """The end of a run, with what its page answers."""
    answer, conversation = words_of(desk, receipt.run_id), receipt.details.get("conversation") or ""
    return AskReply(receipt.run_id, receipt, answer=answer, conversation=conversation, agents=agents_of(receipt))


def agents_of(receipt: Receipt) -> tuple[str, ...]:
    """The agents to which a request went, each once."""
    return tuple(dict.fromkeys(str(route.get("agent") or "conductor") for route in receipt.details.get("routes", ())))
