"""How a role of Shoal gets its session: as the settings say, and as soon as ZooKeeper is there."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import structlog

from shoal.coordination.errors import CannotConnect
from shoal.coordination.session.security.tls import Tls
from shoal.coordination.session.session import ZkSession

log = structlog.get_logger()


class EnsembleSettings(Protocol):
    """The settings of a cluster that are about its ZooKeeper; ``conf/shoal.toml`` tells of them."""

    @property
    def zookeeper(self) -> str: ...
    @property
    def session_timeout_s(self) -> float: ...
    @property
    def zookeeper_credential(self) -> str: ...
    @property
    def zookeeper_max_request_bytes(self) -> int: ...
    @property
    def zookeeper_tls(self) -> bool: ...
    @property
    def zookeeper_tls_ca(self) -> Path | None: ...
    @property
    def zookeeper_tls_cert(self) -> Path | None: ...
    @property
    def zookeeper_tls_key(self) -> Path | None: ...


def session_of(settings: EnsembleSettings, name: str) -> ZkSession:
    """Return a session to enter; ``name`` is in what it logs."""
    files = settings.zookeeper_tls_ca, settings.zookeeper_tls_cert, settings.zookeeper_tls_key
    return ZkSession(
        settings.zookeeper,
        session_timeout_s=settings.session_timeout_s,
        name=name,
        credential=settings.zookeeper_credential,
        tls=Tls(*files) if settings.zookeeper_tls else None,
        max_request_bytes=settings.zookeeper_max_request_bytes,
    )


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
