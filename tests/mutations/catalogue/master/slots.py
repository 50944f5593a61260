"""Slots of concurrency groups, and what DEPENDENT tasks wait for."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_SLOTS = Place("shoal.sql.repositories.runs.slots")
_ENGINE = Place("shoal.master.engine.engine")
_GROUPS = Place("shoal.sql.repositories.definitions.concurrency")
_DECIDING = Place("shoal.core.decide.starts")
_JUDGING = Place("shoal.core.logic.dependency_rules")
_SQL = "tests/integration/sql/definitions/test_concurrency.py"
_MASTER = "tests/integration/master/engine/test_slots.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.ROOM.broken_if(
        "slots are counted without the group's lock",
        _SLOTS["give"].replace("locked.with_for_update(...)", "locked"),
        f"{_SQL}::test_giving_slots_waits_for_another_giver[postgresql]",
    ),
    Promise.PROGRESS.broken_if(
        "slots of attempts that have ended stay taken",
        _SLOTS["give"].drop("await self._take_back(row.id)"),
        f"{_SQL}::test_slot_ends_with_its_attempt[sqlite-SUCCEED]",
        f"{_SQL}::test_slot_of_a_paused_attempt_is_free_and_not_its_own_any_more[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "tasks of quarantined runs keep their slots",
        _GROUPS.replace(
            "task_instance.c.state.in_(...) & ~_IS_QUARANTINED", "task_instance.c.state.in_(...)"
        ),
        f"{_SQL}::test_quarantined_run_keeps_no_slot[sqlite-True]",
    ),
    Promise.ROOM.broken_if(
        "a repaired run goes on with a slot that others have been given",
        _DECIDING["begin"].never("attempt.id in without_slot"),
        f"{_SQL}::test_quarantined_run_keeps_no_slot[sqlite-True]",
    ),
    Promise.ROOM.broken_if(
        "an attempt goes on with a slot that it has no more",
        _ENGINE["_store"].drop("await uow.slots.require(slots)"),
        f"{_MASTER}::test_nobody_goes_on_without_a_lease[sqlite]",
    ),
    Promise.ROOM.broken_if(
        "a slot is taken back while its attempt takes it",
        _SLOTS["require"].replace("(...).with_for_update(...)", "..."),
        f"{_SQL}::test_slot_that_is_being_taken_is_not_taken_back",
    ),
    Promise.PROGRESS.broken_if(
        "slots are given in the order of asking",
        _SLOTS["give"].replace("*SLOT_ORDER", "task_instance.c.id"),
        f"{_SQL}::test_order_is_that_of_the_queue[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a group goes although a definition names it",
        _GROUPS["_held"].replace("(...).with_for_update(...)", "..."),
        f"{_SQL}::test_group_cannot_go_while_its_first_user_is_published[postgresql]",
    ),
    Promise.PROGRESS.broken_if(
        "a run waits for itself",
        _JUDGING["_judge_item"].replace(
            "[run for run in runs or () if run.instance_id != own_id]", "list(runs or ())"
        ),
        "tests/unit/core/logic/test_judging.py::test_own_run_is_left_out",
    ),
)
