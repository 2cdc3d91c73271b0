"""The systems of a council. Another one is one more entry of `house`; every door hands the list on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from council.systems import System


def house() -> tuple[System, ...]:
    """Every system that a council has, those of upkeep too. They are loaded here, so that `council status` loads none."""
    from council.conductor.system import CONDUCTOR
    from council.deliberation.system import DELIBERATION
    from council.specialists.system import SPECIALISTS
    from council.upkeep.system import FORGETTING
    from council.workspace.system import WORKSPACE
    from council.world.system import WORLD

    return (DELIBERATION, CONDUCTOR, WORKSPACE, FORGETTING, WORLD, SPECIALISTS)
