"""The lease holds whatever becomes of the launcher that heard of it."""

import asyncio
import os
import signal
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from shoal.worker.processes import launcher
from shoal.worker.processes.launcher import Launcher, LauncherDied, LaunchFailed
from shoal.worker.processes.program import ProcessOutcome
from shoal.worker.supervisor.clock import boottime
from tests.integration.worker.supervisor.attempt_site import Site, eventually
from tests.support.waiting import DEADLINE_S


async def test_new_launcher_refuses_what_the_old_lease_does_not_allow(
    launcher: Launcher, site: Site
) -> None:
    launcher.extend_lease(boottime())
    old = launcher.pid
    os.kill(old, signal.SIGKILL)
    await eventually(lambda: launcher.pid != old, DEADLINE_S)
    with pytest.raises(LaunchFailed, match="lost its ZooKeeper session"):
        await launcher.launch(site.request("a", "true"))


async def test_tasks_of_a_launcher_that_stands_still_end_with_the_lease(
    launcher: Launcher, site: Site
) -> None:
    await launcher.launch(site.marked("a", "echo ready; exec sleep 1000"))
    await site.until_ready("a")
    launcher.extend_lease(boottime() + 4)
    with suppress(LaunchFailed):  # an answer of any kind: the launcher knows the lease
        await (await launcher.launch(site.request("b", "true"))).wait()
    old = launcher.pid
    os.kill(old, signal.SIGSTOP)
    try:
        await eventually(lambda: not site.survivors(), DEADLINE_S)
    finally:
        with suppress(ProcessLookupError):
            os.kill(old, signal.SIGCONT)


# A machine that was suspended goes on with all its waits where they were, and later by the clock.
# The launcher and the watchdog see a clock that the test moves in that way.
SUSPENDED = """
import os, struct, sys
sys.path.append({path!r})
import shoal.worker.supervisor.clock as clock
real = clock.boottime
file = os.open({file!r}, os.O_RDONLY)
clock.boottime = lambda: real() + struct.unpack("d", os.pread(file, 8, 0))[0]
import shoal.worker.supervisor.main as main
sys.exit(main.main(sys.argv[1:] + [str(file)]))
"""


class Machine:
    """May be suspended, as its launcher sees it."""

    def __init__(self, folder: Path) -> None:
        self.clock = folder / "ahead"
        self.clock.write_bytes(struct.pack("d", 0.0))
        self.main = folder / "suspended_main.py"
        path = str(Path(launcher.__file__).parents[3])
        self.main.write_text(SUSPENDED.format(path=path, file=str(self.clock)))

    def suspend(self, seconds: float) -> None:
        """Be as a machine is that has just been resumed after so many seconds."""
        with self.clock.open("r+b") as file:
            file.write(struct.pack("d", seconds))


@pytest.fixture
async def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    monkeypatch.setattr(launcher, "LAUNCHER_MAIN", machine.main)
    return machine


@asynccontextmanager
async def launcher_on(_: Machine) -> AsyncIterator[Launcher]:
    async with Launcher() as launcher:
        yield launcher


async def test_lease_ends_while_the_machine_is_suspended(machine: Machine, site: Site) -> None:
    async with launcher_on(machine) as launcher:
        launcher.extend_lease(boottime() + 600, patience_s=36_000)  # the watchdog may sleep
        launched = await launcher.launch(site.marked("a", "echo ready; exec sleep 1000"))
        await site.until_ready("a")
        await asyncio.sleep(0.5)  # the launcher sleeps by now
        machine.suspend(3600)
        async with asyncio.timeout(DEADLINE_S):  # long before the wait for the lease would end
            record = await launched.wait()
        assert (record.outcome, record.reason) == (
            ProcessOutcome.KILLED,
            "worker lost its ZooKeeper session",
        )
        assert not site.survivors()


async def test_nothing_starts_after_a_resume_upon_the_lease_from_before(
    machine: Machine, site: Site
) -> None:
    async with launcher_on(machine) as launcher:
        launcher.extend_lease(boottime() + 600, patience_s=36_000)
        machine.suspend(3600)
        with pytest.raises(LaunchFailed, match="lost its ZooKeeper session"):
            await launcher.launch(site.request("a", "true"))


async def test_watchdog_counts_suspended_time_too(machine: Machine, site: Site) -> None:
    async with launcher_on(machine) as launcher:
        launcher.extend_lease(boottime() + 600)
        await launcher.launch(site.marked("a", "echo ready; exec sleep 1000"))
        await site.until_ready("a")
        old = launcher.pid
        os.kill(old, signal.SIGSTOP)
        machine.suspend(3600)
        try:
            await eventually(lambda: not site.survivors())
        finally:
            with suppress(ProcessLookupError):
                os.kill(old, signal.SIGCONT)


async def test_launcher_that_is_closed_while_it_is_replaced_ends(site: Site) -> None:
    async with Launcher() as launcher:
        launched = await launcher.launch(site.request("a", "sleep", "1000"))
        os.kill(launcher.pid, signal.SIGKILL)
        with suppress(LauncherDied):
            await launched.wait()
