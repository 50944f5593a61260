"""Control groups of attempts: who is in which, that nothing is left of them, and what they add."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.worker.processes.launcher import Launcher
from shoal.worker.processes.program import ProcessOutcome
from shoal.worker.supervisor import proctree
from tests.integration.worker.agent.kit import children
from tests.integration.worker.supervisor.attempt_site import Site, alive, parent_of
from tests.integration.worker.supervisor.groups import (
    WAYS,
    folder_of,
    group_of,
    groups_in,
    members,
    place,
)
from tests.support.waiting import eventually

SLEEP = "echo ready; exec sleep 1000"
ROOT = Path(__file__).parents[4]


@pytest.fixture
def cgroup() -> Iterator[Path | None]:
    with place("group") as folder:
        yield folder


@pytest.fixture
def folder(cgroup: Path | None) -> Path:
    assert cgroup is not None
    return cgroup


async def test_attempts_side_by_side_have_groups_of_their_own(
    launcher: Launcher, site: Site, folder: Path
) -> None:
    script = f"( setsid env -i /bin/sh -c '{SLEEP}' & ) ; {SLEEP}"
    launched = [await launcher.launch(site.marked(each, script)) for each in ("a", "b")]
    for each in ("a", "b"):
        await site.until_ready(each, 2)
    groups = [folder_of(group_of(each.pid)) for each in launched]
    assert len(set(groups)) == 2
    assert {group.parent for group in groups} == {folder}
    for one, group in zip(launched, groups, strict=True):
        shim = parent_of(one.pid)
        assert members(group) == {shim, *(child.pid for child in children(shim))}
        assert len(members(group)) == 3
    assert group_of(launcher.pid) == group_of(os.getpid())


async def test_program_is_in_its_group_from_its_first_moment(
    launcher: Launcher, site: Site, folder: Path
) -> None:
    """It cannot have started anything before."""
    for number in range(10):
        request = site.request(f"a{number}", "grep", "^0::", "/proc/self/cgroup")
        await (await launcher.launch(request)).wait()
        assert f"/{folder.name}/".encode() in site.log(f"a{number}")
    assert len(groups_in(folder)) == 1  # attempts one after another share one


async def test_group_goes_with_its_shim_and_the_next_shim_has_another(
    launcher: Launcher, site: Site, folder: Path
) -> None:
    seen = set()
    for number in range(3):
        await launcher.launch(site.marked(f"a{number}", SLEEP))
        await site.until_ready(f"a{number}")
        (group,) = groups_in(folder)
        seen.add(group)
        launched = launcher.running[f"a{number}"]
        await launcher.kill(f"a{number}", "stop", 0)
        await launched.wait()
        assert not group.exists()
    assert len(seen) == 3


async def test_group_of_an_idle_shim_that_was_killed_is_removed(
    launcher: Launcher, site: Site, folder: Path
) -> None:
    await (await launcher.launch(site.request("a", "true"))).wait()
    (shim,) = children(launcher.pid)
    group = folder_of(group_of(shim.pid))
    shim.kill()
    await eventually(lambda: not group.exists())


async def test_groups_that_an_attempt_makes_are_killed_and_removed_with_its_own(
    launcher: Launcher, site: Site, folder: Path
) -> None:
    launched = await launcher.launch(site.marked("a", f"( setsid sh -c '{SLEEP}' & ); {SLEEP}"))
    await site.until_ready("a", 2)
    group = folder_of(group_of(launched.pid))
    for name in ("one", "one/two"):
        (group / name).mkdir()
    (group / "one/two/cgroup.procs").write_text(str(launched.pid))
    await launcher.kill("a", "stop", 0)
    await launched.wait()
    assert not site.survivors()
    assert not group.exists()


@pytest.fixture
def guest() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


async def test_attempt_is_not_over_while_something_is_in_its_group(
    launcher: Launcher, site: Site, guest: subprocess.Popen[bytes]
) -> None:
    """Not even what came into it from outside of its tree."""
    launched = await launcher.launch(site.marked("a", SLEEP))
    await site.until_ready("a")
    group = folder_of(group_of(launched.pid))
    (group / "cgroup.procs").write_text(str(guest.pid))
    await launcher.kill("a", "stop", 0)
    await launched.wait()
    assert not group.exists()
    await eventually(lambda: not alive(guest.pid))


async def test_what_has_left_its_group_dies_with_its_tree(
    launcher: Launcher, site: Site, folder: Path
) -> None:
    launched = await launcher.launch(site.marked("a", f"setsid sh -c '{SLEEP}' & {SLEEP}"))
    await site.until_ready("a", 2)
    group = folder_of(group_of(launched.pid))
    for pid in members(group):  # the shim as well
        (group.parent / "../cgroup.procs").resolve().write_text(str(pid))
    await launcher.kill("a", "stop", 0)
    record = await launched.wait()
    assert not site.survivors()
    assert record.outcome is ProcessOutcome.KILLED


@pytest.fixture(params=["folder", "room"])
def unusable(request: pytest.FixtureRequest, tmp_path: Path, folder: Path) -> Path:
    """What was possible at the start of the worker may not be any more."""
    if request.param == "folder":
        return tmp_path / "no" / "group"
    folder.mkdir()
    (folder / "cgroup.max.descendants").write_text("0")
    return folder


async def test_attempts_run_without_groups_where_none_can_be_made(
    site: Site, unusable: Path
) -> None:
    async with Launcher(cgroup=unusable) as launcher:
        launched = await launcher.launch(
            site.marked("a", f"( setsid sh -c '{SLEEP}' & ) ; {SLEEP}")
        )
        await site.until_ready("a", 2)
        await launcher.kill("a", "stop", 0)
        assert (await launched.wait()).outcome is ProcessOutcome.KILLED
        assert not site.survivors()


#: A worker that may not signal processes of other users; arguments: folder, perhaps group.
WORKER = """
import asyncio, sys
from pathlib import Path
from shoal.worker.processes.launcher import Launcher
from tests.integration.worker.supervisor.attempt_site import Site

