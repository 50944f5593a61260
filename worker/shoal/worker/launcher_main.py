"""Start file of the launcher: ``python -I -S launcher_main.py AGENT_FD [HELD_FD ...]``.

Run by path with the site machinery off, which makes it start in a fraction of the usual time. It
splits into two processes. The *guardian* adopts whatever the launcher might leave behind, waits,
and kills it if the launcher dies before its time; it is all that is left then, so it need not know
anything about attempts. The *launcher* does the work and ends itself should the guardian die.

Descriptors named as ``HELD_FD`` just stay open in both until everything is over. An agent that
holds a lock on its data folder passes the lock's descriptor here: whoever gets the lock next
knows that no process of the agent before is alive.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from shoal.worker import proctree  # found by the line above
from shoal.worker.launcher import IGNORED_SIGNALS, Launcher


def main(arguments: list[str]) -> int:
    """Run both processes. Returns the exit status: 0 unless the launcher died too early."""
    agent_fd, *held = (int(argument) for argument in arguments)
    for fd in (agent_fd, *held):
        os.set_inheritable(fd, False)  # not for tasks
    gc.freeze()  # keep the pages shared: nothing loaded so far is garbage
    proctree.become_subreaper()
    life_of_guardian, guardian = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(guardian)
        proctree.become_subreaper()
        Launcher(agent_fd, life_of_guardian).run()
        return 0
    os.close(life_of_guardian)
    os.close(agent_fd)  # the agent must see the launcher's end, not ours
    return guard(pid)


def guard(launcher_pid: int) -> int:
    """Wait for the launcher, then kill everything it left. Returns its exit status."""
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    status = os.waitstatus_to_exitcode(os.waitpid(launcher_pid, 0)[1])
    out_of_reach: set[int] = set()  # turned into another user's process
    while left := set(proctree.own_children()) - out_of_reach:
        for pid in left:
            try:
                proctree.kill_child(pid)
            except PermissionError:
                out_of_reach.add(pid)
        if left - out_of_reach:
            os.wait()  # the children of the one that ends come to us in turn
    return status & 0xFF


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
