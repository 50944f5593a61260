"""States of a group that are rare, but no damage."""

from shoal.coordination.group import GroupMetadata, GroupState, Join, Leave, Request, Tick, decide
from shoal.coordination.group.plausibility import implausible

LONG_S = 600.0  # a rebalance timeout that is longer than clocks can be apart


def test_a_group_that_only_waits_for_a_newcomer_is_no_damage() -> None:
    """All members left during a rebalance, when another one had just been given an id."""

    def join(name: str, member_id: str | None) -> Join:
        return Join(member_id, name, ("sticky",), {"jobs": 2}, LONG_S)

    requests: list[Request] = [
        *(join("a", None), join("a", "a"), Tick()),
        *(join("b", None), join("b", "b")),  # a rebalance begins, with its deadline
        *(join("c", None), Leave("a"), Leave("b")),
    ]
    group = GroupMetadata("g", 0.0)
    for request in requests:
        group = decide(group, request, 0.0).group
    assert (group.state, len(group.members)) == (GroupState.PREPARING_REBALANCE, 0)
    assert group.pending == {"c"}
    assert group.deadline_s == LONG_S
    assert implausible(group, 0.0, {"c"}) is None
