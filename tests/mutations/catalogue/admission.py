"""Admission: the workflow's lock, who may start and who must not, how much a master holds."""

from tests.mutations.mutation import Mutation, Promise, mutation

_ADMISSION = "sql/shoal/sql/repositories/runs/admission.py"
_TESTS = "tests/integration/master/test_admission.py"
_SQL_TESTS = "tests/integration/sql/test_admission.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a workflow is not locked before its runs are counted",
        Promise.ROOM,
        _ADMISSION,
        ("    .with_for_update(key_share=True)\n", ""),
        (f"{_SQL_TESTS}::test_second_master_sees_what_the_first_one_has_admitted[postgresql]",),
    ),
    mutation(
        "ends are written before their workflow is locked",
        Promise.PROGRESS,
        "master/shoal/master/engine/engine.py",
        (
            "            if ends:\n"
            "                endings = await self._listeners.endings(uow, ends)\n"
            "            ids = await uow.instances.save(to_save, now)\n",
            "            ids = await uow.instances.save(to_save, now)\n"
            "            if ends:\n"
            "                endings = await self._listeners.endings(uow, ends)\n",
        ),
        (f"{_TESTS}::test_workflow_is_locked_before_an_end_is_written",),
    ),
    mutation(
        "runs are admitted beyond the room that there is",
        Promise.ROOM,
        "core/shoal/core/runs/overlap.py",
        ("room = max(0, policy.max_active - lineup.active)", "room = policy.max_active"),
        ("tests/unit/core/test_overlap.py::test_queue_is_first_come_first_served",),
    ),
    mutation(
        "a run is admitted although it does not wait",
        Promise.GUARDED_STATES,
        _ADMISSION,
        (".where(_OF.id.in_(chunk), IS_WAITING)", ".where(_OF.id.in_(chunk))"),
        (f"{_SQL_TESTS}::test_only_who_waits_is_admitted_and_only_once[sqlite]",),
    ),
    mutation(
        "a superseded run starts if its stop is late",
        Promise.ROOM,
        _ADMISSION,
        ("IS_WAITING, ~_IS_SUPERSEDED)", "IS_WAITING)"),
        (f"{_SQL_TESTS}::test_run_that_is_told_to_stop_does_not_wait_any_more[sqlite]",),
    ),
    mutation(
        "the end of a run admits none of those that wait",
        Promise.NOTHING_LOST,
        "master/shoal/master/engine/engine.py",
        ("await ending.write(now)", "pass"),
        (f"{_TESTS}::test_successor_starts_what_was_admitted_while_nobody_heard_it[harness]",),
    ),
    mutation(
        "a takeover starts runs that wait",
        Promise.ROOM,
        "core/shoal/core/decide/starting.py",
        (
            "    if draft.state is _W.QUEUED and draft.run.admitted_at is not None:\n"
            "        draft.move(WorkflowSignal.START)\n",
            "    if draft.state is _W.QUEUED:\n        draft.move(WorkflowSignal.START)\n",
        ),
        (f"{_TESTS}::test_run_that_waits_does_not_start_by_a_takeover",),
    ),
    mutation(
        "a full master goes on starting",
        Promise.ROOM,
        "master/shoal/master/services/scan.py",
        ("self._max_open - len(self._engine.runs)", "self._max_open"),
        (f"{_TESTS}::test_full_master_starts_nothing_until_an_instance_ends",),
    ),
)
