"""People are told of what happens: of all of it, once, by ways that are theirs."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_EPOCHS = Place("shoal.alert.jobs.epochs")
_JOBS = Place("shoal.sql.repositories.alerts.jobs")
_READING = Place("shoal.alert.jobs.event_reader")
_REMINDERS = Place("shoal.alert.jobs.reminders")
_TAIL = Place("shoal.sql.event_tail")
_QUARANTINE = Place("shoal.sql.repositories.upkeep.quarantine")
_DELIVERIES = Place("shoal.sql.repositories.alerts.deliveries")
_ALERTS = Place("shoal.sql.repositories.alerts.alerts")
_SENDING = Place("shoal.alert.jobs.sender")
_OCCURRENCES = Place("shoal.core.alerts.occurrences")
_WATCHER = Place("shoal.alert.conditions.watcher")
_PUNCTUALITY = Place("shoal.sql.repositories.overview.punctuality")
_SCRIPT = Place("shoal.alert.channels.script")
_WEBHOOK = Place("shoal.alert.channels.webhook")
_CHAT = Place("shoal.alert.channels.chat")
_RESULTS = Place("shoal.core.alerts.messages.results")
_TEMPLATES = Place("shoal.runtime.side.templates")
_RULES = Place("shoal.api.routes.alerts.rules")
_LOST_TREE = "tests/integration/alert/test_lost_tree.py"
_EVENTS = "tests/integration/sql/runs/test_events.py"
_CONDITIONS = "tests/integration/alert/test_conditions.py"
_POISON = "tests/integration/alert/test_poison.py"
_TELLING = "tests/integration/alert/test_telling.py"
_DEATHS = "tests/integration/alert/test_deaths.py"
_CHANNELS = "tests/integration/alert/test_channels.py"
_MAIN = Place("shoal.alert.main")
_BINDING = Place("shoal.coordination.cluster.binding")
_RESTARTS = "tests/integration/alert/test_restarts.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.NOTHING_LOST.broken_if(
        "alerts end when ZooKeeper has lost its data",
        _EPOCHS["epoch_in_database"].always("stored is None or stored <= epoch"),
        f"{_LOST_TREE}::test_alerts_go_on_after_zookeeper_lost_its_data",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "an alert server takes a job back from its successor",
        _EPOCHS["epoch_in_database"].never("await jobs.confirmed(job) != epoch"),
        f"{_LOST_TREE}::test_epoch_of_a_living_successor_is_not_superseded[sqlite]",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "two alert servers supersede one epoch",
        _JOBS["supersede"].drop("_J.epoch == stored"),
        f"{_LOST_TREE}::test_of_two_that_supersede_one_does[sqlite]",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "an alert server that was replaced goes on writing",
        _JOBS["require"].drop("if changed.rowcount == 0:\n    ..."),
        f"{_CONDITIONS}::test_what_was_not_seen_before_a_server_died_is_found_by_the_next[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "an event whose transaction is open for long is skipped",
        _TAIL["_settled"].replace("self._barrier.is_closed", "True"),
        f"{_EVENTS}::test_gap_is_not_given_up_however_long_its_transaction_is_open",
    ),
    Promise.PROGRESS.broken_if(
        "events wait for transactions that write none",
        _TAIL["next_batch"].drop("await self._look_for_writers()"),
        f"{_EVENTS}::test_transaction_that_writes_no_events_does_not_hold_up_a_gap_for_long",
    ),
    Promise.PROGRESS.broken_if(
        "a gap waits for writers that began later",
        _TAIL["_look_for_writers"].replace("barrier.writers & found", "found"),
        f"{_EVENTS}::test_writer_that_began_later_does_not_hold_up_a_gap",
    ),
    Promise.NOTHING_LOST.broken_if(
        "events of another master hide the retry of an attempt",
        _READING["_final_or_not"].drop("one.kind in _OF_DECISIONS"),
        f"{_TELLING}::test_a_retry_behind_events_of_another_master_is_found[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "alerts wait for the end of a silence that is gone",
        _REMINDERS["_wake"].drop("await uow.commit()"),
        f"{_TELLING}::test_alerts_of_a_silence_that_is_ended_early_are_told[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a critical alert waits for the end of quiet hours",
        _DELIVERIES["collect"].replace("_D.due_at > one.due_at", "_D.due_at < one.due_at"),
        f"{_TELLING}::test_critical_alert_does_not_wait_in_a_message_of_quiet_hours[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a skipped event is never tried again",
        _READING["run"].never("self._clock() >= self._retries_at"),
        f"{_POISON}::test_skipped_event_that_is_retried_becomes_an_alert[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a failed retry is repeated without end",
        _QUARANTINE["note"].drop("retry_at=None"),
        f"{_POISON}::test_skipped_event_that_is_retried_becomes_an_alert[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "open alerts are pruned",
        _ALERTS["prune"].replace("_A.state != AlertState.OPEN", "_A.id > 0"),
        f"{_TELLING}::test_open_alerts_outlive_their_time[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a worker that is forgotten has recovered",
        _WATCHER["look"].replace("failed.is_forgotten(one)", "False"),
        f"{_CONDITIONS}::test_worker_that_never_comes_back_is_forgotten_without_a_recovery[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "usual times are learnt from backfilled runs",
        _PUNCTUALITY["ends"].drop("_I.backfill_id.is_(None)"),
        f"{_CONDITIONS}::test_backfilled_runs_are_not_learnt_from[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "what happened while no alert server ran is not told",
        _READING["run"].drop("after=job.position"),
        f"{_TELLING}::test_what_happened_while_no_server_ran_is_told[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a message that was on its way at a death is never sent",
        _SENDING["run"].replace("await uow.deliveries.take_back(self._share, self._clock())", "0"),
        f"{_DEATHS}::test_a_message_under_way_at_a_death_is_sent_again[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a message that its channel did not take is not tried again",
        _SENDING["_send"].replace("pause_s(number) if may_pass else None", "None"),
        f"{_DEATHS}::test_a_channel_that_fails_is_tried_again_later[sqlite]",
    ),
    Promise.SENT_ONCE.broken_if(
        "what has recovered before anybody was told is told",
        _SENDING["_claim"].never("await self._is_withdrawn(uow, delivery, mentioned)"),
        f"{_TELLING}::test_what_recovers_in_time_is_not_told[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "one channel that is dead has all the room",
        _SENDING["has_room"].always(
            "self.sending < at_once and len(self.sent_at) < spec.per_minute"
        ),
        f"{_DEATHS}::test_a_channel_sends_so_many_a_minute[sqlite]",
    ),
    Promise.SENT_ONCE.broken_if(
        "an attempt that another one follows has failed",
        _OCCURRENCES["is_retry_of"].never("event.data.get('attempt') == (failed.attempt or 0) + 1"),
        f"{_TELLING}::test_a_task_that_is_tried_again_has_not_failed_yet[sqlite]",
    ),
    Promise.SENT_ONCE.broken_if(
        "a condition is told at every look",
        _WATCHER["look"].drop("key not in stored"),
        f"{_CONDITIONS}::test_run_that_does_not_finish_in_time_is_found_once[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a cluster that cannot be seen has recovered",
        _WATCHER["covers"].drop("one.trigger in self.unseen"),
        f"{_CONDITIONS}::test_cluster_that_cannot_be_seen_has_not_recovered[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "missing the deadline of today meets that of yesterday",
        _WATCHER["look"].always(
            "(one.project, one.rule, one.trigger, one.workflow) not in going_on"
        ),
        f"{_CONDITIONS}::test_each_day_has_a_deadline_of_its_own[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a run of the day before keeps the deadline of today",
        _PUNCTUALITY["_is_there"].drop("_I.logical_time > since"),
        f"{_CONDITIONS}::test_run_that_does_not_finish_in_time_is_found_once[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "chats that never end take all threads",
        _CHAT["enter"].drop("await room.acquire()"),
        f"{_CHANNELS}::test_chats_that_never_end_keep_few_threads",
    ),
    Promise.PROGRESS.broken_if(
        "a chat that was given up leaves its place to another one while its thread runs",
        _CHAT["send"].replace(
            "call_in_own_thread(..., 'chat', leave)",
            "call_in_own_thread(..., 'chat', (leave(), lambda: None)[1])",
        ),
        f"{_CHANNELS}::test_chats_that_never_end_keep_few_threads",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a script of alerts may lie anywhere",
        _SCRIPT["_program"].drop("found.parent != Path(folder).resolve()"),
        f"{_CHANNELS}::test_only_programs_of_the_folder_run[link.sh]",
    ),
    Promise.AUTHORISED.broken_if(
        "webhooks reach the machine that the alert server runs on",
        _WEBHOOK["send"].drop("network_backend=GuardedBackend(policy)"),
        f"{_CHANNELS}::test_a_webhook_reaches_no_address_that_is_refused",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a cell of a result is run by the spreadsheet of who gets it",
        _RESULTS["_harmless"].replace('f"\'{cell}"', "cell"),
        "tests/unit/core/alerts/test_results.py::test_nothing_is_run_by_who_reads_it",
    ),
    Promise.PROGRESS.broken_if(
        "a filter of a template makes whatever it likes",
        _TEMPLATES["_bounded"].never("length > LONGEST"),
        "tests/unit/runtime/test_templates.py::test_a_range_is_as_long_as_what_is_in_it[size]",
    ),
    Promise.AUTHORISED.broken_if(
        "anybody who may edit a project is told of the cluster",
        _RULES["put_alert_rule"].never("not caller.may(Permission.CLUSTER_READ)"),
        "tests/integration/api/test_alerts.py::"
        "test_rules_about_the_cluster_are_for_its_administrators",
    ),
    Promise.PROGRESS.broken_if(
        "an alert server ends when the database restarts before the first rule",
        _MAIN["_until_defined"].replace("when_there(...)", "_changes(database)"),
        f"{_RESTARTS}::test_restart_while_no_rule_is_defined",
    ),
    Promise.PROGRESS.broken_if(
        "an alert server ends when the database restarts before its jobs begin",
        _BINDING["run"].always("not error.retriable"),
        f"{_RESTARTS}::test_restart_between_the_first_rule_and_the_jobs",
    ),
)
