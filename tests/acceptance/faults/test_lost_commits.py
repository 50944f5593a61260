"""A failover to a replica that was behind: the cluster says so, and gives no lost id again."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.faults.masters import watched
from tests.acceptance.rest import Rest
from tests.support.database.postgresql import (
    PostgresqlMissing,
    RestartableServer,
    restartable_server,
)
from tests.support.programs import lacking
from tests.support.waiting import DEADLINE_S, SERVICE_SESSION_S

LOST_RUNS = 4


@pytest.fixture
def server() -> Iterator[RestartableServer]:
    try:
        with restartable_server() as found:
            yield found
    except PostgresqlMissing as error:
        lacking(error)


@pytest.fixture
def cluster(
    server: RestartableServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LocalCluster]:
    monkeypatch.setenv("SHOAL_SESSION_TIMEOUT_S", str(SERVICE_SESSION_S))
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "shoal.toml").write_text(f'[cluster]\ndatabase_url = "{server.url}"\n')
    with (
        LocalCluster(data, masters=1, workers=1, slots=8, api_port=free_port()) as running,
        watched(running),
    ):
        yield running


def beats(server: RestartableServer) -> int:
    with psycopg.connect(server.url) as connection:
        row = connection.execute("SELECT tree_beats FROM cluster").fetchone()
    assert row is not None
    return int(row[0])


def findings(rest: Rest) -> list[str]:
    return [one["code"] for one in rest.get("/health")["findings"]]


def test_failover_that_loses_commits_is_named_and_gives_no_id_again(
    server: RestartableServer, cluster: LocalCluster, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with closing(Rest(cluster.url, cluster.token)) as rest:
        rest.publish("w", {"a": {}, "b": {"depends_on": ["a"]}})
        rest.publish("waits", {"a": {"script": f"until [ -e '{gate}' ]; do sleep 0.1; done"}})
        kept = rest.start("waits")
        rest.until(lambda: rest.tasks(kept)["a"]["state"], lambda state: state == "RUNNING")
        server.stop()
        server.keep()
        server.start()
        lost = [rest.start("w") for _ in range(LOST_RUNS)]
        attempts = [rest.wait_for(one)["tasks"][-1]["id"] for one in lost]
        seen = beats(server)  # two more, and the master has looked in between
        rest.until(lambda: beats(server), lambda found: found >= seen + 2, timeout_s=2 * DEADLINE_S)
        assert "health.lost_commits" not in findings(rest)

        server.stop()
        server.fall_back()
        server.start()
        rest.until(
            lambda: findings(rest),
            lambda found: "health.lost_commits" in found,
            timeout_s=2 * DEADLINE_S,
        )
        for one in lost:
            assert rest.http.get(f"/instances/{one}").status_code == 404
        new = rest.start("w")
        ended = rest.wait_for(new)
        assert ended["state"] == "SUCCEEDED", ended
        assert new > max(lost), "the id of a lost run was given again"
        assert min(task["id"] for task in ended["tasks"]) > max(attempts)
        gate.touch()  # what both data have goes on
        ended = rest.wait_for(kept)
        assert ended["state"] == "SUCCEEDED", ended
