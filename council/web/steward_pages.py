"""The pages of the house, for the steward and administrators: agents and their memory, search, audit, settings, doctor."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from starlette.datastructures import FormData

from council.agents.memory_digest import digest, without_rehearsals
from council.conductor.conversation import LANE
from council.desk.agent_memory import forget, lanes_of, remembered, task_json
from council.desk.audit_verification import ChainReport, audit_of, chain_report, record_json
from council.desk.cortex_index import ask_index
from council.desk.desk import Desk
from council.desk.effective_settings import as_cell, effective_settings
from council.desk.housekeeping import checks_of
from council.desk.window import no_drain
from council.errors import UsageError
from council.knowledge.cortex.cortex import MAX_LIMIT, MAX_QUESTION_CHARS, SCOPES
from council.lines_and_pages import spelled
from council.safety.untrusted import clean
from council.upkeep.system import beyond_forget
from council.web.forms import texts_of
from council.web.pagination import Slice, slice_from, slice_of
from council.web.sign_in import Person
from council.web.window_pages import Filters, PageAction, WindowPage, with_filters

_FORGET_S = 30.0  # it takes its lane's turn; behind a long run it goes on by itself
_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True)
class AgentsPage:
    """The agents of this home, by role: each with its purpose, tools, trust and the lanes in which it remembers something, with
    the number of its `conversations`."""

    agents: Slice[Mapping[str, Any]]


def agents_page(desk: Desk, who: Person, filters: Filters) -> AgentsPage:
    held = {role: _apart(lanes) for role, lanes in lanes_of(desk).items()}
    found = sorted(desk.personas().values(), key=lambda manifest: manifest.role)
    agents = []
    for manifest in found:
        lanes, conversations = held.get(manifest.role, ([], []))
        told = manifest.model_dump(mode="json", include={"role", "purpose", "tools", "trust"})
        agents.append({**told, "lanes": lanes, "conversations": len(conversations)})
    return AgentsPage(slice_of(agents, filters, "agents"))


@dataclass(frozen=True)
class AgentPage:
    """One agent: its manifest with the instructions, and what it remembers in a lane. `digest` is what prompts contain of it.
    `tasks` are the newest first, as are the lanes of `conversations`. `beyond` says what no `forget` reaches."""

    manifest: Mapping[str, Any]
    lane: str
    lanes: Sequence[str]
    conversations: Slice[str]
    damage: str
    digest: str
    tasks: Slice[Mapping[str, Any]]
    beyond: str


def agent_page(desk: Desk, who: Person, filters: Filters) -> AgentPage:
    role, lane = filters["role"], filters.get("lane", "main")
    loaded = remembered(desk, role, lane)
    found = desk.personas().get(role)
    lanes, conversations = _apart(lanes_of(desk).get(role, ()))
    return AgentPage(
        manifest=found.model_dump(mode="json") if found is not None else {"role": role},
        lane=lane,
        lanes=sorted({"main", lane, *lanes}),
        conversations=slice_of(conversations, filters, "conversations", 20),
        damage=loaded.damage,
        digest=digest(without_rehearsals(loaded.session)),
        tasks=slice_of([*map(task_json, reversed(loaded.session.tasks))], filters, "tasks", 10),
        beyond=beyond_forget(is_server=desk.settings.database_url is not None),
    )


def _apart(lanes: Sequence[str]) -> tuple[list[str], list[str]]:
    """The lanes that somebody named, and those of conversations, the newest first."""
    named = [lane for lane in lanes if not lane.startswith(LANE)]
    return named, sorted(set(lanes) - set(named), reverse=True)


@dataclass(frozen=True)
class SearchPage:
    """Passages of the home's files, or of archived memory, that fit the question best. Nothing is searched without one. `pieces`
    are the quotation, each with whether it is a word of the question."""

    question: str
    scope: str
    limit: int
    hits: Sequence[Mapping[str, Any]]
    notes: Sequence[str]


def search_page(desk: Desk, who: Person, filters: Filters) -> SearchPage:
    question, scope, limit = filters.get("q", "").strip(), filters.get("scope", "files"), filters.get("limit", "10")
    if scope not in SCOPES or limit not in map(str, range(1, MAX_LIMIT + 1)):
        raise UsageError("this search does not fit.", fix=f"a scope is files or memory, a limit 1 to {MAX_LIMIT}")
    if not question:
        return SearchPage("", scope, int(limit), (), ())
    answer = ask_index(desk, question[:MAX_QUESTION_CHARS], scope, int(limit))
    hits = []
    for hit in answer.hits:
        place = spelled(hit.path, hit.first_line, hit.last_line)
        hits.append({**asdict(hit), "place": place, "pieces": pieces_of(clean(hit.quotation), question)})
    return SearchPage(question, scope, int(limit), hits, answer.notes)


@dataclass(frozen=True)
class AuditPage:
    """Records of the audit, the newest first, of the chosen kind, action and actor. `verdict` is there once it was asked for:
    what is wrong with chain and files."""

    records: Slice[Mapping[str, Any]]
    kind: str
    action: str
    actor: str
    verdict: ChainReport | None


def audit_page(desk: Desk, who: Person, filters: Filters) -> AuditPage:
    words = {name: filters.get(name, "")[:64] for name in ("kind", "action", "actor")}
    with audit_of(desk) as log:
        verdict = chain_report(desk, log) if filters.get("verify") else None
        if log is None:
            return AuditPage(slice_of((), filters, "records"), **words, verdict=verdict)
        part = slice_from(
            log.count(**words), lambda first, count: log.tail(count, skip=first, **words)[::-1], filters, "records"
        )
    return AuditPage(part.showing([record_json(one) for one in part.rows]), **words, verdict=verdict)


@dataclass(frozen=True)
class SettingsPage:
    """Every setting as it holds, with its source. `own`: only those that are not the default. `rest`: keys, and what agents
    never read."""

    settings: Mapping[str, Mapping[str, Any]]
    keys: Mapping[str, Mapping[str, Any]]
    never_read: Sequence[str]
    left_out: Sequence[str]
    own: bool


def settings_page(desk: Desk, who: Person, filters: Filters) -> SettingsPage:
    told, own = effective_settings(desk), bool(filters.get("own"))
    shown = {key: one for key, one in told["settings"].items() if not own or one["source"] != "default"}
    settings = {key: {**one, "value": as_cell(one["value"])} for key, one in shown.items()}
    return SettingsPage(settings, told["keys"], told["never_read"], told["left_out"], own)


@dataclass(frozen=True)
class DoctorPage:
    """The doctor's checks: each with `status` ok, warn or fail, and how to mend it. Those that need a person stand first."""

    checks: Sequence[Mapping[str, Any]]
    counts: Mapping[str, int]


