"""The leader starts and stops real processes; nobody else does."""

import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import psutil

from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.coordination import ZkSession
from shoal.coordination.autoscale import (
    Autoscaler,
    LocalProcesses,
    Observation,
    ScalingSettings,
)
from shoal.coordination.errors import ConnectionLoss
from tests.integration.coordination.conftest import connect
from tests.support.waiting import eventually
from tests.support.zookeeper.server import expire_session

# Says that it runs, ends in order when it is asked to, and says that too.
ORDERLY = """\
import pathlib, signal, sys
folder = pathlib.Path(sys.argv[1])
import os
def end(*_):
    (folder / f"{os.getpid()}.ended").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
(folder / f"{os.getpid()}.runs").touch()
while True:
    signal.pause()
"""
STUBBORN = ORDERLY.replace("sys.exit(0)", "return")


def workers(folder: Path, program: str = ORDERLY, drain_s: float = 60.0) -> LocalProcesses:
    return LocalProcesses([sys.executable, "-c", program, str(folder)], drain_s=drain_s)


def python(program: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)])


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def running(folder: Path) -> set[int]:
    return {int(path.stem) for path in folder.glob("*.runs") if alive(int(path.stem))}


def ended_in_order(folder: Path) -> set[int]:
    return {int(path.stem) for path in folder.glob("*.ended")}


# ---------------------------------------------------------------------- local processes


async def test_last_started_go_first_and_finish_in_order(tmp_path: Path) -> None:
    async with workers(tmp_path) as target:
        await target.scale_to(3)
        pids = target.pids
        await eventually(lambda: running(tmp_path) == set(pids))
        await target.scale_to(1)
        assert await target.count() == 1
        await eventually(lambda: ended_in_order(tmp_path) == set(pids[1:]))
        assert target.pids == pids[:1]
    assert ended_in_order(tmp_path) == set(pids)
    assert not any(map(alive, pids))


async def test_a_worker_that_died_is_replaced_at_the_next_look(tmp_path: Path) -> None:
    async with workers(tmp_path) as target:
        await target.scale_to(2)
        first, second = target.pids
        os.kill(first, signal.SIGKILL)
        await eventually(lambda: target.pids == [second])
        await target.scale_to(2)
        assert len(target.pids) == 2
        assert second in target.pids


async def test_who_does_not_end_is_killed_and_nobody_else_is(tmp_path: Path) -> None:
    bystander = python(STUBBORN, tmp_path)
    try:
        async with workers(tmp_path, STUBBORN, drain_s=5.0) as target:
            await target.scale_to(1)
            (pid,) = target.pids
            await eventually(lambda: running(tmp_path) == {pid, bystander.pid})
        assert not alive(pid)
        assert ended_in_order(tmp_path) == {pid}  # it was asked; the bystander was not
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


async def test_workers_end_in_order_when_their_starter_is_killed(tmp_path: Path) -> None:
    starter = python(STARTER, tmp_path, ORDERLY)
    try:
        await eventually(lambda: len(running(tmp_path)) == 2)
        pids = running(tmp_path)
        starter.kill()
        starter.wait()
        await eventually(lambda: ended_in_order(tmp_path) == pids)
        await eventually(lambda: not running(tmp_path))
    finally:
        starter.kill()
        starter.wait()


STARTER = """\
import asyncio, sys
from shoal.coordination.autoscale import LocalProcesses
async def main():
    folder, program = sys.argv[1:]
    async with LocalProcesses([sys.executable, "-c", program, folder]) as target:
        await target.scale_to(2)
        await asyncio.Event().wait()
asyncio.run(main())
"""


# ---------------------------------------------------------------------- with an election

FAST = ScalingSettings(min_count=1, max_count=3, max_step_up=3, max_step_down=3, cool_down_s=0)


class Load:
    """What the autoscaler is shown."""

    def __init__(self, backlog: int) -> None:
        self.backlog = backlog
        self.looks = self.fail = 0

    async def __call__(self) -> Observation:
        self.looks += 1
        if self.fail:
            self.fail -= 1
            raise ConnectionLoss("a look")
        return Observation(self.backlog, 0)


async def test_the_leader_follows_the_load(session: ZkSession, tmp_path: Path) -> None:
    load = Load(3)
    async with (
        workers(tmp_path) as target,
        Autoscaler(session, "s", "a", load, target, FAST, interval_s=0.05),
    ):
        await eventually(lambda: len(target.pids) == 3)
        load.backlog = 0
        await eventually(lambda: len(target.pids) == 1)
        load.fail = 2  # what was decided last stands
        await eventually(lambda: not load.fail)
        assert len(target.pids) == 1
        load.backlog = 2
        await eventually(lambda: len(target.pids) == 2)


async def test_only_the_leader_has_workers_and_its_successor_starts_new_ones(
    session: ZkSession, zk_chroot: str, tmp_path: Path
) -> None:
    load = Load(2)
    async with (
        connect(zk_chroot) as other,
        workers(tmp_path) as ours,
        workers(tmp_path) as theirs,
    ):
        first = Autoscaler(session, "s", "a", load, ours, FAST, interval_s=0.05)
        second = Autoscaler(other, "s", "b", load, theirs, FAST, interval_s=0.05)
        async with AsyncExitStack() as until_second_leaves:
            await until_second_leaves.enter_async_context(second)
            await eventually(lambda: len(theirs.pids) == 2)
            async with first:
                looks = load.looks
                await eventually(lambda: load.looks > looks + 3)
                assert not ours.pids
                await until_second_leaves.aclose()
                assert not theirs.pids
                await eventually(lambda: len(ours.pids) == 2)


async def test_a_leader_that_lost_its_session_lets_its_workers_go_and_begins_anew(
    session: ZkSession, zookeeper: ZooKeeperServer, tmp_path: Path
) -> None:
    async with (
        workers(tmp_path) as target,
        Autoscaler(session, "s", "a", Load(2), target, FAST, interval_s=0.05),
    ):
        await eventually(lambda: len(target.pids) == 2)
        before = set(target.pids)
        await eventually(lambda: running(tmp_path) == before)
        await expire_session(session, zookeeper)
        await eventually(lambda: len(target.pids) == 2 and not before & set(target.pids))
        await eventually(lambda: ended_in_order(tmp_path) == before)
