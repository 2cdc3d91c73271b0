"""The pages of runs: the list, one run as it grows and as it ended, and its page rendered again from the journal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial

from starlette.datastructures import FormData

from council.conductor.conversation import LANE
from council.desk.desk import Desk
from council.desk.overview import overview
from council.desk.replays import ReplayedPage, explained, replayed
from council.desk.run_lookup import answer_of, changed_sources, find_all, find_seen, receipt_of
from council.desk.window import hand_in
from council.engine.ledger import RunEntry
from council.errors import RunNotFound, UsageError
from council.events import RunAdmission, RunEnd
from council.plans.register import plans_of_run
from council.reports.explain import ExplainedRun
from council.web.live_updates import Floor
from council.web.now_page import QuestionCard, RunUnderWay, questions_of, run_under_way
from council.web.pagination import Slice, slice_of
from council.web.plan_pages import PlanCard, card_of
from council.web.sign_in import Person
from council.web.window_pages import Filters, OwnAddress, WindowPage

_CONTROLS = ("cancel", "resume", "retry", "retry plan")  # the last: from its recorded plan on


@dataclass(frozen=True)
class RunsView:
    """The runs that fit the filters of the URL: `q` (words), `status`, `type`, `lane`, `since`; newest first.

    `facets` has, by filter, the values of all that fit the words, each with how many have it. Each conversation is a lane of its
    own, so none is offered.
    """

    runs: Slice[RunEntry]
    facets: dict[str, dict[str, int]]


@dataclass(frozen=True)
class RunPage:
    """One run. `explained` is None where its journal is gone: then `answer` is what stands on its page.

    `under_way` is None once it has ended. `may` names what this person can have done with it now, of _CONTROLS.
    `artifact` is its page, relative to the home; `changed` the documents that are other ones now than it read.
    """

    run_id: str
    title: str
    status: str
    explained: ExplainedRun | None
    answer: str
    note: str
    under_way: RunUnderWay | None
    questions: list[QuestionCard]
    plans: list[PlanCard]
    artifact: str
    changed: list[str]
    may: tuple[str, ...]


@dataclass(frozen=True)
class ReplayView:
    """The page of a run rendered again. `place` is where the same bytes lie now, empty for nowhere."""

    run_id: str
    title: str
    shown: str
    place: str
    is_here: bool
    text: str


def shown_runs(desk: Desk, person: Person, asked: Filters) -> RunsView:
    fitting = find_all(desk, asked.get("q", "").split(), since=asked.get("since", ""), user=person.principal.sees)
    values = {name: [getattr(entry, name) for entry in fitting] for name in ("status", "type", "lane")}
    values["lane"] = [lane for lane in values["lane"] if not lane.startswith(LANE) or lane == asked.get("lane")]
    facets = {name: dict(Counter(found).most_common(12)) for name, found in values.items()}
    for name in facets:
        fitting = [entry for entry in fitting if asked.get(name) in (None, "", getattr(entry, name))]
    return RunsView(slice_of(fitting, asked, "runs"), facets)


def run_page(floor: Floor) -> WindowPage[RunPage]:
    """The page of one run, with the words that are spoken on this floor."""
    return WindowPage(
        "/runs/{run}", "", "run.html", partial(shown_run, floor),
        hears=lambda event, asked: event.run_id == asked["run"],
        speaking=lambda shown: {shown.run_id} if shown.under_way else (),
    )  # fmt: skip


def run_asked_for(desk: Desk, person: Person, asked: Filters) -> str:
    """The id of the run in the address. Raises OwnAddress for `last` and the beginning of an id, RunNotFound."""
    run_id = find_seen(desk, asked["run"], person.principal)
    if run_id != asked["run"]:
        raise OwnAddress(run_id)
    return run_id


def shown_run(floor: Floor, desk: Desk, person: Person, asked: Filters) -> RunPage:
    run_id = run_asked_for(desk, person, asked)
    receipt = desk.receipts.read(run_id)
    found, answer, note = None, "", ""
    try:
        found = explained(desk, run_id)
    except RunNotFound as gone:
        if receipt is None:
            raise
        note = gone.message
        if receipt.artifact is not None:
            answer, _ = answer_of(desk, receipt, desk.home.root / receipt.artifact.path)
    known = next((run for run in overview(desk).runs if run["run_id"] == run_id), None)
    under_way = run_under_way(known, floor) if receipt is None and known is not None else None
    status = receipt.status if receipt else found.explanation.status if found else ""
    waits = status == "waiting"
    may: tuple[str, ...] = ("resume", "cancel") if waits else ("cancel",) if receipt is None else ()
    if receipt is not None and found is not None and status in ("failed", "cancelled", "degraded"):
        may = ("retry", "retry plan") if desk.ledger.journal(run_id).recorded("plan") else ("retry",)
    return RunPage(
        run_id=run_id,
        title=found.explanation.title if found else receipt.title if receipt else "",
        status=status,
        explained=found,
        answer=answer,
        note=note,
        under_way=under_way,
        questions=questions_of(desk, person, run_id) if waits else [],
        plans=[card_of(desk, person, plan) for plan in plans_of_run(desk.store, run_id) if plan.principal == person.id],
        artifact=receipt.artifact.path if receipt and receipt.artifact else "",
        changed=changed_sources(desk, run_id) if receipt else [],
        may=may,
    )


def shown_replay(desk: Desk, person: Person, asked: Filters) -> ReplayView:
    run_id = run_asked_for(desk, person, asked)
    page: ReplayedPage = replayed(desk, run_id)
    title, text = receipt_of(desk, run_id).title, page.page.decode("utf-8", "replace")
    return ReplayView(run_id, title, page.shown, page.found or "", page.is_here, text)


def steer_run(desk: Desk, person: Person, asked: Filters, form: FormData) -> str:
    """Raises UsageError for what is no control command."""
    run_id, verb = find_seen(desk, asked["run"], person.principal), str(form.get("do", ""))
    if verb not in _CONTROLS:
        raise UsageError(f"{verb!r} cannot be done with a run.", fix=f"use one of {', '.join(_CONTROLS)}")
    type_, _, step = verb.partition(" ")
    hand_in(desk, {"type": type_, "run": run_id, **({"from": step} if step else {})}, person.user)
    return f"/runs/{run_id}"


def answer_run(desk: Desk, person: Person, asked: Filters, form: FormData) -> str:
    run_id = find_seen(desk, asked["run"], person.principal)
    words = str(form.get("choice") or form.get("answer") or "").replace("\r\n", "\n")
    hand_in(desk, {"type": "answer", "run": run_id, "answer": words}, person.user)
    back = str(form.get("back", ""))
    return back if back in ("/now", f"/runs/{run_id}") or back.startswith("/chat/") else f"/runs/{run_id}"


RUNS = WindowPage(
    "/runs", "Runs", "runs.html", shown_runs, hears=lambda event, asked: isinstance(event, RunAdmission | RunEnd)
)
REPLAY = WindowPage("/runs/{run}/replay", "", "replay.html", shown_replay)
