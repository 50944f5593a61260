"""The order of the queue, whatever is put, claimed, removed and requeued in between."""

import random
from bisect import insort

import pytest

from shoal.coordination import QueueEntry, TaskClaim, TaskQueue, ZkSession, prepare

IDS = (0, 1, 2, 998, 999, 1000, 1001, 1999, 2000, 10**6, 10**9 + 1)  # at the edges of buckets


def random_entry(rng: random.Random) -> QueueEntry:
    def number() -> int:
        return rng.choice(IDS) + rng.randrange(3) if rng.random() < 0.5 else rng.randrange(5000)

    instance = number()
    return QueueEntry("g", rng.randrange(5), instance, rng.randrange(5), number(), instance % 4)


@pytest.mark.parametrize("seed", range(4))
async def test_claims_follow_the_order_of_a_sorted_list(session: ZkSession, seed: int) -> None:
    """Workflow priority, workflow instance, task priority, task instance."""
    rng = random.Random(seed)
    await prepare(session, 4)
    queue = TaskQueue(session)
    waiting: list[QueueEntry] = []
    held: dict[int, TaskClaim] = {}
    used: set[int] = set()
    for _ in range(120):
        match rng.choices(("put", "claim", "remove", "release", "back"), (6, 6, 1, 2, 2))[0]:
            case "put":
                some = [random_entry(rng) for _ in range(rng.choice((1, 3, 30)))]
                new = {e.task_instance_id: e for e in some if e.task_instance_id not in used}
                used.update(new)
                for each in new.values():
                    insort(waiting, each)
                await queue.put(new.values())
            case "claim":
                count = rng.randrange(1, 9)
                claims = await queue.claim("g", count, "w")
                key = sorted(
                    waiting,
                    key=lambda e: (
                        e.workflow_priority,
                        e.workflow_instance_id,
                        e.task_priority,
                        e.task_instance_id,
                    ),
                )
                assert [claim.entry for claim in claims] == key[:count]
                del waiting[:count]
                held |= {claim.entry.task_instance_id: claim for claim in claims}
            case "remove" if waiting:
                gone = rng.sample(waiting, min(3, len(waiting)))
                waiting = [each for each in waiting if each not in gone]
                await queue.remove(gone)
            case "release" if held:
                claim = held.pop(rng.choice(list(held)))
                await queue.release([claim], ended=rng.random() < 0.5)
            case "back" if held:
                claim = held.pop(rng.choice(list(held)))
                insort(waiting, claim.entry)
                await queue.requeue([claim])
    assert await queue.depth("g") == len(waiting)
    assert set(await queue.claims()) == set(held)
