"""A worker starts again with its old folder: nothing old runs on, nothing that ended is lost."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.runtime.settings import ClusterSettings
from shoal.worker.home.cgroups import Hierarchy
from shoal.worker.home.home import WorkerHome, WorkFolderTaken
from shoal.worker.home.spool import Spool
from shoal.worker.settings import WorkerSettings
from tests.integration.worker.agent.kit import (
    WorkerProcess,
    alive,
    children,
    log_text,
    spool,
    the_worker,
)
from tests.integration.worker.supervisor.groups import folder_of, group_of
from tests.support.fake_master import FakeMaster
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

_DETACHED = "setsid {env} /bin/sh -c 'echo $$; exec sleep 1000'"


@pytest.mark.parametrize(("cgroups", "env"), [("off", "env"), ("auto", "env"), ("auto", "env -i")])
async def test_what_outlived_all_its_watchers_dies_when_the_worker_starts_again(
    master: FakeMaster, cluster: ClusterSettings, cgroups: str, env: str
) -> None:
    """Known by its group, whatever became of its environment; else by its environment."""
    if cgroups == "auto" and Hierarchy.read().usable("shoal-trial") is None:
        pytest.skip("we may make no control groups (cgroup v2) on this machine")
    script = f"({_DETACHED.format(env=env)} &); exec sleep 1000"
    with WorkerProcess(cluster, cgroups=cgroups) as worker:
        number = await master.submit("SHELL", {"script": script})
        await master.table.wait(number, "RUNNING")
        await eventually(lambda: log_text(cluster.data, number).endswith("\n"))
        detached = int(log_text(cluster.data, number))
        (watchdog,) = children(worker.pid)
        (launcher,) = children(watchdog.pid)
        shims = [shim.pid for shim in children(launcher.pid)]
        processes = [worker.pid, watchdog.pid, launcher.pid, *shims]
        for each in processes:  # so that none of them can act on another's end
            os.kill(each, signal.SIGSTOP)
        for each in processes:
            os.kill(each, signal.SIGKILL)
        await worker.wait()
        assert alive(detached)  # no process was left to see to it
        group = group_of(detached)
    assert ("/shoal-" in group) == (cgroups == "auto")
    with WorkerProcess(cluster, cgroups="off") as successor:  # what it uses itself does not matter
        await the_worker(master.session, pid=successor.pid)
        assert not alive(detached)
        assert "killed processes of attempts without a supervisor" in successor.log
        assert cgroups == "off" or not folder_of(group).exists()


def test_processes_that_only_look_like_those_of_attempts_are_left_alone(tmp_path: Path) -> None:
    """A start cleans up after its own attempts, not after those of a neighbour."""
    settings = WorkerSettings(name="w")
    neighbour = tmp_path / "data" / "workers" / "w" / "10" / "work" / "5"
    script = "import time; print('up', flush=True); time.sleep(1000)"
    environment = {**os.environ, "SHOAL_PARAMETERS": str(neighbour / "parameters.json")}
    with subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE
    ) as decoy:
        try:
            assert decoy.stdout is not None
            assert decoy.stdout.readline() == b"up\n"
            with WorkerHome(tmp_path / "data", settings) as home:
                assert home.name == "w-1"
            assert decoy.poll() is None
        finally:
            decoy.kill()


def test_two_data_folders_with_one_work_folder_are_refused(tmp_path: Path) -> None:
    settings = WorkerSettings(name="w", work_dir=tmp_path / "shared")
    with WorkerHome(tmp_path / "one", settings) as home:
        (home.folders.work / "5").mkdir()
        with pytest.raises(WorkFolderTaken, match="another work_dir or name"):
            WorkerHome(tmp_path / "two", settings).__enter__()
        assert (home.folders.work / "5").is_dir()
    with WorkerHome(tmp_path / "two", settings):
        pass


def test_workers_of_two_data_folders_share_no_spool(tmp_path: Path) -> None:
    """One would hand the other's results to its own masters, which know nothing of them."""
    settings = WorkerSettings(name="w", spool_dir=tmp_path / "shared")
    with WorkerHome(tmp_path / "one", settings) as home:
        with pytest.raises(WorkFolderTaken, match="another spool_dir or name"):
            WorkerHome(tmp_path / "two", settings).__enter__()
        assert home.folders.spool.is_dir()
    with WorkerHome(tmp_path / "two", settings):
        pass


async def test_spool_full_of_results_is_delivered_in_large_portions(
    master: FakeMaster, cluster: ClusterSettings
) -> None:
    """It may be so after an outage: the masters get all of it, in a few calls."""
    numbers = set(range(10**6, 10**6 + 3000))
    folder = Spool(cluster.data / "workers" / "w" / "1" / "spool")
    for number in numbers:
        folder.path(str(number)).write_text(json.dumps(record(number)))
    with WorkerProcess(cluster):
        await eventually(lambda: spool(cluster.data) == [])
    assert {report.attempt.task_instance_id for report in master.reports} == numbers
    assert master.report_calls < 100


def record(number: int) -> dict[str, object]:
    return {
        "id": str(number),
        "outcome": "FAILED",
        "cause": "EXITED",
        "exit_code": 3,
        "signal": None,
        "reason": "exit code 3",
        "timed_out": False,
        "started_at": 1.0,
        "finished_at": 2.0,
        "max_rss_kb": 1,
        "cpu_s": 0.1,
        "context": {
            "worker_id": "w-1-00000000",
            "workflow_instance_id": 7,
            "task_instance_id": number,
            "partition": 0,
        },
    }
