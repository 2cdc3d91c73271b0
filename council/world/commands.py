"""The steward's commands: make a world, pause it, let it go on, ban a player, set the world back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt

from council.audit.log import Transaction
from council.audit.trail import Trail
from council.commands.models import ControlBase, dump
from council.commands.types import Admission, CommandType
from council.engine.records import FileIdentity
from council.engine.runs import ControlAnswer, Premises
from council.errors import CommandInvalid
from council.events import Events, WorldChange
from council.ids import Clock, Principal, SystemClock
from council.storage.store import Tx
from council.world.world_store import Book, OpenRound, world_there

_NOT_NOTED = ("$schema", "type", "id", "user")
MAX_CELLS = 25_000  # about 8,000 members at most: what their code is shown of all must fit into the cage


class WorldInitCommand(ControlBase):
    """Makes the world of this home: members on free land, without players yet."""

    type: Annotated[Literal["world_init"], Field(description="What kind of command this is.")]
    members: Annotated[StrictInt, Field(ge=1, le=5_000, description="Members at the beginning.")] = 50
    width: Annotated[StrictInt, Field(ge=1, le=1_000, description="Cells of the land from west to east.")] = 20
    height: Annotated[StrictInt, Field(ge=1, le=1_000, description="Cells of the land from north to south.")] = 20
    seed: Annotated[StrictInt, Field(ge=0, le=2**53, description="The seed of every random number.")] = 1
    pace: Annotated[StrictInt, Field(ge=1, le=86_400, description="Seconds in which a round accepts actions.")] = 30


class WorldPauseCommand(ControlBase):
    """Stops the rounds, and takes no submissions until the world goes on."""

    type: Annotated[Literal["world_pause"], Field(description="What kind of command this is.")]


class WorldResumeCommand(ControlBase):
    """Lets a paused world go on. The open round then accepts for its whole time."""

    type: Annotated[Literal["world_resume"], Field(description="What kind of command this is.")]


class WorldBanCommand(ControlBase):
    """Refuses a player from now on; what it submitted for the open round does not count."""

    type: Annotated[Literal["world_ban"], Field(description="What kind of command this is.")]
    agent: Annotated[StrictInt, Field(ge=1, le=2**31, description="The player's `agent_id`.")]


class WorldUnbanCommand(ControlBase):
    """Lets a banned player in again."""

    type: Annotated[Literal["world_unban"], Field(description="What kind of command this is.")]
    agent: Annotated[StrictInt, Field(ge=1, le=2**31, description="The player's `agent_id`.")]


class WorldRollbackCommand(ControlBase):
    """Begins a new round as an older one ended. Nothing is deleted."""

    type: Annotated[Literal["world_rollback"], Field(description="What kind of command this is.")]
    to_round: Annotated[StrictInt, Field(ge=0, le=2**31, description="The round whose end is the new beginning.")]


def admit_init(command: WorldInitCommand, premises: Premises) -> Admission:
    """Raises CommandInvalid for land that does not exceed the members."""
    cells = command.width * command.height
    if not command.members < cells <= MAX_CELLS:
        message = f"the land has {cells:,} cells for {command.members:,} members."
        raise CommandInvalid(message, fix=f"give more cells than members, and at most {MAX_CELLS:,}", field="width")
    return Admission(f"world of {command.members} members on {command.width}x{command.height}")


def admit_other(command: ControlBase, premises: Premises) -> Admission:
    return Admission(command.type.replace("_", " "))


def foresee(command: ControlBase, premises: Premises) -> None:
    """Raises CommandInvalid where there is a world already, and as `require_fit`."""
    book = Book(premises.store, SystemClock())
    if not isinstance(command, WorldInitCommand):
        require_fit(command, book)
    elif book.open_round() is not None:
        raise world_there()


def require_fit(command: ControlBase, book: Book) -> OpenRound:
    """The round that is under way. Raises CommandInvalid where a command does not fit it; WorldRefused where there is no world;
    WorldUnreadable where another version made it."""
    now = book.require_round()
    match command:
        case WorldResumeCommand() if now.phase != "paused":
            raise CommandInvalid("the world is not paused.", fix="`council world status` shows it")
        case WorldBanCommand(agent=agent) | WorldUnbanCommand(agent=agent):
            if agent not in {player.agent_id for player in book.players()}:
                fix = "`council world status` lists them"
                raise CommandInvalid(f"there is no player {agent}.", fix=fix, field="agent")
        case WorldRollbackCommand(to_round=older) if older >= (newest := book.world()[0].round_id):
            fix = f"the newest is {newest}"
            raise CommandInvalid(f"round {older} is not an older round.", fix=fix, field="to_round")
    return now


COMMANDS = (
    CommandType(WorldInitCommand, admit_init, given_by="administrator", foresee=foresee),
    *(
        CommandType(model, admit_other, given_by="administrator", foresee=foresee)
        for model in (WorldPauseCommand, WorldResumeCommand, WorldBanCommand, WorldUnbanCommand, WorldRollbackCommand)
    ),
)


@dataclass(frozen=True)
class WorldHandler:
    """Obeys the steward's commands on the world, and tells its clock."""

    book: Book
    clock: Clock
    events: Events
    audit: Trail

    async def __call__(self, command: Any, principal: Principal, file: FileIdentity) -> ControlAnswer:
        """Raises as `require_fit`."""
        if not isinstance(command, WorldInitCommand):
            now = await asyncio.to_thread(require_fit, command, self.book)
        detail = {key: value for key, value in dump(command).items() if key not in _NOT_NOTED}
        done: list[Transaction] = []

        def note(tx: Tx) -> None:
            done[:] = [self.audit.join(tx)]
            done[0].record("effect", command.type, principal.id, detail)

        match command:
            case WorldInitCommand():
                shape = command.width, command.height
                made = await self.book.make(command.members, shape, command.seed, command.pace, note)
                said = f"World {made.world_id} has {len(made.members)} members."
            case WorldPauseCommand():
                await self.book.set_phase("paused", now.deadline_ms, note)
                said = f"The world pauses in round {now.round_id}."
            case WorldResumeCommand():
                deadline_ms = int(1000 * (self.clock.now().timestamp() + now.pace_s))
                await self.book.set_phase("accepting", deadline_ms, note)
                said = f"The world goes on in round {now.round_id}."
            case WorldBanCommand():
                await self.book.ban(command.agent, banned=True, note=note)
                said = f"Player {command.agent} is banned."
            case WorldUnbanCommand():
                await self.book.ban(command.agent, banned=False, note=note)
                said = f"Player {command.agent} may play again."
            case WorldRollbackCommand():
                world = await self.book.roll_back(command.to_round, note)
                said = f"Round {world.round_id} begins as round {command.to_round} ended."
            case _:
                raise AssertionError(command.type)
        self.audit.settle(done[0])
        self.events.publish(WorldChange(note=said))
        return ControlAnswer((said,))
