"""Starting before ZooKeeper does: wait for it, and log that once."""

from collections.abc import Callable

import structlog

from shoal.coordination.errors import CannotConnect
from shoal.coordination.session.session import ZkSession

log = structlog.get_logger()


async def connect_when_there(make: Callable[[], ZkSession]) -> ZkSession:
    """Return a session that is entered, and the caller's to leave, as soon as a server gives one.

    ``make`` gives a new one for each try, which lasts as long as the session's connecting may.
    Every error but CannotConnect ends it. Cancel it to stop waiting.
    """
    waits = False
    while True:
        session = make()
        try:
            await session.__aenter__()
        except CannotConnect as error:
            if not waits:
                log.warning(
                    "waiting for ZooKeeper; this process goes on as soon as it answers: start it, "
                    "or check the setting `zookeeper`",
                    zookeeper=error.hosts,
                    error=str(error),
                )
            waits = True
        else:
            if waits:
                log.info("ZooKeeper answers")
            return session
