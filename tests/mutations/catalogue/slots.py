"""Slots of concurrency groups, and what DEPENDENT tasks wait for."""

from tests.mutations.mutation import Mutation, Promise, mutation

_SLOTS = "sql/shoal/sql/repositories/runs/slots.py"
_GROUPS = "sql/shoal/sql/repositories/definitions/concurrency.py"
_SQL = "tests/integration/sql/test_concurrency.py"
_MASTER = "tests/integration/master/test_slots.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "slots are counted without the group's lock",
        Promise.ROOM,
        _SLOTS,
        ("locked.with_for_update(key_share=True, of=concurrency_group)", "locked"),
        (f"{_SQL}::test_giving_slots_waits_for_another_giver[postgresql]",),
    ),
    mutation(
        "slots of attempts that have ended stay taken",
        Promise.PROGRESS,
        _SLOTS,
        ("await self._take_back(row.id)", "pass"),
        (
            f"{_SQL}::test_slot_ends_with_its_attempt[sqlite-SUCCEED]",
            f"{_SQL}::test_slot_of_a_paused_attempt_is_free_and_not_its_own_any_more[sqlite]",
        ),
    ),
    mutation(
        "an attempt goes on with a slot that it has no more",
        Promise.ROOM,
        "master/shoal/master/engine/engine.py",
        ("await uow.slots.require(slots)", "pass"),
        (f"{_MASTER}::test_nobody_goes_on_without_a_lease[sqlite]",),
    ),
    mutation(
        "a slot is taken back while its attempt takes it",
        Promise.ROOM,
        _SLOTS,
        (
            "                .with_for_update(read=True, key_share=True)\n            )\n"
            "            found = {",
            "            )\n            found = {",
        ),
        (f"{_SQL}::test_slot_that_is_being_taken_is_not_taken_back",),
    ),
    mutation(
        "slots are given in the order of asking",
        Promise.PROGRESS,
        _SLOTS,
        (
            ".order_by(*SLOT_ORDER)\n            .limit(row.slots - taken)",
            ".order_by(task_instance.c.id)\n            .limit(row.slots - taken)",
        ),
        (f"{_SQL}::test_order_is_that_of_the_queue[sqlite]",),
    ),
    mutation(
        "a group goes although a definition names it",
        Promise.PROGRESS,
        _GROUPS,
        (
            ".with_for_update(read=True, key_share=True, of=concurrency_group)",
            "",
        ),
        (f"{_SQL}::test_group_cannot_go_while_its_first_user_is_published[postgresql]",),
    ),
    mutation(
        "a run waits for itself",
        Promise.PROGRESS,
        "core/shoal/core/logic/judging.py",
        ("[run for run in runs or () if run.instance_id != own_id]", "list(runs or ())"),
        ("tests/unit/core/test_judging.py::test_own_run_is_left_out",),
    ),
)
