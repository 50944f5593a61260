"""The leader's part: run the assignor, and check what it returns."""

from collections import Counter

from shoal.coordination.assignors import Assignor, Partition
from shoal.coordination.assignors.member import Assignment
from shoal.coordination.errors import AssignorFailed
from shoal.coordination.group.model import GroupMetadata


def assign_all(group: GroupMetadata, assign: Assignor) -> Assignment:
    """Return which member is to have which partitions. Raises AssignorFailed."""
    counts = partition_counts(group)
    members = [member.describe() for member in group.members.values()]
    try:
        assignment = assign(counts, members)
    except Exception as error:
        raise AssignorFailed(group.name, group.assignor, f"raised {error!r}") from error
    if problem := _problem(group, counts, assignment):
        raise AssignorFailed(group.name, group.assignor, problem)
    return assignment


def partition_counts(group: GroupMetadata) -> dict[str, int]:
    """Return the partitions of every topic that a member wants; of two counts the larger."""
    counts: dict[str, int] = {}
    for member in group.members.values():
        for topic, count in member.join.topics.items():
            counts[topic] = max(count, counts.get(topic, 0))
    return counts


def _problem(group: GroupMetadata, counts: dict[str, int], assignment: Assignment) -> str | None:
    if strangers := sorted(assignment.keys() - group.members.keys()):
        return f"gives partitions to {strangers}, which are not members"
    given = Counter(partition for each in assignment.values() for partition in each)
    if twice := sorted(partition for partition, times in given.items() if times > 1):
        return f"gives {twice[0]} to two members"
    if unknown := sorted(each for each in given if not _exists(each, counts)):
        return f"gives away {unknown[0]}, which no member asked for"
    return None


def _exists(partition: Partition, counts: dict[str, int]) -> bool:
    return 0 <= partition.index < counts.get(partition.topic, 0)
