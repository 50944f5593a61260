"""What run history tells is for who may see it, and says what it was measured by."""

from tests.mutations.mutation import Promise, mutation

_CORE = "core/shoal/core/insight/"
_READING = "api/shoal/api/operations/insight/reading.py"
_ROUTES = "api/shoal/api/routes/insight/"
_UNIT = "tests/unit/core/test_insight.py::"
_API = "tests/integration/api/insight/"
_AGGREGATES = f"{_API}test_aggregates.py::"
_RIGHTS = (f"{_API}test_rights.py::test_answers_are_the_same_whatever_another_project_has_done",)

MUTATIONS = (
    mutation(
        "totals of run history are those of all projects",
        Promise.AUTHORISED,
        _READING,
        ("(self.projects is None or name[0] in self.projects)", "True"),
        _RIGHTS,
    ),
    mutation(
        "failures and tasks of run history are those of all projects",
        Promise.AUTHORISED,
        _READING,
        ("window.last, visible, project, workflow)", "window.last, None, project, workflow)"),
        _RIGHTS,
    ),
    mutation(
        "how full the minutes of all projects are is for everybody",
        Promise.AUTHORISED,
        f"{_ROUTES}cluster.py",
        ("    highest = {} if sees_cluster else ", "    highest = {} if True else "),
        _RIGHTS,
    ),
    mutation(
        "how many rows all projects have is for everybody",
        Promise.AUTHORISED,
        f"{_ROUTES}rollups.py",
        ("rows=one.rows if sees_cluster else None", "rows=one.rows"),
        _RIGHTS,
    ),
    mutation(
        "rows of the cluster are for everybody",
        Promise.AUTHORISED,
        f"{_ROUTES}rollups.py",
        ("with_cluster=sees_cluster,", "with_cluster=True,"),
        (f"{_API}test_rights.py::test_load_is_for_who_may_see_the_cluster",),
    ),
    mutation(
        "a result that was computed again is not read again",
        Promise.NOTHING_LOST,
        _READING,
        (
            "            if digest != result.digest:\n                values",
            "            if not digest:\n                values",
        ),
        (f"{_API}test_views.py::test_result_that_was_computed_again_is_read_again",),
    ),
    mutation(
        "a day whose aggregates are damaged is empty",
        Promise.NOTHING_LOST,
        _READING,
        (
            "        leave_out(error)\n        return None",
            "        leave_out(error)\n        return {}",
        ),
        (f"{_AGGREGATES}test_aggregates_that_cannot_be_read_are_made_up_for_by_the_rows",),
    ),
    mutation(
        "aggregates with other columns are taken for these",
        Promise.NOTHING_LOST,
        f"{_CORE}aggregates.py",
        ("if not part or tuple(part[0]) != self.columns:", "if not part:"),
        (f"{_AGGREGATES}test_aggregates_that_cannot_be_read_are_made_up_for_by_the_rows",),
    ),
    mutation(
        "labels of costs are kept without a bound",
        Promise.PROGRESS,
        _READING,
        ("for one in values if isinstance(one, CostBlock)) // 2", "for one in ())"),
        (
            f"{_AGGREGATES}test_what_is_kept_has_a_bound_whatever_labels_there_are[whole days]",
            f"{_AGGREGATES}test_what_is_kept_has_a_bound_whatever_labels_there_are[some workflows]",
        ),
    ),
    mutation(
        "a workflow whose count is missing spoils the answer",
        Promise.NOTHING_LOST,
        f"{_CORE}aggregates.py",
        ("    sum(counts)\n", "    sum(filter(None, counts))\n"),
        (f"{_AGGREGATES}test_a_workflow_that_has_no_aggregate_is_missing_alone",),
    ),
    mutation(
        "aggregates of which a part is damaged count without it",
        Promise.NOTHING_LOST,
        "sql/shoal/sql/repositories/insight/rollups.py",
        ("return parts if len(parts) == len(rows) else None", "return parts"),
        (f"{_AGGREGATES}test_aggregates_of_which_a_part_is_damaged_are_made_up_for_by_the_rows",),
    ),
    mutation(
        "a weekday counts for more than the hour",
        Promise.NOTHING_LOST,
        f"{_CORE}baselines.py",
        (
            "    yield ANY, at.hour\n    yield at.weekday(), ANY\n",
            "    yield at.weekday(), ANY\n    yield ANY, at.hour\n",
        ),
        (f"{_UNIT}test_the_nearest_baseline_counts",),
    ),
    mutation(
        "a run that goes on is called faster than usual",
        Promise.NOTHING_LOST,
        f"{_CORE}comparing.py",
        ("took_s < usual.p50_s - margin and not is_open", "took_s < usual.p50_s - margin"),
        (f"{_UNIT}test_verdict_is_by_the_spread_of_what_was_before",),
    ),
    mutation(
        "a run is slow by what nothing has waited for",
        Promise.NOTHING_LOST,
        f"{_CORE}comparing.py",
        (
            "    if path_wait_s is not None and compared.difference_s is not None:\n",
            "    path_wait_s = path_wait_s or 0.0\n    if compared.difference_s is not None:\n",
        ),
        (f"{_UNIT}test_what_made_a_run_slower_comes_first_and_adds_up",),
    ),
    mutation(
        "the end of a run is expected without the tasks behind the open ones",
        Promise.NOTHING_LOST,
        f"{_CORE}expected.py",
        ("default=now)\n        end =", "default=now)\n        ready = now\n        end ="),
        (f"{_UNIT}test_open_tasks_tell_the_end_along_the_longest_way",),
    ),
    mutation(
        "a percentile of several days is that of each day alike",
        Promise.NOTHING_LOST,
        f"{_CORE}windows.py",
        (
            "            total += value * weight\n            weights += weight\n",
            "            total += value\n            weights += 1\n",
        ),
        (f"{_API}test_views.py::test_percentile_of_a_window_is_weighted_by_the_runs_of_its_days",),
    ),
    mutation(
        "an error's text becomes a program of the report's page",
        Promise.TEXT_STAYS_TEXT,
        "insight/shoal/insight/pages/document.py",
        ("else escape(cell)", "else cell"),
        ("tests/unit/insight/test_report.py::test_texts_of_workflows_and_errors_stay_texts",),
    ),
)
