"""How long the watchdog sleeps, and what wakes it up."""

import os

from shoal.worker.supervisor.clock import boottime
from shoal.worker.supervisor.watchdog import LOOK_AGAIN_S, LeaseBoard, board_fd, wait_ms


def test_watchdog_sleeps_while_nothing_runs_and_is_woken_by_news() -> None:
    memory, wakeup = board_fd(), os.eventfd(0, os.EFD_NONBLOCK)
    launcher, watchdog = LeaseBoard(memory, wakeup), LeaseBoard(memory)

    def woken() -> bool:
        try:
            return os.eventfd_read(wakeup) > 0
        except BlockingIOError:
            return False

    try:
        assert wait_ms(watchdog) is None  # no lease: nothing is left that must die
        launcher.expect_end(boottime() + 100, 1.0)
        assert woken()
        assert (wait_ms(watchdog) or 0) > 90_000
        launcher.note_use(in_use=True)
        assert woken()  # else it would sleep until the end of a lease that may end sooner now
        assert (wait_ms(watchdog) or 0) <= LOOK_AGAIN_S * 1000 + 1
        launcher.expect_end(boottime() + 200, 1.0)
        launcher.note_use(in_use=False)
        assert not woken()
        launcher.expect_end(boottime() + 50, 1.0)
        assert woken()
        assert (wait_ms(watchdog) or 0) < 60_000
        launcher.all_dead()
        assert wait_ms(watchdog) is None
    finally:
        os.close(memory)
        os.close(wakeup)
