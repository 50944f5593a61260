"""The engine: events in, decisions stored, actions out.

One loop per master. It takes whatever events wait, decides them run by run with the pure
``decide``, stores all decisions in one transaction fenced by the partitions' epochs, and only
then lets the actions out and answers those who wait; the next batch does not wait for the actions.
Memory is a cache of the database: a batch that could not be stored is dropped from memory and read
again. A run that cannot be decided, stored or read is set aside (``quarantine.py``).

However large the runs are, the event loop goes on: a batch is about a few thousand tasks at most
or one run, what is decided for many tasks is decided in a thread, and applied piece by piece.

``runs`` and ``epochs`` belong to the loop's task and to ``take``/``drop``, which run on the same
event loop between batches under ``_lock``.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
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
from shoal.core.runs.quarantine import Kind, SetAside
from shoal.core.runs.run import Decision, Run
from shoal.core.runs.states import OPEN_WORKFLOW
from shoal.master.dispatch.eager_dispatch import taken_by
from shoal.master.engine.action_queue import ActionQueue, Perform
from shoal.master.engine.batch import Change, EagerRequest, Item
from shoal.master.engine.listeners import Ending, Listener, Listeners
from shoal.master.engine.messages import Messenger
from shoal.master.engine.quarantine import Quarantine
from shoal.master.engine.yielding import Yielding
from shoal.master.error_backoff import ErrorBackoff
from shoal.master.errors import NotOwner, NotStored, Quarantined
from shoal.runtime import failpoints
from shoal.sql import Database, UnitOfWork
from shoal.sql.driver.connection import batched
from shoal.sql.errors import Fenced, IntegrityViolated, InvalidValue, NotFound, UnreadableRow

log = structlog.get_logger()

LEAVING = "this master is leaving; ask the partition's next owner"

Clock = Callable[[], datetime]

MOST_TASKS = 2_000  # that one batch is about, unless it is about a single run
_MOST_AT_ONCE = 500  # tasks that are decided, or applied, without a turn for others
_ABOUT_ONE_TASK = (TaskClaimed, TaskStarted, TaskRequeued, TaskEnded)
_BEYOND_US = (UnreadableRow, InvalidValue, IntegrityViolated)
_OUR_OWN = (Begun, TimeReached)  # events that come again; what others tell may be wrong once


class Engine:
    """Holds the open runs of this master's partitions and moves them on."""

    def __init__(
        self,
        database: Database,
        perform: Perform,
        clock: Clock,
        batch: int,
        messenger: Messenger | None = None,
        listeners: Listeners | None = None,
        *,
        retry_s: float = 10.0,
    ) -> None:
        """``messenger`` None: that of a cluster of one partition.

        ``retry_s``: until what is quarantined is tried again, for the first time.
        """
        self._messenger = messenger or Messenger(1)
        self._listeners = listeners or Listeners()
        self._database = database
        self._clock = clock
        self._batch_size = batch
        self._inbox: deque[Item] = deque()
        self._news = asyncio.Event()  # something is in the inbox
        self._lock = asyncio.Lock()
        self.epochs: dict[int, int] = {}  # of the partitions held; read by rpc and scanners
        self._taking: dict[int, int] = {}  # partitions whose runs are being read, as ``epochs``
        self._actions = ActionQueue(perform, self.epochs, self.quarantine_run, self._passed)
        self.runs: dict[int, Run] = {}  # open runs by instance id
        self.asked: set[int] = set()  # attempts that workers asked for; emptied by each sweep
        self.quarantine = Quarantine(database, clock, self.epochs, retry_s)
        self.quarantine.on_retry.append(self._try_again)
        self._spoilt: set[int] = set()  # runs to be thrown out of memory as soon as nobody decides
        self._stale: set[int] = set()  # whose events a failed store has lost, see heal()
        self._waking: set[int] = set()  # with a TimeReached in the inbox
        self._working: list[Item] = []  # the batch under way
        self._over = False  # the loop has ended

    def register(self, *listeners: Listener) -> None:
        """Let these hear what is stored."""
        self._listeners.register(*listeners)

    def epoch_of(self, partition: int) -> int:
        """Return the fencing number of a partition held. Raises NotOwner."""
        try:
            return self.epochs[partition]
        except KeyError:
            raise NotOwner(partition) from None

    # -- partitions --------------------------------------------------------------------------

    async def take(self, epochs: dict[int, int], owner: str) -> None:
        """Take over partitions: raise their epochs, load their open runs, carry on with them.

        Those that are held already are worked on meanwhile. Raises Fenced if somebody with a
        newer epoch was quicker.
        """
        async with self._lock:
            async with self._database.unit_of_work() as uow:
                await uow.partitions.raise_epochs(epochs, owner)
                await uow.quarantine.clear(epochs)
                failpoints.hit("takeover.before_commit")
                await uow.commit()
            failpoints.hit("takeover.after_commit")
            self._forget(set(epochs))
            self._taking.update(epochs)
        try:
            for partition, epoch in epochs.items():
                await self._load(partition, epoch)
        except BaseException:
            # Half loaded is not held: runs that are not in memory would be forgotten.
            async with self._lock:
                self._forget(set(epochs))
            raise
        failpoints.hit("takeover.after_load")
        log.info("partitions taken", count=len(epochs), open_runs=len(self.runs))

    async def stored_epochs(self, partitions: Collection[int]) -> dict[int, int]:
        """Return the epochs that the database knows."""
        async with self._database.unit_of_work(read_only=True) as uow:
            rows = await uow.partitions.all()
        return {row.index: row.epoch for row in rows if row.index in partitions}

    async def drop(self, partitions: Iterable[int]) -> None:
        """Give partitions up. A batch under way is finished first; later events are refused."""
        async with self._lock:
            self._forget(set(partitions))
        failpoints.hit("release.after_drop")

    def _forget(self, partitions: set[int]) -> None:
        for partition in partitions:
            self.epochs.pop(partition, None)
            self._taking.pop(partition, None)
        self.quarantine.forget(partitions)
        gone = [i for i, run in self.runs.items() if run.partition in partitions]
        for instance_id in gone:
            del self.runs[instance_id]
            self._listeners.on_dropped(instance_id)

    async def _load(self, partition: int, epoch: int) -> None:
        """Read the open runs of a partition whose epoch is ours, and carry on with them.

        Nobody changes them meanwhile: former owners are fenced, and we refuse what is about a
        partition that is not in ``epochs`` yet.
        """
        bad: list[UnreadableRow] = []
        async with self._database.unit_of_work(read_only=True) as uow:
            runs = await uow.instances.open_runs(partition, bad.append)
        async with self._lock:
            if self._taking.get(partition) != epoch:
                return  # given up in the meantime, perhaps taken again
            del self._taking[partition]
            self.epochs[partition] = epoch
            for error in bad:
                self.quarantine.put(Kind.INSTANCE, error.key, partition, error)
            yielding = Yielding()
            for run in runs:
                self.adopt(run)
                await yielding.pause()

    def adopt(self, run: Run, begun: Decision | None = None) -> None:
        """Hold a run that is stored and open, and carry on with it.

        ``begun``: what it began with, if that was decided and stored already.
        """
        self.runs[run.id] = run
        if begun is None:
            self.post(run.partition, run.id, Begun(self._clock()))
        else:
            self._actions.add(run, begun.actions)
            self._listeners.on_stored(run, begun)

    def quarantine_run(self, run: Run, error: Exception) -> None:
        """Do nothing more with a run: whatever is to be done with it fails."""
        self.quarantine.put(Kind.INSTANCE, run.id, run.partition, error)
        self._spoilt.add(run.id)

    def _passed(self, run: Run) -> None:
        """What was decided about a run is stored and performed."""
        if not self.quarantine.holds(Kind.INSTANCE, run.id):
            self.quarantine.passed(Kind.INSTANCE, run.id)

    def _throw_out(self) -> None:
        """Throw runs out of memory that are set aside. Called while nobody decides."""
        for instance_id in self._spoilt:
            if self.quarantine.holds(Kind.INSTANCE, instance_id):
                self.runs.pop(instance_id, None)
        self._spoilt.clear()

    def _try_again(self, one: SetAside) -> None:
        """A run that was set aside is due: the next ``heal`` reads it again."""
        if one.kind is Kind.INSTANCE:
            self._stale.add(int(one.item))

    # -- events ------------------------------------------------------------------------------

    def post(self, partition: int, instance_id: int, event: Event) -> None:
        """Hand over an event whose fate nobody waits for: the sweeper heals what is lost."""
        self.enqueue(partition, instance_id, event)

    def enqueue(
        self,
        partition: int,
        instance_id: int,
        event: Event,
        command: Command | None = None,
        eager: EagerRequest | None = None,
    ) -> asyncio.Future[Run]:
        """Hand over an event at once; what is returned ends as ``submit`` does."""
        done: asyncio.Future[Run] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_retrieve)
        if self._over:
            done.set_exception(NotStored(LEAVING))
        else:
            self._inbox.append(Item(partition, instance_id, event, done, command, eager))
            self._news.set()
        return done

    def wake(self, instance_id: int) -> None:
        """Let a run look at its delays, if it is still here."""
        run = self.runs.get(instance_id)
        # One that waits already does for all: what is due later sets its timer again.
        if run is not None and instance_id not in self._waking:
            self._waking.add(instance_id)
            self.post(run.partition, instance_id, TimeReached(self._clock()))

    async def submit(
        self, partition: int, instance_id: int, event: Event, command: Command | None = None
    ) -> Run:
        """Hand over an event and return the run once the outcome is stored.

        Raises NotOwner, NotStored, Quarantined, or NotFound if there is no such instance.
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
            await self._news.wait()
            items = self._working = self._next()
            self._waking -= {i.instance_id for i in items if isinstance(i.event, TimeReached)}
            async with self._lock:
                try:
                    await self._process(items)
                except Exception as error:  # noqa: BLE001 - whatever it was: it is stored, or not
                    for item in items:
                        item.fail(NotStored(str(error)))
                    self._evict(items)
                    await backoff.failed(error)
                else:
                    backoff.succeeded()
                self._throw_out()

    def _next(self) -> list[Item]:
        """Take the next batch out of the inbox: so many events, about so many tasks."""
        items: list[Item] = []
        tasks = 0
        while self._inbox and len(items) < self._batch_size:
            tasks += self._tasks_of(self._inbox[0])
            if items and tasks > MOST_TASKS:
                break
            items.append(self._inbox.popleft())
        if not self._inbox:
            self._news.clear()
        return items

    def _tasks_of(self, item: Item) -> int:
        """Return how many tasks an event may be about."""
        if isinstance(item.event, _ABOUT_ONE_TASK):
            return 1
        run = self.runs.get(item.instance_id)
        return _MOST_AT_ONCE if run is None else len(run.attempts)

    async def _process(self, items: list[Item]) -> None:
        """Decide and store one batch, and let out the actions of what was stored."""
        items = [item for item in items if self._is_ours(item)]
        changes: dict[int, Change] = {}
        try:
            await self._bring_in(items)
            changes, refusals = await self._decide_all(items)
            await self._store(items, changes, refusals)
        except Fenced as error:
            self._forget(set(error.partitions))
            log.warning("fenced: another master owns these", partitions=sorted(error.partitions))
            self._evict(items)
            for item in items:
                if item.partition in error.partitions:
                    item.fail(NotOwner(item.partition))
            # Before what came later: the events of a run keep their order.
            again = [item for item in items if item.partition not in error.partitions]
            self._inbox.extendleft(reversed(again))
            if again:
                self._news.set()
            return
        except Exception as error:  # noqa: BLE001 - one bad run must not stop all others
            await self._not_stored(items, error)
            return
        yielding = Yielding()
        for change in changes.values():
            # A run that was set aside has passed when its actions are performed, and not before.
            on_trial = self.quarantine.tries(Kind.INSTANCE, change.run.id)
            self._actions.add(change.run, change.decision.actions, on_trial=on_trial)
        for item in items:
            item.answer(self.runs[item.instance_id])
        for change in changes.values():
            decision = change.decision
            self._listeners.on_stored(change.run, decision)
            if change.run.state not in OPEN_WORKFLOW:
                self.runs.pop(change.run.id, None)
            if decision.finished_at is not None:
                self._listeners.on_ended(change.run)
            await yielding.pause()

    async def _not_stored(self, items: list[Item], error: Exception) -> None:
        """Nothing of a batch was stored: find out whose matter that is."""
        self._evict(items)
        retriable = isinstance(error, OSError) or (
            isinstance(error, ShoalError) and error.retriable
        )
        log.warning("decisions not stored", error=str(error), events=len(items))
        if not retriable and len({item.instance_id for item in items}) > 1:
            await self._process_apart(items)
            return
        told: ShoalError = NotStored(str(error))
        is_defect = not isinstance(error, (ShoalError, OSError))
        comes_again = all(isinstance(item.event, _OUR_OWN) for item in items)
        if items and (is_defect or (comes_again and isinstance(error, _BEYOND_US))):
            self._quarantine(items[0], error)
            self._stale.discard(items[0].instance_id)
            told = self._quarantined(items[0].instance_id)
        for item in items:
            item.fail(told)

    async def _process_apart(self, items: list[Item]) -> None:
        """Process a refused batch in halves, so that one bad run holds up no other."""
        runs = sorted({item.instance_id for item in items})
        first = set(runs[: len(runs) // 2])
        await self._process([i for i in items if i.instance_id in first])
        await self._process([i for i in items if i.instance_id not in first])

    def _is_ours(self, item: Item) -> bool:
        if item.failed:
            return False  # put back, and then refused with the batch that it came from
        if item.partition not in self.epochs:
            item.fail(NotOwner(item.partition))
        elif not self.quarantine.holds(Kind.INSTANCE, item.instance_id):
            return True
        elif isinstance(item.event, RecoverRequested):
            # Somebody asks to try again: that is to go on as after a takeover.
            item.event = Begun(item.event.at)
            self._throw_out()
            self.quarantine.try_again(Kind.INSTANCE, item.instance_id)
            return True
        else:
            item.fail(self._quarantined(item.instance_id))
        return False

    def _quarantined(self, instance_id: int) -> Quarantined:
        return Quarantined(instance_id, self.quarantine.reason(Kind.INSTANCE, instance_id))

    async def _bring_in(self, items: list[Item]) -> None:
        """Load the runs that events speak of and that are not open: paused, ended."""
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
                    item.fail(NotOwner(item.partition))
            elif run is None:
                item.fail(NotFound("workflow instance", item.instance_id))
            else:
                item.fail(NotOwner(item.partition))

    async def _decide_all(self, items: list[Item]) -> tuple[dict[int, Change], dict[int, str]]:
        """Decide event by event, until that is about enough tasks; ``items`` are cut there."""
        changes: dict[int, Change] = {}
        refusals: dict[int, str] = {}
        yielding = Yielding()
        tasks = 0  # that were decided about
        for number, item in enumerate(items):
            if tasks > MOST_TASKS:
                self._requeue_items(items, number)
                break
            await yielding.pause()
            run = self.runs[item.instance_id]
            if self.quarantine.holds(Kind.INSTANCE, run.id):
                item.fail(self._quarantined(run.id))  # by an event before
                continue
            try:
                decision = await self._decide(item.event, changes, run)
                if isinstance(item.event, TaskEnded) and item.eager is not None:
                    ended = item.event.task_instance_id
                    for taken in taken_by(item.eager, run, ended, decision):
                        claim = TaskClaimed(taken, item.eager.worker, self._clock())
                        await self._decide(claim, changes, run)
            except Exception as error:  # noqa: BLE001 - one bad run must not stop all others
                self._quarantine(item, error)
                continue
            tasks += len(decision.attempts)
            if decision.refusal is not None and item.command is not None:
                refusals[item.command.id] = decision.refusal
        return changes, refusals

    def _requeue_items(self, items: list[Item], first: int) -> None:
        """Leave the events from ``first`` on to the next batch: before what came later."""
        self._inbox.extendleft(reversed(items[first:]))
        self._news.set()
        del items[first:]

    @staticmethod
    async def _decide(event: Event, changes: dict[int, Change], run: Run) -> Decision:
        """Decide and apply; about many tasks in a thread, and piece by piece.

        Nothing but a batch changes a run, and this one waits.
        """
        is_long = len(run.attempts) > _MOST_AT_ONCE and not isinstance(event, _ABOUT_ONE_TASK)
        if not is_long:
            try:
                decision = decide(run, event, _MOST_AT_ONCE)
            except LongDecision:  # the end of one task may be the beginning of all others
                is_long = True
        if is_long:
            decision = await asyncio.to_thread(decide, run, event)
        if len(decision.attempts) > _MOST_AT_ONCE:
            for some in batched(decision.attempts.values(), _MOST_AT_ONCE):
                run.replace(some)
                await asyncio.sleep(0)
            run.apply(replace(decision, attempts={}))
        else:
            run.apply(decision)
        changes.setdefault(run.id, Change(run)).add(decision)
        return decision

    def _quarantine(self, item: Item, error: Exception) -> None:
        """Leave a run alone whose rows or whose state do not allow what happened.

        It stays as stored, with what was decided of it before this batch.
        """
        self.quarantine.put(Kind.INSTANCE, item.instance_id, item.partition, error)
        self._spoilt.add(item.instance_id)
        item.fail(self._quarantined(item.instance_id))

    async def _store(
        self, items: list[Item], changes: dict[int, Change], refusals: dict[int, str]
    ) -> None:
        to_save = [(c.run, c.decision) for c in changes.values() if not c.decision.changes_nothing]
        commands = [item for item in items if item.command is not None]
        if not to_save and not commands:
            return
        items = [item for item in items if not item.failed]
        commands = [item for item in items if item.command is not None]
        now = self._clock()
        ends = [c.run for c in changes.values() if c.decision.finished_at is not None]
        endings: list[Ending] = []
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
            failpoints.hit("store.before_commit")
            if ends:
                failpoints.hit("finish.before_commit")
            await uow.commit()
        failpoints.hit("store.after_commit")
        if ends:
            failpoints.hit("finish.after_commit")
        for ending in endings:
            ending.committed()
        if notified:
            failpoints.hit("message.after_commit")
            self._listeners.on_commands(notified)
        yielding = Yielding()
        for (run_id, task, number), new_id in ids.items():
            await yielding.pause()
            run = self.runs[run_id]
            attempt = run.attempts[task]
            if attempt.number == number:
                run.replace([replace(attempt, id=new_id)])

    @staticmethod
    async def _store_outcomes(
        uow: UnitOfWork, items: list[Item], refusals: dict[int, str], now: datetime
    ) -> None:
        asked = {item.command.id: item.instance_id for item in items if item.command is not None}
        await uow.commands.refuse_many(list(refusals.items()), now)
        done = [(command, run) for command, run in asked.items() if command not in refusals]
        await uow.commands.done_many(done, now)

    def _evict(self, items: list[Item]) -> None:
        """After a failed store: what memory decided did not happen, so it is read again."""
        for item in items:
            self.runs.pop(item.instance_id, None)
            self._stale.add(item.instance_id)

    @asynccontextmanager
    async def stored(self, instance_ids: Collection[int]) -> AsyncIterator[dict[int, Run]]:
        """Yield runs exactly as they are stored; those that nobody can read are left out.

        No batch is decided and no partition dropped while the block lasts, so what it tells
        ZooKeeper comes before whatever later decisions tell it. Keep it short.
        """
        async with self._lock:
            found = {i: self.runs[i] for i in instance_ids if i in self.runs}
            if len(found) < len(set(instance_ids)):
                async with self._database.unit_of_work(read_only=True) as uow:
                    for instance_id in set(instance_ids) - found.keys():
                        with suppress(NotFound, UnreadableRow):
                            found[instance_id] = await uow.instances.run(instance_id)
            yield found

    async def heal(self) -> None:
        """Carry on with the runs that a failed store has cost events.

        Most are read again. One that a later event has brought back into memory by itself needs
        its ``Begun`` as well: wake-ups and kills may be among what was lost.
        """
        async with self._lock:
            self._throw_out()
            found = [self.runs[i] for i in self._stale & self.runs.keys()]
            missing = self._stale - self.runs.keys()
            if missing:
                async with self._database.unit_of_work(read_only=True) as uow:
                    for instance_id in missing:
                        try:
                            found.append(await uow.instances.run(instance_id))
                        except NotFound:
                            self.quarantine.passed(Kind.INSTANCE, instance_id)
                        except UnreadableRow as error:
                            if error.partition in self.epochs:
                                self.quarantine.put(
                                    Kind.INSTANCE, instance_id, error.partition, error
                                )
            for run in found:
                if self.quarantine.holds(Kind.INSTANCE, run.id):
                    continue
                if run.partition in self.epochs and run.state in OPEN_WORKFLOW:
                    self.adopt(run)
                else:
                    self.quarantine.passed(Kind.INSTANCE, run.id)
            self._stale.clear()


def _retrieve(done: asyncio.Future[Run]) -> None:
    """Mark the exception of an unobserved future as seen."""
    if not done.cancelled():
        done.exception()
