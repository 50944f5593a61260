"""Roll-ups are loaded as a whole, each result once, and none is older than what was there."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_BATCHES = Place("shoal.sql.repositories.insight.batches")
_LOADER = Place("shoal.insight.serving.loader")
_DAYS = Place("shoal.insight.jobs.days")
_ROLLUPS = Place("shoal.api.routes.insight.rollups")
_INSIGHT_ROLLUPS = Place("shoal.sql.repositories.insight.rollups")
_AGGREGATES = Place("shoal.insight.serving.blocks")
_BLOCKS = Place("shoal.insight.serving.blocks")
_JOBS_LATE = Place("shoal.insight.jobs.late_rows")
_SQL = "tests/integration/sql/upkeep/test_rollups.py"
_TESTS = "tests/integration/insight/test_loading.py"
_LATE = "tests/integration/insight/test_late.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.NOTHING_LOST.broken_if(
        "of two loaders of a day the slower one replaces what it has not seen",
        _BATCHES["publish"].drop("_D.batch == batch.before"),
        f"{_SQL}::test_of_two_writers_at_once_one_counts[sqlite-True]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a batch whose removal has begun counts",
        _BATCHES["publish"].drop("_B.touched_at.is_not(None)"),
        f"{_SQL}::test_batch_whose_removal_has_begun_never_counts[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "roll-ups that were replaced stay for ever",
        _BATCHES["publish"].drop("await self._dismiss(...)"),
        f"{_SQL}::test_batch_counts_as_a_whole_and_the_old_one_goes_in_pieces[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a snapshot of a day to come counts as the newest one",
        _LOADER["_rules"].always("day <= latest"),
        f"{_TESTS}::test_results_of_days_to_come_go_and_hide_nothing[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a clock that was set back makes days that have been such to come",
        _LOADER["_rules"].replace("max(now, known)", "now"),
        f"{_TESTS}::test_a_clock_that_was_set_back_takes_nothing_away[sqlite-True]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "files of days to come are removed by a clock that was set back",
        _LOADER["_forget"].drop("day <= rules.latest"),
        f"{_TESTS}::test_a_clock_that_was_set_back_takes_nothing_away[sqlite-False]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "jobs compute days that have not begun",
        _DAYS["parse"].never("found.last > today"),
        f"{_LATE}::test_days_that_have_not_begun_are_refused",
    ),
    Promise.AUTHORISED.broken_if(
        "rows of moves tell of the schedules of others",
        _ROLLUPS["list_insight_rollup_rows"].drop("**hidden"),
        "tests/integration/api/insight/test_rights.py::"
        "test_rows_of_moves_do_not_tell_of_the_schedules_of_others",
    ),
    Promise.AUTHORISED.broken_if(
        "a reader sees the roll-ups of projects that are not visible",
        _INSIGHT_ROLLUPS["blocks"].never("visible is not None"),
        f"{_SQL}::test_reader_sees_projects_that_are_visible[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a loader that has read an older file hides a newer one",
        _LOADER["_load"].replace(
            "digest = ...",
            "before = await self._in_turn(lambda uow: uow.rollup_batches.counting(job, "
            "day), is_reading=True)\n"
            "digest = ...",
        ),
        f"{_TESTS}::test_loader_that_has_read_an_older_file_does_not_hide_a_newer_one[sqlite-True]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a mark goes before its results are loaded",
        _LOADER["run"].replace(
            "rules = ...",
            "rules = ...\nfor name in there.marks:\n    self._store.remove_mark(name)",
        ),
        f"{_TESTS}::"
        "test_loader_that_breaks_off_is_made_up_for_by_the_next_one[sqlite-load.before_publish]",
    ),
    Promise.AUTHORISED.broken_if(
        "aggregates are read as rows of the cluster",
        _INSIGHT_ROLLUPS.replace("(...).where(_R.place >= 0)", "..."),
        f"{_SQL}::test_aggregates_count_with_their_batch_and_are_no_rows[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a result that lacks a workflow's aggregate has those of the others",
        _AGGREGATES["add"].drop("self.rows = None"),
        f"{_TESTS}::test_a_result_of_which_a_count_is_missing_has_no_aggregates[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a file that is not what its run has stored is loaded",
        _LOADER["_load"].never("digests is not None and digest not in digests"),
        f"{_TESTS}::test_file_that_is_not_what_its_run_has_stored_is_refused[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a file with other columns is loaded",
        _BLOCKS["_check_columns"].replace("if wrong:\n    ...", "if False:\n    ..."),
        f"{_TESTS}::test_file_that_is_no_result_is_refused_and_the_old_day_stays[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "what a killed loader has left stays for ever",
        _BATCHES["abandoned"].replace("or_(...)", "_B.touched_at.is_(None)"),
        f"{_SQL}::test_batch_that_is_not_published_changes_nothing_and_is_removed[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "hours in which a late attempt worked are not computed again",
        _JOBS_LATE["of"].drop("found.update(self.worked)"),
        f"{_LATE}::test_each_job_has_the_days_that_its_rows_are_about",
    ),
    Promise.NOTHING_LOST.broken_if(
        "costs never get the labels of a run that went on",
        _JOBS_LATE["of"].drop("found.update(self.went_on)"),
        f"{_LATE}::test_each_job_has_the_days_that_its_rows_are_about",
    ),
    Promise.NOTHING_LOST.broken_if(
        "days behind a late failure are not computed again",
        _JOBS_LATE["divided"].never("job.goes_on and days"),
        f"{_LATE}::test_each_job_has_the_days_that_its_rows_are_about",
    ),
    Promise.NOTHING_LOST.broken_if(
        "late rows in a file that was joined are not noticed",
        _JOBS_LATE["_has_come_since"].drop("_newest_event(one) >= look.event"),
        f"{_LATE}::test_joined_files_are_late_only_if_something_in_them_is",
    ),
)
