"""What a round of the island world costs: everybody acts, lives on and is counted, and the hashes are made."""

from __future__ import annotations

import time

from benchmarks.report import Figure, Table, percentile_s
from council.world.kernel import Action, found_world, settle

ROUNDS = 15
_SIZES = ((50, 20, 5), (500, 63, 25), (5_000, 200, 250))  # members, the side of the land, the bar in milliseconds
_TURN = (Action("expand"), Action("attack", 1), Action("offer", 2), Action("message", 3, text="hello"))


def measure(rounds: int = ROUNDS) -> list[Table]:
    figures = [
        Figure(f"median of a round, {members:,} members", percentile_s(_settled(members, side, rounds), 50) * 1e3, "ms", bar=bar)
        for members, side, bar in _SIZES
    ]  # fmt: skip
    how = f"{rounds} rounds of each world. A tenth of the members have a player, whose code asked for four actions."
    return [Table("A round of the island world", how, [], figures)]


def _settled(members: int, side: int, rounds: int) -> list[float]:
    state, taken_s = found_world(members, side, side, seed=1), []
    for number in range(rounds):
        actions = {member.id: _TURN for member in state.members[::10]}
        began_s = time.perf_counter()
        state, _ = settle(state, actions, number)
        taken_s.append(time.perf_counter() - began_s)
    return taken_s
