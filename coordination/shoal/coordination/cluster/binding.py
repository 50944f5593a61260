"""The binding between a cluster's database and its tree in ZooKeeper.

Ownership of partitions is decided by znodes and fenced by epochs in the database. Both hold only
while one database is served from one tree. A master that is given the database and another path of
ZooKeeper would own every partition there and raise every epoch, and the real masters would be
fenced for ever, although their znodes stand. So database and tree name each other:

- The tree's /config holds a random id of the tree and the uid of the cluster: a ``Binding``.
- The database holds the id of the tree, the address at which it was bound, and a number, the beats,
  that masters in that tree keep raising (``master/membership/tree_lease.py``).

Every role that has both calls ``bind_tree`` before anything else. ``judge`` compares:

=============  =====================================================================================
``BOUND``      both name each other: start
``FREE``       the database is bound to no tree yet (a new cluster, or one of an earlier version):
               bind it to this tree
``FOREIGN``    the tree names another cluster: refuse
``ELSEWHERE``  the database names another tree, which was bound under another path: refuse
``WAIT``       the database names another tree, bound under the path of this one. Either that tree
               was wiped, or its masters live on other servers, or another process is just binding.
               Wait for ``SILENCE`` session timeouts. If the tree is restored or bound meanwhile it
               is ``BOUND``. If beats have come, refuse. If none has, bind.
=============  =====================================================================================

Why the path and the beats, and not the beats alone: masters may be stopped for maintenance while
workers go on with their tasks in the old tree. A master started with a misspelt path at that moment
would find no claims and start those tasks a second time. A wiped tree has the path that it had.

Binding writes the database first, by a compare-and-set on what was read, and the tree second, by a
create or a versioned set. The database decides between two trees. What can fail:

- *The process dies between the two writes, or an answer is lost.* The database names a tree that
  does not exist. The same process, whose id for a new tree is the same in every try, recognises
  it and goes on; any other one waits as above and binds anew.
- *Two processes bind at once.* One compare-and-set fails. The loser finds the winner's tree, or
  waits for it.
- *The tree is wiped under running roles.* Their ``TreeKeeper`` restores /config with the binding
  that they know, so the tree keeps its id and the database needs no change.
- *A process is paused between reading and writing.* The writes are conditional, and it judges
  again. A master that binds nothing but was paused since it was bound is refused when it takes a
  partition: the transaction that raises an epoch requires the binding (``HeldRuns.take``).
- *A process of an earlier version* knows no binding. It keeps the fields of /config that it does
  not know, and if it makes /config anew after a wipe, keepers of this version add them.

``rebind`` is for people who know better: the cluster has moved to another path or other servers,
or the tree of a cluster that is no more is to serve this database. It overrides every refusal,
except that masters of another cluster must not be registered in the tree. Masters that still work
in the tree that the database was bound to stop by themselves at their next beat.

The worker has no database. It reads the binding from the tree, and its home remembers the cluster
that it works for (``worker/home/cluster_file.py``), to which its unreported results belong.
"""

import asyncio
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import structlog

from shoal.coordination.cluster import layout
from shoal.coordination.cluster.layout import Binding
from shoal.coordination.errors import BadVersion, BindingRefused, NoNode
from shoal.coordination.session.session import ZkSession
from shoal.core.errors import ShoalError
from shoal.core.runs.records import StoredBinding

log = structlog.get_logger()

# In parts of the session timeout:
BEAT = 0.5  # between two beats of a tree's masters
SILENCE = 2.0  # without a beat for so long, a tree has no masters
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0  # between two looks at what another process does
_BINDING_S = 1.0  # that another process may take to bind both, without a word
_REBIND = (
    "start one master (or `shoal up`) with --rebind after you have stopped all other processes of "
    "the cluster"
)


class BindingVerdict(StrEnum):
    """What a database and a tree have to do with each other; see above."""

    BOUND = "bound"
    FREE = "free"
    FOREIGN = "foreign"
    ELSEWHERE = "elsewhere"
    WAIT = "wait"


