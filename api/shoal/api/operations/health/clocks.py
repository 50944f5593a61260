"""Wall clocks that are off: of members, of the database and the ensemble, and of this process."""

from collections.abc import Mapping

from shoal.api.services import Services
from shoal.coordination.cluster.membership import MemberInfo
from shoal.core.timing.cluster_time import STEP_S

_NAMES = {"own": "this API process", "database": "the database", "ensemble": "ZooKeeper"}


def member_ahead_s(shoal: Services, member: MemberInfo) -> float | None:
    """Return how far a member's clock is ahead of the cluster's time; None if it is right.

    Members say how far they are ahead of the ensemble; this process, how far that is off.
    """
    ensemble_s = shoal.clock.differences.get("ensemble", 0.0)
    ahead_s = (member.clock_ahead_s or 0.0) + ensemble_s
    return round(ahead_s, 1) if abs(ahead_s) > STEP_S else None


def differences(shoal: Services) -> Mapping[str, float]:
    """Return all clocks that are off: whose it is, in words -> seconds ahead of the cluster's."""
    found = {
        _NAMES.get(name, name): round(by_s, 1) for name, by_s in shoal.clock.differences.items()
    }
    for kind, members in (("master", shoal.masters), ("worker", shoal.workers)):
        for member_id, member in sorted(members.current().items()):
            ahead_s = member_ahead_s(shoal, member)
            if ahead_s is not None:
                found[f"{kind} {member_id}"] = ahead_s
    return found
