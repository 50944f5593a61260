"""Agent, watchdog and launcher die in turn and together; no task process ever survives."""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import combinations
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from shoal.worker.home.spool import Spool
from shoal.worker.processes.launcher import (
    Launched,
    Launcher,
    LauncherDied,
    LauncherUnavailable,
    LaunchFailed,
)
from shoal.worker.processes.program import ExitRecord, ProcessOutcome
from shoal.worker.supervisor.causes import EndCause
from shoal.worker.supervisor.cgroups import Cgroup
from shoal.worker.supervisor.clock import boottime
from tests.integration.worker.agent.kit import children
from tests.integration.worker.supervisor.attempt_site import Site, alive, parent_of, shown
from tests.integration.worker.supervisor.groups import WAYS, place
from tests.support.waiting import DEADLINE_S, eventually

SLEEP = "echo ready; exec sleep 1000"
ESCAPE = f"trap '' TERM; ( setsid env -i /bin/sh -c '{SLEEP}' & ) ; {SLEEP}"
ROOT = Path(__file__).parents[4]


@pytest.fixture(params=WAYS)
def cgroup(request: pytest.FixtureRequest) -> Iterator[Path | None]:
    with place(request.param) as folder:
        yield folder


def watchdog_of(launcher_pid: int) -> int:
    return parent_of(launcher_pid)


