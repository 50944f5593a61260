import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import shoal.worker.proctree as proctree

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
    root = Path(proctree.__file__).parents[2]
    code = (
        f"import sys; sys.path.append({str(root)!r}); import shoal.worker.launcher_main; "
        "print(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    heavy = {"asyncio", "dataclasses", "inspect", "logging", "pathlib", "socket", "structlog"}
    heavy |= {"subprocess", "tempfile", "threading", "typing"}
    assert heavy.isdisjoint(run.stdout.split())
