"""A ZooKeeper ensemble of three servers, each killed and started again with its data."""

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from kazoo.client import KazooClient

from shoal.client.errors import ServerFailed
from shoal.client.local.java import Java, find_java
from shoal.client.local.zookeeper import HOST, ZooKeeperServer, four_letter_word
from tests.chaos.cluster.machine import Machine
from tests.chaos.cluster.ports import lasting_port

SERVERS = 3
DISK_MB = 192
READY_S = 60.0
_PREALLOCATED_KB = 1024  # of a transaction log; 64 MB by default
_LOOK_S = 0.05


class EnsembleMember(ZooKeeperServer):
    """One server of an ensemble. ``peers`` are all servers' lines for the configuration."""

    def __init__(
        self, folder: Path, number: int, port: int, peers: str, java: Java, *, small_disk: bool
    ) -> None:
        super().__init__(folder, port, java)
        self.number = number
        self._peers = peers
        (folder / "data").mkdir(parents=True)
        self._data = folder / "data"
        self.machine = Machine(folder, self._data, DISK_MB if small_disk else 0)
        (self._data / "myid").write_text(f"{number}\n")

    def _config(self) -> str:
        # Killed processes lose nothing that the kernel has; only a power cut would. A sync that is
        # preloaded costs nothing as long as it is not told to.
        sync = "no" if self.machine.sync is None else "yes"
        settings = (
            f"initLimit=40\nsyncLimit=10\nforceSync={sync}\npreAllocSize={_PREALLOCATED_KB}\n"
        )
        return super()._config() + self._peers + settings

    def _variables(self) -> dict[str, str]:
        return self.machine.environment

    @property
    def mode(self) -> str:
        """What the server says it is: leader, follower, or "" when it serves nobody."""
        if not self.running:
            return ""
        for line in four_letter_word(HOST, self.port, "srvr").decode().splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
        return ""

    def kill(self) -> None:
        """End the process as a crash would, and wait for its end."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def log_size(self) -> int:
        """Return how many bytes its log has."""
        return self._log_size()

    def said(self, words: bytes, since: int) -> int:
        """Return how often its log has ``words`` after the first ``since`` bytes."""
        return (self.data_dir / "zookeeper.log").read_bytes()[since:].count(words)

    def wipe(self) -> None:
        """Remove the data of the server, which does not run. It stays who it is."""
        assert not self.running
        shutil.rmtree(self._data / "version-2")


class Ensemble:
    """Three members below ``folder``. Start and stop it in the main thread."""

    def __init__(self, folder: Path, *, small_disks: bool = False) -> None:
        java = find_java()
        ports = [lasting_port() for _ in range(3 * SERVERS)]
        peers = "".join(
            f"server.{n}={HOST}:{ports[3 * n - 2]}:{ports[3 * n - 1]}\n"
            for n in range(1, SERVERS + 1)
        )
        self.members = [
            EnsembleMember(
                folder / f"zookeeper-{n}",
                n,
                ports[3 * n - 3],
                peers,
                java,
                small_disk=small_disks,
            )
            for n in range(1, SERVERS + 1)
        ]

    @property
    def hosts(self) -> str:
        """The connection string that names all members."""
        return ",".join(member.address for member in self.members)

    async def __aenter__(self) -> Self:
        for member in self.members:
            member.start()
        try:
            await self.serving(SERVERS)
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for member in self.members:
            member.kill()
            member.machine.close()

    def leader(self) -> EnsembleMember | None:
        """Return the leader, None during an election."""
        return next((m for m in self.members if m.mode in ("leader", "standalone")), None)

    def followers(self) -> list[EnsembleMember]:
        return [member for member in self.members if member.mode == "follower"]

    async def serving(self, least: int) -> None:
        """Return when there is a leader and ``least`` members serve. Raises ServerFailed."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + READY_S
        while True:
            modes = await asyncio.to_thread(lambda: [member.mode for member in self.members])
            if "leader" in modes and sum(map(bool, modes)) >= least:
                return
            if loop.time() > deadline:
                member = self.members[modes.index("") if "" in modes else 0]
                raise member._failed(f"the ensemble's members are {modes} after {READY_S:g} s")
            await asyncio.sleep(_LOOK_S)

    def wipe(self) -> None:
        """Remove the data of all members, none of which runs."""
        for member in self.members:
            member.wipe()

    async def start_all(self) -> None:
        """Start the members that do not run, and wait until all serve."""
        for member in self.members:
            member.start()
        await self.serving(SERVERS)

    async def expire(self, session_id: int) -> None:
        """End a session at once, as its timeout would."""

        def take_and_close() -> None:
            client = KazooClient(
                hosts=self.hosts, client_id=(session_id, session_password(session_id)), timeout=10
            )
            client.start(timeout=20)
            try:
                if client.client_id[0] != session_id:
                    raise ServerFailed(
                        "ZooKeeper", f"gave another session than {session_id:#x}", Path("-"), []
                    )
            finally:
                client.stop()
                with suppress(Exception):
                    client.close()

        await asyncio.to_thread(take_and_close)


def session_password(session_id: int) -> bytes:
    """Return the password that ZooKeeper gives to a session.

    It is not a secret to the server's administrator: 16 bytes of ``java.util.Random``, seeded with
    the id and a constant (``ZooKeeperServer.generatePasswd``).
    """
    mask = 2**48 - 1
    state = ((session_id ^ 0xB3415C00) ^ 0x5DEECE66D) & mask
    password = b""
    for _ in range(4):
        state = (state * 0x5DEECE66D + 0xB) & mask
        password += (state >> 16 & 0xFFFFFFFF).to_bytes(4, "little")
    return password
