"""Whether a cluster can be used from here: ask for its version, and whether it takes jobs."""

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Work
from shoal.worker.types.flink.cluster import Refused, connected
from shoal.worker.types.sql.probe import ProbeParams


async def probe(work: Work[ProbeParams]) -> None:
    """Write what answers into the log. Raises WorkFailed with advice."""
    async with connected(work.data_source(work.params.data_source)) as cluster:
        version = await cluster.version()
        try:
            await cluster.jars()
        except Refused as refused:
            if refused.status != 404:
                raise
            text = "it takes no jars: set web.submit.enable, and see that it is a session cluster"
            raise WorkFailed(f"{cluster.where}: {text}", permanent=True) from refused
        live = [job for job, status in (await cluster.jobs()).items() if status == "RUNNING"]
    work.log(f"Flink {version}, {len(live)} jobs running")
