"""Reports to the owners of partitions: sent at once, repeated until the owner has answered.

Reports that wait while a call to the same master is under way go with the next one together. An
end makes an unsent start of the same attempt superfluous, for it carries the start time too; so
starts are held back for a moment, and of a short task the master hears and stores the end alone.
While the worker has more to do than slots (``in_no_hurry``), no slot waits for what an answer may
bring; then ends are gathered for a moment, too.

With the ends goes a request for the tasks behind them, whose grants come with the answer
(eager_dispatch.py).
"""

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import structlog

from shoal.proto import shoal_pb2 as pb
from shoal.proto.errors import RpcError
from shoal.runtime import failpoints
from shoal.worker.intake.eager_dispatch import EagerDispatch
from shoal.worker.masters import Masters, delay_s

log = structlog.get_logger()

MOST_AT_ONCE = 500  # reports in one call: 1 MB at most, but for outputs
MOST_BYTES = 4 << 20  # of a call with several reports; one alone may have 4 MiB of outputs
SAY_SO_AFTER = 6  # tries; then it is worth a warning
GATHER_S = 0.01  # ends, for one call
START_HELD_S = 0.05  # no visible difference, and most tasks that do little are over by then

_V = pb.ReportVerdict
SETTLED = frozenset({_V.COMMITTED, _V.SUPERSEDED})


@dataclass
class _Item:
    worker_id: str  # that held the claim: perhaps of this agent's life before a restart
    report: pb.Report
    tries: int = 0
    not_before: float = 0.0  # monotonic seconds
    sending: bool = False
    key: tuple[int, bool] = field(init=False)  # the task instance, and whether it is a start

    def __post_init__(self) -> None:
        # Read once: each look into a message costs as much as ten into an object.
        self.key = self.report.attempt.task_instance_id, self.report.kind == pb.STARTED


#: Called on the loop with a report that is settled and whether it was COMMITTED.
OnSettled = Callable[[pb.Report, bool], None]


