"""Logs of attempts, fetched over gRPC from the worker that holds them, or from the archive.

A log is addressed by the ids of the attempt, never by a path. The worker that ran the attempt is
looked up among the live ones; it may have been restarted since and go by another id then, so if
it is not there the others are asked. Logs that no worker has any longer may be in the archive.
"""

import asyncio
import codecs
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import grpc.aio
import structlog

from shoal.api.web.errors import LogDeleted, LogUnavailable, NoSuchThing
from shoal.coordination.cluster.membership import Members
from shoal.core.runs.records import TaskInstance
from shoal.core.runs.states import FINISHED_TASK
from shoal.proto.channels import Channels, call, translated
from shoal.proto.errors import PeerRefused, PeerUnavailable, RpcError
from shoal.proto.shoal_pb2 import (
    DownloadRequest,
    FollowRequest,
    LogChunk,
    LogRef,
    ViewRequest,
    ViewResponse,
)
from shoal.runtime.log_archive import LogArchive
from shoal.runtime.storage import ObjectMissing, StorageError
from shoal.sql import Database
from shoal.sql.repositories.upkeep.cluster import ClusterNames

log = structlog.get_logger()

MOST_BYTES = 1024 * 1024  # of one view; what a worker returns at most
CALL_TIMEOUT_S = 10.0  # a part of a log from a slow disk
# How often a quiet follower makes sure that the worker is still a member.
LOOK_S = 5.0
# Pauses between two reads of the row of an attempt that no worker has yet.
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5
PAUSE_BEFORE_RETRY_S = 0.2  # after a stream broke
_MOST_NAMES = 10_000
_NOT_AT_WORKERS = (NoSuchThing, LogUnavailable)


@dataclass(frozen=True)
class LogPart:
    """A range of a log. ``finished``: the log will no longer grow. Numbers are bytes."""

    data: bytes
    offset: int
    size: int
    finished: bool


