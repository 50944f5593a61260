"""Fill a database with the past: copies of an instance that has really run, made by the database.

Beside ``history.py``, which fills an empty database: this one adds to what is there.
"""

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    case,
    cast,
    create_engine,
    func,
    insert,
    literal,
    select,
    text,
)
from sqlalchemy.sql.expression import CTE

from shoal.sql.schema.tables import command, event, task_instance, workflow_instance

_BLOCK = 50_000  # copies made by one statement
_TABLES = (command, workflow_instance, task_instance, event)


def multiply(url: str, instance_id: int, copies: int) -> None:
    """Copy an ended instance with its command, attempts and events; nobody else may write.

    The copies lie behind all that there is, as those of a real past do.
    """
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        for first in range(0, copies, _BLOCK):
            with engine.begin() as connection:
                _copy(connection, instance_id, min(_BLOCK, copies - first))
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            _settle(connection)
    finally:
        engine.dispose()


def _copy(connection: Connection, instance_id: int, copies: int) -> None:
    n = _numbers(copies)
    last = {table: connection.scalar(select(func.max(table.c.id))) or 0 for table in _TABLES}
    mine = {table: table.c.workflow_instance_id == instance_id for table in (task_instance, event)}
    size = {t: connection.scalar(select(func.count()).where(mine[t])) or 0 for t in mine}
    instance = last[workflow_instance] + n.c.n

    def place(table: Table) -> ColumnElement[Any]:
        """Return the id of a copy of a row of an instance that has several."""
        rank = func.row_number().over(partition_by=n.c.n, order_by=table.c.id)
        return last[table] + (n.c.n - 1) * size[table] + rank

    key = literal(f"copy-{last[command]}-") + cast(n.c.n, command.c.idempotency_key.type)
    source = select(workflow_instance.c.command_id).where(workflow_instance.c.id == instance_id)
    attempt = last[task_instance] + (n.c.n - 1) * size[task_instance] + 1
    for table, condition, changed in (
        (
            command,
            command.c.id == source.scalar_subquery(),
            {
                "id": last[command] + n.c.n,
                "idempotency_key": key,
                "result_instance_id": instance,
            },
        ),
        (
            workflow_instance,
            workflow_instance.c.id == instance_id,
            {"id": instance, "command_id": last[command] + n.c.n},
        ),
        (
            task_instance,
            mine[task_instance],
            {"id": place(task_instance), "workflow_instance_id": instance},
        ),
        (
            event,
            mine[event],
            {
                "id": place(event),
                "workflow_instance_id": instance,
                "task_instance_id": case((event.c.task_instance_id.is_not(None), attempt)),
            },
        ),
    ):
        values = [changed.get(column.name, column) for column in table.columns]
        names = [column.name for column in table.columns]
        rows = select(*values).select_from(n.join(table, condition))
        connection.execute(insert(table).from_select(names, rows))


def _numbers(count: int) -> CTE:
    """Return 1 … count as the column ``n``."""
    numbers = select(literal(1).label("n")).cte("numbers", recursive=True)
    return numbers.union_all(select(numbers.c.n + 1).where(numbers.c.n < count))


def _settle(connection: Connection) -> None:
    """Number what comes behind the copies, and let the database know how much there is."""
    if connection.dialect.name == "postgresql":
        for table in _TABLES:
            sequence = func.pg_get_serial_sequence(table.name, "id")
            connection.execute(
                select(func.setval(sequence, select(func.max(table.c.id)).scalar_subquery()))
            )
        connection.execute(text("VACUUM ANALYZE"))
    else:
        connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
