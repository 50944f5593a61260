"""What the suite takes from processes is really taken, and restored."""

import subprocess
from pathlib import Path

import pytest

from tests.chaos.cluster.sandbox import FewProcesses, Refused

# For each line of its input it starts a process, and says whether it could.
_PROGRAM = """
import os, sys
for line in sys.stdin:
    try:
        pid = os.fork()
    except BlockingIOError:
        print("no", flush=True)
        continue
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    print("yes", flush=True)
"""


def test_process_without_room_starts_none_until_it_is_free_again() -> None:
    with subprocess.Popen(
        ["python3", "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout

        def starts() -> str:
            assert process.stdin
            assert process.stdout
            process.stdin.write("\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        groups = Path(f"/proc/{process.pid}/cgroup")
        assert starts() == "yes"
        before = groups.read_text()
        try:
            group = FewProcesses(process.pid)
        except Refused as why:
            process.kill()
            pytest.skip(str(why))
        assert (starts(), group.refused) == ("no", 1)
        group.free()
        assert starts() == "yes"
        assert groups.read_text() == before
        process.stdin.close()
