"""The database: fence, guards of conditional writes, unique keys, durability."""

from tests.mutations.mutation import Mutation, Promise, mutation

_PARTITIONS = "sql/shoal/sql/repositories/upkeep/partitions.py"
_CHANGES = "sql/shoal/sql/repositories/runs/instance_changes.py"
_COMMANDS = "sql/shoal/sql/repositories/runs/commands.py"
_RUN_TABLES = "sql/shoal/sql/schema/runs.py"
_COMMAND_TABLES = "sql/shoal/sql/schema/commands.py"
_REVISION = "sql/shoal/sql/migrations/versions/0001_first_schema.py"
_TESTS = "tests/integration/sql"
_KEY_OF_ATTEMPTS = """\
        sa.UniqueConstraint(
            "workflow_instance_id", "position", "attempt",
            name="uq_task_instance_workflow_instance_id_position_attempt",
        ),
"""

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "the fence does not compare epochs",
        Promise.FENCED_OWNERSHIP,
        _PARTITIONS,
        (
            "fenced = {n: epoch for n, epoch in epochs.items() if present.get(n) != epoch}",
            "fenced = {n: epoch for n, epoch in epochs.items() if n not in present}",
        ),
        (
            f"{_TESTS}/test_fencing.py::test_fence_names_every_partition_that_was_lost[sqlite]",
            f"{_TESTS}/test_fencing.py::test_old_owner_writes_nothing_after_the_takeover[sqlite]",
        ),
    ),
    mutation(
        "the fence does not hold until the commit",
        Promise.FENCED_OWNERSHIP,
        _PARTITIONS,
        ("    .with_for_update(read=True)\n", ""),
        (f"{_TESTS}/test_fencing.py::test_successor_waits_for_a_write_under_way[postgresql]",),
    ),
    mutation(
        "an epoch need not grow",
        Promise.FENCED_OWNERSHIP,
        _PARTITIONS,
        ("or epochs[row.number] > row.epoch", "or epochs[row.number] >= row.epoch"),
        (f"{_TESTS}/test_fencing.py::test_epoch_only_grows[sqlite]",),
    ),
    mutation(
        "a final attempt can change",
        Promise.GUARDED_STATES,
        _CHANGES,
        ('bindparam("row_id"), ~IS_FINAL)', 'bindparam("row_id"))'),
        (f"{_TESTS}/test_changes.py::test_final_attempt_never_changes",),
    ),
    mutation(
        "an instance changes whatever its state",
        Promise.GUARDED_STATES,
        _CHANGES,
        ('workflow_instance.c.state == bindparam("previous"),', 'bindparam("previous") != "",'),
        (
            f"{_TESTS}/test_changes.py::test_instance_changes_only_from_the_state_decided_upon"
            "[sqlite]",
        ),
    ),
    mutation(
        "an update that changed no row passes for done",
        Promise.GUARDED_STATES,
        _CHANGES,
        ("if changed != len(rows):", "if changed > len(rows):"),
        (f"{_TESTS}/test_changes.py::test_stale_run_takes_its_whole_batch_down[sqlite]",),
    ),
    mutation(
        "a command is settled twice",
        Promise.ONE_INSTANCE,
        _COMMANDS,
        (
            'command.c.id == bindparam("row_id"), IS_PENDING)',
            'command.c.id == bindparam("row_id"))',
        ),
        (
            f"{_TESTS}/test_commands.py::test_outcome_is_written_once[sqlite]",
            f"{_TESTS}/test_commands.py::test_two_masters_cannot_both_handle_a_command[sqlite]",
        ),
    ),
    mutation(
        "attempts have no unique key",
        Promise.ONE_LIVE_ATTEMPT,
        _RUN_TABLES,
        ('    UniqueConstraint("workflow_instance_id", "position", "attempt"),\n', ""),
        (f"{_TESTS}/test_unique_keys.py::test_attempt_has_its_number_alone[sqlite]",),
        also={_REVISION: (_KEY_OF_ATTEMPTS, "")},
    ),
    mutation(
        "instances have no unique key",
        Promise.ONE_INSTANCE,
        _RUN_TABLES,
        (
            'Column("command_id", ForeignKey("command.id"), nullable=False, unique=True)',
            'Column("command_id", ForeignKey("command.id"), nullable=False)',
        ),
        (f"{_TESTS}/test_instances.py::test_command_never_becomes_two_instances[sqlite]",),
        also={
            _REVISION: (
                'sa.UniqueConstraint("command_id", name="uq_workflow_instance_command_id"),',
                "",
            )
        },
    ),
    mutation(
        "idempotency keys are not unique",
        Promise.ONE_INSTANCE,
        _COMMAND_TABLES,
        (
            'Column("idempotency_key", Line(255), nullable=False, unique=True)',
            'Column("idempotency_key", Line(255), nullable=False)',
        ),
        (f"{_TESTS}/test_commands.py::test_same_key_is_the_same_command[sqlite]",),
        also={
            _REVISION: (
                'sa.UniqueConstraint("idempotency_key", name="uq_command_idempotency_key"),',
                "",
            )
        },
    ),
    mutation(
        "a schedule advances from any fire time",
        Promise.ONE_INSTANCE,
        "sql/shoal/sql/repositories/definitions/schedules.py",
        (
            '.where(schedule.c.id == bindparam("row_id"), '
            'schedule.c.next_fire_at == bindparam("planned"))',
            '.where(schedule.c.id == bindparam("row_id"))',
        ),
        (f"{_TESTS}/test_schedules.py::test_fire_time_is_taken_by_exactly_one[sqlite]",),
    ),
    mutation(
        "a fire that is due is lost when its schedule changes",
        Promise.NOTHING_LOST,
        "sql/shoal/sql/repositories/definitions/schedules.py",
        ('if is_due and self.values["enabled"]:', "if False:"),
        (
            f"{_TESTS}/test_schedules.py::"
            "test_fire_that_is_due_while_its_schedule_changes_is_not_lost[sqlite]",
        ),
    ),
    mutation(
        "a change that was stopped is done again without its transaction",
        Promise.NOTHING_LOST,
        "sql/shoal/sql/driver/sqlite/pool.py",
        (" or not self._raw.in_transaction:", ":"),
        (f"{_TESTS}/test_sqlite.py::test_nothing_is_stored_once_a_change_was_stopped",),
    ),
    mutation(
        "a commit on SQLite need not reach the disk",
        Promise.NOTHING_LOST,
        "sql/shoal/sql/driver/sqlite/pool.py",
        ("PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL"),
        (f"{_TESTS}/test_errors.py::test_sqlite_commits_are_durable_and_keys_checked",),
    ),
)
