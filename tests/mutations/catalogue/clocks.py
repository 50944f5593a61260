"""Clocks: which one is believed, and what a wrong one must not do."""

from tests.mutations.mutation import Mutation, Promise, mutation

_TIME = "core/shoal/core/timing/cluster_time.py"
_TESTS = "tests/unit/core/test_cluster_time.py"
_ENDING = "core/shoal/core/decide/ending.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a wall clock that jumps is followed at once",
        Promise.ONE_INSTANCE,
        _TIME,
        ("if self._follows_own and abs(own.ahead_s - self._ahead_s) <= STEP_S:", "if True:"),
        (f"{_TESTS}::test_own_clock_that_jumps_changes_nothing_not_even_for_a_moment",),
    ),
    mutation(
        "clocks that agree against the own one are not believed",
        Promise.ONE_INSTANCE,
        _TIME,
        ("if len(others) > 1 and max(others) - min(others) <= STEP_S:", "if False:"),
        (f"{_TESTS}::test_most_clocks_count_although_the_own_one_was_believed_before",),
    ),
    mutation(
        "a new time counts before it has held for a while",
        Promise.ONE_INSTANCE,
        _TIME,
        ("own.since_boot_s - self._proposed[1] >= SETTLE_S", "True"),
        (f"{_TESTS}::test_one_clock_for_all_that_jumps_and_comes_back_changes_nothing",),
    ),
    mutation(
        "an answer that took long counts as what a clock shows now",
        Promise.ONE_INSTANCE,
        _TIME,
        ("if trip_s > LONGEST_TRIP_S:", "if False:"),
        (f"{_TESTS}::test_late_answer_says_nothing",),
    ),
    mutation(
        "retry delays count from the worker's clock",
        Promise.PROGRESS,
        _ENDING,
        (
            "due_at=draft.at + timedelta(seconds=delay_s)",
            "due_at=(ended.finished_at or draft.at) + timedelta(seconds=delay_s)",
        ),
        ("tests/unit/core/test_decide_time.py::test_clock_of_a_worker_shortens_no_delay",),
    ),
    mutation(
        "a worker's clock decides when its task started",
        Promise.PROGRESS,
        _ENDING,
        ("return max(moment, attempt.queued_at)", "return moment"),
        ("tests/unit/core/test_decide_time.py::test_clock_of_a_worker_lets_no_timeout_come_early",),
    ),
    mutation(
        "a worker's wrong clock is not put right",
        Promise.PROGRESS,
        "master/shoal/master/dispatch/worker_time.py",
        ("+ timedelta(seconds=self._behind_s)", ""),
        (
            "tests/unit/master/test_worker_time.py::"
            "test_wrong_clock_of_a_worker_makes_no_difference",
        ),
    ),
)
