"""The sign of life of the masters of one ZooKeeper tree, in the database that is bound to it.

``coordination/cluster/binding.py`` says what it is for. All masters read the beats; the one that
finds them unchanged since its last look raises them. So a cluster writes one beat every half
session timeout, however many masters it has.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from shoal.coordination.cluster.binding import BEAT, BindingStore
from shoal.core.errors import ShoalError
from shoal.core.runs.records import StoredBinding
from shoal.sql.errors import BoundElsewhere

log = structlog.get_logger()


class TreeLease:
    """Keeps the beats growing, and finds out when the database was bound to another tree."""

    def __init__(
        self,
        store: BindingStore,
        tree: Callable[[], str],
        compare: Callable[[], Awaitable[None]],
        session_timeout_s: float,
    ) -> None:
        """``tree`` returns the id of the tree that this master works in.

        ``compare`` is called at every look: it compares the epochs of this master's partitions with
        those in the database.
        """
        self._store, self._tree, self._compare = store, tree, compare
        self._interval_s = BEAT * session_timeout_s
        self._look = asyncio.Event()
        self._last: StoredBinding | None = None

    def look(self) -> None:
        """Compare the binding soon: the database refuses what this master owns in ZooKeeper."""
        self._look.set()

    async def run(self) -> None:
        """Run for ever. Raises BoundElsewhere, which ends the master: others serve the database."""
        while True:
            self._look.clear()  # first: a refusal during the look makes another one due
            try:
                await self._beat()
                await self._compare()
            except ShoalError as error:
                if not error.retriable:
                    raise
                log.debug("beat not stored", error=str(error))  # the database's health says so
            try:
                async with asyncio.timeout(self._interval_s):
                    await self._look.wait()
            except TimeoutError:
                pass

    async def _beat(self) -> None:
        stored = await self._store.read()
        if stored.tree != (tree := self._tree()):
            raise BoundElsewhere(stored.database, tree, stored.tree, stored.address)
        if self._last is not None and self._last.beats == stored.beats:
            await self._store.beat(tree)
        self._last = stored
