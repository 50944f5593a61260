"""DATA_QUALITY: a check that was not made never passes, and values stay values."""

from tests.mutations.mutation import Mutation, Promise, mutation

_QUALITY = "worker/shoal/worker/types/quality"
_UNIT = "tests/unit/worker/quality"
_INTEGRATION = "tests/integration/worker/quality/test_quality.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "SQLite takes a column that is none for a text",
        Promise.GUARDED_STATES,
        "worker/shoal/worker/types/sql/drivers/sqlite.py",
        ('return quoted(identifier, "`")', "return quoted(identifier)"),
        ("tests/integration/drivers/test_sqlite.py::test_quoted_name_that_is_none_is_refused",),
    ),
    mutation(
        "no check fails the task",
        Promise.GUARDED_STATES,
        f"{_QUALITY}/run.py",
        ('if result.state == "failed"]:', 'if result.state == "never"]:'),
        (f"{_INTEGRATION}::test_what_does_not_hold[sqlite]",),
    ),
    mutation(
        "parameters are pasted into the SQL of checks",
        Promise.TEXT_STAYS_TEXT,
        f"{_QUALITY}/params.py",
        ("        Verbatim(),\n", ""),
        (
            f"{_UNIT}/test_params.py"
            "::test_no_parameter_is_pasted_into_sql_and_all_sources_are_named",
        ),
    ),
    mutation(
        "a check is sent as more than one statement",
        Promise.TEXT_STAYS_TEXT,
        f"{_QUALITY}/asking.py",
        ("if len(found) != 1:", "if not found:"),
        (f"{_INTEGRATION}::test_what_cannot_be_checked_fails_for_good",),
    ),
    mutation(
        "the query of the second session is left running",
        Promise.KILLED_MEANS_DEAD,
        f"{_QUALITY}/run.py",
        ("for name in _others(work.params):", "for name in ():"),
        (f"{_INTEGRATION}::test_what_a_dead_process_has_left_is_settled",),
    ),
)
