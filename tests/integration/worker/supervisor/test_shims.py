"""The processes between launcher and attempts: used again, and of no importance when they die."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from shoal.worker.processes.launcher import Launched, Launcher
from shoal.worker.processes.program import ExitRecord, ProcessOutcome
from shoal.worker.supervisor.clock import boottime
from shoal.worker.supervisor.shim.shim import SHIM
from shoal.worker.supervisor.shims import MOST_IDLE
from tests.integration.worker.agent.kit import children
from tests.integration.worker.supervisor.attempt_site import Site, alive, parent_of, shown
from tests.integration.worker.supervisor.groups import WAYS, place
from tests.support.waiting import DEADLINE_S, eventually

SLEEP = "echo ready; exec sleep 1000"
ESCAPE = f"trap '' TERM; ( setsid env -i /bin/sh -c '{SLEEP}' & ) ; {SLEEP}"


@pytest.fixture(params=WAYS)
def cgroup(request: pytest.FixtureRequest) -> Iterator[Path | None]:
    with place(request.param) as folder:
        yield folder


async def run(launcher: Launcher, site: Site, attempt_id: str, script: str) -> ExitRecord:
    request = site.request(attempt_id, "/bin/sh", "-c", script)
    return await (await launcher.launch(request)).wait()


async def until_dead(pid: int) -> None:
    await eventually(lambda: not alive(pid))


def shims(launcher: Launcher) -> list[int]:
    return [child.pid for child in children(launcher.pid)]


async def test_attempts_one_after_another_share_one_process(launcher: Launcher, site: Site) -> None:
    used = set()
    for number in range(20):
        await run(launcher, site, f"a{number}", "echo $PPID")
        used.add(int(site.log(f"a{number}")))
    assert used == set(shims(launcher))
    assert len(used) == 1


async def test_attempts_side_by_side_share_nothing(launcher: Launcher, site: Site) -> None:
    launched = [await launcher.launch(site.marked(each, SLEEP)) for each in ("a", "b")]
    assert len({parent_of(each.pid) for each in launched}) == 2
    assert {parent_of(each.pid) for each in launched} == set(shims(launcher))


async def test_few_shims_wait_for_work_when_there_is_none(launcher: Launcher, site: Site) -> None:
    many = 2 * MOST_IDLE + 3
    os.mkfifo(site.work / "gate")
    gate = os.open(site.work / "gate", os.O_RDWR)
    requests = [site.request(f"a{n}", "sh", "-c", "read line < gate") for n in range(many)]
    launched = await asyncio.gather(*(launcher.launch(request) for request in requests))
    assert len(shims(launcher)) == many
    os.write(gate, b"\n" * many)
    await asyncio.gather(*(each.wait() for each in launched))
    os.close(gate)
    await eventually(lambda: len(shims(launcher)) == MOST_IDLE)


async def test_shim_goes_by_a_name_of_its_own_and_is_in_no_ones_way(
    launcher: Launcher, site: Site
) -> None:
    await run(launcher, site, "a", "true")
    (shim,) = shims(launcher)
    assert [shown(shim, file) for file in ("comm", "cmdline")] == [SHIM] * 2
    assert os.readlink(f"/proc/{shim}/cwd") == "/"
    # Three streams and two pipes: nothing of the launcher's, or of an attempt's. It may just have
    # a file of /proc open, to see what the attempt has left.
    await eventually(lambda: len(os.listdir(f"/proc/{shim}/fd")) == 5)


async def test_attempt_whose_shim_is_killed_ends_with_all_its_processes_and_no_other(
    launcher: Launcher, site: Site
) -> None:
    neighbour = await launcher.launch(site.request("neighbour", "sleep", "1000"))
    launched = await launcher.launch(site.marked("a", ESCAPE))
    await site.until_ready("a", 2)
    os.kill(parent_of(launched.pid), signal.SIGKILL)
    record = await asyncio.wait_for(launched.wait(), DEADLINE_S)
    assert not site.survivors()
    assert (record.outcome, record.signal) == (ProcessOutcome.FAILED, signal.SIGKILL)
    assert record.durable
    assert record.max_rss_kb > 0
    assert ExitRecord.from_json(json.loads((site.spool / "a.json").read_text())) == record
    assert alive(neighbour.pid)
    assert (await run(launcher, site, "b", "exit 3")).exit_code == 3


async def test_idle_shim_that_was_killed_costs_nothing(launcher: Launcher, site: Site) -> None:
    for number in range(5):
        assert (await run(launcher, site, f"a{number}", "exit 3")).exit_code == 3
        (shim,) = shims(launcher)
        os.kill(shim, signal.SIGKILL)
        await until_dead(shim)


@pytest.mark.parametrize("grace_s", [0.0, 0.3], ids=["at once", "with grace"])
async def test_attempt_whose_shim_stands_still_can_be_killed(
    launcher: Launcher, site: Site, grace_s: float
) -> None:
    launched = await launcher.launch(site.marked("a", ESCAPE))
    await site.until_ready("a", 2)
    os.kill(parent_of(launched.pid), signal.SIGSTOP)
    await launcher.kill("a", "enough", grace_s)
    record = await launched.wait()
    assert not site.survivors()
    assert (record.outcome, record.reason) == (ProcessOutcome.KILLED, "enough")


async def test_shim_that_stands_still_cannot_stop_the_lease(launcher: Launcher, site: Site) -> None:
    launcher.extend_lease(boottime() + 600)
    launched = await launcher.launch(site.marked("a", ESCAPE))
    await site.until_ready("a", 2)
    os.kill(parent_of(launched.pid), signal.SIGSTOP)
    launcher.extend_lease(boottime(), patience_s=60)
    assert (await launched.wait()).reason == "worker lost its ZooKeeper session"
    assert not site.survivors()


async def test_shim_that_is_stopped_and_then_killed_makes_way_for_what_the_program_said(
    launcher: Launcher, site: Site
) -> None:
    """The program has ended meanwhile: how it did is not lost."""
    os.mkfifo(site.work / "gate")
    launched = await launcher.launch(site.request("a", "sh", "-c", "read line < gate; exit 7"))
    shim = parent_of(launched.pid)
    os.kill(shim, signal.SIGSTOP)
    (site.work / "gate").write_text("\n")
    await until_dead(launched.pid)
    os.kill(shim, signal.SIGKILL)
    record = await launched.wait()
    assert (record.outcome, record.exit_code) == (ProcessOutcome.FAILED, 7)


async def test_timeout_of_an_attempt_that_is_over_does_not_hit_the_next_one(
    launcher: Launcher, site: Site
) -> None:
    timeout_s, begun = 2.0, time.monotonic()
    first = await launcher.launch(site.request("a", "true", timeout_s=timeout_s))
    await first.wait()
    second = await launcher.launch(site.marked("b", SLEEP, timeout_s=600.0))
    await eventually(lambda: time.monotonic() > begun + timeout_s)
    await run(launcher, site, "c", "true")  # the launcher has been busy since
    assert alive(second.pid)


def trap_of(site: Site, attempt_id: str) -> Path:
    """Where a named pipe blocks the process that stores that record for ever: no reader comes."""
    return site.spool / f".{attempt_id}.json.tmp"


async def end_in_vain(launcher: Launcher, site: Site, attempt_id: str, script: str) -> Launched:
    """Return an attempt that has ended, and whose end cannot be stored."""
    site.spool.mkdir(exist_ok=True)
    os.mkfifo(trap_of(site, attempt_id))
    os.mkfifo(site.work / "gate")
    request = site.request(attempt_id, "sh", "-c", f"read line < gate; {script}")
    launched = await launcher.launch(request)
    (site.work / "gate").write_text("\n")
    await until_dead(launched.pid)
    return launched


async def until_stuck(launcher: Launcher, known: Collection[int] = ()) -> int:
    """Return the number of the only shim that is not ``known``, as soon as it waits."""

    def waiting() -> list[int]:
        return [pid for pid in shims(launcher) if pid not in known and sleeps(pid)]

    await eventually(waiting)
    (pid,) = waiting()
    return pid


def sleeps(pid: int) -> bool:
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "S"
    return False


async def test_end_is_stored_by_another_shim_if_the_first_dies_over_it(
    launcher: Launcher, site: Site
) -> None:
    launched = await end_in_vain(launcher, site, "a", "exit 4")
    shim = await until_stuck(launcher)
    trap_of(site, "a").unlink()
    os.kill(shim, signal.SIGKILL)
    record = await launched.wait()
    assert (record.exit_code, record.durable) == (4, True)
    assert ExitRecord.from_json(json.loads((site.spool / "a.json").read_text())) == record


async def test_end_that_could_not_be_stored_is_reported_all_the_same(
    launcher: Launcher, site: Site
) -> None:
    launched = await end_in_vain(launcher, site, "a", "exit 4")
    first = await until_stuck(launcher)
    os.kill(first, signal.SIGKILL)
    os.kill(await until_stuck(launcher, {first}), signal.SIGKILL)
    record = await launched.wait()
    assert (record.exit_code, record.durable) == (4, False)
    assert "cannot store the exit record" in record.reason


async def test_disk_that_hangs_holds_up_no_other_attempt(launcher: Launcher, site: Site) -> None:
    launched = await end_in_vain(launcher, site, "a", "exit 0")
    await until_stuck(launcher)
    assert (await run(launcher, site, "b", "exit 5")).exit_code == 5
    reader = os.open(trap_of(site, "a"), os.O_RDONLY)  # the disk answers again
    assert (await launched.wait()).outcome is ProcessOutcome.SUCCEEDED
    os.close(reader)


def sigterm_first(record: ExitRecord) -> bool:
    return record.signal == signal.SIGTERM


@pytest.mark.parametrize(
    ("script", "kept"),
    [
        (
            "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done",
            lambda r: r.exit_code == 0,
        ),
        ("echo ready; sleep 1000", sigterm_first),
    ],
    ids=["obeys", "dies"],
)
async def test_shim_of_an_attempt_that_obeyed_is_used_again(
    launcher: Launcher, site: Site, script: str, kept: Callable[[ExitRecord], bool]
) -> None:
    launched = await launcher.launch(site.marked("a", script))
    await site.until_ready("a")
    shim = parent_of(launched.pid)
    await launcher.kill("a", "stop", 600)
    record = await launched.wait()
    assert (record.outcome, record.reason) == (ProcessOutcome.KILLED, "stop")
    assert kept(record)
    assert (await run(launcher, site, "b", "echo $PPID")).outcome is ProcessOutcome.SUCCEEDED
    assert int(site.log("b")) == shim
