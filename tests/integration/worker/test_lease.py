"""The lease holds for every launcher of a worker, not only for the one that heard of it."""

import os
import signal
import time

import pytest

from shoal.worker.launching import Launcher, LaunchFailed
from tests.integration.worker.attempt_site import Site
from tests.waiting import eventually


async def test_new_launcher_refuses_what_the_old_lease_does_not_allow(
    launcher: Launcher, site: Site
) -> None:
    launcher.extend_lease(time.monotonic())
    old = launcher.pid
    os.kill(old, signal.SIGKILL)
    await eventually(lambda: launcher.pid != old)
    with pytest.raises(LaunchFailed, match="lost its ZooKeeper session"):
        await launcher.launch(site.request("a", "true"))
