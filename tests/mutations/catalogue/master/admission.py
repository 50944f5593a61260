"""Admission: the workflow's lock, who may start and who must not, how much a master holds."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_ADMISSION = Place("shoal.sql.repositories.runs.admission")
_ENGINE = Place("shoal.master.engine.engine")
_OVERLAP = Place("shoal.core.runs.overlap")
_STARTING = Place("shoal.core.decide.starts")
_COMMANDS = Place("shoal.sql.repositories.runs.commands")
_ADMITTER = Place("shoal.master.services.admission")
_CAPACITY = Place("shoal.master.services.commands.capacity")
_SCAN = Place("shoal.master.services.commands.scanner")
_SQL_TESTS = "tests/integration/sql/runs/test_admission.py"
_TESTS = "tests/integration/master/services/test_admission.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.ROOM.broken_if(
        "a workflow is not locked before its runs are counted",
        _ADMISSION.replace("(...).with_for_update(...)", "..."),
        f"{_SQL_TESTS}::test_second_master_sees_what_the_first_one_has_admitted[postgresql]",
    ),
    Promise.PROGRESS.broken_if(
        "a project that has filled a master keeps others from starting",
        _CAPACITY["choose"].replace("room > 0 or active[project] < share", "room > 0"),
        f"{_TESTS}::test_other_project_starts_at_a_master_that_one_project_has_filled[harness]",
    ),
    Promise.PROGRESS.broken_if(
        "runs that only wait take the room of others",
        _CAPACITY["choose"].always("not only_waits(run, is_served)"),
        f"{_TESTS}::test_runs_that_only_wait_take_no_room",
    ),
    Promise.PROGRESS.broken_if(
        "starts of one project stand in the way of others",
        _COMMANDS["_in_turn"].replace(
            "select(ranked).order_by(ranked.c.place, ranked.c.id)",
            "select(ranked).order_by(ranked.c.id)",
        ),
        f"{_TESTS}::test_projects_take_turns_in_a_backlog[harness]",
    ),
    Promise.PROGRESS.broken_if(
        "a quarantined run keeps its place",
        _ADMISSION.replace(
            "HAS_NOT_ENDED & ~IS_WAITING & _OF.backfill_id.is_(None) & ~_IS_QUARANTINED",
            "HAS_NOT_ENDED & ~IS_WAITING & _OF.backfill_id.is_(None)",
        ),
        f"{_TESTS}::test_quarantined_run_holds_no_place[harness-queue]",
    ),
    Promise.ROOM.broken_if(
        "a quarantined run that has not begun keeps its admission",
        _ADMITTER["_give_up_places"].drop("await uow.admission.withdraw(ids, gate.workflow_ids)"),
        f"{_TESTS}::test_quarantined_run_that_has_not_begun_waits_in_line_again",
    ),
    Promise.PROGRESS.broken_if(
        "ends are written before their workflow is locked",
        _ENGINE["_store"].replace(
            "if ends:\n"
            "    endings = await self._listeners.endings(uow, ends)\n"
            "ids = await uow.instances.save(to_save, now)",
            "ids = await uow.instances.save(to_save, now)\n"
            "if ends:\n"
            "    endings = await self._listeners.endings(uow, ends)",
        ),
        f"{_TESTS}::test_workflow_is_locked_before_an_end_is_written",
    ),
    Promise.ROOM.broken_if(
        "runs are admitted beyond the room that there is",
        _OVERLAP["settle"].replace("max(...)", "policy.max_active"),
        "tests/unit/core/runs/test_overlap.py::test_queue_is_first_come_first_served",
    ),
    Promise.GUARDED_STATES.broken_if(
        "a run is admitted although it does not wait",
        _ADMISSION["admit"].drop("IS_WAITING"),
        f"{_SQL_TESTS}::test_only_who_waits_is_admitted_and_only_once[sqlite]",
    ),
    Promise.ROOM.broken_if(
        "a superseded run starts if its stop is late",
        _ADMISSION["_waiting"].drop("~_IS_SUPERSEDED"),
        f"{_SQL_TESTS}::test_run_that_is_told_to_stop_does_not_wait_any_more[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "the end of a run admits none of those that wait",
        _ENGINE["_store"].drop("await ending.write(now)"),
        f"{_TESTS}::test_successor_starts_what_was_admitted_while_nobody_heard_it[harness]",
    ),
    Promise.ROOM.broken_if(
        "a takeover starts runs that wait",
        _STARTING["begin"].drop("draft.run.admitted_at is not None"),
        f"{_TESTS}::test_run_that_waits_does_not_start_by_a_takeover",
    ),
    Promise.ROOM.broken_if(
        "a full master goes on starting",
        _CAPACITY["choose"].always("room > 0 or active[project] < share"),
        f"{_TESTS}::test_full_master_starts_nothing_until_an_instance_ends",
    ),
)
