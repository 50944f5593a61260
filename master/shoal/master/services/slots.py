"""Give the slots of concurrency groups to the attempts that wait for them.

The database says which attempt is first and has the leases (``shoal.sql.repositories.runs.slots``).
Any master may give slots, to attempts of any partition. A master whose attempts wait, or have
released a slot, does so at once; the owner of an attempt that was given one is notified through its
partition. The engine stores that an attempt goes on only in a transaction that finds its lease, so
a message that comes late, twice or to a former owner does no harm, and a regular poll makes up for
one that is lost.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

import structlog

from shoal.core.errors import ShoalError
from shoal.core.runs.concurrency import group_of
from shoal.core.runs.events import SlotGranted
from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.run import Action, AskSlot, AttemptKey, Decision, Run
from shoal.core.runs.states import FINISHED_TASK, TaskState
from shoal.master.services.service import MasterContext, PeriodicService
from shoal.runtime import failpoints
from shoal.sql.repositories.runs.slots import Slot

log = structlog.get_logger()

# A poll is followed by a pause as long as itself, so that constant notifications cannot take the
# event loop.
_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 1.0
_RELEASES = FINISHED_TASK | {TaskState.PAUSED}


@dataclass(frozen=True)
class _Waiter:
    """An attempt of this master that waits for a slot."""

    group: str  # qualified
    partition: int
    instance_id: int


class SlotKeeper(PeriodicService):
    """Sees to it that no attempt waits while a slot is free."""

    name = "slots"

    def __init__(self, context: MasterContext) -> None:
        super().__init__(context.settings.scan_interval_s)
        self._database, self._engine = context.database, context.engine
        self._clock, self._notify_owners = context.clock, context.notify_owners
        self._waiting: dict[int, _Waiter] = {}  # by task instance id
        self._groups_in: defaultdict[int, set[str]] = defaultdict(set)  # of them, by partition
        self._groups: set[str] = set()  # to be checked
        self._unknown: set[str] = set()  # groups that are wanted and do not exist: logged once

    # -- what wakes it -----------------------------------------------------------------------

    def on_action(self, run: Run, action: Action) -> None:
        """Note an attempt that waits for a slot, which is stored by now."""
        if isinstance(action, AskSlot):
            self._add(run, action.key)

    def _add(self, run: Run, key: AttemptKey) -> None:
        task, number = key
        attempt, group = run.attempts[task], group_of(run, task)
        if attempt.number != number or attempt.id is None or group is None:
            return
        self._waiting[attempt.id] = _Waiter(group, run.partition, run.id)
        self._groups_in[run.partition].add(group)
        self._check_soon({group})

    def on_stored(self, run: Run, decision: Decision) -> None:
        """Check the groups whose slots may be free now."""
        for attempt in decision.attempts.values():
            if attempt.state in _RELEASES and (group := group_of(run, attempt.task)):
                self._check_soon({group})

    def notify(self, partition: int) -> None:
        """Another master may have given slots to a partition."""
        self._check_soon(self._groups_in.get(partition, ()))

    def _check_soon(self, groups: Collection[str]) -> None:
        if groups:
            self._groups |= set(groups)
            self._wakeup.notify()

    # -- the loop ----------------------------------------------------------------------------

    async def poll(self, is_regular: bool) -> None:
        groups, self._groups = self._groups, set()
        if is_regular:
            self._forget_those_that_went_on()
            groups |= {waiter.group for waiter in self._waiting.values()}
        try:
            await self.give_free_slots(groups)
        except Exception:
            self._groups |= groups  # with the next poll
            raise

    def pause_s(self, took_s: float) -> float:
        return min(max(_PAUSE_S, took_s), _LONGEST_PAUSE_S)

    def _forget_those_that_went_on(self) -> None:
        self._waiting = {i: w for i, w in self._waiting.items() if self._still_waits(i, w)}
        self._groups_in.clear()
        for waiter in self._waiting.values():
            self._groups_in[waiter.partition].add(waiter.group)

    def _still_waits(self, task_instance_id: int, waiter: _Waiter) -> bool:
        run = self._engine.runs.get(waiter.instance_id)
        attempt = None if run is None else run.attempt_by_id(task_instance_id)
        return attempt is not None and attempt.state is TaskState.BLOCKED

    async def give_free_slots(self, groups: Collection[str]) -> None:
        """Give the free slots of these groups, and let the attempts that have one go on."""
        if not groups:
            return
        async with self._database.unit_of_work(read_only=True) as uow:
            shortages = await uow.slots.shortages(groups)
            given = [s for s in await uow.slots.given(groups) if self._is_ours(s)]
        for group in sorted(groups):
            if not shortages[group].is_free or self._engine.quarantine.holds(ItemKind.GROUP, group):
                continue
            try:
                given += await self._give(group)
            except Exception as error:
                if isinstance(error, ShoalError) and error.retriable:
                    raise
                # An error of one group holds up no other.
                homes = (one.partition for one in self._waiting.values() if one.group == group)
                if (partition := next(homes, None)) is not None:
                    self._engine.quarantine.put(ItemKind.GROUP, group, partition, error)
            else:
                self._engine.quarantine.passed(ItemKind.GROUP, group)
        for slot in given:
            if self._is_ours(slot):
                event = SlotGranted(slot.task_instance_id, self._clock())
                self._engine.post(slot.partition, slot.workflow_instance_id, event)
        if others := {slot.partition for slot in given if not self._is_ours(slot)}:
            self._notify_owners(others)
        # A group cannot be deleted while attempts need it.
        unknown = {group for group, one in shortages.items() if not one.exists}
        for group in sorted(unknown - self._unknown):
            log.warning(
                "tasks wait for a concurrency group that does not exist; "
                "make it with `shoal concurrency set`",
                group=group,
            )
        self._unknown = unknown

    async def _give(self, group: str) -> list[Slot]:
        async with self._database.unit_of_work() as uow:
            given = await uow.slots.give(group, self._clock())
            failpoints.hit("slot.before_commit")
            await uow.commit()
        failpoints.hit("slot.after_commit")
        return given

    def _is_ours(self, slot: Slot) -> bool:
        return slot.partition in self._engine.epochs
