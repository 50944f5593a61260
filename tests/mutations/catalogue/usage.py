"""What attempts used and why they failed: it endangers no result, shows no secret, is no junk."""

from tests.mutations.mutation import Mutation, Promise, mutation

_LINE = "worker/shoal/worker/results/error_line.py"
_LINES = "tests/unit/worker/test_error_line.py"
_STORED = "tests/integration/master/test_usage.py"
_KILLED = "test_only_what_failed_or_was_lost_has_an_error_line"
_INDEX = "test_attempts_of_one_fingerprint_are_found_by_its_index"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "error lines show secrets",
        Promise.SECRETS_STAY,
        _LINE,
        ("Masker(masks).mask(line)", "line"),
        (f"{_LINES}::test_what_is_left_of_a_line",),
    ),
    mutation(
        "error lines steer terminals",
        Promise.TEXT_STAYS_TEXT,
        _LINE,
        ('c if c.isprintable() else " "', "c"),
        (f"{_LINES}::test_what_is_left_of_a_line",),
    ),
    mutation(
        "a log that cannot be read keeps the result",
        Promise.NOTHING_LOST,
        _LINE,
        ("except Exception as error:", "except KeyError as error:"),
        (f"{_LINES}::test_a_log_that_is_none_is_no_failure",),
    ),
    mutation(
        "a result waits for its log however long that takes",
        Promise.PROGRESS,
        _LINE,
        ("asyncio.timeout(PATIENCE_S)", "asyncio.timeout(None)"),
        (f"{_LINES}::test_a_disk_that_does_not_answer_keeps_no_result",),
    ),
    mutation(
        "a log is read from its beginning",
        Promise.PROGRESS,
        _LINE,
        ("begin = max(0, file.seek(0, os.SEEK_END) - READ)", "begin = 0"),
        (f"{_LINES}::test_only_the_end_of_a_long_log_is_read",),
    ),
    mutation(
        "what was killed by request has failed with an error",
        Promise.GUARDED_STATES,
        "core/shoal/core/decide/ending.py",
        (
            "frozenset({TaskSignal.FAIL, TaskSignal.LOSE})",
            "frozenset({TaskSignal.FAIL, TaskSignal.LOSE, TaskSignal.KILL})",
        ),
        (f"tests/unit/core/test_decide.py::{_KILLED}",),
    ),
    mutation(
        "whatever a worker says it has measured is stored",
        Promise.TEXT_STAYS_TEXT,
        "master/shoal/master/dispatch/rpc.py",
        ("report.HasField(field) and 0 <= value < _LARGEST_MEASURED", "report.HasField(field)"),
        (f"{_STORED}::test_what_is_no_measurement_is_not_stored",),
    ),
    mutation(
        "attempts of a fingerprint are searched among all",
        Promise.PROGRESS,
        "sql/shoal/sql/repositories/search/tasks.py",
        ("if self.wanted.fingerprint is not None:", "if self.wanted.fingerprint is True:"),
        (f"tests/integration/sql/test_list_plans.py::{_INDEX}",),
    ),
)
