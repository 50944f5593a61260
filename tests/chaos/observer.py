"""What the suite sees of the cluster, past all proxies: members, owners, rows."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

import psycopg

from shoal.coordination import NoNode, ZkSession, znodes
from shoal.coordination.cluster import layout
from shoal.coordination.errors import CoordinationError
from shoal.coordination.session.nodes import Node
from tests.chaos.cluster.queries import ERRORS, fetch, is_sqlite

T = TypeVar("T")

LOOK_S = 0.1
_ANSWER_S = 20.0  # a look that takes longer has failed


class NotVisible(Exception):
    """The cluster cannot be looked at now: ZooKeeper or the database does not answer."""


@dataclass(frozen=True)
class Member:
    """A registered master or worker."""

    id: str
    pid: int
    session: int


@dataclass(frozen=True)
class View:
    """One look. ``members`` by pid; ``owners`` and ``rows`` by partition."""

    members: Mapping[int, Member] = field(default_factory=dict)
    # Of the owner's znode: id, session, epoch.
    owners: Mapping[int, tuple[str, int, int]] = field(default_factory=dict)
    rows: Mapping[int, tuple[str | None, int]] = field(default_factory=dict)  # owner, epoch
    lost: int = 0  # attempts LOST so far
    events: int = 0  # newest event

    def whole(self, masters: Collection[int], workers: Collection[int]) -> str:
        """Return what is missing until these processes make a whole cluster, "" if nothing."""
        if set(self.members) != {*masters, *workers}:
            return f"members {sorted(self.members)}, not {sorted({*masters, *workers})}"
        sessions = {self.members[pid].id: self.members[pid].session for pid in masters}
        owned = [n for n, (owner, of, _) in self.owners.items() if sessions.get(owner) == of]
        if len(owned) < len(self.rows):
            return f"{len(self.rows) - len(owned)} partitions have no live owner"
        # Of a tree that was lost the stored epochs are higher than any in the new one.
        taken = [
            n
            for n in owned
            if self.rows[n][0] == self.owners[n][0] and self.rows[n][1] >= self.owners[n][2]
        ]
        if len(taken) < len(self.rows):
            return f"{len(self.rows) - len(taken)} partitions are not taken in the database"
        return ""


class Observer:
    """Looks at ZooKeeper and the database directly."""

    def __init__(self, zookeeper: str, database_url: str) -> None:
        self._session = ZkSession(zookeeper, session_timeout_s=30, name="observer")
        self._url = database_url
        self._connection: psycopg.AsyncConnection[Any] | None = None

    async def __aenter__(self) -> Self:
        await self._session.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.__aexit__(None, None, None)
        await self._disconnect()

    async def look(self) -> View:
        """Look at everything. Raises NotVisible."""
        rows = await self.rows()
        counts = await self._query(
            "SELECT (SELECT count(*) FROM task_instance WHERE state = 'LOST'),"
            " (SELECT coalesce(max(id), 0) FROM event)"
        )
        members = {member.pid: member for member in await self._ask(self._members)}
        owners = await self._ask(lambda: self._owners(rows))
        return View(members, owners, rows, *counts[0])

    async def rows(self) -> dict[int, tuple[str | None, int]]:
        """Return owner and epoch of each partition in the database. Raises NotVisible."""
        found = await self._query("SELECT number, owner, epoch FROM partition")
        return {number: (owner, epoch) for number, owner, epoch in found}

    async def running_on(self, worker: str) -> list[int]:
        """Return the instances, nested ones left out, that run on a worker. Raises NotVisible."""
        found = await self._query(
            "SELECT DISTINCT i.id, t.worker FROM task_instance t"
            " JOIN workflow_instance i ON i.id = t.workflow_instance_id"
            " WHERE t.state = 'RUNNING' AND t.worker IS NOT NULL"
            " AND i.state = 'RUNNING' AND i.parent IS NULL AND i.backfill_id IS NULL ORDER BY i.id"
        )
        return [number for number, of in found if worker in of]

    async def writes(self) -> float:
        """Return how many seconds it takes until ZooKeeper takes a write."""
        begun = time.monotonic()
        await self._session.retry(lambda: self._session.set(layout.CONFIG + "-suite", b""))
        return time.monotonic() - begun

    async def stamped(self) -> float:
        """Return the leader's time of a write, in seconds since 1970. Raises NotVisible."""
        path = layout.CONFIG + "-suite"

        async def written() -> float:
            await self._session.set(path, b"")
            return (await self._session.get(path)).stat.mtime_ms / 1000

        return await self._ask(written)

    async def prepare(self) -> None:
        """Make the znode that ``writes`` writes."""
        with suppress(CoordinationError):
            await self._session.create(layout.CONFIG + "-suite", b"")

    async def writes_again(self) -> None:
        """Return when ZooKeeper takes writes, although it may have lost everything."""
        await self._session.retry(lambda: self._session.ensure(layout.CONFIG + "-suite"))

    async def below(self, folders: Collection[str]) -> list[str]:
        """Return the znodes in some folders. Raises NotVisible."""

        async def listed() -> list[str]:
            found = []
            for folder in folders:
                with suppress(NoNode):
                    names = (await self._session.children(folder)).names
                    found += [f"{folder}/{name}" for name in sorted(names)]
            return found

        return await self._ask(listed)

    async def held_by(self, session: int, folders: Collection[str]) -> list[str]:
        """Return the ephemeral znodes of a session in some folders. Raises NotVisible."""
        paths = await self.below(folders)

        async def held() -> list[str]:
            found = []
            for path in paths:
                with suppress(NoNode):
                    if (await self._session.get(path)).stat.session_id == session:
                        found.append(path)
            return found

        return await self._ask(held)

    async def delete(self, paths: Collection[str]) -> int:
        """Delete znodes; return how many were there. Raises NotVisible."""
        return await self._each(paths, lambda path: self._session.delete(path))

    async def overwrite(self, contents: Mapping[str, bytes]) -> int:
        """Replace what stands in znodes; return how many were there. Raises NotVisible."""
        return await self._each(contents, lambda path: self._session.set(path, contents[path]))

    async def _each(self, paths: Collection[str], do: Callable[[str], Awaitable[object]]) -> int:
        async def done() -> int:
            count = 0
            for path in paths:
                with suppress(NoNode):
                    await do(path)
                    count += 1
            return count

        return await self._ask(done)

    async def masters(self) -> list[Member]:
        """Return the registered masters. Raises NotVisible."""
        return await self._ask(lambda: self._registered(layout.MASTERS))

    async def members(self) -> list[Member]:
        """Return all registered members. Raises NotVisible."""
        return await self._ask(self._members)

    async def pids(self) -> set[int]:
        """Return the processes of all registered members. Raises NotVisible."""
        return {member.pid for member in await self._ask(self._members)}

    async def _ask(self, question: Callable[[], Awaitable[T]]) -> T:
        async def asked() -> T:
            await self._session.sync("/")
            return await question()

        try:
            async with asyncio.timeout(_ANSWER_S):
                return await self._session.retry(asked)  # a connection may just have ended
        except (CoordinationError, TimeoutError) as error:
            raise NotVisible(f"ZooKeeper: {error!r}") from error

    async def _members(self) -> list[Member]:
        masters = await self._registered(layout.MASTERS)
        return masters + await self._registered(layout.WORKERS)

    async def _registered(self, parent: str) -> list[Member]:
        try:
            names = (await self._session.children(parent)).names
        except NoNode:
            return []
        nodes = await asyncio.gather(
            *(self._session.get(f"{parent}/{name}") for name in names), return_exceptions=True
        )
        return [
            Member(znodes.decode_name(name), json.loads(node.data)["pid"], node.stat.session_id)
            for name, node in zip(names, _nodes(nodes), strict=True)
            if node is not None
        ]

    async def _owners(self, partitions: Collection[int]) -> dict[int, tuple[str, int, int]]:
        nodes = await asyncio.gather(
            *(self._session.get(layout.owner(number)) for number in partitions),
            return_exceptions=True,
        )
        return {
            number: (json.loads(node.data)["owner_id"], node.stat.session_id, node.stat.czxid)
            for number, node in zip(partitions, _nodes(nodes), strict=True)
            if node is not None
        }

    async def _query(self, statement: str) -> list[Any]:
        try:
            async with asyncio.timeout(_ANSWER_S):
                if is_sqlite(self._url):
                    return await fetch(self._url, statement)
                if self._connection is None:
                    self._connection = await psycopg.AsyncConnection.connect(
                        self._url, autocommit=True, connect_timeout=3
                    )
                return await (await self._connection.execute(statement.encode())).fetchall()
        except (*ERRORS, TimeoutError) as error:
            await self._disconnect()
            raise NotVisible(f"database: {error!r}") from error

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


def _nodes(results: list[Node | BaseException]) -> list[Node | None]:
    """Return what was read; None for what is not there. Raises any other error."""
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, NoNode):
            raise result
    return [result if isinstance(result, Node) else None for result in results]
