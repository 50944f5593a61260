"""A topic as a whole: how many partitions it has, what waits, what could not be delivered."""

import asyncio
import json
import re
from dataclasses import dataclass

from shoal.coordination import znodes
from shoal.coordination.errors import Mismatch, NodeExists, NoNode
from shoal.coordination.messages.message import Message, decode
from shoal.coordination.messages.paths import PartitionPaths
from shoal.coordination.session.documents import read_json
from shoal.coordination.session.nodes import Node
from shoal.coordination.session.session import ZkSession

VERSION = 1
DEFAULT_PARTITIONS = 128
MOST_PARTITIONS = 1000  # three digits
_NAME = re.compile(r"[0-9]{3}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was delivered too often without being acknowledged."""

    message: Message
    partition: int
    number: int


async def open_topic(session: ZkSession, topic: str, partitions: int = DEFAULT_PARTITIONS) -> int:
    """Create the topic if it is new; return its number of partitions, which never changes.

    Raises ValueError, Mismatch.
    """
    if not 1 <= partitions <= MOST_PARTITIONS:
        raise ValueError(f"partitions must be 1 to {MOST_PARTITIONS}, not {partitions}")
    path = znodes.messages(topic)
    config = json.dumps({"version": VERSION, "partitions": partitions}).encode()

    async def create_or_read() -> bytes:
        try:
            await session.create(path, config, makepath=True)
        except NodeExists:
            return (await session.get(path)).data
        return config

    found = await session.retry(create_or_read)
    try:
        fields = read_json(found)
        version, count = fields["version"], int(fields["partitions"])
        if not 1 <= count <= MOST_PARTITIONS:
            raise ValueError(f"partitions is {count}")
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise Mismatch(
            f"znode {path} is not a topic's ({found[:80]!r}); choose another topic or chroot"
        ) from error
    if version != VERSION:
        raise Mismatch(
            f"topic {topic!r} has layout version {version}, this program needs {VERSION}; "
            "run the same version of Shoal everywhere"
        )
    return count


async def waiting(session: ZkSession, topic: str) -> int:
    """Return how many messages wait or are being worked on; 0 for a topic that does not exist."""
    every = [paths.waiting for paths in await _partitions(session, topic)]
    buckets = [
        f"{path}/{bucket}" for path, found in await _list(session, every) for bucket in found
    ]
    stats = await asyncio.gather(*(session.exists(bucket) for bucket in buckets))
    return sum(stat.children for stat in stats if stat)


async def dead_letters(session: ZkSession, topic: str) -> list[DeadLetter]:
    """Return what could not be delivered, by partition and number."""
    letters: list[DeadLetter] = []
    for paths in await _partitions(session, topic):
        ((_, buckets),) = await _list(session, [paths.dead])
        places = [f"{paths.dead}/{bucket}" for bucket in buckets]
        for place, children in await _list(session, places):
            names = [name for name in children if _NUMBER.fullmatch(name)]
            gets = [session.get(f"{place}/{name}") for name in names]
            nodes = await asyncio.gather(*gets, return_exceptions=True)
            for name, node in zip(names, nodes, strict=True):
                if isinstance(node, Node):
                    letters.append(DeadLetter(decode(node.data), paths.partition, int(name)))
                elif not isinstance(node, NoNode):
                    raise node
    return letters


async def _partitions(session: ZkSession, topic: str) -> list[PartitionPaths]:
    """Return those partitions that were ever used."""
    try:
        names = (await session.children(znodes.messages(topic))).names
    except NoNode:
        return []
    return [PartitionPaths(topic, int(name)) for name in sorted(names) if _NAME.fullmatch(name)]


async def _list(session: ZkSession, paths: list[str]) -> list[tuple[str, list[str]]]:
    """Return the sorted children of each of ``paths``; none if it is not there."""
    lists = await asyncio.gather(
        *(session.children(path) for path in paths), return_exceptions=True
    )
    found: list[tuple[str, list[str]]] = []
    for path, children in zip(paths, lists, strict=True):
        if isinstance(children, NoNode):
            found.append((path, []))
        elif isinstance(children, BaseException):
            raise children
        else:
            found.append((path, sorted(children.names)))
    return found
