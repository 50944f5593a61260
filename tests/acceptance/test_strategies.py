"""Each failure strategy keeps its word though the master that decides is killed in the middle."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.faults.masters import pid_of, shared_out, watched
from tests.acceptance.rest import Rest
from tests.support.waiting import SERVICE_SESSION_S

# ``long`` runs while ``bad`` fails; ``after`` waits for it, ``behind`` for the failure.
TASKS: dict[str, dict[str, Any]] = {
    "long": {
        "script": 'touch "$dir/$SHOAL_WORKFLOW.runs"; until [ -e "$dir/go" ]; do sleep 0.1; done'
    },
    "bad": {"script": 'until [ -e "$dir/$SHOAL_WORKFLOW.fail" ]; do sleep 0.1; done; exit 1'},
    "after": {"depends_on": ["long"]},
    "behind": {"depends_on": ["bad"]},
    "mend": {"depends_on": ["bad"], "run_when": "any_failed"},
    "clean": {"depends_on": ["after", "behind", "mend"], "run_when": "always"},
}
ENDS = {
    "continue": "FAILED long=SUCCEEDED after=SUCCEEDED behind=SKIPPED",
    "finish_running": "FAILED long=SUCCEEDED after=SKIPPED behind=SKIPPED",
    "fail_fast": "FAILED long=KILLED after=SKIPPED behind=SKIPPED",
    "ignore": "SUCCEEDED long=SUCCEEDED after=SUCCEEDED behind=SUCCEEDED",
}


@pytest.fixture
def frail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """A cluster of its own, made to be hurt; four tasks at once for each of four workflows."""
    # Twice as long as elsewhere: nothing may be lost here because a busy machine stood still.
    monkeypatch.setenv("SHOAL_SESSION_TIMEOUT_S", str(2 * SERVICE_SESSION_S))
    with (
        LocalCluster(tmp_path / "data", workers=1, slots=16, api_port=free_port()) as running,
        watched(running),
    ):
        yield running


def test_strategies_outlive_their_master(frail: LocalCluster, tmp_path: Path) -> None:
    with closing(Rest(frail.url, frail.token)) as rest:
        shared_out(rest, [64, 64])
        runs = {}
        for strategy in ENDS:
            rest.publish(strategy, TASKS, on_failure=strategy, parameters={"dir": str(tmp_path)})
            runs[strategy] = rest.start(strategy)
        rest.until(
            lambda: {s for s in ENDS if (tmp_path / f"{s}.runs").exists()},
            lambda started: started == ENDS.keys(),
        )
        for strategy in ENDS:
            (tmp_path / f"{strategy}.fail").touch()
        for master in rest.get("/cluster")["masters"]:
            os.kill(pid_of(master), signal.SIGKILL)
        # The next owner knows what the failure means, whether it was decided before or after.
        rest.until(
            lambda: {s: rest.tasks(run)["bad"]["state"] for s, run in runs.items()},
            lambda states: set(states.values()) == {"FAILED"},
        )
        rest.until(lambda: rest.tasks(runs["fail_fast"])["long"]["state"], lambda s: s == "KILLED")
        (tmp_path / "go").touch()
        for strategy, run in runs.items():
            ended = rest.wait_for(run)
            tasks = rest.tasks(run)
            names = ("long", "after", "behind")
            seen = " ".join([ended["state"], *(f"{n}={tasks[n]['state']}" for n in names)])
            assert seen == ENDS[strategy], strategy
            assert [tasks[n]["state"] for n in ("mend", "clean")] == ["SUCCEEDED"] * 2
            attempts = rest.instance(run, attempts="all")["tasks"]
            again = [one for one in attempts if one["attempt"] > 1 or one["state"] == "LOST"]
            assert not again, "nothing ran twice"
