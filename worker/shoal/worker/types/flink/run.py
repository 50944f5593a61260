"""The work of a FLINK task, in the process of its attempt.

What earlier attempts have left in the cluster is ended before anything is submitted. The job's id
is fixed before that, so Flink itself refuses a second submission. However the attempt ends, the
job has ended then, too; ``wait: running`` alone leaves it there, when it has succeeded.
"""

import asyncio
import zipfile
from pathlib import Path
from typing import Any

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Work
from shoal.worker.types.flink.cluster import FlinkClient, Refused, Unreachable, connected
from shoal.worker.types.flink.kind import FlinkParams
from shoal.worker.types.flink.leftovers import delete_jars, end, end_job, savepoint_of
from shoal.worker.types.flink.names import jar_name, job_id
from shoal.worker.types.flink.progress import Following
from shoal.worker.types.program import placeholders_left


async def run(work: Work[FlinkParams]) -> None:
    """Run the job. Raises WorkFailed, CancelledError."""
    has_begun = False
    try:
        _require_usable(work.params)
        async with connected(work.data_source(work.params.data_source)) as cluster:
            work.log(f"shoal: {cluster.where}: Flink {await cluster.version()}")
            if work.attempt > 1:
                await end(cluster, work.tag, work.attempt - 1, work.params, work.log)
            has_begun = True
            await _run(work, cluster)
    finally:
        if not has_begun and work.attempt == 1:
            work.settled()  # nothing of this task is there


async def settle(work: Work[FlinkParams]) -> None:
    """End what this attempt and those before it have left in the cluster. Raises WorkFailed."""
    async with connected(work.data_source(work.params.data_source)) as cluster:
        await end(cluster, work.tag, work.attempt, work.params, work.log)
    work.settled()


async def _run(work: Work[FlinkParams], cluster: FlinkClient) -> None:
    job = job_id(work.tag, work.attempt)
    is_submitted = False
    try:
        await _submit(work, cluster, job, await _savepoint(work, cluster))
        is_submitted = True
        is_clean = await _clean(work, cluster)
        following = Following(work, cluster, job)
        try:
            await following.follow()
        finally:
            if following.is_over:
                work.settled()
        if not is_clean:
            await _clean(work, cluster)
    except asyncio.CancelledError:
        if is_submitted:
            await end_job(cluster, job, work.params, work.log, None)
        else:
            await end(cluster, work.tag, work.attempt, work.params, work.log)
        work.settled()
        raise


async def _savepoint(work: Work[FlinkParams], cluster: FlinkClient) -> str:
    """Return what the job is to start from; empty: from nothing."""
    if not work.params.resume or work.attempt == 1:
        return work.params.savepoint
    found = await savepoint_of(cluster, work.tag, work.attempt)
    work.log(f"shoal: resuming from {found}" if found else "shoal: no savepoint to resume from")
    return found or work.params.savepoint


async def _submit(work: Work[FlinkParams], cluster: FlinkClient, job: str, savepoint: str) -> None:
    """Upload the jar, and start its program."""
    try:
        jar = await cluster.upload(Path(work.params.jar), jar_name(work.tag, work.attempt))
    except OSError as error:
        text = f"the jar {work.params.jar} cannot be read: {error.strerror}"
        raise WorkFailed(text, permanent=True) from error
    work.log(f"shoal: submitting Flink job {job}")
    try:
        await cluster.run(jar, _request(work.params, job, savepoint))
    except Refused as refused:
        # It may have a job all the same: a program that fails behind its execute().
        for line in refused.trace.splitlines()[:100]:
            work.log(line)
        await end(cluster, work.tag, work.attempt, work.params, work.log)
        work.settled()
        raise
    work.log(f"shoal: {cluster.page(job)}")


async def _clean(work: Work[FlinkParams], cluster: FlinkClient) -> bool:
    """Delete the jar, which is not needed once the job is there; return whether it is gone.

    A good job is not given up for it.
    """
    try:
        await delete_jars(cluster, work.tag, work.attempt)
    except (Unreachable, Refused) as error:
        work.log(f"shoal: the uploaded jar could not be deleted: {error}")
        return False
    return True


def _request(params: FlinkParams, job: str, savepoint: str) -> dict[str, Any]:
    body: dict[str, Any] = {"jobId": job, "programArgsList": list(params.arguments)}
    if params.main_class:
        body["entryClass"] = params.main_class
    if params.parallelism is not None:
        body["parallelism"] = params.parallelism
    if savepoint:
        body["savepointPath"] = savepoint
        body["allowNonRestoredState"] = params.allow_non_restored_state
    if params.conf:
        body["flinkConfiguration"] = dict(params.conf)
    return body


def _require_usable(params: FlinkParams) -> None:
    """Raise WorkFailed if the params cannot be submitted: nothing has been done then."""
    texts = (params.jar, params.main_class, params.savepoint, params.savepoint_folder)
    if left := placeholders_left([*texts, *params.conf.values()]):
        text = f"no parameter of the workflow fills the placeholder in {left[0]!r}"
        raise WorkFailed(text, permanent=True)
    if not Path(params.jar).is_file():
        raise WorkFailed(f"there is no file {params.jar} on this worker", permanent=True)
    if not zipfile.is_zipfile(params.jar):
        raise WorkFailed(f"{params.jar} is not a jar", permanent=True)
