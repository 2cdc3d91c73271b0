"""The page Now: what the council does at this moment, and what waits for a person, to be answered right there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from council.desk.desk import Desk
from council.desk.overview import HomeState, in_short, overview, spent_today
from council.desk.plan_lookup import now_ms
from council.desk.run_lookup import find_all
from council.engine.open_questions import open_questions
from council.engine.records import WAITS
from council.events import SpeechPiece
from council.plans.register import waiting_plans
from council.turns.costs import told_cost
from council.web.live_updates import Floor, GrowingSpeech
from council.web.pagination import Slice, slice_of
from council.web.plan_pages import PlanCard, card_of
from council.web.sign_in import Person
from council.web.specialist_pages import ProposedSpecialist, proposed
from council.web.window_pages import Filters, WindowPage

_RECENT, _LOOKED_AT = 10, 50  # ended runs
_PLANS = 5  # each is shown with all that it changes
_CHOICES = {"confirm": ("Yes", "No"), "create": ("Yes", "No"), "worth": ("Keep", "No")}  # of questions, by their names


@dataclass(frozen=True)
class RunUnderWay:
    """A run that has not ended. `words` say what it does or waits for; `round` of at most `max_rounds`, 0 where none counts.
    `said` are the agents who speak, with the end of their words."""

    run_id: str
    title: str
    lane: str
    status: str
    words: str
    round: int
    max_rounds: int
    said: list[GrowingSpeech]

    @property
    def rounds_over(self) -> int:
        return max(0, self.round - 1)


@dataclass(frozen=True)
class QuestionCard:
    """A question of a run to the person `asks`. `choices` are answers that a button gives."""

    run_id: str
    title: str
    lane: str
    text: str
    asks: str
    is_mine: bool
    choices: tuple[str, ...]


@dataclass(frozen=True)
class DayLimit:
    """A limit of the day's spending, and how much of it is spent."""

    name: str
    spent: float
    most: float
    words: str


@dataclass(frozen=True)
class NowView:
    """The state of the council. `state` is the word of Protocol 95, `sentence` says it to a person.

    `queue` are files that wait to become runs, `skipped` those that no command can be. `refused` is the newest file that
    could not become one, None for none. `degraded` are companions that do not run as they should. `edited_settings`: files
    that changed after the daemon read them. `lacking`: specialists that wait for a credential of this person. A user sees own
    runs, questions and plans alone.
    """

    state: str
    sentence: str
    model: str
    runs: Slice[RunUnderWay]
    questions: Slice[QuestionCard]
    plans: Slice[PlanCard]
    lacking: list[ProposedSpecialist]
    queue: Slice[str]
    skipped: Slice[str]
    unadmitted: list[dict[str, str]]
    refused: dict[str, str] | None
    refused_count: int
    degraded: dict[str, str]
    edited_settings: list[str]
    limits: list[DayLimit]
    recent: list[dict[str, str]]


def now_page(floor: Floor) -> WindowPage[NowView]:
    """The page, with the words that are spoken on this floor."""
    return WindowPage(
        "/now", "Now", "now.html", partial(shown_now, floor),
        hears=lambda event, asked: not isinstance(event, SpeechPiece),
        speaking=lambda shown: {one.run_id for one in shown.runs.rows},
    )  # fmt: skip


