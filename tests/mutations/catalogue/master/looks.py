"""Tasks that look again and again: what a look uses up, what it holds, and how long it may last."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_ENDING = Place("shoal.core.decide.endings")
_DRAFT = Place("shoal.core.decide.draft")
_CLOCK = Place("shoal.core.decide.clock")
_LOOKS = Place("shoal.core.timing.poll_interval")
_SETTLING = Place("shoal.worker.results.settlement")
_RESULTS = Place("shoal.worker.results.results")
_ROOTS = Place("shoal.worker.types.wait.roots")
_REMOTE = Place("shoal.worker.types.wait.remote")
_SQL_WORK = Place("shoal.worker.types.wait.sql_work")
_OF_DECIDE = "tests/unit/core/decide/test_decide_looks.py"
_OF_PARAMS = "tests/unit/worker/wait/test_params.py"
_OF_LOOKS = "tests/integration/worker/wait/test_looks.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.NOTHING_LOST.broken_if(
        "a look uses up a retry",
        _ENDING["_look_again"].replace("ended.failures", "ended.failures + 1"),
        f"{_OF_DECIDE}::test_looks_use_up_no_retries",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a look of a task that is to die is followed by another one",
        _ENDING["end"].replace(
            "signal in (TaskSignal.LOSE, TaskSignal.RESCHEDULE)", "signal is TaskSignal.LOSE"
        ),
        f"{_OF_DECIDE}::test_kill_during_a_look_that_finds_nothing_is_the_end",
    ),
    Promise.GUARDED_STATES.broken_if(
        "the report of an earlier look counts for the present one",
        _DRAFT["newest"].replace("newest if newest.id == task_instance_id else None", "newest"),
        f"{_OF_DECIDE}::test_report_of_an_earlier_look_is_not_taken_for_the_present_one",
    ),
    Promise.PROGRESS.broken_if(
        "the timeout begins anew with each look",
        _ENDING["_look_again"].drop("ended.waiting_since"),
        f"{_OF_DECIDE}::test_warning_of_a_long_wait_is_recorded_once",
    ),
    Promise.PROGRESS.broken_if(
        "nobody enforces the timeout between two looks",
        _CLOCK["advance"].never("attempt.is_between_looks"),
        f"{_OF_DECIDE}::test_timeout_counts_across_looks[delayed]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a look that was queued when its time was over stays in the queue",
        _CLOCK["_look_at_deadlines"].drop("endings.drop(...)"),
        f"{_OF_DECIDE}::test_timeout_counts_across_looks[queued]",
    ),
    Promise.PROGRESS.broken_if(
        "a worker that says never is believed",
        _LOOKS["bounded"].replace("min(...)", "again_s"),
        f"{_OF_DECIDE}::test_what_a_worker_says_is_kept_within_bounds",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a look that has left something behind is followed by another one",
        _SETTLING["complete"].replace(
            "{**record.context, 'not_yet_exit_code': None}", "record.context"
        ),
        "tests/integration/worker/agent/test_child_types.py::"
        "test_look_that_cannot_be_settled_is_a_failure",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "a look is a failure for the next life of its worker",
        _RESULTS["record_context"].drop("context['not_yet_exit_code'] = ..."),
        "tests/integration/worker/wait/test_agent_looks.py::"
        "test_look_is_reported_as_one_by_the_next_life_of_the_worker",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "links lead out of the folders of a worker",
        _ROOTS["allows"].replace("os.path.realpath(path)", "path"),
        f"{_OF_PARAMS}::test_links_lead_nobody_out_of_the_folders_of_a_worker",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "any storage is asked with the worker's credentials",
        _REMOTE["entries"].drop("roots.require_url(url)"),
        f"{_OF_LOOKS}::test_storage_that_is_not_allowed_is_not_asked",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a query of a task that waits may write",
        _SQL_WORK["_first_row"].replace("read_only=True", "read_only=False"),
        f"{_OF_LOOKS}::test_query_that_will_never_do_fails_for_good",
    ),
)
