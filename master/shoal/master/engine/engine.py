"""The engine: events in, decisions stored, actions out.

One loop per master. It takes the events that wait, decides them run by run with the pure
``decide``, stores all decisions in one transaction fenced by the partitions' epochs, and only
then lets the actions out and answers the callers. The next batch does not wait for the actions.
A batch that could not be stored is evicted from memory and read again (``held_runs.py``). A run
that cannot be decided, stored or read is quarantined (``quarantine.py``).

However large the runs are, the event loop goes on: a batch is about a few thousand tasks at most
or one run, what is decided for many tasks is decided in a thread, and applied piece by piece.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog

from shoal.core.decide import LongDecision, decide
from shoal.core.errors import ShoalError
from shoal.core.runs.commands import Command
from shoal.core.runs.concurrency import slots_taken
from shoal.core.runs.events import (
    Begun,
    Event,
    RecoverRequested,
    TaskClaimed,
    TaskEnded,
    TaskRequeued,
    TaskStarted,
    TimeReached,
)
from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.run import Decision, Run
from shoal.core.runs.states import OPEN_WORKFLOW
from shoal.master.engine import messages
from shoal.master.engine.actions import ActionQueue, Perform
from shoal.master.engine.batch import Inbox, PendingEvent, PublishedFile, RunChange
from shoal.master.engine.eager_dispatch import EagerRequest, taken_by
from shoal.master.engine.held_runs import Clock, HeldRuns
from shoal.master.engine.listeners import EndOfRuns, Listeners
from shoal.master.engine.messages import Messenger
from shoal.master.engine.publications import (
    PublicationRefused,
    Publications,
    note_success,
    publish,
)
from shoal.master.errors import NotStored, PartitionNotOwned, Quarantined
from shoal.master.loops import ErrorBackoff, LongTurn, is_shortage
from shoal.runtime import failpoints
from shoal.runtime.storage import StorageLimits
from shoal.sql import Database, UnitOfWork
from shoal.sql.driver.connection import batched
from shoal.sql.errors import Fenced, IntegrityViolated, InvalidValue, NotFound, UnreadableRow

log = structlog.get_logger()

LEAVING = "this master is leaving; ask the partition's next owner"

_ABOUT_ONE_TASK = (TaskClaimed, TaskStarted, TaskRequeued, TaskEnded)
_BEYOND_US = (UnreadableRow, InvalidValue, IntegrityViolated)
_OUR_OWN = (Begun, TimeReached)  # events that come again; those of others may be wrong once


@dataclass(frozen=True)
class BatchLimits:
    """How much the engine does at once."""

    events: int = 500  # decided and stored in one transaction
    tasks: int = 2_000  # that one batch is about, unless it is about a single run
    tasks_in_a_turn: int = 500  # decided, or applied, without a turn for others


@dataclass(frozen=True)
class ClusterFacts:
    """What an engine knows of its cluster; as it stands, one of one partition without a name."""

    partitions: int = 1
    uid: str = ""  # no other cluster has it
    files: StorageLimits = field(
        default_factory=lambda: StorageLimits(file=1 << 30, project=10 << 30)
    )
    tree: Callable[[], str] | None = None  # see ``HeldRuns``


class Engine(HeldRuns):
    """Holds the open runs of this master's partitions and moves them on."""

    def __init__(
        self,
        database: Database,
        perform: Perform,
        clock: Clock,
        limits: BatchLimits | None = None,
        cluster: ClusterFacts | None = None,
        listeners: Listeners | None = None,
        *,
        retry_s: float = 10.0,
    ) -> None:
        """``retry_s``: until what is quarantined is tried again, for the first time."""
        cluster = cluster or ClusterFacts()
        super().__init__(database, clock, listeners or Listeners(), retry_s, cluster.tree)
        self._limits = limits or BatchLimits()
        self._messenger = Messenger(cluster.partitions)
        self.publications = Publications(cluster.uid, cluster.files)
        self._inbox = Inbox()
        self._actions = ActionQueue(perform, self.epochs, self.quarantine_run, self._passed)
        self.asked: set[int] = set()  # attempts that workers asked for; emptied by each sweep
        self._waking: set[int] = set()  # with a TimeReached in the inbox
        self._working: list[PendingEvent] = []  # the batch under way
        self._over = False  # the loop has ended

    def adopt(self, run: Run, begun: Decision | None = None) -> None:
        self.runs[run.id] = run
        if begun is None:
            self.post(run.partition, run.id, Begun(self._clock()))
        else:
            self._actions.add(run, begun.actions)
            self._listeners.on_stored(run, begun)

    # -- events ------------------------------------------------------------------------------

    def post(self, partition: int, instance_id: int, event: Event) -> None:
        """Put an event into the inbox without awaiting it: the sweeper heals what is lost."""
        self.enqueue(partition, instance_id, event)

    def enqueue(
        self,
        partition: int,
        instance_id: int,
        event: Event,
        command: Command | None = None,
        eager: EagerRequest | None = None,
        published: Sequence[PublishedFile] = (),
    ) -> asyncio.Future[Run]:
        """Put an event into the inbox at once; the future ends as ``submit`` does."""
        done: asyncio.Future[Run] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_retrieve)
        if self._over:
            done.set_exception(NotStored(LEAVING))
        else:
            self._inbox.put(
                PendingEvent(partition, instance_id, event, done, command, eager, published)
            )
        return done

    def wake(self, instance_id: int) -> None:
        """Let a run check its delays, if it is still held."""
        run = self.runs.get(instance_id)
        # One in the inbox does for all: what is due later sets its timer again.
        if run is not None and instance_id not in self._waking:
            self._waking.add(instance_id)
            self.post(run.partition, instance_id, TimeReached(self._clock()))

    async def submit(
        self, partition: int, instance_id: int, event: Event, command: Command | None = None
    ) -> Run:
        """Put an event into the inbox, and return the run once the outcome is stored.

        Raises PartitionNotOwned, NotStored, Quarantined, or NotFound if there is no such instance.
        """
        return await self.enqueue(partition, instance_id, event, command)

    async def run(self) -> None:
        """Run for ever; at the end no caller is left waiting for an answer."""
        try:
            async with asyncio.TaskGroup() as loops:
                loops.create_task(self._run(), name="engine")
                loops.create_task(self._actions.run(), name="actions")
                loops.create_task(self.quarantine.run(), name="quarantine")
        finally:
            self._over = True
            for item in (*self._working, *self._inbox):
                item.fail(NotStored(LEAVING))
            self._inbox.clear()

    async def _run(self) -> None:
        backoff = ErrorBackoff("engine")
        while True:
            await self._inbox.wait()
            items = self._inbox.take(self._limits.events, self._limits.tasks, self._tasks_of)
            self._working = items
            self._waking -= {i.instance_id for i in items if isinstance(i.event, TimeReached)}
            async with self._lock:
                try:
                    await self._process(items)
                except Exception as error:  # noqa: BLE001 - the batch is stored, or not
                    for item in items:
                        item.fail(NotStored(str(error)))
                    self._evict(item.instance_id for item in items)
                    await backoff.failed(error)
                else:
                    backoff.succeeded()
                self._evict_spoilt()

    def _tasks_of(self, item: PendingEvent) -> int:
        """Return how many tasks an event may be about."""
        if isinstance(item.event, _ABOUT_ONE_TASK):
            return 1
        run = self.runs.get(item.instance_id)
        return self._limits.tasks_in_a_turn if run is None else len(run.attempts)

    async def _process(self, items: list[PendingEvent]) -> None:
        """Decide → fence → save → commit → act: the one place in which this order is kept."""
        items = [item for item in items if self._is_ours(item)]
        changes: dict[int, RunChange] = {}
        try:
            await self._readmit(items)
            await self._bring_in(items)
            changes, refusals = await self._decide_all(items)
            await self._store(items, changes, refusals)  # fence, save, commit
        except Fenced as error:
            self._on_fenced(items, error)
            return
        except PublicationRefused as refused:  # of one task: it is decided again, as a failure
            self._evict(item.instance_id for item in items)
            refused.become_a_failure()
            self._inbox.requeue(items)
            return
        except Exception as error:  # noqa: BLE001 - one bad run must not stop all others
            await self._not_stored(items, error)
            return
        await self._act(items, changes)

    async def _act(self, items: list[PendingEvent], changes: dict[int, RunChange]) -> None:
        """Let out the actions of a stored batch, answer its callers, notify the services."""
        turn = LongTurn()
        for change in changes.values():
            # A quarantined run has passed when its actions are performed, and not before.
            on_trial = self.quarantine.tries(ItemKind.INSTANCE, change.run.id)
            self._actions.add(change.run, change.decision.actions, on_trial=on_trial)
            if on_trial:
                self._listeners.on_readmitted(change.run)
        for item in items:
            item.answer(self.runs[item.instance_id])
        for change in changes.values():
            decision = change.decision
            self._listeners.on_stored(change.run, decision)
            if change.run.state not in OPEN_WORKFLOW:
                self.runs.pop(change.run.id, None)
            if decision.finished_at is not None:
                self._listeners.on_ended(change.run)
            await turn.pause()

    def _on_fenced(self, items: list[PendingEvent], error: Fenced) -> None:
        """Nothing of a batch was stored: let go of lost partitions, decide the rest again."""
        self._forget(set(error.partitions))
        log.warning("fenced: another master owns these", partitions=sorted(error.partitions))
        self._evict(item.instance_id for item in items)
        for item in items:
            if item.partition in error.partitions:
                item.fail(PartitionNotOwned(item.partition))
        again = [item for item in items if item.partition not in error.partitions]
        self._inbox.requeue(again)

    async def _not_stored(self, items: list[PendingEvent], error: Exception) -> None:
        """Nothing of a batch was stored: find the run that is to blame."""
        self._evict(item.instance_id for item in items)
        is_short = is_shortage(error)
        retriable = isinstance(error, OSError) or (
            isinstance(error, ShoalError) and error.retriable
        )
        log.warning("decisions not stored", error=str(error), events=len(items))
        if not retriable and len({item.instance_id for item in items}) > 1:
            await self._process_apart(items)
            return
        failure: ShoalError = NotStored(str(error))
        is_defect = not (is_short or isinstance(error, (ShoalError, OSError)))
        comes_again = all(isinstance(item.event, _OUR_OWN) for item in items)
        if items and (is_defect or (comes_again and isinstance(error, _BEYOND_US))):
            self._quarantine(items[0], error)
            self._stale.discard(items[0].instance_id)
            failure = self._quarantined(items[0].instance_id)
        for item in items:
            item.fail(failure)

    async def _process_apart(self, items: list[PendingEvent]) -> None:
        """Process a refused batch in halves, so that one bad run holds up no other."""
        runs = sorted({item.instance_id for item in items})
        first = set(runs[: len(runs) // 2])
        await self._process([i for i in items if i.instance_id in first])
        await self._process([i for i in items if i.instance_id not in first])

    def _is_ours(self, item: PendingEvent) -> bool:
        if item.failed:
            return False  # requeued, and then refused with the batch that it came from
        if item.partition not in self.epochs:
            item.fail(PartitionNotOwned(item.partition))
        elif not self.quarantine.holds(ItemKind.INSTANCE, item.instance_id):
            return True
        elif isinstance(item.event, RecoverRequested) and item.event.parent is None:
            # Of a person: a request to try again: the run goes on as after a takeover.
            item.event = Begun(item.event.at)
            self._evict_spoilt()
            self.quarantine.try_again(ItemKind.INSTANCE, item.instance_id)
            self._on_trial.add(item.instance_id)
            return True
        else:
            item.fail(self._quarantined(item.instance_id))
        return False

    def _quarantined(self, instance_id: int) -> Quarantined:
        return Quarantined(instance_id, self.quarantine.reason(ItemKind.INSTANCE, instance_id))

    async def _readmit(self, items: list[PendingEvent]) -> None:
        """Let runs that leave quarantine count again, and learn which slots they have lost.

        In this order: what they still have when it is read is not given to others any longer.
        """
        begun = [i for i in items if i.instance_id in self._on_trial and isinstance(i.event, Begun)]
        if not begun:
            return
        ids = {item.instance_id for item in begun}
        # Else parents might hear of the quarantine after they have heard that it is over.
        async with self.quarantine.storing, self._database.unit_of_work() as uow:
            await uow.fence({item.partition: self.epochs[item.partition] for item in begun})
            await uow.quarantine.remove([(ItemKind.INSTANCE, str(one)) for one in ids])
            told = await messages.tell_of_quarantine(uow, self._clock(), ids, is_quarantined=False)
            await uow.commit()
        if told:
            self._listeners.on_commands(told)
        async with self._database.unit_of_work(read_only=True) as uow:
            lost = await uow.slots.without_lease(ids)
        for item in begun:
            item.event = Begun(item.event.at, lost.get(item.instance_id, frozenset()))
        self._on_trial -= ids

    async def _bring_in(self, items: list[PendingEvent]) -> None:
        """Load the runs of these events that are not held, since they are paused or have ended."""
        missing = {i.instance_id for i in items} - self.runs.keys()
        if not missing:
            return
        found: dict[int, Run] = {}
        bad: dict[int, UnreadableRow] = {}
        async with self._database.unit_of_work(read_only=True) as uow:
            for instance_id in missing:
                with suppress(NotFound):
                    try:
                        found[instance_id] = await uow.instances.run(instance_id)
                    except UnreadableRow as error:
                        bad[instance_id] = error
        for item in list(items):
            run = self.runs.get(item.instance_id) or found.get(item.instance_id)
            if run is not None and run.partition == item.partition:
                self.runs[run.id] = run
                continue
            items.remove(item)
            if (why := bad.get(item.instance_id)) is not None:
                if why.partition in (-1, item.partition):
                    self._quarantine(item, why)
                else:
                    item.fail(PartitionNotOwned(item.partition))
            elif run is None:
                item.fail(NotFound("workflow instance", item.instance_id))
            else:
                item.fail(PartitionNotOwned(item.partition))

    async def _decide_all(
        self, items: list[PendingEvent]
    ) -> tuple[dict[int, RunChange], dict[int, str]]:
        """Decide event by event, until that is about enough tasks; ``items`` are cut there."""
        changes: dict[int, RunChange] = {}
        refusals: dict[int, str] = {}
        turn = LongTurn()
        tasks = 0  # that were decided about
        for number, item in enumerate(items):
            if tasks > self._limits.tasks:
                self._inbox.requeue(items[number:])
                del items[number:]
                break
            await turn.pause()
            run = self.runs[item.instance_id]
            if self.quarantine.holds(ItemKind.INSTANCE, run.id):
                item.fail(self._quarantined(run.id))  # by an event before
                continue
            try:
                decision = await self._decide(item.event, changes, run)
                note_success(item, run, decision)
                if isinstance(item.event, TaskEnded) and item.eager is not None:
                    ended = item.event.task_instance_id
                    for taken in taken_by(item.eager, run, ended, decision):
                        claim = TaskClaimed(taken, item.eager.worker, self._clock())
                        await self._decide(claim, changes, run)
            except Exception as error:
                if is_shortage(error):
                    raise  # the batch is read and decided again
                self._quarantine(item, error)
                continue
            tasks += len(decision.attempts)
            if decision.refusal is not None and item.command is not None:
                refusals[item.command.id] = decision.refusal
        return changes, refusals

    async def _decide(self, event: Event, changes: dict[int, RunChange], run: Run) -> Decision:
        """Decide and apply; about many tasks in a thread, and piece by piece.

        Nothing but a batch changes a run, and this one waits.
        """
        most = self._limits.tasks_in_a_turn
        is_long = len(run.attempts) > most and not isinstance(event, _ABOUT_ONE_TASK)
        if not is_long:
            try:
                decision = decide(run, event, most)
            except LongDecision:  # the end of one task may be the beginning of all others
                is_long = True
        if is_long:
            decision = await asyncio.to_thread(decide, run, event)
        if len(decision.attempts) > most:
            for some in batched(decision.attempts.values(), most):
                run.replace(some)
                await asyncio.sleep(0)
            run.apply(replace(decision, attempts={}))
        else:
            run.apply(decision)
        changes.setdefault(run.id, RunChange(run)).add(decision)
        return decision

    def _quarantine(self, item: PendingEvent, error: Exception) -> None:
        """Quarantine a run whose rows or whose state do not allow what happened.

        It stays as stored, with what was decided of it before this batch.
        """
        self.quarantine.put(ItemKind.INSTANCE, item.instance_id, item.partition, error)
        self._spoilt.add(item.instance_id)
        item.fail(self._quarantined(item.instance_id))

    async def _store(
        self, items: list[PendingEvent], changes: dict[int, RunChange], refusals: dict[int, str]
    ) -> None:
        to_save = [(c.run, c.decision) for c in changes.values() if not c.decision.changes_nothing]
        commands = [item for item in items if item.command is not None]
        if not to_save and not commands:
            return
        items = [item for item in items if not item.failed]
        commands = [item for item in items if item.command is not None]
        now = self._clock()
        ends = [c.run for c in changes.values() if c.decision.finished_at is not None]
        endings: list[EndOfRuns] = []
        async with self._database.unit_of_work() as uow:
            await uow.fence({item.partition: self.epochs[item.partition] for item in items})
            slots = slots_taken((i.event for i in items), (c.decision for c in changes.values()))
            await uow.slots.require(slots)
            if ends:
                endings = await self._listeners.endings(uow, ends)
            ids = await uow.instances.save(to_save, now)
            notified = await self._messenger.send(uow, to_save, ids, now)
            await self._store_outcomes(uow, commands, refusals, now)
            for ending in endings:
                await ending.write(now)
            published = await publish(uow, self.publications, items, self.runs, now)
            failpoints.hit("store.before_commit")
            if ends:
                failpoints.hit("finish.before_commit")
            await uow.commit()
        failpoints.hit("store.after_commit")
        if published:
            failpoints.hit("publish.after_commit")
        if ends:
            failpoints.hit("finish.after_commit")
        for ending in endings:
            ending.committed()
        if notified:
            failpoints.hit("message.after_commit")
            self._listeners.on_commands(notified)
        turn = LongTurn()
        for (run_id, task, number), new_id in ids.items():
            await turn.pause()
            run = self.runs[run_id]
            attempt = run.attempts[task]
            if attempt.number == number:
                run.replace([replace(attempt, id=new_id)])

    @staticmethod
    async def _store_outcomes(
        uow: UnitOfWork, items: list[PendingEvent], refusals: dict[int, str], now: datetime
    ) -> None:
        asked = {item.command.id: item.instance_id for item in items if item.command is not None}
        await uow.commands.refuse_many(list(refusals.items()), now)
        done = [(command, run) for command, run in asked.items() if command not in refusals]
        await uow.commands.done_many(done, now)


def _retrieve(done: asyncio.Future[Run]) -> None:
    """Mark the exception of an unobserved future as seen."""
    if not done.cancelled():
        done.exception()
