"""Tasks that look again and again: what a look uses up, what it holds, and how long it may last."""

from tests.mutations.mutation import Mutation, Promise, mutation

_DECIDE = "core/shoal/core/decide"
_OF_DECIDE = "tests/unit/core/test_decide_looks.py"
_RESULTS = "worker/shoal/worker/results/results.py"
_WAIT = "worker/shoal/worker/types/wait"
_OF_PARAMS = "tests/unit/worker/wait/test_params.py"
_OF_LOOKS = "tests/integration/worker/wait/test_looks.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a look uses up a retry",
        Promise.NOTHING_LOST,
        f"{_DECIDE}/ending.py",
        (
            "        failures=ended.failures,\n        looks=ended.looks + 1,",
            "        failures=ended.failures + 1,\n        looks=ended.looks + 1,",
        ),
        (f"{_OF_DECIDE}::test_looks_use_up_no_retries",),
    ),
    mutation(
        "a look of a task that is to die is followed by another one",
        Promise.KILLED_MEANS_DEAD,
        f"{_DECIDE}/ending.py",
        ("signal in (TaskSignal.LOSE, TaskSignal.RESCHEDULE):", "signal is TaskSignal.LOSE:"),
        (f"{_OF_DECIDE}::test_kill_during_a_look_that_finds_nothing_is_the_end",),
    ),
    mutation(
        "the report of an earlier look counts for the present one",
        Promise.GUARDED_STATES,
        f"{_DECIDE}/draft.py",
        ("return newest if newest.id == task_instance_id else None", "return newest"),
        (f"{_OF_DECIDE}::test_report_of_an_earlier_look_is_not_taken_for_the_present_one",),
    ),
    mutation(
        "the timeout begins anew with each look",
        Promise.PROGRESS,
        f"{_DECIDE}/ending.py",
        (
            "waiting_since=ended.waiting_since or ended.started_at or draft.at,",
            "waiting_since=ended.started_at or draft.at,",
        ),
        (f"{_OF_DECIDE}::test_warning_of_a_long_wait_is_recorded_once",),
    ),
    mutation(
        "nobody enforces the timeout between two looks",
        Promise.PROGRESS,
        f"{_DECIDE}/clock.py",
        ("or attempt.is_between_looks:\n            _look_at", "or False:\n            _look_at"),
        (f"{_OF_DECIDE}::test_timeout_counts_across_looks[delayed]",),
    ),
    mutation(
        "a look that was queued when its time was over stays in the queue",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_DECIDE}/clock.py",
        ("                ending.drop(draft, attempt)", "                pass"),
        (f"{_OF_DECIDE}::test_timeout_counts_across_looks[queued]",),
    ),
    mutation(
        "a worker that says never is believed",
        Promise.PROGRESS,
        "core/shoal/core/timing/looks.py",
        ("return min(max(again_s, SHORTEST_S), LONGEST_S)", "return again_s"),
        (f"{_OF_DECIDE}::test_what_a_worker_says_is_kept_within_bounds",),
    ),
    mutation(
        "a look that has left something behind is followed by another one",
        Promise.ONE_LIVE_ATTEMPT,
        "worker/shoal/worker/execution/settling.py",
        ('known = {**record.context, "not_yet_exit_code": None}', "known = record.context"),
        (
            "tests/integration/worker/test_agent_child_types.py::"
            "test_look_that_cannot_be_settled_is_a_failure",
        ),
    ),
    mutation(
        "a look is a failure for the next life of its worker",
        Promise.DURABLE_RESULTS,
        _RESULTS,
        ('        context["not_yet_exit_code"] = not_yet_exit_code', "        pass"),
        (
            "tests/integration/worker/wait/test_agent_looks.py::"
            "test_look_is_reported_as_one_by_the_next_life_of_the_worker",
        ),
    ),
    mutation(
        "links lead out of the folders of a worker",
        Promise.TEXT_STAYS_TEXT,
        f"{_WAIT}/roots.py",
        ("real = PurePosixPath(os.path.realpath(path))", "real = PurePosixPath(path)"),
        (f"{_OF_PARAMS}::test_links_lead_nobody_out_of_the_folders_of_a_worker",),
    ),
    mutation(
        "any storage is asked with the worker's credentials",
        Promise.TEXT_STAYS_TEXT,
        f"{_WAIT}/remote.py",
        ("    roots.require_url(url)\n", ""),
        (f"{_OF_LOOKS}::test_storage_that_is_not_allowed_is_not_asked",),
    ),
    mutation(
        "a query of a task that waits may write",
        Promise.TEXT_STAYS_TEXT,
        f"{_WAIT}/sql_work.py",
        ("read_only=True,", "read_only=False,"),
        (f"{_OF_LOOKS}::test_query_that_will_never_do_fails_for_good",),
    ),
)
