"""Every path of Shoal's own tree in ZooKeeper, and its first preparation.

::

    /config                          {"version": 1, "partitions": 128, "tree": <id of this tree>,
                                     "cluster": <uid of the cluster>}; written last of all
    /masters/<id>, /workers/<id>     members (ephemeral, JSON)
    /partitions/<NNN>/owner          the master that owns the partition (ephemeral, JSON)
    /partitions/<NNN>/bell           its data is set to notify the owner
    /queue/<group>/…                 waiting tasks of a worker group: see queue/entry.py, put_log.py
    /claims/<xx>/<task instance id>  a worker runs this (ephemeral; data: the worker's id)
    /claimers/<group>/<session>      who claims from that queue (ephemeral, no data)
    /clock                           set to learn the ensemble's time; no data
    /watermark                       how far the database has come: see watermark.py

Beside them stand those of the library's parts, the masters' group among them: see
``znodes``. All paths are below the session's chroot.
"""

import asyncio
import json
import re
from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from shoal.coordination import quarantine, znodes
from shoal.coordination.errors import Mismatch, NodeExists, NoNode, TransactionFailed
from shoal.coordination.session.defaults import BATCH
from shoal.coordination.session.documents import read_object
from shoal.coordination.session.nodes import Create, Operation
from shoal.coordination.session.session import ZkSession

MASTERS_GROUP = "masters"  # the group in which masters share the partitions

CONFIG = "/config"
MASTERS = "/masters"
WORKERS = "/workers"
PARTITIONS = "/partitions"
QUEUE = "/queue"
CLAIMS = "/claims"
CLAIMERS = "/claimers"  # made when the first claimer comes
CLOCK = "/clock"  # made when it is first used
WATERMARK = "/watermark"  # made by the first master

LAYOUT_VERSION = 1
DEFAULT_PARTITIONS = 128
MOST_PARTITIONS = 1000  # three digits
CLAIM_BUCKETS = 256  # so 100,000 running tasks make lists of 400 names


_ID = re.compile(r"[0-9A-Za-z][\w.-]{0,99}", re.ASCII)  # of a tree or a cluster


@dataclass(frozen=True, slots=True)
class Binding:
    """The random id of a tree, and the uid of the cluster whose database it serves."""

    tree: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Config:
    """What /config says; ``version`` is the znode's, for a conditional write.

    ``binding`` is None while no process with a database has been in the tree.
    """

    partitions: int
    binding: Binding | None
    version: int = -1


def partition(number: int) -> str:
    return f"{PARTITIONS}/{number:03d}"


def owner(number: int) -> str:
    return f"{partition(number)}/owner"


def notification(number: int) -> str:
    return f"{partition(number)}/bell"


def queue(group: str) -> str:
    return f"{QUEUE}/{znodes.encode_name(group)}"


def claim_bucket(number: int) -> str:
    return f"{CLAIMS}/{number:02x}"


def claim(task_instance_id: int) -> str:
    return f"{claim_bucket(task_instance_id % CLAIM_BUCKETS)}/{task_instance_id}"


def claimers(group: str) -> str:
    return f"{CLAIMERS}/{znodes.encode_name(group)}"


async def prepare(
    session: ZkSession, partitions: int = DEFAULT_PARTITIONS, binding: Binding | None = None
) -> int:
    """Create what is missing of the tree; return the cluster's number of partitions.

    That number is fixed when the first member starts; later ``partitions`` are ignored. So is
    ``binding`` unless /config is missing. Safe to call from any number of members at once, and
    again after a lost connection. Raises Mismatch if the tree belongs to another version of the
    layout.
    """
    if not 1 <= partitions <= MOST_PARTITIONS:
        raise ValueError(f"partitions must be 1 to {MOST_PARTITIONS}, not {partitions}")
    return await session.retry(lambda: _prepare(session, partitions, binding))


async def _prepare(session: ZkSession, partitions: int, binding: Binding | None) -> int:
    found = await find_config(session)
    if found is not None and await session.exists(claim_bucket(CLAIM_BUCKETS - 1)):
        return found.partitions
    # Else the tree is new, or of an earlier version, which had fewer kinds of nodes.
    await make(session, found.partitions if found else partitions, binding)
    found = await find_config(session)
    assert found is not None
    return found.partitions


