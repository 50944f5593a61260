"""DATA_QUALITY: a check that was not made never passes, and values stay values."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_SQLITE = Place("shoal.worker.types.sql.drivers.sqlite")
_RUN = Place("shoal.worker.types.quality.run")
_PARAMS = Place("shoal.worker.types.quality.kind")
_ASKING = Place("shoal.worker.types.quality.queries")
_INTEGRATION = "tests/integration/worker/quality/test_quality.py"
_UNIT = "tests/unit/worker/quality"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.GUARDED_STATES.broken_if(
        "SQLite takes a column that is none for a text",
        _SQLITE["quote"].drop("'`'"),
        "tests/integration/drivers/test_sqlite.py::test_quoted_name_that_is_none_is_refused",
    ),
    Promise.GUARDED_STATES.broken_if(
        "no check fails the task",
        _RUN["_end"].replace("result.state == 'failed'", "result.state == 'never'"),
        f"{_INTEGRATION}::test_what_does_not_hold[sqlite]",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "parameters are pasted into the SQL of checks",
        _PARAMS["DataQualityParams"].drop("Verbatim()"),
        f"{_UNIT}/test_params.py::test_no_parameter_is_pasted_into_sql_and_all_sources_are_named",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a check is sent as more than one statement",
        _ASKING["_bound"].replace("len(found) != 1", "not found"),
        f"{_INTEGRATION}::test_what_cannot_be_checked_fails_for_good",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "the query of the second session is left running",
        _RUN["settle"].replace("_others(work.params)", "()"),
        f"{_INTEGRATION}::test_what_a_dead_process_has_left_is_settled",
    ),
)