class BindingStore(Protocol):
    """The database's side. All calls raise retriable ShoalErrors while it is away."""

    async def read(self) -> StoredBinding:
        """Return the present binding."""

    async def bind(
        self, tree: str, address: str, seen: StoredBinding, *, even_if_alive: bool
    ) -> bool:
        """Bind to ``tree`` unless it was bound anew since ``seen``; return whether it was.

        A beat since ``seen`` prevents it too, except ``even_if_alive``.
        """

    async def beat(self, tree: str) -> None:
        """Raise the beats if the database is bound to ``tree``."""


@dataclass(frozen=True)
class BoundTree:
    """A whole tree that is bound to the database. ``partitions``: how many the cluster has."""

    partitions: int
    binding: Binding


def judge(found: Binding | None, stored: StoredBinding, path: str) -> BindingVerdict:
    """Compare the binding in a tree (None: it has none) with that of the database.

    ``path`` is the tree's chroot, "/" for none.
    """
    if found is not None and found.cluster != stored.cluster:
        return BindingVerdict.FOREIGN
    if stored.tree is None:
        return BindingVerdict.FREE
    if found is not None and found.tree == stored.tree:
        return BindingVerdict.BOUND
    return BindingVerdict.WAIT if path == path_of(stored.address) else BindingVerdict.ELSEWHERE


def path_of(address: str) -> str:
    """Return the path of an address, host:port,host:port/path: "/" if there is none."""
    return "/" + address.partition("/")[2].strip("/")


async def bind_tree(
    session: ZkSession, partitions: int, store: BindingStore, *, rebind: bool = False
) -> BoundTree:
    """Bind the session's tree and the database to each other; create what the tree lacks.

    ``partitions`` is used for a tree that is new. Nothing is written before it is certain that the
    two belong together. It waits while the database or ZooKeeper is away, and for two session
    timeouts if a bound tree seems to have been wiped. Raises BindingRefused; Mismatch if the tree
    belongs to another version or is not Shoal's.
    """
    return await _TreeBinder(session, partitions, store, rebind).run()


