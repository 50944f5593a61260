"""A real ensemble of three ZooKeeper servers that can be hurt one by one.

Clients and servers come to a server over TLS, and authenticate with SASL. An observer is known to
the three, and starts when a test asks for it.
"""

import os
import random
import signal
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from shoal.client.errors import PortTaken, ServerFailed
from shoal.client.local.java import Java
from shoal.client.local.zookeeper import HOST, four_letter_word
from tests.support.zookeeper.secure import SecureServer, Security, quorum_security

START_TIMEOUT_S = 90.0


class EnsembleServer(SecureServer):
    """Server ``number`` (1 …) of an ensemble; ``peers`` has a configuration line for each."""

    def __init__(
        self,
        data_dir: Path,
        port: int,
        java: Java,
        security: Security,
        number: int,
        peers: Sequence[str],
    ) -> None:
        super().__init__(data_dir, port, java, security)
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

    def pause(self) -> None:
        """Let it stand still, as a machine does that is overloaded; its connections stay."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """End a pause. Harmless without one."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if (pid := self.pid) is not None:
            os.kill(pid, number)

    def _config(self) -> str:
        peers = "".join(
            f"server.{number}={peer}\n" for number, peer in enumerate(self._peers, start=1)
        )
        own = "peerType=observer\n" if self._peers[self.number - 1].endswith(":observer") else ""
        return super()._config() + quorum_security() + "initLimit=20\nsyncLimit=10\n" + peers + own


class Ensemble:
    """Three servers on one machine; a context manager. Synchronous; start it on the main thread."""

    def __init__(self, folder: Path, java: Java, size: int = 3) -> None:
        count = size + 1  # with the observer
        ports = free_ports(3 * count)
        roles = ["participant"] * size + ["observer"]
        peers = [
            f"{HOST}:{quorum}:{election}:{role}"
            for quorum, election, role in zip(
                ports[count : 2 * count], ports[2 * count :], roles, strict=True
            )
        ]
        security = Security(folder / "security")
        made = [
            EnsembleServer(folder / f"server {number}", port, java, security, number, peers)
            for number, port in enumerate(ports[:count], start=1)
        ]
        self.servers, self.observer = made[:size], made[size]

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
        for server in (*self.servers, self.observer):
            server.kill()  # nobody needs the data any more

    def repair(self) -> None:
        """Start dead servers, let standing ones go on; return when all serve."""
        self.observer.kill()
        for server in self.servers:
            server.go_on()
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

    def followers(self) -> list[EnsembleServer]:
        """Return the others, when there is a leader. Any thread."""
        leader = self.leader()
        return [server for server in self.servers if server is not leader]

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