async def make(session: ZkSession, partitions: int, binding: Binding | None = None) -> None:
    """Create what is missing of the tree. Safe to call from any number of members at once."""
    tops: list[Operation] = [Create(path) for path in (MASTERS, WORKERS, PARTITIONS, QUEUE, CLAIMS)]
    below: list[Operation] = [
        Create(path)
        for number in range(partitions)
        for path in (partition(number), notification(number))
    ]
    below += [Create(claim_bucket(number)) for number in range(CLAIM_BUCKETS)]
    await _create_all(session, tops)
    await _create_all(session, below)
    # Last: a member that finds it finds the tree complete. It may be there: another member was
    # quicker, or the answer to our own create was lost.
    with suppress(NodeExists):
        await session.create(CONFIG, config(partitions, binding))


def config(partitions: int, binding: Binding | None = None) -> bytes:
    """Return the data of /config."""
    fields: dict[str, int | str] = {"version": LAYOUT_VERSION, "partitions": partitions}
    if binding is not None:
        fields |= {"tree": binding.tree, "cluster": binding.cluster}
    return json.dumps(fields).encode()


def read_config(data: bytes, version: int = -1) -> Config | None:
    """Return what ``data`` says, None if it is not Shoal's. Raises Mismatch.

    ``version`` is that of the znode. Ids that cannot be read count as missing.
    """
    fields = read_object(data) or {}
    layout_version, partitions = fields.get("version"), fields.get("partitions")
    if type(layout_version) is not int or type(partitions) is not int:
        return None
    if layout_version != LAYOUT_VERSION:
        raise Mismatch(
            f"the tree in ZooKeeper has layout version {layout_version}, this program needs "
            f"{LAYOUT_VERSION}; run the same version of Shoal on all machines. If the znode "
            f"{CONFIG} was damaged, set it to {config(DEFAULT_PARTITIONS).decode()}, with the "
            "number of partitions that the cluster has"
        )
    if not 1 <= partitions <= MOST_PARTITIONS:
        return None
    tree, cluster = fields.get("tree"), fields.get("cluster")
    are_ids = all(isinstance(one, str) and _ID.fullmatch(one) for one in (tree, cluster))
    return Config(partitions, Binding(str(tree), str(cluster)) if are_ids else None, version)


async def find_config(session: ZkSession) -> Config | None:
    """Return what the tree's /config says, None if there is no tree yet. Raises Mismatch."""
    try:
        node = await session.get(CONFIG)
    except NoNode:
        return None
    if found := read_config(node.data, node.stat.version):
        return found
    # Perhaps the tree is not Shoal's at all: then nothing of it may be touched.
    counted = await _count_partitions(session)
    if counted is None:
        raise Mismatch(
            f"znode {CONFIG} is not Shoal's ({node.data[:80]!r}); "
            "check the address and its chroot, which must be Shoal's own"
        )
    problem = f"not readable; there are {counted} partitions in the tree"
    await quarantine.isolate(session, CONFIG, node, problem, put=config(counted))
    return Config(counted, None, node.stat.version + 1)


async def _count_partitions(session: ZkSession) -> int | None:
    """Return how many partitions the tree was made for; None if it is not whole, or not ours."""
    try:
        names = set((await session.children(PARTITIONS)).names)
        claims = set((await session.children(CLAIMS)).names)
    except NoNode:
        return None
    count = len(names)
    whole = 1 <= count <= MOST_PARTITIONS and names == partition_names(count)
    return count if whole and claim_names() <= claims else None


def partition_names(partitions: int) -> Set[str]:
    return {f"{number:03d}" for number in range(partitions)}


@lru_cache
def claim_names() -> Set[str]:
    return frozenset(f"{number:02x}" for number in range(CLAIM_BUCKETS))


async def _create_all(session: ZkSession, creates: list[Operation]) -> None:
    """Create all, parents before children; those that exist already are fine."""
    batches = [creates[start : start + BATCH] for start in range(0, len(creates), BATCH)]
    sent = [session.multi(batch) for batch in batches]
    done = await asyncio.gather(*sent, return_exceptions=True)
    for batch, result in zip(batches, done, strict=True):
        if isinstance(result, TransactionFailed):  # some exist: create one by one
            ones = [session.create(operation.path) for operation in batch]
            for one in await asyncio.gather(*ones, return_exceptions=True):
                if isinstance(one, BaseException) and not isinstance(one, NodeExists):
                    raise one
        elif isinstance(result, BaseException):
            raise result
