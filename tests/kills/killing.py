"""What is killed for a case, and how it is found."""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from tests.chaos.cluster.cluster import Cluster
from tests.chaos.cluster.role import Role
from tests.kills.plan import Case, Target
from tests.kills.processes import Process, is_alive, jobs, parent_of, top
from tests.kills.sides.local import LocalSide


@dataclass
class Killer:
    """Kills processes of one cluster. ``shared``: when it hurt more than one case, and for which.

    Moments are monotonic seconds.
    """

    cluster: Cluster
    local: LocalSide
    shared: list[tuple[float, str]] = field(default_factory=list)

    async def kill(self, case: Case, partition: int) -> str:
        """Kill what the case says; return what that was, "" if it was not there any more."""
        match case.target:
            case Target.RUNNER | Target.SHIM:
                return self._below(case)
            case Target.MASTER:
                return await self._owner(case, partition)
            case _:
                return self._of_worker(case)

    def runner(self, case: Case) -> Process | None:
        """Return the process of the newest attempt that is alive."""
        attempts = jobs(self.local.latest, remote=False).get(case.marker, {})
        for attempt in sorted(attempts, key=int, reverse=True):
            if alive := [process for process in attempts[attempt] if is_alive(process)]:
                return top(alive)
        return None

    def _below(self, case: Case) -> str:
        runner = self.runner(case)
        if runner is None:
            return ""
        if case.target is Target.RUNNER:
            return f"process {runner.pid}" if _end([runner.pid]) else ""
        shim = parent_of(runner.pid)
        return f"shim {shim}" if shim in self._shims() and _end([shim]) else ""

    def _shims(self) -> set[int]:
        """Return the processes between launchers and tasks."""
        launchers = {role.launcher() for role in self.cluster.of("worker")} - {None}
        found = set()
        for launcher in launchers:
            with suppress(psutil.Error):
                found |= {child.pid for child in psutil.Process(launcher).children()}
        return found

    def _of_worker(self, case: Case) -> str:
        role = self._worker(case)
        if role is None:
            return ""
        match case.target:
            case Target.LAUNCHER:
                pids = [pid for pid in [role.launcher()] if pid]
            case Target.AGENT:
                pids = [role.pid]
            case _:
                # From above, so that nobody is left to tidy up.
                pids = [role.pid, *role.supervisors()]
                pids += [process.pid for process in role.tree() if process.pid not in pids]
        self.shared.append((time.monotonic(), case.id))
        return f"{case.target} of {role.name}" if _end(pids) else ""

    def _worker(self, case: Case) -> Role | None:
        runner = self.runner(case)
        above, seen = (runner.pid if runner else 0), 0
        roles = {role.pid: role for role in self.cluster.of("worker") if role.running}
        while above > 1 and above not in roles and seen < 10:
            above, seen = parent_of(above), seen + 1
        return roles.get(above)

    async def _owner(self, case: Case, partition: int) -> str:
        rows = await self.cluster.observer.rows()
        owner = rows[partition][0]
        members = {member.id: member.pid for member in await self.cluster.observer.masters()}
        for role in self.cluster.of("master"):
            if role.running and role.pid == members.get(owner or ""):
                self.shared.append((time.monotonic(), case.id))
                return role.name if _end([role.pid]) else ""
        return ""


def _end(pids: Iterable[int]) -> bool:
    """Kill processes; return whether one of them was there."""
    reached = False
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            reached = True
    return reached
