"""The tables of the audit. Rows are added and never changed: triggers refuse it.

Entries are written in the transaction of what they record, by many processes at once. A moment
later one of these links them: the order of ``audit_link`` is that of commits, more or less.
"""

from sqlalchemy import DDL, BigInteger, Column, Integer, Table, event

from shoal.sql.schema.metadata import metadata, row_id
from shoal.sql.schema.types import OneLine, Prose, UtcDateTime

# ``detail`` is the text of a JSON object. Names stay what they were: nothing refers to other rows.
audit_entry = Table(
    "audit_entry",
    metadata,
    row_id(),
    Column("at", UtcDateTime, nullable=False, index=True),
    Column("action", OneLine(100), nullable=False),
    Column("outcome", OneLine(20), nullable=False),
    Column("principal_id", BigInteger),
    Column("principal", OneLine(201), nullable=False),
    Column("address", OneLine(100), nullable=False),
    Column("request_id", OneLine(200), nullable=False),
    Column("project", OneLine(100), nullable=False, index=True),
    Column("object", Prose, nullable=False),
    Column("detail", Prose, nullable=False),
    sqlite_autoincrement=True,
)

audit_link = Table(
    "audit_link",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("entry_id", BigInteger, nullable=False, unique=True),
    Column("hash", OneLine(64), nullable=False),
)

# One row, whose number is 1: entries up to ``pruned`` may be deleted, by position. ``hash`` is the
# one of that position.
audit_state = Table(
    "audit_state",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("pruned", BigInteger, nullable=False),
    Column("hash", OneLine(64), nullable=False),
)

_PRUNED = "(SELECT pruned FROM audit_state)"
_MAY_GO = {
    "audit_entry": (
        "OLD.id IN (SELECT entry_id FROM audit_link"  # noqa: S608 - nothing of it comes from outside
        f" WHERE entry_id = OLD.id AND position <= {_PRUNED})"
    ),
    "audit_link": f"OLD.position <= {_PRUNED}",
}


def guards(name: str) -> dict[str, list[str]]:
    """Return the statements that make the triggers of a table, by kind of database."""
    sqlite = [
        f"CREATE TRIGGER {name}_is_not_changed BEFORE UPDATE ON {name}"
        f" BEGIN SELECT RAISE(ABORT, '{name} is not changed'); END",
        f"CREATE TRIGGER {name}_is_kept BEFORE DELETE ON {name}"
        f" WHEN NOT ({_MAY_GO[name]})"
        f" BEGIN SELECT RAISE(ABORT, '{name} is not deleted'); END",
    ]
    refuse = f"RAISE EXCEPTION '{name} is not changed'"
    postgresql = [
        f"CREATE OR REPLACE FUNCTION {name}_guard() RETURNS trigger LANGUAGE plpgsql AS $$"
        f" BEGIN IF TG_OP = 'DELETE' THEN IF {_MAY_GO[name]} THEN RETURN OLD; END IF; END IF;"
        f" {refuse}; END $$",
        f"CREATE TRIGGER {name}_is_kept BEFORE UPDATE OR DELETE ON {name}"
        f" FOR EACH ROW EXECUTE FUNCTION {name}_guard()",
        f"CREATE TRIGGER {name}_is_not_emptied BEFORE TRUNCATE ON {name}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {name}_guard()",
    ]
    return {"sqlite": sqlite, "postgresql": postgresql}


for _table in (audit_entry, audit_link):
    for _dialect, _statements in guards(_table.name).items():
        for _statement in _statements:
            _ddl = DDL(_statement)  # type: ignore[no-untyped-call]
            event.listen(metadata, "after_create", _ddl.execute_if(dialect=_dialect))
