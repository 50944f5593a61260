"""The resources that attempts of this worker use: fetched once, kept while there is room, and
copied into the folder of each attempt, which may do with its copy whatever it likes.
"""

import asyncio
import os
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog

from shoal.core.definition.resources import RESOURCES, path_problem
from shoal.core.errors import ShoalError
from shoal.proto import shoal_pb2 as pb
from shoal.worker.home.download import STARVED, UNFINISHED, Download, File
from shoal.worker.processes.helpers import Helpers
from shoal.worker.processes.launcher import NoRoomToStart

log = structlog.get_logger()

TIMEOUT_S = 3600.0  # for all files of an attempt
_MODE = 0o500  # a script may be run as it is
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FETCHING = "shoal.worker.home.download"


class ResourceUnavailable(ShoalError):
    """A resource of a task cannot be had."""


class ResourceCache:
    """Belongs to the event loop. ``root`` exists, and is this worker's alone.

    ``most``: bytes that are kept. Fetching runs in ``tasks``.
    """

    def __init__(
        self,
        root: Path,
        url: str,
        most: int,
        helpers: Helpers,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._root, self._url, self._most = root, url, most
        self._helpers, self._tasks = helpers, tasks
        self._fetching: dict[str, asyncio.Task[Exception | None]] = {}
        self._in_use: Counter[str] = Counter()
        self._turn = asyncio.Lock()  # of who looks what is there, and who removes

    async def stage(self, wanted: Sequence[pb.Resource], folder: Path) -> None:
        """Copy the files into ``folder``. Raises ResourceUnavailable, LaunchFailed, OSError."""
        for one in wanted:
            if path_problem(one.path) or not _DIGEST.fullmatch(one.sha256):
                raise ResourceUnavailable(
                    f"the payload names {one.path!r:.200}, which is not a path"
                )
        files = {one.sha256: File(one.object, one.sha256, one.size) for one in wanted}
        with self._using(list(files)):
            async with self._turn:
                missing = await asyncio.to_thread(self._missing, files)
            await self._fetch(missing)
            await asyncio.to_thread(self._copy, wanted, folder / RESOURCES)
        async with self._turn:
            await asyncio.to_thread(self._make_room, frozenset(+self._in_use))

    def close(self) -> None:
        """Fetch no more: the worker ends, and no attempt waits."""
        for task in set(self._fetching.values()):
            task.cancel()

    @contextmanager
    def _using(self, digests: Sequence[str]) -> Iterator[None]:
        self._in_use.update(digests)
        try:
            yield
        finally:
            self._in_use.subtract(digests)

    async def _fetch(self, missing: Sequence[File]) -> None:
        """Return when all of these files are there. Raises what kept one of them away."""
        new = [file for file in missing if file.sha256 not in self._fetching]
        if new:
            task = self._tasks.create_task(self._fetched(new), name="fetch resources")
            self._fetching.update((file.sha256, task) for file in new)
        for task in {
            self._fetching[file.sha256] for file in missing if file.sha256 in self._fetching
        }:
            # Others may wait for it, too.
            if (error := await asyncio.shield(task)) is not None:
                raise error

    async def _fetched(self, files: Sequence[File]) -> Exception | None:
        """Fetch files; return what went wrong. An error of one attempt ends no others."""
        try:
            await self._run(files)
        except (ShoalError, OSError) as error:
            return error
        finally:
            for file in files:
                del self._fetching[file.sha256]
        return None

    async def _run(self, files: Sequence[File]) -> None:
        errand = Download(self._url, str(self._root), files).to_json()
        ended = await self._helpers.run(_FETCHING, errand, name="fetch", timeout_s=TIMEOUT_S)
        if not ended.is_well:
            why = f"resources are not fetched: {ended.why}"
            if ended.record.exit_code == STARVED:
                raise NoRoomToStart(ended.record.id, why)
            raise ResourceUnavailable(why)

    # -- the folder; all of it blocks ------------------------------------------------------------

    def prepare(self) -> None:
        """Remove what an earlier life of this worker has left unfinished."""
        for path in self._root.iterdir():
            if path.name.startswith(UNFINISHED):
                path.unlink(missing_ok=True)

    def _missing(self, files: Mapping[str, File]) -> list[File]:
        """Return what is not there; what is, becomes the newest."""
        missing = []
        for digest, file in files.items():
            path = self._root / digest
            try:
                if path.stat().st_size != file.size:  # the machine may have failed meanwhile
                    raise FileNotFoundError
                os.utime(path)
            except FileNotFoundError:
                missing.append(file)
        return missing

    def _copy(self, wanted: Sequence[pb.Resource], folder: Path) -> None:
        for one in wanted:
            target = folder / one.path
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copyfile(self._root / one.sha256, target)
            target.chmod(_MODE)

    def _make_room(self, in_use: Collection[str]) -> None:
        """Remove the least recently used files until the rest is small enough."""
        found = []
        with os.scandir(self._root) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    found.append((status.st_mtime_ns, status.st_size, entry.name))
        left = sum(size for _, size, _ in found)
        for _, size, name in sorted(found):
            if left <= self._most:
                return
            if _DIGEST.fullmatch(name) and name not in in_use:
                (self._root / name).unlink(missing_ok=True)
                left -= size
