"""The ZooKeeper server of docker-compose.yml, with the configuration that its image generates."""

from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from shoal.client.errors import ServerFailed
from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import HOST, ZooKeeperServer, free_port
from shoal.coordination import ZkSession
from tests.support.parts import ROOT
from tests.support.waiting import START_S

COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
ENVIRONMENT: dict[str, str] = yaml.safe_load(COMPOSE)["services"]["zookeeper"]["environment"]
PUBLISHED_PORT = "2181"


class ComposedServer(ZooKeeperServer):
    """A server with the zoo.cfg that docker-entrypoint.sh of the official image generates."""

    def __init__(self, folder: Path, port: int, environment: dict[str, Any]) -> None:
        super().__init__(folder, port, find_java(), heap_mb=128)
        self._environment = environment
        (folder / "data").mkdir(parents=True)
        (folder / "data" / "myid").write_text("1\n", encoding="ascii")

    def _config(self) -> str:
        given = self._environment
        lines = [
            *("dataDir=data", "dataLogDir=data", "tickTime=2000", "initLimit=5", "syncLimit=2"),
            *("autopurge.snapRetainCount=3", "autopurge.purgeInterval=0", "maxClientCnxns=60"),
            "standaloneEnabled=true",
            f"admin.enableServer={given.get('ZOO_ADMINSERVER_ENABLED', 'true')}",
            *given.get("ZOO_SERVERS", "server.1=localhost:2888:3888;2181").split(),
            *given.get("ZOO_CFG_EXTRA", "").split(),
        ]
        return "".join(f"{line.replace(PUBLISHED_PORT, str(self.port))}\n" for line in lines)


async def test_composed_server_serves_clients_on_loopback_alone(tmp_path: Path) -> None:
    server = ComposedServer(tmp_path / "zookeeper", free_port(), ENVIRONMENT)
    server.start()
    try:
        server.wait_ready(START_S)
        async with ZkSession(server.address):
            pass
        listening = {
            found.laddr.ip.removeprefix("::ffff:")
            for found in psutil.Process(server.pid).net_connections()
            if found.status == psutil.CONN_LISTEN
        }
        assert listening == {HOST}
    finally:
        server.stop()


def test_a_client_address_without_a_port_ends_the_server(tmp_path: Path) -> None:
    """An earlier docker-compose.yml set it so, and its server never started."""
    given = {"ZOO_CFG_EXTRA": f"clientPortAddress={HOST}", "ZOO_ADMINSERVER_ENABLED": "false"}
    server = ComposedServer(tmp_path / "zookeeper", free_port(), given)
    server.start()
    try:
        with pytest.raises(ServerFailed, match="ended with status 2"):
            server.wait_ready(START_S)
    finally:
        server.stop()
