"""Resources on their way into the storage and out of it, piece by piece.

A file that is refused, breaks off or comes too slowly leaves nothing behind; what cannot be
removed at once, masters remove a day later.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import datetime

import structlog
from starlette.requests import ClientDisconnect

from shoal.api.web.errors import BodyTooLarge, UploadStalled
from shoal.api.web.middleware import StreamBroken
from shoal.core.errors import ShoalError
from shoal.core.untrusted import is_more
from shoal.runtime.storage import PIECE, RangeReader, Storage, StorageLimits, Writer
from shoal.sql import Database, Recorder, UnitOfWork
from shoal.sql.errors import NotFound
from shoal.sql.repositories.definitions.resources import PendingUpload, StoredResource

log = structlog.get_logger()


class ResourceFiles:
    """The contents of resources. ``clock`` is the cluster's, ``cluster`` its uid."""

    def __init__(
        self,
        database: Database,
        storage: Storage,
        limits: StorageLimits,
        clock: Callable[[], datetime],
        cluster: str,
    ) -> None:
        self._database, self._storage = database, storage
        self._limits, self._clock, self._cluster = limits, clock, cluster
        self.stalled_s = 60.0  # without a byte of the file; then an upload ends

    def check_size(self, length: str) -> None:
        """Raise BodyTooLarge for a file of so many bytes, as a header says it; empty: unknown."""
        if is_more(length, self._limits.file):
            raise self._too_large()

    async def put(
        self,
        project: str,
        path: str,
        chunks: AsyncIterator[bytes],
        expected: int | None,
        recorder: Recorder,
        check: Callable[[UnitOfWork], Awaitable[None]],
    ) -> tuple[StoredResource, bool]:
        """Store a file; return its newest version, and whether that is a new one.

        ``expected``: see ``Resources.complete``. ``recorder``: of the entry in the audit. ``check``
        raises what refuses the change, where the project's files are locked; it is not
        asked when the newest version has the same content, for then there is no change.
        Raises BodyTooLarge, UploadStalled, StorageError, ResourceRefused.
        """
        name = self._storage.new_name(project, self._cluster)
        async with self._database.unit_of_work() as uow:
            upload = await uow.resources.begin(project, path, name, self._clock())
            await uow.commit()
        is_kept = False
        try:
            digest, size = await self._write(name, chunks)
            async with self._database.unit_of_work() as uow:
                await uow.projects.require(project)
                if await _digest_of(uow, project, path) != digest:
                    await check(uow)
                stored, is_new = await uow.resources.complete(
                    upload,
                    digest,
                    size,
                    self._clock(),
                    most=self._limits.project,
                    expected=expected,
                )
                await recorder(uow)
                is_kept = is_new  # also if it is not known whether the commit was carried out
                await uow.commit()
            return stored, is_new
        finally:
            if not is_kept:
                await self._forget(upload)

    async def _write(self, name: str, chunks: AsyncIterator[bytes]) -> tuple[str, int]:
        """Write a file; return its SHA-256 (hex) and its size."""
        digest, size = hashlib.sha256(), 0

        def write(file: Writer, piece: bytes) -> None:
            digest.update(piece)
            file.write(piece)

        writing = self._storage.writing(name)
        file = await asyncio.to_thread(writing.__enter__)
        try:
            async for piece in _pieces(chunks, self.stalled_s):
                size += len(piece)
                if size > self._limits.file:
                    raise self._too_large()
                await asyncio.to_thread(write, file, piece)
        except BaseException as error:
            with suppress(Exception):
                await asyncio.to_thread(writing.__exit__, type(error), error, None)
            raise
        await asyncio.to_thread(writing.__exit__, None, None, None)
        return digest.hexdigest(), size

    async def _forget(self, upload: PendingUpload) -> None:
        try:
            await asyncio.to_thread(self._storage.remove, upload.object)
            async with self._database.unit_of_work() as uow:
                await uow.resources.forget([upload.id])
                await uow.commit()
        except ShoalError as error:
            log.info("upload is removed later", object=upload.object, error=str(error))

    async def content(self, found: StoredResource) -> AsyncGenerator[bytes, None]:
        """Return the pieces of a version. Raises StorageError before the first one."""
        reading = self._storage.reading(found.object)
        file = await asyncio.to_thread(reading.__enter__)
        try:
            first = await asyncio.to_thread(file.read, PIECE)
        except BaseException:
            await asyncio.to_thread(reading.__exit__, None, None, None)
            raise

        async def pieces() -> AsyncGenerator[bytes, None]:
            try:
                async for piece in _rest(file, first):
                    yield piece
            except ShoalError as error:
                log.warning("download broken off", path=found.path, error=str(error))
                raise StreamBroken from error
            finally:
                await asyncio.to_thread(reading.__exit__, None, None, None)

        return pieces()

    def _too_large(self) -> BodyTooLarge:
        return BodyTooLarge(
            f"a resource may have at most {self._limits.file >> 20} MiB; that is resource_mb in "
            "the section [cluster]"
        )


async def _digest_of(uow: UnitOfWork, project: str, path: str) -> str | None:
    try:
        return (await uow.resources.get(project, path)).sha256
    except NotFound:
        return None


async def _rest(file: RangeReader, first: bytes) -> AsyncIterator[bytes]:
    piece = first
    while piece:
        yield piece
        piece = await asyncio.to_thread(file.read, PIECE)


async def _pieces(chunks: AsyncIterator[bytes], stalled_s: float) -> AsyncIterator[bytes]:
    """Yield what comes in pieces of some size: each makes a trip to a thread."""
    gathered = bytearray()
    try:
        while True:
            async with asyncio.timeout(stalled_s):
                chunk = await anext(chunks)
            gathered += chunk
            if len(gathered) >= PIECE:
                yield bytes(gathered)
                gathered.clear()
    except StopAsyncIteration:
        pass
    except TimeoutError:
        text = f"no byte of the file came for {stalled_s:g} s; send it again"
        raise UploadStalled(text) from None
    except ClientDisconnect as error:  # the caller has gone
        raise StreamBroken from error
    if gathered:
        yield bytes(gathered)
