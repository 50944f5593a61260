"""The database: fence, guards of conditional writes, unique keys, durability."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_PARTITIONS = Place("shoal.sql.repositories.upkeep.partitions")
_CHANGES = Place("shoal.sql.repositories.runs.instance_changes")
_COMMANDS = Place("shoal.sql.repositories.runs.commands")
_RUN_TABLES = Place("shoal.sql.schema.runs")
_REVISION = Place("shoal.sql.migrations.versions.0027_schema")
_COMMAND_TABLES = Place("shoal.sql.schema.commands")
_SCHEDULES = Place("shoal.sql.repositories.definitions.schedules")
_POOL = Place("shoal.sql.driver.sqlite.pool")
_MIGRATION = Place("shoal.sql.schema.migrate")
_TESTS = "tests/integration/sql"
_TEST_BUILDS = f"{_TESTS}/upkeep/test_index_builds.py"
_TEST_FENCING = f"{_TESTS}/runs/test_fencing.py"
_TEST_CHANGES = f"{_TESTS}/runs/test_changes.py"
_TEST_COMMANDS = f"{_TESTS}/runs/test_commands.py"
_TEST_SCHEDULES = f"{_TESTS}/definitions/test_schedules.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.PROGRESS.broken_if(
        "a migration locks a table with rows while it creates an index",
        _MIGRATION["may_create_index"].replace("connection.dialect.name != 'postgresql'", "True"),
        f"{_TEST_BUILDS}::test_index_of_a_table_with_rows_is_built_while_others_write",
    ),
    Promise.PROGRESS.broken_if(
        "an index whose build was interrupted stays invalid",
        _MIGRATION["_to_build"].replace("bool(row.indisvalid)", "True"),
        f"{_TEST_BUILDS}::test_interrupted_build_is_dropped_and_done_again",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "the fence does not compare epochs",
        _PARTITIONS["require"].replace("present.get(n) != epoch", "n not in present"),
        f"{_TEST_FENCING}::test_fence_names_every_partition_that_was_lost[sqlite]",
        f"{_TEST_FENCING}::test_old_owner_writes_nothing_after_the_takeover[sqlite]",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "the fence does not hold until the commit",
        _PARTITIONS.replace("(...).with_for_update(read=True)", "..."),
        f"{_TEST_FENCING}::test_successor_waits_for_a_write_under_way[postgresql]",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "an epoch need not grow",
        _PARTITIONS["raise_epochs"].replace(
            "epochs[row.number] > row.epoch", "epochs[row.number] >= row.epoch"
        ),
        f"{_TEST_FENCING}::test_epoch_only_grows[sqlite]",
    ),
    Promise.GUARDED_STATES.broken_if(
        "a final attempt can change",
        _CHANGES.drop("~IS_FINAL"),
        f"{_TEST_CHANGES}::test_final_attempt_never_changes",
    ),
    Promise.GUARDED_STATES.broken_if(
        "an instance changes whatever its state",
        _CHANGES.replace(
            "workflow_instance.c.state == bindparam('previous')", "bindparam('previous') != ''"
        ),
        f"{_TEST_CHANGES}::test_instance_changes_only_from_the_state_decided_upon[sqlite]",
    ),
    Promise.GUARDED_STATES.broken_if(
        "an update that changed no row passes for done",
        _CHANGES["_require"].replace("changed != len(rows)", "changed > len(rows)"),
        f"{_TEST_CHANGES}::test_stale_run_takes_its_whole_batch_down[sqlite]",
    ),
    Promise.ONE_INSTANCE.broken_if(
        "a command is settled twice",
        _COMMANDS.replace(
            "update(command).where(..., IS_PENDING)",
            "update(command).where(command.c.id == bindparam('row_id'))",
        ),
        f"{_TEST_COMMANDS}::test_outcome_is_written_once[sqlite]",
        f"{_TEST_COMMANDS}::test_two_masters_cannot_both_handle_a_command[sqlite]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "attempts have no unique key",
        (
            _RUN_TABLES.drop("UniqueConstraint(...)"),
            _REVISION["upgrade"].drop("sa.UniqueConstraint('workflow_instance_id', ...)"),
        ),
        f"{_TESTS}/driver/test_unique_keys.py::test_attempt_has_its_number_alone[sqlite]",
    ),
    Promise.ONE_INSTANCE.broken_if(
        "instances have no unique key",
        (
            _RUN_TABLES.drop("unique=True"),
            _REVISION["upgrade"].drop(
                "sa.UniqueConstraint('command_id', name='uq_workflow_instance_command_id')"
            ),
        ),
        f"{_TESTS}/runs/test_instances.py::test_command_never_becomes_two_instances[sqlite]",
    ),
    Promise.ONE_INSTANCE.broken_if(
        "idempotency keys are not unique",
        (
            _COMMAND_TABLES.replace(
                "Column('idempotency_key', OneLine(255), nullable=False, unique=True)",
                "Column('idempotency_key', Line(255), nullable=False)",
            ),
            _REVISION["upgrade"].drop("sa.UniqueConstraint('idempotency_key', ...)"),
        ),
        f"{_TEST_COMMANDS}::test_same_key_is_the_same_command[sqlite]",
    ),
    Promise.ONE_INSTANCE.broken_if(
        "a schedule advances from any fire time",
        _SCHEDULES.drop("schedule.c.next_fire_at == bindparam('planned')"),
        f"{_TEST_SCHEDULES}::test_fire_time_is_taken_by_exactly_one[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a fire that is due is lost when its schedule changes",
        _SCHEDULES["changes"].never("is_due and self.values['enabled']"),
        f"{_TEST_SCHEDULES}::test_fire_that_is_due_while_its_schedule_changes_is_not_lost[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a change that was stopped is done again without its transaction",
        _POOL["run"].drop("not self._raw.in_transaction"),
        f"{_TESTS}/driver/test_sqlite.py::test_nothing_is_stored_once_a_change_was_stopped",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a commit on SQLite need not reach the disk",
        _POOL.replace("'PRAGMA synchronous = FULL'", "'PRAGMA synchronous = NORMAL'"),
        f"{_TESTS}/driver/test_errors.py::test_sqlite_commits_are_durable_and_keys_checked",
    ),
)