CHANGES = "import os, time; os.setuid(65534); print(os.getpid(), flush=True); time.sleep(1000)"

async def main(folder, *cgroup):
    site = Site(Path(folder))
    async with Launcher(cgroup=Path(*cgroup) if cgroup else None) as launcher:
        script = f"python3 -S -c '{CHANGES}' & wait"
        launched = await launcher.launch(site.request("a", "sh", "-c", script))
        while not site.log("a").endswith(b"\\n"):
            await asyncio.sleep(0.02)
        await launcher.kill("a", "stop", 0)
        print(site.log("a").decode().strip(), (await launched.wait()).reason, flush=True)
        sys.stdin.read()

asyncio.run(main(*sys.argv[1:]))
"""
_PR_CAPBSET_DROP, _CAP_KILL = 24, 5


@pytest.mark.skipif(os.geteuid() != 0, reason="a process of another user can be made by root alone")
@pytest.mark.parametrize("way", WAYS)
def test_process_that_became_another_users_dies_with_its_group(tmp_path: Path, way: str) -> None:
    """Where there are no groups nobody can kill it, and the record says so."""
    with place(way) as folder:
        arguments = [str(tmp_path), *([] if folder is None else [str(folder)])]
        with subprocess.Popen(
            [sys.executable, "-c", WORKER, *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: proctree.prctl(_PR_CAPBSET_DROP, _CAP_KILL),
        ) as worker:
            assert worker.stdout is not None
            pid, _, reason = worker.stdout.readline().strip().partition(" ")
            survives = alive(int(pid))
            if survives:
                os.kill(int(pid), signal.SIGKILL)
            worker.communicate()
        assert survives == ("runs as another user" in reason) == (way == "tree")
