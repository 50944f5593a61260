"""Roll-ups are loaded as a whole, each result once, and none is older than what was there."""

from tests.mutations.mutation import Promise, mutation

_TESTS = "tests/integration/insight/test_loading.py"
_LATE = "tests/integration/insight/test_late.py"
_SQL = "tests/integration/sql/test_rollups.py"
_LOADER = "insight/shoal/insight/serving/loader.py"
_BLOCKS = "insight/shoal/insight/serving/blocks.py"
_BATCHES = "sql/shoal/sql/repositories/insight/batches.py"

MUTATIONS = (
    mutation(
        "of two loaders of a day the slower one replaces what it has not seen",
        Promise.NOTHING_LOST,
        _BATCHES,
        (
            '.where(_D.job == batch.job, _D.day == key["day"], _D.batch == batch.before)',
            '.where(_D.job == batch.job, _D.day == key["day"])',
        ),
        (f"{_SQL}::test_of_two_writers_at_once_one_counts[sqlite-True]",),
    ),
    mutation(
        "a batch whose removal has begun counts",
        Promise.NOTHING_LOST,
        _BATCHES,
        (
            "delete(rollup_batch).where(_B.id == batch.id, _B.touched_at.is_not(None))",
            "delete(rollup_batch).where(_B.id == batch.id)",
        ),
        (f"{_SQL}::test_batch_whose_removal_has_begun_never_counts[sqlite]",),
    ),
    mutation(
        "roll-ups that were replaced stay for ever",
        Promise.NOTHING_LOST,
        _BATCHES,
        ("await self._dismiss(batch.before, key)", "pass"),
        (f"{_SQL}::test_batch_counts_as_a_whole_and_the_old_one_goes_in_pieces[sqlite]",),
    ),
    mutation(
        "a snapshot of a day to come counts as the newest one",
        Promise.NOTHING_LOST,
        _LOADER,
        ("if day <= latest:", "if True:"),
        (f"{_TESTS}::test_results_of_days_to_come_go_and_hide_nothing[sqlite]",),
    ),
    mutation(
        "a clock that was set back makes days that have been such to come",
        Promise.NOTHING_LOST,
        _LOADER,
        ("latest = max(now, known).date()", "latest = now.date()"),
        (f"{_TESTS}::test_a_clock_that_was_set_back_takes_nothing_away[sqlite-True]",),
    ),
    mutation(
        "files of days to come are removed by a clock that was set back",
        Promise.NOTHING_LOST,
        _LOADER,
        ("if day <= rules.latest and not rules.keeps(job, day):", "if not rules.keeps(job, day):"),
        (f"{_TESTS}::test_a_clock_that_was_set_back_takes_nothing_away[sqlite-False]",),
    ),
    mutation(
        "jobs compute days that have not begun",
        Promise.NOTHING_LOST,
        "insight/shoal/insight/jobs/days.py",
        ("if found.last > today:", "if False:"),
        (f"{_LATE}::test_days_that_have_not_begun_are_refused",),
    ),
    mutation(
        "rows of moves tell of the schedules of others",
        Promise.AUTHORISED,
        "api/shoal/api/routes/insight/rollups.py",
        ("rows=[{**row, **hidden} for row in one.rows],", "rows=[{**row} for row in one.rows],"),
        (
            "tests/integration/api/insight/test_rights.py::"
            "test_rows_of_moves_do_not_tell_of_the_schedules_of_others",
        ),
    ),
    mutation(
        "a reader sees the roll-ups of projects that are not visible",
        Promise.AUTHORISED,
        "sql/shoal/sql/repositories/insight/rollups.py",
        (
            "if visible is not None:\n            names = select",
            "if False:\n            names = select",
        ),
        (f"{_SQL}::test_reader_sees_projects_that_are_visible[sqlite]",),
    ),
    mutation(
        "a loader that has read an older file hides a newer one",
        Promise.NOTHING_LOST,
        _LOADER,
        (
            "content = await asyncio.to_thread(self._store.result, job, day)",
            "content = await asyncio.to_thread(self._store.result, job, day)\n"
            "        before = await self._in_turn(\n"
            "            lambda uow: uow.rollup_batches.counting(job, day), is_reading=True\n"
            "        )",
        ),
        (
            f"{_TESTS}::test_loader_that_has_read_an_older_file_does_not_hide_a_newer_one"
            "[sqlite-True]",
        ),
    ),
    mutation(
        "a mark goes before its results are loaded",
        Promise.NOTHING_LOST,
        _LOADER,
        (
            "rules = self._rules(there, now)",
            "rules = self._rules(there, now)\n"
            "        for name in there.marks:\n"
            "            self._store.remove_mark(name)",
        ),
        (
            f"{_TESTS}::test_loader_that_breaks_off_is_made_up_for_by_the_next_one"
            "[sqlite-load.before_publish]",
        ),
    ),
    mutation(
        "aggregates are read as rows of the cluster",
        Promise.AUTHORISED,
        "sql/shoal/sql/repositories/insight/rollups.py",
        ("    .where(_R.place >= 0)\n", ""),
        (f"{_SQL}::test_aggregates_count_with_their_batch_and_are_no_rows[sqlite]",),
    ),
    mutation(
        "a result that lacks a workflow's aggregate has those of the others",
        Promise.NOTHING_LOST,
        "insight/shoal/insight/serving/aggregates.py",
        ("            self.rows = None\n", "            pass\n"),
        (f"{_TESTS}::test_a_result_of_which_a_count_is_missing_has_no_aggregates[sqlite]",),
    ),
    mutation(
        "what an older version has loaded never gets aggregates",
        Promise.NOTHING_LOST,
        _LOADER,
        (
            "if is_there and not (is_all and await self._lacks",
            "if is_there and not (False and await self._lacks",
        ),
        (
            f"{_TESTS}::test_what_an_older_version_has_loaded_gets_aggregates_when_all_is_loaded"
            "[sqlite]",
        ),
    ),
    mutation(
        "a file that is not what its run has stored is loaded",
        Promise.NOTHING_LOST,
        _LOADER,
        ("if digests is not None and digest not in digests:", "if False:"),
        (f"{_TESTS}::test_file_that_is_not_what_its_run_has_stored_is_refused[sqlite]",),
    ),
    mutation(
        "a file with other columns is loaded",
        Promise.NOTHING_LOST,
        _BLOCKS,
        ("    if wrong:", "    if False:"),
        (f"{_TESTS}::test_file_that_is_no_result_is_refused_and_the_old_day_stays[sqlite]",),
    ),
    mutation(
        "what a killed loader has left stays for ever",
        Promise.NOTHING_LOST,
        _BATCHES,
        (
            "may_go = or_(_B.touched_at.is_(None), _B.touched_at < before)\n        rows",
            "may_go = _B.touched_at.is_(None)\n        rows",
        ),
        (f"{_SQL}::test_batch_that_is_not_published_changes_nothing_and_is_removed[sqlite]",),
    ),
    mutation(
        "hours in which a late attempt worked are not computed again",
        Promise.NOTHING_LOST,
        "insight/shoal/insight/jobs/late.py",
        ("            found.update(self.worked)\n", "            pass\n"),
        (f"{_LATE}::test_each_job_has_the_days_that_its_rows_are_about",),
    ),
    mutation(
        "costs never get the labels of a run that went on",
        Promise.NOTHING_LOST,
        "insight/shoal/insight/jobs/late.py",
        ("            found.update(self.went_on)\n", "            pass\n"),
        (f"{_LATE}::test_each_job_has_the_days_that_its_rows_are_about",),
    ),
    mutation(
        "days behind a late failure are not computed again",
        Promise.NOTHING_LOST,
        "insight/shoal/insight/jobs/late.py",
        ("if job.goes_on and days:", "if False:"),
        (f"{_LATE}::test_each_job_has_the_days_that_its_rows_are_about",),
    ),
    mutation(
        "late rows in a file that was joined are not noticed",
        Promise.NOTHING_LOST,
        "insight/shoal/insight/jobs/late.py",
        (
            "return one.since > look.exports or _newest_event(one) >= look.event",
            "return one.since > look.exports",
        ),
        (f"{_LATE}::test_joined_files_are_late_only_if_something_in_them_is",),
    ),
)
