"""The folder of a worker belongs to one life at a time."""

import fcntl
from pathlib import Path

import pytest

from shoal.worker.home import home as worker_home
from shoal.worker.home.home import HomeBusy, WorkerHome
from shoal.worker.settings import WorkerSettings


def test_worker_does_not_begin_while_a_process_of_the_one_before_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent before is dead and has lost its lock, but its launcher still kills its tasks."""
    home = WorkerHome(tmp_path, WorkerSettings(name="w"))
    folder = tmp_path / "workers" / "w" / "1"
    folder.mkdir(parents=True)
    with (folder / "processes.lock").open("w") as held_by_the_launcher:
        fcntl.flock(held_by_the_launcher, fcntl.LOCK_EX)
        monkeypatch.setattr(worker_home, "PREDECESSOR_S", 0.0)
        with pytest.raises(HomeBusy):
            home.__enter__()
    with home:
        assert home.name == "w-1"
