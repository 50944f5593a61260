"""Which member should own which partition: a pure function of the set of members."""

import math
from collections.abc import Sequence
from hashlib import blake2b

# A member gets at most this many times its fair share. Nearer to 1 is more even, but then a
# member that comes or goes moves more partitions between the others.
LOAD_BOUND = 1.1


def rendezvous(partitions: int, members: Sequence[str]) -> dict[str, list[int]]:
    """Return the sorted partitions (0 … ``partitions`` - 1) of each member.

    Highest random weight: every partition has a fixed ranking of all possible members and goes
    to its first choice, unless that member has its fill of partitions that rank it higher. So
    all who know the same members agree, whatever the order of ``members``; a member that leaves
    gives its partitions to many others, and few partitions move besides (Thaler and Ravishankar
    1998, with the load bound of Mirrokni et al. 2018). Duplicates in ``members`` count once.
    """
    names = sorted(set(members))
    assigned: dict[str, list[int]] = {name: [] for name in names}
    if not names:
        return assigned
    capacity = math.ceil(partitions / len(names) * LOAD_BOUND)
    unassigned = set(range(partitions))
    ranked = sorted((_weight(p, name), p, name) for p in range(partitions) for name in names)
    for _, partition, name in reversed(ranked):
        if partition in unassigned and len(assigned[name]) < capacity:
            assigned[name].append(partition)
            unassigned.discard(partition)
    for owned in assigned.values():
        owned.sort()
    return assigned


def _weight(partition: int, member: str) -> bytes:
    return blake2b(
        member.encode("utf-8"), digest_size=8, salt=partition.to_bytes(8, "big")
    ).digest()
