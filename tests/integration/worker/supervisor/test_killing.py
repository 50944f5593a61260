"""Killed means dead: whatever an attempt has started, and nothing else."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.worker.processes.launcher import Launcher, LaunchFailed
from shoal.worker.processes.program import ProcessOutcome
from shoal.worker.supervisor.causes import EndCause
from shoal.worker.supervisor.clock import boottime
from tests.integration.worker.supervisor.attempt_site import Site, alive
from tests.integration.worker.supervisor.groups import WAYS, place
from tests.support.waiting import DEADLINE_S, eventually

SLEEP = "echo ready; exec sleep 1000"


@pytest.fixture(params=WAYS)
def cgroup(request: pytest.FixtureRequest) -> Iterator[Path | None]:
    with place(request.param) as folder:
        yield folder


#: Scripts that detach in every way we know; each prints "ready" once per process that must die.
NASTY = {
    "plain": (SLEEP, 1),
    "background": (f"({SLEEP}) & ({SLEEP}) & wait", 2),
    "double fork": (f"( ({SLEEP}) & ) ; {SLEEP}", 2),
    "setsid": (f"setsid sh -c '{SLEEP}' & {SLEEP}", 2),
    "double fork and setsid": (f"( setsid sh -c '{SLEEP}' & ) ; {SLEEP}", 2),
    "nohup": (f"nohup sh -c '{SLEEP}' & {SLEEP}", 2),
    "empty environment": (f"env -i setsid /bin/sh -c '{SLEEP}' & {SLEEP}", 2),
    "ignored TERM": (f"trap '' TERM HUP INT; setsid sh -c '{SLEEP}' & {SLEEP}", 2),
    "stopped": ("echo ready; kill -STOP $$; sleep 1000", 1),
    "its own reaper": (
        'python3 -c "import ctypes, os; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0);'
        "os.fork() or (os.setsid(), os.fork()); print('ready', flush=True);"
        "os.execvp('sleep', ['sleep', '1000'])\"",
        3,
    ),
    "deep": (f'sh -c "setsid sh -c \'setsid sh -c \\"{SLEEP}\\"\' & sleep 1000"', 1),
}


@pytest.mark.parametrize("grace_s", [0.0, 0.3], ids=["at once", "with grace"])
@pytest.mark.parametrize("name", NASTY)
async def test_no_process_survives_a_kill(
    launcher: Launcher, site: Site, name: str, grace_s: float
) -> None:
    script, count = NASTY[name]
    launched = await launcher.launch(site.marked("nasty", script))
    await site.until_ready("nasty", count)

    assert await launcher.kill("nasty", "stopped by the user", grace_s)
    record = await launched.wait()

    assert not site.survivors()
    assert (record.outcome, record.reason) == (ProcessOutcome.KILLED, "stopped by the user")
    assert record.cause is EndCause.KILL
    assert record.signal is not None


@pytest.mark.parametrize("name", sorted(set(NASTY) - {"plain", "stopped", "deep"}))
async def test_nothing_outlives_a_main_process_that_ends_by_itself(
    launcher: Launcher, site: Site, name: str
) -> None:
    script, count = NASTY[name]
    # The nasty tree is a child here; the main process leaves it behind.
    script = f"( {script} ) & while [ $(grep -c ready log) -lt {count} ]; do :; done; exit 5"
    log = site.work / "log"
    launched = await launcher.launch(site.marked("nasty", script, log_path=log))
    record = await launched.wait()

    assert not site.survivors()
    assert log.read_text().count("ready\n") == count  # they did live
    assert (record.outcome, record.exit_code) == (ProcessOutcome.FAILED, 5)


async def test_a_chain_of_processes_that_keeps_running_away_is_caught(
    launcher: Launcher, site: Site
) -> None:
    runaway = (
        "import os, time\n"
        "print('ready', flush=True)\n"
        "end = time.monotonic() + 60\n"  # a safety net for the machine if the test fails
        "while time.monotonic() < end:\n"
        "    if os.fork(): os._exit(0)\n"
        "    os.setsid()\n"
    )
    (site.work / "runaway.py").write_text(runaway)
    script = "for i in 1 2 3; do python3 -S -E runaway.py & done; exec sleep 1000"
    launched = await launcher.launch(site.marked("chain", script))
    await site.until_ready("chain", 3)
    await launcher.kill("chain", "enough", 0)
    await launched.wait()
    assert not site.survivors()


# Each process holds one of 100 places, until it dies, and goes on forking all the time.
BOMB = """
import fcntl, os, random, signal, time

