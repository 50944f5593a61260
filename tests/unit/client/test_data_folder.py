"""A data folder that is not what it should be: said in words, before anything has started."""

import errno
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from shoal.client.errors import AlreadyRunning, DataFolderUnusable, PortTaken
from shoal.client.local import fork_server
from shoal.client.local.background import start_detached
from shoal.client.local.cluster import LocalCluster, _Process
from shoal.client.local.data_folder import (
    ClusterState,
    cluster_lock,
    ensure_identity,
    ensure_token,
    holder_of,
    read_state,
    running_state,
    write_state,
)
from shoal.client.local.fork_server import ForkServer
from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import ZooKeeperServer, free_port, require_free_port
from tests.support.waiting import DEADLINE_S, START_S

STATE = ClusterState("http://127.0.0.1:8765", "127.0.0.1:2181", "", 1, 2, 2, "", "", "")


@pytest.mark.parametrize("below", ["", "sub", "sub/sub"])
def test_a_file_in_the_place_of_the_data_folder_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / below
    with pytest.raises(DataFolderUnusable, match="choose another folder with --data"):
        start_detached(folder, [])
    with pytest.raises(DataFolderUnusable, match="choose another folder with --data"):
        LocalCluster(folder).__enter__()


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "cluster.lock").mkdir()
    with pytest.raises(DataFolderUnusable, match=r"cluster\.lock cannot be used: Is a directory"):
        LocalCluster(tmp_path).__enter__()


@pytest.mark.parametrize(
    ("field", "value"),
    [("api", 5), ("api", "x"), ("zookeeper", 7), ("pid", "1"), ("masters", None), ("workers", "2")],
)
def test_a_state_file_with_odd_values_is_as_good_as_none(
    tmp_path: Path, field: str, value: Any
) -> None:
    write_state(tmp_path, STATE)
    assert read_state(tmp_path) == STATE
    (tmp_path / "cluster.json").write_text(json.dumps({**asdict(STATE), field: value}))
    assert read_state(tmp_path) is None


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"short", b"a" * 30 + b"\n" + b"b" * 30])
def test_a_broken_token_is_named_with_its_cure(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(DataFolderUnusable, match="delete it, then a new one is made"):
        ensure_token(tmp_path)


def test_an_identity_that_was_made_is_accepted_again(tmp_path: Path) -> None:
    ensure_identity(tmp_path)
    before = (tmp_path / "node.pem").read_bytes()
    ensure_identity(tmp_path)
    assert (tmp_path / "node.pem").read_bytes() == before


@pytest.mark.parametrize("name", ["ca.pem", "node.pem", "node.key"])
@pytest.mark.parametrize("content", [b"", b"rubbish", None])
def test_an_identity_that_does_not_fit_together_is_refused(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    ensure_identity(tmp_path / "one")
    ensure_identity(tmp_path / "other")
    if content is None:  # of another cluster
        content = (tmp_path / "other" / name).read_bytes()
    (tmp_path / "one" / name).write_bytes(content)
    with pytest.raises(DataFolderUnusable, match="delete the folder"):
        ensure_identity(tmp_path / "one")


def test_a_port_that_only_root_may_use_is_not_called_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> socket.socket:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket, "create_server", refuse)
    with pytest.raises(PortTaken, match="above 1023"):
        require_free_port("127.0.0.1", 80, "the API")


def test_the_end_of_a_log_is_of_the_newest_start_only(tmp_path: Path) -> None:
    log = tmp_path / "role.log"
    log.write_text("an earlier start\n")
    with closing(ForkServer(tmp_path)) as server:
        child = _Process("api", ["--no-such-argument"], log, {}, server)
        child.start()
        assert child.process is not None
        child.process.wait(DEADLINE_S)
    said = "\n".join(child.tail())
    assert "usage:" in said
    assert "an earlier start" not in said


def test_a_failed_fork_is_tried_again_and_does_not_end_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ForkServer(tmp_path)
    child = _Process("api", ["--no-such-argument"], tmp_path / "role.log", {}, server)
    child.start()
    assert child.process is not None
    first = child.process
    first.wait(DEADLINE_S)
    now = time.monotonic()
    news: list[str] = []

    def look_until(said: str) -> None:
        nonlocal now
        deadline = time.monotonic() + DEADLINE_S
        while not any(said in one for one in news):
            assert time.monotonic() < deadline, news
            now += 1.0
            news.append(child.look(now) or "")
            time.sleep(0.02)

    with monkeypatch.context() as full:
        full.setattr(os, "memfd_create", Mock(side_effect=OSError(errno.ENOMEM, "no memory")))
        look_until("cannot start again yet: [Errno 12] no memory; starting it again in 1 s")
    begin = fork_server._Process.__init__

    def begin_and_die(self: fork_server._Process, *given: Path) -> None:
        begin(self, *given)
        self._process.kill()  # as the kernel does that needs its memory

    with monkeypatch.context() as short_of_memory:
        short_of_memory.setattr(fork_server._Process, "__init__", begin_and_die)
        server.close()
        look_until("ended before it started a role; starting it again in 2 s")
    news.clear()
    look_until("api ended with status 2")
    assert child.process is not first
    server.close()


def test_a_zookeeper_that_cannot_start_again_does_not_end_the_cluster(tmp_path: Path) -> None:
    said: list[str] = []
    cluster = LocalCluster(tmp_path, progress=said.append)
    port = free_port()
    # Any runtime will do: the port is looked at before it is started.
    cluster._zookeeper = ZooKeeperServer(tmp_path / "zookeeper", port, find_java())
    with socket.create_server(("127.0.0.1", port)):
        cluster.watch()
        cluster.watch()  # at once: too early for another attempt
    assert len(said) == 1
    assert "ZooKeeper cannot start again yet" in said[0]


def test_a_start_on_a_full_disk_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=3 * 2**20))
    with pytest.raises(DataFolderUnusable, match="only 3 MB are free there"):
        LocalCluster(tmp_path).__enter__()


