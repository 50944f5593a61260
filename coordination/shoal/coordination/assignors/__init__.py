"""Who should own which partition: pure functions of the members, all with one signature.

``assign(partition_counts, members) -> {member id: its partitions}``. Every member has an entry;
every partition of a topic that a member subscribes to is in exactly one (``cooperative_sticky``
holds some back, see there). The result does not depend on the order of ``members``.

=====================  ==========================================================================
``range_``             per topic, a contiguous run each; the first members get one more
``round_robin``        all partitions of all topics dealt out one by one
``modulo``             partition i to subscriber i mod n of its topic
``sticky``             even, and as few partitions move as evenness allows
``cooperative_sticky`` as ``sticky``, but a partition has no owner for one round before it moves
=====================  ==========================================================================

All but ``cooperative_sticky`` are for the eager protocol (``protocol_of``); an assignor of your own
that holds back what has to move is marked with the decorator ``cooperative``.

The behaviour is that of Kafka's assignors of the same names (Apache Kafka 3.8, without racks).
Kafka's result may depend on the order of a hash table, or give a partition to one member while
another may still hold it. Ours is fixed there, and safe; the functions say where.
"""

from shoal.coordination.assignors.member import Assignor, GroupMember, Partition
from shoal.coordination.assignors.protocol import (
    RebalanceProtocol,
    cooperative,
    name_of,
    protocol_of,
)
from shoal.coordination.assignors.stateless import modulo, range_, round_robin
from shoal.coordination.assignors.stickiness import cooperative_sticky, sticky

__all__ = [
    "Assignor",
    "GroupMember",
    "Partition",
    "RebalanceProtocol",
    "cooperative",
    "cooperative_sticky",
    "modulo",
    "name_of",
    "protocol_of",
    "range_",
    "round_robin",
    "sticky",
]
