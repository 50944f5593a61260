"""Actions of stored decisions on their way out: in the queue, at workers, by services.

``ActionQueue`` keeps their order while the engine decides the next batch; ``Performer`` carries
them out. Everything here may fail or be cut off half-way: each action is harmless when repeated,
and the sweeper and ``Begun`` derive them again from the stored state.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Container, Coroutine, Iterable, Sequence

import structlog

from shoal.coordination import Members, QueueEntry, TaskQueue
from shoal.coordination.queue import lane_of
from shoal.core.errors import ShoalError
from shoal.core.runs.run import Action, Attempt, AttemptKey, Enqueue, Kill, Run, Withdraw
from shoal.core.runs.states import TaskState
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.reasons import say
from shoal.master.engine.listeners import Listeners
from shoal.master.loops import LongTurn
from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels, call
from shoal.runtime import failpoints

log = structlog.get_logger()

Performed = Sequence[tuple[Run, tuple[Action, ...]]]
Perform = Callable[[Performed], Awaitable[None]]

MOST_ACTIONS = 2_000  # performed by one call, unless they are of a single run
_KILL_TIMEOUT_S = 5.0  # a kill that was not heard is repeated by a timer anyway


class ActionQueue:
    """Has actions performed in the order in which their decisions were stored.

    One call at a time: actions that come meanwhile go out together, in the next one. Those of a
    partition that was dropped are left out: its next owner derives them from what is stored.
    """

    def __init__(
        self,
        perform: Perform,
        partitions: Container[int],
        on_failure: Callable[[Run, Exception], None] = lambda run, error: None,
        on_success: Callable[[Run], None] = lambda run: None,
    ) -> None:
        """``partitions``: those held, at any time.

        ``on_failure``, ``on_success``: of runs whose actions cannot, or can, be performed.
        """
        self._perform = perform
        self._on_failure, self._on_success = on_failure, on_success
        self._partitions = partitions
        self._waiting: list[tuple[Run, tuple[Action, ...]]] = []
        self._news = asyncio.Event()

    def add(self, run: Run, actions: tuple[Action, ...], *, on_trial: bool = False) -> None:
        """Have actions performed soon, after all that were added before.

        ``on_trial``: ``on_success`` is called even if there is nothing to perform.
        """
        if actions or on_trial:
            self._waiting.append((run, actions))
            self._news.set()

    async def run(self) -> None:
        """Run for ever."""
        while True:
            await self._news.wait()
            if ours := [one for one in self._next() if one[0].partition in self._partitions]:
                await self._perform_all(ours)

    def _next(self) -> Performed:
        """Take what waits: so many actions at most, unless one run has more."""
        actions, count = 0, 0
        for _, some in self._waiting:
            actions += len(some)
            if count and actions > MOST_ACTIONS:
                break
            count += 1
        waiting, self._waiting = self._waiting[:count], self._waiting[count:]
        if not self._waiting:
            self._news.clear()
        return waiting

    async def _perform_all(self, performed: Performed) -> None:
        """Perform together; after a failure, run by run. Repeated actions do no harm."""
        try:
            await self._perform(performed)
        except Exception as error:  # noqa: BLE001 - one bad run must not stop all others
            failure = error
        else:
            self._succeeded(performed)
            return
        if isinstance(failure, ShoalError) and failure.retriable:
            log.warning("actions not performed; sweeps repeat them", error=str(failure))
            self._succeeded(performed)  # as far as the runs are concerned
            return
        if len(performed) == 1:
            self._on_failure(performed[0][0], failure)
            return
        for one in performed:
            await self._perform_all([one])

    def _succeeded(self, performed: Performed) -> None:
        for run, _ in performed:
            self._on_success(run)


def queue_entry(run: Run, attempt: Attempt) -> QueueEntry:
    """Return the queue entry of a stored attempt."""
    assert attempt.id is not None
    spec = run.plan.tasks[attempt.task]
    return QueueEntry(
        group=spec.worker_group,
        workflow_priority=run.priority,
        workflow_instance_id=run.id,
        task_priority=int(spec.priority),
        task_instance_id=attempt.id,
        partition=run.partition,
        lane=lane_of(run.plan.spec.project),
    )


class Performer:
    """Performs actions for one master."""

    def __init__(
        self, queue: TaskQueue, workers: Members, channels: Channels, listeners: Listeners
    ) -> None:
        """``listeners`` get the actions that services perform, and those that are repeated."""
        self._queue = queue
        self._workers = workers
        self._channels = channels
        self._listeners = listeners
        self._background: set[asyncio.Task[None]] = set()

    async def __call__(self, performed: Performed) -> None:
        """Perform the actions of one stored batch."""
        put: list[QueueEntry] = []
        withdraw: list[QueueEntry] = []
        kills: dict[str, list[int]] = defaultdict(list)
        turn = LongTurn()
        for run, actions in performed:
            for action in actions:
                await turn.pause()
                match action:
                    # A batch may have decided both, in either order: its end counts.
                    case Enqueue(key):
                        put.extend(e for e in _entries(run, key) if _is_queued(run, key))
                    case Withdraw(key):
                        withdraw.extend(e for e in _entries(run, key) if not _is_queued(run, key))
                    case Kill(key, worker):
                        kills[worker or ""].extend(_ids(run, key))
                        self._listeners.on_action(run, action)
                    case _:
                        self._listeners.on_action(run, action)
        try:
            if withdraw:
                await self._queue.remove(withdraw)
            if put:
                failpoints.hit("dispatch.before_put")
                await self._queue.put(put)
                failpoints.hit("dispatch.after_put")
        except ShoalError as error:
            log.warning("queue not reached; the sweeper will repeat", error=str(error))
            self._listeners.on_queue_failure()
        for worker, ids in kills.items():
            self._spawn(self._kill(worker, sorted(set(ids))))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _kill(self, worker: str, ids: Iterable[int]) -> None:
        """Ask a worker to end attempts; repeated by a timer until their reports are in."""
        member = self._workers.current().get(worker)
        if member is None:
            return  # gone: its claims vanish, and the sweeper declares them lost
        request = pb.KillRequest(task_instance_ids=list(ids), reason=say(Code.REASON_STOPPED))
        address = str(member.data["address"])
        failpoints.hit("kill.before_call")
        try:
            await call(
                address, self._channels.worker(address).Kill(request, timeout=_KILL_TIMEOUT_S)
            )
        except ShoalError as error:
            log.warning("worker did not take the kill", worker=worker, error=str(error))

    async def aclose(self) -> None:
        """Wait for kills that are on their way."""
        await asyncio.gather(*self._background, return_exceptions=True)


def _is_queued(run: Run, key: AttemptKey) -> bool:
    return run.attempts[key[0]].state is TaskState.QUEUED


def _entries(run: Run, key: AttemptKey) -> list[QueueEntry]:
    task, number = key
    attempt = run.attempts[task]
    return [queue_entry(run, attempt)] if attempt.number == number and attempt.id else []


def _ids(run: Run, key: AttemptKey) -> list[int]:
    task, number = key
    attempt = run.attempts[task]
    return [attempt.id] if attempt.number == number and attempt.id else []
