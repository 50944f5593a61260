"""Fences: let ZooKeeper itself refuse the transactions of a former owner.

A fence is a znode whose data is the epoch of the last owner that raised it. Raising it gives the
node a new version, so a transaction that carries a ``Check`` of an older version fails as a whole,
however late it arrives.
"""

from contextlib import suppress

from shoal.coordination import quarantine
from shoal.coordination.errors import BadVersion, NodeExists, NoNode, StaleEpoch
from shoal.coordination.session.nodes import Check
from shoal.coordination.session.session import ZkSession

_DIGITS = 19  # of a number of 64 bits


async def raise_fence(session: ZkSession, path: str, epoch: int) -> Check:
    """Shut out all owners with an epoch below ``epoch``; return what our transactions carry.

    To be called by a new owner before it reads what its predecessor may still have been writing.
    ``session.multi([check, …])`` works until a newer owner raises the fence; from then on it
    raises TransactionFailed, and the first result is a BadVersion. Raises StaleEpoch if an
    owner with a newer epoch has raised it already.
    """
    return await session.retry(lambda: _raise(session, path, epoch))


async def _raise(session: ZkSession, path: str, epoch: int) -> Check:
    data = str(epoch).encode()
    while True:
        try:
            node = await session.get(path)
        except NoNode:
            with suppress(NodeExists):
                await session.create(path, data, makepath=True)
            continue  # read it: perhaps another owner's is there
        stored = int(node.data) if node.data.isdigit() and len(node.data) <= _DIGITS else None
        if stored is None:  # the owner that raised it is shut out by the new version all the same
            await quarantine.isolate(session, path, node, "no epoch of a fence", put=data)
            continue
        if stored == epoch:  # ours: perhaps the answer to an earlier try was lost
            return Check(path, node.stat.version)
        if stored > epoch:
            raise StaleEpoch(path, epoch, stored)
        with suppress(BadVersion, NoNode):
            stat = await session.set(path, data, version=node.stat.version)
            return Check(path, stat.version)
