"""Plans over both databases: what is confirmed is what is written, and everything else changes no row."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
from collections import Counter
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from council.audit.log import Transaction
from council.errors import StorageFailed
from council.ids import STEWARD, Principal
from council.keys.keyring import Keyring, new_key
from council.plans.applying import apply_plan
from council.plans.approval import Edits, PlanRefused, Proposal, ProposedOperation
from council.plans.plan import Advice, Plan
from council.plans.register import newest_plans
from council.plans.undo import undo_plan
from council.redaction import MASK, Redactor
from council.settings import Home
from council.storage.store import Store
from council.users.enrolment import add_user, change_roles
from tests.planning import KEYS, Planning, put

ADA = Principal("ada", "administrator")
MINUTE_S = 60.0


@pytest.fixture
def at(store: Store, home: Home) -> Planning:
    return Planning(store, home.runtime)


def refusal(call: Any, *arguments: Any, **named: Any) -> str:
    """The code of the refusal."""
    with pytest.raises(PlanRefused) as caught:
        call(*arguments, **named)
    return caught.value.code


# ── the straight way ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_plan_is_drafted_confirmed_applied_and_undone_each_with_its_record(at: Planning) -> None:
    draft = at.draft(put("Soil"), put("Seeds", "beans"))
    assert (draft.stored, at.pages()) == ("draft", [])
    confirmed = at.confirm(draft)
    assert (confirmed.hash, at.pages()) == (draft.hash, [])
    ending = at.apply(confirmed)
    assert at.pages() == [("open", "Seeds", "beans"), ("open", "Soil", "")]
    assert [result.text for result in ending.plan.results] == ["Put “Soil”.", "Put “Seeds”."]
    assert at.now(draft) == ending.plan
    at.undo(draft)
    assert (at.pages(), at.now(draft).stored) == ([], "undone")
    assert at.actions() == ["plan_drafted", "plan_confirmed", "plan_applied", "plan_undone"]
    [detail] = {record.detail for record in at.log.tail(4) if record.action == "plan_applied"}
    assert {key: json.loads(detail)[key] for key in ("hash", "tools", "principal", "applied")} == {
        "hash": draft.hash, "tools": ["putPage"], "principal": "steward", "applied": 2,
    }  # fmt: skip
    assert at.log.verify().findings == ()


def test_the_newest_plans_of_a_person_are_theirs_however_many_others_have(at: Planning) -> None:
    own = at.draft(put("Soil"), by=ADA)
    at.clock.pass_s(1)
    other = at.draft(put("Seeds"))
    assert [plan.plan_id for plan in newest_plans(at.store, 1)] == [other.plan_id]
    assert [plan.plan_id for plan in newest_plans(at.store, 1, "ada")] == [own.plan_id]


def test_what_was_typed_into_an_edited_plan_is_hashed_and_is_in_the_row(at: Planning) -> None:
    draft = at.draft(put("Soil"), put("Seeds"), put("Weeds"))
    confirmed = at.confirm(draft, Edits({2: {"content": "typed by hand"}}, frozenset({3})))
    assert confirmed.hash != draft.hash
    assert confirmed.previews[1].differences[1].after == "typed by hand"
    assert at.apply(confirmed, token=at.token(confirmed)).error is None
    assert at.pages() == [("open", "Seeds", "typed by hand"), ("open", "Soil", "")]


def test_a_second_confirmation_changes_nothing_unless_it_edits(at: Planning) -> None:
    draft = at.draft(put("Soil"))
    first = at.confirm(draft)
    at.clock.pass_s(5 * MINUTE_S)
    assert at.confirm(draft) == first
    edited = at.confirm(draft, Edits({1: {"content": "later"}}))
    assert refusal(at.apply, draft, token=at.token(first)) == "token_refused"
    assert at.apply(edited, token=at.token(edited)).error is None


def test_the_same_command_file_acts_once(at: Planning) -> None:
    wanted = Proposal("pages", (ProposedOperation("putPage", {"title": "Soil"}),))
    draft = at.propose(wanted, drop="1.2.a")
    assert at.propose(wanted, drop="1.2.a") == draft
    confirmed = at.confirm(draft, drop="1.2.b")
    at.clock.pass_s(30 * MINUTE_S)
    assert at.confirm(draft, drop="1.2.b") == confirmed
    assert at.actions() == ["plan_drafted", "plan_confirmed"]


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_confirmation_is_good_for_ten_minutes_and_not_for_a_second_more(at: Planning) -> None:
    in_time, too_late = (at.confirm(at.draft(put(title))) for title in ("in time", "too late"))
    at.clock.pass_s(10 * MINUTE_S)
    assert at.apply(in_time).error is None
    at.clock.pass_s(1)
    assert too_late.state(at.plans.now_ms()) == "draft"
    assert refusal(at.apply, too_late) == "confirmation_expired"
    assert refusal(at.apply, too_late, token=at.token(too_late)) == "confirmation_expired"
    assert at.apply(at.confirm(too_late)).error is None


def test_the_moment_of_the_admission_counts_and_not_that_of_the_change(at: Planning) -> None:
    confirmed = at.confirm(at.draft(put("Soil")))
    admitted_ms = at.plans.now_ms()
    at.clock.pass_s(60 * MINUTE_S)
    assert at.apply(confirmed, at_ms=admitted_ms).error is None


def test_a_plan_that_was_changed_in_the_database_is_refused(at: Planning) -> None:
    confirmed = at.confirm(at.draft(put("Soil")))
    operations = json.dumps([{"tool": "putPage", "arguments": {"title": "Mine"}, "clientRequestId": "x"}])
    at.store.write_now(lambda tx: tx.execute("UPDATE plans SET operations = ?", (operations,)))
    assert refusal(at.apply, confirmed) == "plan_altered"
    assert refusal(at.apply, confirmed, token=at.token(confirmed)) == "plan_altered"
    assert at.pages() == []


def test_forged_foreign_and_replayed_tokens_are_refused_and_recorded(at: Planning) -> None:
    first, second = (at.confirm(at.draft(put(title))) for title in ("one", "two"))
    stranger = Planning(at.store, Path("/"), Keyring((new_key(),)))
    token = at.token(first)
    forged = token[:-9] + ("B" if token[-9] == "A" else "A") + token[-8:]
    for wrong in (stranger.token(first), at.token(second), forged, "council-plan-", "no token"):
        assert refusal(at.apply, first, token=wrong) == "token_refused"
    assert at.pages() == []
    assert at.apply(first, token=token).error is None
    assert refusal(at.apply, first, token=token) == "plan_applied"
    assert at.pages() == [("open", "one", "")]
    assert at.actions().count("plan_refused") == 6
    assert {json.loads(record.detail or "")["hash"] for record in at.log.tail(6)} >= {first.hash}


def test_the_way_to_confirm_a_plan_names_its_person(at: Planning) -> None:
    own, hers = at.draft(put("Soil")), at.draft(put("Seeds"), by=ADA)
    for plan, by, whose in ((own, STEWARD, ""), (hers, ADA, "--user ada ")):
        with pytest.raises(PlanRefused) as caught:
            at.apply(plan, by=by)
        assert caught.value.fix == f"`council plans {whose}confirm {plan.plan_id}` confirms it"


def test_only_the_person_of_a_plan_decides_it(at: Planning) -> None:
    add_user(at.log, "ada", "Ada", ["administrator"])
    draft = at.draft(put("Soil"), by=ADA)
    assert refusal(at.confirm, draft) == "foreign_plan"
    assert refusal(at.reject, draft) == "foreign_plan"
    confirmed = at.confirm(draft, by=ADA)
    assert refusal(at.apply, confirmed) == "foreign_plan"
    bob = Principal("bob", "administrator")
    assert refusal(at.apply, confirmed, by=bob, token=at.token(confirmed)) == "foreign_plan"
    assert at.pages() == []
    assert at.apply(confirmed, token=at.token(confirmed)).error is None
    assert refusal(at.undo, draft, by=bob) == "foreign_plan"


@pytest.mark.parametrize("kind", ["player", "service"])
def test_a_player_and_a_service_decide_nothing(at: Planning, kind: Any) -> None:
    outside = Principal("p-1", kind)
    draft = at.draft(put("Soil"), by=outside)
    assert refusal(at.confirm, draft, by=outside) == "foreign_plan"
    assert refusal(at.reject, draft, by=outside) == "foreign_plan"


def test_what_is_not_confirmed_rejected_superseded_or_expired_is_not_applied(at: Planning) -> None:
    draft, rejected, older = (at.draft(put(title)) for title in ("draft", "rejected", "older"))
    at.reject(rejected, "not on this shelf")
    newer = at.draft(put("newer"), revises=older.plan_id)
    old = at.draft(put("old"), kind="adding")
    at.clock.pass_s(2 * MINUTE_S)
    found = [refusal(at.apply, plan) for plan in (draft, rejected, older, old)]
    assert found == ["not_confirmed", "plan_rejected", "plan_superseded", "plan_expired"]
    assert refusal(at.confirm, older) == "plan_superseded"
    assert refusal(at.confirm, old) == "plan_expired"
    assert at.now(rejected).outcome == "not on this shelf"
    at.clock.pass_s(31 * 86_400)
    assert refusal(at.confirm, newer) == "plan_expired"
    assert at.pages() == []


def test_a_draft_that_may_not_be_is_refused_with_the_number_of_its_operation(at: Planning) -> None:
    eve = Principal("eve", "user")
    assert refusal(at.draft, put("Soil", shelf="closed"), by=eve) == "tool_refused"
    assert refusal(at.draft, put(""), kind="pages") == "bad_arguments"
    assert refusal(at.draft, ("removePage", {"page": "x"}), kind="adding") == "tool_not_allowed"
    assert refusal(at.draft, put("Soil"), kind="nothing") == "unknown_kind"
    twice = tuple(ProposedOperation("putPage", {"title": title}, "same") for title in "ab")
    assert refusal(at.propose, Proposal("pages", twice)) == "request_conflict"
    assert set(at.actions()) == {"plan_refused"}


def test_what_earlier_operations_make_impossible_is_refused_at_the_draft_and_changes_nothing(
    at: Planning, caplog: pytest.LogCaptureFixture
) -> None:
    at.applied(put("Soil"))
    page = at.page_id("Soil")
    remove, edit = ("removePage", {"page": page}), ("editPage", {"page": page, "content": "x"})
    for first, second, why in (
        (remove, edit, "There is no such page."),
        (put("Seeds"), put("Seeds"), "putPage clashes with a row that is there."),
    ):
        with pytest.raises(PlanRefused) as refused:
            at.draft(first, second)
        told = f"Operation 2, {second[0]}: An earlier change of this plan makes it impossible. {why}"
        assert refused.value.message == told
        assert refused.value.field == "operations.1"
    assert caplog.text == ""
    assert at.pages() == [("open", "Soil", "")]
    at.draft(edit, remove)
    ordered = at.draft(put("Seeds"), edit, remove)
    at.confirm(ordered, Edits(left_out=frozenset({1})))
    assert at.pages() == [("open", "Soil", "")]


def test_each_preview_shows_its_change_after_those_before_it(at: Planning) -> None:
    at.applied(put("Soil"))
    page = at.page_id("Soil")
    plan = at.draft(*(("editPage", {"page": page, "title": title}) for title in ("Earth", "Ground")))
    assert [[(one.before, one.after) for one in preview.differences] for preview in plan.previews] == [
        [("Soil", "Earth")],
        [("Earth", "Ground")],
    ]
    assert [preview.summary for preview in plan.previews] == ["Changes the page “Soil”.", "Changes the page “Earth”."]
    assert at.apply(at.confirm(plan)).error is None
    assert at.pages() == [("open", "Ground", "")]


def test_the_scope_is_the_plans_whatever_an_operation_says(at: Planning) -> None:
    scoped = at.draft(put("Soil"), scope={"shelf": "near"})
    assert at.apply(at.confirm(scoped)).error is None
    assert at.pages() == [("near", "Soil", "")]
    assert refusal(at.draft, put("Seeds", shelf="far"), scope={"shelf": "near"}) == "outside_scope"
    assert refusal(at.draft, put("Seeds"), scope={"garden": "x"}) == "outside_scope"
    far = at.applied(put("Far", shelf="far"))
    page = at.page_id("Far")
    assert refusal(at.draft, ("editPage", {"page": page, "title": "x"}), scope={"shelf": "near"}) == "tool_refused"
    draft = at.draft(put("Weeds"), scope={"shelf": "near"})
    assert refusal(at.confirm, draft, Edits({1: {"shelf": "far"}})) == "outside_scope"
    assert at.now(far).stored == "applied"


def test_what_removes_something_is_not_edited(at: Planning) -> None:
    at.applied(put("Soil"), put("Seeds"))
    draft = at.draft(("removePage", {"page": at.page_id("Soil")}))
    assert refusal(at.confirm, draft, Edits({1: {"page": at.page_id("Seeds")}})) == "danger_not_editable"
    assert refusal(at.confirm, draft, Edits(left_out=frozenset({1}))) == "plan_size"
    assert refusal(at.confirm, draft, Edits({2: {"page": ""}})) == "no_such_operation"


# ── live rows, live authority ────────────────────────────────────────────────────────────────────────────────────────


def test_rows_that_somebody_changed_since_the_draft_stop_the_plan(at: Planning) -> None:
    at.applied(put("Soil"))
    page = at.page_id("Soil")
    late, later = (at.draft(("editPage", {"page": page, "content": text}), put(text)) for text in ("late", "later"))
    confirmed = at.confirm(late)
    at.applied(("editPage", {"page": page, "content": "in between"}))
    assert refusal(at.confirm, later) == "changed_since_draft"
    ending = at.apply(confirmed)
    assert ending.error is not None
    assert (ending.error.code, ending.plan.stored) == ("changed_since_draft", "failed")
    assert at.pages() == [("open", "Soil", "in between")]
    assert at.actions()[-1] == "plan_refused"


def test_who_lost_a_role_since_the_draft_is_refused(at: Planning) -> None:
    add_user(at.log, "ada", "Ada", ["administrator", "user"])
    plans = [at.confirm(at.draft(put(title, shelf="closed"), by=ADA), by=ADA) for title in ("one", "two")]
    change_roles(at.log, "ada", [], ["administrator"])
    ending = at.apply(plans[0], by=Principal("ada", "user"))
    assert (ending.error.code if ending.error else "") == "tool_refused"
    change_roles(at.log, "ada", [], ["user"])
    ending = at.apply(plans[1], by=Principal("ada", "user"))
    assert (ending.error.code if ending.error else "") == "principal_gone"
    assert at.pages() == []


def test_where_the_kind_allows_it_what_is_refused_is_named_and_the_rest_is_applied(at: Planning) -> None:
    at.applied(put("Soil"), put("Seeds"))
    page = at.page_id("Soil")
    confirmed = at.confirm(at.draft(("editPage", {"page": page, "content": "x"}), put("New"), kind="loose"))
    at.applied(("editPage", {"page": page, "content": "in between"}))
    ending = at.apply(confirmed)
    assert ending.error is None
    assert [result.code for result in ending.plan.results] == ["changed_since_draft", ""]
    assert ("open", "New", "") in at.pages()
    at.undo(ending.plan)
    assert at.pages() == [("open", "Seeds", ""), ("open", "Soil", "in between")]


@pytest.mark.parametrize(
    ("meanwhile", "told"),
    [
        ("refuse", "the shelf is full"),
        ("break", "internal error (RuntimeError)"),
        ("Soil", "putPage clashes with a row that is there"),
    ],
)
def test_an_error_during_the_changes_undoes_all_of_them(at: Planning, meanwhile: str, told: str) -> None:
    confirmed = at.confirm(at.draft(put("First"), put("Soil"), kind="loose"))
    at.applied(put(meanwhile))
    ending = at.apply(confirmed)
    assert ending.error is not None
    assert told in ending.error.message
    assert (ending.plan.stored, at.pages()) == ("failed", [("open", meanwhile, "")])
    assert refusal(at.apply, ending.plan) == "plan_failed"
    assert at.actions()[-2:] == ["plan_refused", "plan_refused"]


def test_the_same_client_request_id_in_a_scope_gives_the_same_row(at: Planning) -> None:
    def proposal(content: str, **scope: str) -> Proposal:
        return Proposal(
            "pages", (ProposedOperation("putPage", {"title": "Soil", "content": content}, "one-0001"),), scope
        )

    first = at.apply(at.confirm(at.propose(proposal("a", shelf="near")))).plan
    again = at.apply(at.confirm(at.propose(proposal("a", shelf="near")))).plan
    assert [(result.again, result.text) for result in again.results] == [(True, "Put “Soil”.")]
    with pytest.raises(PlanRefused, match="was used for another operation") as refused:
        at.propose(proposal("b", shelf="near"))
    assert (refused.value.code, refused.value.fix) == ("request_conflict", "give it another clientRequestId")
    same = at.propose(proposal("a", shelf="near"))
    assert refusal(at.confirm, same, Edits({1: {"content": "b"}})) == "request_conflict"
    drafts = [at.confirm(at.propose(proposal(content, shelf="far"))) for content in "ab"]
    endings = [at.apply(draft).error for draft in drafts]
    assert [(each.code, each.fix) if each else None for each in endings] == [
        None,
        ("request_conflict", "draft it again, and give it another clientRequestId"),
    ]
    assert at.pages() == [("far", "Soil", "a"), ("near", "Soil", "a")]
    assert refusal(at.undo, again) == "nothing_to_undo"
    at.undo(first)
    at.apply(at.confirm(at.propose(proposal("a", shelf="near"))))
    assert at.pages() == [("far", "Soil", "a"), ("near", "Soil", "a")]


# ── undo ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_undo_keeps_what_somebody_changed_since_and_names_it(at: Planning) -> None:
    plan = at.applied(put("Soil"), put("Seeds"))
    at.applied(("editPage", {"page": at.page_id("Soil"), "content": "somebody's"}))
    undone = at.undo(plan).plan
    assert at.pages() == [("open", "Soil", "somebody's")]
    assert [result.undo for result in undone.results] == ["was kept: somebody changed it since", "undone"]
    assert refusal(at.undo, plan) == "plan_undone"


def test_undo_takes_back_several_changes_of_one_row_and_tells_what_was_removed(at: Planning) -> None:
    at.applied(put("Soil", "at first"), put("Seeds"))
    page = at.page_id("Soil")
    edits = tuple(("editPage", {"page": page, "content": text}) for text in ("then", "at last"))
    plan = at.applied(*edits, ("removePage", {"page": at.page_id("Seeds")}))
    assert at.pages() == [("open", "Soil", "at last")]
    undone = at.undo(plan).plan
    assert at.pages() == [("open", "Soil", "at first")]
    assert [result.undo for result in undone.results] == ["undone", "undone", "cannot be undone"]


def test_undo_is_for_ten_minutes_and_for_what_it_could_take_back(at: Planning) -> None:
    plan, other = at.applied(put("Soil")), at.applied(put("Seeds"))
    removed = at.applied(("removePage", {"page": at.page_id("Seeds")}))
    with pytest.raises(
        PlanRefused, match=r"Removes the page “Seeds.* cannot be undone.* cannot be brought back: make it anew"
    ) as gone:
        at.undo(removed)
    assert gone.value.code == "nothing_to_undo"
    assert refusal(at.undo, other) == "nothing_to_undo"
    assert at.now(other).stored == "applied"
    at.clock.pass_s(10 * MINUTE_S + 1)
    assert refusal(at.undo, plan) == "undo_expired"
    assert at.pages() == [("open", "Soil", "")]


def test_undo_asks_for_the_authority_of_this_moment(at: Planning) -> None:
    add_user(at.log, "ada", "Ada", ["administrator", "user"])
    plan = at.confirm(at.draft(put("Soil", shelf="closed"), by=ADA), by=ADA)
    at.apply(plan, by=ADA)
    change_roles(at.log, "ada", [], ["administrator"])
    assert refusal(at.undo, plan, by=Principal("ada", "user")) == "nothing_to_undo"
    assert at.pages() == [("closed", "Soil", "")]


# ── secrets, words ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_secret_in_a_plan_is_taken_out_before_it_is_hashed(at: Planning) -> None:
    key = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    draft = at.draft(put("Soil", f"is {key}"), advice=Advice(title=key, risks=(key,)))
    assert draft.is_whole
    assert at.apply(at.confirm(draft, Edits({1: {"title": key}}))).error is None
    assert at.pages() == [("open", MASK, f"is {MASK}")]
    assert key not in str(at.now(draft))


def test_a_token_is_found_by_its_shape(at: Planning) -> None:
    token = at.token(at.confirm(at.draft(put("Soil"))))
    assert Redactor().redact(f"the token is {token}, he said") == f"the token is {MASK}, he said"


# ── two at once, and kills ───────────────────────────────────────────────────────────────────────────────────────────

APPLIER = """
import sys
from pathlib import Path
from council.app.home_store import open_store
from council.errors import CouncilError
from council.keys.keyring import Key, Keyring
from council.redaction import Secret
from council.settings import Home, Settings
from tests.planning import Planning
from council.plans.register import plans_starting_with

