"""The calls of a session, one method for each of ZooKeeper's operations."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, TypeVar

from shoal.coordination.errors import NodeExists, NoNode
from shoal.coordination.session import wire
from shoal.coordination.session.nodes import (
    Check,
    Children,
    Create,
    Created,
    Delete,
    Node,
    Operation,
    Outcome,
    SetData,
    WatchCallback,
)
from shoal.coordination.session.wire import Stat

T = TypeVar("T")


_TRIES = 5  # to create a path while others delete a part of it


class Proof(Enum):
    """What the answer to a request shows."""

    NOTHING = auto()  # a follower answers reads by itself
    OF_CONNECTION = auto()  # the leader has seen it, but may not have looked for the session
    OF_SESSION = auto()  # the leader has done it, and does so only for a session that it has


class Requests(ABC):
    """What can be asked of ZooKeeper, below a chroot. All calls may raise ConnectionLoss,
    SessionLost and AccessDenied besides what they name, and, without sending anything, TooLarge
    and MalformedRequest."""

    _chroot: str
    _acl: wire.Acl  # of what we create

    @abstractmethod
    def _request(
        self,
        verb: str,
        path: str,
        request: Any,
        convert: Callable[[Any], T],
        proves: Proof = Proof.NOTHING,
    ) -> asyncio.Future[T]:
        """Send ``request`` now; ``convert`` makes the answer ours, on the loop."""

    @abstractmethod
    def _watch(self, callback: WatchCallback | None) -> Any:
        """Return the watch that kazoo calls on its own thread."""

    def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequential: bool = False,
        makepath: bool = False,
    ) -> asyncio.Future[Created]:
        """Raises NodeExists, NoNode (the parent is missing, unless ``makepath``)."""
        if makepath:
            return asyncio.ensure_future(
                self._create_with_parents(path, data, ephemeral, sequential)
            )
        flags = wire.EPHEMERAL * ephemeral | wire.SEQUENTIAL * sequential
        request = wire.create(self._full(path), data, flags, self._acl)
        return self._request("create", path, request, self._created, Proof.OF_SESSION)

    def get(self, path: str, *, watch: WatchCallback | None = None) -> asyncio.Future[Node]:
        """``watch`` fires once, when the data changes or the node goes. Raises NoNode."""
        request = wire.get(self._full(path), self._watch(watch))
        return self._request("get", path, request, _node)

    def set(self, path: str, data: bytes, *, version: int = -1) -> asyncio.Future[Stat]:
        """Raises NoNode, BadVersion."""
        request = wire.set_data(self._full(path), data, version)
        return self._request("set", path, request, wire.stat_of, Proof.OF_SESSION)

    def exists(
        self, path: str, *, watch: WatchCallback | None = None
    ) -> asyncio.Future[Stat | None]:
        """``watch`` fires once, when the node comes, goes or changes its data."""
        request = wire.exists(self._full(path), self._watch(watch))
        return self._request("exists", path, request, _stat_or_none)

    def children(
        self, path: str, *, watch: WatchCallback | None = None
    ) -> asyncio.Future[Children]:
        """``watch`` fires once, when a child comes or goes. Raises NoNode."""
        request = wire.children(self._full(path), self._watch(watch))
        return self._request("children", path, request, _children)

    def ephemerals(self, path: str) -> asyncio.Future[list[str]]:
        """Return the paths of all ephemeral nodes of this session below ``path``, in no order."""
        request = wire.ephemerals(self._full(path))
        return self._request("ephemerals", path, request, self._below_chroot)

    async def delete(self, path: str, *, version: int = -1, missing_ok: bool = False) -> None:
        """Raises NoNode (unless ``missing_ok``), NotEmpty, BadVersion."""
        try:
            await self.submit_delete(path, version=version)
        except NoNode:
            if not missing_ok:
                raise

    def submit_delete(self, path: str, *, version: int = -1) -> asyncio.Future[None]:
        """``delete``, but sent at once, for many in a row."""
        request = wire.delete(self._full(path), version)
        return self._request("delete", path, request, _nothing, Proof.OF_SESSION)

    def multi(self, operations: Sequence[Operation]) -> asyncio.Future[list[Outcome]]:
        """Do all ``operations`` or none. Raises TransactionFailed with every result."""
        paths = [operation.path for operation in operations]

        def outcomes(results: Any) -> list[Outcome]:
            if failure := wire.translate_multi(results, paths):
                raise failure
            return [self._outcome(result) for result in results]

        request = wire.multi([self._wire_operation(operation) for operation in operations])
        path = paths[0] if paths else "/"
        return self._request("multi", path, request, outcomes, Proof.OF_SESSION)

    def sync(self, path: str = "/") -> asyncio.Future[None]:
        """Let later reads of this session see everything that was written before now."""
        return self._request(
            "sync", path, wire.sync(self._full(path)), _nothing, Proof.OF_CONNECTION
        )

    def is_closed(self, path: str, acl: wire.Acl) -> asyncio.Future[bool]:
        """Return whether ``acl`` alone says who may do what with the node. Raises NoNode."""
        request = wire.get_acl(self._full(path))
        return self._request("acl of", path, request, lambda a: list(a[0]) == list(acl.entries))

    def close_node(self, path: str, acl: wire.Acl) -> asyncio.Future[None]:
        """Let ``acl`` say who may do what with the node. Raises NoNode."""
        return self._request("close", path, wire.set_acl(self._full(path), acl), _nothing)

    async def ensure(self, path: str) -> None:
        """Create ``path`` and what is missing above it, all empty and persistent.

        A parent that exists may be closed to us, as in a shared ensemble. AccessDenied names the
        first node that is missing and may not be created.
        """
        if await self.exists(path):
            return
        full = self._full(path)
        ends = [index for index, char in enumerate(full) if char == "/" and index] + [len(full)]
        for is_last in (*[False] * (_TRIES - 1), True):
            creates = [
                self._request(
                    "create",
                    full[:end],
                    wire.create(full[:end], b"", wire.PERSISTENT, self._acl),
                    _nothing,
                )
                for end in ends
            ]
            errors = await asyncio.gather(*creates, return_exceptions=True)
            if errors[-1] is None or isinstance(errors[-1], NodeExists):
                return
            # Below what is refused, nodes have no parent. Above it, refused ones exist. If the last
            # one that has a parent exists, it was deleted meanwhile, and another try may succeed.
            last = next((e for e in reversed(errors) if not isinstance(e, NoNode)), None)
            if not (last is None or isinstance(last, NodeExists)):
                raise last
            if is_last:
                raise errors[-1]

    async def _create_with_parents(
        self, path: str, data: bytes, ephemeral: bool, sequential: bool
    ) -> Created:
        try:
            return await self.create(path, data, ephemeral=ephemeral, sequential=sequential)
        except NoNode:
            await self.ensure(path.rpartition("/")[0] or "/")
            return await self.create(path, data, ephemeral=ephemeral, sequential=sequential)

    def _full(self, path: str) -> str:
        if not path.startswith("/"):
            raise ValueError(f"a znode path starts with a slash, {path!r} does not")
        return (self._chroot + path).rstrip("/") or "/"

    def _below_chroot(self, answer: Any) -> list[str]:
        return [path[len(self._chroot) :] for path in answer]

    def _created(self, answer: Any) -> Created:
        path, stat = answer
        return Created(path[len(self._chroot) :], stat.czxid, stat.ephemeralOwner)

    def _outcome(self, result: Any) -> Outcome:
        if result is None:
            return None
        return self._created(result) if type(result) is tuple else wire.stat_of(result)

    def _wire_operation(self, operation: Operation) -> Any:
        path = self._full(operation.path)
        match operation:
            case Create(_, data, ephemeral):
                return wire.create(path, data, wire.EPHEMERAL * ephemeral, self._acl)
            case Delete(_, version):
                return wire.delete(path, version)
            case SetData(_, data, version):
                return wire.set_data(path, data, version)
            case Check(_, version):
                return wire.check(path, version)


def _node(answer: Any) -> Node:
    data, stat = answer
    return Node(data, wire.stat_of(stat))


def _stat_or_none(answer: Any) -> Stat | None:
    return None if answer is None else wire.stat_of(answer)


def _children(answer: Any) -> Children:
    names, stat = answer
    return Children(names, wire.stat_of(stat))


def _nothing(_: Any) -> None:
    return None
