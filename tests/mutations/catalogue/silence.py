"""A database that falls silent: for ever on old connections, or for one master alone."""

from tests.mutations.mutation import Mutation, Promise, mutation

_SILENCE = "sql/shoal/sql/driver/silence.py"
_PARTICIPATION = "master/shoal/master/membership/participation.py"
_HEALTH = "master/shoal/master/membership/database_health.py"
_CONNECTIONS = "tests/integration/sql/test_silence.py"
_MASTERS = "tests/integration/master/test_silent_database.py"
_FAILOVER = "test_failover_without_a_farewell_costs_all_connections_together_one_doubt"
_GIVES = "test_master_without_the_database_gives_its_partitions_to_one_that_has_it"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a server that is at work is given up like one that is gone",
        Promise.PROGRESS,
        _SILENCE,
        ("if one.session in at_work:", "if one.session is None:"),
        (f"{_CONNECTIONS}::test_server_at_work_is_waited_for_however_long",),
    ),
    mutation(
        "nobody asks whether a silent connection is gone",
        Promise.PROGRESS,
        _SILENCE,
        ("elif one.session is not None:", "elif one.session is None:"),
        (f"{_CONNECTIONS}::{_FAILOVER}",),
    ),
    mutation(
        "idle connections stay when others were found to be gone",
        Promise.PROGRESS,
        _SILENCE,
        ("                self._on_gone()\n", ""),
        (f"{_CONNECTIONS}::{_FAILOVER}",),
    ),
    mutation(
        "a database that answers nobody is waited for",
        Promise.PROGRESS,
        _SILENCE,
        ("self._suspect_s if self._in_haste else self.patience.answer_s", "float('inf')"),
        (
            f"{_CONNECTIONS}::test_database_that_answers_nobody_is_given_up_by_everybody",
            f"{_CONNECTIONS}::test_leaving_process_waits_for_no_silent_database",
        ),
    ),
    mutation(
        "a master without the database keeps its partitions",
        Promise.PROGRESS,
        _HEALTH,
        ("if self._silent_s() >= _GONE * self._timeout_s:", "if self._silent_s() < 0:"),
        (f"{_MASTERS}::{_GIVES}[cut-postgresql]",),
    ),
    mutation(
        "masters leave although the database answers nobody",
        Promise.PROGRESS,
        _PARTICIPATION,
        (
            "elif self._share.has_joined == await self._others_can():",
            "elif self._share.has_joined:",
        ),
        (f"{_MASTERS}::test_database_that_is_away_from_all_moves_nothing[postgresql]",),
    ),
)
