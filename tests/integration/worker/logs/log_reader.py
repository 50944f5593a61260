"""A reader of the logs that a worker serves by gRPC."""

import grpc.aio

from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels, call, translated
from tests.support.waiting import DEADLINE_S

MEBIBYTE = 1024 * 1024


def ref(number: int, workflow: str = "wf") -> pb.LogRef:
    return pb.LogRef(
        project="tests", workflow=workflow, workflow_instance_id=7, task_instance_id=number
    )


class Reader:
    """Reads logs of one worker."""

    def __init__(self, channels: Channels, address: str) -> None:
        self._stub, self._address = channels.logs(address), address

    async def view(self, log: pb.LogRef, offset: int = 0, limit: int = 10**9) -> pb.ViewResponse:
        request = pb.ViewRequest(log=log, offset=offset, limit=limit)
        return await call(self._address, self._stub.View(request, timeout=DEADLINE_S))

    async def follow(self, log: pb.LogRef, into: bytearray, offset: int = 0) -> None:
        """Append what comes to ``into``; return at the end."""
        start = offset
        try:
            async for chunk in self._stub.Follow(pb.FollowRequest(log=log, offset=offset)):
                assert chunk.offset == start + len(into)
                into += chunk.data
        except grpc.aio.AioRpcError as error:
            raise translated(self._address, error) from error

    async def download(self, log: pb.LogRef) -> bytes:
        data = b""
        async for chunk in self._stub.Download(pb.DownloadRequest(log=log)):
            assert chunk.offset == len(data)
            data += chunk.data
        return data
