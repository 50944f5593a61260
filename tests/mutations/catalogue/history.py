"""What has ended is in the exported history, each row once."""

from tests.mutations.mutation import Promise, mutation

_TESTS = "tests/integration/insight/test_export.py"
_EXPORTER = "insight/shoal/insight/export/exporter.py"
_GATHERING = "insight/shoal/insight/export/gathering.py"
_STORE = "insight/shoal/insight/history/store.py"

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
        "insight/shoal/insight/export/compaction.py",
        ('[("event_id", "descending")]', '[("event_id", "ascending")]'),
        (f"{_TESTS}::test_joined_files_keep_the_newest_row[sqlite]",),
    ),
    mutation(
        "files that were replaced go while somebody may read them",
        Promise.NOTHING_LOST,
        _EXPORTER,
        ("keep = {*contents.files, *retired}", "keep = {*contents.files}"),
        (f"{_TESTS}::test_files_that_were_replaced_stay_for_a_day_and_then_go[sqlite]",),
    ),
    mutation(
        "a manifest that is missing is not noticed",
        Promise.NOTHING_LOST,
        _STORE,
        ("if [number for number, _ in needed] != wanted:", "if False:"),
        (f"{_TESTS}::test_readers_go_by_the_last_full_manifest[sqlite]",),
    ),
)
