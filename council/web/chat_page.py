"""The page Ask: a conversation with the conductor, its questions and plans in place, and the conversations before it.

The panel on every other page is the form of a new conversation; it shows the part `log` of this page.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from starlette.datastructures import FormData, UploadFile

from council.desk.conversations import ConversationEntry, Exchange, ask_in, conversations, exchange_of, requests_of
from council.desk.desk import Desk
from council.desk.overview import runs_under_way
from council.desk.workspace_desk import look, project_of
from council.errors import UsageError
from council.events import ControlAct
from council.ids import SystemClock, new_run_id
from council.plans.register import plans_of_run
from council.web.live_updates import Floor, GrowingSpeech
from council.web.now_page import QuestionCard, questions_of, run_under_way
from council.web.pagination import Slice, slice_of
from council.web.plan_pages import PlanCard, card_of
from council.web.sign_in import Person
from council.web.window_pages import Filters, PageAction, WindowPage

_PER_PAGE = 30  # requests
_UNFINISHED = ("queued", "running", "waiting")


@dataclass(frozen=True)
class ExchangeCard:
    """An exchange with what waits in it for the person: a question, plans. `words` say what its run waits for, empty where it is
    at work or has ended. `said` are the agents who speak now."""

    exchange: Exchange
    is_open: bool
    words: str
    questions: list[QuestionCard]
    plans: list[PlanCard]
    said: list[GrowingSpeech]


@dataclass(frozen=True)
class ChatView:
    """A conversation, or the beginning of one: then `conversation` is empty. `cards` are in the order of the talk, and part 1 has
    the newest. `is_over`: it takes no further request.

    `project` is the one that the next request is about: the one asked for, else that of the last request. It is empty for none,
    and for one that this person does not see. `history` are the person's conversations, the last first.
    """

    conversation: str
    title: str
    cards: Slice[ExchangeCard]
    is_over: bool
    is_at_work: bool
    project: str
    project_name: str
    history: Slice[ConversationEntry]


def chat_pages(floor: Floor) -> tuple[tuple[WindowPage[ChatView], ...], tuple[PageAction, ...]]:
    """The pages and what their forms do, with the words that are spoken on this floor."""
    build = partial(shown_chat, floor)
    begin = WindowPage("/chat", "Ask", "chat.html", build)
    talk = WindowPage(
        "/chat/{conversation}", "", "chat.html", build, connects=False,
        hears=lambda event, asked: bool(event.run_id) or isinstance(event, ControlAct),  # an event has no lane
        speaking=lambda shown: {card.exchange.run_id for card in shown.cards.rows if card.is_open},
    )  # fmt: skip
    actions = (
        PageAction("/chat", begin, _ask),
        PageAction("/chat/{conversation}", talk, _ask),
        PageAction("/chat/{conversation}/end", talk, end_conversation),
    )
    return (begin, talk), actions


def shown_chat(floor: Floor, desk: Desk, person: Person, asked: Filters) -> ChatView:
    conversation, history = asked.get("conversation", ""), conversations(desk, person.id)
    entries = requests_of(desk, conversation, person.id) if conversation else []
    part = slice_of(entries, asked, "requests", _PER_PAGE)
    known = [exchange_of(desk, one) for one in reversed(part.rows)]
    entry = next((one for one in history if one.conversation == conversation), None)
    last = next((one.project for one in reversed(known) if one.project), "")
    project = project_of(desk, person.id, {"projectId": asked.get("project") or last})
    goes_on = any(one.status in _UNFINISHED for one in known)
    still = {run["run_id"]: run for run in runs_under_way(desk) if run["status"] != "running"} if goes_on else {}
    cards = []
    for exchange in known:
        run_id, is_open = exchange.run_id, exchange.status in _UNFINISHED
        words = run_under_way(still[run_id], floor).words if run_id in still else ""
        questions = questions_of(desk, person, run_id) if is_open else []
        plans = [card_of(desk, person, plan) for plan in plans_of_run(desk.store, run_id)]
        cards.append(ExchangeCard(exchange, is_open, words, questions, plans, floor.words_in(run_id)))
    return ChatView(
        conversation=conversation,
        title=entry.title if entry is not None else "",
        cards=part.showing(cards),
        is_over=entry is not None and entry.is_over,
        is_at_work=any(card.is_open and not card.questions for card in cards),
        project=project,
        project_name=look(desk, "getProjectDetail", person.id, {"projectId": project})["name"] if project else "",
        history=slice_of(history, asked, "conversations", 30),
    )


def _ask(desk: Desk, person: Person, asked: Filters, form: FormData) -> str:
    conversation = asked.get("conversation") or str(form.get("conversation", ""))
    is_new = not conversation
    conversation = conversation or new_run_id(SystemClock().now())
    project, file = str(form.get("project", "")), form.get("file")
    command = {"request": str(form.get("request", "")).replace("\r\n", "\n"), "conversation": conversation}
    if not is_new:
        requests_of(desk, conversation, person.id)  # somebody else's is none
    if not command["request"].strip():
        raise UsageError("nothing is asked.", fix="say what you want, in your own words")
    if project:
        look(desk, "getProjectDetail", person.id, {"projectId": project})  # one that they do not see is refused
    document, name = None, ""
    if isinstance(file, UploadFile) and file.filename:
        document, name = file.file.read(desk.settings.max_document_bytes + 1), file.filename
    ask_in(desk, person.user, {**command, **({"project": project} if project else {})}, document, name)
    return f"/chat/{conversation}"


def end_conversation(desk: Desk, person: Person, asked: Filters, form: FormData) -> str:
    requests_of(desk, asked["conversation"], person.id)
    ask_in(desk, person.user, {"conversation": asked["conversation"], "end": True})
    return "/chat"
