"""Backfills: fenced steps, the window, one run for each try of a date."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_MASTER = Place("shoal.master.services.backfills")
_WINDOW = Place("shoal.core.backfill.window")
_TESTS = "tests/integration/master/services/test_backfills.py"
_WINDOW_TESTS = "tests/unit/core/backfill/test_backfill_window.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.FENCED_OWNERSHIP.broken_if(
        "backfills move on without a fence",
        _MASTER["_fence"].drop("await uow.fence(...)"),
        f"{_TESTS}::test_a_former_owner_starts_nothing_and_its_successor_goes_on",
    ),
    Promise.PROGRESS.broken_if(
        "a date has one key for all its tries",
        _MASTER["_start"].replace(
            "f'backfill:{needs.backfill.id}:{run.position}:{run.tries}'",
            "f'backfill:{needs.backfill.id}:{run.position}'",
        ),
        f"{_TESTS}::test_cancelled_it_stops_what_runs_and_can_be_taken_up_again",
    ),
    Promise.PROGRESS.broken_if(
        "the end of a run wakes no backfill",
        _MASTER["on_ended"].drop("self._ended.add(...)"),
        f"{_TESTS}::test_the_end_of_a_run_notifies_the_notification_of_another_master",
    ),
    Promise.ONE_INSTANCE.broken_if(
        "the window does not count what is under way",
        _WINDOW["_next_ones"].replace("parallel - taken", "parallel"),
        f"{_WINDOW_TESTS}::test_the_next_date_starts_when_any_ends",
    ),
    Promise.GUARDED_STATES.broken_if(
        "a date starts before those that it depends on have ended",
        _WINDOW.replace("{_S.SUCCEEDED, _S.SKIPPED}", "_S"),
        f"{_WINDOW_TESTS}::test_a_date_starts_only_after_those_it_depends_on_have_ended_well",
    ),
)
