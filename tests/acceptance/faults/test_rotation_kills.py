"""``shoal secrets rotate`` while the API is killed at every durable step, under load.

Meanwhile somebody sets secrets, and tasks read them. After each kill the API starts again, the
command is given again, and every value decrypts, with one key.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from shoal.runtime import failpoints
from shoal.runtime.key_file import KeyFile
from shoal.runtime.vault import Vault, key_of, password_of_source
from shoal.sql import Database
from tests.acceptance.rest import Rest
from tests.support.waiting import DEADLINE_S, START_S

FIXED, PASSWORD = "fixed word of the task", "word of the data source"
STILL = {f"still{number}": f"still value {number}" for number in range(60)}  # two transactions
CHECK = f'test "$SHOAL_SECRET_fixed" = "{FIXED}" && test -n "$SHOAL_SECRET_moving0"'


class Site:
    """A cluster whose API is killed and started by hand."""

    def __init__(self, running: LocalCluster) -> None:
        self.running, self.data = running, running.data
        self.api = next(child for child in running._children if child.name == "api")
        self.unarmed = dict(self.api.environment)

    def start_api(self, armed: str = "") -> None:
        """Start it, perhaps with a failpoint; return when it answers."""
        process = self.api.process
        assert process is not None
        if process.poll() is None:
            process.kill()
        process.wait()
        self.api.environment = self.unarmed | ({failpoints.VARIABLE: armed} if armed else {})
        self.api.start()
        deadline = time.monotonic() + START_S
        with httpx.Client(trust_env=False, timeout=DEADLINE_S) as client:
            while True:
                try:
                    client.get(f"{self.running.url}/api/v1/health")
                except httpx.TransportError:
                    assert time.monotonic() < deadline, self.api.tail()
                    time.sleep(0.1)
                else:
                    return

    def rotate(self) -> subprocess.CompletedProcess[str]:
        """Give the command."""
        return subprocess.run(
            [sys.executable, "-m", "shoal.client.cli", "secrets", "rotate"],
            env={**os.environ, "SHOAL_DATA": str(self.data)},
            capture_output=True,
            text=True,
            timeout=2 * DEADLINE_S,
            check=False,
        )


class Load:
    """Sets secrets and starts tasks that read some, until told to stop; the API may be away."""

    def __init__(self, running: LocalCluster) -> None:
        self._running = running
        self._stop = threading.Event()
        self.may_be: dict[str, set[str]] = {f"moving{number}": set() for number in range(3)}
        self.set, self.instances = 0, list[int]()
        self._threads = [threading.Thread(target=one) for one in (self._set_all, self._start_all)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _set_all(self) -> None:
        with closing(Rest(self._running.url, self._running.token)) as rest:
            number = 0
            # Often enough to meet every step of a rotation, and not all that the API can do.
            while not self._stop.wait(0.03):
                number += 1
                name, value = f"moving{number % 3}", f"moving value {number}"
                # Until it is answered, both may be there.
                self.may_be[name].add(value)
                try:
                    answer = rest.http.put(
                        f"/projects/default/secrets/{name}", json={"value": value}
                    )
                except httpx.TransportError:
                    self._stop.wait(0.1)
                    continue
                if answer.is_success:
                    self.may_be[name] = {value}
                    self.set += 1

    def _start_all(self) -> None:
        with closing(Rest(self._running.url, self._running.token)) as rest:
            while not self._stop.wait(0.4):
                body = {"type": "START", "project": "default", "workflow": "reads"}
                try:
                    answer = rest.http.post("/commands", json=body)
                    if answer.is_success:
                        self.instances.append(answer.json()["id"])
                except httpx.TransportError:
                    continue


async def stored(data: Path) -> dict[str, str]:
    """Return all ciphertexts by what they are bound to."""
    async with (
        Database(f"sqlite:///{data / 'shoal.db'}") as database,
        database.unit_of_work(read_only=True) as uow,
    ):
        found = {n: one.ciphertext for n, one in (await uow.secrets.stored("default")).items()}
        source = await uow.data_sources.get("default", "wh")
        assert source.password.ciphertext is not None
        return {**found, password_of_source("wh"): source.password.ciphertext}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    data = tmp_path_factory.mktemp("rotated")
    with (
        LocalCluster(data, masters=1, workers=1, slots=4, api_port=free_port()) as running,
        closing(Rest(running.url, running.token)) as rest,
    ):
        for name, value in {**STILL, "fixed": FIXED, "moving0": "moving value 0"}.items():
            rest.put(f"/projects/default/secrets/{name}", {"value": value})
        source = {"kind": "mariadb", "host": "db", "port": 1, "user": "u", "password": PASSWORD}
        rest.put("/projects/default/data-sources/wh", source)
        rest.publish("reads", {"read": {"script": CHECK}})
        yield Site(running)


@pytest.mark.parametrize("point", failpoints.API)
def test_rotation_whose_api_is_killed_is_given_again_and_loses_nothing(
    site: Site, point: str
) -> None:
    file = site.data / "secrets.key"
    before = list(KeyFile(file).keys())
    site.start_api(f"{point}=kill@1")
    with Load(site.running) as load:
        broken = site.rotate()
        assert broken.returncode != 0, broken.stderr
        assert site.api.process is not None
        assert site.api.process.wait(DEADLINE_S) == -signal.SIGKILL
        site.start_api()
        again = site.rotate()
        assert again.returncode == 0, again.stderr
    assert load.set > 0
    keys = list(KeyFile(file).keys())
    assert len(keys) == 1, "the old key is out of the file"
    retired = KeyFile(file.with_name("secrets.key.retired")).keys()
    assert set(before) <= set(retired), "for backups"
    ciphertexts = asyncio.run(stored(site.data))
    vault = Vault(file)
    values = {name: vault.open("default", name, one) for name, one in ciphertexts.items()}
    assert {key_of(one) for one in ciphertexts.values()} == set(keys)
    moving = {name: values.pop(name) for name in load.may_be if name in values}
    assert values == {**STILL, "fixed": FIXED, password_of_source("wh"): PASSWORD}
    for name, value in moving.items():
        assert not load.may_be[name] or value in load.may_be[name]
    with closing(Rest(site.running.url, site.running.token)) as rest:
        for command in load.instances[-5:]:
            outcome = rest.outcome(command)
            ended = rest.wait_for(int(outcome["result_instance_id"]))
            assert ended["state"] == "SUCCEEDED", rest.tasks(ended["id"])
    assert load.instances