class _TreeBinder:
    def __init__(
        self, session: ZkSession, partitions: int, store: BindingStore, rebind: bool
    ) -> None:
        self._session, self._partitions, self._store = session, partitions, store
        self._rebind = rebind
        self._new_tree = str(uuid.uuid4())  # the same in every try: so our own work is recognised
        self._silence_s = SILENCE * session.timeout_s
        self._watched: StoredBinding | None = None  # as it was when waiting began
        self._until_s = self._warn_s = 0.0  # monotonic

    async def run(self) -> BoundTree:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                bound = await self._try()
            except ShoalError as error:
                if not error.retriable:
                    raise
                log.warning("tree and database not compared; trying again", error=str(error))
                pause_s = _LONGEST_PAUSE_S
                bound = None
            if bound is not None:
                return bound
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _try(self) -> BoundTree | None:
        """Take one step. Returns None if another one has to follow."""
        # The tree first: what is bound between the two reads is then seen as waiting.
        config = await self._session.retry(lambda: layout.find_config(self._session))
        found = None if config is None else config.binding
        stored = await self._store.read()
        verdict = judge(found, stored, self._session.path)
        if verdict is BindingVerdict.BOUND:
            assert found is not None
            count = await layout.prepare(self._session, self._partitions, found)
            return BoundTree(count, found)
        ours = Binding(stored.tree or "", stored.cluster)
        if ours.tree == self._new_tree:  # what an earlier step has stored in the database
            await self._write(config, ours)
            return None
        seen = await self._allowed(verdict, found, stored)
        if seen is None:
            return None
        keeps = found is not None and found.cluster == stored.cluster
        tree = found.tree if found is not None and keeps else self._new_tree
        address, force = self._session.address, self._rebind
        if await self._store.bind(tree, address, seen, even_if_alive=force):
            log.info(
                "database bound to its tree in ZooKeeper",
                cluster=stored.cluster,
                tree=tree,
                zookeeper=address,
                was=stored.tree,
            )
        return None

    async def _allowed(
        self, verdict: BindingVerdict, found: Binding | None, stored: StoredBinding
    ) -> StoredBinding | None:
        """Return what the database may be bound anew from; None: not yet. Raises BindingRefused."""
        is_ours_already = stored.tree is not None and stored.address == self._session.address
        if verdict is not BindingVerdict.WAIT and not (self._rebind and is_ours_already):
            if verdict is BindingVerdict.FREE:
                return stored
            if not self._rebind:
                raise self._refusal(verdict, found, stored)
            if verdict is BindingVerdict.FOREIGN:
                await self._require_no_masters(found, stored)
            return stored
        # Another process may be binding them at this moment, or members restore a wiped tree.
        now_s = time.monotonic()
        if self._watched is None or self._watched.tree != stored.tree:
            self._watched, self._until_s = stored, now_s + self._silence_s
            self._warn_s = now_s + _BINDING_S
        if now_s >= self._warn_s:
            self._warn_s = float("inf")
            log.warning(
                "the database is bound to a tree that is not here; waiting for signs of life",
                zookeeper=self._session.address,
                tree=stored.tree,
                bound_at=stored.address,
                wait_s=self._silence_s,
            )
        if now_s < self._until_s:
            return None
        if self._rebind:
            if verdict is BindingVerdict.FOREIGN:
                await self._require_no_masters(found, stored)
            return stored
        if stored.beats != self._watched.beats:
            raise self._refusal(verdict, found, stored)
        return self._watched

    async def _write(self, config: layout.Config | None, binding: Binding) -> None:
        """Write the binding into the tree, unless another process was faster."""

        async def write() -> None:
            if config is None:
                await layout.make(self._session, self._partitions, binding)
            else:
                data = layout.config(config.partitions, binding)
                await self._session.set(layout.CONFIG, data, version=config.version)

        # Then it is judged again: the answer to our own write may have been lost.
        with suppress(BadVersion, NoNode):
            await self._session.retry(write)

    async def _require_no_masters(self, found: Binding | None, stored: StoredBinding) -> None:
        """Masters of another cluster would go on in this tree beside ours."""
        try:
            masters = (await self._session.children(layout.MASTERS)).names
        except NoNode:
            return
        if masters:
            raise BindingRefused(
                f"cannot re-bind ZooKeeper at {self._session.address} to cluster {stored.cluster}: "
                f"{len(masters)} masters of cluster {found.cluster if found else '(unknown)'} are "
                f"registered there ({', '.join(sorted(masters)[:3])}); stop them first, or use "
                "another path in the setting `zookeeper`"
            )

    def _refusal(
        self, verdict: BindingVerdict, found: Binding | None, stored: StoredBinding
    ) -> BindingRefused:
        here = "no cluster yet" if found is None else f"cluster {found.cluster} (tree {found.tree})"
        sides = (
            f"ZooKeeper at {self._session.address} belongs to {here}; the database "
            f"{stored.database} belongs to cluster {stored.cluster}"
        )
        if verdict is BindingVerdict.FOREIGN:
            return BindingRefused(
                f"{sides}. Nothing was started. Check the settings `zookeeper` (with its path) "
                "and `database_url`: one of them is another cluster's. If this tree is to serve "
                f"this database from now on: {_REBIND}"
            )
        alive = " and masters there are at work" if verdict is BindingVerdict.WAIT else ""
        return BindingRefused(
            f"{sides}, which is bound to tree {stored.tree} at {stored.address}{alive}. Nothing "
            "was started. Check the setting `zookeeper` (hosts and path) of this process. If the "
            f"cluster has moved here: {_REBIND}"
        )