def doctor_page(desk: Desk, who: Person, filters: Filters) -> DoctorPage:
    checks = sorted(checks_of(desk, online=False), key=lambda check: ("fail", "warn", "ok").index(check.status))
    return DoctorPage([asdict(check) for check in checks], Counter(check.status for check in checks))


def pieces_of(text: str, question: str) -> list[tuple[str, bool]]:
    """The text in pieces: those that are words of the question, in whatever ending, and those between them."""
    stems = {re.escape(word.casefold()[: max(4, len(word) - 2)]) for word in _WORD.findall(question)}
    if not stems:
        return [(text, False)]
    split = re.split(rf"(\b(?:{'|'.join(sorted(stems))})\w*)", text, flags=re.IGNORECASE)
    return [(piece, number % 2 == 1) for number, piece in enumerate(split) if piece]


def forget_here(desk: Desk, who: Person, filters: Filters, sent: FormData) -> str:
    """Takes a run, or a text in its exact words, out of all that is kept. Raises as `forget` and `Errand.wait`."""
    texts, role, lane = texts_of(sent), filters["role"], filters.get("lane", "main")
    run_id, text = texts.get("run", ""), texts.get("text", "")
    if not run_id and not text:
        raise UsageError("neither a text nor a run is named.", fix="write the text in its exact words", field="text")
    forget(desk, lane, text or None, run_id or None, who.user).wait(_FORGET_S, no_drain)
    return with_filters({"lane": lane}, f"/house/agents/{role}")


_AGENT = WindowPage("/house/agents/{role}", "", "house/agent.html", agent_page, is_for="administrators")
PAGES: tuple[WindowPage[Any], ...] = (
    WindowPage("/house", "House", "house/agents.html", agents_page, is_for="administrators"),
    _AGENT,
    WindowPage("/house/search", "", "house/search.html", search_page, is_for="administrators"),
    WindowPage("/house/audit", "", "house/audit.html", audit_page, is_for="administrators"),
    WindowPage("/house/settings", "", "house/settings.html", settings_page, is_for="administrators"),
    WindowPage("/house/doctor", "", "house/doctor.html", doctor_page, is_for="administrators"),
)
ACTIONS = (PageAction("/house/agents/{role}", _AGENT, forget_here),)
