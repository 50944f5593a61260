"""One bad value stops one thing: shared loops isolate their items, and read within bounds."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_READING = Place("shoal.alert.jobs.event_reader")
_ISOLATION = Place("shoal.sql.isolation")
_RECORDS = Place("shoal.core.runs.quarantine")
_SENDING = Place("shoal.alert.jobs.sender")
_DELIVERIES = Place("shoal.sql.repositories.alerts.deliveries")
_ATTENTION = Place("shoal.alert.jobs.reminders")
_CURSOR = Place("shoal.sql.driver.postgresql.cursor")
_STORED_CONDITIONS = Place("shoal.sql.repositories.alerts.conditions")
_AUDIT = Place("shoal.sql.repositories.access.audit")
_TYPES = Place("shoal.sql.schema.types")
_EXPORTED_COLUMNS = Place("shoal.insight.export.columns")
_EXPORTER = Place("shoal.insight.export.exporter")
_LOADER = Place("shoal.insight.serving.loader")
_REPAIRED = (
    "tests/integration/insight/test_export.py::"
    "test_a_row_that_cannot_be_read_is_quarantined_and_exported_after_its_repair"
)
_MESSAGE = Place("shoal.coordination.messages.message")
_OWNED = Place("shoal.coordination.messages.owned")
_DOCUMENTS = Place("shoal.coordination.session.documents")
_WATCHER = Place("shoal.alert.conditions.watcher")
_CORE_UNTRUSTED = Place("shoal.core.untrusted")
_TIMING_LOGICAL_TIME = Place("shoal.core.timing.logical_time")
_ALERTS_CONDITIONS = Place("shoal.core.alerts.conditions")
_WALLCLOCK = Place("shoal.core.timing.wallclock")
_PURGES = Place("shoal.master.services.upkeep.purges")
_DECIDE_LOGIC = Place("shoal.core.decide.logic")
_MASTER_QUARANTINE = Place("shoal.master.engine.quarantine")
_HEALTH = Place("shoal.api.routes.health")
_POISON = "tests/integration/alert/test_poison.py"
_QUARANTINE = "tests/integration/sql/runs/test_quarantine.py"
_CONDITIONS = "tests/integration/alert/test_conditions.py"
_STOPS_NO_OTHER = (
    f"{_CONDITIONS}::test_workflow_that_cannot_be_looked_at_stops_no_other[postgresql]"
)
_UNTRUSTED = "tests/unit/core/checks/test_untrusted.py"
_STORED_DOCUMENTS = "tests/unit/coordination/test_stored_documents.py"
_SQL_AUDIT = "tests/integration/sql/access/test_audit.py"
_LOGICAL_TIME = "tests/unit/core/timing/test_logical_time.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.PROGRESS.broken_if(
        "a bad event stops the alerts of all projects",
        _READING["_deal_with"].replace("isolate(batch, deal, self._skip)", "deal(batch)"),
        f"{_POISON}::test_bad_event_is_quarantined_and_its_neighbours_are_told[sqlite-no name]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "the neighbours of a bad item are skipped with it",
        _ISOLATION["isolate"].always("len(items) == 1"),
        f"{_QUARANTINE}::test_each_good_item_is_dealt_with_once_and_each_bad_one_skipped",
    ),
    Promise.PROGRESS.broken_if(
        "a record that is too long stops what it is to keep going",
        _RECORDS["failed_item"].replace("workflow[:_LONGEST_NAME]", "workflow"),
        f"{_POISON}::"
        "test_bad_event_is_quarantined_and_its_neighbours_are_told[postgresql-long name]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "an outage is taken for a bad item",
        _ISOLATION["isolate"].drop("if is_outage(error):\n    raise"),
        f"{_QUARANTINE}::test_outages_are_raised_and_skip_nothing",
    ),
    Promise.PROGRESS.broken_if(
        "the position does not move past a skipped event",
        _READING["_skip"].replace(
            "uow.alert_jobs.require(READING, self._epoch, event.id)",
            "uow.alert_jobs.require(READING, self._epoch)",
        ),
        f"{_POISON}::test_position_moves_past_a_skipped_event_with_its_record[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a message that cannot be written is not sent at all",
        _SENDING["_claim"].replace(
            "return await self._plain(delivery, mentioned, error), None", "raise"
        ),
        f"{_POISON}::test_message_that_cannot_be_written_is_sent_as_plain_text[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "messages that cannot be read hold up those behind them",
        _SENDING["_take"].replace("await self._give_up(int(str(row.key)), None, row)", "del row"),
        f"{_POISON}::test_message_that_cannot_be_read_fails_and_holds_up_no_other[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "messages of a project that floods leave before those of all others",
        _DELIVERIES["due"].replace("turns.turn", "_D.due_at"),
        "tests/integration/alert/test_turns.py::"
        "test_flood_of_one_project_delays_no_other[sqlite-slow]",
    ),
    Promise.PROGRESS.broken_if(
        "an alert that cannot be attended to is looked at again and again",
        _ATTENTION["_look"].replace(
            "await self._put_off(int(str(row.key)), None, row, now)", "del row"
        ),
        f"{_POISON}::test_alert_that_cannot_be_attended_to_holds_up_no_other[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a workflow that cannot be looked at stops the watching of all",
        _WATCHER["_of_workflows"].replace("isolate(others, look, skip)", "look(others)"),
        _STOPS_NO_OTHER,
    ),
    Promise.NOTHING_LOST.broken_if(
        "conditions of a workflow end because it cannot be looked at",
        _WATCHER["look"].drop("not failed.covers(one)"),
        _STOPS_NO_OTHER,
    ),
    Promise.PROGRESS.broken_if(
        "a workflow that works again stays quarantined",
        _WATCHER["_note"].drop("await uow.quarantine.remove(...)"),
        _STOPS_NO_OTHER,
    ),
    Promise.PROGRESS.broken_if(
        "JSON of too many levels is an error that nobody expects",
        _CORE_UNTRUSTED["read_json"].drop("except RecursionError:\n    ..."),
        f"{_UNTRUSTED}::test_too_deep_too_long_and_broken_texts_are_refused",
    ),
    Promise.PROGRESS.broken_if(
        "a number of any length is a count",
        _CORE_UNTRUSTED["read_count"].drop("len(digits) > MOST_DIGITS"),
        f"{_UNTRUSTED}::test_counts",
    ),
    Promise.PROGRESS.broken_if(
        "logical times at the ends of the calendar are accepted",
        _TIMING_LOGICAL_TIME["logical_time"].never("not FIRST <= in_utc <= LAST"),
        f"{_LOGICAL_TIME}::test_times_within_a_day_of_the_ends_are_refused_by_value_and_range",
    ),
    Promise.PROGRESS.broken_if(
        "a usual time is learnt from the ends of the calendar",
        _ALERTS_CONDITIONS["_usual"].replace("OverflowError", "KeyError"),
        f"{_CONDITIONS}::test_run_at_the_end_of_the_calendar_is_not_learnt_from[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a message about a run of the year 9999 cannot be written",
        _WALLCLOCK["shown_in"].replace("return moment.astimezone(UTC)", "raise"),
        f"{_POISON}::test_runs_at_the_ends_of_the_calendar_are_told[sqlite-9999]",
    ),
    Promise.PROGRESS.broken_if(
        "a DEPENDENT task without dates quarantines its run",
        _DECIDE_LOGIC["start"].drop("_check_question(draft, task)"),
        "tests/integration/master/engine/test_uncomputable.py::"
        "test_dates_outside_the_calendar_fail_the_task[UTC-1-sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a purge that cannot be read stops all others",
        _PURGES["_serve_alone"].always("is_outage(error) or isinstance(error, PartitionNotOwned)"),
        "tests/integration/master/engine/test_junk.py::"
        "test_purge_that_cannot_be_read_holds_up_no_other"
        "[sqlite-table0-created_at-4611686018427387904]",
    ),
    Promise.PROGRESS.broken_if(
        "skipped items do not degrade the health",
        _HEALTH["_look"].never("aside and aside.skipped"),
        "tests/integration/api/cluster/test_quarantine.py::"
        "test_skipped_items_degrade_the_health_until_they_are_discarded",
    ),
    Promise.PROGRESS.broken_if(
        "a master does not look for requests to retry",
        _MASTER_QUARANTINE["_requested"].always("not self._items"),
        "tests/integration/master/engine/test_junk.py::"
        "test_retry_that_was_requested_is_not_waited_for[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "what alert servers have quarantined is not shown",
        _HEALTH["_look"].drop("quarantine=aside"),
        "tests/integration/api/cluster/test_cluster.py::"
        "test_what_is_quarantined_is_told_with_reasons_to_administrators",
    ),
    Promise.PROGRESS.broken_if(
        "a time that Python cannot hold hides the rows beside it",
        _CURSOR["Converter.rows"].replace("DataError", "ZeroDivisionError"),
        "tests/integration/sql/driver/test_queries.py::"
        "test_time_that_python_cannot_hold_spoils_its_own_row_alone[infinity]",
    ),
    Promise.PROGRESS.broken_if(
        "stored JSON that no answer can hold is read as a value",
        _TYPES["Json.process_result_value"].drop("is_strict=True"),
        "tests/integration/sql/driver/test_queries.py::"
        "test_json_that_cannot_be_written_again_spoils_its_own_row_alone"
        "[sqlite-not a number]",
    ),
    Promise.PROGRESS.broken_if(
        "PostgreSQL subtracts an infinite time where a list asks for durations",
        Place("shoal.sql.repositories.search.conditions", "_postgresql").replace_text(
            "CASE WHEN isfinite(", "CASE WHEN true OR isfinite("
        ),
        "tests/integration/sql/runs/test_searches.py::"
        "test_impossible_time_spoils_the_duration_of_its_own_run_alone[postgresql-started_at]",
    ),
    Promise.PROGRESS.broken_if(
        "a stored condition of an unknown trigger stops the watch",
        _STORED_CONDITIONS["AlertConditions.all"].replace(
            'readable(rows, _condition, "alert condition", leave_out, key="subject")',
            "[_condition(row) for row in rows]",
        ),
        f"{_CONDITIONS}::test_stored_condition_of_an_unknown_trigger_stops_no_other[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "an audit entry of an unknown outcome hides the others",
        _AUDIT["_entry"].never("row.outcome not in list(Outcome)"),
        f"{_SQL_AUDIT}::test_entry_that_cannot_be_read_is_shown_beside_the_others"
        "[sqlite-outcome-none]",
    ),
    Promise.PROGRESS.broken_if(
        "the head of a message of another program stops the consumer",
        _MESSAGE["decode"].replace("OverflowError", "ZeroDivisionError"),
        f"{_STORED_DOCUMENTS}::test_message_of_no_producer_has_neither_id_nor_key",
    ),
    Promise.PROGRESS.broken_if(
        "a ledger of another program stops the owner of a partition",
        _OWNED["counts_of"].replace("read_count(name)", "int(name)"),
        f"{_STORED_DOCUMENTS}::test_ledger_counts_the_messages_whose_numbers_make_sense",
    ),
    Promise.PROGRESS.broken_if(
        "a document that cannot be written again is read",
        _DOCUMENTS["read_json"].replace("is_strict=True", "is_strict=False"),
        f"{_STORED_DOCUMENTS}::test_document_that_cannot_be_written_again_is_refused",
    ),
    Promise.PROGRESS.broken_if(
        "a row of an impossible time stops the export of all others",
        _EXPORTED_COLUMNS["_array"].never(
            "bounds['min'] is not None and not _FIRST <= bounds['min'] <= bounds['max'] <= _LAST"
        ),
        "tests/integration/insight/test_export.py::"
        "test_a_row_of_an_impossible_time_is_left_out_and_the_others_are_exported"
        "[sqlite-finished_at-0]",
    ),
    Promise.PROGRESS.broken_if(
        "rows that the export leaves out are only counted",
        _EXPORTER["_quarantine"].replace("uow.quarantine.note(one)", "asyncio.sleep(0)"),
        f"{_REPAIRED}[sqlite-attempts]",
    ),
    Promise.PROGRESS.broken_if(
        "a repaired row of the history is not exported",
        _EXPORTER["Exporter._retry"].replace("last.position is None or not wanted", "True"),
        f"{_REPAIRED}[sqlite-instances]",
    ),
    Promise.PROGRESS.broken_if(
        "a row that was exported later stays quarantined",
        _EXPORTER["_quarantine"].replace(
            "found.exported({item for _, item in known})", "set[str]()"
        ),
        "tests/integration/insight/test_export.py::"
        "test_a_row_that_is_exported_after_its_run_went_on_is_no_longer_quarantined[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a roll-up that cannot be loaded is only logged",
        _LOADER["Loader._see_to"].replace("self._failed[_item(job, day)] = str(error)", "pass"),
        "tests/integration/insight/test_loading.py::"
        "test_file_that_is_no_result_is_refused_and_the_old_day_stays[sqlite]",
    ),
)
