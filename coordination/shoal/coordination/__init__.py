"""Everything ZooKeeper: a library for any program, and Shoal's own use of it.

asyncio on the outside, kazoo's connection thread inside. The library:

- ``session.ZkSession``: pipelined calls, watches, and a proof of being alive.
- ``assignors``: who should own which partition, as Kafka's assignors decide it.
- ``group.Group``: share partitions with other processes, by Kafka's group protocol.
- ``recipes``: ``Ownership`` holds partitions, with an epoch for each; ``FairShare`` owns what a
  group assigns; ``Election`` has one of several processes lead; ``BalancedJobs`` runs each of a
  list of jobs in one of several processes; ``fence``: transactions that are refused once another
  process has taken over.
- ``messages``: messages with acknowledgements. ``autoscale``: as many workers as are needed.
- ``znodes``: where all of these have their znodes. ``quarantine``: what was found where it cannot
  be. ``keys``: key to partition.

Shoal's own, which the library does not import:

- ``cluster``: ``layout`` has every path and ``prepare`` to create the tree, ``binding`` ties it
  to the cluster's database, ``tree`` keeps it there; ``membership`` announces a member and
  follows the others; ``owners`` reads who owns a partition, ``notifications`` wakes that owner;
  ``cluster_clock`` tells what time it is, even if this node's clock is wrong.
- ``queue.TaskQueue``: tasks that wait for a worker.

Rules of the house: decide only by a successful create, multi or versioned set; a watch is a hint
and something re-reads now and then; a reply can be lost, so recognise your own work; stop acting
when ``proven_until`` passes. No recipe of kazoo's decides anything: its Lock says it is held
after the session is lost, its Party never rejoins, its queues lose items.
"""

from shoal.coordination.assignors import Partition
from shoal.coordination.cluster.binding import BoundTree, bind_tree
from shoal.coordination.cluster.cluster_clock import ClusterClock
from shoal.coordination.cluster.layout import prepare
from shoal.coordination.cluster.membership import MemberInfo, Members, Membership
from shoal.coordination.cluster.notifications import Notifications, notify
from shoal.coordination.cluster.owners import OwnerInfo, Owners
from shoal.coordination.cluster.tree import TreeKeeper
from shoal.coordination.errors import (
    CannotConnect,
    ConnectionLoss,
    CoordinationError,
    CredentialRefused,
    DuplicateMember,
    Mismatch,
    NodeExists,
    NoNode,
    NotLeader,
    NotOwner,
    SessionClosed,
    SessionLost,
    StaleEpoch,
    TransactionFailed,
)
from shoal.coordination.group import (
    Group,
    GroupListener,
    GroupMetadata,
    GroupSettings,
    delete_group,
    read_group,
)
from shoal.coordination.keys import partition_of
from shoal.coordination.queue import TaskQueue
from shoal.coordination.queue.entry import QueueEntry, TaskClaim
from shoal.coordination.recipes.election import Election, ElectionListener, Leader, leader_of
from shoal.coordination.recipes.fair_share import FairShare
from shoal.coordination.recipes.fence import raise_fence
from shoal.coordination.recipes.jobs import BalancedJobs
from shoal.coordination.recipes.ownership import OwnerNodes, Ownership, OwnershipListener
from shoal.coordination.session.nodes import (
    Check,
    Create,
    Created,
    Delete,
    Node,
    SessionState,
    SetData,
    WatchEvent,
    WatchKind,
)
from shoal.coordination.session.security.tls import Tls
from shoal.coordination.session.session import ZkSession

__all__ = [
    "BalancedJobs",
    "BoundTree",
    "CannotConnect",
    "Check",
    "ClusterClock",
    "ConnectionLoss",
    "CoordinationError",
    "Create",
    "Created",
    "CredentialRefused",
    "Delete",
    "DuplicateMember",
    "Election",
    "ElectionListener",
    "FairShare",
    "Group",
    "GroupListener",
    "GroupMetadata",
    "GroupSettings",
    "Leader",
    "MemberInfo",
    "Members",
    "Membership",
    "Mismatch",
    "NoNode",
    "Node",
    "NodeExists",
    "NotLeader",
    "NotOwner",
    "Notifications",
    "OwnerInfo",
    "OwnerNodes",
    "Owners",
    "Ownership",
    "OwnershipListener",
    "Partition",
    "QueueEntry",
    "SessionClosed",
    "SessionLost",
    "SessionState",
    "SetData",
    "StaleEpoch",
    "TaskClaim",
    "TaskQueue",
    "Tls",
    "TransactionFailed",
    "TreeKeeper",
    "WatchEvent",
    "WatchKind",
    "ZkSession",
    "bind_tree",
    "delete_group",
    "leader_of",
    "notify",
    "partition_of",
    "prepare",
    "raise_fence",
    "read_group",
]
