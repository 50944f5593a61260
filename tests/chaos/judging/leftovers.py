"""Finds what is left in ZooKeeper when nothing runs any more: queue entries and claims."""

import time
from collections.abc import Iterator

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from tests.chaos.judging.verdict import Kind, Offence

PATIENCE_S = 60.0  # claims go when the last results are committed, stale entries with a sweep
_CONNECT_S = 30.0
_LOOK_S = 0.5
# A queue entry is /queue/<group>/<bucket>/<bucket>/<entry>, a claim /claims/<bucket>/<claim>.
_TREES = (("/queue", 4, "queue entry"), ("/claims", 2, "claim"))


def judge(zookeeper: str, patience_s: float = PATIENCE_S) -> list[Offence]:
    """Return an offence for each entry and claim that is still there after ``patience_s``."""
    client = KazooClient(hosts=zookeeper)
    client.start(timeout=_CONNECT_S)
    try:
        deadline = time.monotonic() + patience_s
        while (left := list(_left(client))) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        return left
    finally:
        client.stop()
        client.close()


def _left(client: KazooClient) -> Iterator[Offence]:
    for root, depth, what in _TREES:
        for path in _below(client, root, depth):
            yield Offence(Kind.LEAKED, what, f"{path} is left although every instance has ended")


def _below(client: KazooClient, path: str, depth: int) -> Iterator[str]:
    """Yield the paths exactly ``depth`` levels below ``path``."""
    if depth == 0:
        yield path
        return
    try:
        names = sorted(client.get_children(path))
    except NoNodeError:  # a bucket that has just been removed
        return
    for name in names:
        yield from _below(client, f"{path}/{name}", depth - 1)