home = Home(Path(sys.argv[1]))
store = open_store(home, Settings(database_url=sys.argv[2] or None))
at = Planning(store, home.runtime, Keyring((Key(Secret(sys.argv[3]), "primary"),)))
for plan_id in sys.argv[4:]:
    [plan] = plans_starting_with(store, plan_id, 1)
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        at.apply(plan)
        print("applied", flush=True)
    except CouncilError as error:
        print(error.code, flush=True)
store.close()
"""


def test_of_two_processes_that_apply_one_plan_at_once_one_does(
    at: Planning, home: Home, database_url: str | None
) -> None:
    plans = [at.confirm(at.draft(*(put(f"{number}-{page}") for page in range(20)))).plan_id for number in range(3)]
    values = (str(home.root), database_url or "", KEYS.primary.material.reveal(), *plans)
    with contextlib.ExitStack() as ending:
        appliers = [
            ending.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", APPLIER, *values], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            for _ in range(2)
        ]
        for _ in plans:
            for process in appliers:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
            for process in appliers:
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
            said = [process.stdout.readline().strip() for process in appliers if process.stdout]
            assert sorted(said) == ["applied", "plan_applied"]
    assert len(at.pages()) == 60
    assert at.log.verify().findings == ()


class Cut(BaseException):
    """A process that dies in the middle of a transaction."""


class Garden:
    """Random decisions about plans, and a model of the rows that must be there after each."""

    def __init__(self, at: Planning) -> None:
        self.at = at
        self.rng = random.Random(20)
        self.plans: list[Plan] = []
        self.wanted: dict[str, dict[str, str]] = {}  # title and content of each plan, as confirmed
        self.there: dict[str, str] = {}
        self.acts: Counter[str] = Counter()

    def step(self) -> None:
        """One decision about one of the last plans. Raises PlanRefused, Cut."""
        act = self.rng.choice(("draft", "confirm", "edit", "apply", "apply", "undo", "reject", "pass", "cut"))
        if act == "draft" or not self.plans:
            titles = [f"t{self.rng.randrange(10**9)}" for _ in range(self.rng.randrange(1, 4))]
            self.plans.append(self.at.draft(*(put(title, "drafted") for title in titles)))
            self.wanted[self.plans[-1].plan_id] = dict.fromkeys(titles, "drafted")
            return
        plan = self.rng.choice(self.plans[-6:])
        pages = self.wanted[plan.plan_id]
        match act:
            case "confirm":
                self.at.confirm(plan)
            case "edit":
                text = f"c{self.rng.randrange(10**6)}"
                self.at.confirm(plan, Edits({1: {"content": text}}))
                pages[next(iter(pages))] = text
            case "apply":
                self.at.apply(plan)
                assert not pages.keys() & self.there.keys(), "applied twice"
                self.there.update(pages)
            case "undo":
                self.at.undo(plan)
                for title in pages:
                    del self.there[title]
            case "reject":
                self.at.reject(plan)
            case "pass":
                self.at.clock.pass_s(self.rng.choice((1, 60, 601)))
            case "cut":
                self.at.done("cut", STEWARD, lambda done: self.cut_off(done, plan))
        self.acts[act] += 1

    def cut_off(self, done: Transaction, plan: Plan) -> None:
        work = self.rng.choice((apply_plan, undo_plan))
        work(self.at.plans, done, plan.plan_id, STEWARD, self.at.plans.now_ms())
        self.acts["cut"] += 1
        raise Cut


def test_four_thousand_random_decisions_leave_no_wrong_row_and_apply_nothing_twice(home: Home) -> None:
    with closing(Store.memory()) as store:
        garden = Garden(Planning(store, home.runtime))
        for _ in range(4_000):
            with suppress(PlanRefused, Cut):
                garden.step()
        assert {title: content for _, title, content in garden.at.pages()} == garden.there
        assert garden.at.log.verify().findings == ()
    assert min(garden.acts[act] for act in ("confirm", "edit", "apply", "undo", "reject", "pass", "cut")) > 20


def test_a_database_that_takes_nothing_leaves_the_plan_to_be_applied_later(at: Planning) -> None:
    confirmed = at.confirm(at.draft(put("Soil")))
    broken = replace(at.plans.tools.get("putPage"), apply=_full)
    tools = type(at.plans.tools)([broken])
    before, at.plans = at.plans, replace(at.plans, tools=tools)
    with pytest.raises(StorageFailed):
        at.apply(confirmed)
    at.plans = before
    assert at.now(confirmed).stored == "confirmed"
    assert at.apply(confirmed).error is None


def _full(connection: Any, *_: Any) -> None:
    raise StorageFailed("the disk is full.", fix="make room")
