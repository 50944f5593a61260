"""What has ended is in the exported history, each row once."""

from tests.mutations.mutation import Promise, mutation

_TESTS = "tests/integration/insight/test_export.py"
_EXPORTER = "insight/shoal/insight/export/exporter.py"
_GATHERING = "insight/shoal/insight/export/gathering.py"
_STORE = "insight/shoal/insight/history/store.py"
_VERIFYING = "insight/shoal/insight/export/verifying.py"
_EXPIRED = "sql/shoal/sql/repositories/upkeep/expired.py"
_WAITS = "tests/integration/master/test_purge_waits.py"
_DAMAGED = f"{_WAITS}::test_a_file_that_is_damaged_later_is_exported_again"
_PAST = "tests/integration/api/test_past.py"

MUTATIONS = (
    mutation(
        "of two exporters both count",
        Promise.SENT_ONCE,
        "sql/shoal/sql/repositories/exporting/position.py",
        (".where(_E.number == _NUMBER, _E.sequence == before.sequence)", ""),
        (f"{_TESTS}::test_of_two_exporters_one_comes_too_late[sqlite-False]",),
    ),
    mutation(
        "a manifest that a killed exporter has not stored is missing for good",
        Promise.NOTHING_LOST,
        _EXPORTER,
        (
            "await asyncio.to_thread(self._store.put_manifest, Manifest.from_json(last.manifest))",
            "pass",
        ),
        (f"{_TESTS}::test_kills_leave_neither_a_hole_nor_a_double[sqlite-0]",),
    ),
    mutation(
        "a history that is ahead of its database is written to",
        Promise.NOTHING_LOST,
        _EXPORTER,
        ("if contents.sequence > last.sequence:", "if False:"),
        (f"{_TESTS}::test_a_history_ahead_of_its_database_is_not_written_to[sqlite]",),
    ),
    mutation(
        "what ended is lost when its events were purged",
        Promise.NOTHING_LOST,
        _EXPORTER,
        ("if ends.first_event > position.event + 1:", "if False:"),
        (f"{_TESTS}::test_what_ended_is_found_although_its_events_were_purged[sqlite]",),
    ),
    mutation(
        "a command that is handled later is lost",
        Promise.NOTHING_LOST,
        _GATHERING,
        ("open_commands=tuple(still_open)", "open_commands=()"),
        (f"{_TESTS}::test_commands_come_when_they_were_handled[sqlite]",),
    ),
    mutation(
        "joined files lose the newest row of an instance",
        Promise.NOTHING_LOST,
        "insight/shoal/insight/export/columns.py",
        ('[("event_id", "descending")]', '[("event_id", "ascending")]'),
        (f"{_TESTS}::test_joined_files_keep_the_newest_row[sqlite]",),
    ),
    mutation(
        "files that were replaced go while somebody may read them",
        Promise.NOTHING_LOST,
        _EXPORTER,
        ("keep = {*contents.files, *retired, *position.damaged}", "keep = {*contents.files}"),
        (f"{_TESTS}::test_files_that_were_replaced_stay_for_a_day_and_then_go[sqlite]",),
    ),
    mutation(
        "a manifest that is missing is not noticed",
        Promise.NOTHING_LOST,
        _STORE,
        ("if [number for number, _ in needed] != wanted:", "if False:"),
        (f"{_TESTS}::test_readers_go_by_the_last_full_manifest[sqlite]",),
    ),
    mutation(
        "an instance is purged although it has changed since it was exported",
        Promise.NOTHING_LOST,
        _EXPIRED,
        ('event.c.id > bindparam("event"))', 'event.c.id < 0, bindparam("event") > 0)'),
        (f"{_WAITS}::test_a_late_change_keeps_an_instance_until_it_was_exported_again[sqlite]",),
    ),
    mutation(
        "an instance is purged that the first export has not come to",
        Promise.NOTHING_LOST,
        _EXPIRED,
        ('_i.id > bindparam("walk_end")),', '_i.id > 0, bindparam("walk_end") > 0),'),
        (f"{_WAITS}::test_instances_that_the_export_has_not_come_to_stay[sqlite]",),
    ),
    mutation(
        "a command is purged that was handled after it was read",
        Promise.NOTHING_LOST,
        _EXPIRED,
        (
            '"open_commands": sorted(verified.open_commands)',
            '"open_commands": []',
        ),
        (f"{_WAITS}::test_commands_that_were_handled_after_they_were_read_stay[sqlite]",),
    ),
    mutation(
        "events are purged that the export has not read",
        Promise.NOTHING_LOST,
        "master/shoal/master/services/upkeep/purging.py",
        ("until = None if verified is None else verified.event", "until = None"),
        (f"{_WAITS}::test_nothing_goes_before_it_was_exported[sqlite]",),
    ),
    mutation(
        "takeovers are purged that were not exported",
        Promise.NOTHING_LOST,
        "master/shoal/master/services/upkeep/purging.py",
        ("until = None if verified is None else verified.takeover", "until = None"),
        (f"{_WAITS}::test_takeovers_stay_until_they_were_exported[sqlite]",),
    ),
    mutation(
        "files of the history are not read back",
        Promise.NOTHING_LOST,
        _VERIFYING,
        ("[file for file in files if not store.is_whole(file)]", "[]"),
        (f"{_WAITS}::test_a_file_that_the_storage_has_spoilt_at_once_is_written_again[sqlite]",),
    ),
    mutation(
        "a file of the right size with another content counts as whole",
        Promise.NOTHING_LOST,
        _STORE,
        ("return hashlib.sha256(content).hexdigest() == file.sha256", "return True"),
        (f"{_DAMAGED}[sqlite-instances-False]",),
    ),
    mutation(
        "rows of a damaged file are not exported again",
        Promise.NOTHING_LOST,
        _VERIFYING,
        ("position = replace(position, instances=0, instances_end=ends.instance)", "pass"),
        (f"{_DAMAGED}[sqlite-instances-True]",),
    ),
    mutation(
        "the purge goes on by what was verified before a file was damaged",
        Promise.NOTHING_LOST,
        _EXPORTER,
        (
            "last, contents, Gathered(position), whole, None, paths, is_verified=True",
            "last, contents, Gathered(position), whole, None, paths",
        ),
        (f"{_DAMAGED}[sqlite-instances-True]",),
    ),
    mutation(
        "a joined file that is not whole replaces those that are",
        Promise.NOTHING_LOST,
        _EXPORTER,
        ("if await asyncio.to_thread(not_whole, self._store, [file]):", "if False:"),
        (f"{_WAITS}::test_a_joined_file_replaces_nothing_before_it_is_whole[sqlite]",),
    ),
    mutation(
        "a storage that is not mounted is taken for a new history",
        Promise.NOTHING_LOST,
        _EXPORTER,
        (
            "            if self._anew:\n                return last, Contents()\n",
            "            self._anew = True\n            return last, Contents()\n",
        ),
        (f"{_WAITS}::test_a_storage_that_is_suddenly_empty_is_not_begun_anew_by_itself[sqlite]",),
    ),
    mutation(
        "lists show past runs of all projects",
        Promise.AUTHORISED,
        "insight/shoal/insight/past/reading.py",
        ('found = pc.and_(found, _is_in(rows["project"], wanted.projects))', "pass"),
        (f"{_PAST}::test_who_may_not_see_a_project_sees_no_past_run_of_it",),
    ),
    mutation(
        "a past run is listed as it ended first",
        Promise.GUARDED_STATES,
        "insight/shoal/insight/past/reading.py",
        ("if one.event == newest[one.at[1]] and", "if newest and"),
        (f"{_PAST}::test_a_run_that_ended_again_is_listed_once",),
    ),
    mutation(
        "a past run has the plan of another workflow that got its name",
        Promise.GUARDED_STATES,
        "insight/shoal/insight/past/reading.py",
        ('key=lambda one: (one[0] > row["created_at"], ', "key=lambda one: (one[0] < 0, -"),
        (
            "tests/unit/insight/test_past.py::"
            "test_of_two_workflows_that_had_one_name_each_run_has_its_own_plan",
        ),
    ),
    mutation(
        "a past run lacks what ended behind midnight by another clock",
        Promise.NOTHING_LOST,
        "insight/shoal/insight/past/reading.py",
        ('_day(row["finished_at"]) + one_day)', '_day(row["finished_at"]))'),
        (
            "tests/unit/insight/test_past.py::"
            "test_attempts_that_ended_behind_midnight_by_another_clock_are_there",
        ),
    ),
    mutation(
        "a history that is not mounted is taken for an empty one",
        Promise.NOTHING_LOST,
        "insight/shoal/insight/past/asking.py",
        ('if not found["exports"] and', 'if found["exports"] is None and'),
        (f"{_PAST}::test_a_history_that_is_away_is_not_taken_for_an_empty_one",),
    ),
    mutation(
        "what has events in several pieces is exported once for each",
        Promise.NOTHING_LOST,
        _EXPORTER,
        ("rows = each_once(table, pa.concat_tables(pieces))", "rows = pa.concat_tables(pieces)"),
        (
            "tests/integration/insight/test_export.py::"
            "test_what_has_events_in_several_pieces_is_one_row[sqlite]",
        ),
    ),
)
