"""People are told of what happens: of all of it, once, by ways that are theirs."""

from tests.mutations.mutation import Promise, mutation

_TELLING = "tests/integration/alert/test_telling.py"
_DEATHS = "tests/integration/alert/test_deaths.py"
_CHANNELS = "tests/integration/alert/test_channels.py"
_CONDITIONS = "tests/integration/alert/test_conditions.py"
_LOST_TREE = "tests/integration/alert/test_lost_tree.py"
_EPOCHS = "alert/shoal/alert/jobs/epochs.py"
_READING = "alert/shoal/alert/jobs/reading.py"
_SENDING = "alert/shoal/alert/jobs/sending.py"

_MAIN = "alert/shoal/alert/main.py"
_RESTARTS = "tests/integration/alert/test_restarts.py"

MUTATIONS = (
    mutation(
        "an alert server ends when the database restarts before the first rule",
        Promise.PROGRESS,
        _MAIN,
        (
            "if await when_there(database, lambda: _changes(database)):",
            "if await _changes(database):",
        ),
        (f"{_RESTARTS}::test_restart_while_no_rule_is_defined",),
    ),
    mutation(
        "an alert server ends when the database restarts before its jobs begin",
        Promise.PROGRESS,
        _MAIN,
        (
            "uid = await when_there(database, lambda: _uid(database))",
            "uid = await _uid(database)",
        ),
        (f"{_RESTARTS}::test_restart_between_the_first_rule_and_the_jobs",),
    ),
    mutation(
        "alerts end when ZooKeeper has lost its data",
        Promise.NOTHING_LOST,
        _EPOCHS,
        ("    if stored is None or stored <= epoch:\n", "    if True:\n"),
        (f"{_LOST_TREE}::test_alerts_go_on_after_zookeeper_lost_its_data",),
    ),
    mutation(
        "an alert server takes a job back from its successor",
        Promise.FENCED_OWNERSHIP,
        _EPOCHS,
        ("    if await jobs.confirmed(job) != epoch:\n", "    if False:\n"),
        (f"{_LOST_TREE}::test_epoch_of_a_living_successor_is_not_superseded[sqlite]",),
    ),
    mutation(
        "two alert servers supersede one epoch",
        Promise.FENCED_OWNERSHIP,
        "sql/shoal/sql/repositories/alerts/jobs.py",
        (".where(_J.name == name, _J.epoch == stored)", ".where(_J.name == name)"),
        (f"{_LOST_TREE}::test_of_two_that_supersede_one_does[sqlite]",),
    ),
    mutation(
        "an alert server that was replaced goes on writing",
        Promise.FENCED_OWNERSHIP,
        "sql/shoal/sql/repositories/alerts/jobs.py",
        ("        if changed.rowcount == 0:\n            raise JobTaken(name, epoch)\n", ""),
        (
            f"{_CONDITIONS}::"
            "test_what_was_not_seen_before_a_server_died_is_found_by_the_next[sqlite]",
        ),
    ),
    mutation(
        "what happened while no alert server ran is not told",
        Promise.NOTHING_LOST,
        _READING,
        (
            "EventTail(self._database, after=job.position, limit=_BATCH)",
            "EventTail(self._database, limit=_BATCH)",
        ),
        (f"{_TELLING}::test_what_happened_while_no_server_ran_is_told[sqlite]",),
    ),
    mutation(
        "a message that was on its way at a death is never sent",
        Promise.NOTHING_LOST,
        _SENDING,
        (
            "again = await uow.deliveries.take_back(self._share, self._clock())",
            "again = 0",
        ),
        (f"{_DEATHS}::test_a_message_under_way_at_a_death_is_sent_again[sqlite]",),
    ),
    mutation(
        "a message that its channel did not take is not tried again",
        Promise.NOTHING_LOST,
        _SENDING,
        ("pause = pause_s(number) if may_pass else None", "pause = None"),
        (f"{_DEATHS}::test_a_channel_that_fails_is_tried_again_later[sqlite]",),
    ),
    mutation(
        "what has recovered before anybody was told is told",
        Promise.SENT_ONCE,
        _SENDING,
        (
            "            if await self._is_withdrawn(uow, delivery, mentioned):\n",
            "            if False:\n",
        ),
        (f"{_TELLING}::test_what_recovers_in_time_is_not_told[sqlite]",),
    ),
    mutation(
        "one channel that is dead has all the room",
        Promise.PROGRESS,
        _SENDING,
        ("return self.sending < at_once and len(self.sent_at) < spec.per_minute", "return True"),
        (f"{_DEATHS}::test_a_channel_sends_so_many_a_minute[sqlite]",),
    ),
    mutation(
        "an attempt that another one follows has failed",
        Promise.SENT_ONCE,
        "core/shoal/core/alerts/occurrences.py",
        ('and event.data.get("attempt") == (failed.attempt or 0) + 1', "and False"),
        (f"{_TELLING}::test_a_task_that_is_tried_again_has_not_failed_yet[sqlite]",),
    ),
    mutation(
        "a condition is told at every look",
        Promise.SENT_ONCE,
        "alert/shoal/alert/watching/watcher.py",
        ("for key, one in holds.items() if key not in stored]", "for key, one in holds.items()]"),
        (f"{_CONDITIONS}::test_run_that_does_not_finish_in_time_is_found_once[sqlite]",),
    ),
    mutation(
        "a cluster that cannot be seen has recovered",
        Promise.NOTHING_LOST,
        "alert/shoal/alert/watching/watcher.py",
        ("one.trigger in self.unseen or (", "("),
        (f"{_CONDITIONS}::test_cluster_that_cannot_be_seen_has_not_recovered[sqlite]",),
    ),
    mutation(
        "missing the deadline of today meets that of yesterday",
        Promise.NOTHING_LOST,
        "alert/shoal/alert/watching/watcher.py",
        ("if (one.project, one.rule, one.trigger, one.workflow) not in going_on", "if True"),
        (f"{_CONDITIONS}::test_each_day_has_a_deadline_of_its_own[sqlite]",),
    ),
    mutation(
        "a run of the day before keeps the deadline of today",
        Promise.NOTHING_LOST,
        "sql/shoal/sql/repositories/overview/punctuality.py",
        ("            _I.logical_time > since,\n", ""),
        (f"{_CONDITIONS}::test_run_that_does_not_finish_in_time_is_found_once[sqlite]",),
    ),
    mutation(
        "a script of alerts may lie anywhere",
        Promise.TEXT_STAYS_TEXT,
        "alert/shoal/alert/channels/script.py",
        ("found.parent != Path(folder).resolve() or ", ""),
        (f"{_CHANNELS}::test_only_programs_of_the_folder_run[link.sh]",),
    ),
    mutation(
        "webhooks reach the machine that the alert server runs on",
        Promise.AUTHORISED,
        "alert/shoal/alert/channels/webhook.py",
        ("network_backend=GuardedBackend(policy),", ""),
        (f"{_CHANNELS}::test_a_webhook_reaches_no_address_that_is_refused",),
    ),
    mutation(
        "a cell of a result is run by the spreadsheet of who gets it",
        Promise.TEXT_STAYS_TEXT,
        "core/shoal/core/alerts/messages/results.py",
        ('        return f"\'{cell}"\n', "        return cell\n"),
        ("tests/unit/core/test_alert_results.py::test_nothing_is_run_by_who_reads_it",),
    ),
    mutation(
        "a filter of a template makes whatever it likes",
        Promise.PROGRESS,
        "runtime/shoal/runtime/templates.py",
        ("        if length > LONGEST:\n", "        if False:\n"),
        ("tests/unit/runtime/test_templates.py::test_no_template_takes_much[5]",),
    ),
    mutation(
        "anybody who may edit a project is told of the cluster",
        Promise.AUTHORISED,
        "api/shoal/api/routes/alerts/rules.py",
        (" and not caller.may(Permission.CLUSTER_READ):", " and False:"),
        (
            "tests/integration/api/test_alerts.py::"
            "test_rules_about_the_cluster_are_for_its_administrators",
        ),
    ),
)
