"""Keep the cluster's tree whole.

``layout.prepare`` makes it when a process starts. It can go while processes run: an ensemble loses
its data, an operator deletes too much. So every process that works in the tree checks that it is
whole, and makes what is missing; all may do so at once. They restore the binding to the cluster's
database as well (``binding``), so a wiped tree is the same tree afterwards. A tree that was bound
to another cluster meanwhile is left alone.
"""

import asyncio
import re
from contextlib import suppress
from typing import Any, Self

import structlog

from shoal.coordination import background, quarantine
from shoal.coordination.cluster import layout
from shoal.coordination.errors import (
    BadVersion,
    BindingRefused,
    CoordinationError,
    Mismatch,
    NoNode,
)
from shoal.coordination.session.defaults import REREAD_S, RETRY_S
from shoal.coordination.session.nodes import Children, Node, SessionState, WatchEvent
from shoal.coordination.session.session import ZkSession

log = structlog.get_logger()

SETTLE_S = 0.1  # after something was missing: now there is something to watch
_PARTITION = re.compile(r"[0-9]{3}", re.ASCII)


class TreeKeeper:
    """Check and repair the tree for the life of the ``async with`` block.

    ``partitions`` is what ``prepare`` returned. ``binding`` is what the tree is bound to; None: the
    keeper learns it from /config. It checks at the beginning of every session, when /config
    changes, and every ``reread_s`` in any case: seven requests. What stands where only partitions
    or buckets of claims belong is quarantined. An error that no repetition helps, such as
    AccessDenied, ends it: ``bound`` and ``until_foreign`` raise it.
    """

    def __init__(
        self,
        session: ZkSession,
        partitions: int,
        binding: layout.Binding | None = None,
        *,
        reread_s: float = REREAD_S,
    ) -> None:
        self._session, self.partitions, self._reread_s = session, partitions, reread_s
        self.binding = binding  # as last read or written
        self._bound, self._foreign = asyncio.Event(), asyncio.Event()
        self._other: layout.Binding | None = None  # of another cluster
        if binding is not None:
            self._bound.set()
        self._recheck = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._unsubscribe = self._session.on_state(self._state_changed)
        self._task = background.keep_running(self._run, f"tree of {self._session.name}")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._unsubscribe()
        await background.stop(self._task)

    async def bound(self) -> layout.Binding:
        """Return the binding of the tree, as soon as it has one. Raises what ended the keeper."""
        await self._until(self._bound)
        assert self.binding is not None
        return self.binding

    @property
    def other(self) -> layout.Binding | None:
        """What the tree is bound to if that is another cluster than ours; None: it is not."""
        return self._other

    async def until_foreign(self) -> None:
        """Raise BindingRefused when the tree is bound to another cluster while we run.

        Raises what ended the keeper, too: the process can no longer work in the tree.
        """
        await self._until(self._foreign)
        assert self.binding is not None
        assert self._other is not None
        raise BindingRefused(
            f"ZooKeeper at {self._session.address} was bound to cluster {self._other.cluster} "
            f"while this process of cluster {self.binding.cluster} ran; it stops. If that was not "
            "meant, start one master of this cluster with --rebind"
        )

    async def _until(self, event: asyncio.Event) -> None:
        happening = asyncio.create_task(event.wait())
        ends = [happening] if self._task is None else [happening, self._task]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not event.is_set():
                await background.ended(self._task)
                await happening  # the block has been left
        finally:
            happening.cancel()

    def _state_changed(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            self._recheck.set()

    def _changed(self, _: WatchEvent) -> None:
        self._recheck.set()

    async def _run(self) -> None:
        pause_s = self._reread_s
        while True:
            try:
                async with asyncio.timeout(pause_s):
                    await self._recheck.wait()
            except TimeoutError:
                pass
            self._recheck.clear()
            await self._session.connected()
            pause_s = self._reread_s
            try:
                if await self.mend():
                    pause_s = SETTLE_S
            except CoordinationError as error:
                if error.is_final:
                    raise
                log.warning("tree not checked", error=str(error))
                pause_s = RETRY_S

    async def mend(self) -> bool:
        """Check once, and make what is missing. Returns whether anything was."""
        session = self._session
        tops = (layout.MASTERS, layout.WORKERS, layout.QUEUE)
        config, partitions, claims, *others = await _answers(
            session.get(layout.CONFIG, watch=self._changed),
            session.children(layout.PARTITIONS),
            session.children(layout.CLAIMS),
            *(session.exists(path) for path in tops),
        )
        said = _read(config.data) if isinstance(config, Node) else None
        if said is not None and not self._agrees(said.binding):
            return False
        if not (
            isinstance(config, Node)
            and isinstance(partitions, Children)
            and isinstance(claims, Children)
            and all(others)
            and layout.partition_names(self.partitions) <= set(partitions.names)
            and layout.claim_names() <= set(claims.names)
        ):
            log.warning("tree is not whole; making what is missing")
            await session.ensure("/")
            await layout.make(session, self.partitions, self.binding)
            return True
        wanted = layout.config(self.partitions, self.binding)
        if said is None or said.partitions != self.partitions:
            problem = f"the cluster has {self.partitions} partitions, and this does not say so"
            await quarantine.isolate(session, layout.CONFIG, config, problem, put=wanted)
        elif said.binding != self.binding:  # as an earlier version makes it
            with suppress(BadVersion, NoNode):
                await session.set(layout.CONFIG, wanted, version=config.stat.version)
        await self._remove_foreign(layout.PARTITIONS, partitions.names, _is_partition)
        await self._remove_foreign(layout.CLAIMS, claims.names, layout.claim_names().__contains__)
        return False

    def _agrees(self, binding: layout.Binding | None) -> bool:
        """Take a new binding over; return False if it is that of another cluster."""
        if binding is None or binding == self.binding:
            pass
        elif self.binding is not None and binding.cluster != self.binding.cluster:
            if self._other is None:
                log.error("the tree is bound to another cluster now", cluster=binding.cluster)
            self._other = binding
            self._foreign.set()
            return False
        else:
            # The tree was bound anew. Whether the database agrees, who has one finds out.
            self.binding = binding
            self._bound.set()
        self._other = None
        self._foreign.clear()
        return True

    async def _remove_foreign(self, parent: str, names: list[str], belongs: Any) -> None:
        for name in names:
            if not belongs(name):
                await quarantine.isolate_name(
                    self._session, f"{parent}/{name}", f"nothing of this name belongs to {parent}"
                )


def _read(config: bytes) -> layout.Config | None:
    try:
        return layout.read_config(config)
    except Mismatch:  # other members run, so the tree is of their version
        return None


def _is_partition(name: str) -> bool:
    return _PARTITION.fullmatch(name) is not None


async def _answers(*sent: "asyncio.Future[Any]") -> list[Any]:
    """Return the answers; None for a node that is not there."""
    answers = []
    for answer in await asyncio.gather(*sent, return_exceptions=True):
        if isinstance(answer, BaseException) and not isinstance(answer, NoNode):
            raise answer
        answers.append(None if isinstance(answer, NoNode) else answer)
    return answers
