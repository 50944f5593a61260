"""The worker: lease, launcher, process trees, results."""

from tests.mutations.mutation import Mutation, Promise, mutation

_LAUNCHER = "worker/shoal/worker/supervisor/launcher.py"
_REAPER = "worker/shoal/worker/supervisor/reaper.py"
_SHIM = "worker/shoal/worker/supervisor/shim/shim.py"
_PROCTREE = "worker/shoal/worker/supervisor/proctree.py"
_WATCHDOG = "worker/shoal/worker/supervisor/watchdog.py"
_RECORDS = "worker/shoal/worker/supervisor/shim/records.py"
_JOURNAL = "worker/shoal/worker/supervisor/shim/journal.py"
_JOURNAL_TESTS = "tests/unit/worker/test_journal.py"
_RUNNER = "worker/shoal/worker/execution/runner.py"
_ENDINGS = "worker/shoal/worker/results/endings.py"
_REPORTING = "worker/shoal/worker/results/reporting.py"
_HOME = "worker/shoal/worker/home/home.py"
_RETURNING = "worker/shoal/worker/intake/requeue.py"
_LINE = "tests/unit/worker/test_prefetch.py"
_TESTS = "tests/integration/worker"
_TELL_END = 'log.info(\n            "task ended",\n'

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "an interrupted attempt counts as killed by request",
        Promise.NOTHING_LOST,
        "worker/shoal/worker/results/results.py",
        ("return record.cause in INTERRUPTIONS", "return False"),
        (
            "tests/unit/worker/test_attempt.py::"
            "test_cause_of_an_end_is_in_its_record_and_alone_decides[LEASE_LOST]",
        ),
    ),
    mutation(
        "a kill by request that an earlier version stored is dropped",
        Promise.NOTHING_LOST,
        "worker/shoal/worker/execution/attempt.py",
        (
            "EndCause.KILL if reason.startswith(_OLD_KILL_MARK) else EndCause.INTERRUPT",
            "EndCause.INTERRUPT",
        ),
        ("tests/unit/worker/test_attempt.py::test_record_of_an_earlier_version_is_understood",),
    ),
    mutation(
        "the worker's lease outlasts its session",
        Promise.SELF_FENCE,
        "worker/shoal/worker/agent.py",
        ("max(0.0, self._session.proven_until)", "self._session.proven_until + 3600.0"),
        (
            f"{_TESTS}/test_agent_leaving.py::"
            "test_frozen_agent_loses_its_tasks_before_anybody_may_run_them_again",
        ),
    ),
    mutation(
        "the launcher does not watch the lease",
        Promise.SELF_FENCE,
        _LAUNCHER,
        (
            "if self._lease is not None and boottime() >= self._lease and not self._lease_lost:",
            "if False:",
        ),
        (
            f"{_TESTS}/test_killing.py::"
            "test_a_lease_that_runs_out_kills_everything_and_refuses_more[tree]",
        ),
    ),
    mutation(
        "the watchdog does not watch the lease",
        Promise.SELF_FENCE,
        _WATCHDOG,
        ("if board.overdue(PATIENCE_OF_WATCHDOG):", "if False:"),
        (f"{_TESTS}/test_lease.py::test_tasks_of_a_launcher_that_stands_still_end_with_the_lease",),
    ),
    mutation(
        "the launcher starts tasks without a lease",
        Promise.SELF_FENCE,
        _LAUNCHER,
        ("elif self._lease is not None and boottime() >= self._lease:", "elif False:"),
        (
            f"{_TESTS}/test_killing.py::"
            "test_a_lease_that_runs_out_kills_everything_and_refuses_more[tree]",
        ),
    ),
    mutation(
        "a new launcher does not know the lease",
        Promise.SELF_FENCE,
        "worker/shoal/worker/execution/launching.py",
        (
            "if self._lease is not None:\n            self._write(self._lease)",
            "if False:\n            self._write(self._lease)",
        ),
        (f"{_TESTS}/test_lease.py::test_new_launcher_refuses_what_the_old_lease_does_not_allow",),
    ),
    mutation(
        "tasks outlive the agent",
        Promise.KILLED_MEANS_DEAD,
        _LAUNCHER,
        ("self._close(AGENT_GONE)", "pass"),
        (
            f"{_TESTS}/test_dying.py::"
            "test_nothing_survives_if_up_to_three_of_four_are_killed_in_one_instant[tree-agent]",
        ),
    ),
    mutation(
        "a shim goes on without its launcher",
        Promise.KILLED_MEANS_DEAD,
        _SHIM,
        ("proctree.prctl(proctree.PR_SET_PDEATHSIG, _LAUNCHER_DIED)", "pass"),
        (
            f"{_TESTS}/test_dying.py::"
            "test_nothing_survives_if_up_to_three_of_four_are_killed_in_one_instant"
            "[tree-agent+watchdog+launcher]",
        ),
    ),
    mutation(
        "only the main process is killed",
        Promise.KILLED_MEANS_DEAD,
        _REAPER,
        ("for pid in proctree.own_children()", "for pid in ()"),
        (f"{_TESTS}/test_killing.py::test_no_process_survives_a_kill[tree-setsid-at once]",),
    ),
    mutation(
        "an attempt's orphans are not kept below it",
        Promise.KILLED_MEANS_DEAD,
        _SHIM,
        ("        proctree.become_subreaper()\n", ""),
        (
            f"{_TESTS}/test_killing.py::test_detached_processes_live_as_long_as_their_own_attempt[tree]",
        ),
    ),
    mutation(
        "what a program leaves behind is not ended",
        Promise.KILLED_MEANS_DEAD,
        _SHIM,
        ("        return True\n    return False\n", "        return True\n    return True\n"),
        (
            f"{_TESTS}/test_killing.py::"
            "test_nothing_outlives_a_main_process_that_ends_by_itself[tree-setsid]",
        ),
    ),
    mutation(
        "the watchdog leaves alone what a killed launcher left",
        Promise.KILLED_MEANS_DEAD,
        _WATCHDOG,
        (
            "while left := _children_outside(spared_session) - out_of_reach:",
            "while left := set[int]():",
        ),
        (
            f"{_TESTS}/test_dying.py::"
            "test_nothing_survives_if_up_to_three_of_four_are_killed_in_one_instant[tree-launcher+shims]",
        ),
    ),
    mutation(
        "a process is signalled by its number alone",
        Promise.KILLED_MEANS_DEAD,
        _PROCTREE,
        (
            "if now is None or now.start != process.start:\n            return False",
            "if now is None:\n            return False",
        ),
        ("tests/unit/worker/test_proctree.py::test_a_reused_number_is_never_signalled",),
    ),
    mutation(
        "a restarted worker does not wait for its predecessor's tasks",
        Promise.ONE_LIVE_ATTEMPT,
        _HOME,
        ("while not _lock(self.processes_fd):", "while False:"),
        (
            "tests/unit/worker/test_agent_home.py::"
            "test_worker_does_not_begin_while_a_process_of_the_one_before_lives",
        ),
    ),
    mutation(
        "a record need not reach the disk",
        Promise.DURABLE_RESULTS,
        _RECORDS,
        ("            file.flush()\n            os.fsync(fd)\n", ""),
        (
            "tests/unit/worker/test_record_durability.py::"
            "test_content_is_on_the_disk_before_it_gets_its_name",
        ),
    ),
    mutation(
        "the name of a record need not reach the disk",
        Promise.DURABLE_RESULTS,
        _RECORDS,
        ("error = error or _attempted(folder, sync_folder, folder)", "pass"),
        (
            "tests/unit/worker/test_record_durability.py::"
            "test_name_is_on_the_disk_before_the_record_counts_as_stored",
        ),
    ),
    mutation(
        "the name of a result without a process need not reach the disk",
        Promise.DURABLE_RESULTS,
        "worker/shoal/worker/results/spool.py",
        ("        sync_folder(str(self.folder))\n", ""),
        (
            "tests/unit/worker/test_record_durability.py::"
            "test_result_without_a_process_is_as_durable",
        ),
    ),
    mutation(
        "a record in a journal need not reach the disk",
        Promise.DURABLE_RESULTS,
        _JOURNAL,
        ("        os.fdatasync(self._fd)\n", ""),
        (f"{_JOURNAL_TESTS}::test_record_is_on_the_disk_before_its_place_is_known",),
    ),
    mutation(
        "the name of a journal need not reach the disk",
        Promise.DURABLE_RESULTS,
        _JOURNAL,
        ("            sync_folder(folder)\n", ""),
        (
            f"{_JOURNAL_TESTS}::test_name_of_a_journal_is_on_the_disk_before_its_first_record_counts",
        ),
    ),
    mutation(
        "a full journal begins anew over results that wait",
        Promise.DURABLE_RESULTS,
        _JOURNAL,
        ("if next(pending(read_all(self._fd)), None) is not None:", "if False:"),
        (f"{_JOURNAL_TESTS}::test_full_journal_keeps_every_result_that_waits",),
    ),
    mutation(
        "what was half-written is taken for a result",
        Promise.DURABLE_RESULTS,
        _JOURNAL,
        ("yield place, record if sound else None", "yield place, record"),
        (f"{_JOURNAL_TESTS}::test_half_written_record_is_none",),
    ),
    mutation(
        "two processes write to one journal",
        Promise.DURABLE_RESULTS,
        _JOURNAL,
        ("            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n", ""),
        (f"{_JOURNAL_TESTS}::test_journal_has_one_writer",),
    ),
    mutation(
        "an end is reported before it is stored",
        Promise.DURABLE_RESULTS,
        _RECORDS,
        ("_attempted(path, write_record, path, stored)", "None"),
        (f"{_TESTS}/test_launching.py::test_success_is_stored_before_it_is_reported",),
    ),
    mutation(
        "a report is forgotten before it is acknowledged",
        Promise.DURABLE_RESULTS,
        _REPORTING,
        ("if verdict in SETTLED:", "if True:"),
        (f"{_TESTS}/test_agent_masters.py::test_result_moves_on_to_the_new_owner",),
    ),
    mutation(
        "a report that got no answer is not repeated",
        Promise.DURABLE_RESULTS,
        _REPORTING,
        (
            "            self._postpone(items, str(error))\n",
            "            for item in items:\n                self._judge(item, _V.COMMITTED)\n",
        ),
        (f"{_TESTS}/test_agent_masters.py::test_lost_reply_is_repeated_and_the_attempt_runs_once",),
    ),
    mutation(
        "a claim is released before its result is committed",
        Promise.ONE_LIVE_ATTEMPT,
        _ENDINGS,
        (_TELL_END, f"self._drop_claims([attempt])\n        {_TELL_END}"),
        (f"{_TESTS}/test_agent_results.py::test_claim_is_held_until_the_result_is_committed",),
    ),
    mutation(
        "more is started than there are slots",
        Promise.ROOM,
        "worker/shoal/worker/attempts.py",
        ("return self._occupied < self._slots", "return True"),
        (f"{_LINE}::test_slots_are_given_in_the_order_of_the_queue_and_never_too_many",),
    ),
    mutation(
        "what is granted starts in the order of arrival",
        Promise.PROGRESS,
        "worker/shoal/worker/intake/prefetch.py",
        ("heappop(self._order)", "self._order.pop(0)"),
        (f"{_LINE}::test_slots_are_given_in_the_order_of_the_queue_and_never_too_many",),
    ),
    mutation(
        "a worker keeps what it cannot start",
        Promise.PROGRESS,
        "worker/shoal/worker/intake/prefetch.py",
        ("self._requeue_since(now - PATIENCE_S)", "pass"),
        (f"{_LINE}::test_what_waits_too_long_is_requeued",),
    ),
    mutation(
        "what was killed in the prefetch buffer starts all the same",
        Promise.KILLED_MEANS_DEAD,
        _RUNNER,
        (
            "if attempt.granted and not self._prefetched.leave(attempt):\n"
            "            await self._end_as_requested(attempt)",
            "if attempt.granted:\n            await self._end_as_requested(attempt)",
        ),
        (f"{_TESTS}/test_agent_ahead.py::test_task_that_is_killed_while_it_waits_has_no_process",),
    ),
    mutation(
        "what ended when it was returned goes back into the queue",
        Promise.GUARDED_STATES,
        _RETURNING,
        ("self._requeue if committed else self._drop_claims", "self._requeue"),
        (
            "tests/unit/worker/test_requeue.py::"
            "test_entries_go_back_for_what_is_queued_again_and_claims_alone_for_the_rest",
        ),
    ),
    mutation(
        "claims of a lost session are requeued",
        Promise.ONE_LIVE_ATTEMPT,
        _RETURNING,
        ("self._asked.clear()", "pass"),
        ("tests/unit/worker/test_requeue.py::test_claims_of_a_lost_session_do_not_go_back",),
    ),
    mutation(
        "a running attempt that was given up goes on",
        Promise.ONE_LIVE_ATTEMPT,
        _RUNNER,
        ("self._tasks.create_task(self._stop_superseded(attempt))", "pass"),
        (f"{_TESTS}/test_agent_masters.py::test_running_attempt_that_the_master_gave_up_is_ended",),
    ),
    mutation(
        "what a predecessor could not report is not reported",
        Promise.NOTHING_LOST,
        "worker/shoal/worker/main.py",
        ("in await asyncio.to_thread(spool.pending):", "in await asyncio.to_thread(list):"),
        (
            f"{_TESTS}/test_agent_leaving.py::"
            "test_result_of_a_killed_agent_is_reported_by_its_successor",
        ),
    ),
    mutation(
        "an agent whose launcher and watchdog are dead kills nothing",
        Promise.KILLED_MEANS_DEAD,
        "worker/shoal/worker/execution/launching.py",
        ("kill_children(os.getsid(0))", "pass"),
        (
            f"{_TESTS}/test_dying.py::"
            "test_nothing_survives_if_up_to_three_of_four_are_killed_in_one_instant"
            "[tree-watchdog+launcher+shims]",
        ),
    ),
    mutation(
        "a launcher goes on without its watchdog",
        Promise.KILLED_MEANS_DEAD,
        _LAUNCHER,
        ("self._close(WATCHDOG_GONE)", "pass"),
        (
            f"{_TESTS}/test_dying.py::"
            "test_nothing_survives_if_up_to_three_of_four_are_killed_in_one_instant[tree-watchdog]",
        ),
    ),
    mutation(
        "an agent lets launcher and watchdog ignore the lease",
        Promise.SELF_FENCE,
        "worker/shoal/worker/execution/launching.py",
        ("if self._board.overdue(PATIENCE_OF_AGENT):", "if False:"),
        (
            f"{_TESTS}/test_dying.py::"
            "test_an_agent_sees_to_a_lease_that_launcher_and_watchdog_do_not_obey"
            "[tree-stopped]",
        ),
    ),
    mutation(
        "a restarted worker leaves alone what outlived all its watchers",
        Promise.ONE_LIVE_ATTEMPT,
        _HOME,
        ("        kill_leftovers(folders.work)\n", ""),
        (
            f"{_TESTS}/test_agent_restarts.py::"
            "test_what_outlived_all_its_watchers_dies_when_the_worker_starts_again[off-env]",
        ),
    ),
    mutation(
        "two workers share a folder for their attempts",
        Promise.KILLED_MEANS_DEAD,
        _HOME,
        ("if not _lock(self._work_fd):", "if False:"),
        (
            f"{_TESTS}/test_agent_restarts.py::test_two_data_folders_with_one_work_folder_are_refused",
        ),
    ),
    mutation(
        "a process that resembles one of an attempt is killed",
        Promise.KILLED_MEANS_DEAD,
        "worker/shoal/worker/home/leftovers.py",
        ("variable.startswith(marker)", 'variable.startswith(marker.rpartition(b"/1/")[0])'),
        (
            f"{_TESTS}/test_agent_restarts.py::"
            "test_processes_that_only_look_like_those_of_attempts_are_left_alone",
        ),
    ),
)
