"""Attempts whose claims are gone: does a worker still run them, or are they LOST?

A worker whose session has ended has no member node either, and its tasks were killed before that.
But a claim may also be deleted under a live worker, or vanish with a session that the worker has
replaced by another one. So a worker that is a member is asked first (``Revoke``): it ends what it
finds unclaimed, answers what it still has, and refuses the others from then on. The next attempt
is queued only when the worker has nothing of this one, or is not a member any longer.

A worker that is no longer a member is asked once more, at its last known address. As a rule it does
not answer, since its lease was over before its session. But an operator can end a session at the
servers while its worker is cut off from them: then the worker still answers masters, and the next
attempt waits until it has nothing of this one, for two session timeouts at most.

Nothing of this is stored, and asking is harmless: the next owner of a partition asks again. A
worker that does not answer is asked again with every sweep, for as long as its session lives.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

import structlog

from shoal.coordination import MemberInfo, Members
from shoal.core.errors import ShoalError
from shoal.core.runs.events import TaskEnded
from shoal.core.runs.run import Attempt, Run
from shoal.core.runs.states import HELD_BY_WORKER, TaskSignal
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.reasons import say
from shoal.master.engine.engine import Engine
from shoal.master.engine.held_runs import Clock
from shoal.master.loops import Background
from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels, call
from shoal.runtime import failpoints

log = structlog.get_logger()

TIMEOUT_S = 5.0  # for the answer of a worker; without one the next sweep asks again
LAST_TIMEOUT_S = 2.0  # for the answer of a worker that is not a member: as a rule there is none
MOST = 5_000  # attempts in one call; the next sweep asks for the rest
REMEMBER_S = 60.0  # addresses of workers that have left
PAUSES_S = (0.2, 0.5, 1.0)  # between questions, while something is being ended

Held = tuple[Run, Attempt]
Ask = Callable[[Sequence[Held]], Awaitable[set[int]]]  # returns the ids that are still held


class Revoker:
    """Asks the workers of one master's attempts; belongs to the event loop.

    ``delay_s``: how long a worker has to be away before its attempts are lost.
    ``session_timeout_s``: of workers; a lease is over that long after its last proof.
    """

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        workers: Members,
        channels: Channels,
        delay_s: float,
        session_timeout_s: float,
        background: Background,
    ) -> None:
        self._engine, self._clock = engine, clock
        self._workers, self._channels = workers, channels
        self._delay_s, self._background = delay_s, background
        self._overdue_s = delay_s + 2 * session_timeout_s
        self._members: Mapping[str, MemberInfo] = workers.current()
        self._departed: dict[str, tuple[MemberInfo, float]] = {}  # since, monotonic seconds
        self._asking: dict[str, asyncio.Task[None]] = {}  # by worker
        self._away_since: dict[str, float] = {}  # worker -> monotonic seconds

    def settle(self, unclaimed: Iterable[Held]) -> None:
        """Find out, in the background, about attempts that workers hold without claims."""
        of_worker: defaultdict[str, list[Held]] = defaultdict(list)
        for run, attempt in unclaimed:
            assert attempt.worker is not None
            of_worker[attempt.worker].append((run, attempt))
        self._away_since = {w: at for w, at in self._away_since.items() if w in of_worker}
        for worker, some in of_worker.items():
            if worker not in self._asking:
                task = self._background.spawn(self._settle_worker(worker, some[:MOST]), "revoke")
                self._asking[worker] = task
                task.add_done_callback(partial(self._asked, worker))

    def workers_changed(self, members: Mapping[str, MemberInfo]) -> None:
        """Remember the addresses of workers that have left, for a while."""
        now = time.monotonic()
        gone = self._members.keys() - members.keys()
        self._departed |= {worker: (self._members[worker], now) for worker in gone}
        self._departed = {
            worker: (member, since)
            for worker, (member, since) in self._departed.items()
            if worker not in members and now - since < self._overdue_s + REMEMBER_S
        }
        self._members = members

    def _asked(self, worker: str, _: asyncio.Task[None]) -> None:
        del self._asking[worker]

    async def _settle_worker(self, worker: str, some: Sequence[Held]) -> None:
        try:
            member = await self._workers.lookup(worker)
            if member is not None:
                self._away_since.pop(worker, None)
                why = say(Code.REASON_CLAIM_GONE, worker=worker)
                await self._ask_until_free(lambda some: self._ask(member, some), some, why)
            elif self._is_away(worker, self._delay_s):
                why = say(Code.REASON_WORKER_GONE, worker=worker)
                await self._ask_until_free(lambda some: self._ask_departed(worker, some), some, why)
        except ShoalError as error:
            log.warning("worker not asked; the next sweep asks", worker=worker, error=str(error))
        except Exception:
            # Junk in a member's node must not end this master.
            log.exception("worker not asked", worker=worker)

    def _is_away(self, worker: str, for_s: float) -> bool:
        now = time.monotonic()
        return now - self._away_since.setdefault(worker, now) >= for_s

    async def _ask_until_free(self, ask: Ask, some: Sequence[Held], why: str) -> None:
        """Ask a few times, while the worker still has some of them; the others are LOST."""
        for pause_s in (*PAUSES_S, None):
            held = await ask(some)
            for run, attempt in some:
                if attempt.id not in held:
                    declare_lost(self._engine, self._clock, run, attempt, why)
            some = [(run, attempt) for run, attempt in some if attempt.id in held]
            if not some or pause_s is None:
                return
            await asyncio.sleep(pause_s)  # the worker ends it

    async def _ask(self, member: MemberInfo, some: Sequence[Held]) -> set[int]:
        """Return what the worker still has. Raises ShoalError if that is not known."""
        address = str(member.data["address"])
        stub = self._channels.worker(address)
        refs = _refs(some)
        failpoints.hit("revoke.before_call")
        request = pb.RevokeRequest(worker_id=member.id, attempts=refs)
        answer = await call(address, stub.Revoke(request, timeout=TIMEOUT_S))
        failpoints.hit("revoke.after_call")
        if answer.worker_id != member.id:  # at the address of the one that we mean
            return {ref.task_instance_id for ref in refs}
        return set(answer.held)

    async def _ask_departed(self, worker: str, some: Sequence[Held]) -> set[int]:
        """Return what a worker still has that is not a member any longer. No answer: nothing."""
        member, _ = self._departed.get(worker, (self._members.get(worker), 0.0))
        address = None if member is None else member.data.get("address")
        if not isinstance(address, str) or self._is_away(worker, self._overdue_s):
            return set()
        request = pb.RevokeRequest(worker_id=worker, attempts=_refs(some))
        stub = self._channels.worker(address)
        try:
            answer = await call(address, stub.Revoke(request, timeout=LAST_TIMEOUT_S))
        except ShoalError as error:
            log.debug("worker that has left does not answer", worker=worker, error=str(error))
            return set()
        # Another process at its address is its successor.
        return set(answer.held) if answer.worker_id == worker else set()


def _refs(some: Sequence[Held]) -> list[pb.AttemptRef]:
    return [
        pb.AttemptRef(
            workflow_instance_id=run.id, task_instance_id=attempt.id, partition=run.partition
        )
        for run, attempt in some
        if attempt.id is not None
    ]


def is_still_held(engine: Engine, run: Run, attempt: Attempt) -> bool:
    """Whether a worker holds ``attempt`` still, as it does in ``run`` read before."""
    present = engine.runs.get(run.id)  # it may have been read anew meanwhile
    if present is None:
        return False
    now = present.attempts[attempt.task]
    # Every hold has another ``queued_at``: it may have been returned and taken again meanwhile.
    same = now.number == attempt.number and now.queued_at == attempt.queued_at
    return same and now.state in HELD_BY_WORKER


def declare_lost(engine: Engine, clock: Clock, run: Run, attempt: Attempt, why: str) -> None:
    """Tell the engine that no worker has ``attempt``, held as in ``run``, any longer."""
    assert attempt.id is not None
    if not is_still_held(engine, run, attempt):
        return  # it has ended, or was returned and taken again
    log.warning(
        "task lost with its worker",
        run=run.id,
        task=attempt.task,
        attempt=attempt.number,
        worker=attempt.worker,
    )
    event = TaskEnded(attempt.id, TaskSignal.LOSE, clock(), worker=attempt.worker, reason=why)
    failpoints.hit("lose.before_post")
    engine.post(run.partition, run.id, event)
