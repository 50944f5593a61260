"""Close a ZooKeeper tree to all clients that do not know its credential.

Nodes get their access list when they are made, and lists are not inherited: what an earlier version
made without one, and the root, which the server makes, are open until they are closed. To
delete a node is a right on its *parent*, so one open parent is enough to lose all below it.
"""

import asyncio

import structlog

from shoal.coordination.errors import NodeExists, NoNode
from shoal.coordination.session import wire
from shoal.coordination.session.session import ZkSession

log = structlog.get_logger()

MARK = "/.closed"  # made when all that was there had been closed
AT_ONCE = 1000  # requests in flight


async def close_tree(hosts: str, credential: str, administrator: str) -> None:
    """Give every node of the server at ``hosts`` to ``credential`` alone.

    ``administrator`` is a credential that the server lets do everything: a stranger may have taken
    nodes while the tree was open. Parents come before their children, so nothing can be added
    behind us. A tree that has been closed costs two requests. Raises CannotConnect.
    """
    acl = wire.Acl(credential)
    async with ZkSession(hosts, name="closing", credential=administrator) as session:
        await session.retry(lambda: _close(session, acl))


async def _close(session: ZkSession, acl: wire.Acl) -> None:
    try:
        if all(await asyncio.gather(session.is_closed("/", acl), session.is_closed(MARK, acl))):
            return
    except NoNode:
        pass  # it has never been closed, or its data are gone
    level, closed = ["/"], 0
    while level:
        below: list[str] = []
        for start in range(0, len(level), AT_ONCE):
            some = level[start : start + AT_ONCE]
            await _each(session, acl, some)
            lists = await asyncio.gather(*map(session.children, some), return_exceptions=True)
            for path, children in zip(some, lists, strict=True):
                if isinstance(children, NoNode):
                    continue
                if isinstance(children, BaseException):
                    raise children
                below += [f"{path.rstrip('/')}/{name}" for name in children.names]
        closed, level = closed + len(level), below
    try:
        await session.create(MARK)
    except NodeExists:
        log.debug("tree closed again", nodes=closed)
    await session.close_node(MARK, acl)
    log.info("tree closed to strangers", nodes=closed)


async def _each(session: ZkSession, acl: wire.Acl, paths: list[str]) -> None:
    """Close ``paths``; those that are gone are fine."""
    done = await asyncio.gather(
        *(session.close_node(path, acl) for path in paths), return_exceptions=True
    )
    for result in done:
        if isinstance(result, BaseException) and not isinstance(result, NoNode):
            raise result
