"""The group protocol: generations, revoke before assign, conditional writes."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_PLAUSIBILITY = Place("shoal.coordination.group.plausibility")
_COORDINATOR = Place("shoal.coordination.group.coordinator")
_STICKINESS = Place("shoal.coordination.assignors.stickiness")
_PARTICIPANT = Place("shoal.coordination.group.participant")
_STORE = Place("shoal.coordination.group.store")
_LIFE = Place("shoal.coordination.group.membership")
_GROUP = Place("shoal.coordination.group.group")
_CORE = "tests/unit/coordination/group/test_group_core.py"
_MANY = "tests/integration/coordination/group/test_group_many.py"
_STATIC = "tests/unit/coordination/group/test_group_static_members.py"
_MEMBER = "tests/unit/coordination/group/test_group_participant.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.FENCED_OWNERSHIP.broken_if(
        "requests of another generation are accepted",
        _COORDINATOR["_current"].never("generation != self.group.generation"),
        f"{_CORE}::test_requests_of_another_generation_or_of_strangers_are_refused",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a member that was replaced is not fenced",
        _COORDINATOR["_known"].never("member is not None and member.id != member_id"),
        f"{_STATIC}::test_the_one_that_was_replaced_is_fenced",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "anybody can assign",
        _COORDINATOR["_sync"].drop("member.id == self.group.leader_id"),
        f"{_CORE}::test_only_the_leader_can_assign",
    ),
    Promise.PROGRESS.broken_if(
        "who does not join in time is kept",
        _COORDINATOR["_gather"].never("not member.is_joining and member.join.instance_id is None"),
        f"{_CORE}::test_who_does_not_join_in_time_is_evicted_and_may_come_back",
    ),
    Promise.PROGRESS.broken_if(
        "a leader that does not assign is not succeeded",
        _COORDINATOR["_tick"].replace(
            "not (is_late_leader or not (member.has_synced or member.is_syncing))", "True"
        ),
        f"{_CORE}::test_a_leader_that_does_not_assign_in_time_is_succeeded",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a partition is assigned before its old owner gave it up",
        _STICKINESS["cooperative_sticky"].replace(
            "claims.is_free_for(partition, member_id)", "partition"
        ),
        f"{_MEMBER}::test_a_cooperative_member_gives_up_only_what_must_move_and_joins_again",
    ),
    Promise.PROGRESS.broken_if(
        "each member that must give something up costs a generation",
        _PARTICIPANT["_prepare"].replace("self._move_on(group)", "()"),
        f"{_MEMBER}::test_members_that_must_give_up_partitions_do_so_in_one_generation",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "an eager member joins again without giving up",
        _PARTICIPANT["_prepare"].replace(
            "self._move_on(group) if self._cooperative else self._drop()", "()"
        ),
        f"{_MEMBER}::test_an_eager_member_gives_up_everything_before_it_joins_again",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a member that was evicted keeps its partitions",
        _PARTICIPANT["_enter"].replace("self._drop()", "()"),
        f"{_MEMBER}::test_an_evicted_member_has_lost_its_partitions_and_comes_back",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a member that was fenced keeps its partitions",
        _PARTICIPANT["_is_replaced"].never("not self._claim.covers(found.id)"),
        f"{_MEMBER}::test_a_fenced_member_loses_everything_and_asks_for_nothing",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a process that was replaced takes the place of its replacement when it comes back",
        _GROUP["_live"].drop("claim=self._claim"),
        "tests/integration/coordination/group/test_group_faults.py::"
        "test_a_replaced_static_member_that_comes_back_is_fenced_and_its_replacement_lives",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "the group gives a place to a process that does not know its member",
        _COORDINATOR["_recognise"].never("found.id not in join.replaceable"),
        f"{_STATIC}::test_a_static_member_takes_only_the_place_of_members_that_it_knows",
    ),
    Promise.PROGRESS.broken_if(
        "a join that was refused makes its process the older one",
        _PARTICIPANT["note_refusal"].replace("self._claim.withdraw()", "None"),
        f"{_MEMBER}::test_a_static_member_whose_first_join_comes_too_late_is_still_the_younger_one",
    ),
    Promise.PROGRESS.broken_if(
        "a static member is evicted for what it missed while it restarted",
        _COORDINATOR["_tick"].always("member.join.instance_id is None"),
        f"{_STATIC}::test_a_static_member_that_restarts_during_a_rebalance_keeps_its_place",
    ),
    Promise.PROGRESS.broken_if(
        "restarting static members count as damage",
        _PLAUSIBILITY["_haunted"].drop("m.join.instance_id is None"),
        f"{_MANY}::test_all_static_members_but_one_may_be_away",
    ),
    Promise.PROGRESS.broken_if(
        "nobody sees off a member that is gone",
        _PARTICIPANT["_chore"].never("gone is not None"),
        f"{_MEMBER}::test_any_member_sees_off_who_is_gone_and_lets_time_pass",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a group is written whatever its version",
        _STORE["write"].drop("version=version"),
        "tests/integration/coordination/group/test_group_store.py::"
        "test_of_two_who_have_read_the_same_only_one_can_write",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "the group hears that partitions are given up before they are",
        _LIFE["_take_part"].replace(
            "await self._call_back(step)", "_ = asyncio.create_task(self._call_back(step))"
        ),
        "tests/integration/coordination/group/test_group_order.py::"
        "test_nobody_gets_a_partition_while_its_old_owner_finishes",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a request that was made on an older view is decided on a newer one",
        _STORE["_write_batch"].replace("each.version == view.version", "True"),
        "tests/integration/coordination/group/test_group_store.py::"
        "test_changes_on_one_view_are_one_write_and_later_ones_are_refused",
    ),
    Promise.PROGRESS.broken_if(
        "each member of a group reads and writes for itself",
        _STORE["group_store"].replace("stores.get(name)", "None"),
        "tests/integration/coordination/group/test_group_store.py::"
        "test_changes_on_one_view_are_one_write_and_later_ones_are_refused",
    ),
    Promise.PROGRESS.broken_if(
        "what a session has replaced itself is written once more",
        _STORE["_write_batch"].replace("view is not self._outdated", "True"),
        "tests/integration/coordination/group/test_group_store.py::"
        "test_a_change_of_what_this_session_has_replaced_is_refused_without_a_request",
    ),
    Promise.SELF_FENCE.broken_if(
        "a member of a group keeps its partitions until its session is known to be lost",
        _GROUP["_live"].replace("self._session.unproven", "self._session.lost"),
        "tests/integration/coordination/group/test_group_faults.py::"
        "test_a_cut_off_member_hears_of_its_loss_even_in_a_callback",
    ),
)