@contextmanager
def start_agent(
    folder: Path, cgroup: Path | None, *options: str
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run an agent with two attempts. Yields it and the launcher's number; kills it at the end."""
    if cgroup is not None:
        options = ("--cgroup", str(cgroup), *options)
    command = [
        sys.executable,
        "-m",
        "tests.integration.worker.supervisor.launcher_program",
        str(folder),
        *options,
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline())
        finally:
            process.kill()
    if cgroup is not None:  # whatever has died; empty groups are left if nobody was
        asyncio.run(eventually(lambda: is_empty(cgroup)))
        Cgroup(str(cgroup)).remove()


def is_empty(group: Path) -> bool:
    """Whether no process is in the group, nor in one below."""
    try:
        return "populated 0" in (group / "cgroup.events").read_text()
    except OSError:  # it has been removed
        return True


@pytest.fixture
def agent(
    tmp_path: Path, site: Site, cgroup: Path | None
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with start_agent(tmp_path, cgroup) as started:
        assert site.survivors()
        yield started


async def test_nothing_survives_an_agent_that_is_killed(
    agent: tuple[subprocess.Popen[str], int], site: Site, tmp_path: Path
) -> None:
    process, launcher_pid = agent
    watchdog_pid = watchdog_of(launcher_pid)
    process.kill()
    # A new agent on the same folder gets the lock only when everything of the old one is dead.
    with (tmp_path / "agent.lock").open("w") as lock:
        await asyncio.wait_for(asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX), DEADLINE_S)
    assert not site.survivors()
    await eventually(lambda: not alive(launcher_pid) and not alive(watchdog_pid))

    records = [ExitRecord.from_json(entry.record) for entry in Spool(site.spool).pending()]
    assert {(each.id, each.outcome, each.reason) for each in records} == {
        ("a", ProcessOutcome.KILLED, "the worker agent ended"),
        ("b", ProcessOutcome.KILLED, "the worker agent ended"),
    }
    assert [each.context for each in records] == [{"epoch": 3}] * 2
    assert {each.cause for each in records} == {EndCause.SHUTDOWN}


CHAIN = ("agent", "watchdog", "launcher", "shims")


@pytest.mark.parametrize(
    "victims",
    # Shims alone: see test_shims.py. All four: see test_restarts.py.
    [group for size in (1, 2, 3) for group in combinations(CHAIN, size) if group != ("shims",)],
    ids="+".join,
)
async def test_nothing_survives_if_up_to_three_of_four_are_killed_in_one_instant(
    agent: tuple[subprocess.Popen[str], int], site: Site, victims: tuple[str, ...]
) -> None:
    process, launcher_pid = agent
    pids = {
        "agent": [process.pid],
        "watchdog": [watchdog_of(launcher_pid)],
        "launcher": [launcher_pid],
        "shims": [child.pid for child in children(launcher_pid)],
    }
    assert len({pid for each in pids.values() for pid in each}) == 3 + 3  # one shim is idle
    # Stopped first, and killed from below: none can act on another's end, as live ones do.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for victim in reversed(victims):
            for pid in pids[victim]:
                os.kill(pid, number)
    await eventually(lambda: not site.survivors())
    # All that watched over them goes, too; what an agent that lives has is its new launcher.
    gone = [pid for each in pids if each != "agent" for pid in pids[each]]
    await eventually(lambda: not any(alive(pid) for pid in gone))
    if "agent" in victims:
        await eventually(lambda: not alive(process.pid))
    else:
        assert process.poll() is None


async def test_a_killed_launcher_takes_its_attempts_along_and_is_replaced(
    launcher: Launcher, site: Site
) -> None:
    launched = [await launcher.launch(site.marked(each, ESCAPE)) for each in ("a", "b")]
    for each in ("a", "b"):
        await site.until_ready(each, 2)
    old = launcher.pid

    with capture_logs() as logs:
        os.kill(old, signal.SIGKILL)
        for attempt in launched:
            with pytest.raises(LauncherDied):
                await attempt.wait()
        assert not site.survivors()  # already dead when that is reported, not some time later
        again = await launcher.launch(site.request("a", "sh", "-c", "exit 3"))

    assert (await again.wait()).exit_code == 3
    assert launcher.pid != old
    assert [entry["event"] for entry in logs] == ["launcher died"]


async def test_a_replaced_launcher_keeps_the_lease(launcher: Launcher, site: Site) -> None:
    launcher.extend_lease(boottime() + 1.0)
    old = launcher.pid
    os.kill(old, signal.SIGKILL)
    await eventually(lambda: launcher.pid != old)
    try:
        launched = await launcher.launch(site.marked("a", SLEEP))
        reason = (await launched.wait()).reason
    except LaunchFailed as refusal:  # it ran out before the launch
        reason = refusal.why
    assert reason == "worker lost its ZooKeeper session"


async def test_a_killed_watchdog_ends_its_launcher_in_good_order(
    launcher: Launcher, site: Site
) -> None:
    launched = await launcher.launch(site.marked("a", ESCAPE))
    await site.until_ready("a", 2)
    old = launcher.pid
    os.kill(watchdog_of(old), signal.SIGKILL)

    record = await launched.wait()
    assert not site.survivors()
    assert record.outcome is ProcessOutcome.KILLED
    assert record.reason == "the watchdog of the launcher process ended"
    assert record.cause is EndCause.SHUTDOWN
    await eventually(lambda: launcher.pid != old)
    assert (await (await launcher.launch(site.request("b", "true"))).wait()).exit_code == 0


async def test_a_stopped_watchdog_does_not_stop_its_agent(
    agent: tuple[subprocess.Popen[str], int], site: Site
) -> None:
    process, launcher_pid = agent
    watchdog_pid = watchdog_of(launcher_pid)
    os.kill(watchdog_pid, signal.SIGSTOP)
    os.kill(launcher_pid, signal.SIGKILL)
    await eventually(lambda: not site.survivors() and not alive(watchdog_pid))
    assert process.poll() is None


async def hang(
    launcher: Launcher, site: Site, *who: Callable[[int], int]
) -> tuple[Launched, float]:
    """Start an attempt with a lease, stop processes before that ends. Returns its end, too.

    A machine may be too slow for a short lease (the watchdog may have ended the launcher by then):
    a longer one is tried next.
    """
    for number, lease_s in enumerate((0.5, 2, 8, 32)):
        with suppress(LauncherDied, LauncherUnavailable, FileNotFoundError, ProcessLookupError):
            launcher.extend_lease(boottime() + 600)
            attempt = f"a{number}"
            launched = await launcher.launch(site.marked(attempt, ESCAPE))
            await site.until_ready(attempt, 2)
            deadline = boottime() + lease_s
            launcher.extend_lease(deadline)
            with suppress(LaunchFailed):  # an answer of any kind: the lease before it was read
                await (await launcher.launch(site.request(f"b{number}", "true"))).wait()
            pids = [find(launcher.pid) for find in who]
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            if boottime() < deadline:
                return launched, deadline
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
            await launched.wait()
    pytest.fail("the machine is too slow")


def itself(launcher_pid: int) -> int:
    return launcher_pid


async def test_a_launcher_that_does_not_act_on_its_lease_is_killed_by_its_watchdog(
    launcher: Launcher, site: Site
) -> None:
    launched, deadline = await hang(launcher, site, itself)
    old = launcher.pid
    launcher.extend_lease(deadline + 600)  # which it does not read any more
    with pytest.raises(LauncherDied):
        await launched.wait()
    assert boottime() >= deadline
    assert not site.survivors()
    await eventually(lambda: launcher.pid != old)


@pytest.mark.parametrize(
    "fate", [None, signal.SIGSTOP, signal.SIGKILL], ids=["alive", "stopped", "killed"]
)
def test_an_agent_sees_to_a_lease_that_launcher_and_watchdog_do_not_obey(
    site: Site, tmp_path: Path, cgroup: Path | None, fate: signal.Signals | None
) -> None:
    lease_s = 4.0
    with start_agent(tmp_path, cgroup, "--lease-s", str(lease_s)) as (process, launcher_pid):
        watchdog_pid = watchdog_of(launcher_pid)
        os.kill(launcher_pid, signal.SIGSTOP)
        if fate is not None:  # of the watchdog, which sees to it alone otherwise
            os.kill(watchdog_pid, fate)
        asyncio.run(eventually(lambda: not site.survivors()))
        asyncio.run(eventually(lambda: not alive(launcher_pid) and not alive(watchdog_pid)))
        assert process.poll() is None


async def test_a_launcher_that_obeys_its_lease_is_left_alone(
    launcher: Launcher, site: Site
) -> None:
    async def survives(attempt: str, patience_s: float) -> bool:
        launcher.extend_lease(boottime() + 600)
        launched = await launcher.launch(site.marked(attempt, ESCAPE))
        old, deadline = launcher.pid, boottime()
        launcher.extend_lease(deadline, patience_s)
        with suppress(LauncherDied):
            assert (await launched.wait()).reason == "worker lost its ZooKeeper session"
        # Watchdog and agent have lost their patience, had they any reason to.
        await eventually(lambda: boottime() > deadline + 4 * patience_s)
        launcher.extend_lease(boottime() + 600)
        await (await launcher.launch(site.request(f"{attempt}-later", "true"))).wait()
        return launcher.pid == old

    # Once is enough: a busy machine may be too slow for the shorter ones.
    assert await survives("a", 0.5) or await survives("b", 3.0) or await survives("c", 10.0)


@pytest.mark.parametrize("file", ["comm", "cmdline"])
async def test_no_single_name_is_common_to_launcher_and_watchdog(
    launcher: Launcher, file: str
) -> None:
    pids = (watchdog_of(launcher.pid), launcher.pid)
    names = ["task-watchdog", "shoal-launcher"]
    await eventually(lambda: [shown(pid, file) for pid in pids] == names)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
async def test_signals_meant_for_the_agent_do_not_end_the_launcher(
    launcher: Launcher, site: Site, number: signal.Signals
) -> None:
    pid = launcher.pid
    os.mkfifo(site.work / "gate")
    launched = await launcher.launch(site.request("a", "sh", "-c", "read line < gate; echo $line"))
    for each in (pid, watchdog_of(pid)):
        os.kill(each, number)
    gate = os.open(site.work / "gate", os.O_RDWR)
    os.write(gate, b"still here\n")
    assert (await launched.wait()).exit_code == 0
    os.close(gate)
    assert site.log("a") == b"still here\n"
    assert launcher.pid == pid


async def test_the_launcher_is_out_of_reach_of_the_terminal(launcher: Launcher) -> None:
    assert os.getsid(launcher.pid) != os.getsid(0)
    assert os.getpgid(launcher.pid) != os.getpgrp()


def test_a_stopped_agent_cannot_stop_the_lease(
    site: Site, tmp_path: Path, cgroup: Path | None
) -> None:
    """The launcher enforces the lease by itself, whatever the agent does with its socket."""
    with start_agent(tmp_path, cgroup, "--lease-s", "2") as (process, _):
        process.send_signal(signal.SIGSTOP)
        asyncio.run(eventually(lambda: not site.survivors()))
        assert process.poll() is None
        asyncio.run(eventually(lambda: len(Spool(site.spool).pending()) == 2))
    records = [ExitRecord.from_json(entry.record) for entry in Spool(site.spool).pending()]
    assert {record.reason for record in records} == {"worker lost its ZooKeeper session"}
