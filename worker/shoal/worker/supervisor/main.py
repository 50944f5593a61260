"""Start file of the launcher: ``python -I -S main.py AGENT_FD BOARD_FD [HELD_FD ...]``.

Run by path with the site machinery off, which makes it start in a fraction of the usual time. It
splits into two processes: the *watchdog* (``watchdog.py``), which kills what is left if the
launcher dies before its time, and its child, the *launcher*, which does the work and ends itself
in good order should the watchdog die.

``BOARD_FD`` is the memory that both share with the agent. Descriptors named as ``HELD_FD`` just
stay open in both until everything is over. An agent that holds a lock on its data folder passes
the lock's descriptor here: the next holder of the lock knows that no process of the agent before
is alive.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

# The folder that holds ``shoal/worker/supervisor``.
sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3)))

from shoal.worker.supervisor import proctree
from shoal.worker.supervisor.cgroups import CGROUP_VARIABLE, Cgroup
from shoal.worker.supervisor.launcher import IGNORED_SIGNALS, LauncherLoop
from shoal.worker.supervisor.watchdog import WATCHDOG, LeaseBoard, watch

LAUNCHER = "shoal-launcher"


def main(arguments: list[str]) -> int:
    """Run both processes. Returns the exit status: 0 unless the launcher died too early."""
    agent_fd, board_fd, *held = (int(argument) for argument in arguments)
    for fd in (agent_fd, *held):
        os.set_inheritable(fd, False)  # not for tasks
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    proctree.take_precedence()
    wakeup = os.eventfd(0)
    board = LeaseBoard(board_fd, wakeup)
    os.close(board_fd)
    attempts = Cgroup(os.environ.get(CGROUP_VARIABLE))
    attempts.make()
    gc.freeze()  # keep the pages shared: nothing loaded so far is garbage
    proctree.become_subreaper()
    life, mine = os.pipe()  # ends when the watchdog does
    pid = os.fork()
    if pid:
        for fd in (life, agent_fd):  # the agent must see the launcher's end, not ours
            os.close(fd)
        proctree.rename(WATCHDOG)
        return watch(pid, board, wakeup, attempts)
    os.close(mine)
    proctree.become_subreaper()
    proctree.rename(LAUNCHER)
    LauncherLoop(agent_fd, life, board, niceness, held, attempts).run()
    attempts.clear()  # of shims without an attempt; neither watchdog nor agent need be alive
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