def shown_now(floor: Floor, desk: Desk, person: Person, asked: Filters) -> NowView:
    seen, sees_all = overview(desk), person.is_administrator
    mine = [run for run in seen.runs if sees_all or desk.ledger.user_of(run["run_id"]) == person.id]
    ended = desk.ledger.newest(_LOOKED_AT, ended_only=True) if sees_all else find_all(desk, user=person.id)
    own = [plan for plan in waiting_plans(desk.store, now_ms()) if plan.principal == person.id]
    plans = slice_of(own, asked, "plans", _PLANS)
    runs = slice_of(mine, asked, "runs")
    asking = slice_of([run["run_id"] for run in mine if run.get("waiting_for") == "answer"], asked, "questions")
    refused = seen.refused["newest"]
    return NowView(
        state=seen.state,
        sentence=_sentence(seen, mine),
        model=seen.model or "",
        runs=runs.showing([run_under_way(run, floor) for run in runs.rows]),
        questions=asking.showing([card for run_id in asking.rows for card in questions_of(desk, person, run_id)]),
        plans=plans.showing([card_of(desk, person, plan) for plan in plans.rows]),
        lacking=[one for one in proposed(desk, person) if not all(one.credentials.values())],
        queue=slice_of(seen.waiting_files if sees_all else [], asked, "queue"),
        skipped=slice_of(seen.not_commands if sees_all else [], asked, "skipped"),
        unadmitted=seen.unadmitted if sees_all else [],
        refused=refused if sees_all else None,
        refused_count=seen.refused["count"] if sees_all else 0,
        degraded=seen.degraded if sees_all else {},
        edited_settings=seen.edited_settings if sees_all else [],
        limits=_limits(desk) if sees_all else [],
        # An undone plan or an ended conversation leaves no page.
        recent=[in_short(entry) for entry in ended if entry.finished and entry.artifact][:_RECENT],
    )


def run_under_way(run: dict[str, Any], floor: Floor) -> RunUnderWay:
    """A run as `overview` tells it, in words."""
    rounds, words = int(run.get("max_rounds") or 0), "stands in line"
    if run["status"] == "waiting":
        words = WAITS.get(str(run.get("waiting_for")), WAITS[""])
        if run.get("waiting_for") != "answer":
            words += f" until {str(run['until'])[11:16]} UTC" if run.get("until") else ""
            words += f": {run['error']}" if run.get("error") else ""
    elif run["status"] == "running":
        at = f"round {run.get('round', 0)} of {rounds}" if rounds else "at work"
        words = f"{at}, {run['role']} speaks" if run.get("role") else at
    return RunUnderWay(
        run["run_id"], run["title"], run["lane"], run["status"], words, int(run.get("round") or 0), rounds,
        floor.words_in(run["run_id"]),
    )  # fmt: skip


def questions_of(desk: Desk, person: Person, run_id: str) -> list[QuestionCard]:
    """The question that a run waits with; of several the first, for it is answered first. Raises RunNotFound."""
    journal, owner = desk.ledger.journal(run_id), desk.ledger.user_of(run_id)
    title, lane, is_mine = journal.header.title, journal.header.lane, person.id == owner or person.is_administrator
    first = list(open_questions(journal).items())[:1]
    return [QuestionCard(run_id, title, lane, text, owner, is_mine, _CHOICES.get(name, ())) for name, text in first]


def _sentence(seen: HomeState, mine: list[dict[str, Any]]) -> str:
    """The state in words that are read at arm's length."""
    if seen.state in ("STOPPED", "STARTING"):
        return "The council is not running" if seen.state == "STOPPED" else "The council is starting"
    running, waiting = (sum(run["status"] == status for run in mine) for status in ("running", "waiting"))
    parts = [f"{running} {'run' if running == 1 else 'runs'} at work"] if running else []
    parts += [f"{waiting} {'run waits' if waiting == 1 else 'runs wait'}"] if waiting else []
    in_line = len(mine) - running - waiting
    parts += [f"{in_line} in line"] if in_line else []
    return ", ".join(parts) or ("Nothing of yours is at work" if seen.runs else "The council awaits a command")


def _limits(desk: Desk) -> list[DayLimit]:
    settings, spent = desk.settings, spent_today(desk)
    known: tuple[tuple[str, float, float | None, Callable[[float], str]], ...] = (
        ("Calls", spent.calls, settings.day_max_calls, "{:,.0f}".format),
        ("Tokens", spent.tokens, settings.day_max_tokens, "{:,.0f}".format),
        ("Money", spent.priced_usd, settings.day_max_usd, told_cost),
        ("Model time", spent.seconds, settings.day_max_seconds, "{:,.0f} s".format),
    )
    return [
        DayLimit(name, have, most, f"{words(have)} of {words(most)}")
        for name, have, most, words in known
        if most is not None
    ]
