"""``shoal up`` as a user meets it: odd folders, taken ports, Ctrl-C, kill -9, a second start."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.rest import Rest
from tests.support.processes import nothing_left
from tests.support.waiting import DEADLINE_S

SHOAL = [sys.executable, "-m", "shoal.client.cli"]


def shoal(*words: str, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run([*SHOAL, *words], capture_output=True, text=True, timeout=timeout)


@contextmanager
def up(data: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A ``shoal up`` in the foreground that has said it is ready, and its URL."""
    process = subprocess.Popen(
        [*SHOAL, "up", "--data", str(data), "--workers", "1", *words],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            _, said = process.communicate(timeout=DEADLINE_S)
            pytest.fail(f"shoal up did not start: {said}")
        yield process, url
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=2 * DEADLINE_S)


@contextmanager
def rest(url: str, data: Path) -> Iterator[Rest]:
    client = Rest(url, (data / "token").read_text().strip())
    try:
        yield client
    finally:
        client.close()


def sleeper(client: Rest, data: Path) -> None:
    """Start a task that would run for long, and wait until it does."""
    client.publish("sleeper", {"sleep": {"script": f"echo '{data}' > /dev/null; sleep 600"}})
    instance_id = client.start("sleeper")
    client.until(lambda: client.tasks(instance_id)["sleep"]["state"], lambda s: s == "RUNNING")


def test_ctrl_c_leaves_no_process_and_a_second_start_finds_everything(tmp_path: Path) -> None:
    data = tmp_path / "a folder with spaces é"
    with up(data) as (process, url):
        with rest(url, data) as client:
            client.publish("kept", {"a": {"script": "echo kept"}})
            instance_id = client.start("kept")
            assert client.wait_for(instance_id)["state"] == "SUCCEEDED"
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(2 * DEADLINE_S) == 0
    assert nothing_left(data)
    with up(data) as (_, url), rest(url, data) as client:
        found = client.instance(instance_id)
        assert found["state"] == "SUCCEEDED"
        assert client.wait_for(client.start("kept"))["state"] == "SUCCEEDED"
        assert client.log(found["tasks"][0]["id"]) == "kept\n"
    assert nothing_left(data)


def test_second_ctrl_c_ends_running_tasks_at_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data) as (process, url):
        with rest(url, data) as client:
            sleeper(client, data)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("stopping"):
                break
        process.send_signal(signal.SIGINT)
        process.wait(DEADLINE_S)
    assert nothing_left(data)


def test_kill_9_of_the_supervisor_leaves_no_process(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data) as (process, url):
        with rest(url, data) as client:
            sleeper(client, data)
        process.kill()
        process.wait(DEADLINE_S)
        assert nothing_left(data)


def test_taken_port_is_an_error_if_asked_for_and_passed_over_if_not(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = shoal("up", "--data", str(tmp_path / "data"), "--port", str(port))
    assert refused.returncode == 1
    assert f"127.0.0.1:{port}" in refused.stderr
    assert "choose another port" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert nothing_left(tmp_path / "data")


def test_second_up_on_the_same_folder_is_refused_and_down_stops_the_first(tmp_path: Path) -> None:
    data = tmp_path / "data"
    first = shoal("up", "--detach", "--workers", "1", "--data", str(data), "--json")
    try:
        assert first.returncode == 0, first.stderr
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", json.loads(first.stdout)["api"])
        second = shoal("up", "--data", str(data))
        assert second.returncode == 1
        assert "runs already" in second.stderr
        status = shoal("status", "--data", str(data), "--json")
        assert status.returncode == 0, status.stderr
        assert len(json.loads(status.stdout)["masters"]) == 2
    finally:
        down = shoal("down", "--data", str(data))
    assert down.returncode == 0, down.stderr
    assert nothing_left(data)
    again = shoal("down", "--data", str(data))
    assert again.returncode == 0
    assert "no cluster is running" in again.stderr


def test_private_files_are_private(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert shoal("init", "--data", str(data)).returncode == 0
    assert data.stat().st_mode & 0o777 == 0o700
    for file in ("token", "tls/node.key"):
        assert (data / file).stat().st_mode & 0o777 == 0o600


def test_doctor_is_content_here(tmp_path: Path) -> None:
    examined = shoal("doctor", "--data", str(tmp_path / "data"), "--json")
    assert examined.returncode == 0, examined.stdout
    checks = {finding["check"]: finding for finding in json.loads(examined.stdout)}
    assert {"Python", "Java", "data folder", "disk", "API port", "ZooKeeper", "database"} <= set(
        checks
    )


def test_doctor_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "shoal.toml").write_text('[cluster]\nzookeeper = "127.0.0.1:1"\n')
    examined = shoal("doctor", "--data", str(tmp_path))
    assert examined.returncode == 1
    assert "no answer from 127.0.0.1:1" in examined.stdout
    assert "SHOAL_ZOOKEEPER" in examined.stdout
