"""The worker agent: member of the cluster, claims tasks, runs them, reports.

The processes themselves belong to the launcher (``processes/launcher.py``), which obeys a *lease*:
the moment until which this worker's ZooKeeper session is certainly alive. When it passes, the
launcher kills everything, whether this agent acts or not, because from then on the masters may
start the same tasks elsewhere.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

import structlog

from shoal.coordination import (
    Membership,
    SessionLost,
    SessionState,
    TaskClaim,
    TaskQueue,
    ZkSession,
)
from shoal.coordination.errors import CoordinationError
from shoal.runtime import failpoints
from shoal.worker.attempts.held import HeldAttempt, HeldAttempts
from shoal.worker.execution.runner import CLAIM_GONE, Runner
from shoal.worker.home.disk import DiskGuard
from shoal.worker.intake.claims import Claimer
from shoal.worker.intake.fetches import give_up_unanswered
from shoal.worker.intake.reachability import Reachability
from shoal.worker.intake.starts import StartGuard
from shoal.worker.logs.limit import LogLimit
from shoal.worker.logs.retention import LogKeeper
from shoal.worker.masters import Masters
from shoal.worker.processes.launcher import SHORTEST_PATIENCE_S, Launcher
from shoal.worker.results.reporter import Reporter
from shoal.worker.settings import WorkerSettings

log = structlog.get_logger()

LEASE_RENEWAL = 1 / 6  # of the session timeout
LEASE_STEP_S = 0.05  # less is not worth a message to the launcher
PATIENCE = 1 / 10  # of it; the proof ends at 0.7, others take over at 1
FETCH_PATIENCE = 1 / 2  # of the session timeout
LOAD_EVERY_S = 1.0  # how often the member's data may change
CLAIMS_CHECK_S = 2.0  # between checks whether our claims still stand: two requests each
RELEASE_PAUSE_S = 0.1  # a finished task's claim is not waited for: those of a while go together
LAST_REPORTS_S = 5.0  # to hand over results before leaving; the rest waits in the spool
LAST_LOGS_S = 10.0  # to copy logs to the archive before leaving; a next life does the rest
STOPPED = "the worker was stopped"
SESSION_LOST = "the worker lost its ZooKeeper session"


def fetch_patience_s(settings: WorkerSettings, session: ZkSession) -> float:
    """Return how long a claim may be without an answer of a master, in seconds."""
    return settings.fetch_patience_s or FETCH_PATIENCE * session.timeout_s


class Agent:
    """The loops of one worker. All parts are built and opened by ``main``.

    Attempts and loops run in ``tasks``; if one of them fails, that group ends the worker.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        session: ZkSession,
        queue: TaskQueue,
        launcher: Launcher,
        attempts: HeldAttempts,
        tasks: asyncio.TaskGroup,
        disk: DiskGuard,
        log_limit: LogLimit,
        masters: Masters,
        reachability: Reachability,
        starting: StartGuard,
        log_keeper: LogKeeper,
        about: Mapping[str, Any],
    ) -> None:
        self._settings, self._session, self._queue = settings, session, queue
        self._launcher, self._attempts, self._tasks = launcher, attempts, tasks
        self._disk, self._log_limit, self._log_keeper = disk, log_limit, log_keeper
        self._masters, self._reachability = masters, reachability
        self._starting = starting
        self._news = asyncio.Event()  # the member's data has changed, its load apart
        self._about = {"address": "", **about}  # what never changes of the member's data
        self._leased_until = -1.0  # as the launcher knows it; ``boottime`` seconds
        self._dropped: list[HeldAttempt] = []  # whose claims are to be released
        self._releasing = False
        self._to_requeue: list[TaskClaim] = []  # that are to be queued again
        self._claiming: asyncio.Task[None] | None = None
        self._claims_no_more = False
        self._requeuing = False
        reachability.subscribe(self._reachability_changed)
        starting.subscribe(self.publish_soon)
        disk.subscribe(self.publish_soon)

    def serve_at(self, address: str) -> None:
        """Note the address of the worker's server for the member's data."""
        self._about = {**self._about, "address": address}

    def renew_lease(self) -> None:
        """Let attempts live as long as our session is proven to."""
        deadline = max(0.0, self._session.proven_until)
        if 0 <= deadline - self._leased_until < LEASE_STEP_S:
            return
        self._leased_until = deadline
        patience_s = max(SHORTEST_PATIENCE_S, PATIENCE * self._session.timeout_s)
        self._launcher.extend_lease(deadline, patience_s)

    def drop_claims(self, attempts: Sequence[HeldAttempt]) -> None:
        """Release the claims of attempts that have ended, in the background.

        What ends meanwhile, or soon after, is released together.
        """
        self._dropped += attempts
        if not self._releasing:
            self._releasing = True
            self._tasks.create_task(self._release_dropped())

    def requeue(self, attempts: Sequence[HeldAttempt]) -> None:
        """Put attempts that have not begun into the queue, in the background."""
        self._to_requeue += [attempt.claim for attempt in attempts]
        if not self._requeuing:
            self._requeuing = True
            self._tasks.create_task(self._requeue_in_background())

    async def run(
        self,
        member: Membership,
        claimer: Claimer,
        reporter: Reporter,
        runner: Runner,
        stop: asyncio.Event,
        at_once: asyncio.Event,
        ready: asyncio.Event,
    ) -> None:
        """Work until ``stop``, then leave in order; ``at_once`` cuts that short.

        ``ready`` is set when the worker is registered.
        """
        self.renew_lease()
        patience_s = fetch_patience_s(self._settings, self._session)
        unsubscribe = self._session.on_state(self._session_changed)
        loops = (
            reporter.run(),
            self._keep_lease(),
            self._log_limit.watch(),
            give_up_unanswered(self._attempts, self._masters, patience_s, runner.refuse),
        )
        lasting = [self._tasks.create_task(loop) for loop in loops]
        try:
            async with member:
                ready.set()
                log.info("worker ready", worker=member.member_id, **self.member_data)
                lasting += [  # also while the worker drains
                    self._tasks.create_task(self._follow_sessions(claimer, runner)),
                    self._tasks.create_task(self._end_unclaimed(runner)),
                ]
                until_stop = [
                    self._tasks.create_task(self._publish_load(member)),
                    self._tasks.create_task(self._publish_news(member)),
                    self._tasks.create_task(self._disk.watch(self._attempts.until_any)),
                    self._tasks.create_task(self._log_keeper.watch(self.publish_soon)),
                    self._tasks.create_task(self._log_keeper.archive()),
                ]
                await stop.wait()
                log.info("worker stopping", running=self._attempts.occupied)
                for task in until_stop:
                    task.cancel()
                await asyncio.wait(until_stop)
                await self._stop_claiming()
                runner.start_no_more()
                await self._drain(runner, at_once)
                await _first(reporter.drained(), at_once.wait(), timeout_s=LAST_REPORTS_S)
                await _first(self._log_keeper.finish(), at_once.wait(), timeout_s=LAST_LOGS_S)
        finally:
            unsubscribe()
            for task in lasting:
                task.cancel()
        log.info("worker stopped", unreported=len(reporter))

    # -- session ----------------------------------------------------------------------------

    async def _follow_sessions(self, claimer: Claimer, runner: Runner) -> None:
        """When the session is lost, make sure that all it claimed is dead. Claim, until stopped."""
        while True:
            await self._session.proven()
            generation = self._session.generation
            self._claiming = None
            if not self._claims_no_more:
                self._claiming = asyncio.create_task(claimer.run(), name="claims")
            try:
                await self._lost_or_failed(generation, self._claiming)
            finally:
                await self._end_claiming()
            log.warning("session lost, ending all tasks", running=self._attempts.occupied)
            await runner.lose_session(SESSION_LOST)

    async def _lost_or_failed(self, generation: int, claiming: "asyncio.Task[None] | None") -> None:
        """Return when the session is over. Raises what ``claiming`` raised."""
        while self._session.generation == generation:
            lost = asyncio.create_task(self._session.lost())
            awaited = [lost] if claiming is None else [lost, claiming]
            try:
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
                if claiming is not None and claiming.done():
                    if not claiming.cancelled():  # else the worker stops
                        claiming.result()
                    await lost
                if lost.done():
                    return
            finally:
                lost.cancel()

    async def _stop_claiming(self) -> None:
        """Claim no more, in this session nor in a later one."""
        self._claims_no_more = True
        await self._end_claiming()

    async def _end_claiming(self) -> None:
        if self._claiming is not None:
            self._claiming.cancel()
            await asyncio.wait([self._claiming])

    async def _end_unclaimed(self, runner: Runner) -> None:
        """End the attempts whose claims were deleted: other workers may start them."""
        while True:
            await self._attempts.until_any()
            await asyncio.sleep(CLAIMS_CHECK_S)
            try:
                lost = set(await self._queue.lost())
            except CoordinationError as error:
                log.debug("claims not checked", error=str(error))
                continue
            for attempt in self._attempts.live:
                if attempt.claim in lost:
                    log.error("claim deleted by another process", task_instance=attempt.id)
                    runner.interrupt(attempt, CLAIM_GONE)

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.LOST:
            self.renew_lease()  # there is none: everything ends now

    def _reachability_changed(self) -> None:
        """Masters have fallen silent, or answer again."""
        self._queue.leave_out(self._reachability.partitions)
        self.publish_soon()

    async def _keep_lease(self) -> None:
        while True:
            self.renew_lease()
            await asyncio.sleep(LEASE_RENEWAL * self._session.timeout_s)

    async def _release_dropped(self) -> None:
        try:
            while self._dropped:
                await asyncio.sleep(RELEASE_PAUSE_S)
                dropped, self._dropped = self._dropped, []
                await self._release(dropped)
        finally:
            self._releasing = False

    async def _release(self, attempts: Sequence[HeldAttempt]) -> None:
        ended = [attempt.claim for attempt in attempts if attempt.committed]
        others = [attempt.claim for attempt in attempts if not attempt.committed]
        # If the session is lost, the claims are gone anyway.
        with suppress(SessionLost):
            failpoints.hit("claim.before_release")
            await self._session.retry(lambda: self._queue.release(ended, ended=True))
            await self._session.retry(lambda: self._queue.release(others))
            failpoints.hit("claim.after_release")

    async def _requeue_in_background(self) -> None:
        try:
            while self._to_requeue:
                claims, self._to_requeue = self._to_requeue, []
                await self._requeue(claims)
        finally:
            self._requeuing = False

    async def _requeue(self, claims: Sequence[TaskClaim]) -> None:
        # If the session is lost, the masters put them back.
        with suppress(SessionLost):
            failpoints.hit("requeue.before_put")
            await self._session.retry(lambda: self._queue.requeue(claims))
            failpoints.hit("requeue.after_put")

    # -- what others see --------------------------------------------------------------------

    @property
    def member_data(self) -> dict[str, Any]:
        """What the worker publishes of itself in ZooKeeper."""
        data = {**self._about, "running": self._attempts.occupied, **self._log_keeper.published}
        if reason := (
            self._disk.shortage or self._starting.shortage or self._reachability.unreachable_reason
        ):
            data["paused"] = reason
        if masters := self._reachability.masters:
            data["unreachable"] = masters
        return data

    def publish_soon(self) -> None:
        """Publish ``member_data`` soon: it has changed."""
        self._news.set()

    async def _publish_news(self, member: Membership) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            await member.update(self.member_data)

    async def _publish_load(self, member: Membership) -> None:
        """Keep ``running`` in the member's data true, at most a second late."""
        shown = 0
        while True:
            while self._attempts.occupied == shown:
                await self._attempts.changed()
            shown = self._attempts.occupied
            await member.update(self.member_data)
            await asyncio.sleep(LOAD_EVERY_S)  # a limit of the rate

    # -- end --------------------------------------------------------------------------------

    async def _drain(self, runner: Runner, at_once: asyncio.Event) -> None:
        """Requeue what has not begun, let the rest finish, end what is left after drain_s."""
        await self._requeue_unstarted()
        drain_s = self._settings.drain_s
        await _first(self._attempts.idle(), at_once.wait(), timeout_s=drain_s)
        if self._attempts.occupied:
            log.warning("ending tasks: the worker stops", running=self._attempts.occupied)
            grace_s = 0.0 if at_once.is_set() else self._settings.kill_grace_s
            ending = asyncio.create_task(runner.interrupt_all(STOPPED, grace_s))
            await _first(asyncio.wait([ending]), at_once.wait(), timeout_s=None)
            if not ending.done():
                await runner.interrupt_all(STOPPED, 0.0)
            await ending

    async def _requeue_unstarted(self) -> None:
        begun = [attempt for attempt in self._attempts.live if not attempt.granted]
        for attempt in begun:
            self._attempts.forget(attempt)
        try:
            await self._queue.requeue([attempt.claim for attempt in begun])
        except CoordinationError as error:
            log.debug("claims not requeued; they end with the session", error=str(error))


async def _first(*wanted: Coroutine[Any, Any, Any], timeout_s: float | None) -> None:
    """Return when one of ``wanted`` returns, or after ``timeout_s``; cancel the others."""
    tasks = [asyncio.ensure_future(each) for each in wanted]
    try:
        await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
