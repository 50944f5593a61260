"""The scanner: commands of this master's partitions become instances and events.

Woken by the partitions' notifications, and at least every few seconds by itself, since a
notification is only a hint. START and RERUN are carried out in batches, one transaction each:
instances, attempts and the commands' outcomes together, and the admission of those that must not
overlap. The other commands are events for a run, decided by the engine, those for one run in the
order in which they were accepted. They never wait behind starts, of which a master takes no more
than it may hold; the rest stays pending until instances end. As soon as more starts are pending
than it takes at once, or than it has room for, projects take turns (``capacity.py``).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping

from shoal.core.runs.commands import Command, CommandType
from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.run import Run
from shoal.master.services.commands.capacity import StartCapacity
from shoal.master.services.commands.outcomes import CommandOutcomes
from shoal.master.services.commands.requests import REQUESTS, RunRequests
from shoal.master.services.commands.starts import Starts
from shoal.master.services.service import MasterContext, PeriodicService
from shoal.sql.errors import UnreadableRow

CarryOut = Callable[[Command], Awaitable[None]]

_CREATES = frozenset({CommandType.START, CommandType.RERUN})
# A full master takes a start at every end, and is full again: it counts as full for so long.
_FULL_FOR_S = 60.0
_PAUSES_PER_READING = 4  # a backlog is read for a fifth of the time at most


class Scanner(PeriodicService):
    """Reads the command table for one master."""

    name = "scanner"

    def __init__(
        self, context: MasterContext, others: Mapping[CommandType, CarryOut] | None = None
    ) -> None:
        """``others``: what carries out commands that are not about an instance."""
        settings = context.settings
        super().__init__(settings.scan_interval_s)
        self._database, self._engine = context.database, context.engine
        self._batch_size = settings.scan_batch
        self._capacity = StartCapacity(
            self._engine.runs, settings.max_open_instances, context.is_served
        )
        self._next_in_turn = 0.0  # when pending starts may be read in turn again; of the loop
        self._put_off: set[int] = set()  # partitions whose starts are read in turn then
        self._others = others or {}
        self._is_full = False  # starts may be pending until instances end
        self._full_s: float | None = None  # when it was last full; monotonic
        self._notified: set[int] = set()
        self._outcomes = CommandOutcomes(context)
        self._starts = Starts(context, self._outcomes)
        self._requests = RunRequests(context, self._outcomes)

    @property
    def was_full(self) -> bool:
        """Whether starts have had to wait for ends of instances, now or a moment ago."""
        return self._full_s is not None and time.monotonic() - self._full_s < _FULL_FOR_S

    def notify(self, partition: int) -> None:
        """Read the commands of a partition soon."""
        self._notified.add(partition)
        self._wakeup.notify()

    async def poll(self, is_regular: bool) -> None:
        partitions, self._notified = self._notified & self._engine.epochs.keys(), set()
        if is_regular:
            partitions = set(self._engine.epochs)
            self._requests.waiting.clear()
        await self.scan(partitions)

    def on_ended(self, run: Run) -> None:
        """There is room for another instance."""
        if self._is_full:
            self._is_full = False
            self._notify_all(self._engine.epochs.keys())

    def on_readmitted(self, run: Run) -> None:
        """Messages that have waited for a quarantined run can be carried out."""
        if self._requests.waiting:
            self.notify(run.partition)

    async def _starts_in_turn(
        self, partitions: Collection[int], quarantined: int
    ) -> list[Command] | None:
        """Return the starts to carry out now while many are pending, or there is little room.

        None: too soon after the last time, since the whole backlog is read. It follows by itself.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        if began < self._next_in_turn:
            if not self._put_off:
                loop.call_at(self._next_in_turn, self._notify_put_off)
            self._put_off |= set(partitions)
            return None
        bad: list[UnreadableRow] = []
        async with self._database.unit_of_work(read_only=True) as uow:
            found = await uow.commands.starts_in_turn(
                partitions, self._batch_size + quarantined, bad.append
            )
        for row in bad:
            self._outcomes.quarantine(row.key, row.partition, row)
        sound = {command.id for command in self._outcomes.sound([one for one, _ in found])}
        found = [(one, project) for one, project in found if one.id in sound]
        chosen = self._capacity.choose(found[: self._batch_size])
        # After the choice, too: it walks over all runs, and nothing else has a turn meanwhile.
        self._next_in_turn = loop.time() + _PAUSES_PER_READING * (loop.time() - began)
        self._is_full = len(chosen) < min(len(found), self._batch_size)
        if self._is_full:
            self._full_s = time.monotonic()
        return chosen

    def _notify_put_off(self) -> None:
        partitions, self._put_off = self._put_off, set()
        self._notify_all(partitions)

    def _notify_all(self, partitions: Collection[int]) -> None:
        self._notified |= set(partitions)
        self._wakeup.notify()

    async def scan(self, partitions: Collection[int]) -> None:
        """Carry out what is pending in ``partitions``, starts and others oldest first each."""
        seen: set[int] = set()
        while partitions:
            has_room = self._capacity.has_room_for(self._batch_size)
            most_starts = self._batch_size if has_room else 0
            # Quarantined commands stay pending and must not stand in the way of the others.
            quarantined = self._engine.quarantine.held(ItemKind.COMMAND) + len(
                self._requests.waiting
            )
            most = (
                most_starts + quarantined if most_starts > 0 else 0,
                self._batch_size + quarantined,
            )
            bad: list[UnreadableRow] = []
            async with self._database.unit_of_work(read_only=True) as uow:
                starts, commands = await uow.commands.pending(partitions, *most, bad.append)
            for row in bad:
                self._outcomes.quarantine(row.key, row.partition, row)
            commands = self._outcomes.sound(commands)
            starts = self._outcomes.sound(starts)
            has_more = len(starts) >= self._batch_size
            if not has_room or has_more:
                in_turn = await self._starts_in_turn(partitions, quarantined)
                starts = starts[: self._batch_size] if in_turn is None else in_turn
                # What has started may only wait, and not count; what was read may not be all.
                has_more = has_more or self._is_full or len(in_turn or ()) >= self._batch_size
            is_last = len(commands) < self._batch_size and not (has_more and starts)
            commands += starts
            if seen.issuperset(command.id for command in commands):
                return  # nothing there, or nothing that could be settled now
            seen.update(command.id for command in commands)
            await self._starts.create([c for c in commands if c.type in _CREATES])
            lines = await self._requests.lines([c for c in commands if c.type in REQUESTS])
            requests: list[Awaitable[None]] = [self._requests.carry_out(line) for line in lines]
            requests += [
                self._outcomes.settle(c, self._others[c.type](c))
                for c in commands
                if c.type in self._others
            ]
            # All of them settled before the next scan, or it would find them pending again.
            for error in await asyncio.gather(*requests, return_exceptions=True):
                if error is not None:
                    raise error
            if is_last:
                return
