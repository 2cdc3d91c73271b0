"""The whole house: every system that a council has, those of upkeep too, and what it says of a command."""

from __future__ import annotations

from council.app import SYSTEMS, commands_of
from council.app.admission import admission
from council.commands.models import CommandBase
from council.commands.types import Admission
from council.engine.runs import Premises
from council.settings import Home, Settings
from council.storage.paths import ConfinedRoot
from council.storage.reader import Looking
from council.upkeep.forget import FORGETTING

ALL_SYSTEMS = (*SYSTEMS, FORGETTING)
COMMANDS = commands_of(ALL_SYSTEMS)


def admission_of(home: Home, store: Looking, settings: Settings, command: CommandBase) -> Admission:
    """The word of a home's daemon, for who has no app. Raises as `admission`."""
    with ConfinedRoot(home.root) as root:
        return admission(COMMANDS, Premises(home, settings, store, root), command)
