import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import shoal.worker.supervisor.proctree as proctree
from tests.support.waiting import START_S

#: A name that breaks careless parsers of /proc/PID/stat, with digits like a process number.
NASTY_NAME = "a) R 1 (1000"


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    program = tmp_path / NASTY_NAME
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "1000"]) as process:
        yield process
        process.kill()


def test_a_process_is_read_whatever_its_name(sleeper: subprocess.Popen[bytes]) -> None:
    process = proctree.read_process(sleeper.pid)
    assert process is not None
    assert (process.pid, process.parent) == (sleeper.pid, os.getpid())
    assert process.group == os.getpgrp()


def test_descendants_are_found_through_all_generations() -> None:
    process = proctree.Process
    machine = [process(4, 3, 4, 0), process(3, 2, 2, 0), process(2, 1, 2, 0), process(5, 1, 5, 0)]
    assert [found.pid for found in proctree.descendants(2, machine)] == [3, 4]
    assert proctree.descendants(9, machine) == []


def test_own_children_are_listed(sleeper: subprocess.Popen[bytes]) -> None:
    assert sleeper.pid in proctree.own_children()


def test_the_scan_sees_the_same_process(sleeper: subprocess.Popen[bytes]) -> None:
    assert proctree.read_process(sleeper.pid) in proctree.scan()


def test_a_reused_number_is_never_signalled(sleeper: subprocess.Popen[bytes]) -> None:
    process = proctree.read_process(sleeper.pid)
    assert process is not None
    proctree.signal_exactly(process._replace(start=process.start - 1), signal.SIGKILL)
    proctree.signal_exactly(process, signal.SIGTERM)
    assert sleeper.wait(60) == -signal.SIGTERM  # so the SIGKILL before did not reach it


@pytest.fixture
def family() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A child of ours, and the number of its own child."""
    with subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!; wait"], stdout=-1) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        yield parent, child
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        parent.kill()


PICKS = """
import os, subprocess
from shoal.worker.supervisor import proctree

proctree.become_subreaper()  # or orphans would go elsewhere
parent = subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!; wait"], stdout=-1)
child = int(parent.stdout.readline())
other = subprocess.Popen(["sleep", "1000"])
proctree.kill_below(lambda pid: pid == parent.pid)
print(parent.wait(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), other.poll())
other.kill()
"""


def test_picked_children_are_killed_with_all_below_and_no_other() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PICKS], capture_output=True, text=True, check=True, timeout=START_S
    )
    assert run.stdout.split() == ["-9", "-9", "None"]


def test_child_of_a_process_with_a_reused_number_is_left_alone(
    family: tuple[subprocess.Popen[bytes], int],
) -> None:
    parent, child = family
    process, known = proctree.read_process(child), proctree.read_process(parent.pid)
    assert process is not None
    assert known is not None
    pin = os.pidfd_open(child)
    other = known._replace(start=known.start - 1)  # had the number at the scan
    proctree._kill_relative(process, {parent.pid: other})
    proctree._kill_relative(process, {})
    signal.pidfd_send_signal(pin, 0)  # raises if it has ended
    proctree._kill_relative(process, {parent.pid: known})
    assert select.select([pin], [], [], 60)[0]
    os.close(pin)


def test_signalling_a_process_that_has_ended_does_nothing(
    sleeper: subprocess.Popen[bytes],
) -> None:
    process = proctree.read_process(sleeper.pid)
    assert process is not None
    sleeper.kill()
    sleeper.wait(60)
    proctree.signal_exactly(process, signal.SIGKILL)
    assert proctree.read_process(sleeper.pid) is None


def test_the_launcher_imports_only_light_modules() -> None:
    root = Path(proctree.__file__).parents[3]
    code = (
        f"import sys; sys.path.append({str(root)!r}); import shoal.worker.supervisor.main; "
        "print(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    heavy = {"asyncio", "dataclasses", "inspect", "logging", "pathlib", "socket", "structlog"}
    heavy |= {"subprocess", "tempfile", "threading", "typing"}
    assert heavy.isdisjoint(run.stdout.split())
