"""A database that stores nothing is noticed; one that is not Shoal's is refused before its use."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_POOL = Place("shoal.sql.driver.postgresql.pool")
_FILE = Place("shoal.sql.driver.sqlite.file")
_CHECK = Place("shoal.sql.write_check")
_EXAMINATION = Place("shoal.sql.schema.examination")
_STARTUP = Place("shoal.sql.startup")
_HEALTH = Place("shoal.api.routes.health")
_TEST_TROUBLE = "tests/integration/sql/driver/test_store_trouble.py"
_TEST_EXAMINATION = "tests/integration/sql/upkeep/test_examination.py"
_TEST_API = "tests/integration/api/cluster/test_store_trouble.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.PROGRESS.broken_if(
        "a session that can no longer write is used again",
        _POOL["_take_back"].always("not link.is_useless"),
        f"{_TEST_TROUBLE}"
        "::test_sessions_of_a_read_only_server_are_dropped_and_writes_go_on_by_themselves",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a file that was moved away is written on",
        _FILE["require"].never("self._opened != identity"),
        f"{_TEST_TROUBLE}::test_a_moved_file_is_noticed_at_once_and_used_again_when_it_is_back",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a missing database is made anew",
        _FILE["prepare_file"].never("is_used and not path.exists()"),
        f"{_TEST_TROUBLE}::test_a_file_that_was_there_before_is_not_made_anew",
    ),
    Promise.PROGRESS.broken_if(
        "the health only reads",
        _HEALTH["_database"].drop("await store.database.check_writes()"),
        f"{_TEST_API}::TestReadOnly::test_read_only_server_is_seen_named_and_used_again_by_itself",
    ),
    Promise.PROGRESS.broken_if(
        "what writes were refused for is forgotten",
        _CHECK["note"].never("isinstance(error, DatabaseUnwritable)"),
        f"{_TEST_TROUBLE}::test_a_full_disk_is_noticed_and_named_and_forgotten",
    ),
    Promise.NOTHING_LOST.broken_if(
        "tables of another application are no trouble",
        _EXAMINATION["find_revision"].drop("if tables:\n    ..."),
        f"{_TEST_EXAMINATION}::test_a_database_of_another_application_is_refused[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "any encoding will do",
        _EXAMINATION["_require_unicode"].never("encoding != 'UTF8'"),
        f"{_TEST_EXAMINATION}::test_an_encoding_that_cannot_hold_all_characters_is_refused[LATIN1]",
    ),
    Promise.PROGRESS.broken_if(
        "a start beside a long migration ends",
        _STARTUP["migrate_when_there"].drop("except TransactionConflict:\n    ..."),
        f"{_TEST_TROUBLE}::test_a_start_beside_a_long_migration_waits",
    ),
)
