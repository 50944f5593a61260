"""How far running attempts are, fetched over gRPC from the workers that have them."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import structlog

from shoal.coordination.cluster.membership import Members
from shoal.core.runs.records import TaskInstance
from shoal.proto.channels import Channels, call
from shoal.proto.errors import RpcError
from shoal.proto.shoal_pb2 import ProgressRequest, TaskProgress

log = structlog.get_logger()

MOST = 1_000  # attempts that can be asked about at once
CALL_TIMEOUT_S = 3.0


class ProgressReader:
    """Asks the workers. One event loop."""

    def __init__(self, workers: Members, channels: Channels) -> None:
        self._workers, self._channels = workers, channels

    async def read(self, tasks: Sequence[TaskInstance]) -> list[TaskProgress]:
        """Return what the work of at most ``MOST`` running ``tasks`` says, in their order.

        A worker that does not answer is left out: how far
        something is, is never worth an error.
        """
        running: defaultdict[str, list[int]] = defaultdict(list)
        for task in tasks:
            if task.worker is not None:
                running[task.worker].append(task.id)
        addresses = {m.id: str(m.data.get("address", "")) for m in self._workers.current().values()}
        asked = [
            self._ask(addresses[worker], ids)
            for worker, ids in running.items()
            if addresses.get(worker)
        ]
        found = {one.task_instance_id: one for some in await asyncio.gather(*asked) for one in some}
        return [found[task.id] for task in tasks if task.id in found]

    async def _ask(self, address: str, ids: Sequence[int]) -> Sequence[TaskProgress]:
        request = ProgressRequest(task_instance_ids=ids)
        try:
            reply = await call(
                address, self._channels.progress(address).Read(request, timeout=CALL_TIMEOUT_S)
            )
        except RpcError as error:
            log.debug("no progress from this worker", address=address, error=str(error))
            return []
        return reply.tasks
