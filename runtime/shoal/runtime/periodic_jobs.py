"""Periodic work of a process as jobs of APScheduler 3, by the cluster's clock.

APScheduler keeps the jobs, their triggers and the limit of one run at a time, and arms the timer of
the event loop. What it decides by the machine's clock is decided here instead (``_process_jobs``):

- A job is due when the *cluster's* clock has reached its next time.
- Times that were missed count as one. APScheduler would list them all first, which takes seconds
  after a clock has gone forward by a year.
- When the clock is set back, the next time of a job moves with it. Otherwise a daily job would wait
  until the clock has come back to where it was.
- The timer is never set for more than ``LONGEST_SLEEP_S``. It stands still while a machine is
  suspended, and the clock may be set while it runs.

A job that is due while it still runs starts again when it has ended.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

# APScheduler 3 publishes neither types nor stubs, so its base classes are Any to mypy.
from apscheduler.executors.base import BaseExecutor, MaxInstancesReachedError
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.interval import IntervalTrigger

LONGEST_SLEEP_S = 60.0

Clock = Callable[[], datetime]
Work = Callable[[], Awaitable[None]]


class PeriodicJobs:
    """The jobs of one process. They run as long as ``run`` does; used on its event loop."""

    def __init__(self, clock: Clock, longest_sleep_s: float = LONGEST_SLEEP_S) -> None:
        """``clock`` returns the cluster's time, aware."""
        self._clock = clock
        self._executor = _TaskExecutor()
        self._scheduler = _ClusterScheduler(clock, longest_sleep_s, self._executor)

    def every(self, name: str, work: Work, interval_s: float, first_s: float = 0.0) -> None:
        """Run ``work`` in ``first_s`` seconds, and ``interval_s`` after each start of a run."""
        trigger = IntervalTrigger(seconds=interval_s, timezone=UTC)
        self._add(name, work, trigger, self._clock() + timedelta(seconds=first_s))

    def at(self, name: str, work: Work, trigger: BaseTrigger) -> None:
        """Run ``work`` at each time of ``trigger``."""
        now = self._clock()
        self._add(name, work, trigger, trigger.get_next_fire_time(None, now))

    def soon(self, name: str, delay_s: float = 0.0) -> None:
        """Run a job in ``delay_s`` seconds if that is before its next time."""
        job = self._scheduler.get_job(name)
        moment = self._clock() + timedelta(seconds=delay_s)
        if job is not None and moment < job.next_run_time:
            job.modify(next_run_time=moment)

    def next_in(self, name: str, delay_s: float) -> None:
        """Run a job next in ``delay_s`` seconds, at most its interval, not at its next time.

        Called at the end of a run it keeps a pause between runs, however long a run takes.
        """
        if (job := self._scheduler.get_job(name)) is not None:
            job.modify(next_run_time=self._clock() + timedelta(seconds=delay_s))

    async def run(self) -> None:
        """Run the jobs until cancelled. Raises what one of them has raised; no job outlives it."""
        self._scheduler.start()
        try:
            await self._executor.failed()
        finally:
            self._scheduler.shutdown()
            await self._executor.cancel()

    def _add(self, name: str, work: Work, trigger: BaseTrigger, first: datetime | None) -> None:
        if first is not None:
            self._scheduler.add_job(work, trigger, id=name, name=name, next_run_time=first)


class _ClusterScheduler(AsyncIOScheduler):  # type: ignore[misc]
    """Starts what is due by the clock that it is given."""

    def __init__(self, clock: Clock, longest_sleep_s: float, executor: "_TaskExecutor") -> None:
        super().__init__(timezone=UTC, executors={"default": executor})
        self._clock, self._longest_sleep_s, self._executor = clock, longest_sleep_s, executor

    def _process_jobs(self) -> float | None:
        """Start what is due; return the seconds until the next call, None if there is none.

        An error here would end the timer without a trace, so it ends ``run`` instead.
        """
        if self._executor.is_closed:  # a wakeup that was queued before the end
            return None
        try:
            return self._start_due()
        except Exception as error:  # noqa: BLE001 - raised again by ``run``
            self._executor.fail(error)
            return None

    def _start_due(self) -> float:
        now, wait_s = self._clock(), self._longest_sleep_s
        for job in self.get_jobs():
            following = job.trigger.get_next_fire_time(now, now)
            if job.next_run_time <= now:
                try:
                    self._executor.submit_job(job, [now])
                except MaxInstancesReachedError:
                    continue  # its end calls again
                planned = following
            else:
                planned = min(job.next_run_time, following or job.next_run_time)
            if planned is None:
                job.remove()
                continue
            if planned != job.next_run_time:
                job.modify(next_run_time=planned)
            wait_s = min(wait_s, max(0.0, (planned - now).total_seconds()))
        return wait_s


class _TaskExecutor(BaseExecutor):  # type: ignore[misc]
    """Runs jobs as tasks of the event loop. The first error of a job is for ``failed``."""

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False  # no job starts any longer
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: asyncio.Future[None] | None = None

    async def failed(self) -> None:
        """Wait for the first error, and raise it."""
        self._failure = asyncio.get_running_loop().create_future()
        await self._failure

    def fail(self, error: BaseException) -> None:
        """End ``failed`` with ``error``, unless an earlier error has ended it."""
        if self._failure is not None and not self._failure.done():
            self._failure.set_exception(error)

    async def cancel(self) -> None:
        """Cancel all runs, wait for their ends, and start no others."""
        self.is_closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _do_submit_job(self, job: Any, run_times: list[datetime]) -> None:
        task = asyncio.ensure_future(job.func())
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, job.id))

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._run_job_success(name, [])
        if task.cancelled():
            return
        if (error := task.exception()) is None:
            if self._scheduler.running:
                self._scheduler.wakeup()
        else:
            self.fail(error)
