"""One bad thing stops one thing: what cannot be worked with is quarantined, and reported."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_HELD_RUNS = Place("shoal.master.engine.held_runs")
_SCAN = Place("shoal.master.services.commands.scanner")
_QUARANTINE = Place("shoal.master.engine.quarantine")
_ENGINE = Place("shoal.master.engine.engine")
_TIMERS = Place("shoal.master.services.timers")
_REQUESTS = Place("shoal.master.services.commands.requests")
_FENCED = Place("shoal.master.membership.partitions")
_BACKLOGS = Place("shoal.api.operations.cluster.backlogs")
_ALERTS = Place("shoal.sql.repositories.alerts.alerts")
_CHILDREN = "tests/integration/master/services/test_children.py"
_HEALTH = "tests/integration/api/cluster/test_backlogs.py"
_JUNK = "tests/integration/master/engine/test_junk.py"
_OPEN = f"{_JUNK}::test_open_run_that_cannot_be_read_is_quarantined_until_it_is_repaired"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.PROGRESS.broken_if(
        "a stop waits for a start that is quarantined",
        _REQUESTS["RunRequests._withdraws"].always("request.type is not CommandType.STOP"),
        f"{_CHILDREN}::test_stop_ends_although_the_start_of_a_child_is_quarantined",
    ),
    Promise.PROGRESS.broken_if(
        "a damaged start of a sub-workflow spoils all requests of a master",
        _REQUESTS["RunRequests.lines"].replace(
            "uow.commands.sent(keys, damaged)", "uow.commands.sent(keys)"
        ),
        f"{_CHILDREN}::test_damaged_start_of_a_child_holds_up_no_other_request",
    ),
    Promise.PROGRESS.broken_if(
        "a run is quarantined because its master has no memory",
        _ENGINE["_decide_all"].never("is_shortage(error)"),
        "tests/integration/master/engine/test_quarantine.py::"
        "test_shortage_of_a_master_quarantines_no_run",
    ),
    Promise.PROGRESS.broken_if(
        "takeovers of several partitions count as one long fence",
        _FENCED["FencedWrites.note"].replace("epochs.items()", "[(0, 0)]"),
        "tests/unit/master/test_fenced_writes.py::"
        "test_takeovers_of_different_partitions_are_no_long_fence",
    ),
    Promise.PROGRESS.broken_if(
        "an owner whose writes stay refused goes unnoticed",
        _BACKLOGS["find_backlogs"].drop("*_fenced(cluster)"),
        f"{_HEALTH}::test_writes_of_an_owner_that_stay_refused_are_named",
    ),
    Promise.PROGRESS.broken_if(
        "a trouble of the export is told only when the export is old",
        _BACKLOGS["_export"].replace("verified.trouble is None and not is_late", "not is_late"),
        f"{_HEALTH}::test_a_trouble_of_the_export_is_named_at_once",
    ),
    Promise.PROGRESS.broken_if(
        "a purge is late because the cluster was switched off",
        _BACKLOGS["_purge"].replace("max(at, _on_since(cluster))", "at"),
        f"{_HEALTH}::test_a_partition_that_was_not_purged_for_long_is_named",
    ),
    Promise.PROGRESS.broken_if(
        "a purge is late that its masters do not plan more often",
        _BACKLOGS["_purge"].replace('2 * _period_s(cluster, "purge_s")', "0"),
        f"{_HEALTH}::test_a_partition_that_was_not_purged_for_long_is_named",
    ),
    Promise.PROGRESS.broken_if(
        "open alerts of deleted rules are kept",
        _ALERTS["_is_forsaken"].drop("~has_rule"),
        "tests/integration/alert/test_telling.py::"
        "test_old_open_alerts_go_whose_end_nobody_hears_of",
    ),
    Promise.PROGRESS.broken_if(
        "a run that cannot be read spoils the takeover of its partition",
        _HELD_RUNS["_load"].drop("bad.append"),
        _OPEN,
    ),
    Promise.PROGRESS.broken_if(
        "a command that cannot be read spoils the scan",
        _SCAN["scan"].drop("bad.append"),
        f"{_JUNK}::test_what_is_repaired_goes_on_by_itself",
    ),
    Promise.PROGRESS.broken_if(
        "what is quarantined is not stored",
        _QUARANTINE["_store"].drop("await uow.quarantine.put(ours)"),
        _OPEN,
    ),
    Promise.PROGRESS.broken_if(
        "a request to try again is refused",
        _ENGINE["_is_ours"].never("isinstance(item.event, RecoverRequested)"),
        _OPEN,
    ),
    Promise.PROGRESS.broken_if(
        "a run has passed before its actions are performed",
        _ENGINE["_act"].replace(
            "self._actions.add(change.run, change.decision.actions, on_trial=on_trial)",
            "self._actions.add(change.run, change.decision.actions)\nself._passed(change.run)",
        ),
        "tests/integration/master/engine/test_quarantine.py::"
        "test_run_whose_actions_fail_is_tried_later_each_time_until_they_do_not",
    ),
    Promise.PROGRESS.broken_if(
        "timers of ended runs stay",
        _TIMERS["drop"].never("len(self._heap) > 2 * self._count + _FEW"),
        "tests/unit/master/test_timers.py::test_entries_of_an_instance_that_has_ended_are_dropped",
    ),
    Promise.GUARDED_STATES.broken_if(
        "requeued events go behind later ones",
        _ENGINE["_on_fenced"].replace(
            "self._inbox.requeue(again)", "[self._inbox.put(item) for item in again]"
        ),
        "tests/integration/master/engine/test_engine.py::"
        "test_events_requeued_after_a_fence_keep_their_order",
    ),
)
