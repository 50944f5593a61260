"""Whose processor time the benches count."""

import os
import subprocess
import sys

from bench import processes

BURN = "import time; t = time.process_time()\nwhile time.process_time() < t + 0.3: pass"


def test_time_of_children_counts_and_ours_is_apart() -> None:
    with processes.metered() as used:
        child = subprocess.Popen(
            [sys.executable, "-c", f"{BURN}\nprint('done', flush=True)\ninput()", "zookeeper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert child.stdout
        child.stdout.readline()
    child.communicate(b"\n")
    assert used["ZooKeeper"] >= 0.28  # it is known by its command line
    assert processes.BENCH in used


def test_memory_of_children_is_found() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "print('up', flush=True); input()", "roles master"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout
    child.stdout.readline()
    found = processes.proportional_bytes(os.getpid())
    child.communicate(b"\n")
    assert found["master"] > 1_000_000
