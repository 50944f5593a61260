"""The simulator beside a real cluster: the runs that were, and those that are to come."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.rest import Rest
from tests.support.processes import shoal
from tests.support.waiting import DEADLINE_S, STEADY_SESSION_S, wait_past_midnight

SLOTS, RUNS = 2, 36
# A run takes a second of a slot, and 36 of them at once 18 seconds of two.
SECONDS = {"first": 0.3, "left": 0.5, "right": 0.2}


@dataclass
class Recorded:
    """A cluster that has had more to do than it has slots for."""

    cluster: LocalCluster
    rest: Rest
    runs: list[int]
    waits: list[float]  # of all attempts, in seconds, ascending
    busy_share: float  # of the slots' time; the rest lies between the attempts of a slot
    day: str  # in UTC, of all runs

    def simulate(self, *arguments: str) -> Any:
        """Return what ``shoal simulate --json`` says."""
        done = shoal(self.cluster, "simulate", "--json", *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """Three workflows are started twelve times each, faster than two slots can work."""
    data = tmp_path_factory.mktemp("simulated")
    (data / "shoal.toml").write_text(f"[cluster]\nsession_timeout_s = {STEADY_SESSION_S}\n")
    with (
        LocalCluster(data, masters=1, workers=1, slots=SLOTS, api_port=free_port()) as running,
        closing(Rest(running.url, running.token)) as rest,
    ):
        tasks = {name: {"script": f"sleep {length_s}"} for name, length_s in SECONDS.items()}
        for name in ("left", "right"):
            tasks[name] |= {"depends_on": ["first"]}  # type: ignore[dict-item]
        for name, priority in (("low", "LOW"), ("medium", "MEDIUM"), ("high", "HIGH")):
            rest.publish(name, tasks, priority=priority, deadline="5s")
        wait_past_midnight()
        runs = [rest.start(name) for _ in range(RUNS // 3) for name in ("low", "medium", "high")]
        ended = [rest.wait_for(one, timeout_s=6 * DEADLINE_S) for one in runs]
        assert {one["state"] for one in ended} == {"SUCCEEDED"}
        [day] = {one["created_at"][:10] for one in ended}
        attempts = [task for one in runs for task in rest.tasks(one).values()]
        waits = sorted(_between_s(one["queued_at"], one["started_at"]) for one in attempts)
        busy_s = sum(_between_s(one["started_at"], one["finished_at"]) for one in attempts)
        span_s = _between_s(
            min(one["started_at"] for one in attempts), max(one["finished_at"] for one in attempts)
        )
        yield Recorded(running, rest, runs, waits, busy_s / (SLOTS * span_s), day)


def _between_s(since: str, until: str) -> float:
    return (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds()


@pytest.mark.parametrize("how", ["repeated", "drawn"])
def test_simulated_waits_are_those_of_the_recorded_day(recorded: Recorded, how: str) -> None:
    found = recorded.simulate("--validate", recorded.day)
    assert (found["runs"], found["attempts"]) == (RUNS, 3 * RUNS)
    error = found[how]["default"]
    assert error["attempts"] == 3 * RUNS
    longest_s = recorded.waits[-1]
    assert error["recorded"]["max_s"] == pytest.approx(longest_s, abs=0.01)
    # A loaded machine takes long from one attempt of a slot to the next, which is not simulated:
    # recorded waits are longer by that share.
    for of in ("p95_s", "max_s"):
        ratio = error["simulated"][of] / error["recorded"][of]
        assert 0.8 * recorded.busy_share < ratio < 1.3, (of, recorded.busy_share)
    idle_s = (1 - recorded.busy_share) * longest_s
    assert error["median_s"] < 0.15 * longest_s + idle_s
    assert error["p95_s"] < 0.6 * longest_s + 2 * idle_s  # attempts also change places


def test_with_slots_enough_the_same_runs_hardly_wait(recorded: Recorded) -> None:
    """The error is one of the simulated cluster: another one has other waits."""
    found = recorded.simulate("--validate", recorded.day, "--slots", str(3 * RUNS))
    error = found["repeated"]["default"]
    assert error["simulated"]["max_s"] < 0.1 * recorded.waits[-1]


def test_next_days_are_simulated_from_the_history(recorded: Recorded, tmp_path: Path) -> None:
    recorded.rest.publish(
        "hourly",
        {name: {"script": f"sleep {length_s}"} for name, length_s in SECONDS.items()},
        schedules=[{"cron": "0 30 * * * ?"}],
    )
    file, chart = tmp_path / "model.json", tmp_path / "chart.html"
    found = recorded.simulate("--days", "1", "--save-model", str(file), "--chart", str(chart))
    (group,) = found["groups"]
    assert (group["name"], group["slots"]) == ("default", SLOTS)
    workflows = {one["name"]: one for one in found["workflows"]}
    assert workflows["default/hourly"]["runs"] == 24
    # What was asked for at an hour of a week is expected once a week: now, and not every hour.
    assert workflows["default/low"]["runs"] <= RUNS
    again = recorded.simulate("--days", "1", "--model", str(file))
    assert again == found
    assert "<svg" in chart.read_text()


def test_a_day_without_runs_is_refused(recorded: Recorded) -> None:
    done = shoal(recorded.cluster, "simulate", "--validate", "2020-02-02")
    assert done.returncode == 1
    assert "no attempt is recorded of a run that was started on 2020-02-02" in done.stderr
