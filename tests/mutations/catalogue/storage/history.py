"""What has ended is in the exported history, each row once."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_POSITION = Place("shoal.sql.repositories.exports.position")
_EXPORTER = Place("shoal.insight.export.exporter")
_GATHERING = Place("shoal.insight.export.extraction")
_COLUMNS = Place("shoal.insight.export.columns")
_STORE = Place("shoal.insight.history.store")
_EXPIRED = Place("shoal.sql.repositories.upkeep.expired_rows")
_PURGING = Place("shoal.master.services.upkeep.purges")
_VERIFYING = Place("shoal.insight.export.damage")
_READING = Place("shoal.insight.past.reader")
_ASKING = Place("shoal.insight.past.client")
_TESTS = "tests/integration/insight/test_export.py"
_WAITS = "tests/integration/master/upkeep/test_purge_waits.py"
_DAMAGED = f"{_WAITS}::test_a_file_that_is_damaged_later_is_exported_again"
_PAST = "tests/integration/api/runs/test_past.py"
_TEST_PAST = "tests/unit/insight/test_past.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.SENT_ONCE.broken_if(
        "of two exporters both count",
        _POSITION["replace"].replace("(...).where(...)", "..."),
        f"{_TESTS}::test_of_two_exporters_one_comes_too_late[sqlite-False]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a manifest that a killed exporter has not stored is missing for good",
        _EXPORTER["_begin"].drop(
            "await asyncio.to_thread(self._store.put_manifest, Manifest.from_json(last.manifest))"
        ),
        f"{_TESTS}::test_kills_leave_neither_a_hole_nor_a_double[sqlite-0]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a history that is ahead of its database is written to",
        _EXPORTER["_begin"].never("contents.sequence > last.sequence"),
        f"{_TESTS}::test_a_history_ahead_of_its_database_is_not_written_to[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "what ended is lost when its events were purged",
        _EXPORTER["_begin_at"].never("ends.first_event > position.event + 1"),
        f"{_TESTS}::test_what_ended_is_found_although_its_events_were_purged[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a command that is handled later is lost",
        _GATHERING["_add_commands"].replace("tuple(still_open)", "()"),
        f"{_TESTS}::test_commands_come_when_they_were_handled[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "joined files lose the newest row of an instance",
        _COLUMNS["newest"].replace("('event_id', 'descending')", "('event_id', 'ascending')"),
        f"{_TESTS}::test_joined_files_keep_the_newest_row[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "files that were replaced go while somebody may read them",
        _EXPORTER["_sweep"].replace(
            "{*contents.files, *retired, *position.damaged}", "{*contents.files}"
        ),
        f"{_TESTS}::test_files_that_were_replaced_stay_for_a_day_and_then_go[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a manifest that is missing is not noticed",
        _STORE["_contents"].never("[number for number, _ in needed] != wanted"),
        f"{_TESTS}::test_readers_go_by_the_last_full_manifest[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "an instance is purged although it has changed since it was exported",
        _EXPIRED.replace(
            "select(...).where(..., event.c.id > bindparam(...))",
            "select(...).where(..., event.c.id < 0, bindparam(...) > 0)",
        ),
        f"{_WAITS}::test_a_late_change_keeps_an_instance_until_it_was_exported_again[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "an instance is purged that the first export has not come to",
        _EXPIRED.replace(
            "or_(..., _i.id > bindparam(...))", "or_(..., _i.id > 0, bindparam(...) > 0)"
        ),
        f"{_WAITS}::test_instances_that_the_export_has_not_come_to_stay[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a command is purged that was handled after it was read",
        _EXPIRED["_command_bounds"].replace("sorted(verified.open_commands)", "[]"),
        f"{_WAITS}::test_commands_that_were_handled_after_they_were_read_stay[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "events are purged that the export has not read",
        _PURGING["_events"].replace("None if verified is None else verified.event", "None"),
        f"{_WAITS}::test_nothing_goes_before_it_was_exported[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "takeovers are purged that were not exported",
        _PURGING["_takeovers"].replace("None if verified is None else verified.takeover", "None"),
        f"{_WAITS}::test_takeovers_stay_until_they_were_exported[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "files of the history are not read back",
        _VERIFYING["not_whole"].replace(
            "[file for file in files if not store.is_whole(file)]", "[]"
        ),
        f"{_WAITS}::test_a_file_that_the_storage_has_spoilt_at_once_is_written_again[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a file of the right size with another content counts as whole",
        _STORE["is_whole"].always("hashlib.sha256(content).hexdigest() == file.sha256"),
        f"{_DAMAGED}[sqlite-instances-False]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "rows of a damaged file are not exported again",
        _VERIFYING["gone_back"].drop(
            "position = replace(position, instances=0, instances_end=ends.instance)"
        ),
        f"{_DAMAGED}[sqlite-instances-True]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "the purge goes on by what was verified before a file was damaged",
        _EXPORTER["_go_back"].drop("is_verified=True"),
        f"{_DAMAGED}[sqlite-instances-True]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a joined file that is not whole replaces those that are",
        _EXPORTER["_compact"].never("await asyncio.to_thread(not_whole, self._store, [file])"),
        f"{_WAITS}::test_a_joined_file_replaces_nothing_before_it_is_whole[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a storage that is not mounted is taken for a new history",
        _EXPORTER["_begin"].replace(
            "if self._anew:\n    return (last, Contents())",
            "self._anew = True\nreturn (last, Contents())",
        ),
        f"{_WAITS}::test_a_storage_that_is_suddenly_empty_is_not_begun_anew_by_itself[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "lists show past runs of all projects",
        _READING["_condition"].drop(
            "found = pc.and_(found, _is_in(rows['project'], wanted.projects))"
        ),
        f"{_PAST}::test_who_may_not_see_a_project_sees_no_past_run_of_it",
    ),
    Promise.GUARDED_STATES.broken_if(
        "a past run is listed as it ended first",
        _READING["_valid"].replace("one.event == newest[one.at[1]]", "newest"),
        f"{_PAST}::test_a_run_that_ended_again_is_listed_once",
    ),
    Promise.GUARDED_STATES.broken_if(
        "a past run has the plan of another workflow that got its name",
        _READING["_tasks"].replace(
            "(one[0] > row['created_at'], abs(...))", "(one[0] < 0, -abs(...))"
        ),
        f"{_TEST_PAST}::test_of_two_workflows_that_had_one_name_each_run_has_its_own_plan",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a past run lacks what ended behind midnight by another clock",
        _READING["run"].replace("_day(row['finished_at'], 1)", "_day(row['finished_at'])"),
        f"{_TEST_PAST}::test_attempts_that_ended_behind_midnight_by_another_clock_are_there",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a history that is not mounted is taken for an empty one",
        _ASKING["_ask"].replace("not found['exports']", "found['exports'] is None"),
        f"{_PAST}::test_a_history_that_is_away_is_not_taken_for_an_empty_one",
    ),
    Promise.NOTHING_LOST.broken_if(
        "what has events in several pieces is exported once for each",
        _EXPORTER["_write"].replace("each_once(...)", "pa.concat_tables(pieces)"),
        f"{_TESTS}::test_what_has_events_in_several_pieces_is_one_row[sqlite]",
    ),
)
