"""The world's book: all that is kept of it, read and written in the house's database. No HTTP and no cage here.

The round that is open is the one after the last that was settled. What a player asks for belongs to it, once for each
idempotency key. The settled round, its receipt, actions, messages and event are written in one transaction.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from council.errors import CommandInvalid, CouncilError
from council.ids import Clock, canonical_json, epoch_ms, sha256_hex, timestamp
from council.redaction import Redactor
from council.storage.reader import Looking
from council.storage.store import Store, Tx
from council.users.api_keys import make_key, owner_of
from council.world import statements as sql
from council.world.kernel import (
    VERBS,
    Action,
    RoundOutcome,
    RoundReceipt,
    World,
    at_older_state,
    new_world,
    settle,
    snapshot,
    state_hash,
    world_of,
)

Phase = Literal["accepting", "executing", "paused"]
Note = Callable[[Tx], None]
KEY_PREFIX = "lev_"
ACT, PROPOSE, VOTE = "action", "propose", "vote"
MAX_SUBMISSIONS = {ACT: 4, PROPOSE: 1, VOTE: 50}  # of one player in one round: code may take seconds in the cage
MAX_UNDECIDED = 20  # mechanisms at a time
_OWNER = "player-{}"
_KEPT_WHOLE = 50  # every so many rounds the state is kept; those between are worked out from the log
_LETTERS_KEPT = 100  # rounds


_STATUS = {  # in HTTP, by the code of a refusal; 409 for every other
    "key_missing": 401,
    "key_unknown": 403,
    "banned": 403,
    "no_world": 404,
    "round_not_found": 404,
    "mechanism_not_found": 404,
    "idempotency_conflict": 422,
}

WorldCode = Literal[
    "banned", "idempotency_conflict", "key_missing", "key_unknown", "mechanism_not_found", "member_dead", "no_world",
    "not_votable", "proposal_open", "round_not_found", "too_many_proposals", "too_many_submissions", "voted", "world_full",
]  # fmt: skip


class WorldRefused(CouncilError):
    """A request that the world, as it is now, does not grant. `code` says why."""

    def __init__(self, code: WorldCode, message: str, *, fix: str = "") -> None:
        super().__init__(message, fix=fix)
        self.code = code
        self.http_status = _STATUS.get(code, 409)


class WorldUnreadable(CouncilError):
    """A state of the world that this version does not know."""

    code = "world_unreadable"


class Late(CouncilError):
    """A submission outside the window of its round."""

    code = "not_accepting"
    http_status = 409

    def __init__(self, reason: str, round_id: int) -> None:
        super().__init__(reason)
        self.round_id = round_id


@dataclass(frozen=True)
class Player:
    """An outside program. `member_id` is the member it has had since it registered; that may be dead."""

    agent_id: int
    name: str
    description: str
    member_id: int
    registered_at: str
    banned: bool


@dataclass(frozen=True)
class OpenRound:
    """The round that is under way. `deadline_ms` is since the epoch; it counts while the phase is `accepting`."""

    round_id: int
    phase: Phase
    deadline_ms: int
    pace_s: int


@dataclass(frozen=True)
class Pending:
    """A submission for the open round that nobody worked on yet."""

    submission_id: str
    kind: str
    agent_id: int
    member_id: int
    code: str


class Book:
    """The world of one home; there may be none yet."""

    def __init__(self, store: Looking, clock: Clock, redactor: Redactor | None = None) -> None:
        """To write, `store` must be a `Store`."""
        self._store = store
        self._clock = clock
        self._redact = (redactor or Redactor()).redact
        self._known: tuple[object, World, int] | None = None

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def world(self) -> tuple[World, int]:
        """The state after the last settled round, and the seed. Raises WorldRefused where there is no world."""
        known = self._known = self._store.read(self._now_in)
        return known[1:]

    def open_round(self) -> OpenRound | None:
        """None where there is no world."""
        return self._store.read(_open_round)

    def require_round(self) -> OpenRound:
        """The round that is under way. Raises WorldRefused where there is no world."""
        return self._store.read(_open_round_in)

    def left_s(self, now: OpenRound) -> float:
        """The seconds in which the round still accepts submissions."""
        return max(0.0, (now.deadline_ms - epoch_ms(self._clock)) / 1000) if now.phase == "accepting" else 0.0

    def receipt(self, round_id: int) -> dict[str, Any]:
        """Raises WorldRefused for a round that was not settled."""
        told = self._store.read(lambda tx: _receipt(tx, round_id))
        if told is None:
            raise WorldRefused("round_not_found", f"round {round_id} is not settled.")
        return told

    def receipts(self, since_round: int, count: int) -> list[dict[str, Any]]:
        """The newest receipts after a round, oldest first."""
        rows = self._store.read(lambda tx: tx.execute(sql.RECEIPTS_SINCE, (since_round, count)).fetchall())
        return [told for row in reversed(rows) if (told := json.loads(row[0])) is not None]

    def events(self, statement: str, since: int, count: int) -> list[dict[str, Any]]:
        """`statement` is EVENTS_AFTER an event or EVENTS_SINCE_ROUND."""
        rows = self._store.read(lambda tx: tx.execute(statement, (since, count)).fetchall())
        names = ("event_id", "event_type", "round_id", "timestamp", "payload")
        return [dict(zip(names, (*row[:4], json.loads(row[4])), strict=True)) for row in rows]

    def letters(self, member_id: int, since_round: int, count: int) -> list[dict[str, Any]]:
        """The messages to a member, oldest first."""
        rows = self._store.read(lambda tx: tx.execute(sql.LETTERS, (member_id, since_round, count)).fetchall())
        return [dict(zip(("round_id", "from_id", "text"), row, strict=True)) for row in rows]

    def newest_letters(self, skip: int, count: int) -> list[dict[str, Any]]:
        """The messages of all members but the newest `skip`, the newest first. For those who keep order in the world."""
        rows = self._store.read(lambda tx: tx.execute(sql.NEWEST_LETTERS, (count, skip)).fetchall())
        return [dict(zip(("round_id", "from_id", "to_id", "text"), row, strict=True)) for row in rows]

    def outcomes(self, agent_id: int, since_round: int, count: int) -> list[dict[str, Any]]:
        """The outcomes of a player's submissions."""
        rows = self._store.read(lambda tx: tx.execute(sql.OUTCOMES, (agent_id, since_round, count)).fetchall())
        return [dict(zip(("submission_id", "round_id", "kind", "error"), row, strict=True)) for row in rows]

    def mechanism(self, mechanism_id: str) -> dict[str, Any]:
        """A proposal: its rules, its canary, and its votes while it is voted on. Raises WorldRefused for none."""
        told = self._store.read(lambda tx: self._mechanisms(tx, sql.MECHANISM, (mechanism_id,)))
        if not told:
            raise WorldRefused("mechanism_not_found", f"there is no mechanism {mechanism_id[:64]}.")
        return told[0]

    def mechanisms(self, status: str, count: int, skip: int = 0) -> list[dict[str, Any]]:
        """The newest proposals with a status but the first `skip` ones, newest first; all where it is empty."""
        return self._store.read(lambda tx: self._mechanisms(tx, sql.MECHANISMS, (status or "%", count, skip)))

    def letter_count(self) -> int:
        return int(self._store.read(lambda tx: tx.execute(sql.LETTER_COUNT).fetchone())[0])

    def mechanism_count(self) -> int:
        return int(self._store.read(lambda tx: tx.execute(sql.MECHANISM_COUNT).fetchone())[0])

    def players(self) -> list[Player]:
        return [_player(row) for row in self._store.read(lambda tx: tx.execute(sql.PLAYERS).fetchall())]

    def player_of(self, key: str) -> Player:
        """The player whose key it is. Raises WorldRefused for one that is unknown, revoked, or of a banned player."""

        def look(tx: Tx) -> Player | None:
            owner = owner_of(tx, self._clock, key) if key.startswith(KEY_PREFIX) else None
            if owner is None:
                return None
            row = tx.execute(sql.PLAYER, (int(owner.removeprefix(_OWNER.format(""))),)).fetchone()
            if row is None:
                return None
            self._known = self._now_in(tx)  # so that its submission need not decode the state while it writes
            return _player(row)

        player = self._store.read(look)
        if player is None:
            raise WorldRefused("key_unknown", "no player has this key.", fix="register: POST /v1/agents/register")
        if player.banned:
            raise WorldRefused("banned", f"player {player.agent_id} is banned.")
        return player

    # ── what players ask ─────────────────────────────────────────────────────────────────────────────────────────────

    async def register(self, name: str, description: str) -> tuple[Player, str]:
        """A new player with the first living member that nobody has, and its key. Raises WorldRefused when all are taken."""

        def work(tx: Tx) -> tuple[Player, str]:
            world = self._now_in(tx)[1]
            taken = {row[0] for row in tx.execute(sql.MEMBERS_TAKEN).fetchall()}
            free = next((member_id for member_id in sorted(world.members) if member_id not in taken), None)
            if free is None:
                raise WorldRefused("world_full", "every living member has a player.", fix="ask again after a birth")
            agent_id = tx.execute(sql.NEXT_AGENT).fetchone()[0]
            player = Player(agent_id, name, description, free, timestamp(self._clock.now()), banned=False)
            row = (agent_id, self._redact(name), self._redact(description), free, player.registered_at)
            tx.execute(sql.ADD_PLAYER, row)
            return player, make_key(tx, self._clock, prefix=KEY_PREFIX, owner=_OWNER.format(agent_id))

        return await self._open_store().write(work)

    async def act(self, player: Player, code: str, idempotency_key: str) -> str:
        """The id of the submission, the same one for the same key and code. Raises Late outside the window, WorldRefused."""
        return (await self._open_store().write(lambda tx: self._submit(tx, player, ACT, code, idempotency_key)))[0]

    async def propose(self, player: Player, code: str, description: str, idempotency_key: str) -> str:
        """The id of the mechanism. Raises as `act`, and for a player with a proposal that is not decided."""

        def work(tx: Tx) -> str:
            mechanism_id, is_new = self._submit(tx, player, PROPOSE, code, idempotency_key, description)
            if is_new:
                undecided = [row[0] for row in tx.execute(sql.UNDECIDED_MECHANISMS).fetchall()]
                if player.agent_id in undecided:
                    told = "your last proposal is not decided yet."
                    raise WorldRefused("proposal_open", told, fix="wait for its end")
                if len(undecided) >= MAX_UNDECIDED:
                    told = f"{MAX_UNDECIDED} proposals are not decided yet."
                    raise WorldRefused("too_many_proposals", told, fix="ask again later")
                row = (mechanism_id, player.agent_id, _open_round_in(tx).round_id, self._redact(description))
                tx.execute(sql.ADD_MECHANISM, row)
            return mechanism_id

        return await self._open_store().write(work)

    async def vote(self, player: Player, mechanism_id: str, word: Literal["yes", "no"], idempotency_key: str) -> str:
        """The id of the submission. Raises as `act`, and for a mechanism on which nobody votes."""

        def work(tx: Tx) -> str:
            found = self._mechanisms(tx, sql.MECHANISM, (mechanism_id,))
            if not found:
                raise WorldRefused("mechanism_not_found", f"there is no mechanism {mechanism_id[:64]}.")
            submission_id, is_new = self._submit(tx, player, VOTE, f"{mechanism_id} {word}", idempotency_key)
            if not is_new:
                return submission_id
            if found[0]["status"] != "pending_vote":
                raise WorldRefused("not_votable", f"nobody votes on this mechanism: it is {found[0]['status']}.")
            round_id = _open_round_in(tx).round_id
            if tx.execute(sql.VOTES_OF, (player.agent_id, round_id, f"{mechanism_id} %")).fetchone()[0] > 1:
                raise WorldRefused("voted", "you voted on it in this round.", fix="change your vote in the next round")
            return submission_id

        return await self._open_store().write(work)

    def _now_in(self, tx: Tx) -> tuple[object, World, int]:
        """The name of the state, the world and the seed. A state that `world` read is not decoded again."""
        now = tx.execute(sql.NOW).fetchone()
        if now is None:
            raise no_world()
        if self._known is not None and self._known[0] == tuple(now):
            return self._known
        return tuple(now), _decoded(tx.execute(sql.STATE).fetchone()[0]), int(now[1])

    def _submit(
        self, tx: Tx, player: Player, kind: str, code: str, idempotency_key: str, also: str = ""
    ) -> tuple[str, bool]:
        """The id of a submission, and True for a new one. By their ids, those of a player stand in the order in which they were
        accepted. `also` is what belongs to it beside the code."""
        body_sha256 = sha256_hex(canonical_json([code, also]))
        now = _open_round_in(tx)
        digest = sha256_hex(f"{kind}:{player.agent_id}:{now.round_id}:{idempotency_key}")
        known = tx.execute(sql.SUBMITTED, (player.agent_id, now.round_id, kind, digest)).fetchone()
        if known is not None:
            submission_id, body_before = known
            if body_before != body_sha256:
                told = "this idempotency key was used for another body in this round."
                raise WorldRefused("idempotency_conflict", told, fix="use a new key")
            return submission_id, False
        if now.phase != "accepting" or not self.left_s(now):
            word = now.phase if now.phase != "accepting" else "closed"
            raise Late(f"round {now.round_id} does not accept submissions: it is {word}", now.round_id)
        if player.member_id not in self._now_in(tx)[1].members:
            told = f"member {player.member_id} is dead."
            raise WorldRefused("member_dead", told, fix="register again for another one")
        most = MAX_SUBMISSIONS[kind]
        kinds = [row[0] for row in tx.execute(sql.SUBMISSIONS_OF, (player.agent_id, now.round_id)).fetchall()]
        if kinds.count(kind) >= most:
            raise WorldRefused("too_many_submissions", f"a player submits at most {most} of this kind in one round.")
        submission_id = f"{now.round_id}-{player.agent_id}-{len(kinds) + 1:02}-{digest[:12]}"
        row = (submission_id, now.round_id, player.agent_id, kind, digest, body_sha256, code)
        tx.execute(sql.SUBMIT, row)
        return submission_id, True

    # ── what the clock does ──────────────────────────────────────────────────────────────────────────────────────────

    async def close_window(self, round_id: int) -> bool:
        """False where the round does not accept submissions any more."""
        return await self._open_store().write(lambda tx: bool(tx.execute(sql.CLOSE_WINDOW, (round_id - 1,)).rowcount))

    def pending(self, round_id: int) -> list[Pending]:
        """The submissions for a round: those of one player in the order in which they were accepted."""
        rows = self._store.read(lambda tx: tx.execute(sql.PENDING, (round_id,)).fetchall())
        return [Pending(*row) for row in rows]

    def last_verbs(self, round_id: int) -> dict[int, list[str]]:
        """The verbs that were accepted in a round, by member."""
        told = self._store.read(lambda tx: _receipt(tx, round_id))
        accepted = set(told["accepted_action_ids"]) if told is not None else set()
        verbs: dict[int, list[str]] = {}
        for action in self.actions(round_id):
            if action.action_id in accepted and action.verb in VERBS:
                verbs.setdefault(action.member_id, []).append(action.verb)
        return verbs

    async def settle(
        self,
        outcome: RoundOutcome,
        actions: Sequence[Action],
        errors: Mapping[str, str],
        reports: Mapping[str, Mapping[str, Any]],
        deadline_ms: int,
    ) -> bool:
        """Writes a settled round, all of it at once. `errors`: what went wrong, by submission. `reports`: the canary of each
        mechanism. False when the world was set back meanwhile, or paused: a paused round accepts again before it is settled."""
        receipt = outcome.receipt
        kept = [replace(action, text=self._redact(action.text)) for action in actions]
        letters = [replace(letter, text=self._redact(letter.text)) for letter in outcome.letters]

        def work(tx: Tx) -> bool:
            state = _encoded(outcome.world)
            done = tx.execute(sql.SETTLE, (deadline_ms, receipt.round_id, state, receipt.round_id - 1))
            if done.rowcount != 1:
                return False
            self._note_round(tx, receipt, kept, state if receipt.round_id % _KEPT_WHOLE == 0 else "", None)
            for number, action in enumerate(kept):
                tx.execute(sql.ADD_ACTION, (receipt.round_id, number, json.dumps(asdict(action))))
            for number, letter in enumerate(letters):
                tx.execute(sql.ADD_LETTER, (receipt.round_id, number, letter.member_id, letter.target_id, letter.text))
            tx.execute(sql.DROP_LETTERS, (receipt.round_id - _LETTERS_KEPT,))
            for submission_id, error in errors.items():
                tx.execute(sql.ANSWER, (self._redact(error), submission_id))
            for action in kept:
                if action.action_id in reports and action.action_id in receipt.accepted_action_ids:
                    report = json.dumps(reports[action.action_id])
                    tx.execute(sql.OPEN_VOTE, (action.text, report, action.action_id))
            tx.execute(sql.REFUSE_MECHANISMS, (receipt.round_id,))
            for mechanism_id, verdict in receipt.verdicts.items():
                tx.execute(sql.SET_MECHANISM, (verdict, mechanism_id))
            return True

        return await self._open_store().write(work)

    # ── what the steward does ────────────────────────────────────────────────────────────────────────────────────────

    # `note` records what is done, in the same transaction.

    async def make(self, members: int, shape: tuple[int, int], seed: int, pace_s: int, note: Note) -> World:
        """A new world. Raises CommandInvalid where there is one, or where the land is too small."""
        world_id = sha256_hex(canonical_json([members, list(shape), seed]))[:16]
        try:
            world = new_world(world_id, members, shape, seed)
        except ValueError as error:
            raise CommandInvalid(f"{error}.", fix="give more land", field="land") from error
        deadline_ms = epoch_ms(self._clock) + 1000 * pace_s

        def work(tx: Tx) -> None:
            if _open_round(tx) is not None:
                raise world_there()
            state = _encoded(world)
            tx.execute(sql.MAKE, (world_id, seed, pace_s, deadline_ms, state))
            tx.execute(sql.ADD_ROUND, (0, None, "null", state))
            note(tx)

        await self._open_store().write(work)
        return world

    async def set_phase(self, phase: Phase, deadline_ms: int, note: Note) -> None:
        """Raises StorageFailed."""
        await self._noted(sql.SET_PHASE, (phase, deadline_ms), note)

    async def ban(self, agent_id: int, *, banned: bool, note: Note) -> None:
        """Raises StorageFailed."""
        await self._noted(sql.BAN, (int(banned), agent_id), note)

    async def _noted(self, statement: str, values: tuple[object, ...], note: Note) -> None:
        def work(tx: Tx) -> None:
            tx.execute(statement, values)
            note(tx)

        await self._open_store().write(work)

    async def roll_back(self, to_round: int, note: Note) -> World:
        """A new round that begins as an older, settled one ended. Raises CommandInvalid when one is settled meanwhile."""
        world, seed = await asyncio.to_thread(self.world)
        raised = at_older_state(await asyncio.to_thread(self.state_after, to_round), world)
        receipt = RoundReceipt(
            raised.round_id, seed, state_hash(world), state_hash(raised), (), {}, {"population": len(raised.members)}
        )

        def work(tx: Tx) -> bool:
            state = _encoded(raised)
            deadline_ms = epoch_ms(self._clock) + 1000 * _open_round_in(tx).pace_s
            done = tx.execute(sql.ROLL_BACK, (deadline_ms, raised.round_id, state, world.round_id))
            if done.rowcount != 1:
                raise CommandInvalid("a round was settled meanwhile.", fix="pause the world, then roll back")
            self._note_round(tx, receipt, (), state, to_round)
            tx.execute(sql.ANSWER_ALL, ("the world was set back", raised.round_id))
            tx.execute(sql.ROLL_BACK_MECHANISMS, (to_round,))
            for mechanism in raised.mechanisms:
                tx.execute(sql.SET_MECHANISM, ("pending_vote", mechanism.id))
            note(tx)
            return True

        await self._open_store().write(work)
        return raised

    # ── the log ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def state_after(self, round_id: int) -> World:
        """The state after a round, worked out from the last one before it that is kept whole."""
        at, state = self._store.read(lambda tx: tx.execute(sql.KEPT_BEFORE, (round_id,)).fetchone())
        world, seed = _decoded(state), self.world()[1]
        for number in range(at + 1, round_id + 1):
            world = settle(world, self.actions(number), seed).world
        return world

    def actions(self, round_id: int) -> list[Action]:
        """The actions that were asked for in a round."""
        rows = self._store.read(lambda tx: tx.execute(sql.ACTIONS, (round_id,)).fetchall())
        return [Action(**json.loads(row[0])) for row in rows]

    def replay(self) -> Iterator[tuple[int, str, str]]:
        """Every settled round, worked out again from the first state: its number, the hash of its state, and what differs; empty
        where nothing does. The first that differs is the last that is told."""
        now, rounds = self._store.read(lambda tx: (self._now_in(tx), tx.execute(sql.ROUNDS).fetchall()))
        _, newest, seed = now
        world = _decoded(rounds[0][3] if rounds else "")
        last_hash = ""
        for round_id, rollback_to, receipt, state in rounds[1:]:
            try:
                told, kept = dict(json.loads(receipt)), json.loads(state) if state else None
                actions = self.actions(round_id)
                found = {
                    "actions_hash": actions_hash(actions),
                    "last_receipt_hash": last_hash,
                    "rollback_to": rollback_to,
                }
            except (TypeError, ValueError):
                yield round_id, "", "a row that cannot be read"
                return
            differs = sorted(key for key, value in found.items() if told.get(key) != value)
            again: dict[str, Any] = {}
            if not differs:  # what stands in the log is what was settled
                if rollback_to is not None:
                    world = at_older_state(self.state_after(rollback_to), world)
                    again = {"snapshot_hash_after": state_hash(world)}
                else:
                    outcome = settle(world, actions, seed)
                    world, again = outcome.world, receipt_json(outcome.receipt)
                differs += sorted(key for key, value in again.items() if told.get(key) != value)
                if kept is not None and kept != snapshot(world):
                    differs.append("state")
            last_hash = receipt_hash(told)
            yield round_id, again.get("snapshot_hash_after", ""), ", ".join(differs)
            if differs:
                return
        if newest != world:  # the rounds are right, and the world that is played on is another one
            yield newest.round_id, state_hash(newest), "state"

    def _mechanisms(self, tx: Tx, statement: str, values: tuple[Any, ...]) -> list[dict[str, Any]]:
        voted_on = {one.id: one for one in self._now_in(tx)[1].mechanisms}
        names = ("mechanism_id", "agent_id", "round_id", "description", "status", "rules", "canary", "error")
        told = []
        for row in tx.execute(statement, values).fetchall():
            one = dict(zip(names, (*row[:5], json.loads(row[5]), json.loads(row[6]), row[7]), strict=True))
            open_one = voted_on.get(one["mechanism_id"])
            yes, no = (open_one.yes, open_one.no) if open_one else ((), ())
            told.append(one | {"yes": list(yes), "no": list(no)})
        return told

    def _note_round(
        self, tx: Tx, receipt: RoundReceipt, actions: Sequence[Action], state: str, rollback_to: int | None
    ) -> None:
        told = receipt_json(receipt) | {
            "actions_hash": actions_hash(actions),
            "last_receipt_hash": receipt_hash(_receipt(tx, receipt.round_id - 1)),
            "rollback_to": rollback_to,
        }
        tx.execute(sql.ADD_ROUND, (receipt.round_id, rollback_to, json.dumps(told), state))
        kind = "round_settled" if rollback_to is None else "world_rolled_back"
        at = timestamp(self._clock.now())
        event_id = tx.execute(sql.NEXT_EVENT).fetchone()[0]
        tx.execute(sql.ADD_EVENT, (event_id, kind, receipt.round_id, at, json.dumps(told)))

    def _open_store(self) -> Store:
        assert isinstance(self._store, Store), "opened to be read"
        return self._store


