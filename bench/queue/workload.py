"""Queue entries as a busy cluster has them: instances of many sizes, mostly of MEDIUM priority."""

import random
from collections.abc import Iterator

from shoal.coordination import QueueEntry

GROUP = "default"
PARTITIONS = 128

# Tasks that wait in one instance: (smallest, largest, how often).
SIZES = ((1, 10, 60), (10, 100, 30), (100, 1000, 10))
# How often a workflow or a task has priority 0 HIGHEST … 4 LOWEST.
PRIORITIES = (2, 10, 76, 10, 2)
MIXED = 0.2  # of the instances have tasks of several priorities


def entries(seed: int = 7) -> Iterator[QueueEntry]:
    """Yield different entries without end, instance by instance, as a database numbers them.

    Some tasks of an instance do not wait (they ran, or they cannot run yet), so ids have gaps.
    The same seed gives the same entries.
    """
    rng = random.Random(seed)
    task_id = instance_id = 0
    while True:
        instance_id += 1
        low, high, _ = rng.choices(SIZES, [weight for *_, weight in SIZES])[0]
        workflow_priority = rng.choices(range(5), PRIORITIES)[0]
        mixed = rng.random() < MIXED
        for _ in range(rng.randint(low, high)):
            task_id += rng.choice((1, 1, 1, 1, 2))
            task_priority = rng.choices(range(5), PRIORITIES)[0] if mixed else 2
            partition = instance_id % PARTITIONS
            yield QueueEntry(
                GROUP, workflow_priority, instance_id, task_priority, task_id, partition
            )
