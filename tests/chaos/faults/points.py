"""Deaths and lost answers at named points in the code (``shoal.runtime.failpoints``)."""

import asyncio
import random
import signal
import time
from collections.abc import Mapping

from shoal.runtime import failpoints
from tests.chaos.cluster.cluster import START_S, Cluster
from tests.chaos.faults.fault import effects
from tests.chaos.faults.processes import RoleFault
from tests.chaos.faults.purges import OPEN, OVER
from tests.chaos.judging.history import History
from tests.chaos.observer import View
from tests.chaos.workload.rest import Api

_DEATH_S = 45.0  # for the process to come to the point
_LOOK_S = 0.05
# Points that are passed often: which hit it is, is left to chance.
_OFTEN = ("store.", "dispatch.", "fetch.", "report.", "claim.", "launch.", "record.")
_MOST_HITS = 5
_ANSWERS = 10  # to be lost
_STILL = b"standing still for "
_FAILING_T = 5.0  # session timeouts for points to be passed


class _Armed(RoleFault):
    """The role is restarted with points armed, and in the end without."""

    points: str

    async def strike(self, cluster: Cluster) -> None:
        await asyncio.to_thread(self.role.stop)
        self._log_start = self.role.log_size()
        self.role.start(self.points)

    async def heal(self, cluster: Cluster) -> None:
        await asyncio.to_thread(self.role.stop)
        self.role.start()
        self.role.held = False
        # How long a process takes to start is the machine's figure, not the cluster's.
        await cluster.until_registered(self.role, START_S)


class KillAtPoint(_Armed):
    """The process kills itself at one point."""

    def __init__(self, dice: random.Random, point: str) -> None:
        super().__init__(dice)
        self.name = f"failpoint-{point}"
        self.point = point
        hit = dice.randint(1, _MOST_HITS) if point.startswith(_OFTEN) else 1
        self.points = f"{point}=kill@{hit}"
        self._died: str | None = None

    async def strike(self, cluster: Cluster) -> None:
        await super().strike(cluster)
        self.target += f" at {self.points}"

    async def hold(self, cluster: Cluster) -> None:
        begun = time.monotonic()
        provoked = False
        while self.role.running and time.monotonic() - begun < _DEATH_S:
            if not provoked and time.monotonic() - begun > 2 * cluster.timeout_s:
                provoked = await self._provoke(cluster)
            await asyncio.sleep(_LOOK_S)
        if self.role.returncode == -signal.SIGKILL:
            self._died = f"dead {time.monotonic() - begun:.1f} s after its start"

    async def _provoke(self, cluster: Cluster) -> bool:
        """Bring about what only happens after another fault."""
        match self.point:
            case "lose.before_post":
                worker = cluster.pick("worker", self.dice)
                if not worker.tasks():
                    return False  # nothing of it could be lost: look again soon
                worker.kill()  # the watch starts it again
            case "release.after_drop":
                if not await cluster.owns(self.role):
                    return False  # it has nothing yet that it could give up
                self.role.signal(signal.SIGTERM)
            case "purge.before_commit" | "purge.after_commit":
                async with Api(cluster.url, cluster.token) as api:
                    key = f"{self.name}-{self.dice.getrandbits(64):x}"
                    url, marker = cluster.database.url, cluster.site.marker
                    history = History(api, url, marker, key)
                    await history.make(OVER, OPEN)
                    await history.purge()
        return True

    def bit(self, after: View) -> tuple[bool, str]:
        if self._died is None:
            return False, "the point was not reached"
        return True, f"{self._died}; {effects(self.before, after)}"


class KillMasterAtPoint(KillAtPoint):
    kind = "master"


class KillWorkerAtPoint(KillAtPoint):
    kind = "worker"


