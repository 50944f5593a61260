"""The lease holds whatever becomes of the launcher that heard of it."""

import os
import signal
import time
from contextlib import suppress

import pytest

from shoal.worker.launching import Launcher, LaunchFailed
from tests.integration.worker.attempt_site import Site, eventually
from tests.waiting import DEADLINE_S


async def test_new_launcher_refuses_what_the_old_lease_does_not_allow(
    launcher: Launcher, site: Site
) -> None:
    launcher.extend_lease(time.monotonic())
    old = launcher.pid
    os.kill(old, signal.SIGKILL)
    await eventually(lambda: launcher.pid != old, DEADLINE_S)
    with pytest.raises(LaunchFailed, match="lost its ZooKeeper session"):
        await launcher.launch(site.request("a", "true"))


async def test_tasks_of_a_launcher_that_stands_still_end_with_the_lease(
    launcher: Launcher, site: Site
) -> None:
    await launcher.launch(site.marked("a", "echo ready; exec sleep 1000"))
    await site.until_ready("a")
    launcher.extend_lease(time.monotonic() + 4)
    with suppress(LaunchFailed):  # an answer of any kind: the launcher knows the lease
        await (await launcher.launch(site.request("b", "true"))).wait()
    old = launcher.pid
    os.kill(old, signal.SIGSTOP)
    try:
        await eventually(lambda: not site.survivors(), DEADLINE_S)
    finally:
        with suppress(ProcessLookupError):
            os.kill(old, signal.SIGCONT)
