"""The worker: lease, launcher, process trees, results."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_RESULTS = Place("shoal.worker.results.results")
_ATTEMPT = Place("shoal.worker.processes.program")
_LEASE = Place("shoal.worker.processes.lease")
_LAUNCHER = Place("shoal.worker.supervisor.launcher")
_WATCHDOG = Place("shoal.worker.supervisor.watchdog")
_LAUNCHING = Place("shoal.worker.processes.launcher")
_SHIM = Place("shoal.worker.supervisor.shim.shim")
_REAPER = Place("shoal.worker.supervisor.reaper")
_PROCTREE = Place("shoal.worker.supervisor.proctree")
_DISK = Place("shoal.worker.home.disk")
_HOME = Place("shoal.worker.home.home")
_RECORDS = Place("shoal.worker.supervisor.shim.records")
_SPOOL = Place("shoal.worker.home.spool")
_JOURNAL = Place("shoal.worker.supervisor.shim.journal")
_REPORTING = Place("shoal.worker.results.reporter")
_ENDINGS = Place("shoal.worker.results.endings")
_ATTEMPTS = Place("shoal.worker.attempts.held")
_PREFETCH = Place("shoal.worker.intake.prefetch")
_RUNNER = Place("shoal.worker.execution.runner")
_PLUGINS = Place("shoal.runtime.plugin_packages")
_RETURNING = Place("shoal.worker.results.requeue")
_MAIN = Place("shoal.worker.main")
_LEFTOVERS = Place("shoal.worker.home.leftovers")
_FORK_SERVER = Place("shoal.client.local.fork_server")
_ROLES = Place("shoal.client.local.roles")
_LOCAL_CLUSTER = Place("shoal.client.local.cluster")
_TESTS = "tests/integration/worker"
_TEST_FORK_SERVER = "tests/integration/client/test_fork_server.py"
_JOURNAL_TESTS = "tests/unit/worker/intake/test_journal.py"
_LINE = "tests/unit/worker/intake/test_prefetch.py"
_TEST_ATTEMPT = "tests/unit/worker/execution/test_attempt.py"
_BROKEN_PLUGINS = "tests/unit/runtime/test_broken_plugins.py"
_TEST_AGENT_LEAVING = f"{_TESTS}/faults/test_leaving.py"
_TEST_KILLING = f"{_TESTS}/supervisor/test_killing.py"
_TEST_LEASE = f"{_TESTS}/supervisor/test_lease.py"
_TEST_DYING = f"{_TESTS}/supervisor/test_dying.py"
_TEST_RECORD_DURABILITY = "tests/unit/worker/intake/test_record_durability.py"
_TEST_AGENT_MASTERS = f"{_TESTS}/faults/test_masters.py"
_TEST_REQUEUE = "tests/unit/worker/intake/test_requeue.py"
_TEST_AGENT_RESTARTS = f"{_TESTS}/faults/test_restarts.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.PROGRESS.broken_if(
        "a plug-in that exits while it is imported ends the process",
        _PLUGINS["load"].replace("(Exception, SystemExit)", "Exception"),
        f"{_BROKEN_PLUGINS}::test_error_names_the_plug_in_its_package_and_the_problem",
    ),
    Promise.PROGRESS.broken_if(
        "an incomplete class of a package counts as a plug-in",
        _PLUGINS["load"].replace("_class_variables(base).items()", "()"),
        f"{_BROKEN_PLUGINS}::test_class_whose_attributes_are_missing_or_wrong_is_the_same_error",
    ),
    Promise.PROGRESS.broken_if(
        "a message is given up because a channel's package is broken on one server",
        Place("shoal.alert.jobs.sender")["_attempt"].replace(
            "(False, True, str(error)[:_LONGEST_ANSWER])",
            "(False, False, str(error)[:_LONGEST_ANSWER])",
        ),
        f"{_BROKEN_PLUGINS}::test_message_waits_for_a_channel_that_is_broken",
    ),
    Promise.PROGRESS.broken_if(
        "a result that cannot be used is tried at each start",
        _MAIN["report_leftovers"].drop("await asyncio.to_thread(spool.quarantine, entry, error)"),
        "tests/unit/worker/intake/test_leftover_results.py::"
        "test_junk_in_a_result_ends_no_worker_and_is_kept_aside[reason-False]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a role of a local cluster outlives the process it was forked from",
        _FORK_SERVER["_become_role"].drop("proctree.prctl(...)"),
        f"{_TEST_FORK_SERVER}::test_nothing_outlives_the_supervisor",
    ),
    Promise.PROGRESS.broken_if(
        "a signal for a role of a local cluster is lost in its first moment",
        _FORK_SERVER["_fork"].drop("signal.pthread_sigmask(signal.SIG_BLOCK, _IGNORED)"),
        f"{_TEST_FORK_SERVER}::test_a_signal_right_after_the_fork_is_not_lost",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a role that starts after its request was given up stays beside its successor",
        _FORK_SERVER["Request.answer"].never("self._is_given_up"),
        f"{_TEST_FORK_SERVER}::test_fork_that_takes_long_leaves_the_other_roles_alone",
    ),
    Promise.ROOM.broken_if(
        "each role of a local cluster has a database driver of its own in memory",
        _ROLES["import_all"].drop("with suppress(ShoalError):\n    ..."),
        f"{_TEST_FORK_SERVER}::test_roles_share_the_driver_of_their_database",
    ),
    Promise.PROGRESS.broken_if(
        "settings that name no database end the process that roles are forked from",
        _ROLES["import_all"].replace("suppress(ShoalError)", "suppress()"),
        f"{_TEST_FORK_SERVER}::test_roles_share_the_driver_of_their_database",
    ),
    Promise.PROGRESS.broken_if(
        "a failed fork ends the local cluster",
        _LOCAL_CLUSTER["_Process.look"].replace("(ServerFailed, OSError)", "ServerFailed"),
        "tests/unit/client/test_data_folder.py"
        "::test_a_failed_fork_is_tried_again_and_does_not_end_the_cluster",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a signal to all processes of a local cluster kills its roles at once",
        _FORK_SERVER["main"].drop("for number in _IGNORED:\n    ..."),
        f"{_TEST_FORK_SERVER}::test_roles_end_with_their_process_and_start_with_a_new_one",
    ),
    Promise.NOTHING_LOST.broken_if(
        "an interrupted attempt counts as killed by request",
        _RESULTS["was_interrupted"].never("record.cause in INTERRUPTIONS"),
        f"{_TEST_ATTEMPT}::test_cause_of_an_end_is_in_its_record_and_alone_decides[LEASE_LOST]",
    ),
    Promise.SELF_FENCE.broken_if(
        "the worker's lease outlasts its session",
        _LEASE["renew"].replace(
            "max(0.0, self._session.proven_until)", "self._session.proven_until + 3600.0"
        ),
        f"{_TEST_AGENT_LEAVING}::"
        "test_frozen_agent_loses_its_tasks_before_anybody_may_run_them_again",
    ),
    Promise.SELF_FENCE.broken_if(
        "a watchdog that sleeps is not woken when attempts begin",
        _WATCHDOG["note_use"].drop("if in_use:\n    ..."),
        "tests/unit/worker/test_watchdog.py::"
        "test_watchdog_sleeps_while_nothing_runs_and_is_woken_by_news",
    ),
    Promise.PROGRESS.broken_if(
        "an idle worker claims without a look at its disks",
        _DISK["is_short"].drop("if self._min_free_mb and is_old:\n    ..."),
        "tests/unit/worker/home/test_disk.py::test_idle_worker_checks_its_disks_before_it_claims",
    ),
    Promise.SELF_FENCE.broken_if(
        "the launcher does not watch the lease",
        _LAUNCHER["_check_deadlines"].never(
            "self._lease is not None and boottime() >= self._lease and (not self._lease_lost)"
        ),
        f"{_TEST_KILLING}::test_a_lease_that_runs_out_kills_everything_and_refuses_more[tree]",
    ),
    Promise.SELF_FENCE.broken_if(
        "the watchdog does not watch the lease",
        _WATCHDOG["_wait"].never("board.overdue(PATIENCE_OF_WATCHDOG)"),
        f"{_TEST_LEASE}::test_tasks_of_a_launcher_that_stands_still_end_with_the_lease",
    ),
    Promise.SELF_FENCE.broken_if(
        "the launcher starts tasks without a lease",
        _LAUNCHER["_launch"].never("self._lease is not None and boottime() >= self._lease"),
        f"{_TEST_KILLING}::test_a_lease_that_runs_out_kills_everything_and_refuses_more[tree]",
    ),
    Promise.SELF_FENCE.broken_if(
        "a new launcher does not know the lease",
        _LAUNCHING["_serve"].never("self._lease is not None"),
        f"{_TEST_LEASE}::test_new_launcher_refuses_what_the_old_lease_does_not_allow",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "tasks outlive the agent",
        _LAUNCHER["_obey"].drop("self._close(AGENT_GONE)"),
        f"{_TEST_DYING}::"
        "test_nothing_survives_if_up_to_three_of_four_are_killed_in_one_instant[tree-agent]",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a shim goes on without its launcher",
        _SHIM["be_shim"].drop("proctree.prctl(...)"),
        f"{_TEST_DYING}::"
        "test_nothing_survives_if_up_to_three_of_four_are_killed_in_one_instant"
        "[tree-agent+watchdog+launcher]",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "only the main process is killed",
        _REAPER["_clear_attempts"].replace("proctree.own_children()", "()"),
        f"{_TEST_KILLING}::test_no_process_survives_a_kill[tree-setsid-at once]",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "an attempt's orphans are not kept below it",
        _SHIM["be_shim"].drop("proctree.become_subreaper()"),
        f"{_TEST_KILLING}::test_detached_processes_live_as_long_as_their_own_attempt[tree]",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "what a program leaves behind is not ended",
        _SHIM["_is_alone"].replace("return False", "return True"),
        f"{_TEST_KILLING}::test_nothing_outlives_a_main_process_that_ends_by_itself[tree-setsid]",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "the watchdog leaves alone what a killed launcher left",
        _WATCHDOG["kill_children"].replace(
            "_children_outside(spared_session) - out_of_reach", "set[int]()"
        ),
        f"{_TEST_DYING}::"
        "test_nothing_survives_if_up_to_three_of_four_are_killed_in_one_instant"
        "[tree-launcher+shims]",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a process is signalled by its number alone",
        _PROCTREE["_signal_pinned"].drop("now.start != process.start"),
        "tests/unit/worker/execution/test_proctree.py::test_a_reused_number_is_never_signalled",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a restarted worker does not wait for its predecessor's tasks",
        _HOME["_wait_for_predecessor"].never("not _lock(self.processes_fd)"),
        "tests/unit/worker/home/test_agent_home.py::"
        "test_worker_does_not_begin_while_a_process_of_the_one_before_lives",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "a record need not reach the disk",
        _RECORDS["write_record"].drop("file.flush()\nos.fsync(fd)"),
        f"{_TEST_RECORD_DURABILITY}::test_content_is_on_the_disk_before_it_gets_its_name",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "the name of a record need not reach the disk",
        _RECORDS["store"].drop("error = error or _attempted(...)"),
        f"{_TEST_RECORD_DURABILITY}::test_name_is_on_the_disk_before_the_record_counts_as_stored",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "the name of a result without a process need not reach the disk",
        _SPOOL["write"].drop("sync_folder(...)"),
        f"{_TEST_RECORD_DURABILITY}::test_result_without_a_process_is_as_durable",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "a record in a journal need not reach the disk",
        _JOURNAL["append"].drop("os.fdatasync(self._fd)"),
        f"{_JOURNAL_TESTS}::test_record_is_on_the_disk_before_its_place_is_known",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "the name of a journal need not reach the disk",
        _JOURNAL["_open"].drop("sync_folder(folder)"),
        f"{_JOURNAL_TESTS}::test_name_of_a_journal_is_on_the_disk_before_its_first_record_counts",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "a full journal begins anew over results that wait",
        _JOURNAL["_make_room"].never("next(...) is not None"),
        f"{_JOURNAL_TESTS}::test_full_journal_keeps_every_result_that_waits",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "what was half-written is taken for a result",
        _JOURNAL["pending"].replace("record if sound else None", "record"),
        f"{_JOURNAL_TESTS}::test_half_written_record_is_none",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "two processes write to one journal",
        _JOURNAL["_open"].drop("fcntl.flock(...)"),
        f"{_JOURNAL_TESTS}::test_journal_has_one_writer",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "an end is reported before it is stored",
        _RECORDS["store"].replace("_attempted(path, write_record, path, stored)", "None"),
        f"{_TESTS}/supervisor/test_launching.py::test_success_is_stored_before_it_is_reported",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "a report is forgotten before it is acknowledged",
        _REPORTING["_judge"].always("verdict in SETTLED"),
        f"{_TEST_AGENT_MASTERS}::test_result_moves_on_to_the_new_owner",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "a report that got no answer is not repeated",
        _REPORTING["_send"].replace(
            "self._postpone(items, str(error))",
            "for item in items:\n    self._judge(item, _V.COMMITTED)",
        ),
        f"{_TEST_AGENT_MASTERS}::test_lost_reply_is_repeated_and_the_attempt_runs_once",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a claim is released before its result is committed",
        _ENDINGS["take_record"].replace(
            "log.info(...)", "self._claims.release([attempt])\nlog.info(...)"
        ),
        f"{_TESTS}/faults/test_results.py::test_claim_is_held_until_the_result_is_committed",
    ),
    Promise.PROGRESS.broken_if(
        "less urgent tasks get the slot of an urgent chain between two of its tasks",
        _ATTEMPTS["has_slot_for"].replace("self._occupied + kept < self._slots", "True"),
        "tests/unit/worker/intake/test_prefetch.py::test_urgent_chain_keeps_its_slot[False]",
    ),
    Promise.ROOM.broken_if(
        "more is started than there are slots",
        _ATTEMPTS["slot_is_free"].always("self._occupied < self._slots"),
        f"{_LINE}::test_slots_are_given_in_the_order_of_the_queue_and_never_too_many",
    ),
    Promise.PROGRESS.broken_if(
        "what is granted starts in the order of arrival",
        _PREFETCH["pop"].replace("heappop(lanes[lane])", "lanes[lane].pop(0)"),
        f"{_LINE}::test_slots_are_given_in_the_order_of_the_queue_and_never_too_many",
    ),
    Promise.PROGRESS.broken_if(
        "a worker keeps what it cannot start",
        _PREFETCH["_requeue_old"].drop("self._requeue_since(...)"),
        f"{_LINE}::test_what_waits_too_long_is_requeued",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "what was killed in the prefetch buffer starts all the same",
        _RUNNER["kill"].drop("not self._prefetched.leave(attempt)"),
        f"{_TESTS}/faults/test_ahead.py::test_task_that_is_killed_while_it_waits_has_no_process",
    ),
    Promise.GUARDED_STATES.broken_if(
        "what ended when it was returned goes back into the queue",
        _RETURNING["settled"].replace(
            "self._claims.requeue if committed else self._claims.release", "self._claims.requeue"
        ),
        f"{_TEST_REQUEUE}::"
        "test_entries_go_back_for_what_is_queued_again_and_claims_alone_for_the_rest",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "claims of a lost session are requeued",
        _RETURNING["give_up"].drop("self._asked.clear()"),
        f"{_TEST_REQUEUE}::test_claims_of_a_lost_session_do_not_go_back",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a running attempt that was given up goes on",
        _RUNNER["_settled"].drop("self._tasks.create_task(...)"),
        f"{_TEST_AGENT_MASTERS}::test_running_attempt_that_the_master_gave_up_is_ended",
    ),
    Promise.NOTHING_LOST.broken_if(
        "what a predecessor could not report is not reported",
        _MAIN["report_leftovers"].replace("spool.pending", "list"),
        f"{_TEST_AGENT_LEAVING}::test_result_of_a_killed_agent_is_reported_by_its_successor",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "an agent whose launcher and watchdog are dead kills nothing",
        _LAUNCHING["_kill_rest"].drop("kill_children(...)"),
        f"{_TEST_DYING}::"
        "test_nothing_survives_if_up_to_three_of_four_are_killed_in_one_instant"
        "[tree-watchdog+launcher+shims]",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a launcher goes on without its watchdog",
        _LAUNCHER["_wait"].drop("self._close(...)"),
        f"{_TEST_DYING}::"
        "test_nothing_survives_if_up_to_three_of_four_are_killed_in_one_instant[tree-watchdog]",
    ),
    Promise.SELF_FENCE.broken_if(
        "an agent lets launcher and watchdog ignore the lease",
        _LAUNCHING["_until_lost"].never("self._board.overdue(PATIENCE_OF_AGENT)"),
        f"{_TEST_DYING}::"
        "test_an_agent_sees_to_a_lease_that_launcher_and_watchdog_do_not_obey[tree-stopped]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a restarted worker leaves alone what outlived all its watchers",
        _HOME["_prepare"].drop("kill_leftovers(...)"),
        f"{_TEST_AGENT_RESTARTS}::"
        "test_what_outlived_all_its_watchers_dies_when_the_worker_starts_again[off-env]",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "two workers share a folder for their attempts",
        _HOME["_prepare"].never("not _lock(self._work_fd)"),
        f"{_TEST_AGENT_RESTARTS}::test_two_data_folders_with_one_work_folder_are_refused",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a process that resembles one of an attempt is killed",
        _LEFTOVERS["_carries"].replace("marker", "marker.rpartition(b'/1/')[0]"),
        f"{_TEST_AGENT_RESTARTS}::"
        "test_processes_that_only_look_like_those_of_attempts_are_left_alone",
    ),
)
