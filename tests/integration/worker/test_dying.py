"""Agent, launcher and guardian die in turn; no task process ever survives."""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from shoal.worker.attempt import ExitRecord, Outcome
from shoal.worker.launching import Launcher, LauncherDied
from shoal.worker.spool import Spool
from tests.integration.worker.attempt_site import Site, alive, eventually

SLEEP = "echo ready; exec sleep 1000"
ESCAPE = f"trap '' TERM; ( setsid env -i /bin/sh -c '{SLEEP}' & ) ; {SLEEP}"
ROOT = Path(__file__).parents[3]


def guardian_of(launcher_pid: int) -> int:
    stat = Path(f"/proc/{launcher_pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


@contextmanager
def start_agent(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run an agent with two attempts. Yields it and the launcher's number; kills it at the end."""
    command = [sys.executable, "-m", "tests.integration.worker.agent", str(folder), *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


@pytest.fixture
def agent(tmp_path: Path, site: Site) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with start_agent(tmp_path) as started:
        assert site.survivors()
        yield started


async def test_nothing_survives_an_agent_that_is_killed(
    agent: tuple[subprocess.Popen[str], int], site: Site, tmp_path: Path
) -> None:
    process, launcher_pid = agent
    guardian_pid = guardian_of(launcher_pid)
    process.kill()
    # A new agent on the same folder gets the lock only when everything of the old one is dead.
    with (tmp_path / "agent.lock").open("w") as lock:
        await asyncio.wait_for(asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX), 20)
    assert not site.survivors()
    await eventually(lambda: not alive(launcher_pid) and not alive(guardian_pid))

    records = [ExitRecord.from_json(entry.record) for entry in Spool(site.spool).pending()]
    assert {(each.id, each.outcome, each.reason) for each in records} == {
        ("a", Outcome.KILLED, "the worker agent ended"),
        ("b", Outcome.KILLED, "the worker agent ended"),
    }
    assert [each.context for each in records] == [{"epoch": 3}] * 2


async def test_nothing_survives_if_agent_and_launcher_are_killed(
    agent: tuple[subprocess.Popen[str], int], site: Site
) -> None:
    process, launcher_pid = agent
    process.kill()
    os.kill(launcher_pid, signal.SIGKILL)
    await eventually(lambda: not site.survivors())


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
        assert not site.survivors()  # already dead when we are told, not some time later
        again = await launcher.launch(site.request("a", "sh", "-c", "exit 3"))

    assert (await again.wait()).exit_code == 3
    assert launcher.pid != old
    assert [entry["event"] for entry in logs] == ["launcher died"]


async def test_a_replaced_launcher_keeps_the_lease(launcher: Launcher, site: Site) -> None:
    loop = asyncio.get_running_loop()
    launcher.extend_lease(loop.time() + 1.0)
    old = launcher.pid
    os.kill(old, signal.SIGKILL)
    await eventually(lambda: launcher.pid != old)
    launched = await launcher.launch(site.marked("a", SLEEP))
    assert (await launched.wait()).reason == "worker lost its ZooKeeper session"


async def test_a_killed_guardian_ends_its_launcher_in_good_order(
    launcher: Launcher, site: Site
) -> None:
    launched = await launcher.launch(site.marked("a", ESCAPE))
    await site.until_ready("a", 2)
    old = launcher.pid
    os.kill(guardian_of(old), signal.SIGKILL)

    record = await launched.wait()
    assert not site.survivors()
    assert record.outcome is Outcome.KILLED
    assert record.reason == "the launcher's guardian process ended"
    await eventually(lambda: launcher.pid != old)
    assert (await (await launcher.launch(site.request("b", "true"))).wait()).exit_code == 0


async def test_a_main_process_dies_with_launcher_and_guardian_together(
    launcher: Launcher, site: Site
) -> None:
    launched = await launcher.launch(site.marked("a", SLEEP))
    await site.until_ready("a")
    pid = launcher.pid
    os.kill(pid, signal.SIGSTOP)  # so that it cannot react to its guardian's death
    os.kill(guardian_of(pid), signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(LauncherDied):
        await launched.wait()
    await eventually(lambda: not site.survivors())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
async def test_signals_meant_for_the_agent_do_not_end_the_launcher(
    launcher: Launcher, site: Site, number: signal.Signals
) -> None:
    pid = launcher.pid
    os.mkfifo(site.work / "gate")
    launched = await launcher.launch(site.request("a", "sh", "-c", "read line < gate; echo $line"))
    os.kill(pid, number)
    os.kill(guardian_of(pid), number)
    gate = os.open(site.work / "gate", os.O_RDWR)
    os.write(gate, b"still here\n")
    assert (await launched.wait()).exit_code == 0
    os.close(gate)
    assert site.log("a") == b"still here\n"
    assert launcher.pid == pid


async def test_the_launcher_is_out_of_reach_of_the_terminal(launcher: Launcher) -> None:
    assert os.getsid(launcher.pid) != os.getsid(0)
    assert os.getpgid(launcher.pid) != os.getpgrp()


def test_a_stopped_agent_cannot_stop_the_lease(site: Site, tmp_path: Path) -> None:
    """The launcher enforces the lease by itself, whatever the agent does with its socket."""
    with start_agent(tmp_path, "--lease-s", "2") as (process, _):
        process.send_signal(signal.SIGSTOP)
        asyncio.run(eventually(lambda: not site.survivors()))
        assert process.poll() is None
        asyncio.run(eventually(lambda: len(Spool(site.spool).pending()) == 2))
    records = [ExitRecord.from_json(entry.record) for entry in Spool(site.spool).pending()]
    assert {record.reason for record in records} == {"worker lost its ZooKeeper session"}
