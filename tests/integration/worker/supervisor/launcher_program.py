"""A worker agent reduced to its launcher; run it with ``python -m``, a folder as argument.

It locks ``agent.lock`` in the folder, starts two nasty attempts, prints the launcher's number and
waits to be killed.
"""

import argparse
import asyncio
import fcntl
from pathlib import Path

from shoal.worker.processes.launcher import Launcher
from shoal.worker.supervisor.clock import boottime
from shoal.worker.supervisor.proctree import become_subreaper
from tests.integration.worker.supervisor.attempt_site import Site

SLEEP = "echo ready; exec sleep 1000"


async def main(folder: Path, lease_s: float, cgroup: Path | None) -> None:
    site = Site(folder)
    with (folder / "agent.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        become_subreaper()
        async with Launcher(
            held_fds=[lock.fileno()], adopts_orphans=True, cgroup=cgroup
        ) as launcher:
            launcher.extend_lease(boottime() + 600)
            escape = f"trap '' TERM; ( setsid env -i /bin/sh -c '{SLEEP}' & ) ; {SLEEP}"
            for attempt_id in ("a", "b"):
                await launcher.launch(site.marked(attempt_id, escape, context={"epoch": 3}))
                await site.until_ready(attempt_id, 2)
            launcher.extend_lease(boottime() + lease_s)
            await launcher.try_to_start()  # the lease has been read before that is answered
            print(launcher.pid, flush=True)  # noqa: T201 - for the test
            await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lease-s", type=float, default=600.0)
    parser.add_argument("--cgroup", type=Path)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.folder, arguments.lease_s, arguments.cgroup))