def world_there() -> CommandInvalid:
    return CommandInvalid("there is a world already.", fix="`council world status` shows it")


def no_world() -> WorldRefused:
    return WorldRefused("no_world", "there is no world in this home.", fix="`council world init` makes one")


def deadline_utc(now: OpenRound) -> str | None:
    """The end of the window; None while there is none."""
    if now.phase != "accepting":
        return None
    return datetime.fromtimestamp(now.deadline_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def receipt_json(receipt: RoundReceipt) -> dict[str, Any]:
    """A receipt under the names of the wire."""
    return {
        "round_id": receipt.round_id,
        "seed": receipt.seed,
        "snapshot_hash_before": receipt.snapshot_hash_before,
        "snapshot_hash_after": receipt.snapshot_hash_after,
        "accepted_action_ids": list(receipt.accepted_action_ids),
        "rejected_action_ids": sorted(receipt.rejected),
        "rejected": dict(sorted(receipt.rejected.items())),
        "activated_mechanism_ids": sorted(one for one, verdict in receipt.verdicts.items() if verdict == "active"),
        "mechanism_verdicts": dict(sorted(receipt.verdicts.items())),
        "round_metrics": dict(receipt.metrics),
    }


def actions_hash(actions: Sequence[Action]) -> str:
    """SHA-256 of what was asked in a round, rejected actions too; without the words of messages, which `forget` may change."""
    told = [asdict(replace(one, text="") if one.verb == "message" else one) for one in actions]
    return sha256_hex(canonical_json(told))


def receipt_hash(told: Mapping[str, Any] | None) -> str:
    """Links one receipt to the next; empty before the first."""
    return "" if told is None else sha256_hex(canonical_json(told))


def _receipt(tx: Tx, round_id: int) -> dict[str, Any] | None:
    """None for round 0, which is the beginning, and for one that was not settled."""
    row = tx.execute(sql.RECEIPT, (round_id,)).fetchone()
    told: dict[str, Any] | None = None if row is None else json.loads(row[0])
    return told


def _open_round(tx: Tx) -> OpenRound | None:
    row = tx.execute(sql.ROUND_NOW).fetchone()
    return None if row is None else OpenRound(row[2] + 1, row[0], row[1], row[3])


def _open_round_in(tx: Tx) -> OpenRound:
    now = _open_round(tx)
    if now is None:
        raise no_world()
    return now


def _player(row: Sequence[Any]) -> Player:
    agent_id, name, description, member_id, registered_at, banned = row
    return Player(agent_id, name, description, member_id, registered_at, bool(banned))


def _encoded(world: World) -> str:
    return json.dumps(snapshot(world), separators=(",", ":"), ensure_ascii=False)


def _decoded(state: str) -> World:
    try:
        return world_of(json.loads(state))
    except (KeyError, TypeError, ValueError) as error:
        raise WorldUnreadable(
            "the state of the world cannot be read: another version of Council made it, or it was changed.",
            fix="use the version that made it, or make a new world in another home",
        ) from error
