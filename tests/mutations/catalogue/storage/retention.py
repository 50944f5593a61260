"""Retention: who deletes, and what stays."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_PURGING = Place("shoal.master.services.upkeep.purges")
_TRIGGER = Place("shoal.core.timing.cron.trigger")
_JOBS = Place("shoal.runtime.periodic_jobs")
_OF_JOBS = "tests/unit/runtime/test_periodic_jobs.py"
_EXPIRED = Place("shoal.sql.repositories.upkeep.expired_rows")
_KEEPING = Place("shoal.worker.logs.retention")
_FOLDERS = Place("shoal.worker.logs.folders")
_TESTS = "tests/integration/master/upkeep/test_purging.py"
_DUE_TESTS = "tests/unit/core/timing/test_cron_due.py"
_SQL_TESTS = "tests/integration/sql/upkeep/test_expired.py"
_LOG_TESTS = "tests/integration/worker/logs/test_log_keeping.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.PROGRESS.broken_if(
        "a clock that is set back stops periodic jobs",
        _JOBS["_start_due"].replace(
            "min(job.next_run_time, following or job.next_run_time)", "job.next_run_time"
        ),
        f"{_OF_JOBS}::test_clock_that_goes_back_stops_no_job[hourly]",
    ),
    Promise.PROGRESS.broken_if(
        "times of periodic jobs that were missed come one after the other",
        _JOBS["_start_due"].replace(
            "job.trigger.get_next_fire_time(now, now)",
            "job.trigger.get_next_fire_time(job.next_run_time, now)",
        ),
        f"{_OF_JOBS}::test_times_that_were_missed_count_as_one[hourly]",
    ),
    Promise.PROGRESS.broken_if(
        "runs of periodic jobs outlive their process's work",
        _JOBS["run"].drop("await self._executor.cancel()"),
        f"{_OF_JOBS}::test_error_of_a_job_ends_all_and_no_run_outlives_them",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a former owner purges",
        _PURGING["_fence"].drop("await uow.fence(epochs)"),
        f"{_TESTS}::test_former_owner_deletes_nothing[sqlite]",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a former owner asks for a purge",
        _PURGING["ask_when_due"].drop("await uow.fence(...)"),
        f"{_TESTS}::test_next_owner_neither_repeats_a_purge_nor_forgets_one[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a purge by the clock waits for the next night after the clock was set back",
        _PURGING["__init__"].replace("OrTrigger([trigger, each_minute])", "trigger"),
        f"{_TESTS}::test_clock_that_was_set_back_brings_one_purge_within_a_minute[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a purge that waited for a request is followed by another one",
        _PURGING["purge_in_hours"].drop("self._jobs.next_in(...)"),
        f"{_TESTS}::test_purge_that_waited_looks_at_its_hours_again_and_comes_once[sqlite-04:00-1]",
    ),
    Promise.PROGRESS.broken_if(
        "a clock that was ahead stops the purges",
        _TRIGGER["is_due"].drop("now < previous"),
        f"{_DUE_TESTS}::test_clock_that_was_ahead_for_a_while_stops_no_night",
    ),
    Promise.PROGRESS.broken_if(
        "a clock that jumps to and fro has masters purge all the time",
        _PURGING["ask_when_due"].drop("self._due_s = ..."),
        f"{_TESTS}::test_clock_that_jumps_to_and_fro_has_nobody_purge_all_the_time[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "an instance is deleted without a second look",
        _EXPIRED["delete_instances"].replace(
            "(_INSTANCE_MAY_GO, {'before': before, 'ids': sorted(ids)})",
            "(_i.created_at < bindparam('before'), {'before': before, 'ids': ids})",
        ),
        f"{_SQL_TESTS}::test_only_what_is_finished_goes[sqlite-RUNNING]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "an instance is deleted although somebody is changing it",
        _EXPIRED["delete_instances"].replace("(...).with_for_update(...)", "..."),
        f"{_SQL_TESTS}::test_a_recovery_under_way_is_not_deleted_under_its_feet[postgresql]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "what is asked of an instance does not keep it",
        _EXPIRED.drop("~_is_asked_for"),
        f"{_SQL_TESTS}::test_what_a_pending_command_is_about_stays[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a parent goes before its children have ended",
        _EXPIRED.drop("~_has_open_child"),
        f"{_SQL_TESTS}::"
        "test_parents_go_before_their_children_and_not_before_those_have_ended[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a child that is open keeps everything",
        _EXPIRED.replace(
            "select(task_instance.c.id).where(task_instance.c.workflow_instance_id == "
            "_i.id).correlate(workflow_instance)",
            "select(task_instance.c.id).where(task_instance.c.workflow_instance_id == _i.id)",
        ),
        f"{_SQL_TESTS}::test_open_child_keeps_its_own_parent_and_nothing_else[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "children go before their parent",
        _EXPIRED.drop("~_has_parent"),
        f"{_SQL_TESTS}::"
        "test_parents_go_before_their_children_and_not_before_those_have_ended[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a rehearsal counts children of parents that stay",
        _PURGING["_without_what_they_belong_to"].always(
            "one.parent is None or one.parent in going_parents"
        ),
        f"{_TESTS}::test_rehearsal_counts_what_the_purge_removes[sqlite-False]",
    ),
    Promise.PROGRESS.broken_if(
        "a row of a wrong clock ends the walk of a purge",
        _EXPIRED["_are_young"].always("bool(old * _OLD_SHARE < len(rows))"),
        f"{_SQL_TESTS}::test_runs_of_a_wrong_clock_stop_no_walk[sqlite-last of a window-wrong1]",
    ),
    Promise.PROGRESS.broken_if(
        "a block of rows of a wrong clock ends the walk of a purge",
        _EXPIRED["_window"].drop("not await self._is_old_later(table, last, before)"),
        f"{_SQL_TESTS}::test_runs_of_a_wrong_clock_stop_no_walk[sqlite-block-wrong1]",
    ),
    Promise.PROGRESS.broken_if(
        "instances go before their backfill",
        _EXPIRED.drop("~_has_backfill"),
        f"{_SQL_TESTS}::test_backfill_goes_when_it_is_over_and_its_instances_after_it[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a backfill goes while its instances run",
        _EXPIRED.drop("~_has_open_run"),
        f"{_SQL_TESTS}::test_backfill_goes_when_it_is_over_and_its_instances_after_it[sqlite]",
    ),
    Promise.ONE_INSTANCE.broken_if(
        "an idempotency key is forgotten before what it has made",
        (
            _EXPIRED.drop("~select(_i.id).where(_i.id == _c.instance_id).exists()"),
            _EXPIRED.drop("~select(_i.id).where(_i.command_id == _c.id).exists()"),
        ),
        f"{_SQL_TESTS}::test_key_is_known_as_long_as_what_it_has_made[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a pending command is purged",
        _EXPIRED.replace(
            "and_(~IS_PENDING, _c.handled_at < bindparam(...), ...)",
            "and_(_c.created_at < bindparam(...), ...)",
        ),
        f"{_SQL_TESTS}::test_key_is_known_as_long_as_what_it_has_made[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "the newest instances go as well",
        _PURGING["_unneeded"].replace("one.id not in job.kept[one.workflow_id]", "one.id"),
        f"{_TESTS}::test_newest_instances_stay[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "runs that somebody waits for go as well",
        _EXPIRED["without_looked_for"].never("one.logical_time >= earliest - kept_for"),
        f"{_SQL_TESTS}::test_runs_that_waiting_tasks_may_look_for_stay[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "logs of what still runs are deleted",
        _KEEPING["_is_over"].drop("if _id(one) in standing.open:\n    ..."),
        f"{_LOG_TESTS}::test_logs_of_an_instance_that_runs_stay_however_old_they_are",
    ),
    Promise.NOTHING_LOST.broken_if(
        "logs of attempts of this worker are deleted",
        _KEEPING["_is_over"].always("all(...)"),
        f"{_LOG_TESTS}::test_logs_of_attempts_here_stay_whatever_a_master_says",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a log that was begun meanwhile is deleted with the old ones",
        _FOLDERS["remove"].replace("found.names", "os.listdir(fd)"),
        f"{_LOG_TESTS}::test_what_was_written_since_the_look_stays",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a worker's own clock decides how old logs are",
        _KEEPING["sweep"].replace("max(0.0, now - standing.now)", "0.0"),
        f"{_LOG_TESTS}::test_a_clock_of_our_own_that_is_wrong_deletes_nothing",
    ),
)
