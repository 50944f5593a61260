"""The priority queue of tasks that wait for a worker: a million of them, claimed in batches.

- ``task_queue``: ``TaskQueue``, what masters and workers use; it says which claimer gets what.
- ``entry``: an entry is a name that sorts; ``putter``: entries into bounded buckets.
- Within a priority projects take turns: ``shoal.coordination.cluster.lanes``.
- ``head``: the first entries as one claimer knows them, with ``window`` and ``reader``.
- ``claims``, ``releases``, ``transfer``: the transactions. ``put_log``: a notification's data.
- ``claimers`` and ``contention``: who else claims, and whose turn it is after a collision.
- ``survey``: counting and paging without listing everything.
"""

from shoal.coordination.cluster.lanes import LaneTurns, lane_of
from shoal.coordination.queue.entry import QueueEntry, TaskClaim, parse
from shoal.coordination.queue.task_queue import TaskQueue

__all__ = ["LaneTurns", "QueueEntry", "TaskClaim", "TaskQueue", "lane_of", "parse"]
