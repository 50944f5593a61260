"""The local ZooKeeper server: durable, bound to its parent, and clear about its troubles."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from shoal.client.errors import PortTaken, ServerFailed
from shoal.client.local import zookeeper as server_module
from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, four_letter_word, free_port
from tests.integration.coordination.conftest import connect
from tests.support.waiting import DEADLINE_S, eventually

STARTS_ONE_AND_DIES = """
import os, sys
from pathlib import Path
from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer
server = ZooKeeperServer(Path(sys.argv[1]), int(sys.argv[2]), find_java())
server.start()
server.wait_ready()
print(server.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def server(tmp_path: Path) -> ZooKeeperServer:
    return ZooKeeperServer(tmp_path / "data of ü", free_port(), find_java())


async def test_data_survives_a_kill(server: ZooKeeperServer) -> None:
    with server:
        async with connect(f"{server.address}/chroot") as session:
            await session.create("/kept", b"data")
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        await eventually(lambda: not server.running)
        server.start()
        server.wait_ready()
        async with connect(f"{server.address}/chroot") as session:
            assert (await session.get("/kept")).data == b"data"
    assert not server.running
    assert server.pid is None
    assert four_letter_word("127.0.0.1", server.port, "ruok") == b""


async def test_data_that_other_settings_wrote_is_read(
    server: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update of Shoal must not cost anybody a cluster."""
    plain = [flag for flag in server_module.JVM_FLAGS if not flag.startswith("-Dzookeeper.")]
    with monkeypatch.context() as before:
        before.setattr(server_module, "JVM_FLAGS", plain)
        with server:
            async with connect(f"{server.address}/chroot") as session:
                await session.create("/kept", b"data")
    with server:
        async with connect(f"{server.address}/chroot") as session:
            assert (await session.get("/kept")).data == b"data"


def test_server_listens_on_loopback_alone_and_says_little(own_server: ZooKeeperServer) -> None:
    assert four_letter_word("127.0.0.1", own_server.port, "ruok", DEADLINE_S) == b"imok"
    answer = four_letter_word("127.0.0.1", own_server.port, "envi", DEADLINE_S)
    assert b"not in the whitelist" in answer
    process = Path(f"/proc/{own_server.pid}")
    own = {os.readlink(fd) for fd in (process / "fd").iterdir() if fd.is_symlink()}
    fields = [line.split() for line in (process / "net/tcp").read_text().splitlines()[1:]]
    listening = [field[1] for field in fields if field[3] == "0A" and f"socket:[{field[9]}]" in own]
    assert listening == [f"0100007F:{own_server.port:04X}"]


def test_port_of_somebody_else_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = ZooKeeperServer(tmp_path, port, find_java())
        with pytest.raises(PortTaken, match=f"127.0.0.1:{port}"):
            server.start()
    assert not server.running


def test_failure_to_start_shows_the_end_of_the_log(
    server: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "tick_ms", "not a number")
    with pytest.raises(ServerFailed, match="ended with status 2") as failure, server:
        pass
    assert any("NumberFormatException" in line for line in failure.value.log_tail)
    assert not server.running


def test_java_that_does_not_start_shows_what_it_said(
    server: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "JVM_FLAGS", ("-XX:+NoSuchFlag",))
    with pytest.raises(ServerFailed) as failure, server:
        pass
    assert any("NoSuchFlag" in line for line in failure.value.log_tail)


def test_silent_server_is_given_up_in_time(server: ZooKeeperServer) -> None:
    server.start()
    assert server.pid is not None
    try:
        os.kill(server.pid, signal.SIGSTOP)
        with pytest.raises(ServerFailed, match=r"did not answer .* within 0 s"):
            server.wait_ready(timeout_s=0)
    finally:
        os.kill(server.pid, signal.SIGKILL)
        server.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills orphans")
async def test_server_dies_with_its_parent(server: ZooKeeperServer) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        STARTS_ONE_AND_DIES,
        str(server.data_dir),
        str(server.port),
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        pid = int((await parent.stdout.read()).split()[-1])
        assert await parent.wait() == -signal.SIGKILL
    await eventually(lambda: not Path(f"/proc/{pid}/cmdline").exists() or _is_zombie(pid))
    assert four_letter_word("127.0.0.1", server.port, "ruok") == b""


def _is_zombie(pid: int) -> bool:
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True
