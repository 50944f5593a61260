"""Databases of tasks: two attempts are never there at once, and what is killed has ended there."""

from tests.mutations.mutation import Mutation, Promise, mutation

_DRIVERS = "worker/shoal/worker/types/sql/drivers"
_TESTS = "tests/integration/drivers"
_NEXT = f"{_TESTS}/test_ending.py::test_next_attempt_begins_when_the_one_before_has_ended"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "an attempt begins beside what an earlier one has left at PostgreSQL",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_DRIVERS}/postgresql/tags.py",
        ("        if is_ours and not others:\n", "        if key or is_ours:\n"),
        (f"{_NEXT}[postgresql]",),
    ),
    mutation(
        "a lock that was given up hides an earlier attempt",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_DRIVERS}/postgresql/tags.py",
        ("        if is_ours and not others:\n", "        if is_ours:\n"),
        (f"{_TESTS}/test_ending.py::test_a_lock_that_was_given_up_does_not_hide_an_attempt",),
    ),
    mutation(
        "an earlier attempt ends a later one",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_DRIVERS}/postgresql/tags.py",
        ("number.isdecimal() and int(number) > attempt", "number.isdecimal() and not number"),
        (f"{_TESTS}/test_ending.py::test_earlier_attempt_does_not_end_a_later_one",),
    ),
    mutation(
        "an attempt begins beside what an earlier one has left at MariaDB",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_DRIVERS}/mariadb/tags.py",
        (
            'while not value(connection, "SELECT GET_LOCK(%s, 0)", lock_name(tag)):',
            'while value(connection, "SELECT GET_LOCK(%s, 0)", lock_name(tag)) is None:',
        ),
        (f"{_NEXT}[mariadb]",),
    ),
    mutation(
        "a value ends its literal at Hive",
        Promise.TEXT_STAYS_TEXT,
        f"{_DRIVERS}/remote/literals.py",
        ("    if _HARMLESS.fullmatch(value):", "    if value is not None:"),
        ("tests/unit/worker/test_literals.py::test_text_ends_no_literal_and_opens_no_variable",),
    ),
    mutation(
        "an attempt begins beside what an earlier one has left at ClickHouse",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_DRIVERS}/remote/clickhouse.py",
        (
            "while int(client.command(_RUNNING, parameters=parameters)):",
            "if int(client.command(_RUNNING, parameters=parameters)):",
        ),
        (
            "tests/unit/worker/test_clickhouse_driver.py::"
            "test_recorded_settling_ends_what_carries_the_tag_and_waits_for_it",
        ),
    ),
    mutation(
        "a statement begins, or is committed, after the cancellation",
        Promise.KILLED_MEANS_DEAD,
        f"{_DRIVERS}/running.py",
        ("            if self.is_cancelled:\n", "            if self.is_cancelled is None:\n"),
        (f"{_TESTS}/test_files.py::test_cancelled_from_another_thread[sqlite]",),
    ),
    mutation(
        "what was lost during its commit is done again",
        Promise.GUARDED_STATES,
        f"{_DRIVERS}/failures.py",
        ("    if not in_commit:\n", "    if in_commit or not in_commit:\n"),
        (
            f"{_TESTS}/test_ending.py::test_connection_that_is_lost[postgresql-COMMIT-True-ambiguous]",
        ),
    ),
    mutation(
        "a query stops where its reader does",
        Promise.GUARDED_STATES,
        f"{_DRIVERS}/postgresql/streaming.py",
        (
            "        self._first = None\n        while not self._is_over:\n",
            "        self._first = None\n        self._connection.cancel()\n"
            "        while not self._is_over:\n",
        ),
        (
            f"{_TESTS}/test_postgresql.py::"
            "test_a_query_is_run_to_its_end_though_its_rows_are_not_read",
        ),
    ),
    mutation(
        "a procedure is committed whose outputs cannot be",
        Promise.COMMIT_FIRST,
        "worker/shoal/worker/types/procedure/run.py",
        ("            check_outputs(outputs)\n", ""),
        (
            "tests/integration/worker/procedure/test_postgresql.py::"
            "test_nothing_is_committed_if_there_are_no_outputs",
        ),
    ),
    mutation(
        "a statement of SQLite opens other files",
        Promise.TEXT_STAYS_TEXT,
        f"{_DRIVERS}/sqlite.py",
        ("if action == sqlite3.SQLITE_ATTACH and first !=", "if action == -1 and first !="),
        (f"{_TESTS}/test_sqlite.py::test_nothing_but_its_own_file_is_in_reach",),
    ),
    mutation(
        "a statement of DuckDB opens other files",
        Promise.TEXT_STAYS_TEXT,
        f"{_DRIVERS}/duckdb.py",
        ('"enable_external_access": False,', '"enable_external_access": True,'),
        (f"{_TESTS}/test_duckdb.py::test_nothing_but_its_own_file_is_in_reach",),
    ),
    mutation(
        "a session of Spark outlives its attempt",
        Promise.KILLED_MEANS_DEAD,
        "worker/shoal/worker/types/sql/drivers/spark.py",
        (
            "        within(_SIGN_IN_TIMEOUT_S, client.client.release_session)\n",
            "        _ = client.version\n",
        ),
        ("tests/integration/worker/sql/test_spark.py::test_what_a_dead_process_has_left_is_ended",),
    ),
    mutation(
        "Spark changes what is read only",
        Promise.GUARDED_STATES,
        "worker/shoal/worker/types/sql/drivers/spark.py",
        ("if changes and self._read_only:", "if changes and not values and self is None:"),
        ("tests/integration/worker/sql/test_spark.py::test_failures",),
    ),
)
