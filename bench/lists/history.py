"""A database with a long history, filled by plain SQL: a million instances in about a minute."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, bindparam, text

from shoal.core.definition.model import WorkflowSpec
from shoal.sql import Database
from shoal.sql.schema.types import UtcDateTime

TASKS = 5  # of every instance
FIRST = datetime(2026, 1, 1, tzinfo=UTC)  # an instance every 20 s from then on
SPACING = timedelta(seconds=20)
_PROJECTS, _WORKFLOWS = 10, 100

# Workflow w1 of project p1 has half of all instances, none of which failed; w2 of p2 ran three
# times, long ago; the others fail now and then. One instance was stopped, one of the first.
_COMMANDS = """
INSERT INTO command (type, partition, idempotency_key, workflow_id, parameters, requested_by,
    state, created_at, handled_at)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :instances)
SELECT 'START', i % 128, 'k' || i,
    CASE WHEN i <= 3 THEN 2 WHEN i % 2 = 0 THEN 1 ELSE 3 + (i / 2) % 98 END,
    '{}', 'api', 'DONE', :first + i * :spacing, :first + i * :spacing
FROM n
"""
_INSTANCES = """
INSERT INTO workflow_instance (project_id, workflow_id, version, state, partition, priority,
    parameters, logical_time, timezone, command_id, run_number, created_at, admitted_at,
    started_at, finished_at, schedule_id)
SELECT w.project_id, workflow_id, 1,
    CASE WHEN c.id = 5 THEN 'STOPPED' WHEN c.id % 50 = 49 THEN 'FAILED' ELSE 'SUCCEEDED' END,
    partition, 2, '{}', c.created_at, 'UTC', c.id, 1, c.created_at, c.created_at, c.created_at,
    c.created_at, CASE WHEN c.id % 3 = 0 THEN 1 + c.id % 2 END
FROM command AS c JOIN workflow AS w ON w.id = workflow_id ORDER BY c.id
"""
_ATTEMPTS = """
INSERT INTO task_instance (workflow_instance_id, position, attempt, task, type, state,
    worker_group, worker, failures, losses, queued_at, started_at, finished_at)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5)
SELECT id, i - 1, 1, 't' || i, 'SHELL',
    CASE WHEN state = 'FAILED' AND i = 5 THEN state ELSE 'SUCCEEDED' END,
    'default', 'worker-' || (id % 10), 0, 0, created_at, created_at, created_at
FROM workflow_instance, n ORDER BY id, i
"""
_EVENTS = """
INSERT INTO event (at, kind, project, workflow_instance_id, data)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4)
SELECT created_at, 'instance.state', 'p' || project_id, id, '{"state": "SUCCEEDED"}'
FROM workflow_instance, n ORDER BY id, i
"""


# Every tenth run has a team, every 1,000th another one than the rest; one has a label that no other
# has. Two schedules started every third.
_LABELS = """
INSERT INTO instance_label (workflow_instance_id, key, value, project_id, created_at)
SELECT id, 'team', CASE WHEN id % 1000 = 0 THEN 'b' ELSE 'a' END, project_id, created_at
FROM workflow_instance WHERE id % 10 = 0
UNION ALL
SELECT id, 'only', 'one', project_id, created_at FROM workflow_instance WHERE id = 77
"""


async def _publish(database: Database) -> None:
    """Publish w1, w2 … in turn in the projects p1, p2 …"""
    tasks = [{"name": f"t{i}", "type": "SHELL", "params": {}} for i in range(1, TASKS + 1)]
    async with database.unit_of_work() as uow:
        for i in range(_WORKFLOWS):
            home = {"project": f"p{1 + i % _PROJECTS}", "name": f"w{i + 1}"}
            spec = WorkflowSpec.model_validate({**home, "tasks": tasks})
            await uow.workflows.publish(spec, FIRST)
        await uow.commit()


async def fill(database: Database, instances: int) -> None:
    """Give a migrated, empty database a history of so many instances."""
    await _publish(database)
    spacing = SPACING if database.kind == "postgresql" else SPACING // timedelta(microseconds=1)
    first = bindparam("first", FIRST, type_=UtcDateTime())
    commands = text(_COMMANDS).bindparams(first, instances=instances, spacing=spacing)

    def run(connection: Connection) -> None:
        connection.execute(commands)
        for statement in (_INSTANCES, _LABELS, _ATTEMPTS, _EVENTS):
            connection.execute(text(statement))

    async with database.unit_of_work() as uow:
        await uow.connection.run_sync(run)
        await uow.commit()
