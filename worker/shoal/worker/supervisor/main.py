"""Start file of the launcher: ``python -I -S main.py AGENT_FD [HELD_FD ...]``.

Run by path with the site machinery off, which makes it start in a fraction of the usual time. It
splits into three processes, each the parent of the next: two watchdogs (``watchdog.py``), which
kill what is left if those below them die before their time, and the *launcher*, which does the
work and ends itself in good order should a watchdog die.

Descriptors named as ``HELD_FD`` just stay open in all three until everything is over. An agent
that holds a lock on its data folder passes the lock's descriptor here: the next holder of the
lock knows that no process of the agent before is alive.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

# The folder that holds ``shoal/worker/supervisor``.
sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3)))

from shoal.worker.supervisor import proctree
from shoal.worker.supervisor.launcher import IGNORED_SIGNALS, Launcher
from shoal.worker.supervisor.watchdog import INNER, OUTER, PATIENCE, LeaseBoard, watch

LAUNCHER = "shoal-launcher"


def main(arguments: list[str]) -> int:
    """Run all three processes. Returns the exit status: 0 unless the launcher died too early."""
    agent_fd, *held = (int(argument) for argument in arguments)
    for fd in (agent_fd, *held):
        os.set_inheritable(fd, False)  # not for tasks
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    proctree.take_precedence()
    gc.freeze()  # keep the pages shared: nothing loaded so far is garbage
    board = LeaseBoard()
    lives: list[int] = []  # each ends when a watchdog does
    for name in (OUTER, INNER):
        proctree.become_subreaper()
        life, mine = os.pipe()
        pid = os.fork()
        if pid:
            for fd in (life, *lives, agent_fd):  # the agent must see the launcher's end, not ours
                os.close(fd)
            proctree.rename(name)
            return watch(pid, board, PATIENCE[name])
        os.close(mine)
        lives.append(life)
    proctree.become_subreaper()
    proctree.rename(LAUNCHER)
    board.show(os.getpid())
    Launcher(agent_fd, lives, board, niceness, held).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
