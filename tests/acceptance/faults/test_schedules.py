"""Every fire time of a schedule starts one instance, whatever dies meanwhile."""

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.faults.masters import shared_out
from tests.acceptance.faults.ticker import SECOND, fired, owner_of_schedule, publish
from tests.acceptance.rest import Rest
from tests.support.waiting import SERVICE_SESSION_S


def test_each_second_has_one_instance_though_the_master_that_fires_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_SESSION_TIMEOUT_S", str(SERVICE_SESSION_S))
    with (
        LocalCluster(tmp_path / "data", workers=1, slots=1, api_port=free_port()) as running,
        closing(Rest(running.url, running.token)) as rest,
    ):
        shared_out(rest, [64, 64])
        publish(rest)
        before = rest.until(lambda: fired(rest), lambda seen: len(seen) >= 3)
        os.kill(owner_of_schedule(running, rest), signal.SIGKILL)
        # The survivor fires again, also what nobody could fire meanwhile.
        rest.until(lambda: fired(rest), lambda seen: seen[-1] > before[-1] + 15 * SECOND)
        publish(rest, enabled=False)
        commands = rest.until(
            lambda: outcomes(running), lambda seen: "PENDING" not in seen.values()
        )
        found = fired(rest)
    assert set(commands.values()) == {"DONE"}
    assert len(commands) == len(found)
    assert found == [found[0] + n * SECOND for n in range(len(found))]


def outcomes(cluster: LocalCluster) -> dict[str, str]:
    """The state of each command that the schedule has given, by its key."""
    with closing(sqlite3.connect(cluster.data / "shoal.db")) as database:
        query = "SELECT idempotency_key, state FROM command WHERE schedule_id IS NOT NULL"
        return dict(database.execute(query).fetchall())
