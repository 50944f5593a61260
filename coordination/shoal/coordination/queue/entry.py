"""Entries of the task queue, and the paths that keep them in order.

An entry is a name without data. Its path, below the group's znode, is

    <workflow priority>-<lane>-<workflow instance / 1000>
      <workflow instance>-<task priority>-<task / 1000>     mostly 1 for an instance
        <task instance>-p<partition>                            at most 1000

with zero-padded numbers, so that sorting names at each level sorts entries by workflow priority,
lane, workflow instance, task priority and task instance. Each project has its lane, and lanes of
equal priority take turns (lanes.py). Buckets without a lane, which earlier versions made, are
of lane 0. Ids grow, and the tasks of an instance get
neighbouring ids, so a million entries make some 1000 children at each level: listing the head
of the queue costs the same however long the queue is.
"""

import re
from dataclasses import dataclass

from shoal.coordination.cluster import layout
from shoal.coordination.cluster.lanes import MOST_LANES

BUCKET = 1000
HIGHEST, LOWEST = 0, 4

Place = tuple[int, int, int, int]  # priority and id of the workflow instance, then of the task
Position = tuple[int, int, int, int, int]  # priority, lane, id of the instance, then as Place


@dataclass(frozen=True, order=True, slots=True)
class QueueEntry:
    """A task instance that waits for a worker of ``group``. Within a lane, smaller is earlier.

    Priorities run from 0 HIGHEST to 4 LOWEST. ``lane`` is that of the project.
    """

    group: str
    workflow_priority: int
    workflow_instance_id: int
    task_priority: int
    task_instance_id: int
    partition: int
    lane: int = 0

    def __post_init__(self) -> None:
        priorities = (self.workflow_priority, self.task_priority)
        if not all(HIGHEST <= priority <= LOWEST for priority in priorities):
            raise ValueError(f"priorities are {HIGHEST} to {LOWEST}: {self}")
        if not (
            0 <= self.workflow_instance_id < 10**12
            and 0 <= self.task_instance_id < 10**14
            and 0 <= self.partition < layout.MOST_PARTITIONS
            and 0 <= self.lane < MOST_LANES
        ):
            raise ValueError(f"an id does not fit into its place: {self}")

    @property
    def place(self) -> Place:
        """Where it stands in the order of its lane: smaller is earlier."""
        return (
            self.workflow_priority,
            self.workflow_instance_id,
            self.task_priority,
            self.task_instance_id,
        )

    @property
    def position(self) -> Position:
        """Where its path stands among those of its group: lanes one after the other."""
        return (self.workflow_priority, self.lane, *self.place[1:])

    @property
    def outer(self) -> str:
        """The path of the outer bucket."""
        lane = f"{self.lane:010d}-" if self.lane else ""
        bucket = f"{self.workflow_priority}-{lane}{self.workflow_instance_id // BUCKET:09d}"
        return f"{layout.queue(self.group)}/{bucket}"

    @property
    def inner(self) -> str:
        """The path of the inner bucket, in which the entry lies."""
        bucket = self.task_instance_id // BUCKET
        return f"{self.outer}/{self.workflow_instance_id:012d}-{self.task_priority}-{bucket:011d}"

    @property
    def name(self) -> str:
        """The entry's own name, in its bucket."""
        return f"{self.task_instance_id:014d}-p{self.partition:03d}"

    @property
    def path(self) -> str:
        return f"{self.inner}/{self.name}"


@dataclass(eq=False, slots=True)
class TaskClaim:
    """A worker's hold on an entry: one znode, for as long as the session that made it lives.

    Another claim of the same task is never equal to this one, even if the same worker made it.
    ``epoch`` is the creation zxid of its znode: a later claim of the same task has a greater one.
    It is 0 while it is not known, which is so while the claim is being transferred.
    ``generation`` is that of the session.
    """

    entry: QueueEntry
    worker_id: str
    epoch: int
    generation: int

    @property
    def task_instance_id(self) -> int:
        return self.entry.task_instance_id

    @property
    def path(self) -> str:
        return layout.claim(self.entry.task_instance_id)


_OUTER = re.compile(r"([0-4])-(?:([0-9]{10})-)?([0-9]{9})", re.ASCII)
_PLACE = re.compile(
    r"([0-4])-(?:([0-9]{10})-)?([0-9]{9})/([0-9]{12})-([0-4])-([0-9]{11})/([0-9]{14})-p([0-9]{3})",
    re.ASCII,
)


def parse(group: str, outer: str, inner: str, name: str) -> QueueEntry:
    """Return the entry whose path is ``outer``/``inner``/``name`` below that of ``group``.

    Raises ValueError for everything that is not the path of an entry to the last character: what
    only looks like one could never be claimed, and would be first in the queue for ever.
    """
    found = _PLACE.fullmatch(f"{outer}/{inner}/{name}")
    if found is None:
        raise ValueError(f"{outer}/{inner}/{name} is not an entry of a queue")
    workflow_priority, lane, outer_bucket, instance, priority, inner_bucket, task, partition = map(
        int, found.groups(default="0")
    )
    if (found.group(2) is not None) == (lane == 0):
        raise ValueError(f"{outer} is not a bucket of a lane")
    if instance // BUCKET != outer_bucket or task // BUCKET != inner_bucket:
        raise ValueError(f"{outer}/{inner}/{name} is in a bucket that is not its own")
    return QueueEntry(group, workflow_priority, instance, priority, task, partition, lane)


def lane_of_bucket(outer: str) -> tuple[int, int]:
    """Return the priority and the lane of an outer bucket.

    Names of other forms are of the first priority and lane 0: whatever stands in such a bucket is
    found there, and removed.
    """
    found = _OUTER.fullmatch(outer)
    return (int(found[1]), int(found[2] or 0)) if found else (HIGHEST, 0)
