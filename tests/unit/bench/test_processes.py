"""The benches count the processor time and the memory of every process of a role.

A process that they miss makes its role look cheap.
"""

import os
import subprocess
import sys

from bench.support import processes

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


SHARES = """
import mmap
def touched(memory):
    for page in range(0, len(memory), mmap.PAGESIZE):
        memory[page] = 1
    return memory
shared = touched(mmap.mmap(-1, 32 << 20))
first = touched(mmap.mmap(-1, 8 << 20, mmap.MAP_PRIVATE))
print('up', flush=True)
input()
second = touched(mmap.mmap(-1, 8 << 20, mmap.MAP_PRIVATE))
print('more', flush=True)
input()
"""


def test_shared_memory_is_told_from_private_memory() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", SHARES, "postgres"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    assert child.stdin
    assert child.stdout
    child.stdout.readline()
    before = processes.memory(os.getpid())["PostgreSQL"]
    child.stdin.write(b"\n")
    child.stdout.readline()
    after = processes.memory(os.getpid())["PostgreSQL"]
    child.communicate(b"\n")
    mib = 1 << 20
    assert before.shared >= 32 * mib
    assert before.bound >= 32 * mib
    assert 8 * mib <= before.private < 32 * mib
    assert 7 * mib <= after.private - before.private <= 9 * mib
    assert abs(after.shared - before.shared) <= mib
    assert before.shared <= before.bound
