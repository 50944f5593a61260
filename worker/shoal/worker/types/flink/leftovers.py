"""The end of everything that attempts of a task have left in the cluster.

In this order, so that nothing slips through: the jars go, so that no program of theirs can be
started, and none that is being started gets as far as to have a job. Then no program is
being started. Then every job is there that there will ever be, and those that live are ended.
"""

import asyncio
from collections.abc import Callable

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.flink.cluster import TERMINAL, FlinkClient, Refused
from shoal.worker.types.flink.kind import FlinkParams
from shoal.worker.types.flink.names import attempt_of_jar, attempt_of_job, job_id

LOOK_S = 0.2
STARTING_S = 10.0  # how long another program may take to start before we give up
SAVEPOINT_S = 12.0  # of a job whose attempt has died, before it is ended without
_CANCELLING = "CANCELLING"


async def end(
    cluster: FlinkClient, tag: str, up_to: int, params: FlinkParams, log: Callable[[str], None]
) -> None:
    """End what the attempts 1 to ``up_to`` have left. Returns when nothing of it is live.

    Raises WorkFailed.
    """
    await delete_jars(cluster, tag, up_to)
    await _until_nothing_starts(cluster, params.main_class)
    for job, status in (await cluster.jobs()).items():
        if status not in TERMINAL and _is_among(attempt_of_job(tag, job), up_to):
            log(f"shoal: ending Flink job {job}, which is {status}")
            await end_job(cluster, job, params, log, SAVEPOINT_S)


async def savepoint_of(cluster: FlinkClient, tag: str, before: int) -> str:
    """Return the savepoint with which the newest attempt before this one stopped; empty: none.

    Only of a job that has finished so: another one may have gone on behind its savepoint.
    """
    states = await cluster.jobs()
    for attempt in range(before - 1, 0, -1):
        job = job_id(tag, attempt)
        if states.get(job) == "FINISHED":
            await cluster.until_told(job, "FINISHED")
            if found := await cluster.last_savepoint(job):
                return found
    return ""


async def delete_jars(cluster: FlinkClient, tag: str, up_to: int) -> None:
    """Delete the jars that the attempts 1 to ``up_to`` have uploaded."""
    for jar, name in (await cluster.jars()).items():
        if _is_among(attempt_of_jar(tag, name), up_to):
            await cluster.delete_jar(jar)


async def end_job(
    cluster: FlinkClient,
    job: str,
    params: FlinkParams,
    log: Callable[[str], None],
    savepoint_s: float | None,
) -> None:
    """End a job as the task says; return when Flink has confirmed it.

    A savepoint that fails, or takes longer than ``savepoint_s`` (None: no limit), is done without.
    """
    if await cluster.status(job) in (*TERMINAL, None):
        return
    if params.cancel == "stop_with_savepoint":
        try:
            async with asyncio.timeout(savepoint_s):
                await _stop(cluster, job, params.savepoint_folder, log)
        except TimeoutError:
            log(f"shoal: no savepoint after {savepoint_s:g} s; cancelling the job without")
    await _cancel(cluster, job)


async def _cancel(cluster: FlinkClient, job: str) -> None:
    """Return when the job has ended: by our request, or by itself meanwhile."""
    while (status := await cluster.status(job)) is not None and status not in TERMINAL:
        if status != _CANCELLING:
            await cluster.cancel(job)
        await asyncio.sleep(LOOK_S)


async def _stop(cluster: FlinkClient, job: str, folder: str, log: Callable[[str], None]) -> None:
    try:
        await cluster.stop(job, folder)
        location, why = await _became(cluster, job)
    except Refused as refused:
        location, why = "", str(refused)
    if not location:
        log(f"shoal: no savepoint, the job is cancelled without: {why}")
        return
    log(f"shoal: savepoint {location}")
    # Not cancelled from here on: what it has written becomes final with the savepoint.
    while True:
        if await cluster.status(job) in (*TERMINAL, None):
            return
        await asyncio.sleep(LOOK_S)


async def _became(cluster: FlinkClient, job: str) -> tuple[str, str]:
    while True:
        if (became := await cluster.stopped(job)) is not None:
            return became
        await asyncio.sleep(LOOK_S)


async def _until_nothing_starts(cluster: FlinkClient, main_class: str) -> None:
    try:
        async with asyncio.timeout(STARTING_S):
            while True:
                if not await cluster.is_starting(main_class):
                    return
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise WorkFailed(
            f"{cluster.where}: a program, perhaps of this task, is still being started after "
            f"{STARTING_S:g} s"
        ) from None


def _is_among(attempt: int | None, up_to: int) -> bool:
    return attempt is not None and attempt <= up_to
