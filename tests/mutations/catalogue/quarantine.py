"""One bad thing stops one thing: what cannot be worked with is quarantined, and reported."""

from tests.mutations.mutation import Mutation, Promise, mutation

_JUNK = "tests/integration/master/test_junk.py"
_OPEN = f"{_JUNK}::test_open_run_that_cannot_be_read_is_quarantined_until_it_is_repaired"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a run that cannot be read spoils the takeover of its partition",
        Promise.PROGRESS,
        "master/shoal/master/engine/held_runs.py",
        ("uow.instances.open_runs(partition, bad.append)", "uow.instances.open_runs(partition)"),
        (_OPEN,),
    ),
    mutation(
        "a command that cannot be read spoils the scan",
        Promise.PROGRESS,
        "master/shoal/master/services/scan.py",
        (
            "uow.commands.pending(partitions, *most, bad.append)",
            "uow.commands.pending(partitions, *most)",
        ),
        (f"{_JUNK}::test_what_is_repaired_goes_on_by_itself",),
    ),
    mutation(
        "what is quarantined is not stored",
        Promise.PROGRESS,
        "master/shoal/master/engine/quarantine.py",
        ("            await uow.quarantine.put(ours)\n", ""),
        (_OPEN,),
    ),
    mutation(
        "a request to try again is refused",
        Promise.PROGRESS,
        "master/shoal/master/engine/engine.py",
        ("elif isinstance(item.event, RecoverRequested):", "elif False:"),
        (_OPEN,),
    ),
    mutation(
        "a run has passed before its actions are performed",
        Promise.PROGRESS,
        "master/shoal/master/engine/engine.py",
        (
            "self._actions.add(change.run, change.decision.actions, on_trial=on_trial)",
            "self._actions.add(change.run, change.decision.actions)\n"
            "            self._passed(change.run)",
        ),
        (
            "tests/integration/master/test_quarantine.py::"
            "test_run_whose_actions_fail_is_tried_later_each_time_until_they_do_not",
        ),
    ),
    mutation(
        "timers of ended runs stay",
        Promise.PROGRESS,
        "master/shoal/master/services/timers.py",
        ("if len(self._heap) > 2 * self._count + _FEW:", "if False:"),
        (
            "tests/unit/master/test_timers.py::"
            "test_entries_of_an_instance_that_has_ended_are_dropped",
        ),
    ),
    mutation(
        "requeued events go behind later ones",
        Promise.GUARDED_STATES,
        "master/shoal/master/engine/engine.py",
        ("self._inbox.requeue(again)", "[self._inbox.put(item) for item in again]"),
        (
            "tests/integration/master/test_engine.py::"
            "test_events_requeued_after_a_fence_keep_their_order",
        ),
    ),
)
