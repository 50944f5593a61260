"""Give the slots of concurrency groups to the attempts that wait for them.

The database says who is first and has the leases (``shoal.sql.repositories.runs.slots``). Any
master may give slots, to anybody's attempts: here those who wait, or have made a slot free, see to
it at once, and the owner of whoever was given one is told by the notification of its partition. The
engine stores that an attempt goes on only together with a look at its lease, so a message that
comes late, twice or to a former owner does no harm, and one that is lost is made up for by a
regular look.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import structlog

from shoal.core.errors import ShoalError
from shoal.core.runs.concurrency import group_of
from shoal.core.runs.events import SlotGranted
from shoal.core.runs.quarantine import Kind
from shoal.core.runs.run import AttemptKey, Decision, Run
from shoal.core.runs.states import FINISHED_TASK, TaskState
from shoal.master.engine.engine import Clock, Engine
from shoal.master.trouble import Trouble
from shoal.master.wakeup import Wakeup
from shoal.runtime import failpoints
from shoal.sql import Database
from shoal.sql.repositories.runs.slots import Slot

log = structlog.get_logger()

# A look is followed by a pause as long as itself, so that constant notifications cannot take the
# loop.
_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 1.0
_GIVES_BACK = FINISHED_TASK | {TaskState.PAUSED}


@dataclass(frozen=True)
class _Waiter:
    """An attempt of this master that waits for a slot."""

    group: str  # qualified
    partition: int
    instance_id: int


class SlotKeeper:
    """Sees to it that nobody waits while a slot is free."""

    def __init__(
        self,
        database: Database,
        engine: Engine,
        clock: Clock,
        interval_s: float,
        notify_owners: Callable[[Iterable[int]], None],
    ) -> None:
        self._database = database
        self._engine = engine
        self._clock = clock
        self._wakeup = Wakeup(interval_s)
        self._notify_owners = notify_owners
        self._waiting: dict[int, _Waiter] = {}  # by task instance id
        self._groups_in: defaultdict[int, set[str]] = defaultdict(set)  # of them, by partition
        self._groups: set[str] = set()  # to look at
        self._unknown: set[str] = set()  # groups that are wanted and do not exist: told once

    # -- what wakes it -----------------------------------------------------------------------

    def ask(self, run: Run, key: AttemptKey) -> None:
        """An attempt waits for a slot. Called on the event loop, after that was stored."""
        task, number = key
        attempt, group = run.attempts[task], group_of(run, task)
        if attempt.number != number or attempt.id is None or group is None:
            return
        self._waiting[attempt.id] = _Waiter(group, run.partition, run.id)
        self._groups_in[run.partition].add(group)
        self._look_at({group})

    def stored(self, run: Run, decision: Decision) -> None:
        """A decision was committed: slots may be free. Called on the event loop."""
        for attempt in decision.attempts.values():
            if attempt.state in _GIVES_BACK and (group := group_of(run, attempt.task)):
                self._look_at({group})

    def look_soon(self, partition: int) -> None:
        """Somebody may have given slots to a partition. Called on the event loop."""
        self._look_at(self._groups_in.get(partition, ()))

    def _look_at(self, groups: Collection[str]) -> None:
        if groups:
            self._groups |= set(groups)
            self._wakeup.notify()

    # -- the loop ----------------------------------------------------------------------------

    async def work(self) -> None:
        """Run for ever."""
        trouble = Trouble("slots")
        while True:
            is_regular = await self._wakeup.wait()
            began = time.monotonic()
            groups, self._groups = self._groups, set()
            if is_regular:
                self._forget_those_who_went_on()
                groups |= {waiter.group for waiter in self._waiting.values()}
            try:
                await self.look(groups)
            except Exception as error:  # noqa: BLE001 - the next look repeats it
                await trouble.met(error)
                self._groups |= groups
            else:
                trouble.over()
            took = time.monotonic() - began
            await asyncio.sleep(min(max(_PAUSE_S, took), _LONGEST_PAUSE_S))

    def _forget_those_who_went_on(self) -> None:
        self._waiting = {i: w for i, w in self._waiting.items() if self._still_waits(i, w)}
        self._groups_in.clear()
        for waiter in self._waiting.values():
            self._groups_in[waiter.partition].add(waiter.group)

    def _still_waits(self, task_instance_id: int, waiter: _Waiter) -> bool:
        run = self._engine.runs.get(waiter.instance_id)
        attempt = None if run is None else run.attempt_by_id(task_instance_id)
        return attempt is not None and attempt.state is TaskState.BLOCKED

    async def look(self, groups: Collection[str]) -> None:
        """Give what is free of these groups, and let those go on who were given a slot."""
        if not groups:
            return
        async with self._database.unit_of_work(read_only=True) as uow:
            shortages = await uow.slots.shortages(groups)
            given = [s for s in await uow.slots.given(groups) if self._is_ours(s)]
        for group in sorted(groups):
            if shortages[group].is_free and not self._engine.quarantine.holds(Kind.GROUP, group):
                given += await self._try_to_give(group)
        self._tell(given)
        self._tell_unknown({group for group, one in shortages.items() if not one.exists})

    async def _try_to_give(self, group: str) -> list[Slot]:
        """Give what is free of a group; what is wrong with it is no matter of the others."""
        try:
            given = await self._give(group)
        except ShoalError as error:
            if error.retriable:
                raise
            self._set_aside(group, error)
        except Exception as error:  # noqa: BLE001 - of this group, whatever it is
            self._set_aside(group, error)
        else:
            self._engine.quarantine.passed(Kind.GROUP, group)
            return given
        return []

    def _set_aside(self, group: str, error: Exception) -> None:
        homes = (one.partition for one in self._waiting.values() if one.group == group)
        if (partition := next(homes, None)) is not None:
            self._engine.quarantine.put(Kind.GROUP, group, partition, error)

    async def _give(self, group: str) -> list[Slot]:
        async with self._database.unit_of_work() as uow:
            given = await uow.slots.give(group, self._clock())
            failpoints.hit("slot.before_commit")
            await uow.commit()
        failpoints.hit("slot.after_commit")
        return given

    def _is_ours(self, slot: Slot) -> bool:
        return slot.partition in self._engine.epochs

    def _tell(self, given: Collection[Slot]) -> None:
        for slot in given:
            if self._is_ours(slot):
                event = SlotGranted(slot.task_instance_id, self._clock())
                self._engine.post(slot.partition, slot.workflow_instance_id, event)
        if others := {slot.partition for slot in given if not self._is_ours(slot)}:
            self._notify_owners(others)

    def _tell_unknown(self, groups: set[str]) -> None:
        """A group cannot be deleted while somebody needs it; should it be gone, they wait."""
        self._unknown &= groups
        for group in sorted(groups - self._unknown):
            self._unknown.add(group)
            log.warning(
                "tasks wait for a concurrency group that does not exist; "
                "make it with `shoal concurrency set`",
                group=group,
            )
