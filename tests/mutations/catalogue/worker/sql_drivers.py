"""Databases of tasks: two attempts are never there at once, and what is killed has ended there."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_TAGS = Place("shoal.worker.types.sql.drivers.postgresql.tags")
_MARIADB_TAGS = Place("shoal.worker.types.sql.drivers.mariadb.tags")
_LITERALS = Place("shoal.worker.types.sql.drivers.literals")
_RUNNING = Place("shoal.worker.types.sql.drivers.running_statement")
_SYNTAX = Place("shoal.worker.types.sql.drivers.syntax")
_FAILURES = Place("shoal.worker.types.sql.drivers.failures")
_STREAMING = Place("shoal.worker.types.sql.drivers.postgresql.stream")
_RUN = Place("shoal.worker.types.procedure.run")
_SQLITE = Place("shoal.worker.types.sql.drivers.sqlite")
_DUCKDB = Place("shoal.worker.types.sql.drivers.duckdb")
_SPARK = Place("shoal.worker.types.sql.drivers.spark")
_TESTS = "tests/integration/drivers"
_NEXT = f"{_TESTS}/test_ending.py::test_next_attempt_begins_when_the_one_before_has_ended"
_TEST_ENDING = f"{_TESTS}/test_ending.py"
_TEST_SPARK = "tests/integration/worker/sql/test_spark.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "an attempt begins beside what an earlier one has left at PostgreSQL",
        _TAGS["take"].replace("is_ours and (not others)", "key or is_ours"),
        f"{_NEXT}[postgresql]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a lock that was given up hides an earlier attempt",
        _TAGS["take"].drop("not others"),
        f"{_TEST_ENDING}::test_a_lock_that_was_given_up_does_not_hide_an_attempt",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "an earlier attempt ends a later one",
        _TAGS["_require_earlier"].replace("int(number) > attempt", "not number"),
        f"{_TEST_ENDING}::test_earlier_attempt_does_not_end_a_later_one",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "an attempt begins beside what an earlier one has left at MariaDB",
        _MARIADB_TAGS["take"].replace(
            "not value(...)", "value(connection, 'SELECT GET_LOCK(%s, 0)', lock_name(tag)) is None"
        ),
        f"{_NEXT}[mariadb]",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a value ends its literal at Hive",
        _LITERALS["_text"].replace("_HARMLESS.fullmatch(value)", "value is not None"),
        "tests/unit/worker/sql/test_literals.py::test_text_ends_no_literal_and_opens_no_variable",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a statement begins, or is committed, after the cancellation",
        _RUNNING["begin"].replace("self.is_cancelled", "self.is_cancelled is None"),
        f"{_TESTS}/test_files.py::test_cancelled_from_another_thread[sqlite]",
    ),
    Promise.GUARDED_STATES.broken_if(
        "what was lost during its commit is done again",
        _FAILURES["lost"].replace("not in_commit", "in_commit or not in_commit"),
        f"{_TEST_ENDING}::test_connection_that_is_lost[postgresql-COMMIT-True-ambiguous]",
    ),
    Promise.GUARDED_STATES.broken_if(
        "a query stops where its reader does",
        _STREAMING["close"].replace(
            "self._first = None", "self._first = None\nself._connection.cancel()"
        ),
        f"{_TESTS}/test_postgresql.py::test_a_query_is_run_to_its_end_though_its_rows_are_not_read",
    ),
    Promise.COMMIT_FIRST.broken_if(
        "a procedure is committed whose outputs cannot be",
        _RUN["run"].drop("check_outputs(outputs)"),
        "tests/integration/worker/procedure/test_postgresql.py::"
        "test_nothing_is_committed_if_there_are_no_outputs",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a statement of SQLite opens other files",
        _SQLITE["_authorize"].replace("sqlite3.SQLITE_ATTACH", "-1"),
        f"{_TESTS}/test_sqlite.py::test_nothing_but_its_own_file_is_in_reach",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a statement of DuckDB opens other files",
        _DUCKDB.replace("'enable_external_access': False", "'enable_external_access': True"),
        f"{_TESTS}/test_duckdb.py::test_nothing_but_its_own_file_is_in_reach",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a session of Spark outlives its attempt",
        _SPARK["_end"].replace("within(...)", "_ = client.version"),
        f"{_TEST_SPARK}::test_what_a_dead_process_has_left_is_ended",
    ),
    Promise.GUARDED_STATES.broken_if(
        "a read-only task changes a database that has no read-only sessions",
        _FAILURES["require_reading"].replace("not reads(statement, also=also)", "not statement"),
        f"{_TEST_SPARK}::test_failures",
    ),
    Promise.GUARDED_STATES.broken_if(
        "a read-only task runs what it explains",
        _SYNTAX["reads"].drop("not (first == 'EXPLAIN' and runs_what_it_explains(statement))"),
        "tests/unit/worker/sql/test_syntax.py::test_what_reads",
    ),
)