class LogProxy:
    """Reads logs from the workers and the archive. One event loop."""

    def __init__(
        self,
        database: Database,
        workers: Members,
        channels: Channels,
        names: ClusterNames,
        archive: LogArchive | None = None,
    ) -> None:
        self._database = database
        self._cluster_names = names
        self._archive = archive
        self._workers = workers
        self._channels = channels
        self._names: dict[int, str] = {}  # of workflows, by instance; they never change

    async def view(self, task: TaskInstance, offset: int, limit: int) -> LogPart:
        """Return at most ``limit`` bytes from ``offset``; a negative one counts from the end.

        Raises LogUnavailable or NoSuchThing. An attempt that has not started has an empty log.
        """
        if task.worker is None:
            return LogPart(b"", 0, 0, task.state in FINISHED_TASK)
        try:
            _, reply = await self._ask(task, offset, limit)
        except _NOT_AT_WORKERS as error:
            if (size := await self._archived(task)) is not None:
                start = max(0, size + offset) if offset < 0 else min(offset, size)
                return LogPart(
                    await self._read(task, start, start + limit, size), start, size, True
                )
            if task.state in FINISHED_TASK or not isinstance(error, NoSuchThing):
                raise
            return LogPart(b"", 0, 0, False)  # claimed a moment ago
        finished = reply.finished or task.state in FINISHED_TASK
        return LogPart(reply.data, reply.offset, reply.size, finished)

    async def download(
        self, task: TaskInstance, start: int, end: int
    ) -> AsyncGenerator[bytes, None]:
        """Yield the bytes from ``start`` up to ``end`` (exclusive), which must exist.

        Raises LogUnavailable if the worker goes away in between.
        """
        position = start
        try:
            address, _ = await self._ask(task, start, 1)
        except _NOT_AT_WORKERS:
            if (size := await self._archived(task)) is None:
                raise
            async for _, data in self._parts(task, start, min(end, size), size):
                yield data
            return
        if start == 0:
            request = DownloadRequest(log=await self._ref(task))
            async for chunk in self._stream(
                address, self._channels.logs(address).Download(request)
            ):
                data = chunk.data[: end - position]
                position += len(data)
                if data:
                    yield data
                if position >= end:
                    return
        while position < end:
            limit = min(MOST_BYTES, end - position)
            reply = await self._view(address, task, position, limit)
            if not reply.data:
                raise LogUnavailable(f"the log of task instance {task.id} has become shorter")
            position += len(reply.data)
            yield reply.data

    async def follow(self, task_id: int, offset: int) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yield (offset, bytes) from ``offset`` on as the log grows, until it is complete.

        Waits for an attempt that has not started. Raises LogUnavailable or NoSuchThing.
        """
        while True:
            task = await self._with_worker(task_id)
            if task is None:
                return  # ended without ever having run
            try:
                address, _ = await self._ask(task, offset, 1)
                request = FollowRequest(log=await self._ref(task), offset=offset)
                stream = self._channels.logs(address).Follow(request)
                async for chunk in self._stream(address, stream):
                    offset = chunk.offset + len(chunk.data)
                    yield chunk.offset, chunk.data
                return
            except _NOT_AT_WORKERS as error:
                if (size := await self._archived(task)) is not None:
                    async for position, data in self._parts(task, offset, size, size):
                        yield position, data
                    return
                if task.state in FINISHED_TASK or not isinstance(error, NoSuchThing):
                    raise
            except PeerUnavailable as error:
                # The worker stopped or the connection broke: find where the log is now.
                log.info("log stream interrupted", task_instance=task_id, error=str(error))
            await asyncio.sleep(PAUSE_BEFORE_RETRY_S)

    async def of_past(self, instance: int, attempt: int, offset: int, limit: int) -> LogPart:
        """Return a range of an archived log, whatever the database knows of the attempt.

        Raises NoSuchThing, LogUnavailable.
        """
        if self._archive is None:
            raise NoSuchThing("logs outlive their worker only in an archive: logs_url is not set")
        try:
            size = await asyncio.to_thread(self._archive.size, instance, attempt)
            start = max(0, size + offset) if offset < 0 else min(offset, size)
            end = min(size, start + limit)
            data = await asyncio.to_thread(self._archive.read, instance, attempt, start, end)
        except ObjectMissing:
            raise NoSuchThing(
                f"the archive has no log of attempt {attempt}: it had none, or was deleted with "
                "its run, or after keep_archived_logs_days if that is set"
            ) from None
        except StorageError as error:
            raise LogUnavailable(str(error)) from error
        return LogPart(data, start, size, True)

    async def check(self, task: TaskInstance) -> None:
        """Return if the log can be read or may come. Raises LogUnavailable or NoSuchThing."""
        if task.worker is not None:
            await self.view(task, 0, 1)

    async def _ref(self, task: TaskInstance) -> LogRef:
        """Return what workers know a log by: the workflow's name is that of the run's version."""
        instance_id = task.workflow_instance_id
        if (name := self._names.get(instance_id)) is None:
            async with self._database.unit_of_work(read_only=True) as uow:
                found = await uow.instances.get(instance_id)
                name = (await uow.workflows.spec(found.workflow_id, found.version)).name
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            self._names[instance_id] = name
        uids = self._cluster_names.of_attempt(task.id)
        return LogRef(
            clusters=uids,
            may_be_unnamed=uids[-1] == self._cluster_names.names[0].uid,
            project=task.project,
            workflow=name,
            workflow_instance_id=instance_id,
            task_instance_id=task.id,
        )

    async def _archived(self, task: TaskInstance) -> int | None:
        """Return the bytes of the log in the archive; None: it is not there, or cannot be read."""
        if self._archive is None or task.state not in FINISHED_TASK:
            return None
        try:
            return await asyncio.to_thread(self._archive.size, task.workflow_instance_id, task.id)
        except ObjectMissing:
            return None
        except StorageError as error:
            log.warning("no logs from the archive", task_instance=task.id, error=str(error))
            return None

    async def _parts(
        self, task: TaskInstance, start: int, end: int, size: int
    ) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yield (offset, bytes) of an archived log. Raises LogUnavailable."""
        for position in range(start, end, MOST_BYTES):
            data = await self._read(task, position, min(end, position + MOST_BYTES), size)
            yield position, data

    async def _read(self, task: TaskInstance, start: int, end: int, size: int) -> bytes:
        assert self._archive is not None, "callers check first"
        try:
            return await asyncio.to_thread(
                self._archive.read, task.workflow_instance_id, task.id, start, min(end, size)
            )
        except StorageError as error:
            raise LogUnavailable(str(error)) from error

    async def _with_worker(self, task_id: int) -> TaskInstance | None:
        """Wait until a worker has the attempt. None: it ended without."""
        pause_s = SHORTEST_PAUSE_S
        while True:
            async with self._database.unit_of_work(read_only=True) as uow:
                task = await uow.tasks.get(task_id)
            if task.worker is not None:
                return task
            if task.state in FINISHED_TASK:
                return None
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)

    async def _stream(
        self, address: str, stream: grpc.aio.UnaryStreamCall[Any, LogChunk]
    ) -> AsyncGenerator[LogChunk, None]:
        """Yield the chunks of a call. Raises PeerUnavailable when the worker is gone."""
        reading: asyncio.Task[LogChunk | object] | None = None
        try:
            while True:
                reading = asyncio.ensure_future(stream.read())
                while not (await asyncio.wait({reading}, timeout=LOOK_S))[0]:
                    if address not in self._addresses().values():
                        raise PeerUnavailable(address, "the worker has left the cluster")
                chunk = reading.result()
                if not isinstance(chunk, LogChunk):  # grpc.aio.EOF
                    return
                yield chunk
        except grpc.aio.AioRpcError as error:
            raise translated(address, error) from error
        finally:
            stream.cancel()
            if reading is not None and not reading.done():
                reading.cancel()
                with suppress(asyncio.CancelledError, grpc.aio.AioRpcError):
                    await reading

    def _addresses(self) -> Mapping[str, str]:
        """Addresses of the live workers by their ids."""
        members = self._workers.current().values()
        return {member.id: str(member.data.get("address", "")) for member in members}

    async def _ask(self, task: TaskInstance, offset: int, limit: int) -> tuple[str, ViewResponse]:
        """Return the address of the worker that has the log, and the range."""
        assert task.worker is not None, "callers check first"
        addresses = self._addresses()
        address = addresses.get(task.worker)
        if address is None:
            return await self._ask_others(task, addresses, offset, limit)
        try:
            return address, await self._view(address, task, offset, limit)
        except NoSuchThing:
            self._require_kept(task)
            raise
        except PeerUnavailable as error:
            raise LogUnavailable(
                f"worker {task.worker} holds the log of task instance {task.id}, but {error}"
            ) from error

    async def _ask_others(
        self, task: TaskInstance, addresses: Mapping[str, str], offset: int, limit: int
    ) -> tuple[str, ViewResponse]:
        """The worker may have another id by now: try all; logs are found by their own ids."""
        found = await asyncio.gather(
            *(self._try(address, task, offset, limit) for address in addresses.values())
        )
        for address, reply in zip(addresses.values(), found, strict=True):
            if reply is not None:
                return address, reply
        self._require_kept(task)
        raise LogUnavailable(
            f"worker {task.worker} (group {task.worker_group}) holds the log of task instance "
            f"{task.id} and is not in the cluster; start a worker with its data folder"
        )

    def _require_kept(self, task: TaskInstance) -> None:
        """Raise LogDeleted if the worker that had the log reports that it has deleted it."""
        if task.worker is None or task.finished_at is None:
            return
        name = task.worker.rpartition("-")[0]  # in all ids of that worker
        for member in self._workers.current().values():
            if task.worker == member.id or name == member.data.get("name"):
                why = why_deleted(member.data, task.finished_at, datetime.now(UTC))
                if why is not None:
                    raise LogDeleted(f"the log of task instance {task.id} was deleted {why}")

    async def _try(
        self, address: str, task: TaskInstance, offset: int, limit: int
    ) -> ViewResponse | None:
        try:
            return await self._view(address, task, offset, limit)
        except (RpcError, NoSuchThing) as error:
            log.debug("no log at this worker", address=address, error=str(error))
            return None

    async def _view(
        self, address: str, task: TaskInstance, offset: int, limit: int
    ) -> ViewResponse:
        request = ViewRequest(log=await self._ref(task), offset=offset, limit=limit)
        stub = self._channels.logs(address)
        try:
            return await call(address, stub.View(request, timeout=CALL_TIMEOUT_S))
        except PeerRefused as error:
            if error.code == grpc.StatusCode.NOT_FOUND.name:
                raise NoSuchThing(
                    f"task instance {task.id} has no log on worker {task.worker}"
                ) from error
            raise


