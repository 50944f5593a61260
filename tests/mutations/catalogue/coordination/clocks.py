"""Clocks: which one is believed, and what a wrong one must not do."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_TIME = Place("shoal.core.timing.cluster_time")
_ENDING = Place("shoal.core.decide.endings")
_WORKER_TIME = Place("shoal.master.dispatch.rpc")
_TESTS = "tests/unit/core/timing/test_cluster_time.py"
_TEST_DECIDE_TIME = "tests/unit/core/decide/test_decide_time.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.ONE_INSTANCE.broken_if(
        "a wall clock that jumps is followed at once",
        _TIME["now_s"].always("self._follows_own and abs(own.ahead_s - self._ahead_s) <= STEP_S"),
        f"{_TESTS}::test_own_clock_that_jumps_changes_nothing_not_even_for_a_moment",
    ),
    Promise.ONE_INSTANCE.broken_if(
        "clocks that agree against the own one are not believed",
        _TIME["_judge"].never("len(others) > 1 and max(others) - min(others) <= STEP_S"),
        f"{_TESTS}::test_most_clocks_count_although_the_own_one_was_believed_before",
    ),
    Promise.ONE_INSTANCE.broken_if(
        "a new time counts before it has held for a while",
        _TIME["compare"].always("held_s >= (SETTLE_S if is_confirmed else UNCONFIRMED_S)"),
        f"{_TESTS}::test_one_clock_for_all_that_jumps_and_comes_back_changes_nothing",
    ),
    Promise.ONE_INSTANCE.broken_if(
        "clocks that jump together confirm each other",
        _TIME["compare"].replace("SETTLE_S if is_confirmed else UNCONFIRMED_S", "SETTLE_S"),
        f"{_TESTS}"
        "::test_all_clocks_of_a_machine_that_are_wrong_for_hours_change_nothing[True-3600.0]",
        f"{_TESTS}::test_database_and_ensemble_on_one_machine_that_jump_change_nothing_for_hours",
    ),
    Promise.ONE_INSTANCE.broken_if(
        "an answer that took long counts as what a clock shows now",
        _TIME["observe"].never("trip_s > LONGEST_TRIP_S"),
        f"{_TESTS}::test_late_answer_says_nothing",
    ),
    Promise.PROGRESS.broken_if(
        "retry delays count from the worker's clock",
        _ENDING["_try_again"].replace("draft.at", "ended.finished_at or draft.at"),
        f"{_TEST_DECIDE_TIME}::test_clock_of_a_worker_shortens_no_delay",
    ),
    Promise.PROGRESS.broken_if(
        "a worker's clock decides when its task started",
        _ENDING["_account"].replace("max(moment, attempt.queued_at)", "moment"),
        f"{_TEST_DECIDE_TIME}::test_clock_of_a_worker_lets_no_timeout_come_early",
    ),
    Promise.PROGRESS.broken_if(
        "a worker's wrong clock is not put right",
        _WORKER_TIME["instant"].replace(
            "datetime.fromtimestamp(...) + timedelta(...)", "datetime.fromtimestamp(timestamp, UTC)"
        ),
        "tests/unit/master/test_worker_time.py::test_wrong_clock_of_a_worker_makes_no_difference",
    ),
)
