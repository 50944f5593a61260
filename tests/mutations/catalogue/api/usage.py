"""What attempts used and why they failed: it endangers no result and shows no secret."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_LINE = Place("shoal.worker.results.error_line")
_ENDING = Place("shoal.core.decide.endings")
_RPC = Place("shoal.master.dispatch.rpc")
_TASKS = Place("shoal.sql.repositories.search.tasks")
_LINES = "tests/unit/worker/home/test_error_line.py"
_STORED = "tests/integration/master/dispatch/test_usage.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.SECRETS_STAY.broken_if(
        "error lines show secrets",
        _LINE["plain"].replace("Masker(masks).mask(line)", "line"),
        f"{_LINES}::test_what_is_left_of_a_line",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "error lines steer terminals",
        _LINE["plain"].replace("c if c.isprintable() else ' '", "c"),
        f"{_LINES}::test_what_is_left_of_a_line",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a log that cannot be read keeps the result",
        _LINE["with_error_line"].replace("Exception", "KeyError"),
        f"{_LINES}::test_a_log_that_is_none_is_no_failure",
    ),
    Promise.PROGRESS.broken_if(
        "a result waits for its log however long that takes",
        _LINE["with_error_line"].replace("PATIENCE_S", "None"),
        f"{_LINES}::test_a_disk_that_does_not_answer_keeps_no_result",
    ),
    Promise.PROGRESS.broken_if(
        "a log is read from its beginning",
        _LINE["tail"].replace("max(...)", "0"),
        f"{_LINES}::test_only_the_end_of_a_long_log_is_read",
    ),
    Promise.GUARDED_STATES.broken_if(
        "what was killed by request has failed with an error",
        _ENDING.replace(
            "{TaskSignal.FAIL, TaskSignal.LOSE}",
            "{TaskSignal.FAIL, TaskSignal.LOSE, TaskSignal.KILL}",
        ),
        "tests/unit/core/decide/test_decide.py::test_only_what_failed_or_was_lost_has_an_error_line",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "whatever a worker says it has measured is stored",
        _RPC["_measured"].drop("0 <= value < _LARGEST_MEASURED"),
        f"{_STORED}::test_what_is_no_measurement_is_not_stored",
    ),
    Promise.PROGRESS.broken_if(
        "attempts of a fingerprint are searched among all",
        _TASKS["_walks"].replace(
            "self.wanted.fingerprint is not None", "self.wanted.fingerprint is True"
        ),
        "tests/integration/sql/plans/test_list_plans.py::"
        "test_attempts_of_one_fingerprint_are_found_by_its_index",
    ),
)
