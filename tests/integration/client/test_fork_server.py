"""Roles forked from one process: each is a process like any other, and shares what it imported."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil
import pytest

from shoal.client.errors import ServerFailed
from shoal.client.local import fork_server
from shoal.client.local.fork_server import ForkServer, RoleProcess
from shoal.client.local.zookeeper import free_port
from tests.support.processes import nothing_left
from tests.support.waiting import DEADLINE_S


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "a folder"
    (folder / "logs").mkdir(parents=True)
    return folder


@pytest.fixture
def server(data: Path) -> Iterator[ForkServer]:
    found = ForkServer(data)
    yield found
    found.close()
    assert nothing_left(data)


@pytest.fixture
def log(data: Path) -> Iterator[IO[bytes]]:
    with (data / "role.log").open("ab") as file:
        yield file


def waiting(server: ForkServer, data: Path, log: IO[bytes], **variables: str) -> RoleProcess:
    """Start an alert server; return when it runs. Without definitions it needs no ZooKeeper."""
    environment = {**os.environ, "SHOAL_ZOOKEEPER": f"127.0.0.1:{free_port()}", **variables}
    role = server.start(["alert", "--data", str(data)], environment, log)
    deadline = time.monotonic() + DEADLINE_S
    while not (data / "shoal.db").exists():
        assert role.poll() is None, (data / "role.log").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return role


def has_libpq(role: RoleProcess) -> bool:
    """Return whether the process that ``role`` was forked from has PostgreSQL's driver."""
    parent = psutil.Process(role.pid).parent()
    assert parent is not None
    return "libpq" in Path(f"/proc/{parent.pid}/maps").read_text()


def test_a_role_looks_as_if_it_had_been_started_by_its_command(
    server: ForkServer, data: Path, log: IO[bytes]
) -> None:
    role = waiting(server, data, log, SHOAL_LOG_FORMAT="json", LARGE="x" * 2_000_000)
    command = f"{sys.executable} -m shoal.client.local.roles alert --data {data}"
    assert Path(f"/proc/{role.pid}/cmdline").read_bytes().replace(b"\0", b" ").strip() == (
        command.encode()
    )
    assert os.getsid(role.pid) == role.pid
    role.terminate()
    assert role.wait(DEADLINE_S) == 0
    assert (data / "role.log").read_bytes().startswith(b"{")  # as its own environment asks


def test_statuses_are_those_of_the_roles(server: ForkServer, data: Path, log: IO[bytes]) -> None:
    wrong = server.start(["master", "--no-such-option"], os.environ, log)
    assert wrong.wait(DEADLINE_S) == 2
    assert b"are required: --data" in (data / "role.log").read_bytes()
    killed = waiting(server, data, log)
    with pytest.raises(subprocess.TimeoutExpired):
        killed.wait(0.01)
    assert killed.poll() is None
    killed.kill()
    assert killed.wait(DEADLINE_S) == -signal.SIGKILL == killed.returncode
    killed.kill()  # it may be told so again
    assert wrong.poll() == 2


def test_a_signal_right_after_the_fork_is_not_lost(
    server: ForkServer, data: Path, log: IO[bytes]
) -> None:
    server.start(["master", "--no-such-option"], os.environ, log).wait(DEADLINE_S)  # all imported
    for _ in range(5):
        role = server.start(["alert", "--data", str(data)], os.environ, log)
        role.terminate()
        assert role.wait(DEADLINE_S) in (0, -signal.SIGTERM)


def test_roles_share_what_they_have_imported(
    server: ForkServer, data: Path, log: IO[bytes]
) -> None:
    role = waiting(server, data, log)
    pages = Path(f"/proc/{role.pid}/smaps_rollup").read_text()
    kib = {name: int(size) for name, size in re.findall(r"^(\w+): +(\d+) kB$", pages, re.M)}
    private = kib["Private_Clean"] + kib["Private_Dirty"]
    assert private < 0.5 * kib["Rss"], kib
    assert not has_libpq(role)  # a driver that no role uses costs memory


@pytest.mark.parametrize(
    ("url", "is_shared"),
    [
        ("postgresql://shoal@127.0.0.1:1/shoal", True),
        ("oracle://nothing of ours", False),  # a role reports the setting
    ],
)
def test_roles_share_the_driver_of_their_database(
    monkeypatch: pytest.MonkeyPatch,
    server: ForkServer,
    data: Path,
    log: IO[bytes],
    url: str,
    is_shared: bool,
) -> None:
    monkeypatch.setenv("SHOAL_DATABASE_URL", url)
    role = waiting(server, data, log, SHOAL_DATABASE_URL="")
    assert has_libpq(role) == is_shared


def test_roles_end_with_their_process_and_start_with_a_new_one(
    server: ForkServer, data: Path, log: IO[bytes]
) -> None:
    role = waiting(server, data, log)
    parent = psutil.Process(role.pid).parent()
    assert parent is not None
    parent.terminate()  # as all processes of a service: the roles are to end in order first
    other = server.start(["master", "--no-such-option"], os.environ, log)
    assert other.wait(DEADLINE_S) == 2
    assert parent.is_running()
    assert role.poll() is None
    parent.kill()
    assert role.wait(DEADLINE_S) == -signal.SIGKILL
    again = server.start(["master", "--no-such-option"], os.environ, log)
    assert again.wait(DEADLINE_S) == 2


def test_fork_that_takes_long_leaves_the_other_roles_alone(
    server: ForkServer, data: Path, log: IO[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = waiting(server, data, log)
    parent = psutil.Process(healthy.pid).parent()
    assert parent is not None
    alert = ["alert", "--data", str(data)]
    parent.suspend()
    monkeypatch.setattr(fork_server, "START_S", 0.1)
    with pytest.raises(ServerFailed, match="did not start a role within"):
        server.start(alert, os.environ, log)
    request = server.request(alert, os.environ, log)
    assert request.poll() is None
    assert healthy.poll() is None
    parent.resume()
    deadline = time.monotonic() + DEADLINE_S
    while (role := request.poll()) is None or len(parent.children()) > 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert {child.pid for child in parent.children()} == {healthy.pid, role.pid}
    assert healthy.poll() is role.poll() is None


def test_nothing_outlives_the_supervisor(data: Path) -> None:
    program = (
        "import os, sys, pathlib\n"
        "from shoal.client.local.fork_server import ForkServer\n"
        "data = pathlib.Path(sys.argv[1])\n"
        "with (data / 'role.log').open('ab') as log:\n"
        "    ForkServer(data).start(['alert', '--data', str(data)], os.environ, log)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    environment = {**os.environ, "SHOAL_ZOOKEEPER": f"127.0.0.1:{free_port()}"}
    command = [sys.executable, "-c", program, str(data)]
    done = subprocess.run(command, env=environment, timeout=DEADLINE_S)
    assert done.returncode == -signal.SIGKILL
    assert nothing_left(data)
