"""Run a command and leave nothing of it: ``python -m tests.mutations.contained SECONDS COMMAND``.

Mutated code may well leave processes behind; here they are all found, because this process is
their subreaper, and killed. Exits as the command did, or with ``TIME_IS_UP``.
"""

import os
import signal
import subprocess
import sys

from shoal.worker.supervisor.proctree import (
    PR_SET_PDEATHSIG,
    become_subreaper,
    kill_child,
    own_children,
    prctl,
)

TIME_IS_UP = 124


def main(arguments: list[str]) -> int:
    """Run the command. Returns its exit status."""
    limit_s, *command = arguments
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    become_subreaper()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    was_ended = False

    def end(*_: object) -> None:
        nonlocal was_ended
        was_ended = True
        process.kill()

    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    signal.setitimer(signal.ITIMER_REAL, float(limit_s))
    status = _wait_for(process.pid)
    signal.setitimer(signal.ITIMER_REAL, 0)
    _end_the_rest()
    return TIME_IS_UP if was_ended else status


def _wait_for(pid: int) -> int:
    """Return that child's exit status; reap the orphans that come to us meanwhile."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            return os.waitstatus_to_exitcode(status) & 0xFF


def _end_the_rest() -> None:
    while children := own_children():
        for pid in children:
            kill_child(pid)
        os.wait()  # the children of the one that ends come to us in turn


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
