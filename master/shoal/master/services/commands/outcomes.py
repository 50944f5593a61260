"""What becomes of commands: carried out, refused with a reason, quarantined, or tried again."""

from collections.abc import Awaitable, Iterable, Mapping
from datetime import datetime

import structlog

from shoal.core.runs.commands import Command
from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.run import Run
from shoal.master.engine import messages
from shoal.master.services.service import MasterContext, is_passing
from shoal.sql import UnitOfWork

log = structlog.get_logger()


class CommandOutcomes:
    """Stores the outcomes of commands that cannot be carried out, for one master."""

    def __init__(self, context: MasterContext) -> None:
        self._database, self._engine = context.database, context.engine
        self._clock, self._notify_owners = context.clock, context.notify_owners

    def sound(self, commands: Iterable[Command]) -> list[Command]:
        """Return those that are not quarantined."""
        holds = self._engine.quarantine.holds
        return [command for command in commands if not holds(ItemKind.COMMAND, command.id)]

    def quarantine(self, key: object, partition: int, error: Exception) -> None:
        """Quarantine a command. It stays pending, for a version that can carry it out."""
        if partition in self._engine.epochs and not self._engine.quarantine.holds(
            ItemKind.COMMAND, key
        ):
            self._engine.quarantine.put(ItemKind.COMMAND, key, partition, error)

    async def settle(self, command: Command, work: Awaitable[None]) -> None:
        """Carry a command out; what is wrong with it holds up no other."""
        try:
            await work
        except Exception as error:
            if is_passing(error):
                raise
            self.quarantine(command.id, command.partition, error)
        else:
            self._engine.quarantine.passed(ItemKind.COMMAND, command.id)

    async def refuse(self, command: Command, reason: str) -> None:
        """Store why a command is not carried out. Raises PartitionNotOwned, Fenced."""
        async with self._database.unit_of_work() as uow:
            await uow.fence({command.partition: self._engine.epoch_of(command.partition)})
            now = self._clock()
            notified = await notify_parents(uow, [command], {command.id: reason}, [], now)
            await uow.commands.refuse(command.id, reason, now)
            await uow.commit()
        self._notify_owners(notified)
        log.warning("command refused", command=command.id, reason=reason)


async def notify_parents(
    uow: UnitOfWork,
    commands: Iterable[Command],
    refused: Mapping[int, str],
    created: Iterable[Run],
    at: datetime,
) -> set[int]:
    """Send tasks that a sub-workflow was refused, or waits; return their partitions."""
    news = [
        messages.refusal_of(command.parent, refused[command.id], command.instance_id)
        for command in commands
        if command.parent is not None and command.id in refused
    ]
    news += [
        messages.waiting(run.parent, run.id)
        for run in created
        if run.parent is not None and run.admitted_at is None
    ]
    if not news:
        return set()
    stored = await uow.commands.send_many(await messages.news_commands(uow, news), at)
    return {command.partition for command in stored}
