"""A database that falls silent: for ever on old connections, or for one master alone."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_SILENCE = Place("shoal.sql.driver.silence")
_HEALTH = Place("shoal.master.membership.database_health")
_PARTICIPATION = Place("shoal.master.membership.participation")
_CONNECTIONS = "tests/integration/sql/driver/test_silence.py"
_MASTERS = "tests/integration/master/membership/test_silent_database.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.PROGRESS.broken_if(
        "a server that is at work is given up like one that is gone",
        _SILENCE["_resolve"].replace("one.session in at_work", "one.session is None"),
        f"{_CONNECTIONS}::test_server_at_work_is_waited_for_however_long",
    ),
    Promise.PROGRESS.broken_if(
        "nobody asks whether a silent connection is gone",
        _SILENCE["_resolve"].replace("one.session is not None", "one.session is None"),
        f"{_CONNECTIONS}::"
        "test_failover_without_a_farewell_costs_all_connections_together_one_doubt",
    ),
    Promise.PROGRESS.broken_if(
        "idle connections stay when others were found to be gone",
        _SILENCE["_resolve"].drop("self._on_gone()"),
        f"{_CONNECTIONS}::"
        "test_failover_without_a_farewell_costs_all_connections_together_one_doubt",
    ),
    Promise.PROGRESS.broken_if(
        "a database that answers nobody is waited for",
        _SILENCE["_look"].replace(
            "self._suspect_s if self._in_haste else self.patience.answer_s", "float('inf')"
        ),
        f"{_CONNECTIONS}::test_database_that_answers_nobody_is_given_up_by_everybody",
        f"{_CONNECTIONS}::test_leaving_process_waits_for_no_silent_database",
    ),
    Promise.PROGRESS.broken_if(
        "a master without the database keeps its partitions",
        _HEALTH["_check"].replace(
            "self._silent_s() >= _GONE * self._timeout_s", "self._silent_s() < 0"
        ),
        f"{_MASTERS}::"
        "test_master_without_the_database_gives_its_partitions_to_one_that_has_it[cut-postgresql]",
    ),
    Promise.PROGRESS.broken_if(
        "masters leave although the database answers nobody",
        _PARTICIPATION["_reconsider"].replace(
            "self._share.has_joined == await self._others_can()", "self._share.has_joined"
        ),
        f"{_MASTERS}::test_database_that_is_away_from_all_moves_nothing[postgresql]",
    ),
)