def test_news_that_cannot_be_told_ends_nothing(tmp_path: Path) -> None:
    def on_a_full_disk(_text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    cluster = LocalCluster(tmp_path, progress=on_a_full_disk)
    cluster.progress("ZooKeeper ended; starting it again")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_log_lines_on_a_full_disk_fail_nobody() -> None:
    program = (
        "import structlog, logging, sys\n"
        "from shoal.client.local.process import configure_logging\n"
        "configure_logging('info')\n"
        "for n in range(2000): structlog.get_logger().info('event', number=n)\n"
        "logging.getLogger('kazoo').warning('connection dropped')\n"
        "print('alive')\n"
    )
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=full, timeout=START_S
        )
    assert done.stdout == b"alive\n"


def test_a_copy_is_looked_at_when_its_supervisor_has_said_who_it_is(tmp_path: Path) -> None:
    """It holds the lock; the holder in the file is still that of the original."""
    with cluster_lock(tmp_path) as start:
        write_state(tmp_path, replace(STATE, start=start))
    found: list[ClusterState | None] = []
    look = threading.Thread(target=lambda: found.append(running_state(tmp_path)))
    with (
        (tmp_path / "cluster.gate").open("rb+") as gate,
        (tmp_path / "cluster.lock").open("rb+") as lock,
    ):
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_EX)
        look.start()
        look.join(0.1)
        assert found == []
        lock.write(json.dumps({"pid": 1, "start": "another"}).encode().ljust(200))
        lock.flush()
        gate.close()
        look.join(START_S)
    assert found == [None]


def test_a_supervisor_is_found_without_its_gate(tmp_path: Path) -> None:
    with cluster_lock(tmp_path) as start:
        write_state(tmp_path, replace(STATE, start=start))
        (tmp_path / "cluster.gate").unlink()
        assert running_state(tmp_path) == replace(STATE, start=start)
        with pytest.raises(AlreadyRunning), cluster_lock(tmp_path):
            pass
        assert running_state(tmp_path) is not None
    (tmp_path / "cluster.gate").unlink()
    assert holder_of(tmp_path) is None


def test_a_lock_that_cannot_be_tried_is_not_taken_for_a_free_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    with cluster_lock(tmp_path):
        monkeypatch.setattr(fcntl, "flock", refuse)
        with pytest.raises(OSError, match="No locks available"):
            holder_of(tmp_path)
