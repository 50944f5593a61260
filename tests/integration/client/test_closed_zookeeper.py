"""The embedded ZooKeeper serves who knows its password, and nobody else."""

import asyncio
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError
from kazoo.security import OPEN_ACL_UNSAFE

from shoal.client.errors import DataFolderUnusable
from shoal.client.local.data_folder import (
    ensure_zookeeper_password,
    find_zookeeper_credential,
    make_data_folder,
    zookeeper_credential,
)
from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, four_letter_word, free_port
from shoal.coordination import Membership, TaskQueue, prepare
from shoal.coordination.cluster import layout
from shoal.coordination.errors import AccessDenied
from tests.integration.coordination.conftest import connect
from tests.integration.coordination.given import entry
from tests.support.waiting import DEADLINE_S, START_S, eventually

PASSWORD = "p" * 43
CREDENTIAL = zookeeper_credential(PASSWORD)


def server_in(folder: Path, password: str = PASSWORD) -> ZooKeeperServer:
    return ZooKeeperServer(folder / "zookeeper", free_port(), find_java(), password=password)


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    server = server_in(tmp_path)
    server.start()
    try:
        server.wait_ready(START_S)
        yield server
    finally:
        server.stop()


def stranger(server: ZooKeeperServer, password: str | None = None) -> KazooClient:
    auth = [("digest", f"shoal:{password}")] if password else None
    client = KazooClient(hosts=server.address, auth_data=auth, timeout=DEADLINE_S)
    client.start(DEADLINE_S)
    return client


def everything(client: KazooClient, path: str = "/") -> Iterator[str]:
    yield path
    for name in client.get_children(path):
        yield from everything(client, f"{path.rstrip('/')}/{name}")


def acls(server: ZooKeeperServer) -> dict[str, list[tuple[str, str]]]:
    """Who may do anything with which node, as the owner sees it."""
    client = stranger(server, PASSWORD)
    try:
        return {
            path: [(acl.id.scheme, acl.id.id.partition(":")[0]) for acl in client.get_acls(path)[0]]
            for path in everything(client)
        }
    finally:
        client.stop()
        client.close()


async def work(server: ZooKeeperServer, credential: str) -> None:
    async with connect(server.address, credential=credential) as session:
        await prepare(session, 4)
        async with Membership(session, layout.MASTERS, "m", {}):
            queue = TaskQueue(session)
            await queue.put([entry(1), entry(2)])
            claims = await queue.claim("default", 1, "w")
            await queue.release(claims)
            await session.create("/jobs/a/b", makepath=True)


async def test_no_node_is_open(closed: ZooKeeperServer) -> None:
    await work(closed, CREDENTIAL)
    found = await asyncio.to_thread(acls, closed)
    assert {"/", "/zookeeper", "/zookeeper/quota", "/config", "/claims/0d"} <= found.keys()
    assert set(map(tuple, found.values())) == {(("digest", "shoal"),)}


async def test_stranger_is_refused_everything(closed: ZooKeeperServer) -> None:
    await work(closed, CREDENTIAL)

    def attack() -> None:
        # Any digest is let in, and then finds every door closed.
        client = stranger(closed, "guessed")
        try:
            for path in ("/", "/config", "/masters", "/claims/0d", "/zookeeper", "/queue/default"):
                with pytest.raises(NoAuthError):
                    client.get_children(path)
                with pytest.raises(NoAuthError):
                    client.get(path)
                with pytest.raises(NoAuthError):
                    client.set(path, b"\xff\x00")
                with pytest.raises(NoAuthError):
                    client.create(f"{path.rstrip('/')}/mine")
                with pytest.raises(NoAuthError):
                    client.set_acls(path, OPEN_ACL_UNSAFE)
            # A right on the parent.
            for path in ("/claims/0d", "/partitions/000/bell", "/jobs/a/b", "/config"):
                with pytest.raises(NoAuthError):
                    client.delete(path)
        finally:
            client.stop()
            client.close()
        # Who shows nothing is shown the door.
        client = stranger(closed)
        try:
            with pytest.raises(KazooException) as shown_out:
                client.exists("/")
            assert not isinstance(shown_out.value, NoAuthError)  # no answer at all
        finally:
            client.stop()
            client.close()

    await asyncio.to_thread(attack)


async def test_wrong_password_is_said(closed: ZooKeeperServer) -> None:
    with pytest.raises(AccessDenied, match="credentials"):
        async with connect(closed.address, credential=zookeeper_credential("x" * 43)) as session:
            await prepare(session, 4)


async def test_credential_is_shown_again_after_every_reconnect(closed: ZooKeeperServer) -> None:
    async with connect(closed.address, credential=CREDENTIAL) as session:
        await prepare(session, 4)
        for _ in range(3):
            session.drop_connection()
            await session.retry(lambda: session.set("/masters", b"again"))
        generation = session.generation
        closed.stop()
        closed.start()
        await session.retry(lambda: session.set("/masters", b"after"))
        assert session.generation == generation


async def test_server_that_lost_its_data_is_closed_again(tmp_path: Path) -> None:
    server = server_in(tmp_path)
    with server:
        await work(server, CREDENTIAL)
    shutil.rmtree(server.data_dir / "data")
    server.start()  # as the supervisor does, which does not wait
    try:
        await eventually(lambda: server._closing is not None and not server._closing.is_alive())
        found = await asyncio.to_thread(acls, server)
        assert found["/"] == [("digest", "shoal")]
    finally:
        server.stop()


def test_files_of_the_server_are_private(closed: ZooKeeperServer) -> None:
    assert stat.S_IMODE(closed.data_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE((closed.data_dir / "zookeeper.cfg").stat().st_mode) == 0o600
    assert PASSWORD not in (closed.data_dir / "zookeeper.cfg").read_text()
    assert PASSWORD.encode() not in Path(f"/proc/{closed.pid}/cmdline").read_bytes()
    assert b"Mode" in four_letter_word("127.0.0.1", closed.port, "srvr", DEADLINE_S)
    for word in ("mntr", "envi", "cons", "dump", "wchs", "conf"):
        answer = four_letter_word("127.0.0.1", closed.port, word, DEADLINE_S)
        assert b"not in the whitelist" in answer


def test_password_is_made_once_and_is_private(tmp_path: Path) -> None:
    assert find_zookeeper_credential(tmp_path) == ""
    password = ensure_zookeeper_password(tmp_path)
    assert ensure_zookeeper_password(tmp_path) == password
    assert find_zookeeper_credential(tmp_path) == zookeeper_credential(password)
    file = tmp_path / "zookeeper.password"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("")
    with pytest.raises(DataFolderUnusable, match="put the file back"):
        ensure_zookeeper_password(tmp_path)


def test_data_folder_that_is_open_to_others_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    make_data_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_data_folder_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    with pytest.raises(DataFolderUnusable, match="belongs to the user"):
        make_data_folder(tmp_path)
