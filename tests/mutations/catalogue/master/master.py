"""The master: fenced transactions, decisions before actions, late and foreign reports, firing."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_ENGINE = Place("shoal.master.engine.engine")
_SCAN = Place("shoal.master.services.commands.scanner")
_STARTS = Place("shoal.master.services.commands.starts")
_OUTCOMES = Place("shoal.master.services.commands.outcomes")
_SCHEDULES = Place("shoal.master.services.schedules")
_HELD = Place("shoal.master.engine.held_runs")
_SHARE = Place("shoal.coordination.recipes.fair_share")
_KEEPER = Place("shoal.master.membership.partitions")
_OWNERSHIP = Place("shoal.coordination.recipes.ownership")
_DRAFT = Place("shoal.core.decide.draft")
_RUN = Place("shoal.core.runs.run")
_ENDING = Place("shoal.core.decide.endings")
_REVOKING = Place("shoal.master.dispatch.revocation")
_RPC = Place("shoal.master.dispatch.rpc")
_FIRE_TIMES = Place("shoal.core.schedule.fire_times")
_SWEEP = Place("shoal.master.services.sweeper")
_ACTION_QUEUE = Place("shoal.master.engine.actions")
_FENCES = "tests/integration/master/engine/test_fences.py"
_TESTS = "tests/integration/master"
_KEEPS = f"{_TESTS}/membership/test_keeper.py"
_CORE = "tests/unit/core/decide/test_decide.py"
_TEST_ENGINE = f"{_TESTS}/engine/test_engine.py"
_TEST_MASTER = f"{_TESTS}/membership/test_master.py"
_TEST_SCHEDULES = f"{_TESTS}/services/test_schedules.py"
_TEST_LIVE_CLAIMS = f"{_TESTS}/upkeep/test_live_claims.py"
_TEST_SWEEP = f"{_TESTS}/upkeep/test_sweep.py"
_TEST_ENGINE_BATCHES = f"{_TESTS}/engine/test_engine_batches.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.FENCED_OWNERSHIP.broken_if(
        "decisions are stored without a fence",
        _ENGINE["_store"].drop("await uow.fence(...)"),
        f"{_FENCES}::test_decision_of_a_former_owner_is_not_stored",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "instances are created without a fence",
        _STARTS["_create_together"].drop("await uow.fence(...)"),
        f"{_FENCES}::test_former_owner_creates_no_instance",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "commands are refused without a fence",
        _OUTCOMES["refuse"].drop("await uow.fence(...)"),
        f"{_FENCES}::test_former_owner_refuses_no_command",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "schedules fire without a fence",
        _SCHEDULES["_fire"].drop("await uow.fence(epochs)"),
        f"{_FENCES}::test_former_owner_fires_no_schedule",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a takeover does not raise the epoch",
        _HELD["take"].drop("await uow.partitions.raise_epochs(...)"),
        f"{_FENCES}::test_decision_of_a_former_owner_is_not_stored",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a fenced master goes on with its runs",
        _ENGINE["_on_fenced"].drop("self._forget(...)"),
        f"{_FENCES}::test_decision_of_a_former_owner_is_not_stored",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "events for partitions that were given up are decided",
        _ENGINE["_is_ours"].never("item.partition not in self.epochs"),
        f"{_FENCES}::test_event_for_a_partition_that_was_given_up_is_refused",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a revocation returns before the partition is free",
        _SHARE["on_revoked"].drop("await self._ownership.released(...)"),
        f"{_KEEPS}::test_revoked_partition_is_free_when_its_revocation_returns",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "the engine works on while its partition is given up",
        _KEEPER["_released"].drop("await self._drop(...)"),
        f"{_KEEPS}::test_revoked_partition_is_free_when_its_revocation_returns",
    ),
    Promise.SELF_FENCE.broken_if(
        "the engine works on without a proven session",
        _KEEPER["_lost"].drop("await self._drop(...)"),
        f"{_KEEPS}::test_partition_is_dropped_when_the_session_cannot_be_proven",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "the epoch of a living successor is superseded",
        _KEEPER["_supersede"].replace(
            "await self.share.confirmed(...)",
            "{Partition(TOPIC, index): won[index][0] for index in fenced}",
        ),
        f"{_KEEPS}::test_epoch_of_a_living_successor_is_not_superseded",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a master that releases deletes the node of a successor",
        _OWNERSHIP["_delete"].always("node.stat.session_id == self._session.session_id"),
        f"{_KEEPS}::test_epoch_of_a_living_successor_is_not_superseded",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "an event changes a run of another partition",
        _ENGINE["_bring_in"].drop("run.partition == item.partition"),
        f"{_TEST_ENGINE}::test_event_for_another_partition_is_refused_and_not_kept[sqlite]",
    ),
    Promise.COMMIT_FIRST.broken_if(
        "what could not be stored stays in memory",
        _HELD["_evict"].drop("self.runs.pop(...)"),
        f"{_FENCES}::test_decision_that_was_not_stored_did_not_happen",
    ),
    Promise.COMMIT_FIRST.broken_if(
        "actions are performed although the store failed",
        _ENGINE["_process"].replace(
            "await self._not_stored(items, error)",
            "await self._not_stored(items, error)\n"
            "for c in changes.values():\n"
            "    self._actions.add(c.run, c.decision.actions)",
        ),
        f"{_FENCES}::test_decision_that_was_not_stored_did_not_happen",
    ),
    Promise.NOTHING_LOST.broken_if(
        "what a failed store has cost is not made up for",
        _HELD["_evict"].drop("self._stale.add(...)"),
        f"{_TESTS}/engine/test_engine_outages.py::"
        "test_run_that_came_back_by_itself_still_gets_what_a_failed_store_lost[sqlite]",
    ),
    Promise.GUARDED_STATES.broken_if(
        "results of an older attempt count for the newest",
        (
            _DRAFT["newest"].replace("newest if newest.id == task_instance_id else None", "newest"),
            _RUN["_count"].drop("self.task_of.pop(...)"),
        ),
        f"{_CORE}::test_results_of_given_up_workers_and_repeated_results_change_nothing",
    ),
    Promise.GUARDED_STATES.broken_if(
        "results of a worker that was given up count",
        _ENDING["end"].never("event.worker is not None and event.worker != attempt.worker"),
        f"{_CORE}::test_results_of_given_up_workers_and_repeated_results_change_nothing",
    ),
    Promise.GUARDED_STATES.broken_if(
        "an attempt can end twice",
        _ENDING["end"].replace(
            "attempt is None or attempt.state not in HELD_BY_WORKER or attempt.worker is None",
            "attempt is None",
        ),
        f"{_CORE}::test_results_of_given_up_workers_and_repeated_results_change_nothing",
    ),
    Promise.GUARDED_STATES.broken_if(
        "a worker that returned an attempt before may return it again",
        _ENDING["requeue"].replace(
            "(attempt.worker, attempt.queued_at) != (event.worker, event.queued_at)",
            "attempt.worker != event.worker",
        ),
        f"{_CORE}::test_only_the_worker_that_holds_an_attempt_and_has_not_begun_returns_it",
    ),
    Promise.GUARDED_STATES.broken_if(
        "an attempt that is to die is queued when it is returned",
        _ENDING["requeue"].never("must_end(draft, attempt)"),
        f"{_CORE}::test_attempt_that_is_returned_when_it_is_to_die_is_killed",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a later hold is taken for the one whose claim is gone",
        _REVOKING["is_still_held"].drop("now.queued_at == attempt.queued_at"),
        f"{_TESTS}/dispatch/test_revoking.py::"
        "test_task_that_is_taken_again_while_its_worker_is_asked_is_not_lost[sqlite]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "an attempt is claimed twice",
        _ENDING["claim"].drop("attempt.state is _T.QUEUED"),
        f"{_CORE}::test_second_claim_of_one_attempt_changes_nothing",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a claimed attempt is given to another worker",
        _RPC["_grant"].drop("attempt.worker != worker"),
        f"{_TEST_MASTER}::test_payload_is_given_again_to_the_same_worker_and_to_no_other[sqlite]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a report from a worker that was given up is called committed",
        _RPC["_verdict"].always("attempt is not None and attempt.worker == worker"),
        f"{_TEST_MASTER}::test_payload_is_given_again_to_the_same_worker_and_to_no_other[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "lost attempts are tried without end",
        _ENDING["_try_again"].drop("ended.losses < MAX_LOSSES"),
        f"{_CORE}::test_task_that_keeps_killing_its_workers_is_given_up",
    ),
    Promise.ONE_INSTANCE.broken_if(
        "a fire time has no key of its own",
        _SCHEDULES["_commands"].replace("fire_time.astimezone", "datetime.now"),
        f"{_FENCES}::test_fire_time_that_comes_up_twice_is_one_command",
    ),
    Promise.ONE_INSTANCE.broken_if(
        "a schedule fires as it was before the transaction",
        _SCHEDULES["_due"].replace("present.get(one.id)", "one"),
        f"{_TEST_SCHEDULES}::test_change_while_the_master_looks_is_what_fires[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "fire times of a master that is seconds behind count as missed",
        _FIRE_TIMES.replace("timedelta(seconds=60)", "timedelta(0)"),
        "tests/unit/core/timing/test_fire_times.py::"
        "test_master_that_is_seconds_behind_drops_nothing[skip]",
    ),
    Promise.PROGRESS.broken_if(
        "schedules with much to make up for keep the others waiting",
        _SCHEDULES["_firing"].replace("share", "10 ** 9"),
        f"{_TEST_SCHEDULES}::"
        "test_great_many_missed_fire_times_come_in_portions_and_hold_up_nobody[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "attempts of a lost worker are not declared lost",
        _SWEEP["sweep"].replace(
            "self._revoke(await self._find_missing())", "await self._find_missing()"
        ),
        f"{_TEST_LIVE_CLAIMS}::test_task_whose_claim_lives_is_left_alone[sqlite]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "attempts whose claim lives are declared lost",
        _SWEEP["_find_missing"].replace(
            "a.id not in claimed and is_still_held(self._engine, run, a)",
            "is_still_held(self._engine, run, a)",
        ),
        f"{_TEST_LIVE_CLAIMS}::test_task_whose_claim_lives_is_left_alone[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "what is missing in the queue is not put again",
        _SWEEP["_find_missing"].drop("await self._queue.put(missing)"),
        f"{_TESTS}/engine/test_awkward.py::"
        "test_entry_that_went_missing_is_put_again_although_the_clock_was_set_back[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "entries that come back during a sweep are put a second time",
        _SWEEP["_find_missing"].always("entry not in back"),
        f"{_TEST_SWEEP}::test_entry_that_comes_back_while_claims_are_read_is_not_missing[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "an attempt that is returned has not waited",
        Place("shoal.core.decide.endings")["requeue"].replace(
            "event.queued_at + timedelta(microseconds=1)", "draft.at"
        ),
        "tests/unit/core/decide/test_decide.py::"
        "test_attempt_that_its_worker_returns_is_queued_again_and_for_anybody",
    ),
    Promise.PROGRESS.broken_if(
        "stale entries stay in the queue",
        _SWEEP["_remove_if_stale"].drop("await self._queue.remove(stale)"),
        f"{_TEST_SWEEP}::test_entries_of_an_ended_instance_vanish_and_valid_ones_stay[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "entries of another master's partitions are removed",
        (
            _SWEEP["_remove_stale"].always("entry.partition in self._engine.epochs"),
            _SWEEP["_remove_if_stale"].always("entry.partition in self._engine.epochs"),
        ),
        f"{_TEST_SWEEP}::test_entries_of_other_masters_are_left_alone[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "commands are looked for only when a notification arrives",
        _SCAN["poll"].never("is_regular"),
        f"{_TEST_ENGINE}::test_notifications_of_others_do_not_put_off_a_unheard_command[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "the end of one task is decided in the event loop, whatever it starts",
        _ENGINE["_decide"].replace("decide(run, event, most)", "decide(run, event)"),
        f"{_TEST_ENGINE_BATCHES}::"
        "test_what_is_about_many_tasks_is_not_decided_in_the_event_loop[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a batch goes on, about however many tasks it is",
        _ENGINE["_decide_all"].never("tasks > self._limits.tasks"),
        f"{_TEST_ENGINE_BATCHES}::test_batch_ends_when_it_is_about_enough_tasks[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "events that a batch leaves come after those that came later",
        _ENGINE["_decide_all"].replace(
            "self._inbox.requeue(items[number:])",
            "for item in items[number:]:\n    self._inbox.put(item)",
        ),
        f"{_TEST_ENGINE_BATCHES}::test_batch_ends_when_it_is_about_enough_tasks[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "actions go out together, however many have come",
        _ACTION_QUEUE["_next"].never("count and actions > MOST_ACTIONS"),
        "tests/unit/master/test_actions.py::"
        "test_call_is_about_so_many_actions_unless_one_run_has_more",
    ),
)