class LoseAnswers(_Armed):
    """A master does what workers ask for, but every third answer is lost."""

    name = "swallow-answers"
    kind = "master"
    costs_workers = False
    points = "fetch.before_reply=raise%3;report.before_reply=raise%3"

    async def hold(self, cluster: Cluster) -> None:
        deadline = time.monotonic() + _DEATH_S
        while (lost := self._count()) < _ANSWERS and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_S)
        self._lost = lost

    def _count(self) -> int:
        return self.role.said(b"FailpointReached: ", self._log_start)

    def bit(self, after: View) -> tuple[bool, str]:
        return self._lost > 0, f"{self._lost} answers lost; {effects(self.before, after)}"


class StallLoop(_Armed):
    """The event loop stands still at a point, other threads do not: a session must end by it."""

    at: tuple[str, ...]
    usual: str  # of them, one that a role passes whatever work it has

    async def strike(self, cluster: Cluster) -> None:
        self._for_s = self.dice.uniform(2.1, 3.0) * cluster.timeout_s
        self._stood = False
        self._role = self.target
        await self._arm(cluster, self.dice.choice(self.at))

    async def _arm(self, cluster: Cluster, point: str) -> None:
        self.points = f"{point}=pause:{self._for_s:.2f}@{self.dice.randint(2, 9)}"
        await super().strike(cluster)
        self.target = f"{self._role} at {self.points}"
        # A loop that stands still already keeps its session for long enough to be seen.
        await cluster.until_registered(self.role, START_S)
        found = {member.pid: member.session for member in await cluster.observer.members()}
        self._session = found.get(self.role.pid)

    async def hold(self, cluster: Cluster) -> None:
        if not await self._stands():
            # No such work came to this role: no schedule of its partitions fires, for example.
            await self._arm(cluster, self.usual)
            await self._stands()
        if self._stood:
            await asyncio.sleep(self._for_s)

    async def _stands(self) -> bool:
        deadline = time.monotonic() + _DEATH_S
        while not self.role.said(_STILL, self._log_start) and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_S)
        self._stood = bool(self.role.said(_STILL, self._log_start))
        return self._stood

    async def heal(self, cluster: Cluster) -> None:
        if self._stood and self.role.running:
            self.role.held = False  # it goes on as it is: its point is over
        else:
            await super().heal(cluster)

    def bit(self, after: View) -> tuple[bool, str]:
        if not self._stood:
            return False, "the point was not reached"
        member = after.members.get(self.role.pid)
        kept = member is not None and member.session == self._session
        said = f"stood still for {self._for_s:.1f} s, session {'kept' if kept else 'ended'}"
        return not kept, f"{said}; {effects(self.before, after)}"


class StallMaster(StallLoop):
    name = "stall-master"
    kind = "master"
    costs_workers = False
    at = ("start.after_commit", "store.after_commit", "dispatch.before_put", "fire.after_commit")
    usual = "store.after_commit"


class StallWorker(StallLoop):
    """Its launcher ends what runs, by its own clock, before anybody else may begin it."""

    name = "stall-worker"
    kind = "worker"
    at = ("claim.after_multi", "fetch.after_call", "launch.after_start", "report.after_call")
    usual = "fetch.after_call"


class FailOnce(_Armed):
    """Each point of a role's code fails once: what follows is done later, or by somebody else."""

    points_of: Mapping[str, str]

    def __init__(self, dice: random.Random) -> None:
        super().__init__(dice)
        hits = {point: dice.randint(1, _MOST_HITS) for point in self.points_of}
        self.points = ";".join(
            f"{point}=raise@{hit if point.startswith(_OFTEN) else 1}" for point, hit in hits.items()
        )

    async def hold(self, cluster: Cluster) -> None:
        await asyncio.sleep(_FAILING_T * cluster.timeout_s)
        self._failed = self._count()

    def _count(self) -> int:
        return self.role.said(b"failpoint ", self._log_start)

    def bit(self, after: View) -> tuple[bool, str]:
        said = f"its log speaks of it {self._failed} times"
        return self._failed > 0, f"{said}; {effects(self.before, after)}"


class FailMasterOnce(FailOnce):
    name = "fail-master"
    kind = "master"
    costs_workers = False
    points_of = failpoints.MASTER


class FailWorkerOnce(FailOnce):
    name = "fail-worker"
    kind = "worker"
    points_of = failpoints.WORKER
