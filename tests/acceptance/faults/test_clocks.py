"""Wall clocks jump under running masters; no fire time is early, missing or doubled."""

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.faults.masters import shared_out
from tests.acceptance.faults.ticker import SECOND, fired, owner_of_schedule, publish
from tests.acceptance.rest import Rest
from tests.preload import ClockShift
from tests.support.waiting import SERVICE_SESSION_S

HOUR_S = 3600
JUMP_S = 6


@pytest.fixture
def clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClockShift:
    """What can shift the clocks of all processes that are started from now on."""
    shift = ClockShift(tmp_path)
    for name, value in shift.environment.items():
        monkeypatch.setenv(name, value)
    return shift


@pytest.fixture
def cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clocks: ClockShift
) -> Iterator[LocalCluster]:
    monkeypatch.setenv("SHOAL_SESSION_TIMEOUT_S", str(SERVICE_SESSION_S))
    with LocalCluster(tmp_path / "data", workers=1, slots=1, api_port=free_port()) as running:
        yield running


@pytest.fixture
def rest(cluster: LocalCluster) -> Iterator[Rest]:
    with closing(Rest(cluster.url, cluster.token)) as client:
        yield client


def ticks(rest: Rest, until: datetime) -> list[datetime]:
    """Return the fire times of the ticker, once it has come to ``until``."""
    found: list[datetime] = rest.until(
        lambda: fired(rest), lambda seen: bool(seen) and seen[-1] > until
    )
    return found


def assert_every_second_once(found: list[datetime]) -> None:
    assert found == [found[0] + n * SECOND for n in range(len(found))]
    assert found[-1] <= datetime.now(UTC) + timedelta(seconds=3)  # nothing before its time


@pytest.mark.parametrize("by_s", [HOUR_S, -HOUR_S])
def test_clock_of_the_master_that_fires_jumps(
    cluster: LocalCluster, rest: Rest, clocks: ClockShift, by_s: int
) -> None:
    shared_out(rest, [64, 64])
    publish(rest)
    before = rest.until(lambda: fired(rest), lambda seen: len(seen) >= 3)
    master = owner_of_schedule(cluster, rest)
    clocks.shift(by_s, master)
    # What is judged is what fires while the clock is wrong, and after it.
    assert_every_second_once(ticks(rest, before[-1] + (JUMP_S + 4) * SECOND))
    clocks.shift(0, master)
    assert_every_second_once(ticks(rest, before[-1] + 2 * (JUMP_S + 4) * SECOND))


def test_clock_of_the_whole_machine_jumps_and_comes_back(
    cluster: LocalCluster, rest: Rest, clocks: ClockShift
) -> None:
    """One clock for masters and ZooKeeper, as on a laptop."""
    shared_out(rest, [64, 64])
    publish(rest)
    before = rest.until(lambda: fired(rest), lambda seen: len(seen) >= 3)
    clocks.shift(HOUR_S)
    time.sleep(JUMP_S)  # how long the fault lasts
    clocks.shift(0)
    assert_every_second_once(ticks(rest, before[-1] + 2 * JUMP_S * SECOND))


def test_clock_of_a_master_jumps_and_no_healthy_run_times_out(
    cluster: LocalCluster, rest: Rest, clocks: ClockShift, tmp_path: Path
) -> None:
    shared_out(rest, [64, 64])
    gate = f'until [ -e "{tmp_path}/gate" ]; do sleep 0.2; done'
    rest.publish("patient", {"wait": {"script": gate}}, timeout="10m", timeout_action="stop")
    started = [rest.start("patient") for _ in range(4)]
    rest.until(
        lambda: [rest.get(f"/instances/{one}")["state"] for one in started],
        lambda states: set(states) == {"RUNNING"},
    )
    for name, pid in cluster.pids().items():
        if name.startswith("master"):
            clocks.shift(HOUR_S, pid)
    publish(rest)  # something that makes masters look at the time
    rest.until(lambda: fired(rest), lambda seen: len(seen) >= JUMP_S)
    (tmp_path / "gate").touch()
    assert {rest.wait_for(one)["state"] for one in started} == {"SUCCEEDED"}
