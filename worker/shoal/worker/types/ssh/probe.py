"""Whether a host can be used from here: sign in, and ask what it is."""

from shoal.worker.types.child.work import Work
from shoal.worker.types.sql.probe import ProbeParams
from shoal.worker.types.ssh.host import signed_in


async def probe(work: Work[ProbeParams]) -> None:
    """Write what answers into the log. Raises WorkFailed with advice."""
    async with signed_in(work.data_source(work.params.data_source)) as host:
        await host.end(work.tag)
        work.log(host.version)
