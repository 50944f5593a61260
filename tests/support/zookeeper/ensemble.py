"""A real ensemble of three ZooKeeper servers that can be hurt one by one."""

import os
import random
import signal
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from shoal.client.errors import PortTaken, ServerFailed
from shoal.client.local.java import Java
from shoal.client.local.zookeeper import HOST, ZooKeeperServer, four_letter_word

START_TIMEOUT_S = 90.0


class EnsembleServer(ZooKeeperServer):
    """Server ``number`` (1 …) of an ensemble; ``peers`` are everybody's two internal ports."""

    def __init__(
        self, data_dir: Path, port: int, java: Java, number: int, peers: list[tuple[int, int]]
    ) -> None:
        super().__init__(data_dir, port, java, heap_mb=128)
        self.number, self._peers = number, peers
        (data_dir / "data").mkdir(parents=True, exist_ok=True)
        (data_dir / "data" / "myid").write_text(f"{number}\n", encoding="ascii")

    @property
    def is_leader(self) -> bool:
        return b"Mode: leader" in four_letter_word(HOST, self.port, "srvr")

    def kill(self) -> None:
        """kill -9; returns when it is dead."""
        if (pid := self.pid) is not None:
            os.kill(pid, signal.SIGKILL)
        self.stop()

    def _config(self) -> str:
        servers = "".join(
            f"server.{number}={HOST}:{quorum}:{election}\n"
            for number, (quorum, election) in enumerate(self._peers, start=1)
        )
        return super()._config() + "initLimit=20\nsyncLimit=10\n" + servers


class Ensemble:
    """Three servers on one machine; a context manager. Synchronous; start it on the main thread."""

    def __init__(self, folder: Path, java: Java, size: int = 3) -> None:
        ports = free_ports(3 * size)
        peers = list(zip(ports[size : 2 * size], ports[2 * size :], strict=True))
        self.servers = [
            EnsembleServer(folder / f"server {number}", port, java, number, peers)
            for number, port in enumerate(ports[:size], start=1)
        ]

    @property
    def address(self) -> str:
        return ",".join(server.address for server in self.servers)

    def __enter__(self) -> Self:
        try:
            self.repair()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for server in self.servers:
            server.kill()  # nobody needs the data any more

    def repair(self) -> None:
        """Start dead servers; return when all serve."""
        self.start()
        self.wait_ready()

    def start(self) -> None:
        """Start dead servers."""
        for server in self.servers:
            server.start()

    def wait_ready(self) -> None:
        """Return when all serve. Any thread."""
        for server in self.servers:
            server.wait_ready(START_TIMEOUT_S)

    def leader(self) -> EnsembleServer:
        """Return the server that leads; wait for the end of an election. Any thread."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            for server in self.servers:
                if server.is_leader:
                    return server
            time.sleep(0.02)  # there is no event to wait for across processes
        raise AssertionError(f"no leader among {self.address} after {START_TIMEOUT_S:g} s")


def start_ensemble(folder: Path, java: Java) -> Ensemble:
    """Return a running ensemble; another one if somebody took a port of the first."""
    for attempt in range(3):
        try:
            return Ensemble(folder / f"try {attempt}", java).__enter__()
        except (PortTaken, ServerFailed):
            if attempt == 2:
                raise
    raise AssertionError("not reached")


def free_ports(count: int) -> list[int]:
    """Return free ports below those that the system gives to outgoing connections.

    A server that is started again after a kill needs the same port, and it must not meanwhile
    have become some client's.
    """
    found: list[int] = []
    for port in random.sample(range(15_000, 32_000), 1_000):
        try:
            socket.create_server((HOST, port)).close()
        except OSError:
            continue
        found.append(port)
        if len(found) == count:
            return found
    raise AssertionError(f"no {count} free ports between 15000 and 32000")
