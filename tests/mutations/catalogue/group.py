"""The group protocol: generations, revoke before assign, conditional writes."""

from tests.mutations.mutation import Mutation, Promise, mutation

_COORDINATOR = "coordination/shoal/coordination/group/coordinator.py"
_PARTICIPANT = "coordination/shoal/coordination/group/participant.py"
_CORE = "tests/unit/coordination/test_group_core.py"
_STATIC = "tests/unit/coordination/test_group_static_members.py"
_MEMBER = "tests/unit/coordination/test_group_participant.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "requests of another generation are accepted",
        Promise.FENCED_OWNERSHIP,
        _COORDINATOR,
        ("if generation != self.group.generation:", "if False:"),
        (f"{_CORE}::test_requests_of_another_generation_or_of_strangers_are_refused",),
    ),
    mutation(
        "a member that was replaced is not fenced",
        Promise.FENCED_OWNERSHIP,
        _COORDINATOR,
        ("if member is not None and member.id != member_id:", "if False:"),
        (f"{_STATIC}::test_the_one_that_was_replaced_is_fenced",),
    ),
    mutation(
        "anybody can assign",
        Promise.FENCED_OWNERSHIP,
        _COORDINATOR,
        ("member.id == self.group.leader_id and sync.assignment", "sync.assignment"),
        (f"{_CORE}::test_only_the_leader_can_assign",),
    ),
    mutation(
        "who does not join in time is kept",
        Promise.PROGRESS,
        _COORDINATOR,
        ("if not member.is_joining and member.join.instance_id is None:", "if False:"),
        (f"{_CORE}::test_who_does_not_join_in_time_is_evicted_and_may_come_back",),
    ),
    mutation(
        "a leader that does not assign is not succeeded",
        Promise.PROGRESS,
        _COORDINATOR,
        ("if is_late_leader or not (member.has_synced or member.is_syncing):", "if False:"),
        (f"{_CORE}::test_a_leader_that_does_not_assign_in_time_is_succeeded",),
    ),
    mutation(
        "a partition is assigned before its old owner gave it up",
        Promise.FENCED_OWNERSHIP,
        "coordination/shoal/coordination/assignors/stickiness.py",
        ("if claims.is_free_for(partition, member_id)", "if partition"),
        (f"{_MEMBER}::test_a_cooperative_member_gives_up_only_what_must_move_and_joins_again",),
    ),
    mutation(
        "an eager member joins again without giving up",
        Promise.FENCED_OWNERSHIP,
        _PARTICIPANT,
        ("revoked = () if self._cooperative else self._drop()", "revoked = ()"),
        (f"{_MEMBER}::test_an_eager_member_gives_up_everything_before_it_joins_again",),
    ),
    mutation(
        "a member that was evicted keeps its partitions",
        Promise.FENCED_OWNERSHIP,
        _PARTICIPANT,
        ("lost = self._drop()\n        self._was_member", "lost = ()\n        self._was_member"),
        (f"{_MEMBER}::test_an_evicted_member_has_lost_its_partitions_and_comes_back",),
    ),
    mutation(
        "a member that was fenced keeps its partitions",
        Promise.FENCED_OWNERSHIP,
        _PARTICIPANT,
        (
            "return (self._was_member and instance_id is not None) and any(",
            "return False and any(",
        ),
        (f"{_MEMBER}::test_a_fenced_member_loses_everything_and_asks_for_nothing",),
    ),
    mutation(
        "nobody sees off a member that is gone",
        Promise.PROGRESS,
        _PARTICIPANT,
        ("if gone is not None:", "if False:"),
        (f"{_MEMBER}::test_any_member_sees_off_who_is_gone_and_lets_time_pass",),
    ),
    mutation(
        "a group is written whatever its version",
        Promise.FENCED_OWNERSHIP,
        "coordination/shoal/coordination/group/store.py",
        ("encode(metadata), version=version)", "encode(metadata))"),
        (
            "tests/integration/coordination/test_group_store.py::"
            "test_of_two_who_have_read_the_same_only_one_can_write",
        ),
    ),
    mutation(
        "the group hears that partitions are given up before they are",
        Promise.FENCED_OWNERSHIP,
        "coordination/shoal/coordination/group/life.py",
        (
            "                await self._call_back(step)\n",
            "                _ = asyncio.create_task(self._call_back(step))\n",
        ),
        (
            "tests/integration/coordination/test_group_order.py::"
            "test_nobody_gets_a_partition_while_its_old_owner_finishes",
        ),
    ),
    mutation(
        "a member of a group keeps its partitions until its session is known to be lost",
        Promise.SELF_FENCE,
        "coordination/shoal/coordination/group/group.py",
        (
            "asyncio.create_task(self._session.unproven())",
            "asyncio.create_task(self._session.lost())",
        ),
        (
            "tests/integration/coordination/test_group_faults.py::"
            "test_a_cut_off_member_hears_of_its_loss_even_in_a_callback",
        ),
    ),
)
