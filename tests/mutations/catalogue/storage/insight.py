"""What run history tells is for who may see it, and says what it was measured by."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_READING = Place("shoal.api.operations.insight.day_results")
_CLUSTER = Place("shoal.api.routes.insight.cluster")
_ROLLUPS = Place("shoal.api.routes.insight.rollups")
_INSIGHT_AGGREGATES = Place("shoal.core.insight.aggregates")
_INSIGHT_ROLLUPS = Place("shoal.sql.repositories.insight.rollups")
_BASELINES = Place("shoal.core.insight.baselines")
_COMPARING = Place("shoal.core.insight.comparison")
_EXPECTED = Place("shoal.core.insight.expectation")
_WINDOWS = Place("shoal.core.insight.windows")
_DOCUMENT = Place("shoal.insight.pages.document")
_API = "tests/integration/api/insight/"
_RIGHTS = f"{_API}test_rights.py::test_answers_are_the_same_whatever_another_project_has_done"
_AGGREGATES = f"{_API}test_aggregates.py::"
_UNIT = "tests/unit/core/test_insight.py::"
_TEST_VIEWS = "tests/integration/api/insight/test_views.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.AUTHORISED.broken_if(
        "totals of run history are those of all projects",
        _READING["has"].always("self.projects is None or name[0] in self.projects"),
        _RIGHTS,
    ),
    Promise.AUTHORISED.broken_if(
        "failures and tasks of run history are those of all projects",
        _READING["rows_of"].replace("visible", "None"),
        _RIGHTS,
    ),
    Promise.AUTHORISED.broken_if(
        "how full the minutes of all projects are is for everybody",
        _CLUSTER["_move"].always("sees_cluster"),
        _RIGHTS,
    ),
    Promise.AUTHORISED.broken_if(
        "how many rows all projects have is for everybody",
        _ROLLUPS["list_insight_rollups"].replace("one.rows if sees_cluster else None", "one.rows"),
        _RIGHTS,
    ),
    Promise.AUTHORISED.broken_if(
        "rows of the cluster are for everybody",
        _ROLLUPS["list_insight_rollup_rows"].replace(
            "with_cluster=sees_cluster", "with_cluster=True"
        ),
        f"{_API}test_rights.py::test_load_is_for_who_may_see_the_cluster",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a result that was computed again is not read again",
        _READING["days"].replace("digest != result.digest", "not digest"),
        f"{_TEST_VIEWS}::test_result_that_was_computed_again_is_read_again",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a day whose aggregates are damaged is empty",
        _READING["_stored"].replace("return None", "return {}"),
        f"{_AGGREGATES}test_aggregates_that_cannot_be_read_are_made_up_for_by_the_rows",
    ),
    Promise.NOTHING_LOST.broken_if(
        "aggregates with other columns are taken for these",
        _INSIGHT_AGGREGATES["values"].drop("tuple(part[0]) != self.columns"),
        f"{_AGGREGATES}test_aggregates_that_cannot_be_read_are_made_up_for_by_the_rows",
    ),
    Promise.PROGRESS.broken_if(
        "labels of costs are kept without a bound",
        _READING["_labels"].replace("sum(...) // 2", "sum((len(one.labels) for one in ()))"),
        f"{_AGGREGATES}test_what_is_kept_has_a_bound_whatever_labels_there_are[whole days]",
        f"{_AGGREGATES}test_what_is_kept_has_a_bound_whatever_labels_there_are[some workflows]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a workflow whose count is missing spoils the answer",
        _INSIGHT_AGGREGATES["_check"].replace("sum(counts)", "sum(filter(None, counts))"),
        f"{_AGGREGATES}test_a_workflow_that_has_no_aggregate_is_missing_alone",
    ),
    Promise.NOTHING_LOST.broken_if(
        "aggregates of which a part is damaged count without it",
        _INSIGHT_ROLLUPS["aggregates"].replace(
            "parts if len(parts) == len(rows) else None", "parts"
        ),
        f"{_AGGREGATES}test_aggregates_of_which_a_part_is_damaged_are_made_up_for_by_the_rows",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a weekday counts for more than the hour",
        _BASELINES["lookups"].replace(
            "yield (ANY, at.hour)\nyield (at.weekday(), ANY)",
            "yield (at.weekday(), ANY)\nyield (ANY, at.hour)",
        ),
        f"{_UNIT}test_the_nearest_baseline_counts",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a run that goes on is called faster than usual",
        _COMPARING["verdict_of"].drop("not is_open"),
        f"{_UNIT}test_verdict_is_by_the_spread_of_what_was_before",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a run is slow by what nothing has waited for",
        _COMPARING["_compared_task"].replace(
            "if path_wait_s is not None and compared.difference_s is not None:\n    ...",
            "path_wait_s = path_wait_s or 0.0\nif compared.difference_s is not None:\n    ...",
        ),
        f"{_UNIT}test_what_made_a_run_slower_comes_first_and_adds_up",
    ),
    Promise.NOTHING_LOST.broken_if(
        "the end of a run is expected without the tasks behind the open ones",
        _EXPECTED["of_tasks"].replace("end = ...", "ready = now\nend = ..."),
        f"{_UNIT}test_open_tasks_tell_the_end_along_the_longest_way",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a percentile of several days is that of each day alike",
        _WINDOWS["weighted"].replace(
            "total += value * weight\nweights += weight", "total += value\nweights += 1"
        ),
        f"{_TEST_VIEWS}::test_percentile_of_a_window_is_weighted_by_the_runs_of_its_days",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "an error's text becomes a program of the report's page",
        _DOCUMENT["html"].replace("escape(cell)", "cell"),
        "tests/unit/insight/test_report.py::test_texts_of_workflows_and_errors_stay_texts",
    ),
)
