"""What an API process sees of the cluster: its members, owners and queues, in ZooKeeper."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from shoal.api.operations.cluster.ownership import OwnershipWatch
from shoal.coordination.cluster.cluster_clock import ClusterClock
from shoal.coordination.cluster.membership import MemberInfo, Members
from shoal.coordination.cluster.owners import Owners
from shoal.coordination.queue import TaskQueue
from shoal.coordination.session.loop_lag import LoopLag
from shoal.coordination.session.session import ZkSession
from shoal.core.timing.cluster_time import STEP_S


class LonelyGroups:
    """Since when tasks have waited for worker groups without workers, as this process saw it."""

    def __init__(self) -> None:
        self.since_s: dict[str, float] = {}  # monotonic

    def waiting_s(self, groups: Collection[str], now_s: float) -> dict[str, float]:
        """Note all that there are now; return for how long each has been there, seconds."""
        self.since_s = {group: self.since_s.get(group, now_s) for group in groups}
        return {group: now_s - since_s for group, since_s in self.since_s.items()}


@dataclass(frozen=True)
class ClusterView:
    """The parts share one ZooKeeper session. They are entered already and belong to the caller."""

    session: ZkSession
    clock: ClusterClock
    partitions: int  # how many
    masters: Members
    workers: Members
    owners: Owners
    ownership: OwnershipWatch
    queue: TaskQueue
    lag: LoopLag  # of this process
    since: datetime  # when this process began to see the cluster
    lonely: LonelyGroups = field(default_factory=LonelyGroups)

    def ahead_s(self, member: MemberInfo) -> float | None:
        """Return how far a member's clock is ahead of the cluster's time; None if it is right.

        Members report how far they are ahead of the ensemble; this process, how far the ensemble
        is ahead of the cluster's time.
        """
        ensemble_s = self.clock.differences.get("ensemble", 0.0)
        ahead_s = (member.clock_ahead_s or 0.0) + ensemble_s
        return round(ahead_s, 1) if abs(ahead_s) > STEP_S else None
