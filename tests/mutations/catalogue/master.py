"""The master: fenced transactions, decisions before actions, late and foreign reports, firing."""

from tests.mutations.mutation import Mutation, Promise, mutation

_ENGINE = "master/shoal/master/engine/engine.py"
_HELD = "master/shoal/master/engine/held_runs.py"
_RPC = "master/shoal/master/dispatch/rpc.py"
_DRAFT = "core/shoal/core/decide/draft.py"
_ENDING = "core/shoal/core/decide/ending.py"
_SWEEP = "master/shoal/master/services/sweep.py"
_FENCES = "tests/integration/master/test_fences.py"
_KEEPER = "master/shoal/master/membership/partitions.py"
_SHARE = "coordination/shoal/coordination/recipes/fair_share.py"
_TESTS = "tests/integration/master"
_KEEPS = f"{_TESTS}/test_keeper.py"
_CORE = "tests/unit/core/test_decide.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "decisions are stored without a fence",
        Promise.FENCED_OWNERSHIP,
        _ENGINE,
        (
            "await uow.fence({item.partition: self.epochs[item.partition] for item in items})",
            "pass",
        ),
        (f"{_FENCES}::test_decision_of_a_former_owner_is_not_stored",),
    ),
    mutation(
        "instances are created without a fence",
        Promise.FENCED_OWNERSHIP,
        "master/shoal/master/services/scan.py",
        ("await uow.fence({c.partition: epochs[c.partition] for c in commands})", "pass"),
        (f"{_FENCES}::test_former_owner_creates_no_instance",),
    ),
    mutation(
        "commands are refused without a fence",
        Promise.FENCED_OWNERSHIP,
        "master/shoal/master/services/scan.py",
        ("await uow.fence({command.partition: self._engine.epoch_of(command.partition)})", "pass"),
        (f"{_FENCES}::test_former_owner_refuses_no_command",),
    ),
    mutation(
        "schedules fire without a fence",
        Promise.FENCED_OWNERSHIP,
        "master/shoal/master/services/schedules.py",
        ("await uow.fence(epochs)", "pass"),
        (f"{_FENCES}::test_former_owner_fires_no_schedule",),
    ),
    mutation(
        "a takeover does not raise the epoch",
        Promise.FENCED_OWNERSHIP,
        _HELD,
        ("await uow.partitions.raise_epochs(epochs, owner)", "pass"),
        (f"{_FENCES}::test_decision_of_a_former_owner_is_not_stored",),
    ),
    mutation(
        "a fenced master goes on with its runs",
        Promise.FENCED_OWNERSHIP,
        _ENGINE,
        ("self._forget(set(error.partitions))", "pass"),
        (f"{_FENCES}::test_decision_of_a_former_owner_is_not_stored",),
    ),
    mutation(
        "events for partitions that were given up are decided",
        Promise.FENCED_OWNERSHIP,
        _ENGINE,
        ("if item.partition not in self.epochs:", "if False:"),
        (f"{_FENCES}::test_event_for_a_partition_that_was_given_up_is_refused",),
    ),
    mutation(
        "a revocation returns before the partition is free",
        Promise.FENCED_OWNERSHIP,
        _SHARE,
        ("await self._ownership.released(self._numbers(partitions))", "pass"),
        (f"{_KEEPS}::test_revoked_partition_is_free_when_its_revocation_returns",),
    ),
    mutation(
        "the engine works on while its partition is given up",
        Promise.FENCED_OWNERSHIP,
        _KEEPER,
        ("await self._drop([partition.index])", "pass"),
        (f"{_KEEPS}::test_revoked_partition_is_free_when_its_revocation_returns",),
    ),
    mutation(
        "the engine works on without a proven session",
        Promise.SELF_FENCE,
        _KEEPER,
        ("await self._drop([partition.index for partition in partitions])", "pass"),
        (f"{_KEEPS}::test_partition_is_dropped_when_the_session_cannot_be_proven",),
    ),
    mutation(
        "the epoch of a living successor is superseded",
        Promise.FENCED_OWNERSHIP,
        _KEEPER,
        (
            "ours = await self.share.confirmed(Partition(TOPIC, index) for index in fenced)",
            "ours = {Partition(TOPIC, index): won[index][0] for index in fenced}",
        ),
        (f"{_KEEPS}::test_epoch_of_a_living_successor_is_not_superseded",),
    ),
    mutation(
        "a master that releases deletes the node of a successor",
        Promise.FENCED_OWNERSHIP,
        "coordination/shoal/coordination/recipes/ownership.py",
        (
            "            if node.stat.session_id == self._session.session_id:\n",
            "            if True:\n",
        ),
        (f"{_KEEPS}::test_epoch_of_a_living_successor_is_not_superseded",),
    ),
    mutation(
        "an event changes a run of another partition",
        Promise.FENCED_OWNERSHIP,
        _ENGINE,
        ("if run is not None and run.partition == item.partition:", "if run is not None:"),
        (
            f"{_TESTS}/test_engine.py::test_event_for_another_partition_is_refused_and_not_kept"
            "[sqlite]",
        ),
    ),
    mutation(
        "what could not be stored stays in memory",
        Promise.COMMIT_FIRST,
        _HELD,
        ("self.runs.pop(instance_id, None)\n            self._stale", "self._stale"),
        (f"{_FENCES}::test_decision_that_was_not_stored_did_not_happen",),
    ),
    mutation(
        "actions are performed although the store failed",
        Promise.COMMIT_FIRST,
        _ENGINE,
        (
            "            await self._not_stored(items, error)\n            return\n",
            "            await self._not_stored(items, error)\n"
            "            for c in changes.values():\n"
            "                self._actions.add(c.run, c.decision.actions)\n"
            "            return\n",
        ),
        (f"{_FENCES}::test_decision_that_was_not_stored_did_not_happen",),
    ),
    mutation(
        "what a failed store has cost is not made up for",
        Promise.NOTHING_LOST,
        _HELD,
        ("self._stale.add(instance_id)", "pass"),
        (
            f"{_TESTS}/test_engine_outages.py::"
            "test_run_that_came_back_by_itself_still_gets_what_a_failed_store_lost[sqlite]",
        ),
    ),
    mutation(
        "results of an older attempt count for the newest",
        Promise.GUARDED_STATES,
        _DRAFT,
        ("return newest if newest.id == task_instance_id else None", "return newest"),
        (f"{_CORE}::test_results_of_given_up_workers_and_repeated_results_change_nothing",),
        also={"core/shoal/core/runs/run.py": ("self.task_of.pop(attempt.id, None)", "pass")},
    ),
    mutation(
        "results of a worker that was given up count",
        Promise.GUARDED_STATES,
        _ENDING,
        ("if event.worker is not None and event.worker != attempt.worker:", "if False:"),
        (f"{_CORE}::test_results_of_given_up_workers_and_repeated_results_change_nothing",),
    ),
    mutation(
        "an attempt can end twice",
        Promise.GUARDED_STATES,
        _ENDING,
        (
            "if attempt is None or attempt.state not in HELD_BY_WORKER or attempt.worker is None:",
            "if attempt is None:",
        ),
        (f"{_CORE}::test_results_of_given_up_workers_and_repeated_results_change_nothing",),
    ),
    mutation(
        "a worker that returned an attempt before may return it again",
        Promise.GUARDED_STATES,
        _ENDING,
        (
            "if (attempt.worker, attempt.queued_at) != (event.worker, event.queued_at):",
            "if attempt.worker != event.worker:",
        ),
        (f"{_CORE}::test_only_the_worker_that_holds_an_attempt_and_has_not_begun_returns_it",),
    ),
    mutation(
        "an attempt that is to die is queued when it is returned",
        Promise.GUARDED_STATES,
        _ENDING,
        (
            "if must_end(draft, attempt):\n        if attempt.termination",
            "if False:\n        if attempt.termination",
        ),
        (f"{_CORE}::test_attempt_that_is_returned_when_it_is_to_die_is_killed",),
    ),
    mutation(
        "a later hold is taken for the one whose claim is gone",
        Promise.ONE_LIVE_ATTEMPT,
        "master/shoal/master/dispatch/revoking.py",
        (" and now.queued_at == attempt.queued_at", ""),
        (
            f"{_TESTS}/test_revoking.py::"
            "test_task_that_is_taken_again_while_its_worker_is_asked_is_not_lost[sqlite]",
        ),
    ),
    mutation(
        "an attempt is claimed twice",
        Promise.ONE_LIVE_ATTEMPT,
        _ENDING,
        ("if attempt is not None and attempt.state is _T.QUEUED:", "if attempt is not None:"),
        (f"{_CORE}::test_second_claim_of_one_attempt_changes_nothing",),
    ),
    mutation(
        "a claimed attempt is given to another worker",
        Promise.ONE_LIVE_ATTEMPT,
        _RPC,
        (" or attempt.worker != worker:", ":"),
        (
            f"{_TESTS}/test_master.py::"
            "test_payload_is_given_again_to_the_same_worker_and_to_no_other[sqlite]",
        ),
    ),
    mutation(
        "a report from a worker that was given up is called committed",
        Promise.ONE_LIVE_ATTEMPT,
        _RPC,
        ("mine = attempt is not None and attempt.worker == worker", "mine = True"),
        (
            f"{_TESTS}/test_master.py::"
            "test_payload_is_given_again_to_the_same_worker_and_to_no_other[sqlite]",
        ),
    ),
    mutation(
        "lost attempts are tried without end",
        Promise.PROGRESS,
        _ENDING,
        (
            "elif ended.state is _T.LOST and ended.losses < MAX_LOSSES:",
            "elif ended.state is _T.LOST:",
        ),
        (f"{_CORE}::test_task_that_keeps_killing_its_workers_is_given_up",),
    ),
    mutation(
        "a fire time has no key of its own",
        Promise.ONE_INSTANCE,
        "master/shoal/master/services/schedules.py",
        (
            'key = f"schedule:{schedule.id}:{fire_time.astimezone(UTC).isoformat()}"',
            'key = f"schedule:{schedule.id}:{datetime.now(UTC).isoformat()}"',
        ),
        (f"{_FENCES}::test_fire_time_that_comes_up_twice_is_one_command",),
    ),
    mutation(
        "a schedule fires as it was before the transaction",
        Promise.ONE_INSTANCE,
        "master/shoal/master/services/schedules.py",
        ("schedule = present.get(one.id)", "schedule = one"),
        (f"{_TESTS}/test_schedules.py::test_change_while_the_master_looks_is_what_fires[sqlite]",),
    ),
    mutation(
        "fire times of a master that is seconds behind count as missed",
        Promise.NOTHING_LOST,
        "core/shoal/core/schedule/fire_times.py",
        ("GRACE = timedelta(seconds=60)", "GRACE = timedelta(0)"),
        (
            "tests/unit/core/test_fire_times.py::"
            "test_master_that_is_seconds_behind_drops_nothing[skip]",
        ),
    ),
    mutation(
        "schedules with much to make up for keep the others waiting",
        Promise.PROGRESS,
        "master/shoal/master/services/schedules.py",
        (
            "due(timetable, planned, now, schedule.missed, oldest, share)",
            "due(timetable, planned, now, schedule.missed, oldest, 10**9)",
        ),
        (
            f"{_TESTS}/test_schedules.py::"
            "test_great_many_missed_fire_times_come_in_portions_and_hold_up_nobody[sqlite]",
        ),
    ),
    mutation(
        "attempts of a lost worker are not declared lost",
        Promise.NOTHING_LOST,
        _SWEEP,
        ("self._revoke(await self._find_missing())", "await self._find_missing()"),
        (f"{_TESTS}/test_live_claims.py::test_task_whose_claim_lives_is_left_alone[sqlite]",),
    ),
    mutation(
        "attempts whose claim lives are declared lost",
        Promise.ONE_LIVE_ATTEMPT,
        _SWEEP,
        (
            "if a.id not in claimed and is_still_held(self._engine, run, a)",
            "if is_still_held(self._engine, run, a)",
        ),
        (f"{_TESTS}/test_live_claims.py::test_task_whose_claim_lives_is_left_alone[sqlite]",),
    ),
    mutation(
        "what is missing in the queue is not put again",
        Promise.NOTHING_LOST,
        _SWEEP,
        ("await self._queue.put(missing)", "pass"),
        (
            f"{_TESTS}/test_awkward.py::"
            "test_entry_that_went_missing_is_put_again_although_the_clock_was_set_back[sqlite]",
        ),
    ),
    mutation(
        "stale entries stay in the queue",
        Promise.PROGRESS,
        _SWEEP,
        ("await self._queue.remove(stale)", "pass"),
        (
            f"{_TESTS}/test_sweep.py::"
            "test_entries_of_an_ended_instance_vanish_and_valid_ones_stay[sqlite]",
        ),
    ),
    mutation(
        "entries of another master's partitions are removed",
        Promise.NOTHING_LOST,
        _SWEEP,
        (
            "if entry.partition in self._engine.epochs:\n                of_run",
            "if True:\n                of_run",
        ),
        (f"{_TESTS}/test_sweep.py::test_entries_of_other_masters_are_left_alone[sqlite]",),
        also={
            _SWEEP: (
                "if entry.partition in self._engine.epochs:\n                    of_run",
                "if True:\n                    of_run",
            )
        },
    ),
    mutation(
        "commands are looked for only when a notification arrives",
        Promise.PROGRESS,
        "master/shoal/master/services/scan.py",
        ("if is_regular:", "if False:"),
        (
            f"{_TESTS}/test_engine.py::"
            "test_notifications_of_others_do_not_put_off_a_unheard_command[sqlite]",
        ),
    ),
    mutation(
        "the end of one task is decided in the event loop, whatever it starts",
        Promise.PROGRESS,
        _ENGINE,
        ("decision = decide(run, event, _MOST_AT_ONCE)", "decision = decide(run, event)"),
        (
            f"{_TESTS}/test_engine_batches.py::"
            "test_what_is_about_many_tasks_is_not_decided_in_the_event_loop[sqlite]",
        ),
    ),
    mutation(
        "a batch goes on, about however many tasks it is",
        Promise.PROGRESS,
        _ENGINE,
        ("            if tasks > MOST_TASKS:\n", "            if False:\n"),
        (
            f"{_TESTS}/test_engine_batches.py::test_batch_ends_when_it_is_about_enough_tasks[sqlite]",
        ),
    ),
    mutation(
        "events that a batch leaves come after those that came later",
        Promise.NOTHING_LOST,
        _ENGINE,
        (
            "                self._inbox.requeue(items[number:])\n",
            "                for item in items[number:]:\n"
            "                    self._inbox.put(item)\n",
        ),
        (
            f"{_TESTS}/test_engine_batches.py::test_batch_ends_when_it_is_about_enough_tasks[sqlite]",
        ),
    ),
    mutation(
        "actions go out together, however many have come",
        Promise.PROGRESS,
        "master/shoal/master/engine/action_queue.py",
        ("if count and actions > MOST_ACTIONS:", "if False:"),
        (
            "tests/unit/master/test_action_queue.py::"
            "test_call_is_about_so_many_actions_unless_one_run_has_more",
        ),
    ),
)
