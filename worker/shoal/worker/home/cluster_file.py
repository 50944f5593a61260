"""Which cluster a worker's folder belongs to.

A worker has no database to compare ZooKeeper's tree with. What it has is its folder: results that
no master has taken yet, and logs, all by ids of one cluster's database. Reported to another cluster
they would end whatever has the same ids there. So the folder keeps the uid of the cluster whose
tree the worker first joined, and in the tree of another cluster the worker does not start. The
masters there have compared the tree with their database (``coordination/cluster/binding.py``), so
worker, masters and database are of one cluster if this holds.

A tree that is bound to no cluster yet has no masters that could bind it, or those of an earlier
version. A worker whose folder belongs to a cluster waits until it is bound; any other one starts,
and writes the uid as soon as the tree has one.
"""

import asyncio
import os
from pathlib import Path

import structlog

from shoal.coordination import TreeKeeper, ZkSession, prepare
from shoal.coordination.cluster import layout
from shoal.coordination.errors import BindingRefused
from shoal.worker.home.spool import Spool

log = structlog.get_logger()

_LONGEST = 200  # characters of a uid that are shown


class ClusterFile:
    """The uid of the cluster that a worker's folder belongs to, in a file there. Blocks."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> str | None:
        """Return the uid; None: the folder belongs to no cluster yet. Raises OSError."""
        try:
            return self.path.read_text("utf-8", "replace").strip()[:_LONGEST] or None
        except FileNotFoundError:
            return None

    def write(self, uid: str) -> None:
        """Store the uid durably. Raises OSError."""
        part = self.path.with_suffix(".part")
        with part.open("w", encoding="utf-8") as file:
            file.write(uid + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path)


async def join_tree(
    session: ZkSession, file: ClusterFile, spool: Spool, partitions: int, *, rebind: bool
) -> TreeKeeper:
    """Prepare the session's tree if it is that of the folder's cluster; return its keeper.

    ``partitions`` is used for a new tree. ``rebind``: if it is another cluster's, the folder
    belongs to that one from now on, and results that are left of the former are discarded. Raises
    BindingRefused.
    """
    known = await asyncio.to_thread(file.read)
    config = await session.retry(lambda: layout.find_config(session))
    found = None if config is None else config.binding
    if found is not None and known != found.cluster:
        if known is not None:
            if not rebind:
                raise _refusal(session, file, known, found)
            await _discard(spool)
        await asyncio.to_thread(file.write, found.cluster)
    count = await prepare(session, partitions)
    return TreeKeeper(session, count, found)


async def follow_tree(
    session: ZkSession, file: ClusterFile, keeper: TreeKeeper, belongs: asyncio.Event
) -> None:
    """Set ``belongs`` when the worker may begin, and go on to watch the tree. Runs for ever.

    ``keeper`` is at work. Raises BindingRefused when the tree turns out to be another cluster's.
    """
    known = await asyncio.to_thread(file.read)
    if keeper.binding is None:
        log.warning(
            "ZooKeeper's tree is bound to no cluster yet, so there are no tasks: start a master, "
            "or check the setting `zookeeper` (hosts and path)",
            zookeeper=session.address,
            cluster=known,
        )
    if known is None:
        belongs.set()
    binding = await keeper.bound()
    if known is None:
        await asyncio.to_thread(file.write, binding.cluster)
    elif known != binding.cluster:
        raise _refusal(session, file, known, binding)
    belongs.set()
    await keeper.until_foreign()


async def _discard(spool: Spool) -> None:
    left = await asyncio.to_thread(spool.pending)
    for entry in left:
        await asyncio.to_thread(spool.remove, entry.id)
    if left:
        log.warning("results of another cluster discarded", results=len(left))


def _refusal(
    session: ZkSession, file: ClusterFile, known: str, found: layout.Binding
) -> BindingRefused:
    return BindingRefused(
        f"ZooKeeper at {session.address} belongs to cluster {found.cluster} (tree {found.tree}), "
        f"but the folder {file.path.parent} of this worker holds logs and results of cluster "
        f"{known}. Nothing was started. Check the setting `zookeeper` (hosts and path). If this "
        "worker is to serve the other cluster, give it another data folder"
    )
