"""Backfills: fenced steps, the window, one run for each try of a date."""

from tests.mutations.mutation import Mutation, Promise, mutation

_MASTER = "master/shoal/master/services/backfills.py"
_WINDOW = "core/shoal/core/backfill/window.py"
_TESTS = "tests/integration/master/test_backfills.py"
_WINDOW_TESTS = "tests/unit/core/test_backfill_window.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "backfills move on without a fence",
        Promise.FENCED_OWNERSHIP,
        _MASTER,
        ("await uow.fence({partition: self._engine.epoch_of(partition)})", "pass"),
        (f"{_TESTS}::test_a_former_owner_starts_nothing_and_its_successor_goes_on",),
    ),
    mutation(
        "a date has one key for all its tries",
        Promise.PROGRESS,
        _MASTER,
        (
            'key = f"backfill:{needs.backfill.id}:{run.position}:{run.tries}"',
            'key = f"backfill:{needs.backfill.id}:{run.position}"',
        ),
        (f"{_TESTS}::test_cancelled_it_stops_what_runs_and_can_be_taken_up_again",),
    ),
    mutation(
        "the end of a run wakes no backfill",
        Promise.PROGRESS,
        _MASTER,
        ("self._ended.add(run.backfill_id)", "pass"),
        (f"{_TESTS}::test_the_end_of_a_run_notifies_the_notification_of_another_master",),
    ),
    mutation(
        "the window does not count what is under way",
        Promise.ONE_INSTANCE,
        _WINDOW,
        (
            "_first_ones(now, parallel - under_way, waits_for)",
            "_first_ones(now, parallel, waits_for)",
        ),
        (f"{_WINDOW_TESTS}::test_the_next_date_starts_when_any_ends",),
    ),
    mutation(
        "a date starts before those that it depends on have ended",
        Promise.GUARDED_STATES,
        _WINDOW,
        ("ENDED_WELL = frozenset({_S.SUCCEEDED, _S.SKIPPED})", "ENDED_WELL = frozenset(_S)"),
        (f"{_WINDOW_TESTS}::test_a_date_starts_only_after_those_it_depends_on_have_ended_well",),
    ),
)