def why_deleted(told: Mapping[str, Any], finished_at: datetime, now: datetime) -> str | None:
    """Return why a worker with this answer has lost the log of an attempt; None: it has not."""
    days = told.get("log_retention_days")
    is_number = isinstance(days, (int, float)) and not isinstance(days, bool)
    if is_number and days and (now - finished_at).total_seconds() > days * 86_400:
        return f"after {days:g} days by log_retention_days"
    try:
        until = datetime.fromisoformat(told["logs_deleted_until"])
        if finished_at <= until:
            return "when the worker's disk was nearly full: the oldest logs go first (min_free_mb)"
    except (KeyError, TypeError, ValueError):
        pass
    return None


def text_of(part: LogPart, *, from_end: bool) -> tuple[str, int, int]:
    """Return the text of a range, where it starts and where it ends (bytes).

    A character that the range cuts in two is left for the next range; at the start of a range
    counted from the end it is left out. Bytes that are not UTF-8 become U+FFFD.
    """
    data, offset = part.data, part.offset
    if from_end and offset > 0:
        torn = 0
        while torn < min(3, len(data)) and data[torn] & 0xC0 == 0x80:
            torn += 1
        data, offset = data[torn:], offset + torn
    is_whole = part.finished and offset + len(data) >= part.size
    decoder = Utf8()
    text = decoder.feed(data)
    if is_whole or not text:
        text += decoder.finish()
        return text, offset, offset + len(data)
    return text, offset, offset + len(data) - decoder.pending


class Utf8:
    """Decodes a stream of bytes chunk by chunk; what is not UTF-8 becomes U+FFFD."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> str:
        """Return the text of the whole characters so far."""
        return self._decoder.decode(data)

    def finish(self) -> str:
        """Return what is left of a character that will not be completed."""
        return self._decoder.decode(b"", final=True)

    @property
    def pending(self) -> int:
        """Bytes of a character that is not complete yet."""
        return len(self._decoder.getstate()[0])