class Reporter:
    """Holds all unanswered reports. ``run`` sends them; everything belongs to its loop."""

    def __init__(
        self,
        masters: Masters,
        *,
        in_no_hurry: Callable[[], bool] = lambda: False,
        start_held_s: float = START_HELD_S,
    ) -> None:
        self._masters, self._in_no_hurry = masters, in_no_hurry
        self._start_held_s = start_held_s
        self._on_settled: list[OnSettled] = []
        self._eager_dispatch: EagerDispatch | None = None
        self._items: dict[tuple[int, bool], _Item] = {}
        self._gathering_until = -math.inf  # monotonic seconds
        self._busy: set[str] = set()  # masters with a call under way
        self._news = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._timer: asyncio.TimerHandle | None = None  # sets ``_news`` when something is due
        self._timer_at = math.inf  # monotonic seconds

    def subscribe(self, on_settled: OnSettled) -> None:
        """Have ``on_settled`` called with each report that a master has answered for good."""
        self._on_settled.append(on_settled)

    def attach(self, eager_dispatch: EagerDispatch) -> None:
        """From now on ``eager_dispatch`` takes what is granted with the answers."""
        self._eager_dispatch = eager_dispatch
        eager_dispatch.subscribe(self._news.set)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, worker_id: str, report: pb.Report) -> None:
        """Send ``report`` soon, a start after ``start_held_s``, and until it is settled."""
        item = _Item(worker_id, report, not_before=self._not_before(report))
        if report.kind != pb.STARTED:
            self.drop_start(report.attempt.task_instance_id)
            if self._eager_dispatch is not None and item.key not in self._items:
                self._eager_dispatch.reported(report.attempt)
        self._items[item.key] = item
        self._empty.clear()
        if item.not_before < self._timer_at:
            self._news.set()

    def _not_before(self, report: pb.Report) -> float:
        """Return the moment until which ``report`` may wait for others, in monotonic seconds."""
        now = time.monotonic()
        if report.kind == pb.STARTED:
            return now + self._start_held_s
        if report.kind == pb.RETURNED or not self._in_no_hurry():
            return 0.0
        if self._gathering_until <= now:
            self._gathering_until = now + GATHER_S
        return self._gathering_until

    def drop(self, task_instance_id: int) -> None:
        """The end of the attempt is no longer to be reported."""
        self._remove((task_instance_id, False))

    def drop_start(self, task_instance_id: int) -> None:
        """The start of the attempt is no longer to be reported."""
        self._remove((task_instance_id, True))

    async def drained(self) -> None:
        """Return when every report is settled, and none has come of that."""
        while self._items:
            await self._empty.wait()

    async def run(self) -> None:
        """Send for ever."""
        async with asyncio.TaskGroup() as calls:
            while True:
                self._news.clear()
                now = time.monotonic()
                await self._send_due(now, calls)
                self._notify_when_due(now)
                await self._news.wait()

    def _notify_when_due(self, now: float) -> None:
        """Set the one timer for what was postponed or held back at ``now``."""
        due = min((i.not_before for i in self._items.values() if i.not_before > now), default=None)
        if due is not None and due < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = due
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(due - time.monotonic(), self._notify)

    def _notify(self) -> None:
        self._timer, self._timer_at = None, math.inf
        self._news.set()

    def _is_due(self, item: _Item, now: float) -> bool:
        if item.sending or item.not_before > now:
            return False
        number, starts = item.key
        return starts or self._eager_dispatch is None or not self._eager_dispatch.is_coming(number)

    async def _send_due(self, now: float, calls: asyncio.TaskGroup) -> None:
        due = [i for i in self._items.values() if self._is_due(i, now)]
        if not due:
            return
        addresses = await self._masters.addresses(i.report.attempt.partition for i in due)
        batches: dict[tuple[str, str], list[_Item]] = defaultdict(list)
        for item in due:
            if self._items.get(item.key) is not item:
                continue  # dropped or replaced during the await
            address = addresses.get(item.report.attempt.partition)
            if address is None:
                self._postpone([item], "the partition has no owner")
            else:
                batches[address, item.worker_id].append(item)
        for (address, worker_id), items in batches.items():
            if address not in self._busy:
                self._busy.add(address)
                some = _fitting(items)
                for item in some:
                    item.sending = True
                calls.create_task(self._send(address, worker_id, some))

    async def _send(self, address: str, worker_id: str, items: list[_Item]) -> None:
        eager = self._eager_request(worker_id, items)
        request = pb.ReportRequest(
            worker_id=worker_id,
            reports=[i.report for i in items],
            eager=eager,
            sent_at=time.time(),
        )
        try:
            failpoints.hit("report.before_call")
            response = await self._masters.report(address, request)
            failpoints.hit("report.after_call")
        except RpcError as error:
            self._postpone(items, str(error))
        else:
            if self._eager_dispatch is not None and eager is not None:
                self._eager_dispatch.take(response.eager_tasks)
            verdicts = {v.task_instance_id: v.kind for v in response.verdicts}
            for item in items:
                self._judge(item, verdicts.get(item.key[0], _V.RETRY))
        finally:
            if self._eager_dispatch is not None and eager is not None:
                self._eager_dispatch.request_done(eager)
            for item in items:
                item.sending = False
            self._busy.discard(address)
            self._news.set()

    def _eager_request(self, worker_id: str, items: Collection[_Item]) -> pb.EagerRequest | None:
        """Return what this life of the worker would take with the answer."""
        ends = [i.key[0] for i in items if i.report.kind == pb.SUCCEEDED]
        if not ends or self._eager_dispatch is None or worker_id != self._eager_dispatch.worker_id:
            return None
        return self._eager_dispatch.request(ends)

    def _judge(self, item: _Item, verdict: "pb.ReportVerdict.Kind.ValueType") -> None:
        if verdict in SETTLED:
            if self._items.get(item.key) is item:
                self._remove(item.key)
            for notify in self._on_settled:
                notify(item.report, verdict == _V.COMMITTED)
        elif verdict == _V.NOT_OWNER:
            self._postpone([item], "the master no longer owns the partition")
        else:
            self._postpone([item], "the master could not store it")

    def _postpone(self, items: Collection[_Item], why: str) -> None:
        self._masters.forget(item.report.attempt.partition for item in items)
        for item in items:
            item.not_before = time.monotonic() + delay_s(item.tries)
            item.tries += 1
        stuck = [item.key[0] for item in items if item.tries == SAY_SO_AFTER]
        if stuck:
            log.warning("results wait for a master", task_instances=stuck[:20], reason=why)

    def _remove(self, key: tuple[int, bool]) -> None:
        item = self._items.pop(key, None)
        if item is not None and self._eager_dispatch is not None and item.report.kind != pb.STARTED:
            self._eager_dispatch.settled(item.report.attempt)
        if not self._items:
            self._empty.set()


def _fitting(items: Sequence[_Item]) -> list[_Item]:
    """Return the first of ``items``, as many as one call can carry, at least one."""
    some: list[_Item] = []
    size = 0
    for item in items[:MOST_AT_ONCE]:
        size += item.report.ByteSize()
        if some and size > MOST_BYTES:
            break
        some.append(item)
    return some
