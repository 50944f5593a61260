"""Run a list of jobs, each in one of a changing set of processes.

::

    /jobs/<name>/<job>/owner     the process that runs the job (ephemeral, JSON); czxid: its epoch
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Self

import structlog

from shoal.coordination import background, znodes
from shoal.coordination.assignors import Partition
from shoal.coordination.group import GroupSettings
from shoal.coordination.recipes.fair_share import FairShare
from shoal.coordination.recipes.ownership import OwnerNodes, OwnershipListener
from shoal.coordination.session.session import ZkSession
from shoal.runtime.limits import memory_shortage

log = structlog.get_logger()

RESTART_S = 1.0  # pause after a job failed


class BalancedJobs:
    """Run our share of ``jobs`` for the life of the ``async with`` block.

    ``run(job, epoch)`` is called for each job that becomes ours, and cancelled when it is to move
    or when we can no longer prove that it is ours. In the first case no other process begins
    it before ``run`` has ended, so it may finish what it is at; in the second it has 0.3 of the
    session timeout. A job that is finishing for the first reason is cancelled again for the
    second. A job that returns is not begun again here; one that fails is, a second later.
    ``epoch`` is greater than in any run of the job before, for others to refuse a late one. Only if
    ZooKeeper lost all its data it begins anew: where you have stored a greater one, ask
    ``confirmed`` and, if the job is ours, go on with the stored one plus one.

    The processes of ``name`` may have different lists: a job goes to one that has it. A few
    hundred jobs are fine; for more, share partitions and map the jobs to them (``partition_of``).
    Raises ValueError at construction if a job has an invalid name.
    """

    def __init__(
        self,
        session: ZkSession,
        name: str,
        member_id: str,
        jobs: Collection[str],
        run: Callable[[str, int], Awaitable[None]],
        *,
        settings: GroupSettings | None = None,
    ) -> None:
        self._run, self._name = run, name
        self._running: dict[str, asyncio.Task[None]] = {}
        for job in jobs:
            znodes.encode_name(job)  # its error speaks of a name: to users, jobs are no topics
        # Each job is a topic of its own with one partition, so lists need not be the same.
        self._share = FairShare(
            session,
            self.group_name(name),
            dict.fromkeys(jobs, 1),
            OwnerNodes(
                lambda job: f"{znodes.jobs(name)}/{znodes.encode_name(job.topic)}/owner", member_id
            ),
            OwnershipListener(self._begin, self._end, self._lose),
            settings=settings,
        )

    async def __aenter__(self) -> Self:
        """Raises what ``Group`` raises at entering."""
        await self._share.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Hand all jobs over, and leave.

        If it is cancelled, a job that is finishing is cancelled again.
        """
        await self._share.__aexit__()

    @staticmethod
    def group_name(name: str) -> str:
        """Return the name of the group that its processes form, for ``read_group``."""
        return f"jobs: {name}"

    @property
    def running(self) -> frozenset[str]:
        """The jobs that are ours at this moment."""
        return frozenset(self._running)

    async def confirmed(self, job: str) -> int | None:
        """Return the epoch of a job if its owner node, read now, is ours; else None.

        An epoch that you had stored before and that is greater is of a tree that is gone. Raises
        ConnectionLoss, SessionLost.
        """
        partition = Partition(job, 0)
        return (await self._share.confirmed([partition])).get(partition)

    async def wait(self) -> None:
        """Return when the block has been left. Raises what has ended our part before that."""
        await self._share.wait()

    async def _begin(self, partition: Partition, epoch: int) -> None:
        job = partition.topic
        self._running[job] = background.start(self._keep_running(job, epoch), f"job {job}")

    async def _end(self, partition: Partition) -> None:
        await self._lose(frozenset([partition]))

    async def _lose(self, partitions: frozenset[Partition]) -> None:
        """Cancel the jobs, and return when they have ended.

        They are ours until then: if this is itself cancelled, the next call waits for them.
        """
        jobs = [partition.topic for partition in partitions]
        await asyncio.gather(*(background.stop(self._running.get(job)) for job in jobs))
        for job in jobs:
            self._running.pop(job, None)

    async def _keep_running(self, job: str, epoch: int) -> None:
        while True:
            try:
                return await self._run(job, epoch)
            except (Exception, asyncio.CancelledError) as error:
                # A job that awaits a task that it has cancelled itself fails, too.
                if background.is_cancelled():
                    raise
                memory_shortage.report(error)
                log.exception("job failed", name=self._name, job=job, epoch=epoch)
            await asyncio.sleep(RESTART_S)
