"""The worker's gRPC service for logs: read a range, follow, download.

Logs are addressed by ids; what they lead to is ``LogStore``'s business. Offsets are bytes, and a
negative one counts from the log's present end.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import NoReturn

import grpc
import grpc.aio

from shoal.proto import shoal_pb2 as pb
from shoal.proto.shoal_pb2_grpc import LogServiceServicer
from shoal.worker.attempts.held import HeldAttempt, HeldAttempts
from shoal.worker.logs.files import CHUNK, BadLogAddress, LogNotFound, LogStore, log_workflow

LONGEST_VIEW = 1024 * 1024  # bytes

ViewContext = grpc.aio.ServicerContext[pb.ViewRequest, pb.ViewResponse]
FollowContext = grpc.aio.ServicerContext[pb.FollowRequest, pb.LogChunk]
DownloadContext = grpc.aio.ServicerContext[pb.DownloadRequest, pb.LogChunk]
AnyContext = ViewContext | FollowContext | DownloadContext

Address = tuple[str, int, int]


class LogService(LogServiceServicer):
    """Serves the logs in ``store``; ``attempts`` says which of them may still grow."""

    def __init__(self, store: LogStore, attempts: HeldAttempts) -> None:
        self._store, self._attempts = store, attempts

    async def View(  # noqa: N802 - the name is the contract's
        self, request: pb.ViewRequest, context: ViewContext
    ) -> pb.ViewResponse:
        """Return one range. A log whose attempt has not written yet is empty."""
        address = await self._address(request.log)
        # Before reading: if it is over now, the size read below is final.
        finished = self._live(request.log) is None
        limit = min(max(0, request.limit), LONGEST_VIEW)
        try:
            offset = await self._offset(address, request.offset, growing=not finished)
            data, size = await asyncio.to_thread(
                partial(self._store.read_range, *address, offset, limit, growing=not finished)
            )
        except LogNotFound as error:
            if finished:
                await _refuse(context, error)
            return pb.ViewResponse(finished=False)
        except (BadLogAddress, OSError) as error:
            await _refuse(context, error)
        return pb.ViewResponse(data=data, offset=offset, size=size, finished=finished)

    async def Follow(  # noqa: N802 - the name is the contract's
        self, request: pb.FollowRequest, context: FollowContext
    ) -> AsyncIterator[pb.LogChunk]:
        """Send what is there, then what comes, until the attempt is over."""
        address = await self._address(request.log)
        attempt = self._live(request.log)
        try:
            if attempt is None and not await asyncio.to_thread(self._store.exists, *address):
                wanted = request.log
                await context.abort(
                    grpc.StatusCode.NOT_FOUND,
                    f"this worker has no log of task instance {wanted.task_instance_id} of "
                    f"{wanted.project}.{wanted.workflow}; it has not run here, or its log was "
                    "removed",
                )
            offset = await self._offset(address, request.offset, growing=attempt is not None)
            over = attempt.over if attempt is not None else _already()
            async for data in self._store.follow(*address, over, offset):
                yield pb.LogChunk(data=data, offset=offset)
                offset += len(data)
        except (BadLogAddress, LogNotFound, OSError) as error:
            await _refuse(context, error)

    async def Download(  # noqa: N802 - the name is the contract's
        self, request: pb.DownloadRequest, context: DownloadContext
    ) -> AsyncIterator[pb.LogChunk]:
        """Send what there is now."""
        address = await self._address(request.log)
        limit = self._store.limit if self._live(request.log) is not None else None
        try:
            file = await asyncio.to_thread(self._store.open_read, *address)
        except (BadLogAddress, LogNotFound, OSError) as error:
            await _refuse(context, error)
        offset = 0
        with file:
            while data := await asyncio.to_thread(file.read, _next(offset, limit)):
                yield pb.LogChunk(data=data, offset=offset)
                offset += len(data)

    async def _address(self, log: pb.LogRef) -> Address:
        """Return where the log is: under the first of the cluster's names that has it.

        Under none of them, the newest.
        """
        uids = [*log.clusters, ""] if log.may_be_unnamed or not log.clusters else log.clusters
        found = [
            (
                log_workflow(uid, log.project, log.workflow),
                log.workflow_instance_id,
                log.task_instance_id,
            )
            for uid in uids
        ]
        with suppress(BadLogAddress, OSError):  # reading it raises the error
            for address in found if len(found) > 1 else ():
                if await asyncio.to_thread(self._store.exists, *address):
                    return address
        return found[0]

    def _live(self, log: pb.LogRef) -> HeldAttempt | None:
        """Return the attempt if it may still write."""
        attempt = self._attempts.get(log.task_instance_id)
        return None if attempt is None or attempt.over.is_set() else attempt

    async def _offset(self, address: Address, offset: int, *, growing: bool) -> int:
        if offset >= 0:
            return offset
        try:
            _, size = await asyncio.to_thread(
                partial(self._store.read_range, *address, 0, 0, growing=growing)
            )
        except LogNotFound:
            return 0
        return max(0, size + offset)


def _next(offset: int, limit: int | None) -> int:
    """Return how many bytes to read next."""
    return CHUNK if limit is None else max(0, min(CHUNK, limit - offset))


def _already() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


async def _refuse(context: AnyContext, error: Exception) -> NoReturn:
    """End the call with the status that fits ``error``."""
    match error:
        case LogNotFound():
            code = grpc.StatusCode.NOT_FOUND
        case BadLogAddress():
            code = grpc.StatusCode.INVALID_ARGUMENT
        case _:
            code = grpc.StatusCode.INTERNAL
    await context.abort(code, str(error))
    raise AssertionError("abort returned")
