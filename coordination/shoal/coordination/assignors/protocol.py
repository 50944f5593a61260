"""How members rebalance; it follows from the assignor, which must know what they do."""

from enum import StrEnum

from shoal.coordination.assignors.member import Assignor


class RebalanceProtocol(StrEnum):
    """What members do with their partitions when the group rebalances, with Kafka's names."""

    EAGER = "EAGER"  # give up everything, then join again
    COOPERATIVE = "COOPERATIVE"  # keep working; give up only what moves, and join once more


def cooperative(assign: Assignor) -> Assignor:
    """Mark an assignor that holds back what has to move until its owner has given it up."""
    vars(assign)["protocol"] = RebalanceProtocol.COOPERATIVE
    return assign


def protocol_of(assign: Assignor) -> RebalanceProtocol:
    """Return the protocol of an assignor; EAGER, which is safe for all, unless it is marked."""
    return RebalanceProtocol(getattr(assign, "protocol", RebalanceProtocol.EAGER))


def name_of(assign: Assignor) -> str:
    """Return the name by which members agree on an assignor: "cooperative-sticky", "range" …

    Raises ValueError for a callable without a name.
    """
    name = getattr(assign, "__name__", "").strip("_").replace("_", "-")
    if not name or name == "<lambda>":
        raise ValueError(f"{assign!r} has no name by which members could vote for it; use a def")
    return str(name)
