"""Every path of Shoal's tree in ZooKeeper, and its first preparation.

::

    /config                          {"version": 1, "partitions": 128}; written last of all
    /masters/<id>, /workers/<id>     members (ephemeral, JSON)
    /partitions/<NNN>/owner          the master that owns the partition (ephemeral, JSON)
    /partitions/<NNN>/bell           its data is set when there is news for the owner
    /queue/<group>/…                 waiting tasks of a worker group: see queue/entry.py and news.py
    /groups/<name>                   a group: its state, one JSON document (see group/codec.py)
    /groups/<name>/members/<id>      a member's registration (ephemeral, JSON)
    /claims/<xx>/<task instance id>  a worker runs this (ephemeral; data: the worker's id)
    /claimers/<group>/<session>      who claims from that queue (ephemeral, no data)
    /elections/<name>/…              who leads: see election.py
    /jobs/<name>/…                   who has which job: see jobs.py
    /messages/<topic>/…              messages and their consumers: see messages/paths.py

All paths are below the session's chroot.
"""

import asyncio
import json
from functools import lru_cache
from urllib.parse import quote, unquote

from shoal.coordination.errors import Mismatch, NodeExists, NoNode, TransactionFailed
from shoal.coordination.nodes import Create, Operation
from shoal.coordination.session import ZkSession

CONFIG = "/config"
MASTERS = "/masters"
WORKERS = "/workers"
PARTITIONS = "/partitions"
QUEUE = "/queue"
CLAIMS = "/claims"
CLAIMERS = "/claimers"  # made when the first claimer comes
# Made when they are first used:
GROUPS = "/groups"
ELECTIONS = "/elections"
JOBS = "/jobs"
MESSAGES = "/messages"

LAYOUT_VERSION = 1
DEFAULT_PARTITIONS = 128
MOST_PARTITIONS = 1000  # three digits
CLAIM_BUCKETS = 256  # so 100,000 running tasks make lists of 400 names
BATCH = 250  # operations in one multi: some 20 kB, far from the server's limit of 1 MB


def member(parent: str, member_id: str) -> str:
    return f"{parent}/{encode_name(member_id)}"


def partition(number: int) -> str:
    return f"{PARTITIONS}/{number:03d}"


def owner(number: int) -> str:
    return f"{partition(number)}/owner"


def bell(number: int) -> str:
    return f"{partition(number)}/bell"


def queue(group: str) -> str:
    return f"{QUEUE}/{encode_name(group)}"


def claim_bucket(number: int) -> str:
    return f"{CLAIMS}/{number:02x}"


def claim(task_instance_id: int) -> str:
    return f"{claim_bucket(task_instance_id % CLAIM_BUCKETS)}/{task_instance_id}"


def claimers(group: str) -> str:
    return f"{CLAIMERS}/{encode_name(group)}"


def group(name: str) -> str:
    return f"{GROUPS}/{encode_name(name)}"


def group_members(name: str) -> str:
    return f"{group(name)}/members"


def election(name: str) -> str:
    return f"{ELECTIONS}/{encode_name(name)}"


def jobs(name: str) -> str:
    return f"{JOBS}/{encode_name(name)}"


def messages(topic: str) -> str:
    return f"{MESSAGES}/{encode_name(topic)}"


@lru_cache(maxsize=1000)  # the same few names stand in the paths of a million entries
def encode_name(name: str) -> str:
    """Return ``name`` as one path element: any text can name a group or a member."""
    if not name:
        raise ValueError("a name in ZooKeeper cannot be empty")
    if name.strip(".") == "":
        return name.replace(".", "%2E")  # "." and ".." are not allowed as elements
    return quote(name, safe=" ")


def decode_name(element: str) -> str:
    return unquote(element)


async def prepare(session: ZkSession, partitions: int = DEFAULT_PARTITIONS) -> int:
    """Create what is missing of the tree; return the cluster's number of partitions.

    That number is fixed when the first member starts; later ``partitions`` are ignored. Safe to
    call from any number of members at once, and again after a lost connection. Raises Mismatch
    if the tree belongs to another version of the layout.
    """
    if not 1 <= partitions <= MOST_PARTITIONS:
        raise ValueError(f"partitions must be 1 to {MOST_PARTITIONS}, not {partitions}")
    return await session.retry(lambda: _prepare(session, partitions))


async def _prepare(session: ZkSession, partitions: int) -> int:
    found = await _read_config(session)
    if found is not None:
        if await session.exists(claim_bucket(CLAIM_BUCKETS - 1)):
            return found
        partitions = found  # made by an earlier version, which had fewer kinds of nodes
    tops: list[Operation] = [Create(path) for path in (MASTERS, WORKERS, PARTITIONS, QUEUE, CLAIMS)]
    below: list[Operation] = [
        Create(path) for number in range(partitions) for path in (partition(number), bell(number))
    ]
    below += [Create(claim_bucket(number)) for number in range(CLAIM_BUCKETS)]
    await _create_all(session, tops)
    await _create_all(session, below)
    if found is not None:
        return found
    config = json.dumps({"version": LAYOUT_VERSION, "partitions": partitions})
    try:
        # Last: whoever finds it finds the tree complete.
        await session.create(CONFIG, config.encode())
    except NodeExists:  # another member was quicker, or the answer to our own create was lost
        found = await _read_config(session)
        assert found is not None
        return found
    return partitions


async def _read_config(session: ZkSession) -> int | None:
    try:
        data = (await session.get(CONFIG)).data
    except NoNode:
        return None
    try:
        config = json.loads(data)
        version, partitions = config["version"], config["partitions"]
    except (ValueError, KeyError, TypeError) as error:
        raise Mismatch(
            f"znode {CONFIG} is not Shoal's ({data[:80]!r}); "
            "check the address and its chroot, which must be Shoal's own"
        ) from error
    if version != LAYOUT_VERSION:
        raise Mismatch(
            f"the tree in ZooKeeper has layout version {version}, this program needs "
            f"{LAYOUT_VERSION}; run the same version of Shoal on all machines"
        )
    return int(partitions)


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
