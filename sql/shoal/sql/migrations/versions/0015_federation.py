"""Signing in at providers and directories

Revision: 0013, after 0012. A table of sign-ins is added. Members of groups were put in by hand.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.add_column(
        "group_member",
        sa.Column("of_issuer", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.create_table(
        "sign_in",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("principal_id", ID, nullable=False),
        sa.Column("code", sa.String(64)),
        sa.Column("challenge", sa.String(43)),
        sa.Column("code_expires_at", INSTANT),
        sa.Column("expires_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_sign_in"),
        sa.ForeignKeyConstraint(
            ["principal_id"], ["principal.id"], name="fk_sign_in_principal_id_principal"
        ),
        sa.UniqueConstraint("code", name="uq_sign_in_code"),
    )
    op.create_index("ix_sign_in_principal_id", "sign_in", ["principal_id"])
    op.create_index("ix_sign_in_expires_at", "sign_in", ["expires_at"])


def downgrade() -> None:
    op.drop_table("sign_in")
    op.drop_column("group_member", "of_issuer")