places = os.open("places", os.O_RDWR | os.O_CREAT)

def takes_a_place():
    for _ in range(5):
        try:
            fcntl.lockf(places, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, random.randrange(100))
            return True
        except OSError:
            pass

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
end = time.monotonic() + 90  # a safety net for the machine if the test fails
takes_a_place()
print("ready", flush=True)
while time.monotonic() < end:
    if os.fork():
        time.sleep(0.01)
        continue
    random.seed()
    os.setsid()
    if not takes_a_place():
        os._exit(0)
    print("ready", flush=True)
"""


async def test_a_fork_bomb_is_killed_faster_than_it_grows(launcher: Launcher, site: Site) -> None:
    (site.work / "bomb.py").write_text(BOMB)
    launched = await launcher.launch(site.marked("bomb", "exec python3 -S -E bomb.py"))
    neighbour = await launcher.launch(site.request("neighbour", "sleep", "1000"))
    await site.until_ready("bomb", 50)
    await launcher.kill("bomb", "enough", 0)
    record = await asyncio.wait_for(launched.wait(), DEADLINE_S)
    assert record.outcome is ProcessOutcome.KILLED
    assert not site.survivors()
    assert alive(neighbour.pid)


async def test_tasks_run_with_the_priority_of_the_worker(launcher: Launcher, site: Site) -> None:
    """The launcher may take precedence, they do not."""
    show = "import os; print(os.getpriority(os.PRIO_PROCESS, 0))"
    await (await launcher.launch(site.request("a", "python3", "-S", "-c", show))).wait()
    assert int(site.log("a")) == os.getpriority(os.PRIO_PROCESS, 0)


DECOY = "1_1000.sh"  # digits that careless parsers take for process numbers


@pytest.fixture
def decoy(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process like those of the attempts, and a child of it, but started by another process."""
    script = tmp_path / DECOY
    script.write_text("sleep 1000 & echo ready; wait")
    with subprocess.Popen(["sh", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (sleeper,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield process
        assert alive(int(sleeper))
        os.kill(int(sleeper), signal.SIGKILL)
        process.kill()


async def test_processes_outside_the_attempt_are_left_alone(
    launcher: Launcher, site: Site, decoy: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    script = str(tmp_path / DECOY)
    neighbour = await launcher.launch(site.request("neighbour", "sh", script))
    victim = await launcher.launch(site.marked("victim", f"setsid sh '{script}' & wait"))
    await site.until_ready("victim")
    await eventually(lambda: b"ready\n" in site.log("neighbour"))

    await launcher.kill("victim", "test", 0.2)
    await victim.wait()

    assert not site.survivors()
    assert alive(decoy.pid)
    assert alive(neighbour.pid)
    assert set(launcher.running) == {"neighbour"}


async def test_a_start_that_hangs_can_be_killed(launcher: Launcher, site: Site) -> None:
    os.mkfifo(site.work / "fifo")  # opening it blocks until another process writes
    launching = asyncio.create_task(
        launcher.launch(site.request("hangs", "true", stdin_path=site.work / "fifo"))
    )
    # Meanwhile the launcher serves others.
    await (await launcher.launch(site.request("other", "true"))).wait()
    assert not launching.done()
    await launcher.kill("hangs", "test", 0.1)
    assert (await (await launching).wait()).outcome is ProcessOutcome.KILLED


async def test_a_program_may_clean_up_within_the_grace_period(
    launcher: Launcher, site: Site
) -> None:
    script = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    launched = await launcher.launch(site.marked("a", script))
    await site.until_ready("a")
    await launcher.kill("a", "stop", 60)
    record = await launched.wait()
    assert site.log("a").endswith(b"cleaned\n")  # shells may also announce the signal
    assert (record.outcome, record.exit_code) == (ProcessOutcome.KILLED, 0)


async def test_children_keep_the_grace_period_when_their_parent_ends_first(
    launcher: Launcher, site: Site
) -> None:
    child = "trap 'sleep 0.3; echo cleaned; exit' TERM; echo ready; while :; do sleep 0.05; done"
    # One detached child in a session of its own, one in the group of the main process.
    script = f'setsid sh -c "{child}" & sh -c "{child}" & wait'
    launched = await launcher.launch(site.marked("a", script))
    await site.until_ready("a", 2)
    await launcher.kill("a", "stop", 60)
    await eventually(lambda: not alive(launched.pid))  # the shell does not trap TERM
    # Attempts that end meanwhile do not shorten it.
    await (await launcher.launch(site.request("b", "sh", "-c", "sleep 1000 & exit"))).wait()
    record = await launched.wait()
    assert site.log("a").count(b"cleaned\n") == 2
    assert record.signal == signal.SIGTERM


async def test_detached_processes_live_as_long_as_their_own_attempt(
    launcher: Launcher, site: Site
) -> None:
    child = "trap 'echo asked; exit' TERM; echo ready; while :; do sleep 0.05; done"
    script = f'( setsid sh -c "{child}" & ) ; while :; do sleep 0.05; done'
    launched = await launcher.launch(site.marked("a", script))
    await site.until_ready("a")
    # The end of another attempt, with leftovers of its own, is none of its business ...
    other = await launcher.launch(site.request("b", "sh", "-c", "setsid sleep 1000 & exit"))
    await other.wait()
    assert b"asked" not in site.log("a")
    assert site.survivors()
    # ... and it is still known as part of its attempt: it gets the chance to clean up.
    await launcher.kill("a", "stop", 60)
    await launched.wait()
    assert b"asked\n" in site.log("a")


async def test_a_second_kill_shortens_the_grace_period(launcher: Launcher, site: Site) -> None:
    launched = await launcher.launch(site.marked("a", f"trap '' TERM; {SLEEP}"))
    await site.until_ready("a")
    await launcher.kill("a", "first", 600)
    await launcher.kill("a", "second", 0)
    record = await asyncio.wait_for(launched.wait(), DEADLINE_S)
    assert (record.reason, record.signal) == ("first", signal.SIGKILL)


async def test_killing_what_is_not_running_is_harmless(launcher: Launcher, site: Site) -> None:
    assert not await launcher.kill("unknown", "x", 0)
    await (await launcher.launch(site.request("a", "true"))).wait()
    assert not await launcher.kill("a", "x", 0)


async def test_many_attempts_are_killed_together(launcher: Launcher, site: Site) -> None:
    ids = [f"a{number}" for number in range(60)]
    script = f"( setsid sh -c '{SLEEP}' & ) ; {SLEEP}"
    launched = [await launcher.launch(site.marked(each, script)) for each in ids]
    for each in ids:
        await site.until_ready(each, 2)
    await asyncio.gather(*(launcher.kill(each, "all", 0.2) for each in ids))
    records = await asyncio.gather(*(each.wait() for each in launched))
    assert not site.survivors()
    assert {record.outcome for record in records} == {ProcessOutcome.KILLED}


async def test_a_timeout_ends_the_attempt_as_failed(launcher: Launcher, site: Site) -> None:
    script = f"trap '' TERM; setsid sh -c '{SLEEP}' & {SLEEP}"
    # Long enough for both processes to come up; on a very busy machine that takes its time.
    for name, timeout_s in (("a", 5), ("b", 30), ("c", 100)):
        request = site.marked(name, script, timeout_s=timeout_s, timeout_grace_s=0.2)
        record = await (await launcher.launch(request)).wait()
        if site.log(name).count(b"ready\n") == 2:
            break
    assert site.log(name).count(b"ready\n") == 2
    assert not site.survivors()
    assert (record.outcome, record.timed_out) == (ProcessOutcome.FAILED, True)
    assert record.cause is EndCause.TIMEOUT
    assert record.reason == f"timed out after {timeout_s} s"
    assert record.finished_at - record.started_at >= timeout_s + 0.2


async def test_an_attempt_in_time_is_not_timed_out(launcher: Launcher, site: Site) -> None:
    record = await (await launcher.launch(site.request("a", "true", timeout_s=600))).wait()
    assert (record.outcome, record.timed_out) == (ProcessOutcome.SUCCEEDED, False)


async def test_a_lease_that_runs_out_kills_everything_and_refuses_more(
    launcher: Launcher, site: Site
) -> None:
    launcher.extend_lease(boottime() + 600)
    launched = await launcher.launch(site.marked("a", NASTY["ignored TERM"][0]))
    await site.until_ready("a", 2)

    deadline = boottime() + 0.3
    launcher.extend_lease(deadline)
    record = await launched.wait()

    assert boottime() >= deadline
    assert not site.survivors()
    assert record.outcome is ProcessOutcome.KILLED
    assert record.reason == "worker lost its ZooKeeper session"
    assert record.cause is EndCause.LEASE_LOST
    with pytest.raises(LaunchFailed, match="lost its ZooKeeper session") as refusal:
        await launcher.launch(site.request("b", "true"))
    assert refusal.value.cause is EndCause.LEASE_LOST
    launcher.extend_lease(boottime() + 600)
    assert (await (await launcher.launch(site.request("b", "true"))).wait()).exit_code == 0


async def test_a_lease_that_is_extended_lets_attempts_live(launcher: Launcher, site: Site) -> None:
    launcher.extend_lease(boottime() + 0.3)
    launcher.extend_lease(boottime() + 600)
    launched = await launcher.launch(site.request("a", "sleep", "0.6"))
    assert (await launched.wait()).outcome is ProcessOutcome.SUCCEEDED


async def test_cancelling_a_wait_leaves_the_attempt_alone(launcher: Launcher, site: Site) -> None:
    launched = await launcher.launch(site.marked("a", SLEEP))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(launched.wait(), 0.05)
    await site.until_ready("a")
    await launcher.kill("a", "test", 0)
    assert (await launched.wait()).reason == "test"


async def test_cancelling_a_launch_kills_the_attempt(launcher: Launcher, site: Site) -> None:
    os.mkfifo(site.work / "fifo")  # opening it blocks, so the launch does not complete
    launching = asyncio.create_task(
        launcher.launch(site.request("a", "true", stdin_path=site.work / "fifo"))
    )
    await eventually(lambda: "a" in launcher.running)
    launching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await launching
    await eventually(lambda: launcher.running == {})


async def test_closing_ends_all_attempts_and_reports_them(site: Site, cgroup: Path | None) -> None:
    async with Launcher(cgroup=cgroup) as launcher:
        polite = await launcher.launch(
            site.marked("a", "trap 'echo cleaned; exit' TERM; echo ready; while :; do :; done")
        )
        stubborn = await launcher.launch(site.marked("b", NASTY["ignored TERM"][0]))
        await site.until_ready("a")
        await site.until_ready("b", 2)
        await launcher.close("the worker is stopping", grace_s=5.0)
        records = [await polite.wait(), await stubborn.wait()]
    assert not site.survivors()
    assert site.log("a") == b"ready\ncleaned\n"
    assert {record.reason for record in records} == {"the worker is stopping"}
    assert {record.cause for record in records} == {EndCause.SHUTDOWN}
