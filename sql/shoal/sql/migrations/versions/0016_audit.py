"""The audit, and which key encrypts secrets

Revision: 0013, after 0012. Entries, their chain, and triggers that keep both as they are.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")

PRUNED = "(SELECT pruned FROM audit_state)"
MAY_GO = {
    "audit_entry": (
        "OLD.id IN (SELECT entry_id FROM audit_link"  # noqa: S608 - nothing of it comes from outside
        f" WHERE entry_id = OLD.id AND position <= {PRUNED})"
    ),
    "audit_link": f"OLD.position <= {PRUNED}",
}


def upgrade() -> None:
    op.create_table(
        "audit_entry",
        sa.Column("id", ID, nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("action", sa.String(100), nullable=False),
        sa.Column("outcome", sa.String(20), nullable=False),
        sa.Column("principal_id", sa.BigInteger()),
        sa.Column("principal", sa.String(201), nullable=False),
        sa.Column("address", sa.String(100), nullable=False),
        sa.Column("request_id", sa.String(200), nullable=False),
        sa.Column("project", sa.String(100), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_entry"),
        sqlite_autoincrement=True,
    )
    for column in ("at", "project"):
        op.create_index(f"ix_audit_entry_{column}", "audit_entry", [column])
    op.create_table(
        "audit_link",
        sa.Column("position", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("entry_id", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_audit_link"),
        sa.UniqueConstraint("entry_id", name="uq_audit_link_entry_id"),
    )
    state = op.create_table(
        "audit_state",
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("pruned", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit_state"),
    )
    op.bulk_insert(state, [{"number": 1, "pruned": 0, "hash": "0" * 64}])
    sealing = op.create_table(
        "sealing",
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("primary_key", sa.String(20)),
        sa.Column("next_key", sa.String(20)),
        sa.Column("old", sa.Text(), nullable=False),
        sa.Column("retired", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_sealing"),
    )
    op.bulk_insert(sealing, [{"number": 1, "old": "[]", "retired": "[]"}])
    make = _sqlite if op.get_bind().dialect.name == "sqlite" else _postgresql
    for name in MAY_GO:
        make(name)


def _sqlite(name: str) -> None:
    op.execute(
        f"CREATE TRIGGER {name}_is_not_changed BEFORE UPDATE ON {name}"
        f" BEGIN SELECT RAISE(ABORT, '{name} is not changed'); END"
    )
    op.execute(
        f"CREATE TRIGGER {name}_is_kept BEFORE DELETE ON {name} WHEN NOT ({MAY_GO[name]})"
        f" BEGIN SELECT RAISE(ABORT, '{name} is not deleted'); END"
    )


def _postgresql(name: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION {name}_guard() RETURNS trigger LANGUAGE plpgsql AS $$"
        f" BEGIN IF TG_OP = 'DELETE' THEN IF {MAY_GO[name]} THEN RETURN OLD; END IF; END IF;"
        f" RAISE EXCEPTION '{name} is not changed'; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {name}_is_kept BEFORE UPDATE OR DELETE ON {name}"
        f" FOR EACH ROW EXECUTE FUNCTION {name}_guard()"
    )
    op.execute(
        f"CREATE TRIGGER {name}_is_not_emptied BEFORE TRUNCATE ON {name}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {name}_guard()"
    )


def downgrade() -> None:
    op.drop_table("sealing")
    op.drop_table("audit_link")
    op.drop_table("audit_entry")
    op.drop_table("audit_state")
    if op.get_bind().dialect.name == "postgresql":
        for name in MAY_GO:
            op.execute(f"DROP FUNCTION {name}_guard()")
